import asyncio

import pytest

from lmc.backend.lower import lower
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, InputError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.runtime.events import TokenEvent
from lmc.runtime.executor import Executor, Finished, Instance
from tests.ir.breaks import live_text
from tests.runtime.engines import HeldEngine, LateEngine
from tests.runtime.region_texts import INPUTS, LEAF, TEMPLATE, TOY, Step, executor, gen, module, run, stepwise

LEAVE = f"""
{gen("before")}
%p = lm.prefill %s : !ctx
%g = cf.cond %f : !ctx ^then() {{ END }} ^otherwise() {{ cf.yield (%s) }}
%w = lm.extend %c, user ["later"] : !ctx
%v = lm.prefill %w : !ctx
{gen("after", "p")}
%h = host.call @tell (%t.after) {{id = "m/@tell"}} : !any
lm.return %after (%t.after) {LEAF}
"""
RETURN = 'lm.return %s {structure = "{\\"literal\\":\\"early\\"}"}'


def test_a_return_in_a_region_ends_the_program_once_all_before_it_is_finished():
    told: list[str] = []

    async def steps(step: Step) -> None:
        await step.until("m/before")
        await asyncio.sleep(0.01)
        assert not step.task.done()
        step.engine.answer("m/before")

    found = stepwise(LEAVE.replace("END", RETURN), steps, tell=told.append)
    assert (found.value, found.text, told) == ("early", "Say: ", [])
    assert [op_id for op_id, cost in found.profile.ops.items() if cost.usage.calls] == ["m/before"]


def test_a_failure_before_a_return_in_a_region_is_the_error():
    async def steps(step: Step) -> None:
        await step.until("m/before")
        step.engine.fail("m/before")

    with pytest.raises(EngineError, match="m/before failed"):
        stepwise(LEAVE.replace("END", RETURN), steps)


def test_a_return_cancels_what_comes_after_it():
    """Only what nobody could see is under way by then: prefixes."""
    engine = HeldEngine(holds_prefills=True)
    inside = gen("a") + RETURN.replace("%s", "%a")
    body = LEAVE.replace("%p = lm.prefill %s : !ctx", "").replace('"p")', '"s")').replace("END", inside)

    async def steps(step: Step) -> None:
        await step.until("m/before", "m/a", "prefill")
        step.engine.answer("m/a")
        await step.until("m/before")
        assert step.engine.cancelled == ["prefill"]
        step.engine.answer("m/before")

    body = body.replace("lm.gen %p", "lm.gen %s")
    assert stepwise(body, steps, engine=engine).value == "early"


def test_a_return_leaves_all_regions_around_it():
    body = f"""
    %m = cf.loop (0) : !int ^condition(%i: !int) {{ cf.condition %f (%i) }} ^body(%j: !int) {{
      {gen("a", occurrences="(%j)")}
      %stop = py.call eq (%j, 2) : !bool
      cf.cond %stop ^then() {{ lm.return %a (%j) {LEAF} }} ^otherwise() {{ cf.yield {{}} }}
      %k = py.call add (%j, 1) : !int
      cf.yield (%k)
    }}
    {gen("z")}
    lm.return %z
    """
    found = run(body)
    assert found.value == 2
    assert sorted(found.profile.ops) == ["m/a", "m/a#1", "m/a#2"]
    assert found.text == interpret(module(body), INPUTS, ToyEngine()).text


BREAK = f"""
{gen("before")}
%ts = cf.map (%xs) : !list<!text> ^body(%i: !int, %x: !text) {{
  {gen("a", occurrences="(%i)")}
  %h = host.call @tell (%x) {{id = "m/@tell"}} : !any
  cf.yield (%t.a)
}}
%won, %best = cf.race (%xs) : !bool, !text ^body(%l: !int, %y: !text) {{
  {gen("r", occurrences="(%l)")}
  %good = py.call eq (%y, "b") : !bool
  cf.yield (%good, %t.r)
}}
cf.cond %f ^then() {{ {live_text(["before", "ts", "won", "best"])} }} ^otherwise() {{ cf.yield {{}} }}
{gen("after")}
lm.return %after
"""


@pytest.mark.parametrize("engine", [ToyEngine, LateEngine])
def test_a_break_gives_what_is_live(engine: type[ToyEngine]):
    expected = interpret(module(BREAK), INPUTS, ToyEngine(), hosts={"tell": str.upper})
    found = asyncio.run(executor(BREAK, engine(), tell=str.upper).run(INPUTS))
    assert found.live == expected.live
    assert found.live is not None
    assert found.broken_at is not None


def test_a_break_and_events_hold_what_is_computed_once_for_a_batch():
    text = TEMPLATE.replace("  func", '  constraint @k = regex "A"\n  func').replace(
        "BODY",
        '%d, %t = lm.gen %s {constraint = @k, forced = [65], id = "m/k", max_tokens = 1} : !ctx, !text '
        + live_text(["t"]),
    )
    instances = [Instance(number, INPUTS) for number in range(2)]
    ends: dict[int, Finished] = {}
    events: list[TokenEvent] = []
    plan = lower(parse_verified(text), TOY)
    running = Executor(ToyEngine(), plan, {}).run_batch(instances, range(2), ends.__setitem__, on_event=events.append)
    asyncio.run(running)
    assert [(event.instance, event.op_id, event.text) for event in events] == [(0, "m/k", "b"), (1, "m/k", "b")]
    for number in range(2):
        outcome = ends[number].outcome
        assert outcome is not None
        assert outcome.live is not None
        assert outcome.live.values == ("b",)


def test_coming_to_where_no_run_should_is_an_error_at_its_line():
    body = 'cf.cond %f ^then() { cf.unreachable {} loc("m.py":3) } ^otherwise() { cf.yield {} } lm.return %s'
    assert run(body, f=False).text == "Say: "
    with pytest.raises(InputError, match=r"^m\.py:3: the run came to cf\.unreachable"):
        run(body)

import asyncio
import time
import tracemalloc

import pytest

from lmc.backend.lower import lower
from lmc.ir.core import Block
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import LoopLimitError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.runtime.events import TokenEvent
from lmc.runtime.executor import Executor
from lmc.runtime.machine import Frame
from tests.ir import region_ops
from tests.runtime.engines import HeldEngine, LateEngine
from tests.runtime.region_texts import (
    INPUTS,
    LEAF,
    LOOP,
    TEMPLATE,
    TOY,
    Step,
    count_up,
    executor,
    gen,
    module,
    run,
    stepwise,
)


def test_rounds_of_a_loop_come_one_after_the_other():
    async def steps(step: Step) -> None:
        for op_id in ("m/a", "m/a#1", "m/a#2"):
            await step.until(op_id)
            step.engine.answer(op_id)

    found = stepwise(LOOP.replace("LIMIT", ""), steps)
    expected = interpret(module(LOOP.replace("LIMIT", "")), INPUTS, ToyEngine())
    assert (found.value, found.text) == (3, expected.text)
    assert found.usage == expected.usage


def test_a_loop_that_goes_on_too_long_is_an_error_at_its_line():
    with pytest.raises(LoopLimitError, match=r"^m\.py:3: the loop went on after 2 rounds"):
        run(LOOP.replace("LIMIT", "{limit = 2}"))


CONDITION = "cf.cond %f ^then() { cf.yield {} } ^otherwise() { cf.yield {} }"


@pytest.mark.parametrize("inside", ["", CONDITION], ids=["plain", "with-a-region"])
def test_a_round_leaves_nothing_behind(inside: str):
    def peak(rounds: int) -> int:
        plan = lower(count_up(rounds, inside), TOY)
        tracemalloc.start()
        assert asyncio.run(Executor(ToyEngine(), plan, {}).run(INPUTS)).value == rounds
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    assert peak(4_000) < peak(400) + 4_000 * 50  # bytes; a frame has more than a thousand


@pytest.mark.parametrize("inside", ["", CONDITION], ids=["plain", "with-a-region"])
def test_ten_thousand_rounds_take_linear_time(inside: str):
    plan = lower(count_up(10_000, inside), TOY)
    start = time.process_time()
    assert asyncio.run(Executor(ToyEngine(), plan, {}).run(INPUTS)).value == 10_000
    assert time.process_time() - start < 5


def test_ten_thousand_rounds_of_calls_take_linear_time():
    plan = lower(count_up(10_000, gen("a", occurrences="(%j)")), TOY)
    start = time.process_time()
    assert asyncio.run(Executor(ToyEngine(), plan, {}).run(INPUTS)).usage.calls == 10_000
    assert time.process_time() - start < 10


LOOP_FOREVER = "cf.loop ^condition() { cf.condition %f } ^body() { cf.yield {} } lm.return %s"


def test_a_loop_without_end_can_be_cancelled():
    forever = count_up(1).with_main(module(LOOP_FOREVER).main.body)

    async def main() -> None:
        task = asyncio.ensure_future(Executor(ToyEngine(), lower(forever, TOY), {}).run(INPUTS))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 5))


def test_answers_don_t_make_the_turns_of_the_event_loop_longer(monkeypatch: pytest.MonkeyPatch):
    """Beside a loop that waits for nothing: its cancelling, and other instances, come no later for them."""
    steps = [0]
    step = Frame.step

    def counted(self: Frame) -> bool:
        steps[-1] += 1
        return step(self)

    monkeypatch.setattr(Frame, "step", counted)
    engine = HeldEngine()
    body = f"""
    cf.map (%xs) ^body(%i: !int, %x: !text) {{ {gen("a", occurrences="(%i)")} cf.yield {{}} }}
    {LOOP_FOREVER}
    """

    async def main() -> None:
        task = asyncio.ensure_future(executor(body, engine).run({**INPUTS, "xs": ["x"] * 20}))
        while len(engine.waiting) < 20:
            await asyncio.sleep(0)
        for op_id in engine.waiting:
            engine.answer(op_id)
        for _ in range(20):
            steps.append(0)
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 10))
    assert 0 < max(steps[-10:]) <= 1_000


def test_cancelling_an_instance_cancels_what_its_regions_ask():
    engine = HeldEngine()
    body = f"""
    %ts = cf.map (%xs) : !list<!text> ^body(%i: !int, %x: !text) {{
      %p = lm.extend %s [%x] : !ctx
      %q = lm.prefill %p : !ctx
      %v = cf.cond %f : !text ^then() {{ {gen("a", "q", occurrences="(%i)")} cf.yield (%t.a) }}
        ^otherwise() {{ cf.yield ("") }}
      cf.yield (%v)
    }}
    {gen("z")}
    lm.return %s (%ts) {LEAF}
    """

    async def main() -> None:
        step = Step(asyncio.ensure_future(executor(body, engine).run(INPUTS)), engine)
        await step.until("m/a", "m/a#1", "m/a#2", "m/z")
        assert len(engine.pinned) == 3
        step.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step.task

    asyncio.run(main())
    assert sorted(engine.cancelled) == ["m/a", "m/a#1", "m/a#2", "m/z"]
    assert engine.pinned == ()


def test_an_error_in_a_region_has_its_own_line_only():
    body = """
    cf.map (%xs) ^body(%i: !int, %x: !text) { %q = py.call int (%x) : !int loc("m.py":5) cf.yield {} } loc("m.py":4)
    lm.return %s
    """
    with pytest.raises(ValueError, match="invalid literal") as caught:
        run(body)
    assert caught.value.__notes__ == ["in the program at m.py:5"]


def test_regions_of_no_known_meaning_are_refused():
    op = region_ops.make(region_ops.MapOp, body=Block((), (region_ops.make(region_ops.YieldOp),)))
    found = module("lm.return %s")
    ops = found.main.body.ops
    changed = found.with_main(Block(found.main.parameters, (*ops[:-1], op, ops[-1])))
    with pytest.raises(TypeError, match=r"test\.map has regions of no known meaning"):
        asyncio.run(Executor(ToyEngine(), lower(changed, TOY), {}).run(INPUTS))


def test_events_and_profile_name_the_ids_of_the_run():
    events: list[TokenEvent] = []
    body = f"""
    %ts = cf.map (%xs) : !list<!text> ^body(%i: !int, %x: !text) {{
      %d, %t = lm.gen %s (%i) {{id = "m/view$/j", max_tokens = 2, name = "j"}} : !ctx, !text
      %e, %u = lm.gen %s (%i) {{constraint = @k, forced = [65], id = "m/view$/k", max_tokens = 1}} : !ctx, !text
      cf.yield (%t)
    }}
    lm.return %s (%ts) {LEAF}
    """
    found = parse_verified(TEMPLATE.replace("BODY", body).replace("  func", '  constraint @k = regex "A"\n  func'))
    outcome = asyncio.run(Executor(LateEngine(), lower(found, TOY), {}).run(INPUTS, on_event=events.append))
    assert {(event.op_id, event.branch) for event in events} == {
        (f"m/view{number}/{name}", f"m/view{number}") for number in range(3) for name in "jk"
    }
    assert sorted(outcome.profile.ops) == ["m/view0/j", "m/view1/j", "m/view2/j"]

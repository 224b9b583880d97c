"""What an engine is told of calls to come: what, for how long, and that it is all taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest

from lmc.backend.lower import lower
from lmc.ir.engine.protocol import EngineInfo, Place, Request
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.runtime.executor import Executor, Finished, Instance
from lmc.runtime.hints.known_prefixes import CallToCome, RegionEntry
from lmc.runtime.hints.lookahead import LookaheadHints
from lmc.runtime.prepared import PreparedPlan, prepare
from tests.runtime.test_kept_contexts import PlannedEngine

SECOND = "You say whether a plan is any good. "
MODULE = parse_verified(f"""module @f {{ func @f(%x: !text) {{
  %0 = lm.context : !ctx
  %1 = lm.extend %0 ["You plan what is to be done. ", %x] : !ctx
  %2, %a = lm.gen %1 {{id = "f/a", max_tokens = 3}} : !ctx, !text
  %3 = lm.extend %2 ["Go on, at length and in detail: ", %x] : !ctx
  %4, %b = lm.gen %3 {{id = "f/b", max_tokens = 3}} : !ctx, !text
  %5 = lm.extend %0 ["{SECOND}", %x, %b] : !ctx
  %6, %c = lm.gen %5 {{id = "f/c", max_tokens = 3}} : !ctx, !text
  %7 = lm.extend %0 ["Short: ", %b] : !ctx
  %8, %d = lm.gen %7 {{id = "f/d", max_tokens = 3}} : !ctx, !text
  lm.return %8 (%c, %d) {{structure = "{{\\"list\\":[{{\\"leaf\\":0}},{{\\"leaf\\":1}}]}}"}}
}} }}""")


def _prepared() -> PreparedPlan:
    return prepare(lower(MODULE, Target.parse("toy")))


def _run(engine: Any, texts: list[str], block: int = 1) -> list[Finished]:
    ends: dict[int, Finished] = {}
    instances = [Instance(number, {"x": text}) for number, text in enumerate(texts)]
    work = Executor(engine, _prepared(), {}).run_batch(instances, range(len(texts)), ends.__setitem__, block=block)
    asyncio.run(work)
    return [ends[number] for number in range(len(texts))]


def _named(prepared: PreparedPlan) -> dict[str, CallToCome]:
    """The calls to come by id, those in regions included."""
    found: dict[str, CallToCome] = {}
    rest = list(prepared.steps_to_come)
    while rest:
        step = rest.pop()
        if isinstance(step, RegionEntry):
            rest += step.steps
        elif isinstance(step, CallToCome):
            found[getattr(step.op, "id", "")] = step
    return found


def test_calls_begin_with_known_text_unless_they_go_on_from_an_answer_or_begin_with_the_instance():
    calls = _named(_prepared())
    assert set(calls) == {"f/c", "f/d"}
    assert [part for part in calls["f/c"].beginning.text if isinstance(part, str)] == [SECOND]
    assert len(calls["f/c"].beginning.text) == 2  # and the input, which comes before the answer


def test_the_prefix_of_a_call_is_expected_at_its_stage_until_its_requests_are_there():
    engine = PlannedEngine()
    submit = engine.submit
    seen: dict[str, list[int]] = {}

    def watch(request: Request, on_delta: Any = None) -> Any:
        expected = [place.rank for prompt, place in engine.contexts if request.prompt[: len(prompt)] == prompt]
        seen[request.op_id] = expected
        return submit(request, on_delta)

    engine.submit = watch
    [end] = _run(engine, ["this"])
    assert end.outcome is not None
    assert end.outcome.value == interpret(MODULE, {"x": "this"}, ToyEngine()).value
    assert (seen["f/a"], seen["f/b"], seen["f/c"], seen["f/d"]) == ([], [], [2], [])
    assert engine.open == {}


def test_places_are_those_of_the_instances_in_their_block():
    engine = PlannedEngine()
    ends = _run(engine, ["one", "two"], block=2)
    values = [None if end.outcome is None else end.outcome.value for end in ends]
    assert values == [interpret(MODULE, {"x": text}, ToyEngine()).value for text in ("one", "two")]
    assert sorted(rank for what, text, rank in engine.log if what == "expect" and text) == [4, 5]
    assert engine.open == {}


def test_nothing_is_expected_of_an_instance_that_failed():
    engine = PlannedEngine()
    engine.failing.add("f/a")
    [end] = _run(engine, ["this"])
    assert end.error is not None
    assert [text for what, text, _ in engine.log if what == "withdraw" and text.startswith(SECOND)]
    assert engine.open == {}


HEAD = """module @f { func @f(%x: !text, %xs: !list<!text>, %n: !int) {
  %0 = lm.context : !ctx
  %1 = lm.extend %0 ["Is it so? ", %x] : !ctx
  %2, %a = lm.gen %1 {id = "f/a", max_tokens = 3} : !ctx, !text
  %long = py.call len (%a) : !int
  %goes = py.call gt (%long, %n) : !bool"""
ARMS = f"""{HEAD}
  %r = cf.cond %goes {{probability = PROBABILITY}} : !text ^then() {{
    %4 = lm.extend %0 ["Where it is so, no matter what: ", %x, %a] : !ctx
    %5, %b = lm.gen %4 {{id = "f/b", max_tokens = 3}} : !ctx, !text
    cf.yield (%b)
  }} ^otherwise() {{
    %6 = lm.extend %0 ["Where it is not so, and all the same: ", %x, %a] : !ctx
    %7, %c = lm.gen %6 {{id = "f/c", max_tokens = 3}} : !ctx, !text
    cf.yield (%c)
  }}
  %8 = lm.extend %0 ["At the end of it all, and of the day: ", %r] : !ctx
  %9, %d = lm.gen %8 {{id = "f/d", max_tokens = 3}} : !ctx, !text
  lm.return %9 (%d) {{structure = "{{\\"leaf\\":0}}"}}
}} }}"""
ELEMENTS = f"""{HEAD}
  %r, %m = cf.loop (%a, 0) {{limit = 5}} : !text, !int ^condition(%p: !text, %i: !int) {{
    %go = py.call lt (%i, 2) : !bool
    cf.condition %go (%p, %i)
  }} ^body(%q: !text, %k: !int) {{
    %4 = lm.extend %0 ["Once more, with all that is known: ", %x, %q] : !ctx
    %5, %b = lm.gen %4 (%k) {{id = "f/b*", max_tokens = 3}} : !ctx, !text
    %next = py.call add (%k, 1) : !int
    cf.yield (%b, %next)
  }}
  %ts = cf.map (%xs) : !list<!text> ^body(%j: !int, %e: !text) {{
    %e2 = text.concat [%e, " and so on and on"] : !text
    %6 = lm.extend %0 ["Of this one alone: ", %e2, %r] : !ctx
    %7, %c = lm.gen %6 (%j) {{id = "f/c$", max_tokens = 3}} : !ctx, !text
    cf.yield (%c)
  }}
  lm.return %0 (%ts) {{structure = "{{\\"leaf\\":0}}"}}
}} }}"""
LONG = "what is to be done about it all"


def _run_regions(text: str, engine: PlannedEngine, **inputs: Any) -> list[tuple[str, str]]:
    """What is told beside the run itself, and which calls begin, in order."""
    module = parse_verified(text)
    values = {"x": LONG, "xs": [f"{LONG} {number}" for number in range(2)], "n": 0} | inputs
    events: list[tuple[str, str]] = []
    expect, withdraw, submit = engine.expect, engine.withdraw, engine.submit

    def told(prompt: tuple[int, ...], place: Place) -> int:
        events.append(("expect", engine.tokenizer.decode(prompt)))
        return expect(prompt, place)

    def taken_back(key: int) -> None:
        events.append(("withdraw", engine.tokenizer.decode(engine.open[key][0])))
        withdraw(key)

    def asked(request: Request, on_delta: Any = None) -> Any:
        events.append(("ask", request.op_id))
        return submit(request, on_delta)

    engine.expect, engine.withdraw, engine.submit = told, taken_back, asked
    outcome = asyncio.run(Executor(engine, prepare(lower(module, Target.parse("toy"))), {}).run(values))
    assert outcome.value == interpret(module, values, ToyEngine()).value
    assert engine.open == {}
    return [event for event in events if event[1]]


def _words(events: list[tuple[str, str]], what: str) -> list[str]:
    return [text[:15] for kind, text in events if kind == what]


def test_of_a_condition_both_arms_are_expected_until_one_is_taken():
    events = _run_regions(ARMS.replace("{probability = PROBABILITY}", ""), PlannedEngine())
    assert _words(events, "expect") == ["Where it is so,", "Where it is not", "At the end of i"]
    assert events[:4][-1] == ("ask", "f/a")
    assert [text[:15] for _, text in events[4:6]] == ["Where it is not", "f/b"]  # the other one, before the one begins
    assert _words(events, "withdraw") == ["Where it is not", "Where it is so,", "At the end of i"]


@pytest.mark.parametrize(("probability", "arm"), [("0.9", "Where it is so,"), ("0.2", "Where it is not")])
def test_of_a_condition_with_a_probability_the_likelier_arm_is_expected(probability: str, arm: str):
    events = _run_regions(ARMS.replace("PROBABILITY", probability), PlannedEngine())
    assert _words(events, "expect") == [arm, "At the end of i"]


def test_a_call_in_a_loop_is_expected_until_the_loop_is_over_and_elements_one_by_one():
    events = _run_regions(ELEMENTS, PlannedEngine())
    told = [text for kind, text in events if kind == "expect"]
    assert [text[:9] for text in told] == ["Once more", "Of this o", "Of this o"]
    assert LONG[:-10] in told[0]
    assert [f"{LONG} {number}" in text for number, text in enumerate(told[1:])] == [True, True]
    rest = [text for kind, text in events if kind != "expect"]
    assert rest[3] == told[0]  # after the rounds
    assert set(told[1:]) < set(rest[4:])


@pytest.mark.parametrize("text", [ARMS.replace("{probability = PROBABILITY}", ""), ELEMENTS])
def test_nothing_is_expected_of_a_run_that_failed_or_was_cancelled_in_a_region(text: str):
    prepared = prepare(lower(parse_verified(text), Target.parse("toy")))
    inputs = {"x": LONG, "xs": [LONG, LONG], "n": 0}
    for failing in ("f/a", "f/b", "f/b1", "f/c0", "f/d"):
        engine = PlannedEngine()
        engine.failing.add(failing)
        with suppress(EngineError):
            asyncio.run(Executor(engine, prepared, {}).run(inputs))
        assert engine.open == {}
        engine = PlannedEngine()
        engine.stuck.add(failing)
        with suppress(TimeoutError):
            asyncio.run(_stopped(Executor(engine, prepared, {}).run(inputs)))
        assert engine.open == {}


async def _stopped(run: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(run, 0.1)


def test_what_can_not_be_computed_is_left_out():
    text = ARMS.replace("{probability = PROBABILITY}", "").replace(
        "%4 = lm.extend %0 [", "%w = py.call getitem (%xs, 7) : !text %4 = lm.extend %0 [%w, "
    )
    events = _run_regions(text, PlannedEngine(), n=100)
    assert _words(events, "expect") == ["Where it is not", "At the end of i"]


def test_an_engine_is_told_once_it_was_asked_for_more_than_it_holds():
    engine = PlannedEngine()
    engine._info = EngineInfo("late", 1 << 20, 400)
    assert all(end.outcome is not None for end in _run(engine, ["one", "two"]))
    assert [text for what, text, _ in engine.log if what == "expect" and text] == []
    _run(engine, [f"number {number}" for number in range(8)])
    told = [text for what, text, _ in engine.log if what == "expect" and text]
    assert 4 <= len(told) <= 8  # those that were under way too
    _run(engine, ["one"])
    assert len([text for what, text, _ in engine.log if what == "expect" and text]) == len(told) + 1
    assert engine.open == {}


def test_text_that_instances_share_is_encoded_once():
    lookahead = LookaheadHints(PlannedEngine())
    context = Context.empty(ToyEngine().tokenizer)
    first, second = (lookahead.tokens_of(context.text(LONG + "".join([" and", " on"]))) for _ in range(2))
    assert first is second
    assert len(first) > 16

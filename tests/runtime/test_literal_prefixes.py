"""What an engine is told of calls to come: what, for how long, and that it is all taken back."""

from __future__ import annotations

import asyncio
from typing import Any

from lmc.backend.lower import lower
from lmc.ir.context import Context
from lmc.ir.engine import Request
from lmc.ir.interpreter import interpret
from lmc.ir.parser import parse_verified
from lmc.ir.target import Target
from lmc.ir.toy import ToyEngine
from lmc.runtime.executor import Executor, Finished, Instance
from lmc.runtime.literal_prefixes import literal_prefixes
from lmc.runtime.prepared import PreparedPlan, prepare
from tests.runtime.test_kept_contexts import PlannedEngine

SECOND = "You say whether a plan is any good. "
MODULE = parse_verified(f"""module @f {{ func @f(%x: !text) {{
  %0 = lm.context : !ctx
  %1 = lm.extend %0 ["You plan what is to be done. ", %x] : !ctx
  %2, %a = lm.gen %1 {{id = "f/a", max_tokens = 3}} : !ctx, !text
  %3 = lm.extend %2 ["Go on, at length and in detail: ", %x] : !ctx
  %4, %b = lm.gen %3 {{id = "f/b", max_tokens = 3}} : !ctx, !text
  %5 = lm.extend %0 ["{SECOND}", %b] : !ctx
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


def test_calls_begin_with_literal_text_unless_they_go_on_from_an_answer_or_it_is_short():
    prepared, tokenizer = _prepared(), ToyEngine().tokenizer
    [context] = [op.results[0] for op in prepared.main.ops if op.NAME == "lm.context"]
    values = {context: Context.empty(tokenizer)}
    found = literal_prefixes(prepared.main, values, lambda _: False)
    named = {getattr(prepared.main.ops[index], "id", ""): tokens for index, tokens in found.items()}
    assert set(named) == {"f/a", "f/c"}
    assert tokenizer.encode(f"{SECOND}x")[: len(named["f/c"])] == named["f/c"]
    assert literal_prefixes(prepared.main, {}, lambda _: False) == {}


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
    assert (seen["f/a"], seen["f/b"], seen["f/c"], seen["f/d"]) == ([0], [], [2], [])
    assert engine.open == {}


def test_places_are_those_of_the_instances_in_their_block():
    engine = PlannedEngine()
    ends = _run(engine, ["one", "two"], block=2)
    values = [None if end.outcome is None else end.outcome.value for end in ends]
    assert values == [interpret(MODULE, {"x": text}, ToyEngine()).value for text in ("one", "two")]
    assert sorted(rank for what, text, rank in engine.log if what == "expect" and text) == [0, 1, 4, 5]
    assert engine.open == {}


def test_nothing_is_expected_of_an_instance_that_failed():
    engine = PlannedEngine()
    engine.failing.add("f/a")
    [end] = _run(engine, ["this"])
    assert end.error is not None
    assert [text for what, text, _ in engine.log if what == "withdraw" and SECOND.startswith(text) and text]
    assert engine.open == {}

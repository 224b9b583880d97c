"""What an engine is told about contexts that are used again, and that all of it is taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from lmc.backend.json.plan_json import dump_plan, load_plan
from lmc.backend.lower import lower
from lmc.ir.engine.protocol import Place, Planned, Request
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError
from lmc.ir.module import Module
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.passes import PassManager, parse_pipeline
from lmc.runtime.executor import Executor, Instance, Limits
from lmc.runtime.hints.retention import KeptContexts
from tests.flow_strategies import flow_programs
from tests.program_strategies import Program, programs
from tests.runtime.engines import LateEngine

HEAD = 'module @f { host @tool = "m:tool" sha256 "00" writes func @f(%x: !text) {'
FORKS = f"""{HEAD}
  %0 = lm.context : !ctx
  %1 = lm.extend %0 [%x] : !ctx
  %2, %a = lm.gen %1 {{id = "f/a", max_tokens = 3}} : !ctx, !text
  %3, %b = lm.gen %1 {{id = "f/b", max_tokens = 3}} : !ctx, !text
  %4, %c = lm.gen %3 {{id = "f/c", max_tokens = 3}} : !ctx, !text
  %5 = lm.extend %2 [%c] : !ctx
  %6, %d = lm.gen %5 {{id = "f/d", max_tokens = 3}} : !ctx, !text
  lm.return %6 (%d) {{structure = "{{\\"leaf\\":0}}"}}
}} }}"""
LOOP = f"""{HEAD}
  %0 = lm.context : !ctx
  %1, %a = lm.gen %0 {{id = "f/a", max_tokens = 3}} : !ctx, !text
  %r, %n = cf.loop (%1, 0) {{limit = 5}} : !ctx, !int ^condition(%p: !ctx, %i: !int) {{
    %go = py.call lt (%i, 3) : !bool
    cf.condition %go (%p, %i)
  }} ^body(%q: !ctx, %k: !int) {{
    %w = host.call @tool (%x) {{id = "f/@tool"}} : !text
    %2 = lm.extend %q [%w] : !ctx
    %3, %b = lm.gen %2 (%k) {{id = "f/b*", max_tokens = 3}} : !ctx, !text
    %m = py.call add (%k, 1) : !int
    cf.yield (%3, %m)
  }}
  %4, %c = lm.gen %r {{id = "f/c", max_tokens = 3}} : !ctx, !text
  lm.return %4 (%c) {{structure = "{{\\"leaf\\":0}}"}}
}} }}"""


class Notes(ToyEngine):
    """Notes what it is told: ``log`` in order, ``open`` what is expected still, by key."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[tuple[str, str, int]] = []
        self.open: dict[int, tuple[tuple[int, ...], Place]] = {}
        self.withdrawn: list[int] = []

    def expect(self, prompt: tuple[int, ...], place: Place) -> int:
        key = len(self.open) + len(self.withdrawn)
        self.open[key] = (prompt, place)
        self.log.append(("expect", self.tokenizer.decode(prompt), place.rank))
        return key

    def withdraw(self, key: int) -> None:
        prompt, place = self.open.pop(key)  # each key once
        self.withdrawn.append(key)
        self.log.append(("withdraw", self.tokenizer.decode(prompt), place.rank))

    @property
    def contexts(self) -> list[tuple[tuple[int, ...], Place]]:
        """What is expected beside the run itself."""
        return [(prompt, place) for prompt, place in self.open.values() if prompt]


class PlannedEngine(Notes, LateEngine):
    """Answers late."""

    def __init__(self) -> None:
        super().__init__(most_seconds=0.001)


def _planned(text: str | Module) -> Module:
    module = parse_verified(text) if isinstance(text, str) else text
    return PassManager(parse_pipeline("hoist-prefixes{minimum_tokens=1},plan-fork-join,kv-liveness")).run(module).module


def _run(engine: Any, module: Module, tool: Callable[[str], str] = str.upper) -> Any:
    plan = load_plan(dump_plan(lower(module, Target.parse("toy"))))
    return asyncio.run(Executor(engine, plan, {"tool": tool}).run({"x": "once"}))


def test_a_context_is_expected_from_the_beginning_of_its_call_to_the_end_of_its_last_use():
    engine = PlannedEngine()
    assert isinstance(engine, Planned)
    asked: list[str] = []
    submit = engine.submit

    def watch(request: Request, on_delta: Any = None) -> Any:
        asked.append(request.op_id)
        kept = [prompt for prompt, _ in engine.contexts]
        # Before its answer is there, the prompt of a call whose context is used again; then all that it left.
        if request.op_id == "f/b":
            assert request.prompt in kept
        if request.op_id == "f/d":
            assert any(request.prompt[: len(prompt)] == prompt and len(prompt) > 3 for prompt in kept)
        return submit(request, on_delta)

    engine.submit = watch
    module = _planned(FORKS)
    found = _run(engine, module)
    assert found.value == interpret(module, {"x": "once"}, ToyEngine()).value
    assert sorted(asked) == ["f/a", "f/b", "f/c", "f/d"]
    assert engine.open == {}


def test_the_next_use_is_at_the_stage_of_its_call():
    engine = PlannedEngine()
    _run(engine, _planned(FORKS))
    ranks = {rank for what, text, rank in engine.log if what == "expect" and text}
    # One prefill and four calls are five stages: c, which goes on from b, is the fourth; d, from a, the last.
    assert ranks == {3, 4}


def test_contexts_of_a_loop_are_kept_while_a_tool_works():
    engine = PlannedEngine()
    kept: list[int] = []

    def tool(text: str) -> str:
        kept.append(len(engine.contexts))
        return text.upper()

    module = _planned(LOOP)
    found = _run(engine, module, tool)
    assert found.value == interpret(module, {"x": "once"}, ToyEngine(), hosts={"tool": str.upper}).value
    # What the round began with; and what was there before the loop, which all rounds begin with.
    assert kept == [2, 2, 2]
    assert engine.open == {}


@pytest.mark.parametrize(
    ("text", "failing"), [(FORKS, "f/a"), (FORKS, "f/b"), (FORKS, "f/d"), (LOOP, "f/a"), (LOOP, "f/b#1"), (LOOP, "f/c")]
)
def test_a_run_that_fails_leaves_nothing_expected(text: str, failing: str):
    engine = PlannedEngine()
    engine.failing = {failing}
    with pytest.raises(EngineError):
        _run(engine, _planned(text))
    assert engine.open == {}


@pytest.mark.parametrize(("text", "stuck"), [(FORKS, "f/c"), (LOOP, "f/b#1")])
def test_a_run_that_is_cancelled_leaves_nothing_expected(text: str, stuck: str):
    engine = PlannedEngine()
    engine.stuck = {stuck}
    executor = Executor(engine, lower(_planned(text), Target.parse("toy")), {"tool": str.upper})

    async def cancelled() -> None:
        running = asyncio.ensure_future(executor.run({"x": "once"}))
        while stuck not in engine.order:
            await asyncio.sleep(0.001)
        assert engine.contexts
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert engine.open == {}


def test_instances_that_come_first_use_their_contexts_first():
    engine = PlannedEngine()
    executor = Executor(engine, lower(_planned(FORKS), Target.parse("toy")), {}, Limits(requests=8))
    instances = [Instance(number, {"x": f"{number}"}) for number in range(4)]
    asyncio.run(executor.run_batch(instances, [2, 0, 3, 1], lambda _index, _end: None))
    first = {text[0]: rank // 5 for what, text, rank in reversed(engine.log) if what == "expect" and text}
    assert first == {"2": 0, "0": 1, "3": 2, "1": 3}
    assert engine.open == {}


def _counting_pins(engine: Any, submit: Any, found: list[int], request: Request, on_delta: Any = None) -> Any:
    found.append(len(engine.pinned))
    return submit(request, on_delta)


def test_a_prefix_that_is_let_go_is_unpinned_before_its_last_use():
    text = f"""{HEAD}
      %0 = lm.context : !ctx
      %1 = lm.extend %0 ["A long text of the program, ", %x] : !ctx
      %p = lm.prefill %1 : !ctx
      %2, %a = lm.gen %p {{id = "f/a", max_tokens = 3}} : !ctx, !text
      %3, %b = lm.gen %2 {{id = "f/b", max_tokens = 3}} : !ctx, !text
      %4, %c = lm.gen %3 {{id = "f/c", max_tokens = 3}} : !ctx, !text
      %5 = lm.extend %p [%c] : !ctx
      %6, %d = lm.gen %5 {{id = "f/d", max_tokens = 3}} : !ctx, !text
      lm.return %6 (%d) {{structure = "{{\\"leaf\\":0}}"}}
    }} }}"""
    pinned: dict[str, list[int]] = {}
    for cost in ("1", "0"):
        engine = PlannedEngine()
        submit = engine.submit
        found = pinned.setdefault(cost, [])
        engine.submit = partial(_counting_pins, engine, submit, found)
        passes = PassManager(parse_pipeline(f"kv-liveness{{wave_cost={cost}}}"))
        _run(engine, passes.run(parse_verified(text)).module)
        assert engine.pinned == ()
    assert pinned == {"1": [1, 0, 0, 0], "0": [1, 1, 1, 1]}


@given(program=programs() | flow_programs())
def test_programs_give_the_same_and_leave_nothing_expected(program: Program):
    module = _planned(program.module)
    engine = Notes()
    plan = lower(module, Target.parse("toy"))
    executor = Executor(engine, plan, program.hosts, constraints=program.constraints)
    expected = interpret(
        program.module, program.inputs, ToyEngine(), hosts=program.hosts, constraints=program.constraints
    )
    found = asyncio.run(executor.run(program.inputs))
    assert (found.value, found.variables, found.text) == (expected.value, expected.variables, expected.text)
    assert engine.open == {}


def test_engines_that_plan_nothing_are_told_nothing():
    kept = KeptContexts(ToyEngine(), lambda stage: Place(0, stage))
    assert kept.engine is None
    kept.withdraw_all()

"""The requests of rows that are found without a model: what a run measures lies in their ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.cost.estimate import longest_chain
from lmc.cost.ranges import CostRange
from lmc.cost.requests import RowRequests
from lmc.cost.sending import PROVIDER_TOKENS
from lmc.cost.texts import counting
from lmc.cost.walk import WalkFacts, walk_row
from lmc.ir.builder import Builder
from lmc.ir.core import Constraint, Value
from lmc.ir.dialects.core_ops import ContextOp, ExtendOp, GenOp, HostCallOp, PyCallOp, ReturnOp, SelectOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, YieldOp
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.protocol import (
    DoneHandle,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    OnDelta,
    Request,
    Score,
    ScoreRequest,
)
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.ids import matching
from lmc.ir.module import Function, Module
from lmc.ir.profile import OpProfile, Profile, Recording, length_bins
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.semantics.requirements import written_tokens
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.types import ANY, BOOL, CTX, INT, TEXT
from lmc.ir.usage import Usage
from tests.flow_strategies import FlowAuthor, flow_programs
from tests.program_strategies import Program, programs
from tests.recording_toy import RecordingToy

_INFO = EngineInfo("toy", 1 << 20)


def _walked(
    module: Module, inputs: Mapping[str, Any], constraints: Constraints, profile: Profile | None
) -> RowRequests:
    facts = WalkFacts(counting(toy_tokenizer()), _INFO, constraints, profile=profile)
    return walk_row(module, inputs, facts)


def _expect_inside(walked: RowRequests, profile: Profile) -> None:
    zero = CostRange[float].exactly(0.0)
    found: dict[str, list[CostRange[float]]] = {}
    for request in walked.requests:
        sums = found.setdefault(request.op.id, [zero, zero, zero])
        runs = request.runs
        for place, each in enumerate((runs, runs * _floats(request.tokens), runs * _floats(request.output))):
            sums[place] += each
    measured = dict(profile.ops)
    for template, (calls, prompts, outputs) in found.items():
        ids = [op_id for op_id in measured if matching(template).fullmatch(op_id)]
        usage = sum((measured.pop(op_id).usage for op_id in ids), Usage())
        assert usage.calls in calls, (template, usage, calls)
        assert usage.prompt_tokens in prompts, (template, usage, prompts)
        assert usage.generated_tokens in outputs, (template, usage, outputs)
    assert not measured, "an op made requests that were not foreseen"


def _floats(figure: CostRange[int]) -> CostRange[float]:
    return figure.map(float)


def _check(program: Program) -> None:
    outcome = interpret(
        program.module, program.inputs, ToyEngine(), hosts=program.hosts, constraints=program.constraints
    )
    for profile in (None, outcome.profile):
        walked = _walked(program.module, program.inputs, program.constraints, profile)
        assert walked.error is None
        if outcome.broken_at is None or not walked.breaks:
            assert outcome.broken_at is None
        _expect_inside(walked, outcome.profile)


@settings(max_examples=30)
@given(programs())
def test_with_recorded_answers_what_no_host_decides_is_exact(program: Program) -> None:
    engine = RecordingToy()
    outcome = interpret(program.module, program.inputs, engine, hosts=program.hosts, constraints=program.constraints)
    facts = WalkFacts(counting(toy_tokenizer()), _INFO, program.constraints, recorded=engine.answer)
    walked = walk_row(program.module, program.inputs, facts)
    assert walked.error is None
    _expect_inside(walked, outcome.profile)
    if not any(isinstance(op, HostCallOp) for op in program.module.main.body.ops):
        assert all(request.tokens.is_exact and request.output.is_exact for request in walked.requests)


_ESSAY = Value("essay", TEXT)


def _chain() -> Module:
    """A generation after the essay, then a second one after more text."""
    build = Builder((_ESSAY,))
    (empty,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, role="user", text=("Essay: ", _ESSAY))
    first, answer = build.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=40)
    (more,) = build.emit(ExtendOp, [CTX], context=first, role="user", text=("Why?",))
    last, _ = build.emit(GenOp, [CTX, TEXT], context=more, id="second", max_tokens=8)
    (other,) = build.emit(ExtendOp, [CTX], context=empty, role="user", text=("Judge: ", answer))
    build.emit(GenOp, [CTX, TEXT], context=other, id="third", max_tokens=8)
    build.emit(ReturnOp, context=last)
    return Module("chain", (Function("chain", build.block()),))


def test_the_first_prompt_is_exact_and_later_ones_have_the_output_as_their_range() -> None:
    first, second, third = _walked(_chain(), {"essay": "a b c"}, Constraints(), None).requests
    assert first.tokens.is_exact
    assert first.output == CostRange(1, 40, 40)
    assert second.tokens.most is not None
    assert second.tokens.most - second.tokens.least == 40
    assert second.prompt[: len(first.prompt)] == first.prompt
    assert third.tokens.most is not None
    assert third.tokens.least < first.tokens.least + 1 < third.tokens.expected <= third.tokens.most


def test_targets_that_hide_their_tokens_have_at_most_one_for_each_byte() -> None:
    hidden = Capabilities(contexts="messages", scores=False, reasoning_tokens=100)
    facts = WalkFacts(counting(message_tokenizer()), EngineInfo("openai:m", 1 << 20, capabilities=hidden))
    first, *_ = walk_row(_chain(), {"essay": "é" * 1000}, facts).requests
    assert first.tokens.most is not None
    assert 2000 < first.tokens.most - PROVIDER_TOKENS < 2100
    assert first.tokens.least < 500 <= first.tokens.expected <= 2000
    assert first.output == CostRange(0, 90, 140)


def _loop(limit: int | None) -> Module:
    """Ask for another round until a host function says that it is enough."""
    build = Builder(())
    (start,) = build.emit(ContextOp, [CTX])
    (start,) = build.emit(ExtendOp, [CTX], context=start, text=("a b",))
    taken = Value("taken", CTX)
    test = build.nested((taken,))
    (goes_on,) = test.emit(HostCallOp, [BOOL], host="more", id="more")
    test.emit(ConditionOp, flag=goes_on, values=(taken,))
    begun = Value("begun", CTX)
    body = build.nested((begun,))
    grown, _ = body.emit(GenOp, [CTX, TEXT], context=begun, id="turn", max_tokens=4)
    body.emit(YieldOp, values=(grown,))
    (end,) = build.emit(LoopOp, [CTX], initial=(start,), limit=limit, condition=test.block(), body=body.block())
    build.emit(ReturnOp, context=end)
    return Module("loop", (Function("loop", build.block()),))


def test_a_loop_without_a_limit_has_no_bound() -> None:
    walked = _walked(_loop(None), {}, Constraints(), None)
    calls = [request.runs for request in walked.requests]
    assert calls[0] == CostRange(0.0, 1.0, 1.0)
    assert calls[-1].most is None
    assert sum(runs.expected for runs in calls) == 1.0


def test_a_loop_with_a_limit_has_its_rounds() -> None:
    profile = Profile("loop", repeats={})
    walked = _walked(_loop(3), {}, Constraints(), profile)
    assert [request.runs.most for request in walked.requests] == [1.0, 1.0, 1.0]
    lengths = [request.tokens.most for request in walked.requests]
    assert lengths == [3, 7, 11]


def test_loops_in_loops_without_a_bound_are_walked_in_a_short_time() -> None:
    def within(outer: Builder, start: Value, depth: int) -> Value:
        taken, begun = Value(f"taken{depth}", CTX), Value(f"begun{depth}", CTX)
        test, body = outer.nested((taken,)), outer.nested((begun,))
        (goes_on,) = test.emit(HostCallOp, [BOOL], host="more", id=f"more{depth}")
        test.emit(ConditionOp, flag=goes_on, values=(taken,))
        grown, _ = body.emit(GenOp, [CTX, TEXT], context=begun, id=f"turn{depth}", max_tokens=4)
        body.emit(YieldOp, values=(within(body, grown, depth - 1) if depth else grown,))
        (end,) = outer.emit(LoopOp, [CTX], initial=(start,), condition=test.block(), body=body.block())
        return end

    build = Builder(())
    (start,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=start, text=("a b",))
    build.emit(ReturnOp, context=within(build, asked, 3))
    requests = _walked(Module("deep", (Function("deep", build.block()),)), {}, Constraints(), None).requests
    assert len(requests) < 5000
    assert {each.op.id for each in requests if each.runs.most is None} == {f"turn{depth}" for depth in range(4)}


def test_each_round_is_in_the_longest_chain() -> None:
    assert longest_chain(_walked(_chain(), {"essay": "a"}, Constraints(), None)) == CostRange(2.0, 2.0, 2.0)
    assert longest_chain(_walked(_loop(3), {}, Constraints(), None)) == CostRange(0.0, 1.0, 3.0)
    assert longest_chain(_walked(_loop(None), {}, Constraints(), None)).most is None


def _loop_module(limit: int | None) -> Module:
    """A loop of calls that a host function ends, and a call behind it."""
    build = Builder(())
    (start,) = build.emit(ContextOp, [CTX])
    taken, begun = Value("taken", CTX), Value("begun", CTX)
    test = build.nested((taken,))
    (goes_on,) = test.emit(HostCallOp, [BOOL], host="more", id="more")
    test.emit(ConditionOp, flag=goes_on, values=(taken,))
    body = build.nested((begun,))
    grown, _ = body.emit(GenOp, [CTX, TEXT], context=begun, id="turn", max_tokens=10)
    body.emit(YieldOp, values=(grown,))
    (end,) = build.emit(
        LoopOp,
        [CTX],
        initial=(start,),
        id="loop",
        limit=limit,
        expected_rounds=2.0,
        condition=test.block(),
        body=body.block(),
    )
    build.emit(GenOp, [CTX, TEXT], context=end, id="last", max_tokens=4)
    build.emit(ReturnOp, context=end)
    return Module("loop", (Function("loop", build.block()),))


@settings(max_examples=60)
@given(st.lists(st.one_of(st.integers(0, 8), st.integers(0, 500)), min_size=1, max_size=12))
def test_the_rounds_of_a_loop_are_those_of_the_profile(rounds: list[int]) -> None:
    """A few runs with many rounds have their share, however many rounds are walked one by one."""
    recording = Recording()
    for count in rounds:
        recording.repeat("loop")
        for number in range(1, count + 1):
            recording.round("loop", number)
    requests = _walked(_loop_module(None), {}, Constraints(), recording.profile("loop")).requests
    expected = sum(each.runs.expected for each in requests if each.op.id == "turn")
    assert expected == pytest.approx(sum(rounds) / len(rounds), rel=0.01, abs=0.01)


def test_prompts_behind_a_loop_are_expected_by_how_often_it_leaves() -> None:
    """A loop of two rounds by the profile leaves behind the second one, however many may follow."""
    last = _walked(_loop_module(40), {}, Constraints(), None).requests[-1]
    assert last.tokens.expected == 1 + 20
    assert last.tokens.most is not None
    assert last.tokens.most >= 400


def test_prompts_that_hold_texts_of_a_host_are_expected_by_the_profile() -> None:
    build = Builder(())
    (empty,) = build.emit(ContextOp, [CTX])
    (text,) = build.emit(HostCallOp, [TEXT], host="read", id="read")
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, role="user", text=("Read: ", text))
    build.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=10)
    build.emit(ReturnOp, context=asked)
    module = Module("host", (Function("host", build.block()),))
    lengths = OpProfile(Usage(1000, 0, 5, 2), longest=3, lengths=length_bins([2, 3]))
    (request,) = _walked(module, {}, Constraints(), Profile("host", {"first": lengths})).requests
    assert request.tokens.expected == 500
    assert request.mean_output.expected == 2.5
    assert request.output.expected == 2


def test_prompts_without_a_tokenizer_have_the_tokens_for_each_byte_of_the_profile() -> None:
    """A profile of a target whose tokenizer is known says nothing of them, and neither does its part of a sum."""
    build = Builder((Value("text", TEXT),))
    (empty,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, role="user", text=(build.parameters[0],))
    build.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=10)
    build.emit(ReturnOp, context=asked)
    module = Module("long", (Function("long", build.block()),))
    info = EngineInfo("openai:m", 1 << 20, capabilities=Capabilities(contexts="messages", structured="schema"))
    local = OpProfile(Usage(5000, 0, 0, 5))
    hosted = OpProfile(Usage(700, 0, 0, 2), sent_bytes=1400, sent_tokens=700)

    def expected(found: OpProfile | None) -> int:
        profile = None if found is None else Profile("long", {"first": found})
        facts = WalkFacts(counting(message_tokenizer()), info, profile=profile)
        (request,) = walk_row(module, {"text": "word " * 400}, facts).requests
        return request.tokens.expected

    assert expected(local) == expected(None)
    assert 1000 <= expected(hosted) == expected(local + hosted) <= 1010


@dataclass
class _HiddenTokens:
    """Messages to a model that has a token for each ``rate`` bytes, reasons, and has these answers, one after another.

    Each answer has so many tokens without its reasoning.
    """

    rate: int
    reasoning: int
    answers: Iterator[int]
    tokenizer: Tokenizer = field(default_factory=message_tokenizer)
    statistics: EngineStatistics = field(default_factory=EngineStatistics)
    info: EngineInfo = field(
        default_factory=lambda: EngineInfo(
            "openai:m", 1 << 20, capabilities=Capabilities(contexts="messages", scores=False, reasoning=True)
        )
    )

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        assert on_delta is None
        tokens = next(self.answers)
        text = "word"[: self.rate].ljust(self.rate, ".") * tokens
        return DoneHandle.of(
            Generation(
                self.tokenizer.encode(text),
                text,
                "eos",
                prompt_tokens=round(len(request.prompt) / self.rate),
                generated_tokens=tokens + self.reasoning,
                reasoning_tokens=self.reasoning,
            )
        )

    def score(self, request: ScoreRequest) -> Handle[Score]:
        raise NotImplementedError

    def close(self) -> None:
        pass


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["other", "same", "either"]), st.integers(0, 60), st.integers(100, 800)),
        min_size=1,
        max_size=6,
    ),
    st.integers(2, 8),
    st.sampled_from([0, 40]),
)
def test_a_profile_of_a_row_tells_the_prompts_of_that_row_without_a_tokenizer(
    steps: list[tuple[str, int, int]], rate: int, reasoning: int
) -> None:
    """Each step sends a text and an earlier answer, in the same conversation, in another one, or in either of them."""
    build = Builder((Value("text", TEXT),))
    (empty,) = build.emit(ContextOp, [CTX])
    context, answer = empty, build.parameters[0]
    for number, (place, _, length) in enumerate(steps):
        text = ("t" * length, answer)
        before = empty if place == "other" else context
        if place == "either":
            (flag,) = build.emit(PyCallOp, [BOOL], function="eq", arguments=(answer, "never"))
            other, one = build.nested(()), build.nested(())
            (told,) = one.emit(ExtendOp, [CTX], context=before, role="user", text=("o" * length,))
            one.emit(YieldOp, values=(told,))
            other.emit(YieldOp, values=(before,))
            (before,) = build.emit(
                CondOp, [CTX], id=f"either{number}", flag=flag, then=other.block(), otherwise=one.block()
            )
        (asked,) = build.emit(ExtendOp, [CTX], context=before, role="user", text=text)
        context, answer = build.emit(GenOp, [CTX, TEXT], context=asked, id=f"step{number}", max_tokens=100)
    build.emit(ReturnOp, context=context)
    module = Module("steps", (Function("steps", build.block()),))
    engine = _HiddenTokens(rate, reasoning, iter([tokens for _, tokens, _ in steps]))
    profile = interpret(module, {"text": "a" * 200}, engine).profile
    facts = WalkFacts(counting(engine.tokenizer), engine.info, profile=profile)
    for request in walk_row(module, {"text": "a" * 200}, facts).requests:
        measured = profile.ops[request.op_id].usage
        assert request.output.expected == measured.generated_tokens
        assert request.tokens.expected == pytest.approx(measured.prompt_tokens, rel=0.03, abs=2)


@pytest.mark.parametrize("structured", ["schema", "exact"])
@pytest.mark.parametrize("kind", ["definition", "choices"])
def test_constraints_that_are_not_known_are_no_errors(kind: str, structured: Literal["schema", "exact"]) -> None:
    """A schema is a part of the prompt, so nothing bounds a prompt with one that is not known."""
    build = Builder(())
    (empty,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, role="user", text=("a",))
    context, answer = build.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=10)
    if kind == "definition":
        fields: dict[str, Any] = {"definition": (answer,), "definition_kind": "regex", "max_tokens": 10}
        build.emit(GenOp, [CTX, TEXT], context=context, id="second", **fields)
    else:
        build.emit(SelectOp, [CTX, TEXT, ANY], context=context, id="second", choices=(answer, "no"))
    build.emit(ReturnOp, context=context)
    module = Module("unknown", (Function("unknown", build.block()),))

    def lengths(symbol: Constraint) -> tuple[int | None, int | None]:
        assert symbol.text.encode()
        return 1, 5

    info = EngineInfo("m", 1 << 20, capabilities=Capabilities("messages", scores=False, structured=structured))
    walked = walk_row(module, {}, WalkFacts(counting(message_tokenizer()), info, lengths=lengths))
    assert walked.error is None
    first, second = walked.requests
    assert first.tokens.most is not None
    assert (second.tokens.most is None) == (structured == "schema")


@given(st.integers(1, 20), st.text(max_size=30), st.sampled_from(["call", "host", "list"]), st.booleans(), st.data())
def test_a_written_choice_is_no_longer_than_the_longest_that_may_be_asked_for(
    max_tokens: int, constant: str, made_by: str, is_nested: bool, data: st.DataObject
) -> None:
    """One of the choices is an answer, the text of a host, or one of a list that a host makes."""
    build = Builder(())
    (empty,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, role="user", text=("a",))
    context, choice = build.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=max_tokens)
    if made_by != "call":
        kind = TEXT if made_by == "host" else ANY
        (choice,) = build.emit(HostCallOp, [kind], host="host", id="host", arguments=(choice,))
    if is_nested and made_by != "list":
        (choice,) = build.emit(PyCallOp, [TEXT], function="add", arguments=(choice, constant))
    build.emit(SelectOp, [CTX, TEXT, ANY], context=context, id="second", choices=(choice, constant or "no"))
    build.emit(ReturnOp, context=context)
    info = EngineInfo("m", 1 << 20, capabilities=Capabilities("messages", scores=False))
    tokenizer = message_tokenizer()
    walked = walk_row(
        Module("unknown", (Function("unknown", build.block()),)), {}, WalkFacts(counting(tokenizer), info)
    )
    assert walked.error is None
    most = walked.requests[1].output.most
    if made_by != "call":
        assert most is None, "nothing bounds what a host returns"
        return
    bound = max_tokens * counting(tokenizer).token_bytes
    answer = data.draw(st.text(max_size=bound).filter(lambda text: len(text.encode()) <= bound))
    assert most is not None
    assert written_tokens([answer + constant * is_nested, constant or "no"]) <= most
    longest = written_tokens(["x" * bound + constant * is_nested, constant or "no"])
    assert most == longest, "no more than what can be sent"


@given(st.lists(st.integers(1, 600), min_size=2, max_size=4), st.integers(0, 500), st.integers(0, 100))
def test_prompts_with_an_answer_are_no_longer_where_it_is_cut_earlier(
    bounds: list[int], mean: int, reasoning: int
) -> None:
    """With the profile of a run with another ``max_tokens``."""
    capabilities = Capabilities("messages", scores=False, reasoning=True)
    usage = Usage(20, 0, mean, 1, reasoning_tokens=min(reasoning, mean))
    measured = OpProfile(usage, longest=mean, lengths=length_bins([mean]), sent_bytes=60, sent_tokens=20)
    facts = WalkFacts(
        counting(message_tokenizer()),
        EngineInfo("m", 1 << 20, capabilities=capabilities),
        profile=Profile("m", {"first": measured}),
    )
    expected: list[int] = []
    for bound in sorted(bounds):
        builder = Builder(())
        (empty,) = builder.emit(ContextOp, [CTX])
        (asked,) = builder.emit(ExtendOp, [CTX], context=empty, role="user", text=("hello",))
        answered, _ = builder.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=bound)
        (again,) = builder.emit(ExtendOp, [CTX], context=answered, role="user", text=("more",))
        last, _ = builder.emit(GenOp, [CTX, TEXT], context=again, id="second", max_tokens=5)
        builder.emit(ReturnOp, context=last)
        first, second = walk_row(Module("m", (Function("m", builder.block()),)), {}, facts).requests
        expected.append(second.tokens.expected)
        if mean >= bound and not reasoning:
            assert first.output.expected == bound
    kept = [max(min(mean, bound) - usage.reasoning_tokens, 0) for bound in sorted(bounds)]
    for (fewer, less), (more, most) in pairwise(zip(kept, expected, strict=True)):
        assert less + (more - fewer) // 2 <= most + 1


def test_runs_of_a_call_whose_number_is_not_known_are_none_of_another_call() -> None:
    """A use of a name before a loop has an id that fits those in the loop, too."""
    build = Builder(())
    (empty,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, text=("a",))
    (number,) = build.emit(HostCallOp, [INT], host="number", id="number")
    build.emit(GenOp, [CTX, TEXT], context=asked, id="turn", max_tokens=100)
    build.emit(GenOp, [CTX, TEXT], context=asked, id="turn*", occurrences=(number,), max_tokens=100)
    build.emit(ReturnOp, context=asked)
    module = Module("turns", (Function("turns", build.block()),))
    runs = {
        op_id: OpProfile(Usage(1, 0, length, 1), longest=length, lengths=length_bins([length]))
        for op_id, length in (("turn", 50), ("turn#1", 5), ("turn#2", 3))
    }
    requests = _walked(module, {}, Constraints(), Profile("turns", runs)).requests
    assert [request.output.expected for request in requests] == [50, 4]


@settings(max_examples=60)
@given(programs())
def test_what_a_run_measures_lies_inside(program: Program) -> None:
    _check(program)


@settings(max_examples=60)
@given(flow_programs())
def test_what_a_run_with_control_flow_measures_lies_inside(program: Program) -> None:
    _check(program)


@dataclass
class _WaryAuthor(FlowAuthor):
    """Writes ways, too, that no run takes. On these anything may raise."""

    @property
    def steps(self) -> list[Callable[[], None]]:
        return [*super().steps, *([self.never] * 4 if self.depth else [])]

    def never(self) -> None:
        """A condition that is false in each run, and not known before."""
        self.ids += 1
        fields: dict[str, Any] = {"id": f"main/@{self.ids}", "declared": "reads", "host": "look"}
        (text,) = self.emit(HostCallOp, TEXT, arguments=(self.value(TEXT), 1), keywords=("times",), **fields)
        (flag,) = self.emit(PyCallOp, BOOL, function="eq", arguments=(text, "never"))
        self.guards += 1
        with self.inside(()):
            for _ in range(self.draw(st.integers(1, 3))):
                self.draw(st.sampled_from(self.raising))()
                self.some()
            self.builder.emit(YieldOp)
            then = self.builder.block()
        self.guards -= 1
        with self.inside(()):
            self.builder.emit(YieldOp)
            otherwise = self.builder.block()
        self.emit(CondOp, id=self.region_id(), flag=flag, then=then, otherwise=otherwise)


@st.composite
def _wary_programs(draw: st.DrawFn) -> Program:
    author = _WaryAuthor(draw, depth=2, may_leave=True)
    for _ in range(draw(st.integers(1, 8))):
        draw(st.sampled_from(author.steps))()
    return author.program()


@settings(max_examples=100)
@given(_wary_programs())
def test_ways_on_which_a_program_fails_end_alone(program: Program) -> None:
    _check(program)


class _DefectError(Exception):
    """Raised by lmc itself, not by a program."""


@settings(max_examples=100)
@given(_wary_programs(), st.integers(0, 30))
def test_a_defect_is_not_taken_for_an_error_of_the_program(program: Program, place: int) -> None:
    calls = 0

    def recorded(_op_id: str, _number: int) -> None:
        nonlocal calls
        calls += 1
        if calls > place:
            raise _DefectError

    facts = WalkFacts(counting(toy_tokenizer()), _INFO, program.constraints, recorded=recorded)
    try:
        walk_row(program.module, program.inputs, facts)
    except _DefectError:
        return
    assert calls <= place

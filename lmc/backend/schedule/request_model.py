"""The requests that an instance of a plan makes, from the facts known before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmc.backend.plan import Plan
from lmc.cache.trace import likely_length
from lmc.ir.analysis.ordering import uses
from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import BeginOp, ContextOp, ExtendOp, SampleOp, SamplingOp, SelectOp
from lmc.ir.dialects.region_ops import CondOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.types import CTX

_UNKNOWN = 16
"""Tokens of an unknown text, of a tool for one."""


@dataclass(frozen=True, slots=True)
class Known:
    """The value of a batch's inputs with a number (``KnownText``)."""

    number: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a stage, as text."""

    stage: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """A text that is not known before the run, of so many tokens."""

    tokens: int


Piece = str | Known | Answer | Unknown


@dataclass(frozen=True, slots=True)
class RequestModel:
    """One request: the prompt of stage ``base`` (with its answer where ``answered``; None: nothing), then ``pieces``.

    ``after`` are the stages that it waits for, ``output`` the tokens that it generates, as expected: a choice is scored
    and generates none.
    """

    id: str
    base: int | None
    answered: bool
    pieces: tuple[Piece, ...]
    after: tuple[int, ...]
    output: int

    @property
    def answer(self) -> int:
        """Tokens of its answer in the prompts that hold it; the text of a choice counts as one."""
        return max(self.output, 1)


@dataclass(frozen=True, slots=True)
class _Context:
    """A context: what it goes on from, and its own pieces, newest first."""

    base: int | None = None
    answered: bool = False
    piece: tuple[Piece, ...] = ()
    before: _Context | None = None


def stages_of(plan: Plan, numbers: Mapping[Value, int], *, longest: bool = False) -> tuple[RequestModel, ...]:
    """The requests of one instance in program order. ``numbers`` are those of the values that inputs say.

    Regions count as if each ran once, of a conditional the likelier arm (the first by default). Prefills are no
    requests here: they compute what these would. With ``longest``, unmeasured answers are as long as they
    may be.
    """
    walk = _Walk(numbers, longest)
    walk.block(plan.module.main.body)
    return tuple(walk.stages)


def ops_of_stages(plan: Plan) -> tuple[Op, ...]:
    """The op of the plan that makes each of the requests that ``stages_of`` returns."""
    walk = _Walk({}, longest=False)
    walk.block(plan.module.main.body)
    return tuple(walk.ops)


def known_beginnings(stages: Sequence[RequestModel]) -> list[tuple[int, ...]]:
    """For each stage the numbers of the values that its prompt begins with, beside literals: what is known of it."""
    found: list[tuple[int, ...]] = []
    whole: list[bool] = []
    for stage in stages:
        numbers = [] if stage.base is None else list(found[stage.base])
        is_known = stage.base is None or (whole[stage.base] and not stage.answered)
        for piece in stage.pieces if is_known else ():
            if isinstance(piece, Known):
                numbers.append(piece.number)
            elif not isinstance(piece, str):
                is_known = False
                break
        found.append(tuple(numbers))
        whole.append(is_known)
    return found


class _Walk:
    """Goes through blocks in program order. Recursion is as deep as regions are nested."""

    def __init__(self, numbers: Mapping[Value, int], longest: bool) -> None:
        self.stages: list[RequestModel] = []
        self.ops: list[Op] = []
        self._numbers = numbers
        self._longest = longest
        self._contexts: dict[Value, _Context] = {}
        self._answers: dict[Value, int] = {}
        self._waits: dict[Value, frozenset[int]] = {}

    def block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, RegionOp):
                self._region(op)
            else:
                self._op(op)

    def _region(self, op: RegionOp) -> None:
        regions: Iterable[Block] = op.regions
        if isinstance(op, CondOp):
            regions = op.regions[:1] if op.probability is None or op.probability >= 0.5 else op.regions[1:]
        flows = tuple(op.flows())
        for region in regions:
            inside = set(region.parameters)
            for source, place in flows:
                if place in inside:
                    self._same(source, place)
            self.block(region)
        for source, place in flows:
            if place in op.results:
                self._same(source, place)
        for value in op.results:
            if value.type == CTX:
                self._contexts.setdefault(value, _Context(piece=(Unknown(_UNKNOWN),)))

    def _same(self, source: Value, place: Value) -> None:
        if source in self._contexts:
            self._contexts[place] = self._contexts[source]
        if source in self._answers:
            self._answers[place] = self._answers[source]
        self._waits[place] = self._waits.get(place, frozenset()) | self._waits.get(source, frozenset())

    def _op(self, op: Op) -> None:
        waits = frozenset[int]().union(*(self._waits.get(value, frozenset()) for value in uses(op)))
        before = next((self._contexts.get(value) for value in op.operands if value.type == CTX), None)
        if op.billable and isinstance(op, SamplingOp | SelectOp):
            self._request(op, before or _Context(), waits)
            return
        for value in op.results:
            self._waits[value] = waits
            if value.type == CTX:
                self._contexts[value] = self._extended(op, before or _Context())

    def _request(self, op: SamplingOp | SelectOp, context: _Context, waits: frozenset[int]) -> None:
        stage = len(self.stages)
        pieces: list[Piece] = []
        step: _Context | None = context
        base = context
        while step is not None:
            pieces.extend(reversed(step.piece))
            base, step = step, step.before
        draws = op.n if isinstance(op, SampleOp) else 1
        output = _output(op, self._longest)
        self.ops += [op] * draws
        for _ in range(draws):
            self.stages.append(
                RequestModel(op.id, base.base, base.answered, tuple(reversed(pieces)), tuple(sorted(waits)), output)
            )
        for value in op.results:
            self._waits[value] = frozenset({stage})
            self._answers[value] = stage
            if value.type == CTX:
                self._contexts[value] = _Context(stage, answered=True)

    def _extended(self, op: Op, before: _Context) -> _Context:
        if isinstance(op, ContextOp):
            return _Context()
        if isinstance(op, BeginOp):
            return _Context(piece=(f"<{op.role}>",), before=before)
        if isinstance(op, ExtendOp | SectionsOp):
            texts = [] if op.role is None else [f"<{op.role}>"]
            return _Context(piece=(*texts, *map(self._piece, op.text)), before=before)
        return before

    def _piece(self, part: str | Value) -> Piece:
        if isinstance(part, str):
            return part
        if part in self._numbers:
            return Known(self._numbers[part])
        return Answer(self._answers[part]) if part in self._answers else Unknown(_UNKNOWN)


def _output(op: SamplingOp | SelectOp, longest: bool) -> int:
    if isinstance(op, SelectOp):
        return 0
    if op.expected_tokens is not None:
        return max(op.expected_tokens, 1)
    return op.max_tokens if longest else max(likely_length(op.max_tokens), op.min_tokens)

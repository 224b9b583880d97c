"""Known prefixes of prompts before any answer: literals, inputs, and text computed from those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from lmc.ir.builtins.statements import RAISING
from lmc.ir.core import Attribute, Block, Effect, Op, Value
from lmc.ir.dialects.core_ops import (
    AssumeOp,
    BeginOp,
    EndOp,
    ExtendOp,
    FreeOp,
    KeepOp,
    PrefillOp,
    PyCallOp,
    SamplingOp,
    SelectOp,
)
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, RaceOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.context import Context
from lmc.runtime.prepared_body import PreparedBody

Rounds = tuple[int, ...]
"""The numbers of the rounds and elements around an op, as in ``Frame.rounds``; of loops the first round."""
RegionKey = tuple[Block, Rounds]
"""A region, and the rounds around the op that holds it."""
Environment = Mapping[Value, Any]
_Given = tuple[Value, Attribute | Value]
_APPENDING = (ExtendOp, SectionsOp, BeginOp, EndOp, PrefillOp)


@dataclass(frozen=True, slots=True)
class KnownPrefix:
    """A known prefix of a prompt: ``context``, then ``text``, in a turn of ``role``."""

    context: Value
    role: str | None = None
    text: tuple[str | Value, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that it is made of."""
        return (self.context, *(part for part in self.text if isinstance(part, Value)))

    def read(self, environment: Environment) -> Context:
        """Raises what the template raises, and ``KeyError`` where a value is not known after all."""
        context: Context = environment[self.context]
        if self.role is not None:
            context = context.begin(self.role)
        return context.text(semantics.join_text(self.text, environment))


@dataclass(frozen=True, slots=True, eq=False)
class CallToCome:
    """A call that may wait for an answer.

    ``index`` is that of the instruction of the program's own body that is the call, or holds it. One that ``stays`` is
    in a loop, and begins in the same way in every round.
    """

    op: Op
    index: int
    stage: int
    beginning: KnownPrefix
    stays: bool


@dataclass(frozen=True, slots=True, eq=False)
class RegionEntry:
    """The region ``number`` of ``op``: what its parameters are given, or which are those of each element."""

    op: RegionOp
    index: int
    number: int
    given: tuple[_Given, ...]
    each: tuple[Value, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """An op that is computed ahead of its turn."""

    op: Op
    index: int


Step = CallToCome | RegionEntry | Evaluate


def steps_to_come(body: PreparedBody) -> tuple[Step, ...]:
    """The calls of a program that may have to wait for an answer, and the computations of their known prefixes.

    Left out are calls that begin with an instance, and those that go on from an answer (``lm.keep`` tells of them). Of
    a condition with a known probability only the likelier arm counts, of loops the first round. Time is linear in the
    program.
    """
    steps = _Finder(set(body.parameters)).visit(body, None)
    return _pruned(steps, _needed(steps))


class _Finder:
    """Walks over bodies. ``known`` are the values that are there before anything is answered."""

    def __init__(self, known: set[Value]) -> None:
        self._known = known
        self._varying: set[Value] = set()  # from round to round
        self._beginnings: dict[Value, KnownPrefix] = {}  # of contexts that are not known
        self._loops = 0

    def visit(self, body: PreparedBody, holder: int | None) -> list[Step]:
        """The steps of a body. ``holder``: the instruction of the program's own body that holds it, None for that."""
        steps: list[Step] = []
        waiting = _waiting(body) if holder is None else range(len(body.ops))
        for place, op in enumerate(body.ops):
            index = place if holder is None else holder
            if isinstance(op, RegionOp):
                steps += self._regions(op, body.bodies[place], index)
            elif _is_pure(op) and self._known.issuperset(op.operands):
                self._known.update(op.results)
                if not self._varying.isdisjoint(op.operands):
                    self._varying.update(op.results)
                steps.append(Evaluate(op, index))
            elif isinstance(op, _APPENDING):
                beginning = self._beginning(op.context)
                if beginning is not None:
                    self._beginnings[op.results[0]] = self._extended(beginning, op)
            elif isinstance(op, SamplingOp | SelectOp) and place in waiting:
                beginning = self._beginning(op.context)
                if beginning is not None:
                    stays = bool(self._loops) and self._varying.isdisjoint(beginning.values)
                    steps.append(CallToCome(op, index, body.stages[place], beginning, stays))
        return steps

    def _beginning(self, context: Value) -> KnownPrefix | None:
        return KnownPrefix(context) if context in self._known else self._beginnings.get(context)

    def _extended(self, beginning: KnownPrefix, op: ExtendOp | SectionsOp | BeginOp | EndOp | PrefillOp) -> KnownPrefix:
        """Return what a context begins with after an op: the first text that is not all known ends it."""
        if op.context not in self._known or not isinstance(op, ExtendOp | SectionsOp):
            return beginning
        unknown = (place for place, part in enumerate(op.text) if isinstance(part, Value) and part not in self._known)
        return KnownPrefix(op.context, op.role, op.text[: next(unknown, len(op.text))])

    def _regions(self, op: RegionOp, bodies: Sequence[PreparedBody], index: int) -> Iterator[RegionEntry]:
        is_loop = isinstance(op, LoopOp)
        self._loops += is_loop
        flows = self._loop_flows(op, bodies) if isinstance(op, LoopOp) else [()] * len(bodies)
        has_elements = isinstance(op, MapOp | RaceOp) and self._known.issuperset(op.lists)
        for number, (body, given) in enumerate(zip(bodies, flows, strict=True)):
            if isinstance(op, CondOp) and op.probability is not None and (op.probability >= 0.5) is (number == 1):
                continue
            each = body.parameters if has_elements else ()
            self._known.update(each, (place for place, _ in given))
            if is_loop:
                self._varying.update(body.parameters)
            steps = tuple(self.visit(body, index))
            if any(not isinstance(step, Evaluate) for step in steps):
                yield RegionEntry(op, index, number, given, each, steps)
        self._loops -= is_loop

    def _loop_flows(self, op: LoopOp, bodies: Sequence[PreparedBody]) -> list[tuple[_Given, ...]]:
        """Return what is known of the parameters of condition and body in the first round, from outside the loop."""
        condition, body = bodies
        first = self._known_flows(zip(condition.parameters, op.initial, strict=True))
        aliases = dict(first)
        inside = {*condition.parameters, *(value for each in condition.ops for value in each.results)}
        end = condition.terminator
        passed: list[_Given] = []
        for place, source in zip(body.parameters, end.values if isinstance(end, ConditionOp) else (), strict=False):
            outer = aliases.get(source, source) if isinstance(source, Value) else source
            if not (isinstance(outer, Value) and outer in inside):
                passed.append((place, outer))
        return [first, self._known_flows(passed)]

    def _known_flows(self, flows: Iterable[_Given]) -> tuple[_Given, ...]:
        return tuple(
            (place, source) for place, source in flows if not isinstance(source, Value) or source in self._known
        )


def _is_pure(op: Op) -> bool:
    """Return whether an op may be evaluated ahead of its turn."""
    if isinstance(op, AssumeOp | KeepOp | FreeOp) or op.effect is Effect.LOCAL:
        return False
    return semantics.is_local(op) and not (isinstance(op, PyCallOp) and op.function in RAISING)


def _waiting(body: PreparedBody) -> set[int]:
    """Instructions that wait for an answer; all others begin with the instance, or once a prefix is computed."""
    waiting: set[int] = set()
    for index, op in enumerate(body.ops):
        if index in waiting or not semantics.is_local(op):
            waiting.update(body.dependents[index])
    return waiting


def _needed(steps: Iterable[Step]) -> set[Value]:
    """The values that calls begin with, and what those are computed from."""
    sources: dict[Value, Sequence[Value]] = {}
    pending: list[Value] = []
    rest = list(steps)
    while rest:
        step = rest.pop()
        if isinstance(step, CallToCome):
            pending += step.beginning.values
        elif isinstance(step, Evaluate):
            sources.update((value, step.op.operands) for value in step.op.results)
        else:
            pending += step.op.operands
            sources.update((place, (source,)) for place, source in step.given if isinstance(source, Value))
            rest += step.steps
    needed: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in needed:
            needed.add(value)
            pending += sources.get(value, ())
    return needed


def _pruned(steps: Sequence[Step], needed: AbstractSet[Value]) -> tuple[Step, ...]:
    """``steps`` without those that no call needs."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, RegionEntry):
            kept.append(replace(step, steps=_pruned(step.steps, needed)))
        elif isinstance(step, CallToCome) or not needed.isdisjoint(step.op.results):
            kept.append(step)
    return tuple(kept)

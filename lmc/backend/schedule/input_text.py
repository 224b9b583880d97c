"""Text of a plan that depends on its inputs alone: the text before any answer orders the instances of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any

from lmc.backend.plan import Plan
from lmc.ir.builtins import builtins
from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import BeginOp, ConcatOp, ContextOp, EndOp, ExtendOp, PrefillOp, PyCallOp
from lmc.ir.dialects.region_ops import MapOp, RaceOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.semantics import ops as semantics
from lmc.ir.tokens.tokens import common_length

_ONLY_CONTEXT = (ContextOp, ExtendOp, SectionsOp, BeginOp, EndOp, PrefillOp)


@dataclass(frozen=True, slots=True)
class _Given:
    """The source of a region's parameter: ``source``, or its first element."""

    source: Value
    is_element: bool


@dataclass(frozen=True, slots=True)
class KnownText:
    """Literals, and values with what they are computed from, in the order in which contexts take them.

    The first `shareable` values, and all literals, come before any answer. The others come after one: they say how long
    prompts are, but no two instances share them.
    """

    parameters: tuple[tuple[str, Value], ...]
    pieces: tuple[str | Value, ...]
    computes: tuple[tuple[Value, Op | _Given], ...]
    shareable: int

    @classmethod
    def of(cls, plan: Plan) -> KnownText:
        """Return the text of a plan. Regions count as if each ran once, in the order of the text."""
        found = _Collector({parameter.value for parameter in plan.parameters})
        found.visit(plan.module.main.body)
        first = [piece for piece in found.pieces if isinstance(piece, Value)]
        shareable = {*first}
        later = [value for value in found.later if value not in shareable]
        needed = _needed({*first, *later}, found.producers)
        computes = tuple((value, source) for value, source in found.producers.items() if value in needed)
        parameters = tuple((entry.name, entry.value) for entry in plan.parameters)
        return cls(parameters, (*found.pieces, *later), computes, len(first))

    def read(self, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """One instance's values among the pieces, in order; up to the first that is no text or can't be computed."""
        environment: dict[Value, Any] = {value: inputs[name] for name, value in self.parameters if name in inputs}
        for value, source in self.computes:
            # What the user's expression raises, the instance's run reports. What needs its value fails here too.
            with suppress(Exception):
                environment[value] = _compute(source, environment)
        texts: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, str):
                continue
            text = environment.get(piece)
            if not isinstance(text, str):
                break
            texts.append(text)
        return tuple(texts)

    def reordered(self, places: Sequence[int]) -> KnownText:
        """The same with its values in another order, each with the literals before it; the rest stays last."""
        parts: list[list[str | Value]] = [[]]
        for piece in self.pieces:
            parts[-1].append(piece)
            if isinstance(piece, Value):
                parts.append([])
        return replace(self, pieces=tuple(chain(*(parts[place] for place in places), parts[-1])))

    def shared(self, left: Sequence[str], right: Sequence[str]) -> int:
        """Leading characters that two instances have in common."""
        values = iter(zip(left[: self.shareable], right[: self.shareable], strict=False))
        length = 0
        for piece in self.pieces:
            if isinstance(piece, str):
                length += len(piece)
                continue
            a, b = next(values, (None, None))
            if a is None or b is None:
                return length
            if a != b:
                return length + common_length(a, b)
            length += len(a)
        return length


@dataclass
class _Collector:
    """Walks over blocks. ``producers`` holds the source of each known value, in order of definition."""

    known: set[Value]
    pieces: list[str | Value] = field(default_factory=list[str | Value])
    later: dict[Value, None] = field(default_factory=dict[Value, None])
    producers: dict[Value, Op | _Given] = field(default_factory=dict[Value, Op | _Given])

    def visit(self, block: Block) -> None:
        """Recursion is as deep as regions are nested, which the verifier has bounded."""
        for op in block.ops:
            if isinstance(op, RegionOp):
                self._visit_regions(op)
                continue
            if isinstance(op, ExtendOp | SectionsOp):
                self._appended(op)
            if not all(value in self.known for value in op.operands):
                continue
            if isinstance(op, PyCallOp | ConcatOp):
                self.producers.update((value, op) for value in op.results)
            elif not isinstance(op, _ONLY_CONTEXT):
                continue
            self.known.update(op.results)

    def _appended(self, op: ExtendOp | SectionsOp) -> None:
        before: list[str | Value] = []
        if op.context in self.known:
            before = [*takewhile(lambda piece: isinstance(piece, str) or piece in self.known, op.text)]
        self.pieces += before
        self.later.update((piece, None) for piece in op.text[len(before) :] if piece in self.known)

    def _visit_regions(self, op: RegionOp) -> None:
        flows = {place: source for source, place in op.flows() if place not in op.results}
        for region in op.regions:
            for place in region.parameters:
                source = flows.get(place)
                if source in self.known:
                    self.producers[place] = _Given(source, isinstance(op, MapOp | RaceOp))
                    self.known.add(place)
            self.visit(region)


def _needed(values: set[Value], producers: Mapping[Value, Op | _Given]) -> set[Value]:
    """The values that ``values`` are computed from, themselves included."""
    needed: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        source = producers.get(value)
        if source is not None and value not in needed:
            needed.add(value)
            waiting.extend([source.source] if isinstance(source, _Given) else source.operands)
    return needed


def _compute(source: Op | _Given, environment: Mapping[Value, Any]) -> Any:
    if isinstance(source, _Given):
        given = environment[source.source]
        return given[0] if source.is_element else given
    if isinstance(source, ConcatOp):
        return semantics.join_text(source.text, environment)
    assert isinstance(source, PyCallOp)
    builtin = builtins.lookup(source.function)
    assert builtin is not None
    positional, keyword = semantics.call_arguments(source.arguments, source.keywords, environment)
    return builtin.run(*positional, **keyword)

"""The turn in which each context of a module ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.core_ops import BeginOp, ContextOp, EndOp, ExtendOp, GenOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.types import holds_context


class OpenTurn(NamedTuple):
    """The end of a context, where a generation begins. ``role`` is that of the open turn (None: none is open)."""

    is_chat: bool
    role: str | None = None
    is_filled: bool = False
    ends_blank: bool = False


Turns = Mapping[Value, frozenset[OpenTurn]]
_START = OpenTurn(is_chat=False)
_CLOSED = OpenTurn(is_chat=True)


def open_turns(block: Block) -> Turns:
    """Return the possible ends of each context of a function's body, and of each list of contexts.

    A text known at run time counts as not empty, and as one that does not end in white space.
    """
    found = _Turns()
    found.run(block)
    return found.ends


@dataclass
class _Turns:
    ends: dict[Value, frozenset[OpenTurn]] = field(default_factory=dict[Value, frozenset[OpenTurn]])

    def run(self, block: Block) -> None:
        """Apply all ops until nothing changes: a context has a dozen possible ends, so that is soon."""
        ops = [op for op in walk((block,)) if any(holds_context(value.type) for value in _touched(op))]
        changed = True
        while changed:
            changed = False
            for op in ops:
                for value, ends in self._results(op):
                    before = self.ends.get(value, frozenset())
                    if not ends <= before:
                        self.ends[value] = before | ends
                        changed = True

    def _results(self, op: Op) -> Iterable[tuple[Value, frozenset[OpenTurn]]]:
        if isinstance(op, RegionOp):
            flows = (*op.flows(), *op.carried())
            return [(place, self._of([source])) for source, place in flows if holds_context(source.type)]
        if isinstance(op, ContextOp):
            return [(op.results[0], frozenset({_START}))]
        before = self._of(value for value in op.operands if holds_context(value.type))
        made = frozenset(_after(op, turn) for turn in before)
        return [(value, made) for value in op.results if holds_context(value.type)]

    def _of(self, values: Iterable[Value]) -> frozenset[OpenTurn]:
        return frozenset().union(*(self.ends.get(value, frozenset()) for value in values))


def _touched(op: Op) -> Iterable[Value]:
    yield from op.operands
    yield from op.results
    if isinstance(op, RegionOp):
        yield from (place for _, place in (*op.flows(), *op.carried()))


def _after(op: Op, turn: OpenTurn) -> OpenTurn:
    if isinstance(op, ExtendOp | SectionsOp):
        last = op.text[-1] if op.text else ""
        ends_blank = isinstance(last, str) and last[-1:].isspace()
        return _CLOSED if op.role is not None else _filled(turn, ends_blank=ends_blank) if op.text else turn
    if isinstance(op, BeginOp):
        return OpenTurn(is_chat=True, role=op.role)
    if isinstance(op, EndOp):
        return _CLOSED if turn.is_chat else turn
    if isinstance(op, GenOp | SelectOp):
        return _filled(turn)
    return turn


def _filled(turn: OpenTurn, *, ends_blank: bool = False) -> OpenTurn:
    role = (turn.role or "assistant") if turn.is_chat else None
    return OpenTurn(turn.is_chat, role, is_filled=True, ends_blank=ends_blank)

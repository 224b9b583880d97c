"""The turn in which each context of a module ends, and the messages before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.core_ops import BeginOp, ContextOp, EndOp, ExtendOp, GenOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.errors import Location
from lmc.ir.types import holds_context

Oddity = Literal["empty", "late system", "system behind an answer", "tool"]
"""Messages that some providers refuse: one without text; one of the system that is not at the beginning, or not behind
the user either; one of a tool, which no call of the model asked for."""


class TurnState(NamedTuple):
    """The closed messages of a context: facts that providers have rules about.

    ``first`` is the role of the first message that is not the system's, ``last`` that of the last message. ``oddities``
    have the line of the first message of each kind.
    """

    first: str | None = None
    last: str | None = None
    oddities: tuple[tuple[Oddity, Location | None], ...] = ()

    def followed_by(self, role: str, location: Location | None, *, is_empty: bool) -> TurnState:
        """Return the conversation with one more message."""
        found: list[Oddity] = ["empty"] if is_empty else []
        if role == "tool":
            found.append("tool")
        if role == "system" and self.first is not None:
            found.append("late system")
            if self.last != "user":
                found.append("system behind an answer")
        known = dict(self.oddities)
        added: list[tuple[Oddity, Location | None]] = [(oddity, location) for oddity in found if oddity not in known]
        first = self.first if self.first is not None or role == "system" else role
        return TurnState(first, role, tuple(sorted((*self.oddities, *added), key=lambda each: each[0])))


class OpenTurn(NamedTuple):
    """The end of a context, where a generation begins. ``role`` is that of the open turn (None: none is open).

    ``before`` are the messages before it.
    """

    is_chat: bool
    role: str | None = None
    is_filled: bool = False
    ends_blank: bool = False
    before: TurnState = TurnState()


Turns = Mapping[Value, frozenset[OpenTurn]]
_START = OpenTurn(is_chat=False)


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
        if op.role is None:
            ends_blank = isinstance(last, str) and last[-1:].isspace()
            return _filled(turn, ends_blank=ends_blank) if op.text else turn
        is_empty = isinstance(op, ExtendOp) and not any(op.text)
        return OpenTurn(is_chat=True, before=_closed(turn, op).followed_by(op.role, op.location, is_empty=is_empty))
    if isinstance(op, BeginOp):
        return OpenTurn(is_chat=True, role=op.role, before=_closed(turn, op))
    if isinstance(op, EndOp):
        return OpenTurn(is_chat=True, before=_closed(turn, op)) if turn.is_chat else turn
    if isinstance(op, GenOp | SelectOp):
        return _filled(turn)
    return turn


def _closed(turn: OpenTurn, op: Op) -> TurnState:
    """Return the messages of a context whose open turn, if any, ``op`` closes."""
    if turn.role is None:
        return turn.before
    return turn.before.followed_by(turn.role, op.location, is_empty=not turn.is_filled)


def _filled(turn: OpenTurn, *, ends_blank: bool = False) -> OpenTurn:
    role = (turn.role or "assistant") if turn.is_chat else None
    return OpenTurn(turn.is_chat, role, is_filled=True, ends_blank=ends_blank, before=turn.before)

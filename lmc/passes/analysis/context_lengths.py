"""Lengths of contexts, and of their prefilled parts."""

from __future__ import annotations

from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import BeginOp, EndOp, ExtendOp, PrefillOp, SamplingOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.types import CTX
from lmc.passes.analysis.prefix_tree import Counter, Measure, text_measure

# A context that comes out of a region or into one.
_UNKNOWN = Measure(unknown=1)
_EMPTY = Measure()


class ContextLengths:
    """``whole`` is the length of contexts, ``covered`` that of their prefilled parts. Filled in program order.

    Both are computed on demand, since counting tokens takes time. Never recursive.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._givers: dict[Value, Op] = {}
        self._whole: dict[Value, tuple[Measure, str | None]] = {}
        """With the role of the turn that is open at its end."""
        self._covered: dict[Value, Measure] = {}
        self._computed: dict[Value, Measure] = {}

    def start(self, value: Value) -> None:
        """The context ``value`` begins with something that is not known."""
        self._whole[value], self._covered[value] = (_UNKNOWN, None), _EMPTY
        self._computed[value] = _UNKNOWN

    def add(self, op: Op, value: Value) -> None:
        """``op`` gives the context ``value``."""
        if isinstance(op, RegionOp):
            self.start(value)
            return
        self._givers[value] = op
        if isinstance(op, PrefillOp):
            self._covered.pop(value, None)

    def cover(self, value: Value, measure: Measure) -> None:
        """So much of ``value`` is computed ahead, whatever gives it."""
        self._covered[value] = measure

    def whole(self, value: Value) -> Measure:
        """The length of a context."""
        way: list[tuple[Value, Op]] = []
        at: Value | None = value
        while at is not None and at not in self._whole:
            op = self._givers[at]
            way.append((at, op))
            at = _before(op)
        known = (_EMPTY, None) if at is None else self._whole[at]
        for given, op in reversed(way):
            known = self._whole[given] = self._grown(op, *known)
        return known[0]

    def covered(self, value: Value) -> Measure:
        """Return the length of the prefilled part of a context."""
        way: list[Value] = []
        at: Value | None = value
        while at is not None and at not in self._covered:
            op = self._givers[at]
            if isinstance(op, PrefillOp):
                self._covered[at] = self.whole(at)
                break
            way.append(at)
            at = _before(op)
        found = _EMPTY if at is None else self._covered[at]
        self._covered.update(dict.fromkeys(way, found))
        return found

    def computed(self, value: Value) -> Measure:
        """Return the length of the part of a context that a call or a prefill has computed before it is there."""
        way: list[Value] = []
        at: Value | None = value
        while at is not None and at not in self._computed:
            way.append(at)
            op = self._givers[at]
            if op.billable or isinstance(op, PrefillOp):
                self._computed[at] = self.whole(at)
                break
            at = _before(op)
        found = _EMPTY if at is None else self._computed[at]
        self._computed.update(dict.fromkeys(way, found))
        return found

    def _grown(self, op: Op, known: Measure, role: str | None) -> tuple[Measure, str | None]:
        """The length of what ``op`` makes of a context with an open turn of ``role``, and the turn open then."""
        if isinstance(op, ExtendOp):
            known += text_measure(op.text, op.role, self._counter) + self._end_mark(op.role)
            return known, role if op.role is None else None
        if isinstance(op, BeginOp):
            return known + text_measure((), op.role, self._counter), op.role
        if isinstance(op, EndOp):
            return known + self._end_mark(role), None
        if isinstance(op, SamplingOp) and op.forced is not None:
            known += Measure(len(op.forced))
        elif op.billable:
            known += _UNKNOWN
        return known, role if getattr(op, "role", None) is None else None

    def _end_mark(self, role: str | None) -> Measure:
        return _EMPTY if role is None else Measure(self._counter.turn_tokens(role)[1])


def _before(op: Op) -> Value | None:
    """The context that ``op`` continues."""
    return next((operand for operand in op.operands if operand.type == CTX), None)

"""How long contexts are, and how much of them is computed ahead."""

from __future__ import annotations

from lmc.ir.core import Op, Value
from lmc.ir.ops import BeginOp, EndOp, ExtendOp, PrefillOp, SamplingOp
from lmc.ir.regions import RegionOp
from lmc.ir.types import CTX
from lmc.passes.prefix_tree import Counter, Measure, text_measure

# A context that comes out of a region or into one.
_UNKNOWN = Measure(unknown=1)


class ContextLengths:
    """``whole`` says how long contexts are, ``covered`` how much of them is computed ahead. Filled in program order."""

    def __init__(self, counter: Counter) -> None:
        self.whole: dict[Value, Measure] = {}
        self.covered: dict[Value, Measure] = {}
        self._counter = counter
        self._open_roles: dict[Value, str] = {}

    def start(self, value: Value) -> None:
        """The context ``value`` begins with something that is not known."""
        self.whole[value], self.covered[value] = _UNKNOWN, Measure()

    def add(self, op: Op, value: Value) -> None:
        """``op`` gives the context ``value``."""
        if isinstance(op, RegionOp):
            self.start(value)
            return
        before = next((operand for operand in op.operands if operand.type == CTX), None)
        known = Measure() if before is None else self.whole[before]
        if isinstance(op, ExtendOp):
            known += text_measure(op.text, op.role, self._counter) + self._end_mark(op.role)
        elif isinstance(op, BeginOp):
            known += text_measure((), op.role, self._counter)
            self._open_roles[value] = op.role
        elif isinstance(op, EndOp):
            known += self._end_mark(self._open_roles.get(op.context))
        elif isinstance(op, SamplingOp) and op.forced is not None:
            known += Measure(len(op.forced))
        elif op.billable:
            known += Measure(unknown=1)
        if not isinstance(op, BeginOp | EndOp) and before in self._open_roles and getattr(op, "role", None) is None:
            self._open_roles[value] = self._open_roles[before]
        self.whole[value] = known
        if isinstance(op, PrefillOp):
            self.covered[value] = known
        elif value not in self.covered:
            self.covered[value] = Measure() if before is None else self.covered[before]

    def _end_mark(self, role: str | None) -> Measure:
        return Measure() if role is None else Measure(self._counter.turn_tokens(role)[1])

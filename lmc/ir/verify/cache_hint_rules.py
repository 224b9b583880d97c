"""The rules about ``lm.keep`` and ``lm.free`` that no op can check alone: where a context comes from and goes to."""

from __future__ import annotations

from collections.abc import Iterable

from lmc.ir.core import Op, Value
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import BeginOp, EndOp, ExtendOp, PrefillOp
from lmc.ir.dialects.region_ops import ConditionOp, YieldOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.types import CTX

KvHint = KeepOp | FreeOp
_HINTS = (KeepOp, FreeOp)
_GROWING = (ExtendOp, SectionsOp, BeginOp, EndOp)


class Origins:
    """For contexts that grew by text alone the one they grew from: what is in the cache is there for that one."""

    def __init__(self) -> None:
        self._origins: dict[Value, Value] = {}

    def add(self, op: Op) -> None:
        """Take the next op of the walk."""
        if isinstance(op, _GROWING):
            self._origins[op.results[0]] = self.of(op.context)

    def of(self, value: Value) -> Value:
        """The origin of a context; itself where a call, a prefill, a region or nothing at all gave it."""
        return self._origins.get(value, value)


def uses_cache(op: Op) -> bool:
    """Return True if the op needs cached tokens of the contexts among its operands: at once or further on."""
    return op.billable or isinstance(op, PrefillOp | RegionOp | YieldOp | ConditionOp)


class KvHintRules:
    """Checks ``lm.keep`` and ``lm.free`` in one walk over a function, ops before those in their regions. Linear."""

    def __init__(self) -> None:
        self._origins = Origins()
        self._freed: set[Value] = set()
        self._blocks: list[list[KvHint]] = []

    def enter(self) -> None:
        """A block begins."""
        self._blocks.append([])

    def leave(self, names: Iterable[str]) -> None:
        """The block ends; ``names`` are those of the values that it defines. Raises ``VerifyError``."""
        hints = self._blocks.pop()
        if not hints:
            return
        own = set(names)
        for op in hints:
            if op.context.name not in own:
                raise op.fail(f"{op.context} belongs to a block around this one", "say it there")

    def check(self, op: Op) -> None:
        """Raise ``VerifyError`` where the op breaks a rule, with those before it."""
        if isinstance(op, _HINTS):
            self._check_hint(op)
        elif self._freed and uses_cache(op):
            for value in op.operands:
                if value.type == CTX and self._origins.of(value) in self._freed:
                    origin = self._origins.of(value)
                    raise op.fail(f"it starts from {origin}, which is freed above", "free it after its last use")
        self._origins.add(op)

    def _check_hint(self, op: KvHint) -> None:
        if self._origins.of(op.context) != op.context:
            raise op.fail(
                f"{op.context} is {self._origins.of(op.context)} with text appended",
                "name that one: what a call, a prefill or a region gave is what is kept",
            )
        if op.context in self._freed:
            raise op.fail(f"{op.context} is freed above already", "free it once, after its last use")
        if isinstance(op, FreeOp) and op.next_use is None:
            self._freed.add(op.context)
        self._blocks[-1].append(op)

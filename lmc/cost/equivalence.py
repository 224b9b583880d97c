"""Modules that make the same requests: they differ in names of values, lines, and hints to caches and schedulers."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import PrefillOp
from lmc.ir.module import Module

_PLANNED = frozenset({"wave", "group"})
"""Attributes that say when a request is sent."""


def requests_key(module: Module) -> Hashable:
    """Return a value that is equal for modules with the same requests. Modules with other ones have other values."""
    key = _Key()
    return tuple(module.constraints), key.block(module.main.body)


class _Key:
    """Numbers the values of a module in the order in which they are defined."""

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}
        self._count = itertools.count()

    def block(self, block: Block) -> Hashable:
        """Recursion is as deep as regions are nested."""
        self._define(block.parameters)
        ops: list[Hashable] = []
        for op in block.ops:
            if isinstance(op, KeepOp | FreeOp):
                continue
            if isinstance(op, PrefillOp):
                self._numbers[op.results[0]] = self._numbers[op.context]
                continue
            ops.append(self._op(op))
        return tuple(value.type for value in block.parameters), tuple(ops)

    def _op(self, op: Op) -> Hashable:
        held = tuple((name, self._held(getattr(op, name))) for name, _ in op.FIELDS if name not in _PLANNED)
        self._define(op.results)
        return op.NAME, held, tuple(value.type for value in op.results)

    def _define(self, values: tuple[Value, ...]) -> None:
        for value in values:
            self._numbers[value] = next(self._count)

    def _held(self, held: Any) -> Hashable:
        if isinstance(held, Value):
            return Value, self._numbers[held]
        if isinstance(held, Block):
            return self.block(held)
        if isinstance(held, tuple):
            return tuple(map(self._held, held))
        return type(held), held

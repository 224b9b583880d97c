"""Ops with regions that exist only in tests, for all that must handle regions."""

from __future__ import annotations

from typing import Any

from lmc.ir.core import Block, Op, Value, operands, regions, register


@register("test.map")
class MapOp(Op):
    """Two kinds of regions over some values."""

    over: tuple[Value, ...] = operands(())
    body: tuple[Block, ...] = regions()
    otherwise: tuple[Block, ...] = regions()


@register("test.yield", terminator=True)
class YieldOp(Op):
    """Ends a region."""

    values: tuple[Value, ...] = operands(())


def make(kind: Any, *results: Value, **fields: Any) -> Any:
    """An op of class ``kind``; its fields are not known to the type checker, as they are not to ``Builder.emit``."""
    return kind(results=results, **fields)

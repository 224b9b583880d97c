"""Ops with regions that exist only in tests and demand nothing of them, for all that must handle regions."""

from __future__ import annotations

from typing import Any

from lmc.ir.core import Block, Op, Value, operands, region, register
from lmc.ir.dialects.regions import RegionOp


@register("test.map")
class MapOp(RegionOp):
    """One region over some values."""

    over: tuple[Value, ...] = operands(())
    body: Block = region()


@register("test.both")
class BothOp(RegionOp):
    """Two regions over some values."""

    over: tuple[Value, ...] = operands(())
    body: Block = region()
    otherwise: Block = region()


@register("test.yield", ends=("region",))
class YieldOp(Op):
    """Ends a region."""

    values: tuple[Value, ...] = operands(())


def make(kind: Any, *results: Value, **fields: Any) -> Any:
    """An op of class ``kind``; its fields are not known to the type checker, as they are not to ``Builder.emit``."""
    return kind(results=results, **fields)

"""Stable ids of conditions, loops, maps and races: by their program and their position in its source.

Not given while they are recorded: a loop is traced several times, and an op is appended after those in its regions.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from lmc.frontend.source.sites import SiteTable
from lmc.ir.core import Block, Op
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.ids import base_of


def with_region_ids(block: Block, sites: SiteTable) -> Block:
    """``block`` with an id for each op with regions, which so far has the beginning of one: ``f/@cf.cond``.

    ``f/@cf.cond.2`` is one at the second line of ``f`` that has control flow, ``f/@cf.cond.value.2`` a part of an
    expression there, ``f/g/@cf.cond.1`` one of ``g``, a plain function that is a part of ``f``. Where there are
    several, as of rounds that were captured one by one, ``#1`` and so on follow, outer ones before those in them. No
    function of the user's has such a name. Recursion is as deep as regions are nested.
    """
    return _Naming(sites).block(block)


class _Naming:
    def __init__(self, sites: SiteTable) -> None:
        self._sites = sites
        self._counts: Counter[str] = Counter()

    def block(self, block: Block) -> Block:
        """The block with ids in all regions."""
        return Block(block.parameters, tuple(self._op(op) if isinstance(op, RegionOp) else op for op in block.ops))

    def _op(self, op: RegionOp) -> Op:
        base = self._place(op)
        number = self._counts[base]
        self._counts[base] += 1
        regions = {name: self.block(getattr(op, name)) for name in op.REGION_FIELDS}
        return dataclasses.replace(op, id=f"{base}#{number}" if number else base, **regions)

    def _place(self, op: RegionOp) -> str:
        begun = op.id or ""
        sites = self._sites.find(op.location)
        if sites is None or op.location is None:
            return begun
        path, _, name = begun.rpartition("/")
        own = base_of(path).rpartition("/")[2] == sites.name
        return f"{path if own else f'{path}/{sites.name}'}/{name}.{sites.number(op.location.line)}"

"""Stable ids of conditions, loops, maps and races: by the program they stand in, and their order in it.

Not given while they are recorded: a loop is traced several times, and an op is appended after those in its regions.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from lmc.ir.core import Block, Op
from lmc.ir.regions import RegionOp


def with_region_ids(block: Block) -> Block:
    """``block`` with an id for each op with regions, which so far has the path of its program in its place.

    ``f/@cf.cond``, ``f/@cf.cond#1`` and so on, outer ones before those in them. No function of the user's has such a
    name. Recursion is as deep as regions are nested.
    """
    return _named(block, Counter())


def _named(block: Block, counts: Counter[str]) -> Block:
    ops = [_with_id(op, counts) if isinstance(op, RegionOp) else op for op in block.ops]
    return Block(block.parameters, tuple(ops))


def _with_id(op: RegionOp, counts: Counter[str]) -> Op:
    base = f"{op.id}/@{op.NAME}"
    number = counts[base]
    counts[base] += 1
    regions = {name: _named(getattr(op, name), counts) for name in op.REGION_FIELDS}
    return dataclasses.replace(op, id=f"{base}#{number}" if number else base, **regions)

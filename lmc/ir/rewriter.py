"""The shape of every pass: one forward walk over a module, with a substitution map.

A pass gives ``rewrite`` a function that looks at one op at a time, in order, and says what takes its place. Operands
have been substituted when it sees the op, so nothing walks def-use chains. Regions are rewritten before the op that
holds them is looked at. The walk is linear in the number of ops and never recursive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.module import Function, Module
from lmc.ir.types import Type


class Rewriter:
    """One walk over one function. The function given to ``rewrite`` gets it beside each op."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._replaced = _Substitution()
        self._names = names_in(function)
        self._suffixes: dict[str, Iterator[int]] = {}
        self._open: list[_OpenBlock] = []
        self._block_numbers = count()

    @property
    def scope(self) -> tuple[int, ...]:
        """Numbers of the open blocks, outermost first; each block of a function has its own.

        A value of an earlier op may be used here if the scope of that op is a prefix of this one.
        """
        return tuple(block.number for block in self._open)

    def replace(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """From here on, uses of ``old[i]`` become uses of ``new[i]``."""
        for before, after in zip(old, new, strict=True):
            self._replaced.add(before, after)

    def resolve(self, value: Value) -> Value:
        """Return the current replacement of ``value``."""
        return self._replaced.get(value, value)

    def fresh(self, kind: Type, wish: str = "v") -> Value:
        """A value with a name that the function does not use: ``wish``, else ``wish_1`` and so on."""
        name = wish
        while name in self._names:
            name = f"{wish}_{next(self._suffixes.setdefault(wish, count(1)))}"
        self._names.add(name)
        return Value(name, kind)

    def run(self, on_op: OnOp) -> Block:
        """The function's body, rewritten."""
        self._open.append(_OpenBlock(next(self._block_numbers), self.function.body))
        while True:
            block = self._open[-1]
            op = next(block.rest, None)
            if op is not None:
                op = op.substitute(self._replaced) if self._replaced else op
                if op.regions:
                    block.waiting = _WaitingOp(op, iter(op.regions))
                    self._open_next_region()
                else:
                    block.add(op, on_op(op, self))
                continue
            self._open.pop()
            if not self._open:
                return block.rebuilt()
            self._close_region(block.rebuilt(), on_op)

    def _open_next_region(self) -> bool:
        waiting = self._open[-1].waiting
        region = next(waiting.regions, None) if waiting is not None else None
        if region is None:
            return False
        self._open.append(_OpenBlock(next(self._block_numbers), region))
        return True

    def _close_region(self, region: Block, on_op: OnOp) -> None:
        outer = self._open[-1]
        waiting = outer.waiting
        assert waiting is not None, "a region belongs to a waiting op"
        waiting.done.append(region)
        if self._open_next_region():
            return
        outer.waiting = None
        op = with_regions(waiting.op, waiting.done)
        outer.add(op, on_op(op, self))


OnOp = Callable[[Op, Rewriter], "Sequence[Op] | None"]


def rewrite(module: Module, on_op: OnOp) -> Module:
    """The module after one forward walk over each of its functions.

    ``on_op(op, rewriter)`` gives the ops that take the place of ``op`` (none: it is dropped), or None to keep it.
    Where results of a replaced op are used later, either the new ops define the same values, or ``rewriter.replace``
    says what stands for them. A function in which nothing changed stays the same object, and so does the module.
    """
    bodies: dict[str, Block] = {}
    for function in module.functions:
        body = Rewriter(function).run(on_op)
        if body is not function.body:
            bodies[function.name] = body
    return module.with_bodies(bodies) if bodies else module


def names_in(function: Function) -> set[str]:
    """Names of all values of a function, those in regions included."""
    names = {value.name for value in function.parameters}
    for op in walk([function.body]):
        names.update(value.name for value in op.results)
        names.update(value.name for region in op.regions for value in region.parameters)
    return names


def with_regions(op: Op, regions: Sequence[Block]) -> Op:
    """The op with other regions, in field order; itself where they are the same objects."""
    if not op.REGION_FIELDS or all(new is old for new, old in zip(regions, op.regions, strict=True)):
        return op
    return dataclasses.replace(op, **dict(zip(op.REGION_FIELDS, regions, strict=True)))


class _Substitution(Mapping[Value, Value]):
    """The replacement of each replaced value, followed to the end and shortened on the way."""

    def __init__(self) -> None:
        self._next: dict[Value, Value] = {}

    def add(self, old: Value, new: Value) -> None:
        target = self.get(new, new)
        if target != old:
            self._next[old] = target

    def __getitem__(self, value: Value) -> Value:
        target = self._next[value]
        if target not in self._next:
            return target
        passed = [value]
        while target in self._next:
            passed.append(target)
            target = self._next[target]
        for step in passed:
            self._next[step] = target
        return target

    def __iter__(self) -> Iterator[Value]:
        return iter(self._next)

    def __len__(self) -> int:
        return len(self._next)


@dataclass(slots=True)
class _WaitingOp:
    """An op whose regions are being rewritten."""

    op: Op
    regions: Iterator[Block]
    done: list[Block] = field(default_factory=list)


class _OpenBlock:
    """A block being rewritten: the ops that are left, and those it holds so far."""

    def __init__(self, number: int, block: Block) -> None:
        self.number = number
        self.block = block
        self.rest = iter(block.ops)
        self.waiting: _WaitingOp | None = None
        self._ops: list[Op] = []

    def add(self, op: Op, replacement: Sequence[Op] | None) -> None:
        self._ops.extend((op,) if replacement is None else replacement)

    def rebuilt(self) -> Block:
        """The block with the ops it holds now; itself where they are the same objects."""
        old = self.block.ops
        if len(old) == len(self._ops) and all(new is before for new, before in zip(self._ops, old, strict=True)):
            return self.block
        return Block(self.block.parameters, tuple(self._ops))

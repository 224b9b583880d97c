"""Loops over branches whose number only the run knows, alone or with ``zip`` and ``enumerate``.

A loop whose rounds only read is one like any other. Where a round uses the context of its branch, the loop begins
again as a ``cf.map`` (``lmc.frontend.control.maps``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.maps import SHAPE, MapParts, NotAMapError, Region, run_map
from lmc.frontend.emit.known import length_of
from lmc.frontend.emit.operands import is_scalar, pure
from lmc.frontend.handles.arrays import Lane, lent, stop
from lmc.frontend.heap.cells import BranchArrayCell, RowsCell
from lmc.frontend.heap.state import State
from lmc.frontend.heap.values import ZERO, Abstract, Const, Ref, Symbol, Tuple, same
from lmc.frontend.python.iteration import Counted, items_of
from lmc.frontend.python.operators import binary
from lmc.ir.core import Effect, Value
from lmc.ir.dialects.core_ops import HostCallOp, PyCallOp
from lmc.ir.dialects.regions import effects_of
from lmc.ir.types import INT, TEXT, ListType

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


class UsedError(Exception):
    """The context of a branch is used in a round that only reads."""

    def __init__(self, array: int) -> None:
        super().__init__()
        self.array = array


class Over:
    """A loop by number over what may hold branches. ``source`` is what it goes over."""

    def __init__(self, machine: Machine, source: Abstract | Counted) -> None:
        self.machine = machine
        self.signal = type("UsedHereError", (UsedError,), {})
        self.position: Abstract = ZERO
        self.lanes: dict[int, Lane] = {}
        self.region: Region | None = None
        self.covers = True
        self._columns: dict[int, Symbol] = {}
        self._known: dict[int, list[Abstract] | Counted | None] = {}
        self.source = source
        cell = None if isinstance(source, Counted) else machine.cell(source)
        if isinstance(cell, RowsCell):
            assert isinstance(source, Ref)
            self._use(source, cell)
        self.arrays: dict[int, None] = dict.fromkeys(self._arrays(source))

    def _use(self, rows: Ref, cell: RowsCell) -> None:
        if cell.used:
            raise stop(self.machine, "an iterator over branches is gone over again")
        self.machine.state.put(rows.address, RowsCell(cell.what, cell.parts, cell.start, cell.strict, used=True))
        for part in cell.parts:
            inner = self.machine.cell(part)
            if isinstance(inner, RowsCell):
                assert isinstance(part, Ref)
                self._use(part, inner)

    def _arrays(self, source: Abstract | Counted) -> list[int]:
        if isinstance(source, Counted):
            return []
        cell = self.machine.cell(source)
        if isinstance(cell, BranchArrayCell):
            assert isinstance(source, Ref)
            return [source.address]
        return [found for part in cell.parts for found in self._arrays(part)] if isinstance(cell, RowsCell) else []

    # Lengths and items

    def length(self) -> Abstract:
        """Return how many items there are."""
        return self._length(self.source)

    def _length(self, source: Abstract | Counted) -> Abstract:
        machine = self.machine
        if isinstance(source, Counted):
            return length_of(machine, source.value)
        cell = machine.cell(source)
        if isinstance(cell, BranchArrayCell):
            return cell.count
        if not isinstance(cell, RowsCell):
            items = self._items(source)
            return Const(len(items)) if isinstance(items, list) else length_of(machine, self._list(source))
        lengths: list[Abstract] = []
        for part in cell.parts:
            found = self._length(part)
            if not any(same_number(machine, found, other) for other in lengths):
                lengths.append(found)
        return lengths[0] if len(lengths) == 1 else pure(machine, "min", lengths, raises=False)

    def check(self) -> None:
        """Return what ``zip(strict=True)`` raises behind the last round."""
        self._check(self.source)

    def _check(self, source: Abstract | Counted) -> None:
        cell = None if isinstance(source, Counted) else self.machine.cell(source)
        if not isinstance(cell, RowsCell):
            return
        lengths = [self._length(part) for part in cell.parts]
        if cell.strict and not all(same_number(self.machine, lengths[0], each) for each in lengths[1:]):
            pure(self.machine, "check_lengths", lengths)
        for part in cell.parts:
            self._check(part)

    def _items(self, source: Abstract) -> list[Abstract] | Counted | None:
        """The items of a part as they are when the loop begins."""
        key = source.address if isinstance(source, Ref) else id(source)
        if key not in self._known:
            if isinstance(source, Symbol) and source.type != TEXT and not isinstance(source.type, ListType):
                self._known[key] = Counted(pure(self.machine, "list_from", (source,)))
            else:
                self._known[key] = items_of(self.machine, source)
        return self._known[key]

    def known_rounds(self) -> tuple[int, Abstract | None]:
        """Return how many rounds there are at most, where some part has known items, and the length of the others."""
        cell = self.machine.cell(self.source) if not isinstance(self.source, Counted) else None
        assert isinstance(cell, RowsCell)
        found = self._rounds(cell)
        known = [each.value for each in found if isinstance(each, Const)]
        others = [each for each in found if not isinstance(each, Const)]
        if not known:
            raise stop(self.machine, "branches are gone over together with states, functions or objects")
        if not others:
            return min(known), None
        return min(known), others[0] if len(others) == 1 else pure(self.machine, "min", others, raises=False)

    def _rounds(self, cell: RowsCell) -> list[Abstract]:
        found: list[Abstract] = []
        for part in cell.parts:
            inner = self.machine.cell(part)
            found += self._rounds(inner) if isinstance(inner, RowsCell) else [self._length(part)]
        return found

    def _list(self, source: Abstract) -> Symbol:
        """A list as one value, as it is when the loop begins."""
        machine = self.machine
        key = source.address if isinstance(source, Ref) else id(source)
        if key not in self._columns:
            items = self._items(source)
            if isinstance(items, Counted):
                taken = pure(machine, "list_from", (items.value,)) if items.value.foreign else items.value
                self._columns[key] = taken
            elif isinstance(items, list) and all(map(is_scalar, items)):
                self._columns[key] = pure(machine, "list", items, raises=False)
            else:
                raise stop(machine, "branches are gone over together with states, functions or objects")
        return self._columns[key]

    def item(self) -> Abstract:
        """The item of this round."""
        return self._item(self.source)

    def _item(self, source: Abstract | Counted) -> Abstract:
        machine = self.machine
        if isinstance(source, Counted):
            return self._of_list(source.value)
        cell = machine.cell(source)
        if isinstance(cell, BranchArrayCell):
            assert isinstance(source, Ref)
            return self.branch(source)
        if not isinstance(cell, RowsCell):
            items = self._items(source)
            if isinstance(items, list) and isinstance(self.position, Const):
                return items[self.position.value]
            return self._of_list(self._list(source))
        if cell.what == "zip":
            return Tuple(tuple(self._item(part) for part in cell.parts))
        number = self.position
        if not (isinstance(cell.start, Const) and cell.start.value == 0):
            number = binary(machine, "add", self.position, cell.start)
        return Tuple((number, self._item(cell.parts[0])))

    def _of_list(self, values: Symbol) -> Abstract:
        machine = self.machine
        made = _made_by(machine, values.ir)
        if isinstance(made, PyCallOp) and made.function == "range" and len(made.arguments) == 1:
            return self.position
        is_list = isinstance(values.type, ListType)
        if (
            self.region is not None
            and self.covers
            and is_list
            and same_number(machine, length_of(machine, values), self._total())
        ):
            return self.region.element(values)
        return pure(machine, "getitem", (values, self.position), raises=False)

    def _total(self) -> Abstract:
        cell = self.machine.cell(Ref(next(iter(self.arrays))))
        assert isinstance(cell, BranchArrayCell)
        return cell.count

    # Branches

    def is_position(self, key: Abstract) -> bool:
        """Return whether ``key`` is the number of this round."""
        return same(key, self.position)

    def branch(self, array: Ref) -> Abstract:
        """The branch that belongs to the round."""
        if self.region is not None:
            lane = self.lanes.get(array.address)
            if lane is None:
                raise self.signal(array.address)
            return lane.handle
        position = self.position
        return lent(self.machine, array, _number(self.machine, position), self.signal)

    def as_map(self, target: int, body: Callable[[], None], dead: frozenset[Any]) -> None:
        """Interpret the loop as a ``cf.map``; where its rounds reach others, end the capture."""
        machine = self.machine
        total = self._total()
        for address in self.arrays:
            cell = machine.cell(Ref(address))
            assert isinstance(cell, BranchArrayCell)
            if not same_number(machine, cell.count, total):
                raise machine.stop("branches of several forks are changed in one loop", SHAPE)
        for part in self._lists(self.source):
            self._list(part)
        self.covers = same_number(machine, self.length(), total)

        def begin(region: Region) -> None:
            self.region, self.position = region, region.index
            self.lanes = {address: Lane(machine, address, region) for address in self.arrays}

        def finish(region: Region, end: State) -> Callable[[], None]:
            made = [(lane, lane.finish(region, end)) for lane in self.lanes.values()]

            def put() -> None:
                for lane, array in made:
                    lane.put(array)

            return put

        def round(_region: Region) -> None:
            body()

        try:
            run_map(machine, MapParts(target, total, self.length, self.covers, round, begin, finish, dead))
        except NotAMapError as reason:
            raise machine.stop(reason.cause, SHAPE) from None
        finally:
            self.region = None

    def _lists(self, source: Abstract | Counted) -> list[Abstract]:
        if isinstance(source, Counted):
            return []
        cell = self.machine.cell(source)
        if isinstance(cell, BranchArrayCell):
            return []
        return [found for part in cell.parts for found in self._lists(part)] if isinstance(cell, RowsCell) else [source]


def _number(machine: Machine, position: Abstract) -> Symbol:
    if isinstance(position, Symbol):
        return position
    return pure(machine, "add", (position, ZERO), raises=False, gives=INT)


def same_number(machine: Machine, left: Abstract, right: Abstract) -> bool:
    """Return True if two numbers are certainly equal in every run: they have the same value number."""
    if same(left, right):
        return True
    if not isinstance(left, Symbol) or not isinstance(right, Symbol):
        return False
    ways = _Ways(machine)
    return ways.of(left.ir) == ways.of(right.ir)


def is_count(machine: Machine, value: Symbol) -> bool:
    """Return whether ``value`` is how many there are of something."""
    made = _made_by(machine, value.ir)
    return isinstance(made, PyCallOp) and made.function in ("len", "branch_count")


class _Ways:
    """Value numbering of the open blocks' values, through builtins alone.

    Data that functions of the user's can change stays the same until one that writes is called.
    """

    def __init__(self, machine: Machine) -> None:
        self._known: dict[Value, Any] = {}
        hosts = {machine.graph.hosts.symbol_of_builtin(name): name for name in ("len", "list_from")}
        writes = 0
        for builder in machine.graph.stack:
            for op in builder.ops:
                if isinstance(op, PyCallOp):
                    self._note(op.results[0], op.function, op, None)
                elif isinstance(op, HostCallOp) and op.host in hosts:
                    self._note(op.results[0], hosts[op.host], op, writes)
                writes += Effect.WRITES in effects_of(op)

    def of(self, value: Any) -> Any:
        """Return what is the same for two values that are equal in every run."""
        return self._known.get(value, value) if isinstance(value, Value) else (type(value), value)

    def _note(self, value: Value, function: str, op: PyCallOp | HostCallOp, writes: int | None) -> None:
        parts = tuple(map(self.of, op.arguments))
        if function in ("branch_count", "list_from"):  # where the first gives something else, it raises
            self._known[value] = parts[0] if writes is None else ("copy", writes, parts[0])
        elif function == "len" and type(parts[0]) is tuple and parts[0][0] == "copy":
            self._known[value] = ("len", parts[0])
        elif function == "len" and writes is not None:
            self._known[value] = ("len", ("copy", writes, parts[0]))
        else:
            self._known[value] = (function, op.keywords, parts)


def _made_by(machine: Machine, value: Value) -> Any:
    """The op in an open block that makes ``value``; None where there is none."""
    for builder in reversed(machine.graph.stack):
        for op in reversed(builder.ops):
            if value in op.results:
                return op
    return None

"""The join of two states: one for conditions, loops, ``try``, generators and inlined functions.

What is the same on both sides stays. Scalars that differ become phis. Objects older than the branch are joined field by
field with themselves, objects that each side made anew with each other, so that aliases stay aliases. What has no
common form becomes a ``Union`` on the flag, or ``Poison``: a read of it ends the capture.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from lmc.frontend.emit import objects, operands
from lmc.frontend.emit.operands import pure, type_of_value
from lmc.frontend.heap.cells import (
    ROLE_UNKNOWN,
    BranchArrayCell,
    BranchesCell,
    Cell,
    CollectedCell,
    CoreCell,
    DictCell,
    FrameCell,
    GeneratorCell,
    GrownCell,
    HandleCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    ObjectCell,
    PoisonCell,
    RowsCell,
    SetCell,
)
from lmc.frontend.heap.paths import unified
from lmc.frontend.heap.reach import current, names_of, reached_from
from lmc.frontend.heap.state import Content, Place, State
from lmc.frontend.heap.values import (
    FALSE,
    SCALARS,
    TRUE,
    UNBOUND,
    ZERO,
    Abstract,
    Appended,
    BoundMethod,
    Concat,
    Const,
    Domain,
    Function,
    Lent,
    Managed,
    NumberRange,
    Partial,
    Poison,
    Raised,
    Ref,
    RoleTurn,
    Slice,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
    alternatives,
    parts_of,
    rebuilt,
    same,
)
from lmc.frontend.machine.budget import MAX_APART, MAX_UNION
from lmc.ir.core import Value
from lmc.ir.types import ANY, BOOL, ListType, Type, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

UNSURE = Poison("an answer that only a run knows", "")
"""In a core: whether the open turn ends with an answer, and with which, only a run knows."""
TRACKED = ("whether a turn ends with an answer",)
"""In ``Machine.written``: states keep that as a flag (``Union(flag, answer, UNBOUND)``) in the place of ``UNSURE``."""
DEAD = Poison("a name that nothing reads any more", "")
_COMPOSITES = (Tuple, Slice, View, NumberRange, Managed, BoundMethod, Partial, Appended, RoleTurn, Raised)


class Phis(Protocol):
    """The construct whose sides a join merges. Side 0 is the first arm, or the entry of a loop."""

    machine: Machine
    flag: Symbol | None

    def merge(self, path: Path, left: Abstract, right: Abstract) -> Symbol:
        """A scalar or a context that is ``left`` on one side and ``right`` on the other."""
        ...

    def alone(self, path: Path, side: int, value: Symbol) -> Symbol:
        """A value of one side, which is never read if the other side was taken."""
        ...

    def sees(self, value: Value) -> bool:
        """Return whether ``value`` can be used behind the construct."""
        ...

    def at(self, side: int) -> AbstractContextManager[None]:
        """Append to the end of a side."""
        ...

    def fixed(self, path: Path) -> bool:
        """Return whether a value of this path that is the same on both sides stays as it is."""
        ...

    def selected(self, path: Path, left: Abstract, right: Abstract) -> Abstract | None:
        """One of a few objects that are older than the construct, by flags; None where it is none of these."""
        ...

    def address(self, path: Path) -> int:
        """Return where two objects are joined that the sides made."""
        ...

    def domain(self, path: Path, left: Domain, right: Domain) -> Domain:
        """Return which texts may be on either side."""
        ...


Path = tuple[Any, ...]


class Join:
    """Joins the states of two sides that began as ``base``. Addresses from ``watermark`` on are younger than that."""

    def __init__(self, machine: Machine, phis: Phis, states: tuple[State, State], base: State, watermark: int) -> None:
        self.machine = machine
        self.phis = phis
        self.states = states
        self.base = base
        self.watermark = watermark
        self.joined = base.child()
        self._pairs: dict[tuple[int, int], int] = {}
        self._partners: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._exported: set[int] = set()
        self._moved: dict[Path, tuple[int, int]] = {}
        self._dead: frozenset[Place] = frozenset()
        self._given: tuple[set[int], set[int]] = (set(), set())

    def run(self, places: Sequence[Place] = (), dead: frozenset[Place] = frozenset()) -> State:
        """The state behind the construct.

        ``places`` are joined besides those that a side changed; what ``dead`` ones hold is not asked for any more.
        """
        self._dead = dead
        changed = [state.changed_since(self.base) for state in self.states]
        self.joined.tainted = any(state.tainted for state in self.states)
        self.joined.holds_foreign = any(state.holds_foreign for state in self.states)
        for place in dict.fromkeys((*places, *changed[0], *changed[1])):
            if self.is_young(place):
                continue
            if place in dead:
                self.joined.put(place, DEAD)
                continue
            left, right = (held[place] if place in held else self.base.get(place) for held in changed)
            self.joined.put(place, self.content((place,), left, right))
        self.joined.holds_foreign = any(state.holds_foreign for state in self.states)
        for side, given in enumerate(self._given):
            for address in given:
                self._poison_given(side, address)
        return self.joined

    def _poison_given(self, side: int, address: int) -> None:
        """Poison an object that a container of the run took on one side: a name may still refer to it."""
        partner = self._partners[side].get(address)
        if partner is not None:
            address = self._pairs[(address, partner) if side == 0 else (partner, address)]
        elif address >= self.watermark and address not in self._exported:
            return
        self.joined.put(address, PoisonCell(objects.GIVEN))

    def run_alone(self, side: int) -> State:
        """The state behind the construct where only this side takes the exit."""
        self.joined.tainted = self.states[side].tainted
        self.joined.holds_foreign = self.states[side].holds_foreign
        for place, held in self.states[side].changed_since(self.base).items():
            if self.is_young(place):
                continue
            if isinstance(held, Cell):
                self.joined.put(place, self.exported_cell((place,), side, held))
            else:
                self.joined.put(place, self.exported((place,), side, held))
        return self.joined

    def is_young(self, place: Place) -> bool:
        """Return whether a place belongs to what a side made."""
        if type(place) is tuple and place[0] == "count":  # of ids that hold numbers of this side alone
            return not all(map(self.phis.sees, place[2]))
        address = place[0] if type(place) is tuple else place
        return type(address) is int and address >= self.watermark

    def content(self, path: Path, left: Content, right: Content) -> Content:
        """Return what a place holds behind the construct."""
        if isinstance(left, Cell) or isinstance(right, Cell):
            if isinstance(left, Cell) and isinstance(right, Cell):
                side = self._only_side(path[0])
                if side is not None:
                    return self.exported_cell(path, side, (left, right)[side])
                try:
                    return self.cell(path, left, right, {path[0]})
                except NoCommonFormError as reason:
                    return self._apart(path, reason.poison, (path[0], path[0]), (left, right))
            side = 0 if isinstance(left, Cell) else 1
            only = left if side == 0 else right
            assert isinstance(only, Cell)
            return self.exported_cell(path, side, only)
        return self.value(path, left, right)

    def _only_side(self, place: Place) -> int | None:
        """The side on which alone something leads to an object: one of those that another one is (``_apart``)."""
        flag = self.phis.flag
        return None if flag is None else self.machine.objects.apart.get((place, flag.ir))

    # Values

    def value(self, path: Path, left: Abstract, right: Abstract) -> Abstract:
        """A value that is ``left`` on one side and ``right`` on the other."""
        if same(left, right) and self.phis.fixed(path) and self._is_seen(left):
            return left
        for one in (left, right):
            if isinstance(one, Poison):
                return one
        if _may_be_unbound(left) or _may_be_unbound(right):
            return self._maybe(path, left, right)
        if not (isinstance(left, Ref) and isinstance(right, Ref) and left.address == right.address):
            left, right = (current(*pair) for pair in zip(self.states, (left, right), strict=True))
        if _is_scalar(left) and _is_scalar(right):
            return self.phis.merge(path, left, right)
        if isinstance(left, Ref) and isinstance(right, Ref):
            return self._references(path, left, right)
        if type(left) is type(right) and isinstance(left, _COMPOSITES):
            found = self._composite(path, left, right)
            if found is not None:
                return found
        return self._union(path, left, right)

    def _is_seen(self, value: Abstract) -> bool:
        if isinstance(value, Symbol):
            return self.phis.sees(value.ir)
        if isinstance(value, Ref):
            return value.address < self.watermark
        if isinstance(value, Function):
            return all(frame < self.watermark for frame in value.frames) and all(map(self._is_seen, parts_of(value)))
        return all(map(self._is_seen, parts_of(value)))

    def _maybe(self, path: Path, left: Abstract, right: Abstract) -> Abstract:
        """A name that may not be bound: ``Union(bound, value, UNBOUND)``."""
        (left_flag, left_value), (right_flag, right_value) = _presence(left), _presence(right)
        if isinstance(left_value, Unbound) and isinstance(right_value, Unbound):
            return UNBOUND
        if isinstance(left_value, Unbound):
            value = self.exported((*path, "value"), 1, right_value)
        elif isinstance(right_value, Unbound):
            value = self.exported((*path, "value"), 0, left_value)
        else:
            value = self.value((*path, "value"), left_value, right_value)
        if isinstance(value, Poison):
            return value
        flag = self.value((*path, "bound"), left_flag, right_flag)
        if isinstance(flag, Const):
            return value if flag.value else UNBOUND
        assert isinstance(flag, Symbol)
        return Union(flag, value, UNBOUND)

    def _composite(self, path: Path, left: Abstract, right: Abstract) -> Abstract | None:
        """Two tuples, methods or messages of one shape, part by part; None where the shapes differ."""
        parts = parts_of(left), parts_of(right)
        if len(parts[0]) != len(parts[1]) or not _alike(left, right):
            return None
        joined = iter(
            [self.value((*path, type(left), index), *pair) for index, pair in enumerate(zip(*parts, strict=True))]
        )
        try:
            found = rebuilt(left, lambda _: next(joined))
        except AssertionError:
            return None
        if isinstance(found, View) and isinstance(found.owner, Union):
            return None  # a view of each
        if isinstance(found, Raised) and isinstance(left, Raised) and isinstance(right, Raised):
            kinds = None
            if left.kinds is not None and right.kinds is not None:
                kinds = tuple(dict.fromkeys((*left.kinds, *right.kinds)))
            return found if left.kinds is right.kinds else dataclasses.replace(found, kinds=kinds)
        return found

    def _union(self, path: Path, left: Abstract, right: Abstract) -> Abstract:
        flag = self.phis.flag
        if flag is None:
            found = self.phis.selected(path, left, right) or self._object_of_run(path, left, right)
            if found is not None:
                return found
        found = None if flag is None else self._united(path, left, right)
        if found is not None:
            return found
        if flag is None or len(alternatives(left)) + len(alternatives(right)) > MAX_UNION:
            raised = self._one_exception(path, left, right)
            if raised is not None:
                return raised
            is_value = operands.is_value(left) and operands.is_value(right)
            return self.phis.merge(path, left, right) if is_value else _no_common_form(self.machine)
        first, second = self.exported((*path, "first"), 0, left), self.exported((*path, "second"), 1, right)
        for one in (first, second):
            if isinstance(one, Poison):
                return one
        return Union(flag, first, second)

    def _united(self, path: Path, left: Abstract, right: Abstract) -> Abstract | None:
        """A union with one flag for each object; objects that both sides have, or can have as one, are in it once.

        None where there is none of these, and for other values than references and tuples.
        """
        sides = _distinct(left), _distinct(right)
        if not all(isinstance(each, Ref | Tuple) for each in (*sides[0], *sides[1])):
            return None
        pairs: list[list[Abstract | None]] = [[each, None] for each in sides[0]]
        for each in sides[1]:
            partner = next((pair for pair in pairs if pair[1] is None and self._can_be_one(pair[0], each)), None)
            if partner is None:
                pairs.append([None, each])
            else:
                partner[1] = each
        if all(None in pair for pair in pairs) or not 1 < len(pairs) <= MAX_UNION:
            return None
        value: Abstract | None = None
        for number, (first, second) in reversed(list(enumerate(pairs))):
            inner = (*path, "one", number)
            if first is None or second is None:
                side, only = (1, second) if first is None else (0, first)
                assert only is not None
                held = self.exported(inner, side, only)
            else:
                held = self.value(inner, first, second)
            if isinstance(held, Poison):
                return held
            if value is None:
                value = held
                continue
            flags = [self._is_one(side, each, one) for side, each, one in ((0, left, first), (1, right, second))]
            found = self.value((*inner, "flag"), *flags)
            assert isinstance(found, Symbol)
            value = Union(found, held, value)
        return value

    def _can_be_one(self, left: Abstract | None, right: Abstract) -> bool:
        if left is None:
            return False
        if same(left, right):
            return self._is_seen(left)
        if not isinstance(left, Ref) or not isinstance(right, Ref) or not self._is_free(left.address, right.address):
            return False
        if min(left.address, right.address) < self.watermark:
            return False
        one, other = self.states[0].get(left.address), self.states[1].get(right.address)
        if isinstance(one, ListCell) and isinstance(other, ListCell):
            return len(one.items) == len(other.items)
        return isinstance(one, DictCell) and isinstance(other, DictCell) and _have_one_form(one, other)

    def _is_one(self, side: int, value: Abstract, wanted: Abstract | None) -> Abstract:
        """Return whether ``value`` is that one of its alternatives."""
        if not isinstance(value, Union):
            return Const(wanted is not None and same(value, wanted))
        first, second = (self._is_one(side, each, wanted) for each in (value.first, value.second))
        if same(first, second):
            return first
        with self.phis.at(side):
            return pure(self.machine, "choose", (value.flag, first, second), gives=BOOL, raises=False)

    def _object_of_run(self, path: Path, left: Abstract, right: Abstract) -> Abstract | None:
        """One of several containers as one value of the run, whose changes all that hold them see.

        Raises ``NotInRunError`` where they are no objects of the run yet, and could be.
        """
        apart: list[int] = []
        bound: list[int] = []  # what cannot escape any more: it may refer to objects of the entry that refer to it
        for state, side in zip(self.states, (left, right), strict=True):
            for each in alternatives(side):
                if isinstance(each, Ref) and not isinstance(state.get(each.address), ObjectCell):
                    (apart if objects.can_escape(self.machine, each, state) else bound).append(each.address)
                elif not isinstance(each, Ref) and not operands.is_value(each):
                    return None
        older = [address for address in apart if address < self.watermark]
        if bound and not older:
            return None
        if apart:
            raise NotInRunError(older if bound else apart)
        return self.phis.merge(path, self._named(0, left), self._named(1, right))

    def _one_exception(self, path: Path, left: Abstract, right: Abstract) -> Raised | None:
        """One of many exceptions of the run, whose class only the run knows; None where others are among them."""
        kinds: list[tuple[type[BaseException], ...] | None] = []
        for each in (*alternatives(left), *alternatives(right)):
            if not isinstance(each, Raised) or not isinstance(each.symbol, Symbol) or each.args or each.made:
                return None
            if each.cause is not None or each.context is not None or each.keywords:
                return None
            kinds.append(each.kinds if each.kind is None else (each.kind,))
        symbol = self.phis.merge(path, self._named(0, left), self._named(1, right))
        known = [kind for found in kinds if found is not None for kind in found]
        if None in kinds:
            return Raised(None, symbol=symbol)
        every = tuple(dict.fromkeys(known))
        return Raised(every[0], symbol=symbol) if len(every) == 1 else Raised(None, symbol=symbol, kinds=every)

    def _named(self, side: int, value: Abstract) -> Abstract:
        """The value of the run that ``value`` is."""
        if isinstance(value, Union):
            given = (value.flag, self._named(side, value.first), self._named(side, value.second))
            with self.phis.at(side):
                return pure(self.machine, "choose", given, raises=False)
        if isinstance(value, Ref):
            with self.phis.at(side):
                return objects.looked_into(self.machine, value)
        if isinstance(value, Raised):
            assert value.symbol is not None
            return value.symbol
        return value

    # What one side alone knows

    def exported(self, path: Path, side: int, value: Abstract) -> Abstract:
        """A value of one side behind the construct, which is read only if that side was taken."""
        if isinstance(value, Symbol):
            return value if self.phis.sees(value.ir) else self.phis.alone(path, side, value)
        if isinstance(value, Ref):
            partner = self._partners[side].get(value.address)
            if partner is not None:
                return Ref(self._pairs[(value.address, partner) if side == 0 else (partner, value.address)])
            self._export_address(path, side, value.address)
            return value
        if isinstance(value, Function):
            for frame in value.frames:
                self._export_address(path, side, frame)
        parts = iter(range(1_000_000))  # below the kind: in another attempt of a loop the value may be of another one
        return rebuilt(value, lambda part: self.exported((*path, type(value), next(parts)), side, part))

    def exported_cell(self, path: Path, side: int, cell: Cell) -> Cell:
        """The same of a cell."""
        return cell.rebuilt(lambda name, value: self.exported((*path, name), side, value))

    def _export_address(self, path: Path, side: int, address: int) -> None:
        if address < self.watermark or address in self._exported:
            return
        self._exported.add(address)
        state = self.states[side]
        cell = state.get(address)
        assert isinstance(cell, Cell), "a reference names no cell"
        made = self.exported_cell((*path, "cell"), side, cell)
        self.joined.put(address, PoisonCell(objects.GIVEN) if address in self._given[side] else made)
        if isinstance(cell, HandleCell) and isinstance(made, HandleCell) and made.holes != cell.holes:
            for base, count in self._counts_below(side, cell).items():
                self.joined.put(
                    ("count", cell.path + base, made.holes), self.exported((*path, "count", base), side, count)
                )
        for name in names_of(cell):
            held = state.get((address, name))
            assert isinstance(held, Abstract)
            self.joined.put((address, name), self.exported((*path, name), side, held))

    # Objects

    def _references(self, path: Path, left: Ref, right: Ref) -> Abstract:
        young = left.address >= self.watermark, right.address >= self.watermark
        if left.address == right.address:
            if all(young):  # made before the sides parted, as seen from a construct around them
                self._pair(path, left.address, right.address)
            return left
        moves = self.phis.flag is None and young == (False, True) and self._moves(path, left, right)
        if not (all(young) or moves) or not self._is_free(left.address, right.address):
            return self._union(path, left, right)
        cells = self.states[0].get(left.address), self.states[1].get(right.address)
        lists = all(isinstance(cell, ListCell | GrownCell) for cell in cells)
        if type(cells[0]) is not type(cells[1]) and not lists:
            return self._union(path, left, right)
        if moves:
            self._moved[path] = (left.address, right.address)
        return self._pair(path, left.address, right.address)

    def _moves(self, path: Path, left: Ref, right: Ref) -> bool:
        """Return whether only the name at ``path`` holds the object from before a loop, and that of a round."""
        if len(path) > 1 and (path[-1] != "core" or path[:-2] not in self._moved):
            return False
        skip = (*path[:1], *self._dead, *self._moved.get(path[:-2], ()))
        return not any(
            self.machine.is_held(value, state, skip) for value, state in zip((left, right), self.states, strict=True)
        )

    def _is_free(self, left: int, right: int) -> bool:
        """Return whether two objects can be one behind the construct: neither is one with another object already."""
        if left in self._exported or right in self._exported:
            return False
        return self._partners[0].get(left, right) == right and self._partners[1].get(right, left) == left

    def _pair(self, path: Path, left: int, right: int) -> Abstract:
        known = self._pairs.get((left, right))
        if known is not None:
            return Ref(known)
        one, other = self.states[0].get(left), self.states[1].get(right)
        assert isinstance(one, Cell)
        assert isinstance(other, Cell)
        address = self._pairs[left, right] = left if left == right else self.phis.address(path)
        self._partners[0][left], self._partners[1][right] = right, left
        if {left, right} & self.machine.read_only:
            self.machine.read_only.add(address)
        try:
            self.joined.put(address, self.cell((*path, "cell"), one, other, {left, right}))
        except NoCommonFormError as reason:
            self.joined.put(address, self._apart(path, reason.poison, (left, right), (one, other)))
            return Ref(address)
        if left in self._given[0] or right in self._given[1]:
            self.joined.put(address, PoisonCell(objects.GIVEN))
        for name in dict.fromkeys((*names_of(one), *names_of(other))):
            place, partner = self.states[0].get((left, name)), self.states[1].get((right, name))
            assert isinstance(place, Abstract)
            assert isinstance(partner, Abstract)
            self.joined.put((address, name), self.value((*path, name), place, partner))
        return Ref(address)

    def cell(self, path: Path, left: Cell, right: Cell, own: Collection[Place]) -> Cell:
        """Two cells of one object, whose addresses are ``own``. Raises ``NoCommonFormError``."""
        if left is right and self.phis.fixed(path) and self._is_seen_cell(left):
            return left
        if _is_apart(left) or _is_apart(right):
            raise NoCommonFormError(_no_common_form(self.machine))
        if isinstance(left, PoisonCell) or isinstance(right, PoisonCell):
            return self._instances_of_run(path, (left, right), own)
        if isinstance(left, ListCell | GrownCell) and isinstance(right, ListCell | GrownCell):
            return self._lists(path, left, right, own)
        if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS) and not _have_one_form(left, right):
            return self._in_run(path, (left, right), own)
        joined: Callable[..., Cell | None] | None = None
        if type(left) is type(right):
            joined = getattr(self, _FORMS[type(left)])
        found = None if joined is None else joined(path, left, right)
        if found is None:
            raise NoCommonFormError(_no_common_form(self.machine))
        return found

    def _apart(self, path: Path, poison: Poison, own: tuple[Place, Place], cells: tuple[Cell, Cell]) -> Cell:
        """One object whose cells have no common form: its names mean a union of objects, which nothing else holds.

        No use of it is captured where it can't be one.
        """
        values: list[Abstract] = []
        levels = self.machine.objects.levels
        level = 1 + max(levels.get(place, 0) for place in own)
        if level > MAX_APART:
            return PoisonCell(poison)
        for side, cell in enumerate(cells):
            if isinstance(cell, PoisonCell) and _is_apart(cell):
                assert cell.value is not None
                values.append(current(self.states[side], cell.value))
            elif isinstance(cell, _APART) and self.phis.flag is not None and own[side] not in self._given[side]:
                address = self.machine.allocate()
                levels[address] = level
                if own[side] in self.machine.read_only:
                    self.machine.read_only.add(address)
                self.states[side].put(address, cell)
                values.append(Ref(address))
            else:
                return PoisonCell(poison)
        value = self._union((*path, "apart"), *values)
        if not isinstance(value, Union | Ref):
            return PoisonCell(poison)
        self.machine.note_apart(value)
        return PoisonCell(poison, value)

    def _instances_of_run(self, path: Path, cells: tuple[Cell, Cell], own: Collection[Place]) -> Cell:
        """An object that a container of the run holds after one side at least: it becomes one on the other side too."""
        poison = next(cell.poison for cell in cells if isinstance(cell, PoisonCell))
        values: list[Symbol] = []
        for side, cell in enumerate(cells):
            if isinstance(cell, PoisonCell):
                if not isinstance(cell.value, Symbol):
                    return PoisonCell(cell.poison)
                values.append(cell.value)
                continue
            (address,) = [each for each in own if self.states[side].get(each) is cell]
            assert type(address) is int
            if not self._can_be_instance_of_run(side, Ref(address)):
                return PoisonCell(poison)
            raise NotInRunError([address], side)
        value = self.value((*path, "value"), *values)
        return PoisonCell(poison, value if isinstance(value, Symbol) else None)

    def _can_be_instance_of_run(self, side: int, value: Ref) -> bool:
        state = self.states[side]
        return isinstance(state.get(value.address), InstanceCell) and objects.can_escape(self.machine, value, state)

    def _check_stored(self, side: int, values: Sequence[Abstract], own: Collection[Place]) -> None:
        """Raise ``NoCommonFormError`` where no container of the run can take ``values`` at the end of a side.

        Raises ``NotInRunError`` for objects that have to be in the run for that.
        """
        skip = {*own, *self._dead}
        held = reached_from(self.states[side], values)
        apart = [address for address in held if self._can_be_instance_of_run(side, Ref(address))]
        if not apart and self.phis.flag is None:
            # Objects that refer to each other: in a loop the older ones may be in the run before they do.
            older = [address for address in held if address < self.watermark]
            apart = [address for address in older if self._can_be_instance_of_run(0, Ref(address))]
        if apart:
            raise NotInRunError(apart, side)
        apart = [value for value in values if not self.machine.can_be_stored(value, skip, self.states[side])]
        levels = self.machine.objects.levels
        if any(address in levels for address in own):
            # One of several already: another flag for each item would double their number each time.
            held = [value.address for value in apart if isinstance(value, Ref)]
            if 0 < len(held) == len(apart) and all(
                objects.can_escape(self.machine, value, self.states[side]) for value in apart
            ):
                raise NotInRunError(held, side)
        if apart:
            raise NoCommonFormError(_no_common_form(self.machine))

    def _in_run(self, path: Path, cells: tuple[Container, Container], own: Collection[Place]) -> Cell:
        """Two containers of different keys, items or lengths: an object of the run, made at the end of each side."""
        made = [self._made_in_run(side, cell, own) for side, cell in enumerate(cells)]
        found = self._run_objects(path, *made)
        if found is None:
            raise NoCommonFormError(_no_common_form(self.machine))
        return found

    def _made_in_run(self, side: int, cell: Container, own: Collection[Place]) -> ObjectCell:
        if isinstance(cell, ObjectCell):
            return cell
        self._check_stored(side, list(_held_by(cell)), own)
        if any(address in self.machine.read_only or self.machine.is_watched(address) for address in own):
            raise NoCommonFormError(_no_common_form(self.machine))
        with self._giving(side, own):
            return objects.escaped(self.machine, cell)

    @contextmanager
    def _giving(self, side: int, own: Collection[Place]) -> Generator[None]:
        """Append to the end of a side what puts a container together, which alone holds its items behind the construct.

        The state of that side stays as it is: what is put together belongs to this join.
        """
        machine = self.machine
        with self.phis.at(side):
            around, machine.state = machine.state, machine.state.child()
            try:
                with machine.giving({*own, *self._dead}):
                    yield
                around.holds_foreign |= machine.state.holds_foreign
                changed = machine.state.changed_since(around)
                self._given[side].update(place for place in changed if type(place) is int and place in around)
            finally:
                machine.state = around

    def _values(self, path: Path, left: Sequence[Abstract], right: Sequence[Abstract]) -> tuple[Abstract, ...]:
        pairs = enumerate(zip(left, right, strict=True))
        return tuple(self.value((*path, index), one, other) for index, (one, other) in pairs)

    def _frames(self, _path: Path, left: FrameCell, right: FrameCell) -> Cell | None:
        return FrameCell(left.names | right.names)

    def _parts(self, path: Path, left: Cell, right: Cell) -> Cell | None:
        """Two cells that differ at most in the values that they hold, part by part."""
        if left.shape() != right.shape():
            return None
        others = iter(right.inner())
        return left.rebuilt(lambda name, part: self.value((*path, name), part, next(others)))

    def _sets(self, _path: Path, left: SetCell, right: SetCell) -> Cell | None:
        return left if left.items == right.items else None

    def _instances(self, _path: Path, left: InstanceCell, right: InstanceCell) -> Cell | None:
        if left.kind is not right.kind:
            return None
        return InstanceCell(left.kind, tuple(dict.fromkeys((*left.names, *right.names))))

    def _generators(self, path: Path, left: GeneratorCell, right: GeneratorCell) -> Cell | None:
        names = [name for name, _ in left.given]
        same_code = (left.definition, left.frames, left.used) == (right.definition, right.frames, right.used)
        if not same_code or names != [name for name, _ in right.given]:
            return None
        values = self._values(path, [value for _, value in left.given], [value for _, value in right.given])
        given = tuple(zip(names, values, strict=True))
        return dataclasses.replace(left, given=given, running=left.running or right.running)

    def _branch_arrays(self, path: Path, left: BranchArrayCell, right: BranchArrayCell) -> Cell | None:
        if (left.path, left.numbers, left.columns) != (right.path, right.numbers, right.columns):
            return None
        if left.contexts is not right.contexts or len(left.holes) != len(right.holes):
            return None
        core = self._references((*path, "core"), Ref(left.core), Ref(right.core))
        if not isinstance(core, Ref):
            return None
        count = self.value((*path, "count"), left.count, right.count)
        return dataclasses.replace(left, count=count, core=core.address, holes=self._holes(path, left, right))

    def _run_objects(self, path: Path, left: ObjectCell, right: ObjectCell) -> Cell | None:
        if left.kind is not right.kind:
            return None
        value = self.value((*path, "value"), left.value, right.value)
        if not isinstance(value, Symbol):
            return None
        domain = self.phis.domain((*path, "domain"), left.domain, right.domain)
        return ObjectCell(value, left.kind, left.ordered and right.ordered, domain)

    def _is_seen_cell(self, cell: Cell) -> bool:
        seen = True

        def look(_name: Any, value: Abstract) -> Abstract:
            nonlocal seen
            seen = seen and self._is_seen(value)
            return value

        cell.rebuilt(look)
        return seen

    def _lists(
        self, path: Path, left: ListCell | GrownCell, right: ListCell | GrownCell, own: Collection[Place]
    ) -> Cell:
        if isinstance(left, ListCell) and isinstance(right, ListCell) and len(left.items) == len(right.items):
            pairs = zip(left.items, right.items, strict=True)
            return ListCell(tuple(self.value((*path, index), *pair) for index, pair in enumerate(pairs)))
        element = self._element((left, right), own)
        values = [self._list_value(side, cell, element, own) for side, cell in enumerate((left, right))]
        merged = self.value((*path, "value"), *values)
        assert isinstance(merged, Symbol)
        return GrownCell(merged)

    def _element(self, cells: Sequence[ListCell | GrownCell], own: Collection[Place]) -> Type:
        kinds: set[Type] = set()
        for side, cell in enumerate(cells):
            if isinstance(cell, GrownCell):
                kind = cell.value.type
                kinds.add(kind.element if isinstance(kind, ListType) else ANY)
                continue
            self._check_stored(side, cell.items, own)
            for item in cell.items:
                kinds.add(type_of_value(self.machine, item) if _is_scalar(item) else ANY)
        return kinds.pop() if len(kinds) == 1 else ANY

    def _list_value(self, side: int, cell: ListCell | GrownCell, element: Type, own: Collection[Place]) -> Abstract:
        if isinstance(cell, GrownCell):
            return cell.value
        with self._giving(side, own):
            items = objects.handed_over(self.machine, cell.items)
            return pure(self.machine, "list", items, gives=list_of(element), raises=False)

    def _handles(self, path: Path, left: HandleCell, right: HandleCell) -> HandleCell | None:
        found = unified(left, right)
        if found is None or left.language is not right.language:
            return None
        core = self._references((*path, "core"), Ref(left.core), Ref(right.core))
        if not isinstance(core, Ref):
            return None
        numbers = [self.value((*path, "hole", index), *pair) for index, pair in enumerate(found[1])]
        holes = tuple(number.ir for number in numbers if isinstance(number, Symbol))
        assert len(holes) == len(numbers), "the numbers in holes differ"
        if (found[0], holes) != (left.path, left.holes) or (left.path, left.holes) != (right.path, right.holes):
            counts = self._counts_below(0, left), self._counts_below(1, right)
            for base in dict.fromkeys((*counts[0], *counts[1])):
                count = self.value((*path, "count", base), *(held.get(base, ZERO) for held in counts))
                self.joined.put(("count", found[0] + base, holes), count)
        result = self.value((*path, "result"), left.result, right.result)
        return HandleCell(core.address, found[0], holes, left.language, result)

    def _counts_below(self, side: int, cell: HandleCell) -> dict[str, Abstract]:
        """Return how many ids there are on the bases below the path of a handle, by what follows that path."""
        found: dict[str, Abstract] = {}
        for place, count in self.states[side].all().items():
            if type(place) is tuple and place[0] == "count" and place[2] == cell.holes:
                base = place[1]
                if base.startswith(f"{cell.path}/") and isinstance(count, Abstract):
                    found[base[len(cell.path) :]] = count
        return found

    def _holes(
        self, path: Path, left: HandleCell | BranchArrayCell, right: HandleCell | BranchArrayCell
    ) -> tuple[Value, ...]:
        holes: list[Value] = []
        for index, pair in enumerate(zip(left.holes, right.holes, strict=True)):
            number = self.value((*path, "hole", index), Symbol(pair[0]), Symbol(pair[1]))
            assert isinstance(number, Symbol)
            holes.append(number.ir)
        return tuple(holes)

    def _cores(self, path: Path, left: CoreCell, right: CoreCell) -> Cell | None:
        lent = [context for context in (left.context, right.context) if isinstance(context, Lent)]
        if lent and (len(lent) < 2 or lent[0].array != lent[1].array):
            return None
        context = self.value((*path, "context"), left.context, right.context)
        assert isinstance(context, Symbol)
        chat, bare, unsure = left.chat, left.bare, left.unsure or right.unsure
        if (left.chat, left.bare) != (right.chat, right.bare):
            # What is not known here is checked in the run.
            chat, bare = None, False
            unsure = any(side.bare or (side.unsure and not side.chat) for side in (left, right))
        return CoreCell(
            context,
            tuple(dict.fromkeys((*left.names, *right.names))),
            tuple(dict.fromkeys((*left.metas, *right.metas))),
            answer=self._answer(path, left.answer, right.answer),
            role=left.role if left.role == right.role else ROLE_UNKNOWN,
            chat=chat,
            bare=bare,
            unsure=unsure,
        )

    def _answer(self, path: Path, left: Abstract | None, right: Abstract | None) -> Abstract | None:
        """The answer of the open turn. Whether there is one is only kept where the program asks for it."""
        if left is None and right is None:
            return None
        sides = [_presence(UNBOUND if side is None else side) for side in (left, right)]
        missing = any(flag is not TRUE for flag, _ in sides)
        known = all(isinstance(value, Unbound) or _is_scalar(value) for _, value in sides)
        if not known or (missing and TRACKED not in self.machine.written):
            return UNSURE
        found = self.value((*path, "answer"), UNBOUND if left is None else left, UNBOUND if right is None else right)
        return UNSURE if isinstance(found, Poison) else found


Container = ListCell | GrownCell | DictCell | SetCell | ObjectCell
_APART = (ListCell, GrownCell, DictCell, SetCell, BranchesCell)
"""Cells of which an object may have one on one way through a condition, and another one on the other way."""
_CONTAINERS = (ListCell, GrownCell, DictCell, SetCell, ObjectCell)


def _distinct(value: Abstract) -> list[Abstract]:
    """The objects one of which ``value`` is, each once."""
    found: list[Abstract] = []
    for each in alternatives(value):
        if not any(same(each, other) for other in found):
            found.append(each)
    return found


def _is_apart(cell: Cell) -> bool:
    return isinstance(cell, PoisonCell) and isinstance(cell.value, Union | Ref)


def _have_one_form(left: Container, right: Container) -> bool:
    """Return whether two containers are joined part by part."""
    if isinstance(left, DictCell) and isinstance(right, DictCell):
        return left.kind is not right.kind or _same_keys(left.keys, right.keys)
    if isinstance(left, SetCell) and isinstance(right, SetCell):
        return left.items == right.items
    return type(left) is type(right)


def _held_by(cell: Container) -> Sequence[Abstract]:
    if isinstance(cell, ListCell):
        return cell.items
    return cell.values if isinstance(cell, DictCell) else ()


_FORMS: dict[type[Cell], str] = {
    FrameCell: "_frames",
    DictCell: "_parts",
    SetCell: "_sets",
    InstanceCell: "_instances",
    IteratorCell: "_parts",
    GeneratorCell: "_generators",
    HandleCell: "_handles",
    CoreCell: "_cores",
    BranchesCell: "_parts",
    BranchArrayCell: "_branch_arrays",
    RowsCell: "_parts",
    CollectedCell: "_parts",
    ObjectCell: "_run_objects",
}
"""The method that joins two cells of a class; None where they have no common form."""


class NotInRunError(Exception):
    """Containers, or objects of the program's, have to be objects of the run at the end of a side, to be joined.

    In loops, those that are older than the loop have to be before it.
    """

    def __init__(self, addresses: Sequence[int], side: int = 0) -> None:
        super().__init__()
        self.addresses = addresses
        self.side = side


class NoCommonFormError(Exception):
    """Two cells of one object can't become one."""

    def __init__(self, poison: Poison) -> None:
        super().__init__()
        self.poison = poison


def _no_common_form(machine: Machine) -> Poison:
    location = machine.graph.location
    where = "" if location is None else f" in line {location.line}"
    return Poison(
        f"this differs between the ways through the condition or loop{where}, and can't become one value",
        "bind it to a text or a number on every way, or use it before",
    )


def _is_scalar(value: Abstract) -> bool:
    """Return whether a phi can hold it."""
    if isinstance(value, Const):
        return type(value.value) in SCALARS or isinstance(value.value, enum.Enum)
    return isinstance(value, Concat | Symbol)


def _may_be_unbound(value: Abstract) -> bool:
    return isinstance(value, Unbound) or (isinstance(value, Union) and isinstance(value.second, Unbound))


def _presence(value: Abstract) -> tuple[Abstract, Abstract]:
    """Return whether there is a value, and which."""
    if isinstance(value, Unbound):
        return FALSE, value
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        return value.flag, value.first
    return TRUE, value


def _alike(left: Abstract, right: Abstract) -> bool:
    """Return whether two values of one class differ at most in the values that they hold."""
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return left.kind is right.kind
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        return not isinstance(left.function, str) or left.function == right.function
    if isinstance(left, Partial) and isinstance(right, Partial):
        return list(left.kwargs) == list(right.kwargs)
    if isinstance(left, View) and isinstance(right, View):
        return left.what == right.what
    if isinstance(left, RoleTurn) and isinstance(right, RoleTurn):
        return left.role == right.role
    if isinstance(left, Raised) and isinstance(right, Raised):
        shapes = [(each.kind, each.made, each.symbol is None, list(each.keywords)) for each in (left, right)]
        return shapes[0] == shapes[1]
    return not isinstance(left, Appended)


def _same_keys(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(
        type(one) is type(other) and one == other for one, other in zip(left, right, strict=True)
    )

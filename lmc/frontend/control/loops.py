"""Loops: unrolled where the number of rounds is known, a fixed point where only the run counts them.

A ``cf.loop`` is made as a rotated loop: its condition is computed before the first round and at the
end of each, and the op's condition only passes on. The header of the loop is the join of the state before it and the
state at the end of a round; rounds are interpreted until the header no longer changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import Break, CaptureBreak
from lmc.frontend.control.conditions import (
    adopt,
    branch,
    common,
    narrow,
    operand_at,
    origin_of,
    scope,
    unused,
)
from lmc.frontend.control.join import UNSURE, Join, NotInRunError, Path
from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import merged_domain, operand, pure, united
from lmc.frontend.heap.cells import Cell, ObjectCell
from lmc.frontend.heap.reach import names_of
from lmc.frontend.heap.state import Content, Place, State
from lmc.frontend.heap.values import (
    FALSE,
    UNBOUND,
    Abstract,
    Concat,
    Const,
    Domain,
    Function,
    Lent,
    Ref,
    Symbol,
    Tuple,
    Union,
    alternatives,
    parts_of,
    rebuilt,
    same,
)
from lmc.frontend.machine.budget import MAX_ATTEMPTS, MAX_GROWTHS, MAX_SELECTED
from lmc.frontend.machine.exits import NORMAL, Exit, Left, Outcome, Way
from lmc.frontend.machine.machine import Evaluated, Loops
from lmc.ir.builder import Builder
from lmc.ir.core import Value, walk
from lmc.ir.dialects.core_ops import BreakOp
from lmc.ir.dialects.region_ops import ConditionOp, LoopOp, YieldOp
from lmc.ir.ids import without_holes
from lmc.ir.types import BOOL, Type

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


@dataclass(slots=True, eq=False)
class Slot:
    """A value that rounds carry: the parameter of the body, what it begins with, and what a round gives."""

    parameter: Symbol
    initial: Any = None
    back: Any = None
    attempt: int = 0


def is_evaluated(machine: Machine) -> bool:
    """Return whether the loop that begins now was one of the graph in the attempt before."""
    return _key(machine) in machine.loops.known


def _key(machine: Machine) -> Any:
    """Return which loop of the attempt begins now."""
    place = machine.graph.location, len(machine.activations)
    return *place, machine.loops.count[place]


class LoopPhis:
    """Phis of a ``cf.loop``: one slot for each path whose value a round changes. They stay from attempt to attempt."""

    def __init__(self, machine: Machine, entry: State, around: Builder, watermark: int) -> None:
        self.machine = machine
        self.watermark = watermark
        self.flag: Symbol | None = None
        self.slots: dict[Path, Slot] = {}
        self.grew = False
        self.attempt = 0
        self.back: State = entry
        self.body: Builder | None = None
        self.entry = entry
        self._around = around
        self._addresses: dict[Path, int] = {}
        self._domains: dict[Path, tuple[Domain, int]] = {}
        self._candidates: dict[Path, list[Abstract]] = {}
        self._inside: set[Value] = set()
        self._expected: frozenset[Path] = frozenset()

    def expect(self, last: Evaluated, target: int, dead: frozenset[Place]) -> tuple[dict[Place, None], State]:
        """Return the places that the header is expected to change, and that header.

        It carries every place that the last evaluation carried and that has a value here.
        """
        graph = self.machine.graph
        found = [_moved((place,), last.target, target)[0] for place in last.places]
        places = dict.fromkeys(place for place in found if place in self.entry)
        for known, symbol in last.slots.items():
            path = _moved(known, last.target, target)
            if path[0] in places or type(path[0]) is str:
                self.slots[path] = Slot(dataclasses.replace(symbol, ir=graph.value(symbol.type)))
        self._expected = frozenset(path[:end] for path in self.slots for end in range(1, len(path) + 1))
        self.begin()
        self.body = graph.builder.nested()
        join = Join(self.machine, self, (self.entry, self.entry), self.entry, self.watermark)
        header = join.run(list(places), dead)
        self._expected = frozenset()
        used = {path: slot for path, slot in self.slots.items() if slot.attempt or type(path[0]) is str}
        self.slots = used
        return places, header

    def begin(self) -> None:
        """Another attempt begins."""
        self.grew = False
        self.attempt += 1

    def parameters(self) -> dict[Path, Symbol]:
        """Return what this attempt carries, by path."""
        return {path: slot.parameter for path, slot in self.slots.items() if slot.attempt == self.attempt}

    def has_idle(self) -> bool:
        """Return whether this attempt carries what no round changes."""
        return any(slot.back == slot.parameter.ir for slot in self.slots.values() if slot.attempt == self.attempt)

    def end(self, body: Builder, back: State) -> None:
        """A round was interpreted."""
        self.body, self.back = body, back
        self._inside = {value for op in body.ops for value in op.results}
        self._inside |= {slot.parameter.ir for slot in self.slots.values()}

    def sees(self, value: Value) -> bool:
        """Return whether it was there before the loop."""
        return value not in self._inside

    def fixed(self, path: Path) -> bool:
        """Return what was carried once stays carried."""
        return path not in self.slots and path not in self._expected

    def selected(self, path: Path, left: Abstract, right: Abstract) -> Abstract | None:
        """Return which of a few objects older than the loop a place names: one flag for each of them but the last."""
        found = [*alternatives(left), *alternatives(right)]
        if not all(isinstance(each, Ref) and each.address < self.watermark for each in found):
            return None
        known = self._candidates.setdefault(path, [])
        for each in found:
            if not any(same(each, other) for other in known):
                known.append(each)
                self.grew = True
        if len(known) > MAX_SELECTED:
            return None
        value = known[-1]
        for number in reversed(range(len(known) - 1)):
            flags = [self._is_one(side, each, known[number]) for side, each in enumerate((left, right))]
            value = Union(self.merge((*path, "is", number), *flags), known[number], value)
        return value

    def _is_one(self, side: int, value: Abstract, wanted: Abstract) -> Abstract:
        if not isinstance(value, Union):
            return Const(same(value, wanted))
        first, second = (self._is_one(side, each, wanted) for each in (value.first, value.second))
        if same(first, second):
            return first
        with self.at(side):
            return pure(self.machine, "choose", (value.flag, first, second), gives=BOOL, raises=False)

    def address(self, path: Path) -> int:
        """The same object in each attempt."""
        if path not in self._addresses:
            self._addresses[path] = self.machine.allocate()
        return self._addresses[path]

    def domain(self, path: Path, left: Domain, right: Domain) -> Domain:
        """All texts of all attempts so far; not known where they become more again and again."""
        found = united(left, right)
        known, growths = self._domains.get(path, (found, 0))
        wider = united(known, found)
        if wider != known:
            growths += 1
            wider = wider if growths <= MAX_GROWTHS else None
            self.grew = True
        self._domains[path] = (wider, growths)
        return wider

    @contextmanager
    def at(self, side: int) -> Generator[None]:
        """Append to the block before the loop, or to the end of a round."""
        builder = self._around if side == 0 else self.body
        assert builder is not None
        with self.machine.appending(builder, self.entry if side == 0 else self.back):
            yield

    def merge(self, path: Path, left: Abstract, right: Abstract) -> Symbol:
        """The slot of a path."""
        if left is right and isinstance(left, Lent):
            return left  # which has no value
        initial, back = operand_at(self, 0, left), operand_at(self, 1, right)
        kind = common(initial.type, back.type)
        foreign, local = initial.foreign or back.foreign, initial.local or back.local
        domain = self.domain(path, merged_domain(left), merged_domain(right))
        slot = self._slot(path, kind, origin_of(right, left), domain=domain, foreign=foreign, local=local)
        slot.initial, slot.back, slot.attempt = initial.ir, back.ir, self.attempt
        return slot.parameter

    def alone(self, path: Path, side: int, value: Symbol) -> Symbol:
        """A slot of what only a round gives."""
        if side == 0:
            return value
        known = self.slots.get(path)
        with self.at(0):
            filler, kind = unused(self.machine, value.type if known is None else known.parameter.type)
        domain = self.domain(path, value.domain, value.domain)
        flags = {"foreign": value.foreign, "local": value.local}
        slot = self._slot(path, common(kind, value.type), value.origin, domain=domain, **flags)
        slot.initial, slot.back, slot.attempt = filler, value.ir, self.attempt
        return dataclasses.replace(value, ir=slot.parameter.ir, expression=None, domain=domain)

    def _slot(self, path: Path, kind: Type, origin: str, *, domain: Domain, foreign: bool, local: bool) -> Slot:
        found = self.slots.get(path)
        if found is None:
            made = Symbol(self.machine.graph.value(kind), origin, domain=domain, foreign=foreign, local=local)
            found = self.slots[path] = Slot(made)
            self.grew = True
            return found
        held = found.parameter
        wider = common(held.type, kind)
        foreign, local = foreign or held.foreign, local or held.local
        if (wider, foreign, local) != (held.type, held.foreign, held.local):
            made = Symbol(self.machine.graph.value(wider), origin, domain=domain, foreign=foreign, local=local)
            found.parameter, self.grew = made, True
        if found.parameter.domain != domain:
            found.parameter = dataclasses.replace(found.parameter, domain=domain)
        return found


@dataclass(slots=True, eq=False)
class LoopParts:
    """The parts of a loop: ``test`` returns a flag, or a constant, for another round, ``body`` interprets one.

    ``otherwise`` is its ``else``; ``target`` identifies the exits of its ``break`` and ``continue``. ``continues``:
    there may be a ``continue``. ``dead`` are the places that no further round and nothing behind the loop reads before
    it is bound. ``inner`` are the loops inside as they were when the first rounds were tried.
    """

    target: int
    test: Callable[[], Abstract]
    body: Callable[[], None]
    otherwise: Callable[[], None] | None = None
    continues: bool = True
    dead: frozenset[Any] = frozenset()
    limit: int | None = None
    inner: dict[Any, Evaluated] = field(default_factory=dict[Any, Evaluated])


def run_loop(machine: Machine, parts: LoopParts) -> None:
    """Interpret a loop whose number of rounds only a run knows."""
    leave = Exit("break", parts.target)

    def whole() -> None:
        _rounds(machine, parts, leave)

    def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == leave else (exit, way.payload)

    adopt(machine, scope(machine, whole, settle))


def _rounds(machine: Machine, parts: LoopParts, leave: Exit) -> None:
    go = parts.test()
    if isinstance(go, Const) and not go.value:
        if parts.otherwise is not None:
            parts.otherwise()
        return
    outcome = _fixed_point(machine, parts, go, leave)
    if parts.otherwise is not None:
        narrow(machine, outcome)
        parts.otherwise()
        return
    narrow(machine, outcome)


def _fixed_point(machine: Machine, parts: LoopParts, go: Abstract, leave: Exit) -> Outcome:
    """Interpret rounds until the header is stable, and append the loop; gives the exits behind it."""
    key = _key(machine)
    machine.loops.count[key[:2]] += 1
    last = machine.loops.known.get(key)
    found = None if last is None else _evaluated(machine, parts, go, leave, key=key, last=last)
    found = found or _evaluated(machine, parts, go, leave, key=key)
    assert found is not None
    return found


def _evaluated(
    machine: Machine, parts: LoopParts, go: Abstract, leave: Exit, *, key: Any, last: Evaluated | None = None
) -> Outcome | None:
    """The same, beginning with the header of the ``last`` evaluation; None where that carries too much."""
    graph, loops = machine.graph, machine.loops
    entry, watermark = machine.state, machine.watermark()
    location, counts, mark = graph.location, dict(machine.host_counts), len(graph.builder.ops)
    guards = len(graph.value_guards)
    phis = LoopPhis(machine, entry, graph.builder, watermark)
    header, places, shapes = entry.child(), dict[Place, None](), None
    inner = parts.inner
    exits: list[Exit] = [NORMAL]

    def drop() -> None:
        machine.state, machine.host_counts = entry, dict(counts)
        machine.drop_ops(graph.builder, mark)
        del graph.value_guards[guards:]

    if last is not None:
        try:
            places, header = phis.expect(last, parts.target, parts.dead)
        except NotInRunError:
            drop()
            return None
        shapes, inner = _shapes(header, phis), {**inner, **last.inner}
    for _ in range(MAX_ATTEMPTS):
        drop()
        phis.begin()
        machine.state, machine.loops = header.child(), Loops(inner)
        try:
            with graph.nested() as body:
                outcome = scope(machine, lambda: _round(machine, parts), lambda exit, way: _settle(exits, exit, way))
            inner = {**inner, **machine.loops.met}
        finally:
            machine.loops = loops
        graph.location = location
        if NORMAL not in outcome.ways:  # no run gets to the end of a round, not even by a break
            if phis.attempt > 1 and last is None:
                raise CaptureBreak(_first_break(body))
            drop()
            return _once(machine, parts, go) if last is None else None
        way = outcome.ways[NORMAL]
        left = _LeftBy(exits, leave, parts.otherwise is not None)
        phis.end(body, way.state)
        try:
            header = _header(machine, phis, parts, way=way, places=places, left=left)
        except NotInRunError as reason:
            drop()
            if last is not None:
                return None
            for address in reason.addresses:
                objects.escape(machine, Ref(address))
            return _evaluated(machine, parts, go, leave, key=key)
        found = _shapes(header, phis)
        if not phis.grew and found == shapes:
            if last is not None and phis.has_idle():
                drop()
                return None
            loops.met[key] = Evaluated(parts.target, tuple(places), phis.parameters(), inner)
            return _append(machine, parts, phis, header=header, body=body, go=(go, _parts(way)[0]), left=left)
        shapes = found
    raise machine.stop(
        "what this loop changes takes no form that can be carried from round to round",
        "bind variables before the loop, each to values of one type",
    )


def _header(
    machine: Machine, phis: LoopPhis, parts: LoopParts, *, way: Way, places: dict[Place, None], left: _LeftBy
) -> State:
    """Return what holds at the beginning of the first round and of each further one, and set the phis of ``left``.

    Raises ``NotInRunError`` for containers older than the loop that have to be objects of the run before it.
    """
    graph, body, entry = machine.graph, phis.body, phis.entry
    assert body is not None
    _goes_on, code, value = _parts(way)
    while True:
        ends = len(graph.builder.ops), len(body.ops)
        join = Join(machine, phis, (entry, way.state), entry, phis.watermark)
        places.update((place, None) for place in way.state.changed_since(entry) if not join.is_young(place))
        try:
            header = join.run(list(places), parts.dead)
            if left.is_apart:
                left.code = phis.merge(("exit",), Const(0), code)
            if left.has_payload:
                left.value = join.value(("payload",), UNBOUND, value)
            return header
        except NotInRunError as reason:
            machine.drop_ops(graph.builder, ends[0])
            machine.drop_ops(body, ends[1])
            older = [address for address in reason.addresses if address < phis.watermark]
            if older:
                raise NotInRunError(older) from None
            with phis.at(1):
                for address in reason.addresses:
                    objects.escape(machine, Ref(address))
            phis.end(body, way.state)


def _parts(way: Way) -> tuple[Abstract, ...]:
    """Return whether a round goes on, which exit it took, and what that carries."""
    assert isinstance(way.payload, Tuple)
    return way.payload.items


@dataclass(slots=True, eq=False)
class _LeftBy:
    """The exits of a loop, the first of which is that its test fails, and what tells them apart behind it."""

    exits: list[Exit]
    leave: Exit
    has_otherwise: bool
    code: Symbol | None = None
    value: Abstract | None = None

    @property
    def is_apart(self) -> bool:
        """Return whether it matters behind the loop which way it was left."""
        return self.has_otherwise if self.exits[1:] == [self.leave] else len(self.exits) > 1

    @property
    def has_payload(self) -> bool:
        """Return whether a way out carries a value."""
        return any(exit.kind in ("return", "raise") for exit in self.exits)


def _round(machine: Machine, parts: LoopParts) -> Abstract:
    again = Exit("continue", parts.target)

    def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == again else (exit, way.payload)

    if parts.continues:
        narrow(machine, scope(machine, parts.body, settle))
    else:
        parts.body()
    return parts.test()


def _settle(exits: list[Exit], exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
    """All ways out of a round meet at its end: whether it goes on, which way it was, and what that carries."""
    if exit == NORMAL:
        assert way.payload is not None
        if isinstance(way.payload, Tuple) and way.payload.kind is _Back:
            return NORMAL, way.payload
        return NORMAL, Tuple((way.payload, Const(0), UNBOUND), _Back)
    if exit not in exits:
        exits.append(exit)
    return NORMAL, Tuple((FALSE, Const(exits.index(exit)), way.payload or UNBOUND), _Back)


def _first_break(body: Builder) -> Break:
    """Why no run gets to the end of a round that is not the first one: what the first round did, further ones can't."""
    end = next(op for op in walk((body.block(),)) if isinstance(op, BreakOp))
    return Break(end.location, end.cause, end.remedy)


def _moved(path: Path, target: int, moved: int) -> Path:
    """``path`` where what belongs to a loop itself stands at another address."""
    place = path[0]
    return ((moved, *place[1:]), *path[1:]) if type(place) is tuple and place[0] == target else path


class _Back(tuple[Any, ...]):
    """Marks what ``_settle`` has made."""


def _once(machine: Machine, parts: LoopParts, go: Abstract) -> Outcome:
    """A loop no run of which begins a second round: a condition."""

    def then() -> None:
        _round(machine, parts)

    def skip() -> None:
        return None

    if isinstance(go, Const):
        return scope(machine, then)
    assert isinstance(go, Symbol)
    return branch(machine, go, then, skip)


def _append(
    machine: Machine,
    parts: LoopParts,
    phis: LoopPhis,
    *,
    header: State,
    body: Builder,
    go: tuple[Abstract, Abstract],
    left: _LeftBy,
) -> Outcome:
    graph, entry = machine.graph, phis.entry
    with phis.at(0):
        first = operand(machine, go[0]).ir
    with phis.at(1):
        again = operand(machine, go[1]).ir
    slots = [slot for slot in phis.slots.values() if slot.attempt == phis.attempt]
    body.emit(YieldOp, values=(again, *(slot.back for slot in slots)))
    body.parameters = tuple(slot.parameter.ir for slot in slots)
    flag = graph.value(BOOL)
    inner = tuple(graph.value(slot.parameter.type) for slot in slots)
    names = {slot.parameter.ir: graph.value(slot.parameter.type) for slot in slots}
    condition = graph.builder.nested((flag, *inner))
    condition.emit(ConditionOp, flag=flag, values=inner)
    graph.append(
        LoopOp,
        tuple(names.values()),
        initial=(first, *(slot.initial for slot in slots)),
        limit=parts.limit,
        condition=condition.block(),
        body=body.block(),
        id=f"{without_holes(machine.path)}/@cf.loop",
    )
    watermark = machine.watermark()
    machine.state = entry
    if all(isinstance(each, Const) and each.value for each in go):
        graph.end_unreachable()
        raise Left(Outcome({}, entry, watermark))
    made = _renamed_state(header, entry, names)
    if left.code is None:
        return Outcome({NORMAL: Way(made)}, entry, watermark)
    value = None if left.value is None else _renamed(left.value, names)
    if isinstance(value, Union):
        value = value.first
    ways = {exit: Way(made.child(), value if exit.kind in ("return", "raise") else None) for exit in left.exits}
    code = _renamed(left.code, names)
    tested = left.exits[:1] if len(left.exits) == 2 else left.exits
    flags = {exit: pure(machine, "eq", (code, Const(left.exits.index(exit))), raises=False) for exit in tested}
    return Outcome(ways, entry, watermark, flags)


def _renamed_state(header: State, entry: State, names: dict[Value, Value]) -> State:
    """The header with the loop's results in the place of its parameters."""
    made = entry.child()
    made.tainted, made.holds_foreign = header.tainted, header.holds_foreign
    for place, held in header.changed_since(entry).items():
        if type(place) is tuple and place[0] == "count":
            place = (*place[:2], tuple(names.get(hole, hole) for hole in place[2]))  # noqa: PLW2901
        if isinstance(held, Cell):
            made.put(place, held.rebuilt(lambda _, value: _renamed(value, names)))
        else:
            made.put(place, _renamed(held, names))
    return made


def _renamed(value: Abstract, names: dict[Value, Value]) -> Abstract:
    if isinstance(value, Symbol):
        return dataclasses.replace(value, ir=names[value.ir]) if value.ir in names else value
    return rebuilt(value, lambda part: _renamed(part, names))


def _shapes(header: State, phis: LoopPhis) -> dict[Place, Any]:
    """Return what the header knows, without the addresses of what rounds make, which differ between attempts."""
    order: dict[int, int] = {}
    slots = {slot.parameter.ir: path for path, slot in phis.slots.items()}

    def shape(held: Content) -> Any:
        if isinstance(held, Cell):
            parts: list[Any] = [type(held).__name__, names_of(held)]

            def note(name: Any, value: Abstract) -> Abstract:
                if value is not UNSURE:  # an answer that becomes unsure is no new form: nothing else follows from it
                    parts.append((name, shape(value)))
                return value

            held.rebuilt(note)
            parts.append(held.domain if isinstance(held, ObjectCell) else None)
            return tuple(parts)
        if isinstance(held, Symbol):
            return ("symbol", slots.get(held.ir, held.ir.name))
        if isinstance(held, Const):
            return ("const", (type(held.value), repr(held.value)) if held.is_literal else id(held.value))
        if isinstance(held, Ref):
            return address(held.address)
        if isinstance(held, Function):
            return ("function", id(held.definition), *map(address, held.frames), *map(shape, parts_of(held)))
        texts = tuple(part for part in held.parts if isinstance(part, str)) if isinstance(held, Concat) else ()
        return (type(held).__name__, texts, *map(shape, parts_of(held)))

    def address(number: int) -> Any:
        if number < phis.watermark or number in order:
            return number if number < phis.watermark else ("made", order[number])
        order[number] = len(order)
        cell = header.get(number)
        assert isinstance(cell, Cell)
        return (shape(cell), *(shape(header.get((number, name))) for name in names_of(cell)))

    def is_old(place: Place) -> bool:
        start = place[0] if type(place) is tuple else place
        return type(start) is not int or start < phis.watermark

    found = {place: shape(held) for place, held in header.changed_since(phis.entry).items() if is_old(place)}
    return {**found, "flags": (header.tainted, header.holds_foreign, phis.machine.objects.changed_unseen)}

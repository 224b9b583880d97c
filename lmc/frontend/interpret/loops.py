"""``for`` and ``while``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import CaptureBreak, TooDeepBreak
from lmc.frontend.control.conditions import adopt, branch, scope
from lmc.frontend.control.loops import Evaluated, LoopParts, Loops, is_evaluated, run_loop
from lmc.frontend.emit import objects
from lmc.frontend.emit.known import decided, known_value, length_of
from lmc.frontend.emit.operands import describe, is_value, may_run_code, operand, pure
from lmc.frontend.handles.rows import Over
from lmc.frontend.heap.cells import (
    BranchArrayCell,
    DictCell,
    FrameCell,
    GeneratorCell,
    GrownCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    ObjectCell,
    RowsCell,
)
from lmc.frontend.heap.values import (
    NONE,
    TRUE,
    Abstract,
    Const,
    Partial,
    Poison,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
)
from lmc.frontend.interpret.comprehensions import consume
from lmc.frontend.machine.budget import MAX_UNROLLED_FOR, MAX_UNROLLED_WHILE
from lmc.frontend.machine.exits import NORMAL, Exit, Way
from lmc.frontend.machine.machine import ItemsChangedError
from lmc.frontend.python import foreign as outside
from lmc.frontend.python.iteration import Counted, indexed, items_of, known_items, next_item
from lmc.frontend.python.iteration import over as iterator_over
from lmc.frontend.python.iterators import row
from lmc.frontend.python.library import polyfills
from lmc.frontend.source.pure_types import is_immutable
from lmc.ir.types import ANY, TEXT, ListType

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


class NotKnownError(Exception):
    """Raised if an unrolled loop loses the known value it was unrolled for: it begins again as a loop of the run."""


Given = Sequence[tuple[str, Abstract]]
_TAKING = {enumerate: polyfills.enumerate_, zip: polyfills.zip_}
"""Functions whose iterators take all items of lists at once, and those that take them one by one, as Python does."""


def unrolled(
    machine: Machine,
    node: ast.For | ast.While,
    rounds: Callable[[Callable[[], None]], None],
    given: Given | None = None,
) -> None:
    """Interpret rounds one after the other. ``rounds(once)`` calls ``once`` for each, after it has bound its target.

    ``given`` is what a continuation needs in a round; None where it can't begin in one.
    """
    target = machine.begin_target()
    leave, again = Exit("break", target), Exit("continue", target)

    def settle_round(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == again else (exit, way.payload)

    def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == leave else (exit, way.payload)

    def body() -> None:
        _round(machine, node, target, given)

    def once() -> None:
        adopt(machine, scope(machine, body, settle_round))

    def whole() -> None:
        rounds(once)
        with machine.within(node, "orelse"):
            machine.rules.execute(node.orelse)

    adopt(machine, scope(machine, whole, settle))


def _round(machine: Machine, node: ast.For | ast.While, target: int, given: Given | None) -> None:
    loops = machine.activation.loops
    loops.append(target)
    try:
        with nullcontext() if given is None else machine.within(node, "body", given):
            machine.rules.execute(node.body)
    finally:
        loops.pop()


def run_while(machine: Machine, node: ast.While) -> None:
    """``while test: … else: …``."""

    def rounds(once: Callable[[], None]) -> None:
        depth = len(machine.narrowings)
        for _ in range(MAX_UNROLLED_WHILE):
            machine.at(node)
            flag = decided(machine, machine.rules.test(node.test))
            if not isinstance(flag, Const):
                raise NotKnownError
            if not flag.value:
                return
            if isinstance(node.test, ast.Constant) and len(machine.narrowings) > depth:
                raise NotKnownError
            once()
        raise NotKnownError

    if is_evaluated(machine):
        _counted_while(machine, node)
        return
    around, trial = machine.loops, Loops()

    def first_rounds() -> None:
        machine.loops = trial
        try:
            unrolled(machine, node, rounds, [("enter", TRUE)])
        finally:
            machine.loops = around

    _in_rounds(machine, (id(node), None), first_rounds, lambda: _counted_while(machine, node, trial.met))


def _in_rounds(machine: Machine, key: Any, rounds: Callable[[], None], counted: Callable[[], None]) -> None:
    """``rounds()``, one after the other; ``counted()`` where they are not known, or stand too deep in each other.

    Known rounds say more than a loop of the run: where that has breaks, they end with one instead.
    """
    depth, depths = len(machine.graph.stack), machine.ends.depths[key]

    def tried() -> None:
        machine.ends.in_rounds += 1
        loops, count = machine.loops, machine.loops.count.copy()
        try:
            rounds()
        except TooDeepBreak:
            depths.rounds, loops.count = depth, count
            raise
        finally:
            machine.ends.in_rounds -= 1

    def again() -> None:
        if depth < depths.rounds:
            counted()
        else:
            machine.attempt(by_index, until_too_deep, CaptureBreak)

    def by_index() -> None:
        try:
            counted()
        except CaptureBreak as stop:
            depths.reason = stop.reason
            raise

    def until_too_deep() -> None:
        depths.counted = min(depth, depths.counted)
        around, machine.ends.not_counted = machine.ends.not_counted, depths.reason
        try:
            machine.attempt(rounds, counted, NotKnownError)
        finally:
            machine.ends.not_counted = around

    if depth >= depths.counted:
        until_too_deep()
    elif depth >= depths.rounds:
        again()
    else:
        machine.attempt(tried, again, NotKnownError, TooDeepBreak)


def _counted_while(machine: Machine, node: ast.While, inner: dict[Any, Evaluated] | None = None) -> None:
    target = machine.begin_target()

    def test() -> Abstract:
        machine.at(node)
        flag = machine.rules.test(node.test)
        machine.at(node)
        return flag

    machine.at(node)
    run_loop(
        machine,
        LoopParts(
            target,
            test,
            lambda: _round(machine, node, target, [("enter", TRUE)]),
            _otherwise(machine, node),
            _continues(node.body),
            _dead(machine, node),
            inner=inner or {},
        ),
    )


def _otherwise(machine: Machine, node: ast.For | ast.While) -> Callable[[], None] | None:
    def otherwise() -> None:
        with machine.within(node, "orelse"):
            machine.rules.execute(node.orelse)

    return otherwise if node.orelse else None


def _dead(machine: Machine, node: ast.For | ast.While) -> frozenset[Any]:
    """The names of the running call that no further round and nothing behind the loop reads before they are bound."""
    live = machine.activation.definition.live[0].get(id(node))
    if live is None:
        return frozenset()
    frame = machine.activation.frames[0]
    cell = machine.state.get(frame)
    assert isinstance(cell, FrameCell)
    return frozenset((frame, name) for name in cell.names - live)


def _continues(body: Sequence[ast.stmt]) -> bool:
    """Return whether a ``continue`` in these statements belongs to the loop around them."""
    for node in body:
        if isinstance(node, ast.Continue):
            return True
        inner: list[ast.stmt] = []
        for name in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.ClassDef) or (
                name == "orelse" and isinstance(node, ast.For | ast.While)
            ):
                inner += getattr(node, name, [])
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner += part.body
        if _continues(inner):
            return True
    return False


def run_for(machine: Machine, node: ast.For) -> None:
    """``for target in iterable: … else: …``."""
    iterable = machine.rules.evaluate(node.iter)
    held = machine.cell(iterable)
    if isinstance(held, InstanceCell) and held.kind is polyfills.Count:
        iterable = machine.rules.call(Const(polyfills.endless), [iterable], {})
    if isinstance(iterable, Union | Poison | Unbound):

        def over_one(one: Abstract) -> Abstract:
            _run_over(machine, node, one)
            return NONE

        machine.cases(iterable, over_one)
        return
    _run_over(machine, node, iterable)


def _run_over(machine: Machine, node: ast.For, iterable: Abstract) -> None:
    machine.at(node)
    if isinstance(machine.cell(iterable), BranchArrayCell | RowsCell):
        over = Over(machine, iterable)
        if not over.arrays:
            _partly_known(machine, node, over)
            return
        length = over.length()
        _by_number(machine, node, lambda: length, lambda _: over.item(), over)
        return
    if isinstance(machine.cell(iterable), GeneratorCell):
        assert isinstance(iterable, Ref)
        _over_generator(machine, node, iterable)
        return
    if objects.is_object(machine, iterable.owner if isinstance(iterable, View) else iterable):
        _over_object(machine, node, iterable)
        return
    lazily = _one_by_one(machine, iterable)
    if lazily is not None:
        assert isinstance(iterable, Ref)
        machine.attempt(
            lambda: _over_taken(machine, node, iterable), lambda: _run_over(machine, node, lazily()), ItemsChangedError
        )
        return
    _over_items(machine, node, iterable)


def _one_by_one(machine: Machine, iterable: Abstract) -> Callable[[], Abstract] | None:
    """Return what makes an iterator that takes items of lists one by one in the place of one that has taken all.

    None where that is not an iterator of ``_TAKING`` that only this loop uses.
    """
    cell = machine.cell(iterable)
    if not isinstance(cell, IteratorCell) or cell.index or not isinstance(iterable, Ref) or machine.is_held(iterable):
        return None
    made = cell.made
    if not isinstance(made, Partial) or made.kwargs or not isinstance(made.function, Const):
        return None
    function = _TAKING.get(made.function.value)

    def make() -> Abstract:
        machine.watched = [pair for pair in machine.watched if pair[1].address != iterable.address]
        return machine.rules.call(Const(function), list(made.args), {})

    return None if function is None else make


def _over_taken(machine: Machine, node: ast.For, iterable: Ref) -> None:
    """A loop over items that were taken before. Raises ``ItemsChangedError`` where it changes what they are of."""
    machine.objects.provisional.append(iterable.address)
    try:
        _over_items(machine, node, iterable)
    finally:
        machine.objects.provisional.pop()


def _over_items(machine: Machine, node: ast.For, iterable: Abstract) -> None:
    iterator = _iterator(machine, iterable)
    if isinstance(iterator, Counted):
        _counted_or_known(machine, node, iterator)
        return
    items = indexed(machine, iterator)
    _in_rounds(
        machine,
        (id(node), None if items is None else len(items)),
        lambda: _unrolled_for(machine, node, iterator),
        lambda: _live_for(machine, node, iterable, iterator),
    )


def _counted_or_known(machine: Machine, node: ast.For, items: Counted) -> None:
    """A loop by index; where that can't be captured, and the number of items is known, round by round."""
    if may_run_code(machine, "iter", [operand(machine, items.value)]):
        _over_live(machine, node, items.value)
        return
    if items.value.foreign and items.live is None and items.value.ir not in machine.objects.fixed:
        machine.attempt(
            lambda: _over_copy(machine, node, pure(machine, "list_from", (items.value,))),
            lambda: _over_changing(machine, node, items.value),
            NotKnownError,
        )
        return
    if not isinstance(known_value(machine, length_of(machine, items.value)), int):
        _counted_for(machine, node, items)
        return

    def one_by_one() -> None:
        machine.at(node)
        found = tuple(known_items(machine, items.value, "its rounds are gone through one by one"))
        if items.live is None:
            begun = None if items.iterator is None else machine.cell(items.iterator)
            made = begun.made if isinstance(begun, IteratorCell) else None
            _unrolled_for(machine, node, machine.new(IteratorCell(Tuple(found), 0, made=made)))
            return
        machine.state.put(items.live.address, ListCell(found))
        try:
            _unrolled_for(machine, node, iterator_over(machine, items.live))
        except NotKnownError:
            raise machine.unsupported("a loop over a list that its rounds change") from None

    machine.attempt(lambda: _counted_for(machine, node, items), one_by_one, CaptureBreak)


def _over_object(machine: Machine, node: ast.For, iterable: Abstract) -> None:
    """A loop over an object of the run: by index over a copy where no round changes an object, else live."""
    if objects.kind_of(machine, iterable) is objects.ITERATOR:
        _over_live(machine, node, iterable)
        return
    machine.attempt(
        lambda: _over_copy(machine, node, objects.counted(machine, iterable)),
        lambda: _over_live(machine, node, iterable),
        NotKnownError,
    )


def _over_changing(machine: Machine, node: ast.For, items: Symbol) -> None:
    """A loop over what a tool gave, whose rounds call functions that may change it."""
    if items.ir in machine.objects.copies:
        if machine.objects.provisional:
            raise ItemsChangedError
        raise machine.stop(
            f"{items.origin} is gone over in a loop whose calls may change it",
            "go over a copy: list(x), or declare what the functions do (@lmc.tool(effect=…))",
        )
    _over_live(machine, node, items)


def _over_copy(machine: Machine, node: ast.For, items: Symbol) -> None:
    """A loop over the items as they are now. Raises ``NotKnownError`` where a round may change what they are of."""
    changes, writes = machine.objects.changes, machine.writes
    _counted_for(machine, node, Counted(items), is_own=False)
    if (items.local and machine.objects.changes > changes) or (items.foreign and machine.writes > writes):
        raise NotKnownError


def _over_live(machine: Machine, node: ast.For, iterable: Abstract) -> None:
    """A loop that asks an iterator of the run for each item, as Python does."""
    foreign = isinstance(iterable, Symbol) and iterable.foreign
    kind = iterable.type if isinstance(iterable, Symbol) else ANY
    element = kind.element if isinstance(kind, ListType) else TEXT if kind == TEXT else ANY
    runs_code = foreign and may_run_code(machine, "iter", [operand(machine, iterable)])
    source = outside.iterator(machine, iterable) if runs_code else objects.iterator(machine, iterable)
    target = machine.begin_target()
    place: tuple[int, str] = (target, "item")

    def test() -> Abstract:
        machine.at(node)
        if runs_code:
            goes_on, found = outside.advanced(machine, source)
        else:
            goes_on, found = objects.advanced(machine, source, element, foreign=foreign)
        machine.state.put(place, found)
        return goes_on

    def body() -> None:
        machine.at(node)
        found = machine.state.get(place)
        assert isinstance(found, Symbol)
        machine.rules.assign(
            node.target, replace(found, foreign=foreign or machine.state.holds_foreign, local=not foreign)
        )
        _round(machine, node, target, None)

    run_loop(
        machine, LoopParts(target, test, body, _otherwise(machine, node), _continues(node.body), _dead(machine, node))
    )


def _iterator(machine: Machine, iterable: Abstract) -> Ref | Counted:
    cell = machine.cell(iterable)
    if isinstance(cell, IteratorCell) and not isinstance(cell.source, Symbol):
        assert isinstance(iterable, Ref)
        return iterable
    handled = machine.special("__iter__", iterable)
    if handled is not None:
        raise machine.unsupported(f"going over {describe(machine, iterable)}")
    items = items_of(machine, iterable)
    if isinstance(items, Counted):
        return items
    if items is None:
        if isinstance(iterable, Symbol):
            indexed = iterable.foreign or iterable.type == TEXT or isinstance(iterable.type, ListType)
            return Counted(iterable if indexed else pure(machine, "list_from", (iterable,)))
        raise machine.unsupported(f"going over {describe(machine, iterable)}")
    if isinstance(iterable, Const) and is_immutable(iterable.value):
        iterable = Tuple(tuple(items))
    return iterator_over(machine, iterable)


def _over_generator(machine: Machine, node: ast.For, generator: Ref) -> None:
    def rounds(once: Callable[[], None]) -> None:
        def each(item: Abstract) -> None:
            machine.rules.assign(node.target, item)
            once()

        consume(machine, generator, each)

    unrolled(machine, node, rounds)


def _partly_known(machine: Machine, node: ast.For, over: Over) -> None:
    """Rounds of which it is known how many there are at most: some of what is gone over together is known."""
    count, length = over.known_rounds()
    done = Exit("break", machine.begin_target())

    def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == done else (exit, way.payload)

    def rounds(once: Callable[[], None]) -> None:
        def each() -> None:
            for index in range(count):
                machine.at(node)
                if length is not None:
                    flag = pure(machine, "lt", (Const(index), length), raises=False)
                    adopt(machine, branch(machine, flag, lambda: None, lambda: machine.leave_for(done)))
                over.position = Const(index)
                machine.rules.assign(node.target, over.item())
                once()

        adopt(machine, scope(machine, each, settle))
        over.check()

    unrolled(machine, node, rounds)


def _unrolled_for(machine: Machine, node: ast.For, iterator: Ref) -> None:
    writes = machine.writes

    def rounds(once: Callable[[], None]) -> None:
        for _ in range(MAX_UNROLLED_FOR):
            cell = machine.cell(iterator)
            assert isinstance(cell, IteratorCell)
            if machine.writes > writes and isinstance(cell.source, Const) and not is_immutable(cell.source.value):
                raise machine.stop(
                    "a list or dict from outside the program is gone over in a loop whose calls may change it",
                    "go over a copy: list(x), or declare what the functions do (@lmc.tool(effect=…))",
                )
            source = cell.source.owner if isinstance(cell.source, View) else cell.source
            if isinstance(machine.cell(source), GrownCell | ObjectCell):
                raise NotKnownError
            machine.at(node)
            item = next_item(machine, iterator)
            if item is None:
                return
            machine.rules.assign(node.target, item)
            once()
        raise machine.stop(
            f"this loop has more than {MAX_UNROLLED_FOR} rounds that are known now",
            "pass the list in as an argument of texts or numbers, whose rounds only a run counts",
        )

    with machine.going_over(iterator):
        unrolled(machine, node, rounds, [("iterator", iterator)])


def _live_for(machine: Machine, node: ast.For, iterable: Abstract, iterator: Ref) -> None:
    """A loop by index over what the program knows: a list of its own is read live, as Python does."""
    cell = machine.cell(iterator)
    assert isinstance(cell, IteratorCell)
    if iterator == iterable and machine.is_held(iterator):
        raise machine.unsupported("a loop of the run over an iterator that has a name")
    source = cell.source
    items = indexed(machine, iterator)
    if isinstance(source, Tuple | Const) and items is not None and not cell.index:
        _over_known(machine, node, source, list(items))
        return
    owner = source.owner if isinstance(source, View) else source
    found = machine.cell(owner)
    if isinstance(found, DictCell) and isinstance(owner, Ref) and not cell.index:
        objects.escape(machine, owner)
        _over_object(machine, node, source)
        return
    if not isinstance(found, ListCell | GrownCell) or not isinstance(source, Ref) or cell.index:
        raise machine.unsupported("a loop over a dict or an iterator that its rounds change")
    if isinstance(found, ListCell) and not all(machine.can_be_stored(each, {source.address}) for each in found.items):
        objects.escape(machine, source)
        _over_object(machine, node, source)
        return
    value = (
        found.value
        if isinstance(found, GrownCell)
        else pure(machine, "list", objects.handed_over(machine, found.items, source))
    )
    machine.state.put(source.address, GrownCell(value))
    _counted_for(machine, node, Counted(value, source))


def _over_known(machine: Machine, node: ast.For, source: Abstract, items: Sequence[Abstract]) -> None:
    """A loop by index over known values."""
    if not all(map(_is_apart, items)):
        raise machine.unsupported("a loop of the run over known functions and objects")
    writes = machine.writes
    _counted_for(machine, node, Counted(_listed(machine, items)))
    if machine.writes > writes and isinstance(source, Const) and not is_immutable(source.value):
        raise machine.unsupported("a loop of the run over a list from outside that it may change")


def _is_apart(value: Abstract) -> bool:
    """Return whether a value of the run can stand for ``value``, and nothing else holds a part of it."""
    if isinstance(value, Tuple):
        return value.kind is tuple and all(map(_is_apart, value.items))
    return is_value(value) and not (isinstance(value, Symbol) and (value.foreign or value.local))


def _listed(machine: Machine, items: Sequence[Abstract]) -> Symbol:
    """A list of the run with these items. Tuples of one length are taken apart: the type of each part is known."""
    found = pure(machine, "list", items)
    rows = [item.items for item in items if isinstance(item, Tuple)]
    if len(rows) == len(items) and len({len(parts) for parts in rows}) == 1:
        columns = [_listed(machine, parts) for parts in zip(*rows, strict=True)]
        machine.rows[found.ir] = lambda position: Tuple(tuple(row(machine, each, position) for each in columns))
    return found


def _counted_for(machine: Machine, node: ast.For, items: Counted, *, is_own: bool = True) -> None:
    """A loop over a list or text by index. Others may change what ``items`` were taken of unless ``is_own``."""

    def current() -> Symbol:
        if items.live is None:
            return items.value
        cell = machine.cell(items.live)
        if isinstance(cell, ListCell):
            return pure(machine, "list", cell.items)
        assert isinstance(cell, GrownCell | ObjectCell)
        return cell.value

    over = Over(machine, items) if machine.has_arrays and items.live is None else None

    def item(position: Abstract) -> Abstract:
        return row(machine, current(), position) if over is None else over.item()

    given = (items.iterator or items.live or items.value) if is_own else None
    with machine.going_over(items.live):
        _by_number(machine, node, lambda: length_of(machine, current()), item, over, given=given)


def _by_number(
    machine: Machine,
    node: ast.For,
    length: Callable[[], Abstract],
    item: Callable[[Abstract], Abstract],
    over: Over | None,
    *,
    given: Abstract | None = None,
) -> None:
    """A loop whose rounds are numbered, ``over`` what may hold branches that only a run counts.

    ``given`` is what it goes over, where a continuation can begin in a round.
    """
    if over is None:
        _numbered(machine, node, length, item, given=given)
        return

    def noted(run: Callable[[], None]) -> Callable[[], None]:
        def noting() -> None:
            machine.array_loops.append(over)
            try:
                run()
            except over.signal as used:
                over.arrays[used.array] = None
                raise
            finally:
                machine.array_loops.pop()

        return noting

    def ordinary() -> None:
        _numbered(machine, node, length, item, over)

    def as_map() -> None:
        target = machine.begin_target()

        def body() -> None:
            machine.at(node)
            machine.rules.assign(node.target, over.item())
            _round(machine, node, target, None)

        over.as_map(target, body, _dead(machine, node))
        over.check()
        machine.rules.execute(node.orelse)

    def again() -> None:
        machine.attempt(noted(as_map), again, over.signal)

    machine.attempt(noted(ordinary), again, over.signal)


def _numbered(
    machine: Machine,
    node: ast.For,
    length: Callable[[], Abstract],
    item: Callable[[Abstract], Abstract],
    over: Over | None = None,
    *,
    given: Abstract | None = None,
) -> None:
    """A loop by index: the number of the round is a place of its own."""
    target = machine.begin_target()
    index: tuple[int, str] = (target, "index")
    machine.state.put(index, Const(0))
    first = True

    def test() -> Abstract:
        nonlocal first
        machine.at(node)
        position = machine.state.get(index)
        assert isinstance(position, Abstract)
        if not first:
            position = pure(machine, "add", (position, Const(1)), raises=False)
            machine.state.put(index, position)
        first = False
        return pure(machine, "lt", (position, length()), raises=False)

    def body() -> None:
        machine.at(node)
        position = machine.state.get(index)
        assert isinstance(position, Abstract)
        if over is not None:
            over.position = position
        machine.rules.assign(node.target, item(position))
        _round(machine, node, target, None if given is None else [("items", given), ("index", position)])

    def otherwise() -> None:
        if over is not None:
            over.check()
        with machine.within(node, "orelse"):
            machine.rules.execute(node.orelse)

    ends = otherwise if node.orelse or over is not None else None
    run_loop(machine, LoopParts(target, test, body, ends, _continues(node.body), _dead(machine, node)))

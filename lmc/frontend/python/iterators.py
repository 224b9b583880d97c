"""Iterators: ``iter``, ``next``, ``enumerate``, ``zip``, ``reversed``, ``map``, ``filter``."""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit import objects
from lmc.frontend.emit.known import concrete, decided
from lmc.frontend.emit.operands import describe, may_run_code, operand, pure
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import BranchArrayCell, BranchesCell, GeneratorCell, IteratorCell, ListCell, RowsCell
from lmc.frontend.heap.values import (
    FALSE,
    ZERO,
    Abstract,
    BoundMethod,
    Const,
    Function,
    Partial,
    Ref,
    Symbol,
    Tuple,
    View,
    same,
)
from lmc.frontend.python.items import holds_handles
from lmc.frontend.python.iteration import Counted, items_of, known_items, next_item, opened, over
from lmc.frontend.python.library.polyfills import first, first_or_default
from lmc.frontend.python.operators import binary, truth

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def _taken(machine: Machine, *given: Abstract) -> list[Abstract]:
    """Return iterables whose items an iterator takes at once, although Python takes them one by one."""
    found: list[Abstract] = []
    for each in given:
        cell = machine.cell(each)
        if (
            isinstance(cell, IteratorCell)
            and isinstance(cell.source, Symbol)
            and isinstance(each, Ref)
            and not machine.is_held(each)
            and sum(same(each, other) for other in given) == 1
        ):
            found.append(opened(machine, each, cell).value)
        elif isinstance(cell, GeneratorCell | IteratorCell) or objects.kind_of(machine, each) is objects.ITERATOR:
            raise machine.unsupported("an iterator over another iterator")
        elif isinstance(each, Symbol) and may_run_code(machine, "iter", [operand(machine, each)]):
            raise machine.stop(
                f"an iterator takes items of {describe(machine, each)}, which may run code of its own for each of them",
                "take a list of them before: list(x)",
            )
        else:
            found.append(each)
    return found


def _iterator(machine: Machine, source: Abstract, function: Any, args: Sequence[Abstract], **kwargs: Abstract) -> Ref:
    """An iterator over ``source``, the items of containers among ``args`` as they are now."""
    made = machine.new(IteratorCell(source, 0, made=Partial(Const(function), tuple(args), kwargs)))
    machine.watch(made, *args)
    return made


def enumerated(machine: Machine, given: Abstract, start: Abstract = ZERO) -> Abstract:
    """``enumerate(given, start)``."""
    if isinstance(machine.cell(given), BranchArrayCell | RowsCell):
        return machine.new(RowsCell("enumerate", (given,), start))
    (taken,) = _taken(machine, given)
    items = items_of(machine, taken)
    if isinstance(items, list):
        numbers = [binary(machine, "add", start, Const(index)) for index in range(len(items))]
        pairs = [Tuple(pair) for pair in zip(numbers, items, strict=True)]
        return _iterator(machine, Tuple(tuple(pairs)), enumerate, (given, start))
    if isinstance(items, Counted) and _is_own(items):
        source = items.value
        found = pure(machine, "enumerate", (source, start))
        machine.rows[found.ir] = lambda position: Tuple(
            (binary(machine, "add", start, position), row(machine, source, position))
        )
    else:
        found = pure(machine, "enumerate", (taken, start))
    copy = Symbol(found.ir, "the result of enumerate()", foreign=found.foreign)
    return _iterator(machine, _copied(machine, copy, items), enumerate, (given, start))


def _is_own(items: list[Abstract] | Counted | None) -> bool:
    """Return whether nothing but the program itself changes what has these items, though it may change the items."""
    return isinstance(items, list) or (items is not None and (items.live is not None or not items.value.foreign))


def _copied(machine: Machine, copy: Symbol, *sources: list[Abstract] | Counted | None) -> Symbol:
    """Note that an iterator over the items of ``sources`` is a list of what it gives now."""
    machine.objects.copies.add(copy.ir)
    if all(map(_is_own, sources)):
        machine.objects.fixed.add(copy.ir)
    return copy


def row(machine: Machine, items: Abstract, position: Abstract) -> Abstract:
    """The item at a position of a list that a loop goes over."""
    read = machine.rows.get(items.ir) if isinstance(items, Symbol) else None
    return pure(machine, "getitem", (items, position), raises=False) if read is None else read(position)


def _holds_handles(machine: Machine, given: Abstract, items: Any) -> bool:
    return isinstance(machine.cell(given), BranchesCell) or (isinstance(items, list) and holds_handles(machine, items))


def zipped(machine: Machine, *given: Abstract, strict: Abstract = FALSE) -> Abstract:
    """``zip(*given)``."""
    if any(isinstance(machine.cell(each), BranchArrayCell | RowsCell) for each in given):
        lists = [cell for each in given if isinstance(cell := machine.cell(each), ListCell)]
        if strict is FALSE and not all(cell.items for cell in lists):
            return _iterator(machine, Tuple(()), zip, given)
        return machine.new(RowsCell("zip", given, strict=bool(concrete(machine, strict))))
    taken = _taken(machine, *given)
    columns = [items_of(machine, each) for each in taken]
    named = {} if strict is FALSE else {"strict": strict}
    if strict is FALSE and [] in columns:
        return _iterator(machine, Tuple(()), zip, given)
    held = any(_holds_handles(machine, *pair) for pair in zip(taken, columns, strict=True))
    if held and not all(isinstance(column, list) for column in columns):
        return machine.new(RowsCell("zip", given, strict=bool(concrete(machine, strict))))
    if all(isinstance(column, list) for column in columns):
        known = [column for column in columns if isinstance(column, list)]
        if concrete(machine, strict) and len({*map(len, known)}) > 1:
            raise machine.unsupported("`zip(strict=True)` of different lengths")
        return _iterator(machine, Tuple(tuple(map(Tuple, zip(*known, strict=False)))), zip, given, **named)
    found = pure(machine, "zip", taken, named)
    sources = [_read_by_index(*pair) for pair in zip(taken, columns, strict=True)]
    known = [source for source in sources if source is not None]
    if len(known) == len(sources):  # items of lists of texts are texts, those of a list of tuples are anything
        machine.rows[found.ir] = lambda position: Tuple(tuple(row(machine, source, position) for source in known))
    return _iterator(machine, _copied(machine, found, *columns), zip, given, **named)


def _read_by_index(given: Abstract, items: list[Abstract] | Counted | None) -> Abstract | None:
    """Return what holds ``items`` as they are now, if it has an index and does not change; else None."""
    if isinstance(items, Counted) and _is_own(items):
        return items.value
    return given if isinstance(given, Const) and type(given.value) in (str, tuple, range) else None


def reversed_items(machine: Machine, given: Abstract) -> Abstract:
    """``reversed(given)``."""
    (taken,) = _taken(machine, given)
    items = items_of(machine, taken)
    if isinstance(items, list):
        return _iterator(machine, Tuple(tuple(items[::-1])), reversed, (given,))
    copy = _copied(machine, pure(machine, "reversed", (taken,)), items)
    return _iterator(machine, copy, reversed, (given,))


def iterator(machine: Machine, *given: Abstract) -> Abstract:
    """``iter(given)``."""
    if len(given) != 1:
        raise machine.unsupported("`iter` with a sentinel")
    cell = machine.cell(given[0])
    if isinstance(cell, IteratorCell | GeneratorCell):
        return given[0]
    if objects.kind_of(machine, given[0]) is objects.ITERATOR:
        return given[0]
    source = given[0].owner if isinstance(given[0], View) else given[0]
    if objects.is_object(machine, source):
        return objects.iterator(machine, given[0])
    items = items_of(machine, given[0])
    if isinstance(items, list):
        return over(machine, given[0])
    if not isinstance(items, Counted):
        raise machine.unsupported(f"an iterator over {describe(machine, given[0])}")
    if items.live is None or items.live.address in machine.read_only:
        return objects.iterator(machine, items.value)
    objects.escape(machine, items.live)  # the iterator sees what is put into the list later
    return objects.iterator(machine, items.live)


def _first(machine: Machine, generator: Ref, default: tuple[Abstract, ...]) -> Abstract:
    """The next item of a generator; of one that nothing else can ask for another one the first."""
    if machine.is_held(generator):
        found = machine.rules.next_item(generator)
        return found or (default[0] if default else raise_new(machine, StopIteration))
    return machine.rules.call(Const(first_or_default if default else first), [generator, *default], {})


def advanced(machine: Machine, iterator: Abstract, *default: Abstract) -> Abstract:
    """``next(iterator)``."""
    if objects.kind_of(machine, iterator) is objects.ITERATOR:
        return _advanced_in_run(machine, iterator, default)
    if not isinstance(machine.cell(iterator), IteratorCell):
        own = machine.special("__next__", iterator)
        if own is not None and not default:
            return own
        if isinstance(machine.cell(iterator), GeneratorCell) and isinstance(iterator, Ref):
            return _first(machine, iterator, default)
        raise machine.unsupported(f"`next` of {describe(machine, iterator)}")
    found = next_item(machine, iterator)
    if found is not None:
        return found
    if default:
        return default[0]
    return raise_new(machine, StopIteration)


def _advanced_in_run(machine: Machine, iterator: Abstract, default: Sequence[Abstract]) -> Abstract:
    objects.changed(machine, iterator)
    goes_on, item = objects.advanced(machine, iterator)

    def ended() -> Abstract:
        return default[0] if default else raise_new(machine, StopIteration)

    return machine.choose(goes_on, lambda: item, ended)


def _check_simple(machine: Machine, function: Abstract, name: str) -> None:
    """End the capture where a function of the program is called for each item: that belongs where the item is taken."""
    held = function.value if isinstance(function, Const) else None
    own = isinstance(held, type) and held.__module__ != "builtins"
    if held is not None and (own or not isinstance(held, type | BuiltinFunctionType | MethodDescriptorType)):
        raise machine.unsupported(f"`{name}` with a function of the program")
    if isinstance(function, Function | BoundMethod | Partial):
        raise machine.unsupported(f"`{name}` with a function of the program")


def mapped(machine: Machine, function: Abstract, *given: Abstract) -> Abstract:
    """``map(function, *given)``."""
    _check_simple(machine, function, "map")
    columns = [known_items(machine, each, "`map` goes over it") for each in _taken(machine, *given)]
    made = [machine.rules.call(function, list(row), {}) for row in zip(*columns, strict=False)]
    return _iterator(machine, Tuple(tuple(made)), map, (function, *given))


def filtered(machine: Machine, function: Abstract, given: Abstract) -> Abstract:
    """``filter(function, given)``."""
    _check_simple(machine, function, "filter")
    (taken,) = _taken(machine, given)
    kept: list[Abstract] = []
    for item in known_items(machine, taken, "`filter` goes over it"):
        test = (
            item if isinstance(function, Const) and function.value is None else machine.rules.call(function, [item], {})
        )
        flag = decided(machine, truth(machine, test))
        if not isinstance(flag, Const):
            raise machine.unsupported("`filter` by what only a run knows")
        if flag.value:
            kept.append(item)
    return _iterator(machine, Tuple(tuple(kept)), filter, (function, given))

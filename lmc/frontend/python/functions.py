"""Python's own functions and classes, by the function: what each does with abstract values."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.conditions import adopt, branch, scope
from lmc.frontend.control.exits import NORMAL, Exit, Way
from lmc.frontend.emit.operands import class_of, describe, is_text, pure
from lmc.frontend.heap.cells import (
    BranchesCell,
    DictCell,
    GeneratorCell,
    GrownCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    SetCell,
)
from lmc.frontend.heap.values import (
    EMPTY,
    FALSE,
    NONE,
    ZERO,
    Abstract,
    BoundMethod,
    Concat,
    Const,
    Function,
    Partial,
    Poison,
    Raised,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
)
from lmc.frontend.python import attributes
from lmc.frontend.python.items import new_set, set_item
from lmc.frontend.python.iteration import Counted, items_of, known_items, next_item
from lmc.frontend.python.operators import binary, run_now, truth
from lmc.ir.types import TEXT, ListType

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine

Handler = Callable[..., Abstract]


def to_text(machine: Machine, value: Abstract, name: str = "str") -> Abstract:
    """``str(value)``, ``repr(value)`` or ``ascii(value)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: to_text(machine, one, name))
    if name == "str" and is_text(machine, value):
        return value
    plain = machine.plain(value)
    if plain is not None:
        return run_now(machine, getattr(builtins, name), [plain[0]], name)
    own = machine.special("__str__" if name == "str" else "__repr__", value)
    if own is None and name == "str":
        own = machine.special("__repr__", value)
    if own is not None:
        return own
    if isinstance(value, Const):
        return machine.rules.object_call(name, getattr(builtins, name), [value])
    if isinstance(machine.cell(value), InstanceCell):
        raise machine.stop("the text of this object holds its address", "use a field of it")
    if isinstance(value, Raised) and name == "str" and value.symbol is None and value.made is None:
        if not value.args:
            return Const("")
        if len(value.args) == 1 and value.kind is not KeyError:
            return to_text(machine, value.args[0])
    return pure(machine, name, (value,), gives=TEXT)


def formatted(machine: Machine, value: Abstract, spec: Abstract) -> Abstract:
    """``format(value, spec)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: formatted(machine, one, spec))
    if isinstance(spec, Const) and spec.value == "" and machine.special("__format__", value, spec) is None:
        return to_text(machine, value)
    parts = machine.plain(value), machine.plain(spec)
    if parts[0] is not None and parts[1] is not None:
        return run_now(machine, format, [parts[0][0], parts[1][0]], "format")
    own = machine.special("__format__", value, spec)
    if own is not None:
        return own
    if isinstance(value, Const):
        return machine.rules.object_call("format", format, [value, spec])
    return pure(machine, "format", (value, spec))


def size(machine: Machine, value: Abstract) -> Abstract:
    """``len(value)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: size(machine, one))
    plain = machine.plain(value)
    if plain is not None:
        return run_now(machine, len, [plain[0]], "len")
    own = machine.special("__len__", value)
    if own is not None:
        return own
    if isinstance(value, Tuple):
        return Const(len(value.items))
    if isinstance(value, Symbol | Concat):
        if isinstance(value, Symbol) and (value.type == TEXT or isinstance(value.type, ListType)):
            return machine.length(value)
        return pure(machine, "len", (value,))
    if isinstance(value, Const):
        return machine.rules.object_call("len", len, [value])
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return Const(len(cell.items))
    if isinstance(cell, DictCell):
        return Const(len(cell.keys))
    if isinstance(cell, GrownCell):
        return machine.length(cell.value)
    if isinstance(cell, BranchesCell):
        return Const(len(cell.handles))
    if isinstance(value, View):
        return size(machine, value.owner)
    raise machine.unsupported(f"the length of {describe(machine, value)}")


def _list(machine: Machine, *given: Abstract) -> Abstract:
    if not given:
        return machine.new(ListCell(()))
    items = items_of(machine, given[0])
    if isinstance(items, Counted):
        if isinstance(items.value.type, ListType) and not items.value.foreign:
            return machine.new(GrownCell(items.value))
        return machine.list_of(pure(machine, "list_from", (items.value,)))
    if items is None and isinstance(given[0], Symbol):
        return machine.list_of(pure(machine, "list_from", (given[0],)))
    if items is None:
        items = known_items(machine, given[0], "a list is made of it")
    return machine.new(ListCell(tuple(items)))


def _tuple(machine: Machine, *given: Abstract) -> Abstract:
    if not given:
        return Tuple(())
    items = items_of(machine, given[0])
    if isinstance(items, Counted) or (items is None and isinstance(given[0], Symbol)):
        value = items.value if isinstance(items, Counted) else given[0]
        made = pure(machine, "tuple_from", (value,))
        return Symbol(made.ir, made.origin, made.expression, kind=tuple)
    if items is None:
        items = known_items(machine, given[0], "a tuple is made of it")
    return Tuple(tuple(items))


def _set(machine: Machine, *given: Abstract) -> Abstract:
    if not given:
        return machine.new(SetCell(frozenset()))
    items = items_of(machine, given[0])
    if isinstance(items, Counted) or (items is None and isinstance(given[0], Symbol)):
        value = items.value if isinstance(items, Counted) else given[0]
        return Symbol(pure(machine, "set_from", (value,)).ir, "a set", kind=set)
    if items is None:
        items = known_items(machine, given[0], "a set is made of it")
    return new_set(machine, items)


def pairs_of(machine: Machine, given: Abstract) -> list[tuple[Abstract, Abstract]]:
    """Keys and values of what a dict is made of."""
    cell = machine.cell(given)
    if isinstance(cell, DictCell):
        return [(Const(key), value) for key, value in zip(cell.keys, cell.values, strict=True)]
    if isinstance(given, Const) and isinstance(given.value, dict):
        return [(Const(key), machine.lifted(value)) for key, value in given.value.items()]
    pairs: list[tuple[Abstract, Abstract]] = []
    for item in known_items(machine, given, "a dict is made of it"):
        parts = known_items(machine, item, "a dict is made of it")
        if len(parts) != 2:
            raise machine.unsupported("a dict made of other things than pairs")
        pairs.append((parts[0], parts[1]))
    return pairs


def _dict(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
    made = machine.new(DictCell((), ()))
    for each in given:
        for key, value in pairs_of(machine, each):
            set_item(machine, made, key, value)
    for name, value in named.items():
        set_item(machine, made, Const(name), value)
    return made


def _range(machine: Machine, *bounds: Abstract) -> Abstract:
    parts = [machine.plain(bound) for bound in bounds]
    if all(part is not None for part in parts):
        return run_now(machine, range, [part[0] for part in parts if part is not None], "range")
    return pure(machine, "range", bounds)


def _enumerate(machine: Machine, given: Abstract, start: Abstract = ZERO) -> Abstract:
    items = items_of(machine, given)
    if isinstance(items, list):
        numbers = [binary(machine, "add", start, Const(index)) for index in range(len(items))]
        return _iterator(machine, [Tuple(pair) for pair in zip(numbers, items, strict=True)])
    if isinstance(items, Counted) and items.live is None:
        return pure(machine, "enumerate", (items.value, start))
    return Symbol(pure(machine, "enumerate", (given, start)).ir, "the items of enumerate")


def _iterator(machine: Machine, items: Sequence[Abstract]) -> Abstract:
    return machine.new(IteratorCell(Tuple(tuple(items)), 0))


def _zip(machine: Machine, *given: Abstract, strict: Abstract = FALSE) -> Abstract:
    columns = [items_of(machine, each) for each in given]
    if all(isinstance(column, list) for column in columns):
        known = [column for column in columns if isinstance(column, list)]
        if machine.concrete(strict) and len({*map(len, known)}) > 1:
            raise machine.unsupported("`zip(strict=True)` of different lengths")
        return _iterator(machine, [Tuple(row) for row in zip(*known, strict=False)])
    return pure(machine, "zip", given, {} if strict is FALSE else {"strict": strict})


def _reversed(machine: Machine, given: Abstract) -> Abstract:
    items = items_of(machine, given)
    if isinstance(items, list):
        return _iterator(machine, items[::-1])
    return pure(machine, "reversed", (given,))


def sorted_items(machine: Machine, given: Abstract, key: Abstract = NONE, reverse: Abstract = FALSE) -> Abstract:
    """``sorted(given, key=…, reverse=…)``."""
    items = items_of(machine, given)
    if items is None:
        items = known_items(machine, given, "it is sorted")
    keyless = isinstance(key, Const) and key.value is None
    if isinstance(items, Counted):
        if not keyless:
            raise machine.unsupported("`sorted` by key of items that only a run counts")
        return machine.list_of(pure(machine, "sorted", (items.value,), {"reverse": reverse}))
    if len({*map(id, items)}) < 2 and len(items) < 2:
        return machine.new(ListCell(tuple(items)))
    keys = items if keyless else [machine.rules.call(key, [item], {}) for item in items]
    plain = [machine.plain(each) for each in keys]
    if all(each is not None for each in plain) and isinstance(machine.known(reverse), bool):
        values = [each[0] for each in plain if each is not None]
        try:
            order = sorted(range(len(values)), key=values.__getitem__, reverse=machine.concrete(reverse))
        except TypeError as error:
            machine.raise_new(TypeError, *error.args)
        return machine.new(ListCell(tuple(items[index] for index in order)))
    if keyless:
        return machine.list_of(pure(machine, "sorted", (machine.new(ListCell(tuple(items))),), {"reverse": reverse}))
    listed = [machine.new(ListCell(tuple(part))) for part in (items, keys)]
    return machine.list_of(pure(machine, "sorted_by", listed, {"reverse": reverse}))


def _extreme(name: str) -> Handler:
    function = getattr(builtins, name)

    def extreme(machine: Machine, *given: Abstract, key: Abstract = NONE, **default: Abstract) -> Abstract:
        first = given[0]
        items: list[Abstract] | Counted | None = list(given) if len(given) > 1 else items_of(machine, first)
        if items is None and not isinstance(first, Symbol):
            items = known_items(machine, first, f"its {name} is taken")
        keyless = isinstance(key, Const) and key.value is None
        if isinstance(items, list):
            if not items:
                if default:
                    return default["default"]
                machine.raise_new(ValueError, f"{name}() arg is an empty sequence")
            if len(items) == 1:
                return items[0]
            keys = items if keyless else [machine.rules.call(key, [item], {}) for item in items]
            plain = [machine.plain(each) for each in keys]
            if all(each is not None for each in plain):
                values = [each[0] for each in plain if each is not None]
                try:
                    index = function(range(len(values)), key=values.__getitem__)
                except TypeError as error:
                    machine.raise_new(TypeError, *error.args)
                return items[index]
            if keyless:
                return pure(machine, name, items)
            listed = [machine.new(ListCell(tuple(part))) for part in (items, keys)]
            return pure(machine, f"{name}_by", listed)
        if not keyless:
            raise machine.unsupported(f"`{name}` by key of items that only a run counts")
        value = items.value if items is not None else first
        return pure(machine, name, (value,), default)

    return extreme


def _sum(machine: Machine, given: Abstract, start: Abstract = ZERO) -> Abstract:
    if isinstance(machine.cell(given), GeneratorCell) and isinstance(given, Ref):
        return _folded(machine, given, start)
    items = items_of(machine, given)
    if items is None and not isinstance(given, Symbol):
        items = known_items(machine, given, "its sum is taken")
    if isinstance(items, list):
        plain = [machine.plain(each) for each in (*items, start)]
        if all(each is not None for each in plain):
            values = [each[0] for each in plain if each is not None]
            return run_now(machine, sum, [values[:-1], values[-1]], "sum")
        return pure(machine, "sum", (machine.new(ListCell(tuple(items))), start))
    return pure(machine, "sum", (items.value if items is not None else given, start))


def _folded(machine: Machine, generator: Ref, start: Abstract) -> Abstract:
    """The sum of what a generator gives: each item is added before the next one is made."""
    total = (machine.allocate(), "total")
    machine.state.put(total, start)

    def add(item: Abstract) -> None:
        so_far = machine.state.get(total)
        assert isinstance(so_far, Abstract)
        machine.state.put(total, binary(machine, "add", so_far, item))

    machine.rules.consume(generator, add)
    found = machine.state.get(total)
    assert isinstance(found, Abstract)
    return found


def _first(machine: Machine, generator: Ref, *, wanted: bool) -> Abstract:
    """Whether a generator gives an item whose truth is ``wanted``; no further one is asked for behind it."""
    target = machine.begin_target()
    found, leave = (target, "found"), Exit("break", target)
    machine.state.put(found, Const(not wanted))

    def stop() -> None:
        machine.state.put(found, Const(wanted))
        machine.leave_for(leave)

    def each(item: Abstract) -> None:
        flag = truth(machine, item)
        if isinstance(flag, Const):
            if flag.value is wanted:
                stop()
            return
        assert isinstance(flag, Symbol)
        arms = (stop, lambda: None) if wanted else (lambda: None, stop)
        adopt(machine, branch(machine, flag, *arms))

    def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == leave else (exit, way.payload)

    adopt(machine, scope(machine, lambda: machine.rules.consume(generator, each), settle))
    value = machine.state.get(found)
    assert isinstance(value, Abstract)
    return value


def _quantifier(*, wanted: bool) -> Handler:
    def quantifier(machine: Machine, given: Abstract) -> Abstract:
        if isinstance(machine.cell(given), GeneratorCell) and isinstance(given, Ref):
            return _first(machine, given, wanted=wanted)
        items = items_of(machine, given)
        if items is None and not isinstance(given, Symbol):
            items = known_items(machine, given, "its items are tested")
        if not isinstance(items, list):
            return pure(machine, "any" if wanted else "all", (items.value if items is not None else given,))

        def further(index: int) -> Abstract:
            if index == len(items):
                return Const(not wanted)
            flag = truth(machine, items[index])
            if isinstance(flag, Const):
                return Const(wanted) if flag.value is wanted else further(index + 1)
            assert isinstance(flag, Symbol)
            if index + 1 == len(items):
                return flag
            if wanted:
                return machine.choose(flag, lambda: Const(True), lambda: further(index + 1))
            return machine.choose(flag, lambda: further(index + 1), lambda: Const(False))

        return further(0)

    return quantifier


def _converted(name: str) -> Handler:
    function = getattr(builtins, name)

    def convert(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
        if given and isinstance(given[0], Union | Poison | Unbound):
            return machine.cases(given[0], lambda one: convert(machine, one, *given[1:], **named))
        plain = [machine.plain(value) for value in (*given, *named.values())]
        if all(each is not None for each in plain):
            values = [each[0] for each in plain if each is not None]
            split = len(given)
            return run_now(machine, function, values[:split], name, **dict(zip(named, values[split:], strict=True)))
        own = machine.special(f"__{name}__", given[0])
        if own is not None:
            return own
        if isinstance(given[0], Const):
            return machine.rules.object_call(name, function, list(given))
        return pure(machine, name, given, named)

    return convert


def _bool(machine: Machine, *given: Abstract) -> Abstract:
    return truth(machine, given[0]) if given else Const(False)


def _str(machine: Machine, *given: Abstract) -> Abstract:
    return to_text(machine, given[0]) if given else Const("")


def _isinstance(machine: Machine, value: Abstract, kinds: Abstract) -> Abstract:
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: _isinstance(machine, one, kinds))
    wanted = _classes(machine, kinds)
    found = class_of(machine, value)
    if isinstance(value, Function):
        found = type(_isinstance)
    if found is None or wanted is None:
        return machine.rules.class_test(value, kinds)
    for each in wanted:
        if type(each) not in (type,) and type(each).__module__.partition(".")[0] not in ("abc", "enum", "pydantic"):
            raise machine.unsupported("`isinstance` with a class that says itself what belongs to it")
    return Const(issubclass(found, tuple(wanted)))


def _classes(machine: Machine, kinds: Abstract) -> list[type] | None:
    if isinstance(kinds, Tuple):
        found = [_classes(machine, each) for each in kinds.items]
        return None if any(each is None for each in found) else [kind for each in found if each for kind in each]
    if isinstance(kinds, Const) and isinstance(kinds.value, type):
        return [kinds.value]
    if isinstance(kinds, Const) and isinstance(kinds.value, tuple):
        return list(kinds.value)
    args = getattr(kinds.value, "__args__", None) if isinstance(kinds, Const) else None
    return None if args is None else list(args)


def _getattr(machine: Machine, owner: Abstract, name: Abstract, *default: Abstract) -> Abstract:
    known = machine.concrete(name, "the name of an attribute is needed now")
    if default:
        raise machine.unsupported("`getattr` with a default")
    return attributes.read(machine, owner, known)


def _type(machine: Machine, *given: Abstract) -> Abstract:
    found = class_of(machine, given[0]) if len(given) == 1 else None
    if found is None:
        raise machine.unsupported("`type` of this")
    return Const(found)


def _iter(machine: Machine, *given: Abstract) -> Abstract:
    if len(given) != 1:
        raise machine.unsupported("`iter` with a sentinel")
    cell = machine.cell(given[0])
    if isinstance(cell, IteratorCell):
        return given[0]
    if isinstance(items_of(machine, given[0]), list):
        return machine.new(IteratorCell(given[0], 0))
    raise machine.unsupported("an iterator over items that only a run counts")


def _next(machine: Machine, iterator: Abstract, *default: Abstract) -> Abstract:
    if not isinstance(machine.cell(iterator), IteratorCell):
        raise machine.unsupported(f"`next` of {describe(machine, iterator)}")
    found = next_item(machine, iterator)
    if found is not None:
        return found
    if default:
        return default[0]
    return machine.raise_new(StopIteration)


def _check_simple(machine: Machine, function: Abstract, name: str) -> None:
    """End the capture where a function of the program is called for each item: that belongs where the item is taken."""
    held = function.value if isinstance(function, Const) else None
    if held is not None and not isinstance(held, type | BuiltinFunctionType | MethodDescriptorType):
        raise machine.unsupported(f"`{name}` with a function of the program")
    if isinstance(function, Function | BoundMethod | Partial):
        raise machine.unsupported(f"`{name}` with a function of the program")


def _map(machine: Machine, function: Abstract, *given: Abstract) -> Abstract:
    _check_simple(machine, function, "map")
    columns = [known_items(machine, each, "`map` goes over it") for each in given]
    rows = list(zip(*columns, strict=False))
    return _iterator(machine, [machine.rules.call(function, list(row), {}) for row in rows])


def _filter(machine: Machine, function: Abstract, given: Abstract) -> Abstract:
    _check_simple(machine, function, "filter")
    kept: list[Abstract] = []
    for item in known_items(machine, given, "`filter` goes over it"):
        test = (
            item if isinstance(function, Const) and function.value is None else machine.rules.call(function, [item], {})
        )
        flag = machine.decided(truth(machine, test))
        if not isinstance(flag, Const):
            raise machine.unsupported("`filter` by what only a run knows")
        if flag.value:
            kept.append(item)
    return _iterator(machine, kept)


def _callable(machine: Machine, value: Abstract) -> Abstract:
    if isinstance(value, Function | BoundMethod | Partial):
        return Const(True)
    plain = machine.plain(value)
    if plain is None and not isinstance(value, Const):
        raise machine.unsupported(f"whether {describe(machine, value)} can be called")
    return Const(callable(value.value if isinstance(value, Const) else plain))


FUNCTIONS: Mapping[Any, Handler] = {
    len: size,
    str: _str,
    repr: lambda machine, value: to_text(machine, value, "repr"),
    ascii: lambda machine, value: to_text(machine, value, "ascii"),
    format: lambda machine, value, spec=EMPTY: formatted(machine, value, spec),
    bool: _bool,
    list: _list,
    tuple: _tuple,
    set: _set,
    dict: _dict,
    range: _range,
    enumerate: _enumerate,
    zip: _zip,
    reversed: _reversed,
    sorted: sorted_items,
    min: _extreme("min"),
    max: _extreme("max"),
    sum: _sum,
    any: _quantifier(wanted=True),
    all: _quantifier(wanted=False),
    isinstance: _isinstance,
    getattr: _getattr,
    type: _type,
    iter: _iter,
    next: _next,
    map: _map,
    filter: _filter,
    callable: _callable,
    **{getattr(builtins, name): _converted(name) for name in ("int", "float", "abs", "round", "ord", "chr", "pow")},
}
"""What a program calls of Python's own, without the module ``library``."""

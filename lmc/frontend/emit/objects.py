"""Objects of the run: Python containers without a static form, because keys or lengths are not known.

What changes one is an op with the effect ``local``; what looks into one is a pure op, which keeps its place between
them. A container that becomes an object of the run stays at its address, so all its aliases see it. An object of the
program's own classes is made in the run when a container of the run or a function takes it (``put_into_run``). From
there on it is like one that a tool gave, under all its names. States and functions can't be in a container of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.operands import (
    Operand,
    class_of,
    describe,
    domain_of_cell,
    domain_of_items,
    host_call,
    is_scalar,
    may_run_code,
    merged_domain,
    operand,
    pure,
    united,
)
from lmc.frontend.heap.cells import Cell, DictCell, GrownCell, InstanceCell, ListCell, ObjectCell, PoisonCell, SetCell
from lmc.frontend.heap.reach import current, names_of, reached_from, references
from lmc.frontend.heap.state import State
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    Concat,
    Const,
    Domain,
    Poison,
    Ref,
    Slice,
    Symbol,
    Tuple,
    View,
)
from lmc.frontend.source.nondeterminism import CAUSE, REMEDY
from lmc.ir.core import Effect, Value
from lmc.ir.dialects.core_ops import LocalCallOp
from lmc.ir.types import ANY, BOOL, TEXT, JsonType, Type, list_of
from lmc.ir.types import NONE as NONE_TYPE
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]
ITERATOR = type(iter(()))
"""Stands for the class of every iterator of the run."""


def local(machine: Machine, name: str, arguments: Args, kwargs: Kwargs | None = None, gives: Type = ANY) -> Symbol:
    """Call the builtin ``name`` of ``lmc.ir.builtins.object_builtins`` in the run."""
    named = dict(kwargs or {})
    operands = [operand(machine, value) for value in (*arguments, *named.values())]
    _check_runs_no_code(machine, name, operands)
    (result,) = machine.emit(
        LocalCallOp, (gives,), function=name, arguments=tuple(each.ir for each in operands), keywords=tuple(named)
    )
    origin = next((each.origin for each in operands if each.origin is not None), "an object of the program")
    return Symbol(result, origin)


_HOLDING = frozenset({"list", "dict", "append", "appendleft", "insert", "clear", "copy", "keys", "values", "items"})
"""Ops and methods that call no method of what a container holds."""


def _check_runs_no_code(machine: Machine, name: str, operands: Sequence[Operand]) -> None:
    """End the capture where an op may call special methods of the user's: it is ordered with other such ops alone."""
    given = operands[1:2] if name == "setitem" else operands
    method = operands[0].ir if name == "method" else name
    if method not in _HOLDING and may_run_code(machine, method, given):
        raise machine.stop(
            f"{method}() looks at what tools gave, which may run code of its own", "keep texts or numbers of it instead"
        )


class Rebuilt:
    """Makes an object of a plain class from its attributes, as a host function. No code of the user's runs."""

    def __init__(self, kind: type, names: tuple[str, ...]) -> None:
        self.kind = kind
        self.names = names
        self.__name__ = f"new_{kind.__name__}"
        self.__module__ = kind.__module__
        self.__qualname__ = kind.__qualname__

    @classmethod
    def of(cls, machine: Machine, kind: type, names: tuple[str, ...]) -> Rebuilt:
        """The host function of a class and these attributes; the same one each time."""
        return machine.makers.setdefault((kind, names), cls(kind, names))

    def __call__(self, *values: Any) -> Any:
        """A new object."""
        made = object.__new__(self.kind)
        for name, value in zip(self.names, values, strict=True):
            object.__setattr__(made, name, value)
        return made


GIVEN = Poison("an object is used that was put into a container of which only a run knows the items", "read it there")
"""Replaces an object of the program that a container of the run took: it is reached through the container alone."""


def handed_over(machine: Machine, values: Sequence[Abstract], own: Abstract = NONE) -> list[Abstract]:
    """``values``, which ``Machine.can_be_stored``, as items of the list ``own``, which alone holds them from now on."""
    again = shared(machine, values)
    with machine.giving([own.address] if isinstance(own, Ref) else []):
        return [_handed_over(machine, each, again) for each in values]


def _handed_over(machine: Machine, value: Abstract, again: Collection[int]) -> Abstract:
    if isinstance(value, Tuple):
        return Tuple(tuple(_handed_over(machine, each, again) for each in value.items), value.kind)
    if not isinstance(value, Ref):
        return value
    cell = machine.state.get(value.address)
    inside = reached_from(machine.state, [value])
    if isinstance(cell, InstanceCell | PoisonCell) or not inside.isdisjoint(again):
        return stored(machine, value)
    if any(isinstance(machine.state.get(address), InstanceCell | PoisonCell) for address in inside):
        return stored(machine, value)
    if isinstance(cell, ObjectCell):
        return value
    machine.ends.copied.add(value.address)
    found = operand(machine, value)
    for address in inside:
        if not isinstance(machine.state.get(address), ObjectCell):
            machine.state.put(address, PoisonCell(GIVEN))
    assert isinstance(found.ir, Value)
    return Symbol(found.ir, found.origin or "a list", foreign=found.foreign, local=found.local)


def shared(machine: Machine, values: Sequence[Abstract]) -> set[int]:
    """The addresses that ``values`` reach in more than one way."""
    seen: set[int] = set()
    found: set[int] = set()
    waiting = [address for value in values for address in references(value)]
    while waiting:
        address = waiting.pop()
        if address in seen:
            found.add(address)
            continue
        seen.add(address)
        cell = machine.state.get(address)
        if isinstance(cell, Cell):
            waiting += references(cell)
            waiting += [each for name in names_of(cell) for each in references(machine.state.get((address, name)))]
    return found


def put_into_run(machine: Machine, value: Abstract) -> bool:
    """Make an object of the program's own classes one of the run, if it can be, and return whether it is one.

    All its names mean that from then on: attributes are read and written in the run, in order with calls of functions.
    """
    if not isinstance(value, Ref):
        return False
    if isinstance(machine.state.get(value.address), InstanceCell) and can_escape(machine, value, machine.state):
        stored(machine, value)
    return isinstance(current(machine.state, value), Symbol)


def _rebuilt(machine: Machine, value: Ref, cell: InstanceCell) -> Symbol:
    """An object of the program's as one of the run, which stands for it from now on."""
    held = [machine.state.get((value.address, name)) for name in cell.names]
    with machine.giving([value.address]):
        parts = [stored(machine, each) for each in held if isinstance(each, Abstract)]
    found = host_call(machine, Rebuilt.of(machine, cell.kind, cell.names), parts, effect=Effect.READS, raises=())
    made = replace(found, origin=with_article(cell.kind.__name__), kind=cell.kind)
    machine.state.put(value.address, PoisonCell(GIVEN, made))
    return made


def made(machine: Machine, name: str, arguments: Args, kind: type, *, ordered: bool = True) -> Ref:
    """A new object of the run."""
    return machine.new(ObjectCell(local(machine, name, arguments), kind, ordered))


def copied(machine: Machine, name: str, value: Abstract) -> Symbol:
    """A new dict of what an answer holds, or an object from outside. It is read in order with what may change that."""
    given = value if is_object(machine, value) else pure(machine, name, (value,))
    machine.state.holds_foreign |= given is not value
    return local(machine, name, (given,))


def item(machine: Machine, found: Symbol) -> Symbol:
    """Return what comes out of an object of the run: a text, a number, another such object, or what a tool gave."""
    return Symbol(found.ir, found.origin, foreign=machine.state.holds_foreign, local=True)


def is_object(machine: Machine, value: Abstract) -> bool:
    """Return whether ``value`` is, or may be, an object of the run, and nothing that the user's functions hold."""
    if isinstance(value, Symbol):
        return value.local and not value.foreign and value.type == ANY
    return isinstance(machine.cell(value), ObjectCell)


def kind_of(machine: Machine, value: Abstract) -> type | None:
    """The class of an object of the run, where that is known."""
    cell = machine.cell(value)
    return cell.kind if isinstance(cell, ObjectCell) else None


def is_flat(machine: Machine, value: Abstract) -> bool:
    """Return whether the items of a container are texts, numbers and the like, which nothing can change."""
    if isinstance(value, Tuple):
        return value.kind is tuple and all(_is_plain(machine, each) for each in value.items)
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return all(_is_plain(machine, each) for each in cell.items)
    if isinstance(cell, DictCell):
        return all(_is_plain(machine, each) for each in cell.values)
    return isinstance(cell, SetCell | GrownCell)


def _is_plain(machine: Machine, value: Abstract) -> bool:
    return is_scalar(value) or (isinstance(value, Tuple) and is_flat(machine, value))


def stored(machine: Machine, value: Abstract) -> Abstract:
    """``value`` as an item of an object of the run; containers in it become such objects too."""
    if isinstance(value, Concat):
        return value
    if isinstance(value, Const):
        machine.state.holds_foreign |= not value.is_literal
        return value
    if isinstance(value, Symbol):
        machine.state.holds_foreign |= value.foreign or isinstance(value.type, JsonType)
        return value
    if isinstance(value, Tuple):
        machine.state.holds_foreign |= value.kind is not tuple
        return Tuple(tuple(stored(machine, each) for each in value.items), value.kind)
    if isinstance(value, Ref):
        known = machine.state.get(value.address)
        if isinstance(known, PoisonCell) and known.value is not None:
            machine.state.holds_foreign = True
            return known.value
        if isinstance(known, InstanceCell) and can_escape(machine, value, machine.state):
            machine.state.holds_foreign = True
            return _rebuilt(machine, value, known)
        escape(machine, value)
        _check_ordered(machine, value)
        if kind_of(machine, value) is ITERATOR:
            raise machine.stop("an iterator is put into a container", "keep a list of its items: list(x)")
        machine.objects.inner.add(value.address)
        return value
    raise machine.stop(
        f"{describe(machine, value)} is put into a container whose keys or length only a run knows",
        "keep it in a list or dict of its own, with keys that are written in the program",
    )


def can_escape(machine: Machine, value: Abstract, state: State, within: frozenset[int] = frozenset()) -> bool:
    """Return whether ``escape`` succeeds for a container, or ``stored`` for what is in one."""
    if isinstance(value, Const | Symbol | Concat):
        return True
    if isinstance(value, Tuple):
        return all(can_escape(machine, each, state, within) for each in value.items)
    cell = state.get(value.address) if isinstance(value, Ref) else None
    if isinstance(cell, ObjectCell):
        return cell.ordered and cell.kind is not ITERATOR
    if isinstance(value, Ref) and isinstance(cell, InstanceCell):
        return _can_be_shared(machine, value, cell, state, within | {value.address})
    if not isinstance(value, Ref) or not isinstance(cell, ListCell | GrownCell | DictCell | SetCell):
        return False
    if value.address in machine.read_only or value.address in within or machine.is_watched(value.address):
        return False
    if (isinstance(cell, DictCell) and cell.kind is not dict) or (isinstance(cell, SetCell) and len(cell.items) > 1):
        return False
    return all(can_escape(machine, each, state, within | {value.address}) for each in cell.inner())


def _can_be_shared(machine: Machine, value: Ref, cell: InstanceCell, state: State, within: frozenset[int]) -> bool:
    """The same for an object of the program's, which may have more names: these name the one of the run from then on.

    What it holds is reached through it alone, because what is behind an attribute is ordered with calls of functions.
    """
    polyfill = cell.kind.__module__.partition(".")[0] == "lmc"
    if polyfill or value.address in machine.read_only:
        return False
    for name in cell.names:
        part = state.get((value.address, name))
        instance = state.get(part.address) if isinstance(part, Ref) else None
        if isinstance(part, Ref) and isinstance(instance, InstanceCell) and part.address not in within:
            if not _can_be_shared(machine, part, instance, state, within | {part.address}):
                return False
        elif not isinstance(part, Abstract) or not machine.can_be_stored(part, within, state):
            return False
    return True


def escape(machine: Machine, value: Ref) -> None:
    """Make a container an object of the run, at the same address."""
    cell = machine.state.get(value.address)
    if isinstance(cell, ObjectCell) or isinstance(current(machine.state, value), Symbol):
        return
    cell = machine.cell(value)
    if isinstance(cell, InstanceCell):
        stored(machine, value)
        return
    if value.address in machine.objects.escaping:
        raise machine.stop("a container holds itself", "keep it apart from what it holds")
    with machine.giving([value.address]):
        machine.check_change(value)
        assert cell is not None
        machine.state.put(value.address, escaped(machine, cell, value))


def escaped(machine: Machine, cell: Cell, value: Abstract = NONE) -> ObjectCell:
    """A container as an object of the run; ``value`` is what messages name."""
    domain = domain_of_cell(cell)
    if isinstance(cell, ListCell):
        made = local(machine, "list", [stored(machine, each) for each in cell.items])
        return ObjectCell(made, list, domain=domain)
    if isinstance(cell, GrownCell):
        return ObjectCell(local(machine, "list_from", (cell.value,)), list, domain=domain)
    if isinstance(cell, DictCell) and cell.kind is dict:
        return ObjectCell(local(machine, "dict", pairs_in(machine, cell)), dict, domain=domain)
    if isinstance(cell, SetCell):
        items = sorted(cell.items, key=repr)
        return ObjectCell(local(machine, "set", list(map(Const, items))), set, len(items) < 2, domain)
    raise machine.stop(
        f"{describe(machine, value)} is put into a container whose keys or length only a run knows",
        "keep the texts and numbers that are needed of it",
    )


def pairs_in(machine: Machine, cell: DictCell) -> list[Abstract]:
    """Keys and values of a dict in turn, as arguments of ``dict``."""
    pairs = zip(cell.keys, cell.values, strict=True)
    return [part for key, held in pairs for part in (Const(key), stored(machine, held))]


def _check_ordered(machine: Machine, value: Abstract) -> None:
    cell = machine.cell(value)
    if isinstance(cell, ObjectCell) and not cell.ordered:
        raise machine.stop(CAUSE, REMEDY)


def looked_into(machine: Machine, value: Abstract) -> Symbol:
    """An object of the run for an op that does not depend on the order of its items."""
    found = symbol_of(machine, value)
    return Symbol(found.ir, found.origin, foreign=machine.state.holds_foreign, local=True)


def symbol_of(machine: Machine, value: Abstract) -> Symbol:
    """The value that names an object of the run."""
    cell = machine.cell(value)
    found = cell.value if isinstance(cell, ObjectCell) else value
    assert isinstance(found, Symbol)
    return found


def changed(machine: Machine, owner: Abstract, added: Domain = None) -> None:
    """Note that an object of the run changes. Ends the capture where an iterator goes over it by a copy.

    ``added`` are the texts among which all items are, or keys, that it gets.
    """
    machine.objects.changes += 1
    if isinstance(owner, Ref):
        machine.check_change(owner)
        cell = machine.cell(owner)
        if isinstance(cell, ObjectCell) and cell.domain is not None:
            machine.state.put(owner.address, replace(cell, domain=united(cell.domain, added)))
    else:
        machine.check_own([owner])
        machine.objects.changed_unseen = True
        for address, _ in machine.watched:
            if isinstance(machine.state.get(address), ObjectCell):
                machine.check_change(Ref(address))


def view(machine: Machine, given: View) -> Symbol:
    """``d.keys()``, ``d.values()`` or ``d.items()`` of a dict of the run, as an object that follows it."""
    found = local(machine, "method", (Const(given.what), symbol_of(machine, given.owner)))
    return Symbol(found.ir, found.origin, foreign=machine.state.holds_foreign, local=True)


def listed(machine: Machine, value: Abstract) -> Symbol:
    """The items of an object of the run as they are now, in a list."""
    _check_ordered(machine, value)
    if kind_of(machine, value) is ITERATOR:  # which this uses up
        changed(machine, value)
        found = local(machine, "list_from", (value,), gives=list_of(ANY))
        return Symbol(found.ir, found.origin, foreign=machine.state.holds_foreign, local=True)
    given = value
    if isinstance(value, View):
        given = value.owner if value.what == "keys" else view(machine, value)
    gives = None if domain_of_items(machine, given) is None else list_of(TEXT)
    return pure(machine, "list_from", (given,), gives=gives)


def counted(machine: Machine, value: Abstract) -> Symbol:
    """The items of an object of the run as they are now, for a loop; of ``d.items()``, keys and values apart."""
    if not isinstance(value, View) or value.what != "items" or machine.has_arrays:
        return listed(machine, value)
    keys, values = (listed(machine, View(value.owner, what)) for what in ("keys", "values"))
    machine.rows[keys.ir] = lambda position: Tuple(
        tuple(pure(machine, "getitem", (each, position), raises=False) for each in (keys, values))
    )
    return keys


def get_item(machine: Machine, owner: Abstract, key: Abstract) -> Abstract:
    """``owner[key]``."""
    kind = kind_of(machine, owner)
    if isinstance(key, Slice):
        found = pure(
            machine, "slice", (owner, key.start, key.stop, key.step), gives=list_of(ANY) if kind is list else ANY
        )
        return machine.list_of(found) if kind is list else item(machine, found)
    if kind is None or kind is defaultdict:
        machine.objects.changes += kind is defaultdict or machine.objects.defaults
        return item(machine, local(machine, "getitem", (owner, key)))
    return item(machine, pure(machine, "getitem", (owner, key)))


def set_item(machine: Machine, owner: Abstract, key: Abstract, value: Abstract) -> None:
    """``owner[key] = value``; in the place of a part of a list come the items of ``value``, taken by value."""
    if isinstance(key, Slice):
        changed(machine, owner, domain_of_items(machine, value))
        local(machine, "setslice", (owner, key.start, key.stop, key.step, value), gives=NONE_TYPE)
        return
    changed(machine, owner, merged_domain(value if kind_of(machine, owner) is list else key))
    local(machine, "setitem", (owner, stored(machine, key), stored(machine, value)), gives=NONE_TYPE)


def added_items(machine: Machine, owner: Abstract, *given: Abstract) -> Domain:
    """The texts that an object of the run may get as items of other containers. A dict takes pairs as well."""
    if kind_of(machine, owner) is dict and not all(class_of(machine, each) is dict for each in given):
        return None
    return united(*(domain_of_items(machine, each) for each in given))


def delete_item(machine: Machine, owner: Abstract, key: Abstract) -> None:
    """``del owner[key]``."""
    changed(machine, owner, ())
    if isinstance(key, Slice):
        local(machine, "delslice", (owner, key.start, key.stop, key.step), gives=NONE_TYPE)
        return
    local(machine, "delitem", (owner, key), gives=NONE_TYPE)


IN_PLACE = {"add": "iadd", "mul": "imul", "or_": "ior", "and_": "iand", "sub": "isub", "xor": "ixor"}


def in_place(machine: Machine, name: str, owner: Abstract, value: Abstract) -> Abstract:
    """Return what ``owner <name>= value`` leaves under its name; ``value`` is taken by value."""
    changed(machine, owner, added_items(machine, owner, value))
    found = local(machine, IN_PLACE[name], (looked_into(machine, owner), value))
    return item(machine, found) if isinstance(owner, Symbol) else owner


def combined(machine: Machine, name: str, left: Abstract, right: Abstract) -> Abstract:
    """``left <name> right`` of which one is an object of the run: a new container."""
    kind = kind_of(machine, left) or kind_of(machine, right)
    if kind is not None and not isinstance(left, View) and class_of(machine, left) is not kind:
        raise machine.unsupported(f"{describe(machine, left)} beside {describe(machine, right)}")  # its class decides
    if kind is set:  # in whatever order
        for each in (left, right):
            if isinstance(each, Ref) and isinstance(machine.cell(each), SetCell):
                escape(machine, each)
        domains = [domain_of_items(machine, each) for each in (left, right)]
        held = {"sub": domains[0], "and_": domains[0] if domains[1] is None else domains[1]}
        domain = held[name] if name in held else united(*domains)
        given = [looked_into(machine, each) if is_object(machine, each) else each for each in (left, right)]
        return machine.new(ObjectCell(local(machine, name, given), set, ordered=False, domain=domain))
    return (
        item(machine, local(machine, name, (left, right))) if kind is None else made(machine, name, (left, right), kind)
    )


# Iterators


def iterator(machine: Machine, source: Abstract) -> Ref:
    """``iter(source)`` of what only a run knows the items of."""
    given = view(machine, source) if isinstance(source, View) else source
    _check_ordered(machine, given)
    return made(machine, "iter", (given,), ITERATOR)


def advanced(machine: Machine, given: Abstract, element: Type = ANY, *, foreign: bool = False) -> tuple[Symbol, Symbol]:
    """Return whether an iterator has another item, and which; only this uses it."""
    step = local(machine, "next", (given,))
    goes_on = pure(machine, "getitem", (step, Const(0)), gives=BOOL, raises=False)
    found = pure(machine, "getitem", (step, Const(1)), gives=element, raises=False)
    if element != ANY:
        return goes_on, found
    return goes_on, Symbol(found.ir, found.origin, foreign=foreign or machine.state.holds_foreign, local=not foreign)

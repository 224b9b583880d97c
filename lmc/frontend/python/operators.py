"""Operators: on values that are known CPython works them out now, on others an op does in the run."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from lmc.frontend.emit import objects
from lmc.frontend.emit.known import length_of
from lmc.frontend.emit.operands import (
    PLAIN_TYPES,
    class_name,
    class_of,
    concat,
    describe,
    host_call,
    is_scalar,
    is_text,
    pure,
    type_of_value,
)
from lmc.frontend.emit.raising import raise_new, throw
from lmc.frontend.heap.cells import DictCell, GrownCell, InstanceCell, ListCell, ObjectCell, SetCell
from lmc.frontend.heap.sizes import grows
from lmc.frontend.heap.values import (
    FALSE,
    TRUE,
    ZERO,
    Abstract,
    Concat,
    Const,
    Function,
    NumberRange,
    Poison,
    Raised,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
    same,
)
from lmc.frontend.python.library.kinds import class_given
from lmc.frontend.source.nondeterminism import (
    ADDRESS_CAUSE,
    ADDRESS_REMEDY,
    CAUSE,
    REMEDY,
    depends_on_order,
    holds_address,
)
from lmc.frontend.source.pure_types import is_deeply_harmless
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL, INT, TEXT, ListType

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.MatMult: "matmul",
}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_IN_RUN = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "pos", *COMPARISONS.values()})
SIGNS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "pow": "**"},
    **{"and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
    **{"lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
_COMBINING = frozenset({"add", "sub", "mul", "or_", "and_", "xor"})
"""Operators that make a container of two."""
_REFLECTED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


ALWAYS_TRUE = frozenset({re.Match, re.Pattern})
"""Classes of the standard library whose objects all count as true."""


def run_now(
    machine: Machine,
    function: Callable[..., Any],
    args: list[Any],
    name: str,
    *,
    otherwise: Callable[[], Abstract] | None = None,
    **kwargs: Any,
) -> Abstract:
    """Return what CPython gives for values that are known; an exception is raised in the program.

    ``otherwise`` calls it in the run, for exceptions that are more than a class and literals.
    """
    if grows(name, tuple(args)):
        raise machine.stop(
            "what this makes is too large to be a part of the graph", "make it before and pass it in, or in a tool"
        )
    if depends_on_order(function, tuple(args), kwargs):
        raise machine.stop(CAUSE, REMEDY)
    if name in ("str", "repr", "format") and holds_address(args):
        raise machine.stop(ADDRESS_CAUSE, ADDRESS_REMEDY)
    try:
        found = function(*args, **kwargs)
    except Exception as error:
        if otherwise is not None and not _is_plain(error):
            return otherwise()
        throw(machine, Raised(type(error), tuple(map(Const, error.args)), made=None if _is_plain(error) else error))
    return machine.lifted(found, args)


def _is_plain(error: BaseException) -> bool:
    """Return whether an exception is made again by its class and literal arguments."""
    kind = type(error)
    return (
        kind.__module__ == "builtins" and not vars(error) and all(type(arg) in (str, int, float) for arg in error.args)
    )


def known_parts(machine: Machine, *values: Abstract) -> list[Any] | None:
    """Plain values of what is known and runs no code of the user's; None where one is not."""
    found: list[Any] = []
    for value in values:
        plain = _plain_view(machine, value) if isinstance(value, View) else machine.plain(value)
        if plain is None:
            return None
        found.append(plain[0])
    return found


def _plain_view(machine: Machine, view: View) -> tuple[Any] | None:
    """A view like ``view``, of a copy of its dict."""
    plain = machine.plain(view.owner)
    return (getattr(plain[0], view.what)(),) if plain is not None and type(plain[0]) is dict else None


def binary(machine: Machine, name: str, left: Abstract, right: Abstract) -> Abstract:
    """``left <name> right``."""
    if isinstance(left, Union | Poison | Unbound):
        return machine.cases(left, lambda one: binary(machine, name, one, right))
    if isinstance(right, Union | Poison | Unbound):
        return machine.cases(right, lambda other: binary(machine, name, left, other))
    known = known_parts(machine, left, right)
    if known is not None and name != "add":
        return run_now(machine, getattr(operator, name), known, name)
    cells = [cell for each in (left, right) if isinstance(cell := machine.cell(each), DictCell)]
    if name == "or_" and len(cells) == 2 and all(cell.kind is dict for cell in cells):
        pairs = [pair for cell in cells for pair in zip(cell.keys, cell.values, strict=True)]
        merged = dict(pairs)
        return machine.new(DictCell(tuple(merged), tuple(merged.values())))
    if name in _COMBINING and (objects.kind_of(machine, left) or objects.kind_of(machine, right)):
        return objects.combined(machine, name, left, right)
    found = _joined(machine, left, right) if name == "add" else None
    if name == "mul":
        found = _repeated(machine, left, right)
    elif name == "mod" and is_text(machine, left):
        found = _percent(machine, left, right)
    if found is not None:
        return found
    if known is not None:
        return run_now(machine, getattr(operator, name), known, name)
    found = _by_special(machine, name, left, right)
    if found is not None:
        return found
    if name not in _IN_RUN and all(is_scalar(each) or isinstance(each, Symbol) for each in (left, right)):
        return _by_function(machine, name, left, right)
    if name not in _IN_RUN or not (_is_operand(machine, left) and _is_operand(machine, right)):
        if name in ("eq", "ne"):
            return _equal(machine, name, left, right)
        raise machine.unsupported(
            f"`{SIGNS.get(name, name)}` of {describe(machine, left)} and {describe(machine, right)}"
        )
    found = pure(machine, name, (left, right))
    return machine.list_of(found) if isinstance(found.type, ListType) else _of_class(machine, name, found, left, right)


def _by_function(machine: Machine, name: str, *values: Abstract) -> Symbol:
    """An operator that no builtin of the graph stands for."""
    whole = {type_of_value(machine, value) for value in values} == {INT}
    return host_call(machine, getattr(operator, name), values, effect=Effect.PURE, result_type=INT if whole else ANY)


def _of_class(machine: Machine, name: str, found: Symbol, *values: Abstract) -> Abstract:
    """Return what an operator gives for objects of the standard library, with its class."""
    classes = [class_of(machine, value) for value in values]
    kind = class_given(name, *(each for each in classes if each is not None)) if None not in classes else None
    if kind in (int, float, bool):
        return pure(machine, kind.__name__, (found,), raises=False)
    return found if kind is None else dataclasses.replace(found, kind=kind)


def _by_special(machine: Machine, name: str, left: Abstract, right: Abstract) -> Abstract | None:
    """``left <name> right`` by special methods in Python; None where neither class has one.

    The right operand is asked first where its class is under that of the left one and has its own method.
    """
    forward = f"__{name.rstrip('_')}__"
    backward = f"__{_REFLECTED[name]}__" if name in _REFLECTED else f"__r{name.rstrip('_')}__"
    kinds = class_of(machine, left), class_of(machine, right)
    order = [(forward, left, right), (backward, right, left)]
    if kinds[0] is not None and kinds[1] is not None and kinds[0] is not kinds[1] and issubclass(kinds[1], kinds[0]):
        held = [inspect.getattr_static(kind, backward, None) for kind in kinds]
        if name in _REFLECTED or held[0] is not held[1]:
            order.reverse()
    elif kinds[0] is not None and kinds[0] is kinds[1] and name not in _REFLECTED:
        del order[1]

    def asked(index: int, answered: bool) -> Abstract | None:
        if index == len(order):
            if not answered:
                return None
            if name in ("eq", "ne"):
                return identical(machine, left, right, negate=name == "ne")
            _not_implemented(machine, name, left, right)
        method, one, other = order[index]
        own = machine.special(method, one, other)
        if own is None:
            unsure = class_of(machine, one) is None or (isinstance(one, Symbol) and not is_harmless_symbol(one))
            if unsure and any(machine.has_special(*entry[:2]) for entry in order[index + 1 :]):
                raise machine.unsupported(f"`{SIGNS.get(name, name)}` of {describe(machine, one)}")
            return asked(index + 1, answered)

        def settled(value: Abstract) -> Abstract:
            if isinstance(value, Const) and value.value is NotImplemented:
                found = asked(index + 1, True)
                assert found is not None
                return found
            return value

        return machine.cases(own, settled)

    return asked(0, False)


def is_harmless_symbol(value: Symbol) -> bool:
    """Return whether operators on ``value`` certainly run no code of the user's."""
    return value.type in PLAIN_TYPES or isinstance(value.type, ListType)


def _not_implemented(machine: Machine, name: str, left: Abstract, right: Abstract) -> NoReturn:
    """Raise what Python does where neither operand knows the other one."""
    kinds = class_name(machine, left), class_name(machine, right)
    sign = "** or pow()" if name == "pow" else SIGNS[name]
    text = f"unsupported operand type(s) for {sign}: '{kinds[0]}' and '{kinds[1]}'"
    if name in _REFLECTED:
        text = f"'{SIGNS[name]}' not supported between instances of '{kinds[0]}' and '{kinds[1]}'"
    raise_new(machine, TypeError, text)


def _joined(machine: Machine, left: Abstract, right: Abstract) -> Abstract | None:
    """``+`` of texts, tuples, lists and what is appended to a state."""
    if is_text(machine, left) and is_text(machine, right):
        return concat(machine, (left, right))
    if isinstance(left, Tuple) and isinstance(right, Tuple) and left.kind is tuple and right.kind is tuple:
        return Tuple((*left.items, *right.items))
    lists = machine.cell(left), machine.cell(right)
    if isinstance(lists[0], ListCell) and isinstance(lists[1], ListCell):
        return machine.new(ListCell((*lists[0].items, *lists[1].items)))
    if isinstance(lists[0], ListCell | GrownCell) and isinstance(lists[1], ListCell | GrownCell):
        return machine.new(GrownCell(pure(machine, "add", (left, right))))
    return machine.append_together(left, right)


def _repeated(machine: Machine, left: Abstract, right: Abstract) -> Abstract | None:
    items, count = (left, right) if isinstance(left, Tuple) or machine.cell(left) is not None else (right, left)
    plain = machine.plain(count)
    cell = machine.cell(items)
    if (
        type(plain[0]) not in (int, bool)
        if plain is not None
        else not (isinstance(count, Symbol) and count.type in (INT, BOOL))
    ):
        return None
    if isinstance(cell, GrownCell) or (isinstance(cell, ListCell) and plain is None):
        found = pure(machine, "mul", (items, count))
        return machine.new(GrownCell(found)) if isinstance(found.type, ListType) else found
    if plain is None:
        return None
    if isinstance(items, Tuple) and items.kind is tuple and len(items.items) * plain[0] <= 10_000:
        return Tuple(items.items * plain[0])
    if isinstance(cell, ListCell) and len(cell.items) * plain[0] <= 10_000:
        return machine.new(ListCell(cell.items * plain[0]))
    return None


def _percent(machine: Machine, template: Abstract, values: Abstract) -> Abstract:
    if isinstance(values, Tuple) and values.kind is tuple:
        return pure(machine, "percent", (template, *values.items))
    return pure(machine, "mod", (template, values))


def _is_operand(machine: Machine, value: Abstract) -> bool:
    """Return whether an op may take it: a scalar, a list as it is now, an object of the run."""
    if is_scalar(value) or isinstance(value, Symbol):
        return True
    if isinstance(value, Const):
        return is_deeply_harmless(value.value)
    if isinstance(value, Tuple):
        return value.kind is tuple and all(_is_operand(machine, item) for item in value.items)
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return all(_is_operand(machine, item) for item in cell.items)
    if isinstance(cell, DictCell):
        return all(_is_operand(machine, item) for item in cell.values)
    return isinstance(cell, GrownCell | SetCell | ObjectCell)


def _equal(machine: Machine, name: str, left: Abstract, right: Abstract) -> Abstract:
    """``==`` of values that no op takes: objects of classes without ``__eq__`` are equal to themselves alone."""
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return _items_equal(machine, name, left.items, right.items)
    cells = machine.cell(left), machine.cell(right)
    if isinstance(cells[0], ListCell) and isinstance(cells[1], ListCell):
        return _items_equal(machine, name, cells[0].items, cells[1].items)
    objects = [cell for cell in cells if isinstance(cell, InstanceCell)]
    functions = [value for value in (left, right) if isinstance(value, Function)]
    if objects or functions or {class_of(machine, left), class_of(machine, right)} <= {type(None), type}:
        return Const((name == "eq") is same(left, right))
    raise machine.unsupported(f"the comparison of {describe(machine, left)} and {describe(machine, right)}")


def _items_equal(machine: Machine, name: str, left: tuple[Abstract, ...], right: tuple[Abstract, ...]) -> Abstract:
    if len(left) != len(right):
        return Const(name == "ne")

    def from_index(index: int) -> Abstract:
        if index == len(left):
            return Const(name == "eq")
        if same(left[index], right[index]):
            return from_index(index + 1)
        flag = truth(machine, binary(machine, "eq", left[index], right[index]))
        if isinstance(flag, Const):
            return from_index(index + 1) if flag.value else Const(name == "ne")
        assert isinstance(flag, Symbol)
        return machine.choose(flag, lambda: from_index(index + 1), lambda: Const(name == "ne"))

    return from_index(0)


def unary(machine: Machine, name: str, value: Abstract) -> Abstract:
    """``-x``, ``+x``, ``~x``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: unary(machine, name, one))
    known = known_parts(machine, value)
    if known is not None:
        return run_now(machine, getattr(operator, name), known, name)
    own = machine.special(f"__{name}__", value)
    if own is not None:
        return own
    if name not in _IN_RUN and (is_scalar(value) or isinstance(value, Symbol)):
        return _by_function(machine, name, value)
    if name not in _IN_RUN:
        raise machine.unsupported(f"the operator {name} of {describe(machine, value)}")
    return _of_class(machine, name, pure(machine, name, (value,)), value)


def negated(machine: Machine, value: Abstract) -> Abstract:
    """``not value``."""
    flag = truth(machine, value)
    if isinstance(flag, Const):
        return Const(not flag.value)
    return pure(machine, "not", (flag,), raises=False)


def truth(machine: Machine, value: Abstract) -> Abstract:
    """Return whether ``value`` counts as true: a constant, or a symbol of type ``!bool``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: truth(machine, one))
    known = machine.plain(value)
    if known is not None:
        return Const(bool(known[0]))
    if isinstance(value, Symbol):
        if value.kind in ALWAYS_TRUE:
            return TRUE
        return value if value.type == BOOL else pure(machine, "bool", (value,))
    if isinstance(value, Concat):
        if any(isinstance(part, str) and part for part in value.parts):
            return TRUE
        return pure(machine, "bool", (value,))
    if isinstance(value, Tuple):
        if value.kind is tuple or value.kind.__len__ is tuple.__len__:
            return Const(bool(value.items))
    elif isinstance(value, Ref):
        return _truth_of_cell(machine, value)
    elif isinstance(value, View | NumberRange):
        return truth(machine, value.owner if isinstance(value, View) else value.items)
    elif not isinstance(value, Const):
        return TRUE
    elif machine.has_special("__bool__", value) or machine.has_special("__len__", value):
        return _truth_by_special(machine, value)
    else:
        return machine.truth_of_object(value)
    raise machine.unsupported(f"whether {describe(machine, value)} is true")


def _truth_of_cell(machine: Machine, value: Ref) -> Abstract:
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return Const(bool(cell.items))
    if isinstance(cell, DictCell):
        return Const(bool(cell.keys))
    if isinstance(cell, SetCell):
        return Const(bool(cell.items))
    if isinstance(cell, GrownCell):  # by its length, which both ways know then
        return pure(machine, "gt", (length_of(machine, cell.value), ZERO), gives=BOOL, raises=False)
    if isinstance(cell, InstanceCell):
        return _truth_by_special(machine, value)
    size = machine.size_of(value)
    return TRUE if size is None else truth(machine, size)


def _truth_by_special(machine: Machine, value: Abstract) -> Abstract:
    own = machine.special("__bool__", value)
    if own is not None:
        kind = class_of(machine, own)
        if kind is None:
            raise machine.unsupported(f"whether {describe(machine, value)} is true")
        if kind is not bool:
            raise_new(machine, TypeError, f"__bool__ should return bool, returned {kind.__name__}")
        return truth(machine, own)
    size = machine.size_of(value) if machine.has_special("__len__", value) else None
    return TRUE if size is None else truth(machine, size)


def compare(machine: Machine, operation: ast.cmpop, left: Abstract, right: Abstract) -> Abstract:
    """One comparison of a chain."""
    if isinstance(operation, ast.Is | ast.IsNot):
        return identical(machine, left, right, negate=isinstance(operation, ast.IsNot))
    if isinstance(operation, ast.In | ast.NotIn):
        found = contains(machine, right, left)
        return negated(machine, found) if isinstance(operation, ast.NotIn) else found
    return binary(machine, COMPARISONS[type(operation)], left, right)


def identical(machine: Machine, left: Abstract, right: Abstract, *, negate: bool) -> Abstract:
    """``left is right``."""
    if isinstance(left, Union | Poison):
        return machine.cases(left, lambda one: identical(machine, one, right, negate=negate))
    if isinstance(right, Union | Poison):
        return machine.cases(right, lambda other: identical(machine, left, other, negate=negate))
    if isinstance(left, Ref) or isinstance(right, Ref):
        return _identical_objects(machine, left, right, negate=negate)
    if isinstance(left, Const) and isinstance(right, Const):
        kinds = {type(left.value), type(right.value)}
        if len(kinds) == 1 and kinds <= {int, float, str, tuple} and left.value is not right.value:
            raise machine.stop("`is` compares texts or numbers", "compare values with ==")
        return Const((left.value is right.value) is not negate)
    for one, other in ((left, right), (right, left)):
        if (isinstance(other, Const) and other.value is None) or (
            isinstance(other, Const) and type(other.value) is bool
        ):
            kind = class_of(machine, one)
            if kind is not None and kind is not type(other.value):
                return Const(negate)
    if (isinstance(left, Symbol) and isinstance(right, Symbol | Const)) or isinstance(right, Symbol):
        pair = (left, right)
        constant = next((value.value for value in pair if isinstance(value, Const)), None)
        if constant is None or type(constant) is bool:
            return pure(machine, "is_not" if negate else "is", pair, raises=False)
        if type(constant) not in (int, float, str, tuple):
            return pure(machine, "is_not" if negate else "is", pair)
    if isinstance(left, Function) or isinstance(right, Function):
        return Const(same(left, right) is not negate)
    raise machine.stop("`is` compares values that only a run knows", "compare them with ==")


def _identical_objects(machine: Machine, left: Abstract, right: Abstract, *, negate: bool) -> Abstract:
    for one, other in ((left, right), (right, left)):
        both = isinstance(machine.cell(other), ObjectCell) and not same(one, other)
        if isinstance(machine.cell(one), ObjectCell) and (isinstance(other, Symbol) or both):
            return pure(machine, "is_not" if negate else "is", (one, other))
    machine.check_own((left, right))
    given = [each.address for each in (left, right) if isinstance(each, Ref) and each.address in machine.read_only]
    if len(set(given)) == 2 and class_of(machine, left) is class_of(machine, right):
        raise machine.stop(
            "`is` asks whether two arguments are one object", "compare them with ==, or ask before the program"
        )
    return Const(same(left, right) is not negate)


def contains(machine: Machine, container: Abstract, item: Abstract) -> Abstract:
    """``item in container``."""
    if isinstance(container, Union | Poison | Unbound):
        return machine.cases(container, lambda one: contains(machine, one, item))
    if isinstance(item, Union | Poison | Unbound):
        return machine.cases(item, lambda one: contains(machine, container, one))
    known = known_parts(machine, container, item)
    if known is not None:
        return run_now(machine, operator.contains, known, "contains")
    handled = machine.contains_of(container, item)
    if handled is not None:
        return handled
    if isinstance(container, NumberRange):
        return contains(machine, container.items, item)
    if isinstance(container, View) and objects.is_object(machine, container.owner):
        container = container.owner if container.what == "keys" else objects.view(machine, container)
    if objects.is_object(machine, container):
        return pure(machine, "contains", (objects.looked_into(machine, container), item))
    return _contained(machine, container, item)


def _known_keys(machine: Machine, container: Abstract) -> list[Any] | None:
    """The keys of a dict, the items of a set in an order that is the same in every process; None for others."""
    cell = machine.cell(container)
    return list(cell.keys) if isinstance(cell, DictCell) else machine.set_items(container)


def _contained(machine: Machine, container: Abstract, item: Abstract) -> Abstract:
    cell = machine.cell(container)
    keys = _known_keys(machine, container)
    if keys is not None:
        known = known_parts(machine, item)
        if known is not None:
            return run_now(machine, operator.contains, [dict.fromkeys(keys), known[0]], "contains")
        held = tuple(map(Const, keys))
        # Of what may be unhashable, only a container with a hash table says so.
        return pure(machine, "contains", (Tuple(held) if is_scalar(item) else pure(machine, "set", held), item))
    items = cell.items if isinstance(cell, ListCell) else container.items if isinstance(container, Tuple) else None
    if items is not None and not all(_is_operand(machine, each) for each in (*items, item)):
        return _one_of(machine, items, item)
    own = machine.special("__contains__", container, item)
    if own is not None:
        return truth(machine, own)
    if not _is_operand(machine, container) or not (_is_operand(machine, item) or objects.put_into_run(machine, item)):
        raise machine.unsupported(f"whether something is in {describe(machine, container)}")
    return pure(machine, "contains", (container, item))


def _one_of(machine: Machine, items: Sequence[Abstract], item: Abstract) -> Abstract:
    """Return whether an item is ``item`` or equal to it, asked one after the other as Python does."""
    for index, each in enumerate(items):
        if same(each, item):
            return TRUE
        flag = truth(machine, binary(machine, "eq", each, item))
        if isinstance(flag, Symbol):
            rest = items[index + 1 :]
            return machine.choose(flag, lambda: TRUE, lambda rest=rest: _one_of(machine, rest, item))
        if isinstance(flag, Const) and flag.value:
            return TRUE
    return FALSE


__all__ = ["PLAIN_TYPES", "TEXT", "binary", "compare", "contains", "identical", "negated", "truth", "unary"]

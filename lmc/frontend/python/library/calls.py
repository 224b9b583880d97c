"""Calls of functions that have a row: computed now, as an op that passes may merge and drop, or in order."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.operands import PLAIN_TYPES, class_of, describe, host_call, pure, type_of_value
from lmc.frontend.heap.cells import DictCell, GrownCell, ListCell, ObjectCell, SetCell
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    Concat,
    Const,
    Poison,
    Raised,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
)
from lmc.frontend.python.items import put
from lmc.frontend.python.iteration import Counted, items_of, known_items
from lmc.frontend.python.library import table
from lmc.frontend.python.library.rows import CLASSES, LibraryFunction, LibraryParameter, conforms, resolve, result_type
from lmc.frontend.python.operators import run_now
from lmc.frontend.source.pure_types import is_deeply_harmless, is_fixed, is_standard_module
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL, ListType, Type

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]


def call(machine: Machine, function: Any, row: LibraryFunction, args: Args, kwargs: Kwargs) -> Abstract:
    """Call ``function``, which has a row."""
    for index, value in enumerate([*args, *kwargs.values()]):
        if isinstance(value, Union | Poison | Unbound):

            def with_one(one: Abstract, index: int = index) -> Abstract:
                values = [*args, *kwargs.values()]
                values[index] = one
                named = dict(zip(kwargs, values[len(args) :], strict=True))
                return call(machine, function, row, values[: len(args)], named)

            return machine.cases(value, with_one)
    if row.name == "builtins.print" and "file" in kwargs:
        return _print_elsewhere(machine, row, args, kwargs)
    parameters = row.bind(args, list(kwargs))
    values = [*args, *kwargs.values()]
    if parameters is not None:
        values = [_by_value(machine, each.kind, value) for each, value in zip(parameters, values, strict=True)]
    for value in values:
        check_data(machine, row, value)
    named = dict(zip(kwargs, values[len(args) :], strict=True))
    return _called(machine, Called(function, row, parameters, values[: len(args)], named))


@dataclass(frozen=True, slots=True)
class Called:
    """A call: the function, its row, the parameters of its arguments (None: they do not fit), and its arguments."""

    function: Any
    row: LibraryFunction
    parameters: list[LibraryParameter] | None
    args: Args
    kwargs: Kwargs

    @property
    def values(self) -> list[Abstract]:
        """All arguments, by position, then by name."""
        return [*self.args, *self.kwargs.values()]


def _called(machine: Machine, call: Called) -> Abstract:
    row, args, values = call.row, call.args, call.values
    if not row.is_ordered and "unstable" not in row.flags:
        plain = [machine.plain(value) for value in values]
        if all(each is not None for each in plain) and _is_small(row, plain):
            found = [each[0] for each in plain if each is not None]
            named = dict(zip(call.kwargs, found[len(args) :], strict=True))
            name = row.name.rpartition(".")[2]

            def in_run() -> Abstract:
                return _emitted(machine, call)

            return run_now(machine, call.function, found[: len(args)], name, otherwise=in_run, **named)
    if call.parameters is None:
        raise machine.unsupported(f"this call of {row.name}()")
    return _emitted(machine, call)


def _is_small(row: LibraryFunction, values: Sequence[Any]) -> bool:
    limit = row.limit
    return limit is None or all(type(each[0]) is not int or abs(each[0]) <= limit for each in values)


def _by_value(machine: Machine, kind: str, value: Abstract) -> Abstract:
    """Return what a function that goes over an argument gets of it: a list of its items."""
    if not kind.startswith("list[") or isinstance(value, Symbol | Concat | Tuple):
        return value
    if isinstance(machine.cell(value), ListCell | GrownCell):
        return value
    if isinstance(value, Const) and type(value.value) in (list, tuple, str):
        return value
    items = items_of(machine, value)
    if isinstance(items, Counted):
        return items.value
    return machine.new(ListCell(tuple(known_items(machine, value, "its items are taken") if items is None else items)))


def check_data(machine: Machine, row: LibraryFunction, value: Abstract) -> None:
    """End the capture for what a function of the library may not get: states, functions, objects of the program."""
    if not _is_data(machine, value, 0):
        raise machine.stop(
            f"{row.name}() takes {describe(machine, value)}",
            "pass texts, numbers, or lists and dicts of them: s.text(), a field of the object",
        )


def _is_data(machine: Machine, value: Abstract, depth: int) -> bool:
    if depth > 16:
        return False
    if isinstance(value, Symbol | Concat | Raised):
        return True
    if isinstance(value, Const):
        return _is_known_data(value.value)
    if isinstance(value, Tuple):
        return all(_is_data(machine, item, depth + 1) for item in value.items)
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return all(_is_data(machine, item, depth + 1) for item in cell.items)
    if isinstance(cell, DictCell):
        return all(_is_data(machine, item, depth + 1) for item in cell.values)
    return isinstance(cell, GrownCell | SetCell | ObjectCell)


def _is_known_data(value: Any) -> bool:
    """Return whether a value from outside runs no code of the user's, whatever is done with it."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return all(map(_is_known_data, value))
    if kind is dict:
        return all(_is_known_data(key) and _is_known_data(held) for key, held in value.items())
    if isinstance(value, type | FunctionType) or callable(value):
        return False
    return is_deeply_harmless(value) or is_standard_module(kind.__module__)


def _emitted(machine: Machine, call: Called) -> Abstract:
    row, parameters, values = call.row, call.parameters, call.values
    exact = parameters is not None and all(
        conforms(each.kind, type_of_value(machine, value), class_of(machine, value))
        for each, value in zip(parameters, values, strict=True)
    )
    result = _REFINED.get(row.name, _as_said)(row, values) if exact else "unknown"
    if result not in ("none", "text", "int", "float", "bool") and _may_keep(machine, call):
        raise machine.unsupported(f"{row.name}() of lists in lists")
    if "mutates" in row.flags:
        return _changed(machine, call)
    lists = [kind for kind in (type_of_value(machine, value) for value in values) if isinstance(kind, ListType)]
    element = lists[0].element if lists else ANY
    kind: Type = result_type(result, element)
    found = host_call(
        machine,
        call.function,
        call.args,
        call.kwargs,
        effect=Effect.WRITES if row.is_ordered else Effect.PURE,
        result_type=kind,
        origin=f"the result of {row.name.removeprefix('builtins.')}()",
        raises=row.exceptions() if exact else None,
        taints="logs" in row.flags and not _is_quiet(),
    )
    return made_of(machine, found, result)


def _may_keep(machine: Machine, call: Called) -> bool:
    """Return whether a list or dict of the program's might be a part of the result: it is handed over as a copy."""
    assert call.parameters is not None
    for each, value in zip(call.parameters, call.values, strict=True):
        whole = each.kind.startswith("list[") or each.kind == "any"
        if _holds_cells(machine, value) or (isinstance(value, Ref) and not whole):
            return True
    return False


def _holds_cells(machine: Machine, value: Abstract) -> bool:
    """Return True if ``value`` holds a list or dict that the result might share a part of."""
    cell = machine.cell(value)
    held: Sequence[Abstract] = ()
    if isinstance(cell, ListCell):
        held = cell.items
    elif isinstance(cell, DictCell):
        held = cell.values
    elif isinstance(value, Tuple):
        held = value.items
    return any(isinstance(each, Ref) or (isinstance(each, Tuple) and _holds_cells(machine, each)) for each in held)


def made_of(machine: Machine, found: Symbol, result: str) -> Abstract:
    """The abstract value of what an op gives, by the result of a row."""
    if result in ("unknown", "object") or found.type in PLAIN_TYPES:
        return found
    own = dataclasses.replace(found, foreign=False)
    if result.endswith("?"):
        flag = pure(machine, "is_not", (own, NONE), gives=BOOL, raises=False)
        return Union(flag, made_of(machine, own, result[:-1]), NONE)
    if result.startswith("tuple["):
        kinds = [part.strip() for part in result[6:-1].split(",")]
        return Tuple(
            tuple(
                pure(machine, "getitem", (own, Const(index)), gives=result_type(kind, ANY), raises=False)
                for index, kind in enumerate(kinds)
            )
        )
    if isinstance(found.type, ListType):
        return machine.list_of(own)
    return dataclasses.replace(own, kind=resolve(CLASSES[result])) if result in CLASSES else own


def attribute(machine: Machine, owner: Abstract, kind: type, name: str) -> Abstract | None:
    """Data that an object of the standard library holds; None where there is no row."""
    row = table.find_attribute(kind, name)
    if row is None:
        return None
    if isinstance(owner, Const):
        return run_now(machine, getattr, [owner.value, name], name) if is_fixed(owner.value) else None
    found = host_call(
        machine,
        read_attribute,
        (owner, Const(name)),
        effect=Effect.PURE,
        result_type=result_type(row.result, ANY),
        raises=row.exceptions(),
    )
    return made_of(machine, found, row.result)


def read_attribute(owner: Any, name: str) -> Any:
    """``owner.name``, as a host function."""
    return getattr(owner, name)


# Rows of their own kind


def changed_list(function: Callable[..., Any], position: int, *args: Any, **kwargs: Any) -> list[Any]:
    """Return what a list is after ``function`` has changed it, as a host function."""
    items = [*args[position]]
    function(*args[:position], items, *args[position + 1 :], **kwargs)
    return items


def _changed(machine: Machine, call: Called) -> Abstract:
    """A function that changes the items of a list and gives nothing: the list is another value from here on."""
    position = next(index for index, each in enumerate(call.row.parameters) if each.kind.startswith("list["))
    target = call.args[position]
    cell = machine.cell(target)
    if not isinstance(cell, ListCell | GrownCell):
        raise machine.unsupported(f"{call.row.name}() of {describe(machine, target)}")
    kind = type_of_value(machine, target)
    found = host_call(
        machine,
        changed_list,
        (Const(call.function), Const(position), *call.args),
        call.kwargs,
        effect=Effect.WRITES,
        result_type=kind,
        taints=False,
    )
    own = dataclasses.replace(found, foreign=False)
    put(machine, target, _same_length(machine, cell, own))
    return NONE


def _same_length(machine: Machine, before: ListCell | GrownCell, after: Symbol) -> ListCell | GrownCell:
    if isinstance(before, GrownCell):
        return GrownCell(after)
    items = [pure(machine, "getitem", (after, Const(index)), raises=False) for index in range(len(before.items))]
    return ListCell(tuple(items))


def print_to_errors(*values: Any, sep: str | None = " ", end: str | None = "\n", flush: bool = False) -> None:
    """``print(…, file=sys.stderr)``, as a host function."""
    print(*values, sep=sep, end=end, flush=flush, file=sys.stderr)  # noqa: T201 - the program's own


def _print_elsewhere(machine: Machine, row: LibraryFunction, args: Args, kwargs: Kwargs) -> Abstract:
    rest = {name: value for name, value in kwargs.items() if name != "file"}
    target = kwargs["file"]
    if isinstance(target, Const) and target.value is None:
        return call(machine, print, row, args, rest)
    if not isinstance(target, Const) or target.value is not sys.stderr:
        raise machine.stop("the program prints to a file", "collect the lines, and write them in a tool")
    parameters = row.bind(args, list(rest))
    for value in (*args, *rest.values()):
        check_data(machine, row, value)
    return _called(machine, Called(print_to_errors, row, parameters, args, rest))


def _is_quiet() -> bool:
    """Return whether printing and logging run no code of the user's that could change data."""
    logging = sys.modules.get("logging")
    streams = [type(sys.stdout), type(sys.stderr)]
    if logging is not None:
        loggers = [logging.root, *logging.root.manager.loggerDict.values()]
        for logger in loggers:
            handlers = getattr(logger, "handlers", ())
            streams += [*map(type, handlers), *(type(handler.formatter) for handler in handlers)]
            streams += map(type, getattr(logger, "filters", ()))
    return all(kind is type(None) or _is_standard(kind) for kind in streams)


def _is_standard(kind: type) -> bool:
    return is_standard_module(kind.__module__) or kind.__module__.partition(".")[0] in ("_pytest", "ipykernel", "tqdm")


def _as_said(row: LibraryFunction, _values: Sequence[Abstract]) -> str:
    return row.result


def _found_texts(row: LibraryFunction, values: Sequence[Abstract]) -> str:
    """``findall`` gives texts where the pattern has one group at most, ``split`` where it has none."""
    pattern = _pattern(values[0], *values[2:] if row.name == "re.findall" else ())
    most = 1 if row.name.endswith("findall") else 0
    return row.result if pattern is None or pattern.groups > most else "list[text]"


def _pattern(given: Abstract, *flags: Abstract) -> re.Pattern[str] | None:
    if not isinstance(given, Const) or not all(isinstance(flag, Const) for flag in flags):
        return None
    if isinstance(given.value, re.Pattern):
        return given.value
    try:
        return re.compile(given.value, *(flag.value for flag in flags if isinstance(flag, Const)))
    except (re.error, TypeError, ValueError, RecursionError, OverflowError):
        return None


def _logger(row: LibraryFunction, _values: Sequence[Abstract]) -> str:
    """A logger is of the class that programs may have set."""
    return row.result if sys.modules["logging"].getLoggerClass() is resolve("logging.Logger") else "any"


_REFINED: Mapping[str, Callable[[LibraryFunction, Sequence[Abstract]], str]] = {
    **dict.fromkeys(("re.findall", "re.split", "re.Pattern.findall", "re.Pattern.split"), _found_texts),
    "logging.getLogger": _logger,
}

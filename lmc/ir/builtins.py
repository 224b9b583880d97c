"""The pure builtins of ``py.call``: Python functions without effects, each with its result type.

To add one, add a line to a table below. A builtin must not touch anything but its arguments and must give the same
result for the same arguments on every machine. A list is any sequence: ``str.partition`` gives a tuple, typed as a
list.
"""

from __future__ import annotations

import builtins as python
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.errors import CaptureError
from lmc.ir.types import ANY, BOOL, FLOAT, INT, TEXT, ListType, Type, list_of

ResultType = Callable[[Sequence[Type]], Type]


@dataclass(frozen=True, slots=True)
class PureBuiltin:
    """A builtin: how to run it, the type of its result from those of its arguments, whether it can raise."""

    name: str
    run: Callable[..., Any]
    result_type: ResultType
    may_raise: bool = True


def lookup(name: str) -> PureBuiltin | None:
    """The builtin called ``name``; None where there is none."""
    return _TABLE.get(name)


def names() -> tuple[str, ...]:
    """All builtins, sorted."""
    return tuple(sorted(_TABLE))


def _always(kind: Type) -> ResultType:
    return lambda _: kind


def _arithmetic(types: Sequence[Type]) -> Type:
    """Int op int is int, with a float it is float, text + text is text, list + list of one type stays so."""
    kinds = {INT if kind == BOOL else kind for kind in types}
    if kinds == {INT}:
        return INT
    if kinds and kinds <= {INT, FLOAT}:
        return FLOAT
    if len(kinds) == 1 and len(types) == 2:
        kind = next(iter(kinds))
        if kind == TEXT or isinstance(kind, ListType):
            return kind
    return ANY


def _repeat(types: Sequence[Type]) -> Type:
    if TEXT in types and INT in types:
        return TEXT
    return _arithmetic(types) if TEXT not in types else ANY


def _division(types: Sequence[Type]) -> Type:
    return FLOAT if set(types) <= {INT, FLOAT, BOOL} else ANY


def _remainder(types: Sequence[Type]) -> Type:
    return TEXT if types and types[0] == TEXT else _arithmetic(types)


def _first(types: Sequence[Type]) -> Type:
    return types[0] if types else ANY


def _number(types: Sequence[Type]) -> Type:
    return types[0] if types and types[0] in (INT, FLOAT) else ANY


def _element(types: Sequence[Type]) -> Type:
    if not types:
        return ANY
    if types[0] == TEXT:
        return TEXT
    return types[0].element if isinstance(types[0], ListType) else ANY


def _same_list(types: Sequence[Type]) -> Type:
    if types and isinstance(types[0], ListType):
        return types[0]
    return list_of(TEXT) if types and types[0] == TEXT else list_of(ANY)


def _list_of_arguments(types: Sequence[Type]) -> Type:
    return list_of(types[0]) if types and len(set(types)) == 1 else list_of(ANY)


def _extreme(types: Sequence[Type]) -> Type:
    if len(types) == 1:
        return _element(types)
    return types[0] if len(set(types)) == 1 else ANY


def _contains(container: Any, item: Any) -> bool:
    return item in container


def _slice(sequence: Any, start: int | None, stop: int | None, step: int | None) -> Any:
    return sequence[start:stop:step]


def _list(*items: Any) -> list[Any]:
    return [*items]


def _tuple(*items: Any) -> tuple[Any, ...]:
    return items


def _set(*items: Any) -> set[Any]:
    return {*items}


def _text(value: Any) -> str:
    """The text that a program appends, of which a capture knew only that it may be one."""
    if isinstance(value, str):
        return str.__getitem__(value, slice(None))
    raise CaptureError(
        f"the program appends a {type(value).__name__}, text is needed",
        remedy="make it a text: f'{value}' or str(value)",
    )


def _dict(*keys_and_values: Any) -> dict[Any, Any]:
    return dict(zip(keys_and_values[::2], keys_and_values[1::2], strict=True))


def _percent(template: str, *values: Any) -> str:
    return template % values


def _both(left: Any, right: Any) -> Any:
    return left and right


def _either(left: Any, right: Any) -> Any:
    return left or right


def _choose(condition: Any, when_true: Any, when_false: Any) -> Any:
    return when_true if condition else when_false


def _two_alike(types: Sequence[Type]) -> Type:
    return types[-1] if len(types) >= 2 and types[-1] == types[-2] else ANY


def _sorted(items: Iterable[Any], *, reverse: bool = False) -> list[Any]:
    return python.sorted(items, reverse=reverse)


def _zip(*sequences: Iterable[Any], strict: bool = False) -> list[Any]:
    return list(python.zip(*sequences, strict=strict))


def _enumerate(items: Iterable[Any], start: int = 0) -> list[Any]:
    return list(python.enumerate(items, start))


def _reversed(items: Sequence[Any]) -> list[Any]:
    return list(python.reversed(items))


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_TEXT_TO_TEXT = [
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "title",
    "capitalize",
    "casefold",
    "swapcase",
    "replace",
    "center",
    "ljust",
    "rjust",
    "zfill",
    "expandtabs",
    "removeprefix",
    "removesuffix",
    "translate",
]
_TEXT_TO_BOOL = [
    "startswith",
    "endswith",
    "isalpha",
    "isdigit",
    "isdecimal",
    "isnumeric",
    "isalnum",
    "isspace",
    "isupper",
    "islower",
    "istitle",
    "isidentifier",
    "isprintable",
    "isascii",
]
_TEXT_TO_INT = {"find": False, "rfind": False, "count": False, "index": True, "rindex": True}
_TEXT_TO_LIST = ("split", "rsplit", "splitlines", "partition", "rpartition")


def _entries() -> Iterable[PureBuiltin]:
    for name in _COMPARISONS:
        ordered = name not in ("eq", "ne")
        yield PureBuiltin(name, getattr(operator, name), _always(BOOL), may_raise=ordered)
    for name in _TEXT_TO_TEXT:
        yield PureBuiltin(f"str.{name}", getattr(str, name), _always(TEXT))
    for name in _TEXT_TO_BOOL:
        yield PureBuiltin(f"str.{name}", getattr(str, name), _always(BOOL))
    for name in _TEXT_TO_INT:
        yield PureBuiltin(f"str.{name}", getattr(str, name), _always(INT))
    for name in _TEXT_TO_LIST:
        yield PureBuiltin(f"str.{name}", getattr(str, name), _always(list_of(TEXT)))
    yield PureBuiltin("str.join", str.join, _always(TEXT))
    yield PureBuiltin("str.format", str.format, _always(TEXT))
    yield PureBuiltin("percent", _percent, _always(TEXT))
    yield PureBuiltin("format", format, _always(TEXT))
    yield PureBuiltin("str", str, _always(TEXT), may_raise=False)
    yield PureBuiltin("repr", repr, _always(TEXT), may_raise=False)
    yield PureBuiltin("ascii", ascii, _always(TEXT), may_raise=False)
    yield PureBuiltin("int", int, _always(INT))
    yield PureBuiltin("float", float, _always(FLOAT))
    yield PureBuiltin("bool", bool, _always(BOOL), may_raise=False)
    yield PureBuiltin("not", operator.not_, _always(BOOL), may_raise=False)
    yield PureBuiltin("and", _both, _two_alike, may_raise=False)
    yield PureBuiltin("or", _either, _two_alike, may_raise=False)
    yield PureBuiltin("choose", _choose, _two_alike, may_raise=False)
    yield PureBuiltin("is", operator.is_, _always(BOOL), may_raise=False)
    yield PureBuiltin("is_not", operator.is_not, _always(BOOL), may_raise=False)
    yield PureBuiltin("len", len, _always(INT))
    yield PureBuiltin("contains", _contains, _always(BOOL))
    yield PureBuiltin("getitem", operator.getitem, _element)
    yield PureBuiltin("slice", _slice, _first)
    yield PureBuiltin("add", operator.add, _arithmetic)
    yield PureBuiltin("sub", operator.sub, _arithmetic)
    yield PureBuiltin("mul", operator.mul, _repeat)
    yield PureBuiltin("truediv", operator.truediv, _division)
    yield PureBuiltin("floordiv", operator.floordiv, _arithmetic)
    yield PureBuiltin("mod", operator.mod, _remainder)
    yield PureBuiltin("pow", operator.pow, _always(ANY))
    yield PureBuiltin("neg", operator.neg, _number)
    yield PureBuiltin("pos", operator.pos, _number)
    yield PureBuiltin("abs", abs, _number)
    yield PureBuiltin("round", round, _always(ANY))
    yield PureBuiltin("ord", ord, _always(INT))
    yield PureBuiltin("chr", chr, _always(TEXT))
    yield PureBuiltin("min", min, _extreme)
    yield PureBuiltin("max", max, _extreme)
    yield PureBuiltin("sum", sum, _always(ANY))
    yield PureBuiltin("any", any, _always(BOOL))
    yield PureBuiltin("all", all, _always(BOOL))
    yield PureBuiltin("sorted", _sorted, _same_list)
    yield PureBuiltin("reversed", _reversed, _same_list)
    yield PureBuiltin("zip", _zip, _always(list_of(ANY)))
    yield PureBuiltin("enumerate", _enumerate, _always(list_of(ANY)))
    yield PureBuiltin("list", _list, _list_of_arguments, may_raise=False)
    yield PureBuiltin("set", _set, _always(ANY))
    yield PureBuiltin("text", _text, _always(TEXT))
    yield PureBuiltin("list_from", list, _same_list)
    yield PureBuiltin("tuple", _tuple, _list_of_arguments, may_raise=False)
    yield PureBuiltin("tuple_from", tuple, _same_list)
    yield PureBuiltin("dict", _dict, _always(ANY))


_TABLE = {entry.name: entry for entry in _entries()}

"""The pure builtins of ``py.call``: Python functions without effects, each with its result type.

To add one, add a line to a table below, or to those of ``list_builtins`` and ``statements``. A builtin must not touch
anything but its arguments and must give the same result for the same arguments on every machine. A list is any
sequence: ``str.partition`` gives a tuple, typed as a list.
"""

from __future__ import annotations

import builtins as python
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.builtins.builtin_types import (
    ResultType,
    Safe,
    always_gives,
    always_safe,
    arithmetic,
    division,
    element,
    extreme,
    list_of_arguments,
    never_safe,
    remainder,
    repeat,
    safe_for_addition,
    safe_for_enumerated,
    safe_for_numbers_alike,
    safe_for_one_number,
    safe_for_one_sized,
    safe_for_ordered,
    safe_for_printable,
    safe_for_sized,
    safe_for_texts,
    safe_for_truth_of_first,
    safe_for_two,
    safe_for_two_plain,
    same_list,
    same_number,
    two_alike,
    type_of_first,
)
from lmc.ir.builtins.checks import checked_choice
from lmc.ir.builtins.list_builtins import LIST_BUILTINS
from lmc.ir.builtins.statements import STATEMENT_BUILTINS
from lmc.ir.errors import CaptureError
from lmc.ir.types import ANY, BOOL, FLOAT, INT, TEXT, Type, list_of
from lmc.ir.wording import with_article


@dataclass(frozen=True, slots=True)
class PureBuiltin:
    """A builtin: how to run it, and the type of its result from those of its arguments.

    ``is_safe`` says for which types of positional arguments it cannot raise, whatever their values are.
    """

    name: str
    run: Callable[..., Any]
    result_type: ResultType
    is_safe: Safe = never_safe

    def may_raise(self, types: Sequence[Type], keywords: Sequence[str] = ()) -> bool:
        """Return True if it can raise on values of ``types``, the last of them given as ``keywords``."""
        return bool(keywords) or not self.is_safe(types)


def lookup(name: str) -> PureBuiltin | None:
    """The builtin called ``name``; None where there is none."""
    return _TABLE.get(name)


def names() -> tuple[str, ...]:
    """All builtins, sorted."""
    return tuple(sorted(_TABLE))


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
        f"the program appends {with_article(type(value).__name__)}, text is needed",
        remedy="make it a text: f'{value}' or str(value)",
    )


def _dict(*keys_and_values: Any) -> dict[Any, Any]:
    return dict(zip(keys_and_values[::2], keys_and_values[1::2], strict=True))


def _field(owner: Any, name: str, key: str, *default: Any) -> Any:
    """A field, which an instance calls ``name`` and its JSON ``key``; where there is no class, there is only JSON.

    Fields alone: what else an object has may be a method, and no text may name what is then called.
    """
    if type(owner) is dict:
        return owner.get(key, *default) if default else owner[key]
    kind = type(owner)
    fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", None)
    if not isinstance(fields, dict) or name not in fields:
        raise AttributeError(f"{kind.__name__!r} object has no field {name!r}")
    return getattr(owner, name)


def _percent(template: str, *values: Any) -> str:
    return template % values


def _both(left: Any, right: Any) -> Any:
    return left and right


def _either(left: Any, right: Any) -> Any:
    return left or right


def _choose(condition: Any, when_true: Any, when_false: Any) -> Any:
    return when_true if condition else when_false


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
_TEXT_TO_INT = ("find", "rfind", "count", "index", "rindex")
_TEXT_TO_LIST = ("split", "rsplit", "splitlines", "partition", "rpartition")
# How many texts, itself included, a method of a text takes where it then can't raise.
_SAFE_COUNTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("lower", "upper", "title", "capitalize", "casefold", "swapcase", "split", "rsplit"), (1,)),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), (1, 2)),
    **dict.fromkeys([name for name in _TEXT_TO_BOOL if name.startswith("is")], (1,)),
    **dict.fromkeys(("startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "count"), (2,)),
    "splitlines": (1,),
    "replace": (3,),
}


def _entries() -> Iterable[PureBuiltin]:
    for name in _COMPARISONS:
        is_safe = safe_for_two_plain if name in ("eq", "ne") else safe_for_ordered
        yield PureBuiltin(name, getattr(operator, name), always_gives(BOOL), is_safe)
    for names_of, kind in (
        (_TEXT_TO_TEXT, TEXT),
        (_TEXT_TO_BOOL, BOOL),
        (_TEXT_TO_INT, INT),
        (_TEXT_TO_LIST, list_of(TEXT)),
    ):
        for name in names_of:
            is_safe = safe_for_texts(*_SAFE_COUNTS.get(name, ()))
            yield PureBuiltin(f"str.{name}", getattr(str, name), always_gives(kind), is_safe)
    yield PureBuiltin("str.join", str.join, always_gives(TEXT))
    yield PureBuiltin("str.format", str.format, always_gives(TEXT))
    yield PureBuiltin("percent", _percent, always_gives(TEXT))
    yield PureBuiltin("format", format, always_gives(TEXT))
    yield PureBuiltin("str", str, always_gives(TEXT), safe_for_printable)
    yield PureBuiltin("repr", repr, always_gives(TEXT), safe_for_printable)
    yield PureBuiltin("ascii", ascii, always_gives(TEXT), safe_for_printable)
    yield PureBuiltin("int", int, always_gives(INT))
    yield PureBuiltin("float", float, always_gives(FLOAT))
    yield PureBuiltin("bool", bool, always_gives(BOOL), safe_for_truth_of_first(1))
    yield PureBuiltin("not", operator.not_, always_gives(BOOL), safe_for_truth_of_first(1))
    yield PureBuiltin("and", _both, two_alike, safe_for_truth_of_first(2))
    yield PureBuiltin("or", _either, two_alike, safe_for_truth_of_first(2))
    yield PureBuiltin("choose", _choose, two_alike, safe_for_truth_of_first(3))
    yield PureBuiltin("is", operator.is_, always_gives(BOOL), safe_for_two)
    yield PureBuiltin("is_not", operator.is_not, always_gives(BOOL), safe_for_two)
    yield PureBuiltin("len", len, always_gives(INT), safe_for_one_sized)
    yield PureBuiltin("contains", _contains, always_gives(BOOL), safe_for_texts(2))
    yield PureBuiltin("getitem", operator.getitem, element)
    yield PureBuiltin("field", _field, always_gives(ANY))
    yield PureBuiltin("slice", _slice, type_of_first)
    yield PureBuiltin("add", operator.add, arithmetic, safe_for_addition)
    yield PureBuiltin("sub", operator.sub, arithmetic, safe_for_numbers_alike)
    yield PureBuiltin("mul", operator.mul, repeat)
    yield PureBuiltin("truediv", operator.truediv, division)
    yield PureBuiltin("floordiv", operator.floordiv, arithmetic)
    yield PureBuiltin("mod", operator.mod, remainder)
    yield PureBuiltin("pow", operator.pow, always_gives(ANY))
    # Of what never changes in place; the errors of these name another operator.
    for name, kind in (("add", arithmetic), ("sub", arithmetic), ("mul", repeat), ("truediv", division)):
        yield PureBuiltin(f"i{name}", getattr(operator, f"i{name}"), kind)
    for name, kind in (("floordiv", arithmetic), ("mod", remainder), ("pow", always_gives(ANY))):
        yield PureBuiltin(f"i{name}", getattr(operator, f"i{name}"), kind)
    yield PureBuiltin("neg", operator.neg, same_number, safe_for_one_number)
    yield PureBuiltin("pos", operator.pos, same_number, safe_for_one_number)
    yield PureBuiltin("abs", abs, same_number, safe_for_one_number)
    yield PureBuiltin("round", round, always_gives(ANY))
    yield PureBuiltin("ord", ord, always_gives(INT))
    yield PureBuiltin("chr", chr, always_gives(TEXT))
    yield PureBuiltin("min", min, extreme)
    yield PureBuiltin("max", max, extreme)
    yield PureBuiltin("sum", sum, always_gives(ANY))
    yield PureBuiltin("any", any, always_gives(BOOL))
    yield PureBuiltin("all", all, always_gives(BOOL))
    yield PureBuiltin("sorted", _sorted, same_list)
    yield PureBuiltin("reversed", _reversed, same_list, safe_for_one_sized)
    yield PureBuiltin("zip", _zip, always_gives(list_of(ANY)), safe_for_sized)
    yield PureBuiltin("enumerate", _enumerate, always_gives(list_of(ANY)), safe_for_enumerated)
    yield PureBuiltin("list", _list, list_of_arguments, always_safe)
    yield PureBuiltin("set", _set, always_gives(ANY))
    yield PureBuiltin("text", _text, always_gives(TEXT))
    yield PureBuiltin("choice", checked_choice, always_gives(TEXT))
    yield PureBuiltin("list_from", list, same_list)
    yield PureBuiltin("set_from", set, always_gives(ANY))
    yield PureBuiltin("tuple", _tuple, list_of_arguments, always_safe)
    yield PureBuiltin("tuple_from", tuple, same_list)
    yield PureBuiltin("dict", _dict, always_gives(ANY))


_ROWS = (*STATEMENT_BUILTINS, *LIST_BUILTINS)
_TABLE = {entry.name: entry for entry in (*_entries(), *(PureBuiltin(*row) for row in _ROWS))}

"""Runs pure builtins on literals at compile time, where that is cheap and cannot fail."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.builtins import builtins
from lmc.ir.core import Attribute
from lmc.ir.types import ANY, SCALARS, Type, type_of

_MAX_CHARACTERS = 4096
_MAX_BITS = 1024

# Time and size of the result are linear in the arguments.
_LINEAR = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "str", "repr", "ascii", "int", "float", "bool", "not", "and", "or", "choose"}
    | {"len", "contains", "getitem", "slice", "add", "sub", "truediv", "floordiv", "neg", "pos", "abs", "ord", "chr"}
    | {"str.strip", "str.lstrip", "str.rstrip", "str.lower", "str.upper", "str.title", "str.capitalize"}
    | {"str.casefold", "str.swapcase", "str.removeprefix", "str.removesuffix", "str.startswith", "str.endswith"}
    | {"str.isalpha", "str.isdigit", "str.isdecimal", "str.isnumeric", "str.isalnum", "str.isspace", "str.isupper"}
    | {"str.islower", "str.istitle", "str.isidentifier", "str.isprintable", "str.isascii"}
    | {"str.find", "str.rfind", "str.count", "str.index", "str.rindex", "min", "max"}
)
# The result can be far larger than the arguments: widths, repetitions, powers. Run only on small ones, whose results
# have at most about ten times as many characters as the product of their lengths.
_GROWING = frozenset(
    {"mul", "mod", "pow", "round", "percent", "format", "str.format", "str.replace", "str.center", "str.ljust"}
    | {"str.rjust", "str.zfill", "str.expandtabs"}
)
_FORMATS = {"format": 1, "str.format": 0}
_SMALL_NUMBER = 64
_MAX_PRODUCT = 16_384
_LARGE_WIDTH = re.compile(r"\d{3}")


@dataclass(frozen=True, slots=True)
class Folded:
    """The result of a call: a literal."""

    value: Attribute


def fold_call(function: str, arguments: Sequence[Any], keywords: Sequence[str], result: Type) -> Folded | None:
    """The result of ``function`` on literal ``arguments`` (the last ones named by ``keywords``), if it is a literal.

    None where the call is not known to be cheap, raises, gives something of another type than ``result``, or a text or
    number that is too large for a module.
    """
    builtin = builtins.lookup(function)
    if builtin is None or not all(map(_is_small, arguments)):
        return None
    if function not in _LINEAR and not (function in _GROWING and _stays_small(function, arguments)):
        return None
    split = len(arguments) - len(keywords)
    try:
        value = builtin.run(*arguments[:split], **dict(zip(keywords, arguments[split:], strict=True)))
    except Exception:  # it is the user's expression: it shall raise when the program runs, not here
        return None
    return Folded(value) if _is_small(value) and result in (ANY, type_of(value)) else None


def _is_small(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_CHARACTERS
    if isinstance(value, int):
        return value.bit_length() <= _MAX_BITS
    return type(value) in SCALARS


def _stays_small(function: str, arguments: Sequence[Any]) -> bool:
    """Return True if a function that may expand its arguments has a small result for these."""
    if not all(map(_is_tiny, arguments)):
        return False
    lengths = [max(len(argument), 1) for argument in arguments if isinstance(argument, str)]
    if math.prod(lengths) > _MAX_PRODUCT:
        return False
    place = _FORMATS.get(function)
    if place is None or len(arguments) <= place:
        return True
    template = arguments[place]
    if not isinstance(template, str):
        return False
    return _is_plain(template) if function == "str.format" else not template.endswith("n")


def _is_tiny(value: object) -> bool:
    """Return True for a text without a large width, and for a small number."""
    if isinstance(value, str):
        return not _LARGE_WIDTH.search(value)
    return not isinstance(value, int | float) or abs(value) <= _SMALL_NUMBER


def _is_plain(template: str) -> bool:
    """Return True if the fields of a template for ``str.format`` only name arguments, with literal widths.

    Widths may be fields themselves (``{:{}{}{}}``), and joined they are large. Attributes of a value may show its
    address. ``n`` writes numbers as the machine's locale has it.
    """
    try:
        fields = [*string.Formatter().parse(template)]
    except ValueError:
        return False
    return all(_is_plain_field(name, spec or "") for _, name, spec, _ in fields if name is not None)


def _is_plain_field(name: str, spec: str) -> bool:
    return (not name or name.isdecimal() or name.isidentifier()) and "{" not in spec and not spec.endswith("n")

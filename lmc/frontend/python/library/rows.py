"""Rows of the table of the standard library: parameters, result, exceptions and effect of each function.

A row is one line of text, ``names: parameters -> result ! exceptions ; flags``. Parameters are ``kind`` (by position),
``name:kind``, ``name=kind`` (optional), ``kind?`` (optional, by position), ``*kind`` (any number); those behind ``*``
are given by name. Kinds are the keys of ``KINDS`` and ``CLASSES``, and ``list[kind]``. The result is the exact type for
arguments of these kinds; ``item`` is an element of the first list, ``kind?`` may be None. For arguments of these kinds
no other exceptions than those are raised.

Flags: ``draws`` and ``logs`` (ordered calls), ``mutates`` (the first list is changed in place), ``unstable``
(pure, but another process gives another result), ``ints<=N`` (computed during capture up to that number).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, ListType, Type, list_of

_NUMBERS = frozenset({INT, FLOAT, BOOL})
_SCALARS = frozenset({TEXT, NONE}) | _NUMBERS
KINDS: Mapping[str, Callable[[Type], bool]] = {
    "any": lambda _: True,
    "scalar": _SCALARS.__contains__,
    "number": _NUMBERS.__contains__,
    "int": frozenset({INT, BOOL}).__contains__,
    "float": frozenset({FLOAT}).__contains__,
    "bool": frozenset({BOOL}).__contains__,
    "none": frozenset({NONE}).__contains__,
    **dict.fromkeys(("text", "json", "isodate", "pattern", "url"), frozenset({TEXT}).__contains__),
}
"""Kinds of arguments by the IR types that belong to them. Several kinds of texts: what is usually given there."""
CLASSES: Mapping[str, str] = {
    "date": "datetime.date",
    "datetime": "datetime.datetime",
    "timedelta": "datetime.timedelta",
    "daytime": "datetime.time",
    "Pattern": "re.Pattern",
    "Match": "re.Match",
    "flags": "re.RegexFlag",
    "Decimal": "decimal.Decimal",
    "Fraction": "fractions.Fraction",
    "UUID": "uuid.UUID",
    "Random": "random.Random",
    "Logger": "logging.Logger",
    "SequenceMatcher": "difflib.SequenceMatcher",
    "Hash": "_hashlib.HASH",
    "SplitResult": "urllib.parse.SplitResult",
    "ParseResult": "urllib.parse.ParseResult",
    "bytes": "builtins.bytes",
    "class": "builtins.type",
}
"""Kinds that are classes, by where these are. No code of the user's runs in their instances."""
RESULTS: Mapping[str, Type] = {"text": TEXT, "int": INT, "float": FLOAT, "bool": BOOL, "none": NONE}
"""Results that have an IR type; ``any`` is one that nothing can change, ``object`` a new one that can be changed."""


@dataclass(frozen=True, slots=True)
class LibraryParameter:
    """A parameter: its kind, and its name where it can be given by name."""

    kind: str
    name: str | None = None
    required: bool = True
    many: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function of the standard library; see the module. ``name`` is its module and name."""

    name: str
    parameters: tuple[LibraryParameter, ...]
    result: str
    raises: tuple[str, ...]
    flags: frozenset[str]

    @property
    def is_ordered(self) -> bool:
        """Return whether calls keep their order and number."""
        return bool(self.flags & {"draws", "logs", "mutates"})

    @property
    def limit(self) -> int | None:
        """The largest number for which it is computed during capture."""
        found = [flag.removeprefix("ints<=") for flag in self.flags if flag.startswith("ints<=")]
        return int(found[0]) if found else None

    def exceptions(self) -> tuple[type[BaseException], ...]:
        """The classes of all that it raises for arguments of its kinds."""
        return tuple(resolve(name if "." in name else f"builtins.{name}") for name in self.raises)

    def bind(self, args: Sequence[Any], names: Sequence[str]) -> list[LibraryParameter] | None:
        """The parameters of arguments by position and by name, in order; None where they do not fit."""
        positional = [each for each in self.parameters if not each.by_name]
        found: list[LibraryParameter] = []
        for index in range(len(args)):
            if index >= len(positional) and not (positional and positional[-1].many):
                return None
            found.append(positional[min(index, len(positional) - 1)])
        named = {each.name: each for each in self.parameters if each.name is not None}
        if any(name not in named or named[name] in found for name in names):
            return None
        found += [named[name] for name in names]
        if any(each.required and not each.many and each not in found for each in self.parameters):
            return None
        return found


def conforms(kind: str, found: Type, cls: type | None) -> bool:
    """Return whether a value of an IR type, or of a class, is of ``kind``."""
    if kind.endswith("?"):
        return found == NONE or conforms(kind[:-1], found, cls)
    if "|" in kind:
        return any(conforms(part, found, cls) for part in kind.split("|"))
    if kind.startswith("list["):
        return isinstance(found, ListType) and conforms(kind[5:-1], found.element, None)
    if kind in CLASSES:
        return cls is not None and cls is resolve(CLASSES[kind])
    return KINDS[kind](found)


def result_type(kind: str, element: Type) -> Type:
    """The IR type of a result; ``element`` that of an item of the first list."""
    if kind == "item":
        return element
    if kind.startswith("list["):
        return list_of(result_type(kind[5:-1], element))
    return RESULTS.get(kind, ANY)


def resolve(path: str) -> Any:
    """Return what stands at ``module.name``, where the module is loaded; None otherwise."""
    parts = path.split(".")
    for split in range(len(parts) - 1, 0, -1):
        found = sys.modules.get(".".join(parts[:split]))
        if found is not None:
            for name in parts[split:]:
                found = getattr(found, name, None)
            return found
    return None


def parsed(module: str, text: str) -> dict[str, LibraryFunction]:
    """The rows of a module's table, by name."""
    found: dict[str, LibraryFunction] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        names, _, rest = line.partition(": ")
        rest, _, flags = rest.partition(" ; ")
        rest, _, raises = rest.partition(" ! ")
        parameters, _, result = rest.rpartition("-> ")
        for name in names.split():
            key = f".{parameters.strip()}{name}" if name.startswith(".") else name
            found[key] = LibraryFunction(
                f"{module}.{name}",
                _parameters(parameters),
                result.strip(),
                tuple(raises.split()),
                frozenset(flags.split()),
            )
    return found


@lru_cache(maxsize=512)
def _parameters(text: str) -> tuple[LibraryParameter, ...]:
    found: list[LibraryParameter] = []
    by_name = False
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part == "*":
            by_name = True
        elif part.startswith("*"):
            found.append(LibraryParameter(part[1:], many=True))
            by_name = True
        elif "=" in part:
            name, _, kind = part.partition("=")
            found.append(LibraryParameter(kind, name, required=False, by_name=by_name))
        elif ":" in part:
            name, _, kind = part.partition(":")
            found.append(LibraryParameter(kind, name, by_name=by_name))
        elif part.endswith("?"):
            found.append(LibraryParameter(part[:-1], required=False))
        else:
            found.append(LibraryParameter(part))
    return tuple(found)

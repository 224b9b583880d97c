"""The parts of a schema that restrict nothing, and those that restrict more than they say, in one remark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from lmc.grammar.schema.documents.checking import ASSERTIONS, UNKNOWN_FORMAT, UNKNOWN_KEYWORD, Ignored
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.errors import json_pointer, tokens_of
from lmc.grammar.schema.strings.formats import BOUNDS, KNOWN, UNRESTRICTED
from lmc.ir.errors import ConstraintError

_MOST_NAMES = 8  # of one cause


class Misspelt(NamedTuple):
    """A keyword or format that is unknown, one edit from a known one; a keyword's value fits the known one.

    ``pointer`` is the first of ``places`` places.
    """

    name: str
    meant: str
    pointer: str
    places: int = 1

    def __str__(self) -> str:
        more = f" and {self.places - 1} more place{'s' * (self.places > 2)}" if self.places > 1 else ""
        return f"{self.name} at #{self.pointer}{more} (did you mean {self.meant}?)"


class SchemaRemark(NamedTuple):
    """The parts of a schema that are not enforced as written.

    ``text`` is one line: the annotations that are not those of JSON Schema by cause, as they restrict nothing, and the
    keywords that are enforced by fewer values than they allow. ``misspelt`` are annotations likely meant to restrict.
    """

    text: str
    misspelt: tuple[Misspelt, ...]


def remark_of(schema: dict[str, Any] | bool, narrowed: Mapping[str, str] | None = None) -> SchemaRemark | None:
    """Return what a schema that is not refused says and does not mean here; None where there is nothing.

    ``narrowed`` are the keywords that are enforced by fewer values, by JSON pointer: see ``SchemaBuilder.narrowed``.
    """
    document = Document(schema)
    found: list[Ignored] = []
    for sub in document.parts():
        try:
            found += document.ignored(sub)
        except ConstraintError:  # of a definition that nothing refers to
            continue
    names: dict[str, Counter[str]] = {}
    places: dict[tuple[str, str], list[str]] = {}
    for each in found:
        meant = _meant(schema, each, document)
        if meant is None:
            names.setdefault(each.cause, Counter())[each.name] += 1
        else:
            places.setdefault((each.name, meant), []).append(json_pointer(each.pointer))
    misspelt = tuple(Misspelt(*key, min(pointers), len(pointers)) for key, pointers in places.items())
    parts = [f"likely misspelt: {', '.join(map(str, misspelt))}"] if misspelt else []
    parts += [f"{cause}: {_listed(counted)}" for cause, counted in names.items()]
    said = [f"parts of the schema restrict nothing: {'; '.join(parts)}"] if parts else []
    if narrowed:
        shown = [f"#{pointer} ({how})" for pointer, how in list(narrowed.items())[:_MOST_NAMES]]
        more = f" and {len(narrowed) - len(shown)} more" if len(narrowed) > len(shown) else ""
        said.append(f"fewer values are produced than the schema allows: {', '.join(shown)}{more}")
    return SchemaRemark("; ".join(said), misspelt) if said else None


def _listed(counted: Counter[str]) -> str:
    shown = [name if count == 1 else f"{name} ({count} times)" for name, count in counted.most_common(_MOST_NAMES)]
    more = len(counted) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _meant(schema: Any, ignored: Ignored, document: Document) -> str | None:
    """The keyword or format of which an unknown one is likely a misspelling."""
    if ignored.cause == UNKNOWN_FORMAT:
        known = {*KNOWN, *BOUNDS, *UNRESTRICTED}
        return next((name for name in sorted(known) if _is_one_edit(ignored.name, name)), None)
    if ignored.cause != UNKNOWN_KEYWORD:
        return None
    holder: Any = None
    value = schema
    for token in tokens_of(ignored.pointer):
        holder, value = value, value[token]
    if document.dialect.ignores_siblings and "$ref" in holder:
        return None
    for keyword in sorted(document.dialect.keywords):
        if _is_one_edit(ignored.name, keyword) and ASSERTIONS[keyword][0](value):
            return keyword
    return None


def _is_one_edit(name: str, other: str) -> bool:
    """Return True for one character added, left out, replaced or swapped with the next, or another case."""
    if name.lower() == other.lower():
        return True
    if abs(len(name) - len(other)) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))
    rest, expected = name[start:], other[start:]
    is_exchanged = rest[:2] == expected[1::-1] and rest[2:] == expected[2:]
    return is_exchanged or rest[1:] == expected[1:] or rest[1:] == expected or rest == expected[1:]

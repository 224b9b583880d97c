"""The parts of a schema that restrict nothing, in one remark."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from lmc.grammar.schema.checking import ASSERTIONS, UNKNOWN_KEYWORD, Ignored
from lmc.grammar.schema.documents import Document
from lmc.grammar.schema.errors import json_pointer, tokens_of
from lmc.ir.errors import ConstraintError

_MOST_NAMES = 8  # of one cause


class Misspelt(NamedTuple):
    """A keyword that is unknown, one edit from a known one whose values are like its own."""

    name: str
    meant: str
    pointer: str

    def __str__(self) -> str:
        return f"{self.name} at #{self.pointer} (did you mean {self.meant}?)"


class Remark(NamedTuple):
    """The annotations of a schema that are not those of JSON Schema: they restrict nothing.

    ``text`` is one line that names them by cause; ``misspelt`` are those among them that are likely meant to restrict.
    """

    text: str
    misspelt: tuple[Misspelt, ...]


def remark_of(schema: dict[str, Any] | bool) -> Remark | None:
    """Return what is ignored of a schema that is not refused; None where nothing is."""
    document = Document(schema)
    found: list[Ignored] = []
    for sub in document.parts():
        try:
            found += document.ignored(sub)
        except ConstraintError:  # of a definition that nothing refers to
            continue
    if not found:
        return None
    misspelt = {each.name: meant for each in found if (meant := _misspelt(schema, each, document)) is not None}
    names: dict[str, Counter[str]] = {}
    for each in found:
        if each.name not in misspelt:
            names.setdefault(each.cause, Counter())[each.name] += 1
    parts = [f"{cause}: {_listed(counted)}" for cause, counted in names.items()]
    if misspelt:
        parts.insert(0, f"likely misspelt: {', '.join(map(str, misspelt.values()))}")
    return Remark(f"parts of the schema restrict nothing: {'; '.join(parts)}", tuple(misspelt.values()))


def _listed(counted: Counter[str]) -> str:
    shown = [name if count == 1 else f"{name} ({count} times)" for name, count in counted.most_common(_MOST_NAMES)]
    more = len(counted) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _misspelt(schema: Any, ignored: Ignored, document: Document) -> Misspelt | None:
    if ignored.cause != UNKNOWN_KEYWORD:
        return None
    value = schema
    where = json_pointer(ignored.pointer)
    for token in tokens_of(ignored.pointer):
        value = value[token]
    for keyword in sorted(document.dialect.keywords):
        if _is_one_edit(ignored.name, keyword) and ASSERTIONS[keyword][0](value):
            return Misspelt(ignored.name, keyword, where)
    return None


def _is_one_edit(name: str, other: str) -> bool:
    """Whether one character is added, left out, replaced or exchanged with the next one, or only the case differs."""
    if name.lower() == other.lower():
        return True
    if abs(len(name) - len(other)) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))
    rest, expected = name[start:], other[start:]
    is_exchanged = rest[:2] == expected[1::-1] and rest[2:] == expected[2:]
    return is_exchanged or rest[1:] == expected[1:] or rest[1:] == expected or rest == expected[1:]

"""A schema as a document: its dialect, its parts with URIs, the targets of its references, and what it ignores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from lmc.grammar.schema.documents.keywords import (
    ASSERTIONS,
    NAMED_SCHEMAS,
    ONE_SCHEMA,
    SCHEMAS,
    UNKNOWN_FORMAT,
    UNKNOWN_KEYWORD,
    Ignored,
    Keywords,
    dialect_of,
    read_schema,
)
from lmc.grammar.schema.errors import Pointer, Subschema, json_pointer, refusal, tokens_of
from lmc.grammar.schema.formats import BOUNDS, KNOWN, UNRESTRICTED
from lmc.ir.errors import ConstraintError

_SINGLE = (*ONE_SCHEMA, "items")
_LISTS = (*SCHEMAS, "items")
_MAPS = (*NAMED_SCHEMAS, "$defs", "definitions", "dependencies")


class Document:
    """The whole schema. References reach into it: by JSON pointer, anchor, or the URI of a part (``$id``)."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.dialect = dialect_of(schema)
        self._known: dict[tuple[str, str], Subschema] = {}
        self._read: dict[int, Keywords] = {}
        self._own = {id(each) for each in _objects(schema)}
        self._base = self._identifier(schema) or ""
        self._parts: dict[str, Subschema] = {"": Subschema(schema, None), self._base: Subschema(schema, None)}
        self._anchors: dict[tuple[str, str], Subschema] = {}
        self._ambiguous: set[str] = set()
        self._dynamic: dict[str, int] = {}
        self._recursive = 0
        for sub, base in self._places():
            self._note(sub, base)

    def keywords(self, sub: Subschema) -> dict[Any, Any]:
        """The keywords of an object that restrict values; see ``read_schema``, whose errors it raises.

        A schema that rewriting made (``negation.py``) is none of the document and is returned as it is.
        """
        schema, pointer = sub
        if isinstance(schema, dict) and id(schema) not in self._own:
            return schema
        read = self._read.get(id(schema))
        if read is None:
            read = self._read[id(schema)] = self._new(schema, pointer)
        return read.effective

    def ignored(self, sub: Subschema) -> list[Ignored]:
        """The parts of an object of the document that restrict nothing. Raises like ``keywords``."""
        self.keywords(sub)
        return self._read[id(sub.schema)].ignored

    def parts(self) -> Iterator[Subschema]:
        """The document and the schemas in it that keywords hold, the definitions included."""
        return (sub for sub, _ in self._places())

    def resolve(self, reference: str, pointer: Pointer) -> Subschema:
        """The target of a ``$ref`` at ``pointer``. Raises ``ConstraintError`` where it is not in this schema."""
        base = self._base_of(pointer)
        known = self._known.get((base, reference))
        if known is None:
            known = self._known[base, reference] = self._find(base, reference, pointer)
        return known

    def resolve_dynamic(self, keyword: str, reference: str, pointer: Pointer) -> Subschema:
        """The target of a ``$dynamicRef`` or ``$recursiveRef``.

        It is that of a ``$ref``, where there is one anchor of the name. Raises ``ConstraintError`` where the references
        that led to it would decide among several.
        """
        target = self.resolve(reference, pointer)
        schema = target.schema if isinstance(target.schema, dict) else {}
        name = reference.partition("#")[2]
        if keyword == "$recursiveRef":
            is_static = schema.get("$recursiveAnchor") is not True or self._recursive == 1
        else:
            is_static = schema.get("$dynamicAnchor") != name or self._dynamic[name] == 1
        if not is_static:
            raise refusal(pointer, f"{keyword} to an anchor that several schemas have is not supported", "use $ref")
        return target

    def _new(self, schema: Any, pointer: Pointer) -> Keywords:
        read = read_schema(schema, pointer, self.dialect)
        if pointer is not None and "$schema" in schema and dialect_of(schema) != self.dialect:
            remedy = "write the whole schema in one dialect"
            raise refusal((pointer, "$schema"), "a part of the schema is written in another dialect", remedy)
        return read

    def _identifier(self, schema: Any) -> str | None:
        """The URI that an object gives itself, as it is written, without a fragment; None where it gives none."""
        if not isinstance(schema, dict) or (self.dialect.ignores_siblings and "$ref" in schema):
            return None
        named = schema.get(self.dialect.identifier)
        return named.partition("#")[0] or None if isinstance(named, str) else None

    def _places(self) -> Iterator[tuple[Subschema, str]]:
        """The schemas that keywords of the dialect hold, each once, with the base URI around it."""
        stack = [(Subschema(self.schema, None), "")]
        while stack:
            sub, around = stack.pop()
            schema, pointer = sub
            if not isinstance(schema, dict):
                continue
            yield sub, around
            named = self._identifier(schema)
            base = around if named is None else _joined(around, named)
            if self.dialect.ignores_siblings and "$ref" in schema and pointer is not None:
                continue
            for keyword, value in schema.items():
                at = (pointer, keyword)
                if isinstance(value, dict) and keyword in _SINGLE:
                    stack.append((Subschema(value, at), base))
                elif isinstance(value, list) and keyword in _LISTS:
                    stack += [(Subschema(each, (at, index)), base) for index, each in enumerate(value)]
                elif isinstance(value, dict) and keyword in _MAPS:
                    stack += [(Subschema(each, (at, name)), base) for name, each in value.items()]

    def _note(self, sub: Subschema, around: str) -> None:
        """Note the URI and the anchors of a schema."""
        schema = sub.schema
        named = self._identifier(schema)
        base = around if named is None else _joined(around, named)
        if named is not None and self._parts.setdefault(base, sub).schema is not schema:
            self._ambiguous.add(base)
        anchors = [schema.get("$anchor"), schema.get("$dynamicAnchor")]
        written = schema.get(self.dialect.identifier)
        is_reference = self.dialect.ignores_siblings and "$ref" in schema
        if isinstance(written, str) and not is_reference:
            anchors.append(written.partition("#")[2])
        for anchor in anchors:
            if isinstance(anchor, str) and anchor:
                self._anchors[base, anchor] = sub
        dynamic = schema.get("$dynamicAnchor")
        if isinstance(dynamic, str):
            self._dynamic[dynamic] = self._dynamic.get(dynamic, 0) + 1
        self._recursive += schema.get("$recursiveAnchor") is True

    def _base_of(self, pointer: Pointer) -> str:
        """The base URI of a place: that of the innermost schema around it which has one."""
        if len(self._parts) <= 2:
            return self._base
        base, value = self._base, self.schema
        for token in tokens_of(pointer):
            if not isinstance(value, dict | list):
                break
            try:
                value = value[token]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                break
            named = self._identifier(value)
            if named is not None:
                base = _joined(base, named)
        return base

    def _find(self, base: str, reference: str, pointer: Pointer) -> Subschema:
        written, _, fragment = reference.partition("#")
        uri = _joined(base, written) if written else base
        part = self._parts.get(uri)
        if part is None:
            remedy = "copy that schema into $defs and refer to it there"
            raise refusal(pointer, f"{reference!r} is not in this schema, and nothing is fetched", remedy)
        if uri in self._ambiguous:
            raise refusal(pointer, f"{reference!r}: several schemas have this URI", "give each its own")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get((uri, fragment))
            if found is None:
                raise refusal(pointer, f"{reference!r}: there is no $anchor of this name", "correct the reference")
            return found
        value, place = part
        for token in fragment.split("/")[1:]:
            key: Any = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list):
                key = int(key) if key.isdecimal() and int(key) < len(value) else None
            if key is None or not isinstance(value, dict | list) or (isinstance(value, dict) and key not in value):
                raise refusal(pointer, f"{reference!r} points at nothing", "correct the reference")
            value = value[key]
            place = (place, key)
        return Subschema(value, place)


def _joined(base: str, reference: str) -> str:
    """A reference without a fragment, resolved against a base URI."""
    return urljoin(base, reference) if base else reference


def _objects(value: Any) -> Iterator[dict[Any, Any]]:
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield value
            stack += value.values()
        elif isinstance(value, list):
            stack += value


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

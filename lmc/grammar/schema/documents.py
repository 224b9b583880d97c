"""A schema as a document: what its references point at."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from lmc.grammar.schema.checking import dialect_of
from lmc.grammar.schema.errors import Pointer, Subschema, refusal

# Values that are no schemas, so nothing in them is an anchor.
_DATA = frozenset({"const", "default", "enum", "example", "examples"})


class Document:
    """The whole schema. References reach into it: ``#``, ``#/json/pointer``, ``#anchor``, bare or after its ``$id``."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.dialect = dialect_of(schema)
        self._known: dict[str, Subschema] = {}
        self._anchors: dict[str, Subschema] | None = None
        given = schema if isinstance(schema, dict) else {}
        identity = given.get("$id", "")
        self._base = identity.partition("#")[0] if isinstance(identity, str) else ""

    def resolve(self, reference: str, pointer: Pointer) -> Subschema:
        """What a ``$ref`` at ``pointer`` means. Raises ``ConstraintError`` where that is not in this schema."""
        known = self._known.get(reference)
        if known is None:
            known = self._known[reference] = self._find(reference, pointer)
        return known

    def _find(self, reference: str, pointer: Pointer) -> Subschema:
        base, _, fragment = reference.partition("#")
        if base not in ("", self._base):
            remedy = "copy that schema into $defs and refer to it there"
            raise refusal(pointer, f"{reference!r} is not in this schema, and nothing is fetched", remedy)
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if self._anchors is None:
                self._anchors = _anchors(self.schema)
            found = self._anchors.get(fragment)
            if found is None:
                raise refusal(pointer, f"{reference!r}: there is no $anchor of this name", "correct the reference")
            return found
        place: Pointer = None
        value: Any = self.schema
        for token in fragment.split("/")[1:]:
            key: Any = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list):
                key = int(key) if key.isdecimal() and int(key) < len(value) else None
            if key is None or not isinstance(value, dict | list) or (isinstance(value, dict) and key not in value):
                raise refusal(pointer, f"{reference!r} points at nothing", "correct the reference")
            value = value[key]
            place = (place, key)
        return Subschema(value, place)


def _anchors(schema: Any) -> dict[str, Subschema]:
    found: dict[str, Subschema] = {}
    stack = [Subschema(schema, None)]
    while stack:
        value, pointer = stack.pop()
        if isinstance(value, dict):
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(value.get(keyword), str):
                    found[value[keyword]] = Subschema(value, pointer)
            stack += [Subschema(each, (pointer, key)) for key, each in value.items() if key not in _DATA]
        elif isinstance(value, list):
            stack += [Subschema(each, (pointer, index)) for index, each in enumerate(value)]
    return found

"""Constraints as the JSON schemas of a provider, where both mean the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.grammar.compiling import Source, canonical_json
from lmc.ir.errors import ConstraintError

_VALUE = "value"
_REGEX_REMEDY = "give choices or a schema, or check the text in the program; or use a local model"


@dataclass(frozen=True, slots=True)
class ProviderForm:
    """A constraint in a provider's terms: ``schema`` is sent. ``is_wrapped``: the output stands under ``value``."""

    schema: Mapping[str, Any]
    is_wrapped: bool

    def output(self, reply: str) -> str:
        """Return the output in the form that the constraint demands. Raises ``ValueError`` for what is no JSON."""
        data = json.loads(reply)
        if not self.is_wrapped:
            return canonical_json(data)
        value = data[_VALUE] if isinstance(data, dict) and data.keys() == {_VALUE} else None
        if not isinstance(value, str):
            raise ValueError(f"no object with a text under {_VALUE!r}")
        return value


def form_of(source: Source, keywords: frozenset[str], target: str) -> ProviderForm:
    """Return the form of a constraint for a provider whose schemas have ``keywords``.

    Raises ``ConstraintError`` where the provider has none that means the same.
    """
    if source.kind == "choices":
        return _wrapped({"type": "string", "enum": source.data})
    if source.kind == "regex":
        if "pattern" not in keywords or not _is_common(source.text):
            raise ConstraintError(f"{target} takes no regex like {source.text!r}", remedy=_REGEX_REMEDY)
        return _wrapped({"type": "string", "pattern": f"^(?:{source.text})$"})
    if source.kind != "schema":
        raise ConstraintError(f"{target} takes no {source.kind}", remedy=_REGEX_REMEDY)
    schema = source.data
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ConstraintError(f"{target} takes schemas of objects alone", remedy="put the value into an object")
    for pointer, part in _schemas(schema, ""):
        _check(part, pointer or "/", keywords, target)
    return ProviderForm(schema, is_wrapped=False)


def form_bytes(source: Source, keywords: frozenset[str], target: str) -> int:
    """Return the bytes of the schema that is sent for a constraint; 0 for one that the provider lacks."""
    try:
        form = form_of(source, keywords, target)
    except ConstraintError:
        return 0
    return len(json.dumps(form.schema).encode())


def _wrapped(value: dict[str, Any]) -> ProviderForm:
    schema = {
        "type": "object",
        "properties": {_VALUE: value},
        "required": [_VALUE],
        "additionalProperties": False,
    }
    return ProviderForm(schema, is_wrapped=True)


_COMMON = re.compile(r"(?:[^\\^$()?]|\\[dDwWsSnt.*+?()\[\]{}|/\\-]|\((?:\?:)?|\)|\?)*")


def _is_common(pattern: str) -> bool:
    """Return True for a pattern that means the same in all dialects: ASCII, no anchors, no look-around, no flags."""
    return pattern.isascii() and _COMMON.fullmatch(pattern) is not None and "(?" not in pattern.replace("(?:", "(")


def _schemas(schema: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a schema and all schemas in it, by JSON pointer."""
    waiting = [(pointer, schema)]
    while waiting:
        place, part = waiting.pop()
        if not isinstance(part, dict):
            yield place, {"": part}
            continue
        yield place, part
        for name in ("properties", "$defs"):
            for key, inner in part.get(name, {}).items():
                waiting.append((f"{place}/{name}/{key}", inner))
        for number, inner in enumerate(part.get("anyOf", ())):
            waiting.append((f"{place}/anyOf/{number}", inner))
        if "items" in part:
            waiting.append((f"{place}/items", part["items"]))


def _check(part: Mapping[str, Any], pointer: str, keywords: frozenset[str], target: str) -> None:
    """Raise ``ConstraintError`` for a keyword that the provider lacks, and for an object with optional members."""
    unknown = next((name for name in part if name not in keywords), None)
    if unknown is not None:
        raise ConstraintError(
            f"{target} takes no schema with {unknown or 'truth values'!r} (at {pointer})",
            remedy="leave it out and check the value in the program, or use a local model",
            pointer=pointer,
        )
    if part.get("type") == "object" or "properties" in part:
        properties, required = part.get("properties", {}), part.get("required", [])
        if part.get("additionalProperties") is not False:
            raise ConstraintError(
                f"{target} takes objects without further members alone (at {pointer})",
                remedy='set "additionalProperties": false; of a pydantic class: model_config = {"extra": "forbid"}',
                pointer=pointer,
            )
        optional = [name for name in properties if name not in required]
        if optional:
            raise ConstraintError(
                f"{target} takes objects alone whose members are all required, and {optional[0]!r} is optional",
                remedy="leave out its default, and allow null where it may be missing",
                pointer=pointer,
            )

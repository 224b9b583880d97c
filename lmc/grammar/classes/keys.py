"""Keys of a ``dict``: JSON has only texts for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.grammar.classes.errors import UnsupportedTypeError

JsonSchema = dict[str, Any]
_SCALARS = ("integer", "number", "boolean")


def key_schema(schema: JsonSchema, resolve: Callable[[JsonSchema], JsonSchema]) -> JsonSchema | None:
    """Return a schema for the texts that are keys of the type that ``schema`` describes; None if any text is.

    Raises ``UnsupportedTypeError`` for types without a text form.
    """
    plain = {name: value for name, value in resolve(schema).items() if name not in ("title", "description")}
    choices = plain.get("anyOf") or plain.get("oneOf")
    if choices is not None:
        return _any_of(choices, resolve)
    kind = plain.get("type")
    if kind in _SCALARS:
        return {"contentMediaType": "application/json", "contentSchema": plain}
    if kind == "string" or "enum" in plain or "const" in plain:
        return None if plain == {"type": "string"} else plain
    if not plain:
        return None
    raise UnsupportedTypeError(f"keys of a dict that are of type {kind}: no text stands for one", "use another type")


def _any_of(choices: list[JsonSchema], resolve: Callable[[JsonSchema], JsonSchema]) -> JsonSchema | None:
    found: list[JsonSchema] = []
    refused: UnsupportedTypeError | None = None
    for choice in choices:
        try:
            made = key_schema(choice, resolve)
        except UnsupportedTypeError as error:
            refused = error
            continue
        if made is None:
            return None
        found.append(made)
    if not found:
        raise refused or UnsupportedTypeError("keys of a dict out of an empty union", "use another type")
    return {"anyOf": found}


def is_spelled_once(schema: JsonSchema | None) -> bool:
    """Return True if different texts are different keys."""
    if schema is None:
        return True
    if "anyOf" in schema:
        return False
    inner = schema.get("contentSchema")
    if inner is not None:
        return inner["type"] in ("integer", "boolean")
    return schema.get("format") in (None, "date")

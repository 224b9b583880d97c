"""Queries on pydantic's core schemas."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic.types import EncodedBytes, EncodedStr

Core = Mapping[str, Any]
"""A description for pydantic's core: its ``type`` and what belongs to it."""

# Where the description stands of what a value is read as from JSON.
_INNER = {"lax-or-strict": "lax_schema", "json-or-python": "json_schema"}
_WRAPPERS = ("function-after", "function-before", "function-wrap", "default", "nullable", "custom-error")


def function_of(core: Core) -> Callable[..., Any]:
    """The function of a validator."""
    return core["function"]["function"]


class Encoded:
    """The type below validators of lengths: ``kind`` is the type at the bottom, ``encoder`` that of encoded bytes.

    ``low`` and ``high`` bound the length of the decoded value.
    """

    def __init__(self, core: Core) -> None:
        self.encoder: type[Any] | None = None
        self.low, self.high = 0, None
        while core["type"] in _INNER or core["type"] == "function-after":
            if core["type"] == "function-after":
                self._look_at(function_of(core))
            core = core[_INNER.get(core["type"], "schema")]
        self.kind: str = core["type"]

    def _look_at(self, function: Callable[..., Any]) -> None:
        owner = getattr(function, "__self__", None)
        if isinstance(owner, EncodedBytes | EncodedStr):
            self.encoder = owner.encoder
        elif isinstance(function, functools.partial):
            self.low = max(self.low, function.keywords.get("min_length", 0))
            bounds = [bound for bound in (self.high, function.keywords.get("max_length")) if bound is not None]
            self.high = min(bounds, default=None)


def is_hashable(core: Core, definitions: Mapping[str, Core]) -> bool:
    """Return True if every value of a type has a hash; an unknown type counts as hashable."""
    kind = core.get("type")
    if kind in ("list", "set", "dict", "typed-dict", "generator", "deque", "counter", "ordered-dict"):
        return False
    if kind in ("model", "dataclass"):
        return core["cls"].__hash__ is not None
    if kind == "definition-ref":
        return core["schema_ref"] not in definitions or is_hashable(definitions[core["schema_ref"]], definitions)
    parts: Iterable[Core] = ()
    if kind == "tuple":
        parts = core["items_schema"]
    elif kind == "union":
        parts = [choice[0] if isinstance(choice, tuple) else choice for choice in core["choices"]]
    elif kind == "tagged-union":
        parts = core["choices"].values()
    elif kind in _INNER or kind in _WRAPPERS:
        parts = [core[_INNER.get(kind, "schema")]]
    return all(is_hashable(part, definitions) for part in parts)

"""Classes whose values are the data of their JSON.

Asked of pydantic-core's description of a class, like the question in ``own_code.py``; what is not known to be plain is
not.
"""

from __future__ import annotations

from typing import Any

from lmc.frontend.schemas.user_hooks import listed

_SCALARS = frozenset({"any", "none", "bool", "int", "str"})  # a float is not: JSON may write it as a whole number
_PARTS = {
    "nullable": ("schema",),
    "list": ("items_schema",),
    "dict": ("keys_schema", "values_schema"),
    "union": ("choices",),
    "typed-dict": ("fields", "extras_schema"),
    "typed-dict-field": ("schema",),
    "definitions": ("schema", "definitions"),
    "definition-ref": (),
}
_CHANGES = frozenset(prefix + name for prefix in ("", "str_") for name in ("strip_whitespace", "to_lower", "to_upper"))


def is_plain(core: Any) -> bool:
    """Return True if a value of the core schema ``core`` equals its JSON."""
    return keeps_texts(core) and _has_plain_parts(core)


def keeps_texts(core: Any) -> bool:
    """Return True if each text in a value equals that of its JSON: none is stripped or has another case."""
    waiting = [core]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if any(node.get(name) for name in _CHANGES):
                return False
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)
    return True


def _has_plain_parts(core: Any) -> bool:
    waiting = [core]
    while waiting:
        node = waiting.pop()
        kind = node["type"]
        if kind == "literal":
            if not all(entry is None or type(entry) in (str, int) for entry in node["expected"]):
                return False
        elif kind not in _SCALARS and kind not in _PARTS:
            return False
        if kind == "dict" and node.get("keys_schema", {}).get("type", "str") != "str":
            return False
        for name in _PARTS.get(kind, ()):
            waiting.extend(listed(node.get(name)))
    return True

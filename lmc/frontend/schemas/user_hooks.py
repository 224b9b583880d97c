"""User code that runs when a value is made from JSON, or by an operator on one.

The question is put to pydantic-core's description of the class. What is not known to be pydantic's own counts as the
user's: then a conversion is a call of the graph, in order with others, which is always right and only slower.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Generic

import pydantic

from lmc.frontend.source.pure_types import SPECIAL, is_deeply_harmless, is_harmless_type

_LEAVES = frozenset({"any", "none", "bool", "int", "float", "decimal", "str", "bytes", "complex"}) | {
    *("date", "time", "datetime", "timedelta", "uuid", "url", "multi-host-url")
}
# Where the descriptions of the parts stand.
_PARTS = {
    "nullable": ("schema",),
    "list": ("items_schema",),
    "set": ("items_schema",),
    "frozenset": ("items_schema",),
    "tuple": ("items_schema",),
    "dict": ("keys_schema", "values_schema"),
    "model": ("schema",),
    "model-fields": ("fields", "extras_schema"),
    "model-field": ("schema",),
    "dataclass": ("schema",),
    "dataclass-args": ("fields",),
    "dataclass-field": ("schema",),
    "typed-dict": ("fields", "extras_schema"),
    "typed-dict-field": ("schema",),
    "default": ("schema",),
    "definitions": ("schema", "definitions"),
    "definition-ref": (),
    "union": ("choices",),
    "tagged-union": ("choices",),
}
# What takes part in making an instance, or in reading and printing one, beside what operators call.
_HOOKS = SPECIAL | {
    *("__new__", "__init__", "__post_init__", "__del__", "__copy__", "__deepcopy__", "__setattr__", "__getattr__"),
    *("model_post_init", "__repr_args__", "__repr_name__", "__repr_str__", "__pydantic_init_subclass__"),
}
_FACTORIES: tuple[Any, ...] = (list, dict, set, tuple, str, int, float, bool)
# What pydantic and the base classes of Python bring along.
_BASES = (object, pydantic.BaseModel, pydantic.RootModel, Generic, dict)


def has_own_code(core: Any) -> bool:
    """Return True if ``core``, a core schema, may run code of the user's. Never recursive."""
    waiting = [core]
    while waiting:
        node = waiting.pop()
        kind = node.get("type")
        if kind in _LEAVES:
            continue
        check = _CHECKS.get(kind)
        if kind not in _PARTS and check is None:
            return True
        if check is not None and not check(node):
            return True
        for name in _PARTS.get(kind, ()):
            waiting.extend(listed(node.get(name)))
    return False


def listed(part: Any) -> Iterable[Any]:
    """The core schemas in a field of one: itself, those of a dict or a list, none."""
    if part is None:
        return ()
    if isinstance(part, dict):
        return (part,) if isinstance(part.get("type"), str) else part.values()
    return [entry[0] if isinstance(entry, tuple) else entry for entry in part]


def _is_plain_literal(node: Any) -> bool:
    return is_deeply_harmless(node["expected"])


def _is_plain_enum(node: Any) -> bool:
    kind = node["cls"]
    finds = any("_missing_" in vars(base) for base in kind.__mro__ if base.__module__ != "enum")
    return not finds and node.get("missing") is None and is_harmless_type(kind)


def _is_plain_default(node: Any) -> bool:
    factory = node.get("default_factory")
    return (factory is None or any(factory is plain for plain in _FACTORIES)) and is_deeply_harmless(
        node.get("default")
    )


def _is_plain_model(node: Any) -> bool:
    return not node.get("custom_init") and not node.get("post_init") and _is_plain_class(node["cls"])


def _is_plain_dataclass(node: Any) -> bool:
    return not node.get("post_init") and _is_plain_class(node["cls"])


def _computes_nothing(node: Any) -> bool:
    return not node.get("computed_fields")  # a printed model holds them


def _has_plain_tag(node: Any) -> bool:
    return not callable(node["discriminator"])


def _is_plain_class(kind: type) -> bool:
    """Return True if ``kind`` has no special methods but those of pydantic, ``dataclass`` and Python."""
    for base in kind.__mro__:
        if base in _BASES or base.__module__.partition(".")[0] in ("pydantic", "typing", "typing_extensions"):
            continue
        own = vars(base)
        if any(not _is_generated(base, own[name]) for name in _HOOKS.intersection(own)):
            return False
    return True


def _is_generated(base: type, found: Any) -> bool:
    """Return True if ``found`` was made by pydantic or ``dataclass``, or is None (``__hash__ = None``)."""
    if found is None:
        return True
    inner = inspect.unwrap(found) if callable(found) else found
    if not isinstance(inner, FunctionType):
        return False
    if inner.__module__.startswith("pydantic."):
        return True
    return dataclasses.is_dataclass(base) and inner.__code__.co_filename in ("<string>", dataclasses.__file__)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "literal": _is_plain_literal,
    "enum": _is_plain_enum,
    "default": _is_plain_default,
    "model": _is_plain_model,
    "model-fields": _computes_nothing,
    "dataclass": _is_plain_dataclass,
    "dataclass-args": _computes_nothing,
    "typed-dict": _computes_nothing,
    "tagged-union": _has_plain_tag,
}

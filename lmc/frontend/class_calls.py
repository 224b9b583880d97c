"""Python's own functions that ask for classes and attributes: ``isinstance``, ``type``, ``getattr`` and the like."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from enum import EnumMeta
from types import UnionType
from typing import TYPE_CHECKING, Any

import pydantic

from lmc.frontend.harmless import is_standard_module
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.specs import Record
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT, JsonType, ListType

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

_PLAIN_CLASSES = (type, ABCMeta, EnumMeta, type(pydantic.BaseModel))
_PYTHON_TYPES: dict[Any, type] = {TEXT: str, INT: int, FLOAT: float, BOOL: bool, NONE: type(None)}


def _isinstance(_ops: Operators, recorder: Recorder, value: Any, kinds: Any, /) -> Any:
    _check_classes(recorder, kinds)
    if any("__class__" in vars(base) for base in type(value).__mro__[:-1]):
        raise recorder.stop("the class of this object is said by its own code", "do it in a tool")
    if type(value) is Record:
        return issubclass(value.kind, kinds)
    if type(value) is Proxy:
        return issubclass(_type_of(recorder, value), kinds)
    return isinstance(value, kinds)


def _issubclass(_ops: Operators, recorder: Recorder, kind: Any, kinds: Any, /) -> Any:
    if not isinstance(kind, type):
        raise recorder.stop("issubclass() takes what is no plain class", "do it in a tool")
    _check_classes(recorder, kinds)
    return issubclass(kind, kinds)


def _check_classes(recorder: Recorder, kinds: Any) -> None:
    """Break where a class, or one of several, may run the user's code to say what belongs to it."""
    if type(kinds) is tuple:
        for kind in kinds:
            _check_classes(recorder, kind)
    elif type(kinds) is UnionType:
        _check_classes(recorder, kinds.__args__)
    elif not is_plain_class(kinds):
        raise recorder.stop(
            "what belongs to this class may be said by its own code (`__instancecheck__`, a protocol)",
            "ask for a plain class, or do it in a tool",
        )


def is_plain_class(kind: Any) -> bool:
    """Whether what belongs to ``kind`` follows from its bases alone, or is said by Python's own code."""
    if type(kind) not in _PLAIN_CLASSES or getattr(kind, "_is_protocol", False):
        return False
    if type(kind) in (type, EnumMeta):
        return True
    hooks = [vars(base).get("__subclasshook__") for base in kind.__mro__]
    return all(hook is None or is_standard_module(getattr(hook, "__module__", "") or "builtins") for hook in hooks)


def _type(_ops: Operators, recorder: Recorder, /, *args: Any) -> Any:
    if len(args) != 1:
        raise recorder.stop("type() makes a class", "define the class outside of the program")
    if type(args[0]) is Record:
        return args[0].kind
    return _type_of(recorder, args[0]) if type(args[0]) is Proxy else type(args[0])


def _type_of(recorder: Recorder, value: Proxy) -> type:
    kind = symbol(value).type
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    schema = recorder.json_types.schema(kind.schema) if isinstance(kind, JsonType) else None
    if schema is not None and schema.attributes and symbol(value).held:
        return schema.kind
    what = "a list or a tuple" if isinstance(kind, ListType) else "anything"
    raise recorder.stop(
        f"{symbol(value).origin} may be {what}; its class is known only when the program runs",
        "let a tool return it with its type: @lmc.tool, and for example -> str",
    )


def _callable(_ops: Operators, recorder: Recorder, value: Any, /) -> bool:
    if type(value) is Record:
        return any("__call__" in vars(base) for base in value.kind.__mro__)
    return callable(_type_of(recorder, value)()) if type(value) is Proxy else callable(value)


_NO_DEFAULT: Any = object()


def _getattr(ops: Operators, recorder: Recorder, owner: Any, name: Any, default: Any = _NO_DEFAULT, /) -> Any:
    key = recorder.concrete(name)
    if default is _NO_DEFAULT:
        return ops.read_attribute(recorder, owner, key)
    if type(owner) is Proxy:
        raise recorder.stop("whether a value has an attribute is known only when the program runs", "do it in a tool")
    try:
        return ops.read_attribute(recorder, owner, key)
    except AttributeError:
        return default


def _hasattr(ops: Operators, recorder: Recorder, owner: Any, name: Any, /) -> bool:
    if type(owner) is Proxy:
        return hasattr(_type_of(recorder, owner), recorder.concrete(name))
    return _getattr(ops, recorder, owner, name, _MISSING) is not _MISSING


_MISSING: Any = object()


CLASS_HANDLERS: dict[str, Callable[..., Any]] = {
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "type": _type,
    "callable": _callable,
    "getattr": _getattr,
    "hasattr": _hasattr,
}

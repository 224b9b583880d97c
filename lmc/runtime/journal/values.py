"""Results of tools as JSON data, exactly: what is read again equals what was written, type by type."""

from __future__ import annotations

import base64
import builtins
import json
import math
from functools import lru_cache
from typing import Any

import pydantic
from pydantic_core import PydanticSerializationError, to_jsonable_python

from lmc.ir import errors
from lmc.ir.errors import LmcError, Location

MAX_CHARACTERS = 1 << 24
"""The longest result that is kept."""
_TAG = "$"


class NotKeptError(Exception):
    """A value that JSON can't hold exactly. ``str`` describes it."""


def value_text(value: Any, returns: Any) -> str:
    """JSON text of a result; ``returns`` is the annotation of its function. Raises ``NotKeptError``.

    Plain values and containers need no annotation, pydantic models and dataclasses do: it names their classes.
    """
    try:
        try:
            data = encoded(value)
        except NotKeptError:
            data = _typed(value, returns)
        text = json.dumps(data, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        raise NotKeptError(f"{_name(value)}: {error}") from error
    if len(text) > MAX_CHARACTERS:
        raise NotKeptError(f"{_name(value)} of {len(text):,} characters")
    return text


def value_of(text: str, returns: Any) -> Any:
    """The value of ``value_text``. Raises ``ValueError`` for a text that it did not write."""
    try:
        return _decoded(json.loads(text), returns)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def error_text(error: Exception) -> str:
    """JSON text of an exception of Python's own, or of lmc. Raises ``NotKeptError`` for any other."""
    name = type(error).__name__
    arguments = error.args
    if isinstance(error, LmcError):
        where = error.location
        arguments = (error.cause, error.remedy, *(() if where is None else (where.file, where.line, where.column)))
    elif isinstance(error, OSError) and error.filename is not None:
        arguments = (*arguments, error.filename)
    try:
        data = {"error": name, "arguments": [encoded(argument) for argument in arguments]}
        text = json.dumps(data)
        again = error_in(text)
    except (ValueError, TypeError, RecursionError) as unkept:
        raise NotKeptError(name) from unkept
    if type(again) is not type(error) or str(again) != str(error) or vars(again) != vars(error):
        raise NotKeptError(name)
    return text


def error_in(text: str) -> Exception:
    """The exception of ``error_text``. Raises ``ValueError`` for a text that it did not write."""
    try:
        data = json.loads(text)
        kind = vars(builtins).get(data["error"]) or vars(errors).get(data["error"])
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ValueError(f"{data['error']!r:.40} is no exception of Python")
        arguments = [_decoded(argument, None) for argument in data["arguments"]]
        if not issubclass(kind, LmcError):
            return kind(*arguments)
        if kind.ends_run:  # no call of a tool ends with it
            raise ValueError(f"{data['error']!r:.40} ends a run")
        cause, remedy, *where = arguments
        return kind(cause, remedy=remedy, location=Location(*where) if where else None)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def encoded(value: Any, *, loose: bool = False) -> Any:
    """Return JSON data for a plain value. Raises ``NotKeptError`` for any other.

    ``loose``: other objects are there as what they hold, or by their class, which is enough to compare arguments.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {_TAG: "float", "of": repr(value)}
    if kind is list:
        return [encoded(entry, loose=loose) for entry in value]
    if kind is dict:
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: encoded(entry, loose=loose) for key, entry in value.items()}
        return {_TAG: "dict", "of": [[encoded(part, loose=loose) for part in pair] for pair in value.items()]}
    if kind is tuple:
        return {_TAG: "tuple", "of": [encoded(entry, loose=loose) for entry in value]}
    if kind in (set, frozenset):
        entries = [encoded(entry, loose=loose) for entry in value]
        return {_TAG: kind.__name__, "of": sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))}
    if kind is bytes:
        return {_TAG: "bytes", "of": base64.b64encode(value).decode()}
    if not loose:
        raise NotKeptError(_name(value))
    try:
        return {_TAG: kind.__qualname__, "of": to_jsonable_python(value, fallback=_name, bytes_mode="base64")}
    except (ValueError, RecursionError):
        return {_TAG: kind.__qualname__}


def arguments_text(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """JSON text that compares the arguments of calls; objects that JSON can't hold count by their class."""
    try:
        return json.dumps([encoded(entry, loose=True) for entry in (*arguments, keywords)], sort_keys=True)
    except (ValueError, TypeError, RecursionError):
        return json.dumps([_name(entry) for entry in (*arguments, *keywords.values())])


def _typed(value: Any, returns: Any) -> Any:
    """The data of an instance of what the annotation names."""
    adapter = None if returns is None else _adapter_of(returns)
    if adapter is None:
        raise NotKeptError(_name(value))
    try:
        text = adapter.dump_json(value, warnings="error")
        again = adapter.validate_json(text)
        is_same = type(again) is type(value) and bool(again == value)
    except (PydanticSerializationError, pydantic.ValidationError, ValueError, TypeError) as error:
        raise NotKeptError(_name(value)) from error
    if not is_same:
        raise NotKeptError(_name(value))
    return {_TAG: "typed", "of": json.loads(text)}


def _decoded(data: Any, returns: Any) -> Any:
    if isinstance(data, list):
        return [_decoded(entry, returns) for entry in data]
    if not isinstance(data, dict):
        return data
    kind = data.get(_TAG)
    if kind is None:
        return {key: _decoded(entry, returns) for key, entry in data.items()}
    held = data["of"]
    match kind:
        case "float":
            return float(held)
        case "bytes":
            return base64.b64decode(held)
        case "dict":
            return {_decoded(key, returns): _decoded(entry, returns) for key, entry in held}
        case "tuple":
            return tuple(_decoded(entry, returns) for entry in held)
        case "set":
            return {_decoded(entry, returns) for entry in held}
        case "frozenset":
            return frozenset(_decoded(entry, returns) for entry in held)
        case "typed":
            adapter = _adapter_of(returns)
            if adapter is None:
                raise ValueError("the tool has another return annotation")
            return adapter.validate_json(json.dumps(held))
        case _:
            raise ValueError(f"unknown kind of value {kind!r:.40}")


def _adapter_of(returns: Any) -> pydantic.TypeAdapter[Any] | None:
    try:
        return _made_adapter(returns)
    except (pydantic.PydanticSchemaGenerationError, pydantic.PydanticUserError, TypeError, NameError):
        return None  # an annotation of classes that pydantic does not know


@lru_cache(maxsize=256)
def _made_adapter(returns: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(returns)


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"

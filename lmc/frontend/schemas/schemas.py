"""The values of ``schema=``: a JSON schema, or a class or type that pydantic knows."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pydantic
from pydantic.errors import PydanticUserError

from lmc.frontend.schemas.plain_json import is_plain, keeps_texts
from lmc.frontend.schemas.user_hooks import has_own_code
from lmc.grammar.classes import UnsupportedTypeError, schema_of_class
from lmc.ir.types import ANY, BOOL, FLOAT, INT, SCALARS, TEXT, Type, json_of, list_of, type_of

_MODULE = re.compile(r"\b(?:[A-Za-z_][\w<>]*\.)+(?=[A-Za-z_])")
_MOST_ERRORS = 3
_SCALARS: dict[str, Type] = {"str": TEXT, "int": INT, "float": FLOAT, "bool": BOOL}
_AMENDING = frozenset({"$ref", "nullable"})


class UnknownSchemaError(Exception):
    """A value that stands for no JSON schema. ``remedy`` names one that does, if it is known."""

    def __init__(self, cause: str, remedy: str | None = None) -> None:
        super().__init__(cause)
        self.remedy = remedy


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part that an instance, or an object of JSON, holds as it is: its ``key`` in JSON, its type, its class if any.

    ``default`` is the value of an object without the key, unless the part is ``required`` (or the default no literal).
    """

    key: str
    type: Type
    kind: Any = None
    required: bool = True
    default: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A JSON schema (``text``), and the class or type it was made of.

    ``name`` is what a value's type is called. ``kind`` is None where the schema itself was given: then a value is what
    its JSON says. ``read`` makes a value of JSON text. ``runs_code`` says that making one, or an operator on one, may
    run code of the user's. Where it does not, ``attributes`` are the fields of a class, ``items`` those of an object.
    ``is_plain`` says that a value is what its JSON says, ``keeps_texts`` that the texts in it are.
    """

    name: str
    text: str
    type: Type
    kind: Any = None
    read: Callable[[str], Any] | None = None
    runs_code: bool = False
    is_plain: bool = True
    keeps_texts: bool = True
    attributes: Mapping[str, Part] = field(default_factory=dict[str, Part])
    items: Mapping[str, Part] = field(default_factory=dict[str, Part])

    @property
    def may_be_text(self) -> bool:
        """False if no value is a text."""
        if self.kind is None:
            types = json.loads(self.text).get("type", "string")
            return "string" in ([types] if isinstance(types, str) else types)
        kind = typing.get_origin(self.kind) or self.kind
        return not isinstance(kind, type) or issubclass(kind, str)


def schema_of(given: Any) -> JsonSchema:
    """Return the schema of ``given``, a JSON schema as a dict or a type. Raises ``UnknownSchemaError``."""
    if isinstance(given, dict):
        try:
            text = schema_text(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise UnknownSchemaError(f"it is no JSON: {error}") from error
        title = given.get("title")
        name = title if isinstance(title, str) and title else "schema"
        return JsonSchema(name, text, json_of(name), items=_properties(given))
    if isinstance(given, str | bytes | int | float | list | tuple) or inspect.isroutine(given):
        raise UnknownSchemaError("it is no class")
    try:
        try:
            hash(given)
        except TypeError:  # a type may be annotated with what has none
            return _of_type.__wrapped__(given)
        return _of_type(given)
    except TypeError as error:
        raise UnknownSchemaError(f"it is no class: {error}") from error


def schema_text(schema: Any) -> str:
    """JSON without spaces. The order of keys is kept: properties are written in it."""
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@lru_cache(maxsize=256)
def _of_type(kind: Any) -> JsonSchema:
    try:
        adapter = pydantic.TypeAdapter[Any](kind)
        definition = schema_of_class(adapter)
        core: Any = adapter.core_schema
    except UnsupportedTypeError as error:
        raise UnknownSchemaError(str(error).partition("\n")[0], error.remedy) from error
    except (PydanticUserError, pydantic.errors.PydanticUndefinedAnnotation, NameError) as error:
        raise UnknownSchemaError(str(error).partition("\n")[0]) from error
    name = _name(kind)
    definitions = {entry["ref"]: entry for entry in core.get("definitions", ())} if isinstance(core, dict) else {}
    runs_code = has_own_code(core)
    is_object = _resolved(core, definitions)["type"] == "typed-dict"
    parts = {} if runs_code else _parts(core, definitions)
    scalar = next((found for own, found in ((int, INT), (float, FLOAT), (bool, BOOL)) if kind is own), None)
    return JsonSchema(
        name=name,
        text=schema_text(definition),
        type=TEXT if runs_code else scalar or json_of(name),
        kind=kind,
        read=_reader(adapter),
        runs_code=runs_code,
        is_plain=is_plain(core),
        keeps_texts=keeps_texts(core),
        attributes={} if is_object else parts,
        items=parts if is_object else {},
    )


def _name(kind: Any) -> str:
    if isinstance(kind, type) and typing.get_origin(kind) is None:
        return kind.__name__
    text = _MODULE.sub("", repr(kind))
    return text if text.isprintable() and " at 0x" not in text and len(text) <= 80 else "schema"


def _reader(adapter: pydantic.TypeAdapter[Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return adapter.validate_json(text)
        except pydantic.ValidationError as error:
            raise ValueError(_said(error)) from error

    return read


def _said(error: pydantic.ValidationError) -> str:
    """Format pydantic's errors with their places, without its links."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    parts = [": ".join(filter(None, (".".join(map(str, entry["loc"])), entry["msg"]))) for entry in found]
    more = f" and {len(parts) - _MOST_ERRORS} more" if len(parts) > _MOST_ERRORS else ""
    return "; ".join(parts[:_MOST_ERRORS]) + more


def _parts(core: Any, definitions: Mapping[str, Any]) -> dict[str, Part]:
    """The fields of a pydantic model, a dataclass or a typed dict."""
    core = _resolved(core, definitions)
    if core["type"] == "model" and not core.get("root_model"):
        fields = _resolved(core["schema"], definitions)["fields"].items()
    elif core["type"] == "typed-dict":
        fields = core["fields"].items()
    elif core["type"] == "dataclass":
        fields = [(entry["name"], entry) for entry in core["schema"]["fields"]]
    else:
        return {}
    return {name: _part(name, entry, definitions) for name, entry in fields}


def _part(name: str, entry: Any, definitions: Mapping[str, Any]) -> Part:
    alias = entry.get("validation_alias")
    inner = _resolved(entry["schema"], definitions)
    key = alias if isinstance(alias, str) else name
    if inner["type"] != "default":
        nested = inner.get("cls") if inner["type"] in ("model", "dataclass") else None
        return Part(key, _type_of(inner, definitions), nested)
    default = inner.get("default")
    required = "default" not in inner or type(default) not in SCALARS
    kind = _type_of(_resolved(inner["schema"], definitions), definitions)
    # A default is not looked at by pydantic: it may be of any type.
    return Part(key, kind if not required and type_of(default) == kind else ANY, None, required, default)


def _type_of(core: Any, definitions: Mapping[str, Any]) -> Type:
    """Return the type of every value of this description; ``!any`` if the IR has no type for it."""
    kind = core["type"]
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "literal" and all(type(entry) is str for entry in core["expected"]):
        return TEXT
    if kind == "list":
        element = _type_of(_resolved(core.get("items_schema", {"type": "any"}), definitions), definitions)
        return list_of(element) if element in _SCALARS.values() else ANY
    return ANY


def _properties(schema: Mapping[str, Any]) -> dict[str, Part]:
    """The properties of an object whose values are text or truth values. A number may be an int or a float.

    The type beside a `$ref` restricts nothing up to draft-07, and `nullable` adds null to it in OpenAPI 3.0.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not _AMENDING.isdisjoint(schema) or not isinstance(properties, dict):
        return {}
    kinds = {"string": TEXT, "boolean": BOOL}
    entries = {name: each for name, each in properties.items() if isinstance(each, dict) and _AMENDING.isdisjoint(each)}
    found = {name: entry.get("type") for name, entry in entries.items()}
    return {name: Part(name, kinds[kind]) for name, kind in found.items() if isinstance(kind, str) and kind in kinds}


def _resolved(core: Any, definitions: Mapping[str, Any]) -> Any:
    while True:
        if core["type"] == "definitions":
            core = core["schema"]
        elif core["type"] == "definition-ref":
            core = definitions[core["schema_ref"]]
        else:
            return core

"""From pydantic's core schema of a type to a JSON Schema, kind by kind."""

from __future__ import annotations

import functools
import warnings
import zoneinfo
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, cast

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, PydanticJsonSchemaWarning
from pydantic.types import Base64Encoder, Base64UrlEncoder, EncodedBytes, EncodedStr
from pydantic_core import SchemaValidator, core_schema, to_json

from lmc.grammar.classes import scalars
from lmc.grammar.classes.scalars import UnsupportedTypeError

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


JsonSchema = dict[str, Any]
_SCALAR_TYPES = ("integer", "number", "boolean")


def key_schema(schema: JsonSchema, resolve: Callable[[JsonSchema], JsonSchema]) -> JsonSchema | None:
    """Return a schema for the texts that are keys of the type that ``schema`` describes; None if any text is.

    Raises ``UnsupportedTypeError`` for types without a text form.
    """
    plain = {name: value for name, value in resolve(schema).items() if name not in ("title", "description")}
    choices = plain.get("anyOf") or plain.get("oneOf")
    if choices is not None:
        return _any_of(choices, resolve)
    kind = plain.get("type")
    if kind in _SCALAR_TYPES:
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


_IS_URL = {Base64Encoder: False, Base64UrlEncoder: True}
_LENGTHS = ("minLength", "maxLength")
_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_SCALARS: JsonSchemaValue = {"type": ["null", "boolean", "number", "string"]}


def schema_of_class(adapter: pydantic.TypeAdapter[Any]) -> dict[str, Any]:
    """A JSON Schema of the adapter's type, such that pydantic accepts all that meets it.

    It may say more than pydantic's own. What functions of the user's refuse is not known.

    Raises:
        UnsupportedTypeError: no schema describes the type.
        pydantic.PydanticUserError: pydantic itself has no schema for it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
        return adapter.json_schema(schema_generator=_ClassSchema)


class _ClassSchema(GenerateJsonSchema):
    """Overrides what pydantic says less of, or for other uses, than what it accepts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._path: list[str] = []
        self._names: dict[int, str] = {}
        self._cores: dict[str, Core] = {}

    @property
    def mode(self) -> JsonSchemaMode:
        """The mode for reading, also of a class whose schema is to be that of its output."""
        return "validation"

    @contextmanager
    def _within(self, name: str | None) -> Generator[None]:
        """While a field is described: errors name it."""
        try:
            yield
        except UnsupportedTypeError as error:
            raise error if name is None else error.within(name) from None

    # Texts and bytes

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        made = super().str_schema(schema)
        more: list[str] = []
        if "pattern" in schema:
            made["pattern"], is_rough = scalars.of_pydantic(schema["pattern"])
            more += [scalars.ASCII] if is_rough else []
        if cast(Core, schema).get("ascii_only"):
            more.append(scalars.ASCII)
        if schema.get("strip_whitespace", self._config.str_strip_whitespace) and {*made} & {"minLength", "pattern"}:
            more.append(scalars.STRIPPED)
        return scalars.with_patterns(made, more)

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        low, high = schema.get("min_length") or 0, schema.get("max_length")
        match self._config.val_json_bytes:
            case "base64":
                pattern = scalars.base64(low, high, is_url=True, is_ascii=False)
                return {"type": "string", "format": "base64url", "pattern": pattern}
            case "hex":
                return {"type": "string", "pattern": f"^(?:[0-9a-f]{{2}}){{{low},{'' if high is None else high}}}$"}
            case _:
                made: JsonSchemaValue = {"type": "string", "format": "binary"}
                self.update_with_validations(made, schema, self.ValidationsMapping.bytes)
                return scalars.with_patterns(made, [scalars.ASCII] if {*made} & {*_LENGTHS} else [])

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        return scalars.url(super().url_schema(schema), cast(Core, schema))

    def multi_host_url_schema(self, schema: core_schema.MultiHostUrlSchema) -> JsonSchemaValue:
        return scalars.url(super().multi_host_url_schema(schema), cast(Core, schema))

    # Numbers and times

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return scalars.float_schema(super().float_schema(schema))

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return scalars.decimal_schema(cast(Core, schema))

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        return scalars.fraction_schema(schema)

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        return super().complex_schema(schema) | scalars.complex_schema()

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        return scalars.date_schema(cast(Core, schema))

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        return scalars.time_schema(cast(Core, schema))

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        return scalars.datetime_schema(cast(Core, schema))

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return scalars.timedelta_schema(cast(Core, schema))

    # Lists of values

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        expected = _readable(cast(Core, schema), schema["expected"])
        return super().literal_schema({**schema, "expected": expected})

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        members = _readable(cast(Core, schema), schema["members"])
        return super().enum_schema({**schema, "members": members})

    # Collections

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        return self._set(super().set_schema(schema), cast(Core, schema))

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        return self._set(super().frozenset_schema(schema), cast(Core, schema))

    def _set(self, made: JsonSchemaValue, schema: Core) -> JsonSchemaValue:
        """A set takes what comes twice as once; items have to differ only where there have to be several."""
        if not is_hashable(schema.get("items_schema", {}), self._cores):
            raise UnsupportedTypeError("the items of a set need a hash", "use a list, or tuples, or a frozen class")
        if made["items"] == {}:
            made["items"] = _SCALARS
        if made.get("minItems", 0) <= 1:
            del made["uniqueItems"]
        return made

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        made: JsonSchemaValue = {"type": "object", "additionalProperties": True}
        if "values_schema" in schema:
            values = self.generate_inner(schema["values_schema"])
            made["additionalProperties"] = {name: each for name, each in values.items() if name != "title"} or True
        keys = schema.get("keys_schema", {"type": "str"})
        if keys["type"] in ("enum", "literal"):
            names: JsonSchemaValue | None = {"enum": _key_texts(keys)}
        else:
            names = key_schema(self.generate_inner(keys), self.resolve_ref_schema)
        if names is not None:
            made["propertyNames"] = names
        least = schema.get("min_length") or 0
        if least > 1 and (self._is_changed(keys) or not is_spelled_once(names)):
            cause = f"at least {least} keys are asked for, and a key can be written in several ways"
            raise UnsupportedTypeError(cause, "ask for one key at most, or use keys of type str or int")
        self.update_with_validations(made, schema, self.ValidationsMapping.object)
        return made

    def _is_changed(self, keys: Core) -> bool:
        """Return True if different texts may become the same key."""
        config = self._config
        given = {
            "strip_whitespace": config.str_strip_whitespace,
            "to_lower": config.str_to_lower,
            "to_upper": config.str_to_upper,
        }
        return keys["type"] == "str" and any(keys.get(name, default) for name, default in given.items())

    ordered_dict_schema = counter_schema = frozendict_schema = dict_schema

    # Classes and definitions

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonSchemaValue:
        self._cores.update((core["ref"], core) for core in cast("list[Any]", schema["definitions"]) if "ref" in core)
        return super().definitions_schema(schema)

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonSchemaValue:
        self._names.update((id(field), name) for name, field in schema["fields"].items())
        return super().model_fields_schema(schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        self._names.update((id(field), name) for name, field in schema["fields"].items())
        return super().typed_dict_schema(schema)

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        return self._field(super().model_field_schema, schema, self._names.get(id(schema)))

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonSchemaValue:
        return self._field(super().typed_dict_field_schema, schema, self._names.get(id(schema)))

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        return self._field(super().dataclass_field_schema, schema, schema["name"])

    def _field(self, make: Callable[[Any], JsonSchemaValue], field: Any, name: str | None) -> JsonSchemaValue:
        with self._within(name):
            alias = field.get("validation_alias", name)
            paths = [alias] if alias and not isinstance(alias[0], list) else alias
            if isinstance(alias, list) and not any(len(path) == 1 for path in cast("list[Any]", paths)):
                cause = "it is read from within another value (AliasPath)"
                raise UnsupportedTypeError(cause, "give it a name of its own: AliasChoices('name', AliasPath(...))")
            return make(field)

    # Validators of pydantic's own

    def function_after_schema(self, schema: Any) -> JsonSchemaValue:
        function = function_of(schema)
        if getattr(function, "__qualname__", "").startswith("PathType."):
            raise UnsupportedTypeError("which paths there are is known when they are read", "use pathlib.Path")
        if getattr(function, "__self__", None) is pydantic.ByteSize:
            return scalars.byte_size_schema(pydantic.ByteSize.byte_sizes)
        return super().function_after_schema(schema)

    def custom_error_schema(self, schema: core_schema.CustomErrorSchema) -> JsonSchemaValue:
        made = super().custom_error_schema(schema)
        return _SCALARS if not made and schema["custom_error_type"] == "is_hashable" else made

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """Also what validators say that look at a value when it is made, for which pydantic knows no keyword."""
        if schema["type"] == "function-plain" and getattr(function_of(schema), "__name__", "") == "import_string":
            raise UnsupportedTypeError("what can be imported is known when it is read", "use a Literal of the paths")
        made = super().generate_inner(schema)
        if made.get("format") == "zoneinfo":
            return {"type": "string", "enum": sorted(zoneinfo.available_timezones())}
        if schema["type"] != "function-after" and "metadata" not in schema:
            return made
        updates: Mapping[str, Any] = schema.get("metadata", {}).get("pydantic_js_updates", {})
        bounds = {name: keyword for name, keyword in _BOUNDS.items() if name in updates}
        if bounds:
            made = {name: value for name, value in made.items() if name not in bounds}
            made |= {keyword: updates[name] for name, keyword in bounds.items()}
            if any(not isinstance(updates[name], int | float) for name in bounds):
                raise UnsupportedTypeError("a bound on a union of types", "give it to the type that it is about")
            return {**made, "type": "number"}
        encoded = Encoded(schema)
        if encoded.encoder in _IS_URL:
            is_ascii, is_url = encoded.kind == "str", _IS_URL[encoded.encoder]
            made = {name: value for name, value in made.items() if name not in updates}
            return {**made, "pattern": scalars.base64(encoded.low, encoded.high, is_url=is_url, is_ascii=is_ascii)}
        if encoded.kind == "bytes" and "maxLength" in updates:
            return scalars.with_patterns(made, [scalars.ASCII])
        return made


def _readable(core: Core, given: Iterable[Any]) -> list[Any]:
    """Return the values of a list that pydantic makes of their JSON."""
    validator = SchemaValidator(cast(Any, _alone(core)))
    found = [value for value in given if _is_read(validator, to_json(_plain(value)))]
    if not found:
        cause = "none of the values that are listed can be read from JSON"
        raise UnsupportedTypeError(
            cause, "use texts or whole numbers; an enumeration in a Literal derived from str or int"
        )
    return found


def _key_texts(core: Core) -> list[str]:
    """The texts that are keys of a ``dict`` whose keys are listed."""
    validator = SchemaValidator({"type": "dict", "keys_schema": cast(Any, _alone(core))})
    values = map(_plain, core["members" if core["type"] == "enum" else "expected"])
    texts = [value if isinstance(value, str) else to_json(value).decode() for value in values]
    found = [text for text in texts if _is_read(validator, to_json({text: None}))]
    if not found:
        raise UnsupportedTypeError("no text stands for one of the keys that are listed", "use texts, or an IntEnum")
    return found


def _alone(core: Core) -> dict[str, Any]:
    return {name: value for name, value in core.items() if name not in ("ref", "metadata", "serialization")}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _is_read(validator: SchemaValidator, text: bytes) -> bool:
    try:
        validator.validate_json(text)
    except ValueError:
        return False
    return True

"""``regex``, ``choices``, ``schema``, ``dtype`` and ``grammar`` of ``gen``, checked where the user wrote them.

Whether a pattern, a schema or a grammar is one, the compiler says when it compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lmc.frontend.language.refusals import bad, described
from lmc.frontend.schemas.schemas import JsonSchema, UnknownSchemaError, schema_of
from lmc.frontend.source.locations import user_location
from lmc.ir.builtins.checks import definition
from lmc.ir.core import WHITESPACE, Constraint
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, Type

_DTYPES: dict[type, Type] = {int: INT, float: FLOAT, bool: BOOL}


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """The constraint of a generation.

    ``kind``, ``text`` and ``whitespace`` are those of ``lmc.ir.core.Constraint``, ``type`` is that of the generation's
    value. ``schema`` converts the value if it is JSON.
    """

    kind: str
    text: str
    type: Type
    whitespace: str = WHITESPACE[0]
    schema: JsonSchema | None = None

    def symbol(self, name: str) -> Constraint:
        """The module's symbol for it."""
        return Constraint(name, self.kind, self.text, self.whitespace)


def checked_constraint(given: Mapping[str, Any]) -> ConstraintSpec | None:
    """The constraint among the options ``given``; None where there is none, or one that allows every text.

    Raises ``CaptureError`` at the user's line.
    """
    kinds = [key for key in given if key in _CHECKS]
    if len(kinds) > 1:
        raise bad(f"gen has both {kinds[0]} and {kinds[1]}", f"give at most one of {', '.join(_CHECKS)}")
    whitespace = given.get("whitespace", WHITESPACE[0])
    if whitespace not in WHITESPACE:
        raise bad(f"whitespace is {described(whitespace)}", f"give one of {', '.join(map(repr, WHITESPACE))}")
    if "whitespace" in given and kinds != ["schema"]:
        raise bad("gen has whitespace, but no schema", "leave it out: it says how the JSON of a schema is written")
    parse = given.get("parse", True)
    if type(parse) is not bool:
        raise bad(f"parse is {described(parse)}", "give True, or False to get the text itself")
    if not parse and kinds not in (["schema"], ["dtype"]):
        raise bad("gen has parse=False, but neither schema nor dtype", "leave it out: the value is the text anyway")
    if not kinds:
        return None
    found = _CHECKS[kinds[0]](given[kinds[0]], whitespace)
    return found if found is None or parse else replace(found, type=TEXT, schema=None)


def _defined(kind: str) -> Callable[[Any, str], ConstraintSpec]:
    return lambda value, _whitespace: ConstraintSpec(kind, definition(kind, value, user_location()), TEXT)


def _schema(value: Any, whitespace: str) -> ConstraintSpec:
    try:
        schema = schema_of(value)
    except UnknownSchemaError as error:
        remedy = "give a pydantic class, another type that pydantic knows, or a JSON schema (a dict)"
        if isinstance(value, str):
            remedy = "give the JSON schema as a dict: json.loads(text)"
        raise bad(f"schema is {described(value)}: {error}", error.remedy or remedy) from error
    return ConstraintSpec("schema", schema.text, schema.type, whitespace, schema)


def _dtype(value: Any, _whitespace: str) -> ConstraintSpec | None:
    if value is str:
        return None
    if not isinstance(value, type) or value not in _DTYPES:
        raise bad(f"dtype is {described(value)}", "give int, float, bool or str")
    return ConstraintSpec("dtype", value.__name__, _DTYPES[value])


_CHECKS: dict[str, Callable[[Any, str], ConstraintSpec | None]] = {
    "regex": _defined("regex"),
    "choices": _defined("choices"),
    "schema": _schema,
    "dtype": _dtype,
    "grammar": _defined("grammar"),
}

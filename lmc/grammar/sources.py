"""The sources of constraints in one canonical form: the cache key of everything made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pydantic
from pydantic.errors import PydanticUserError

from lmc.grammar.classes import UnsupportedTypeError, schema_of_class
from lmc.ir.cached import cached_property
from lmc.ir.errors import ConstraintError
from lmc.ir.wording import with_article

Whitespace = Literal["compact", "flexible"]
KINDS = ("regex", "choices", "schema", "grammar")
WHITESPACE: tuple[Whitespace, ...] = get_args(Whitespace)
# To be raised when the language of any text changes, or how it becomes an automaton.
VERSION = 5


@dataclass(frozen=True)
class Source:
    """A constraint as text: ``kind`` is one of ``KINDS``.

    ``text`` is the pattern, the Lark grammar, or canonical JSON: the list of choices, the schema. ``whitespace`` says
    what a schema's JSON may have between its tokens: "compact": nothing; "flexible": spaces and indented lines.
    """

    kind: str
    text: str
    whitespace: Whitespace = "compact"

    @classmethod
    def of(
        cls,
        *,
        regex: str | None = None,
        schema: Any = None,
        choices: Sequence[str] | None = None,
        grammar: str | None = None,
        whitespace: Whitespace = "compact",
    ) -> Source:
        """From exactly one of the four. Raises ``ConstraintError`` for what is none."""
        given = {"regex": regex, "schema": schema, "choices": choices, "grammar": grammar}
        kinds = [kind for kind, value in given.items() if value is not None]
        if len(kinds) != 1:
            raise ConstraintError(
                f"{' and '.join(kinds) if kinds else 'nothing'} given as a constraint",
                remedy=f"give exactly one of {', '.join(KINDS)}",
            )
        if whitespace not in WHITESPACE:
            raise ConstraintError(f"whitespace is {whitespace!r}", remedy=f"use one of {', '.join(WHITESPACE)}")
        (kind,) = kinds
        if kind != "schema" and whitespace != "compact":
            raise ConstraintError(
                f"whitespace is given for {with_article(kind)}", remedy="leave it out: it is an option of schema"
            )
        return cls(kind, _TEXTS[kind](given[kind]), whitespace)

    @cached_property
    def digest(self) -> str:
        """The name of its content, 64 hexadecimal digits."""
        words = (str(VERSION), self.kind, self.whitespace, self.text)
        return hashlib.sha256("\x00".join(words).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def data(self) -> Any:
        """The choices or the schema."""
        return json.loads(self.text)


_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def canonical_json(value: Any) -> str:
    """JSON without spaces. Keys stay in their order: that of a schema's properties is the order of the output."""
    return _compact(value)


def _text(kind: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConstraintError(f"{kind} is of type {type(value).__name__}", remedy=f"give the {kind} as a text")
    return value


def _choices(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise ConstraintError("choices is no list of texts", remedy="give a list or tuple of texts")
    return canonical_json(list(dict.fromkeys(value)))


def _schema(value: Any) -> str:
    made = value
    if isinstance(value, str):
        try:
            made = json.loads(value)
        except ValueError as error:
            raise ConstraintError(f"the schema is no JSON: {error}", remedy="give a JSON Schema") from None
    elif not isinstance(value, dict | bool):
        made = _class(value)
    if not isinstance(made, dict | bool):
        raise _no_schema(made)
    try:
        return canonical_json(made)
    except RecursionError:
        raise ConstraintError("the schema is nested too deeply", remedy="nest less deeply") from None
    except (TypeError, ValueError) as error:
        raise ConstraintError(f"the schema is no JSON: {error}", remedy="give a JSON Schema") from None


def _class(value: Any) -> Any:
    try:
        return schema_of_class(pydantic.TypeAdapter(value))
    except UnsupportedTypeError as error:
        raise ConstraintError(str(error).partition("\n")[0], remedy=error.remedy) from None
    except (PydanticUserError, TypeError):
        raise _no_schema(value) from None


def _no_schema(value: Any) -> ConstraintError:
    return ConstraintError(
        f"schema is of type {type(value).__name__}",
        remedy="give a pydantic class or another type that pydantic knows, a JSON Schema as a dict, or its text",
    )


_TEXTS = {
    "regex": lambda value: _text("regex", value),
    "grammar": lambda value: _text("grammar", value),
    "choices": _choices,
    "schema": _schema,
}

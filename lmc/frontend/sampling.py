"""The options of a generation, checked where the user wrote them."""

from __future__ import annotations

import difflib
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pydantic

from lmc.frontend.locations import user_location
from lmc.ir.errors import CaptureError
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, Type, json_of

_DTYPES: dict[type, Type] = {int: INT, float: FLOAT, bool: BOOL, str: TEXT}


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """What a generation may produce: ``kind`` regex, choices, schema or dtype, its definition, the result's type."""

    kind: str
    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Checked options of ``gen``; the fields of ``lm.gen``, with the constraint still in the user's terms."""

    max_tokens: int = 256
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    logprobs: int | None = None
    constraint: ConstraintSpec | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """Fields by the names that ``lm.gen`` gives them, without the constraint."""
        return {name: getattr(self, name) for name in _ATTRIBUTES}

    @property
    def type(self) -> Type:
        """The type of the value."""
        return TEXT if self.constraint is None else self.constraint.type


_ATTRIBUTES = tuple(field.name for field in fields(GenerationOptions) if field.name != "constraint")
_CONSTRAINTS = ("regex", "choices", "schema", "dtype")
KEYWORDS = (*_ATTRIBUTES, *_CONSTRAINTS, "n")


def bad(cause: str, remedy: str) -> CaptureError:
    """A ``CaptureError`` at the user's line."""
    return CaptureError(cause, remedy=remedy, location=user_location())


def described(value: Any) -> str:
    """``value`` as a message shows it: shortened, with its class."""
    return f"{reprlib.repr(value)} (a {type(value).__name__})"


def near(name: str, known: tuple[str, ...] | list[str]) -> str:
    """``did you mean …?`` for the known name most like ``name``, else the list of known names."""
    matches = difflib.get_close_matches(name, known, n=1)
    if matches:
        return f"did you mean {matches[0]!r}?"
    return f"known: {', '.join(map(repr, known))}" if known else "none is there yet"


def options(given: Mapping[str, Any], concrete: Callable[[Any, str], Any]) -> tuple[GenerationOptions, int | None]:
    """Check what the user gave to ``gen``; also gives ``n``. ``concrete`` turns symbolic values into plain ones.

    Raises ``CaptureError`` at the user's line.
    """
    checked: dict[str, Any] = {}
    constraint: ConstraintSpec | None = None
    count: int | None = None
    for key, value in given.items():
        if key not in KEYWORDS:
            raise bad(f"gen has no option {key!r}", near(key, KEYWORDS))
        if value is None:
            continue
        plain = _deep(value, concrete, f"{key} of gen has to be known now")
        if key == "n":
            count = _integer("n", plain, 1)
        elif key in _CONSTRAINTS:
            if constraint is not None:
                raise bad(
                    f"gen has both {constraint.kind} and {key}", "give at most one of regex, choices, schema, dtype"
                )
            constraint = _CONSTRAINT_CHECKS[key](plain)
        else:
            checked[key] = _CHECKS[key](plain)
    made = GenerationOptions(**checked, constraint=constraint)
    if made.min_tokens > made.max_tokens:
        raise bad(
            f"min_tokens is {made.min_tokens}, more than max_tokens ({made.max_tokens})",
            "raise max_tokens or lower min_tokens",
        )
    return made, count


def _deep(value: Any, concrete: Callable[[Any, str], Any], use: str) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        return [concrete(entry, use) for entry in value]
    if kind is dict:
        return {concrete(key, use): concrete(entry, use) for key, entry in value.items()}
    return concrete(value, use)


def _integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    limits = f"at least {low}" if high is None else f"between {low} and {high}"
    if type(value) is not int or value < low or (high is not None and value > high):
        raise bad(f"{name} is {described(value)}", f"give a whole number, {limits}")
    return value


def _number(name: str, value: Any, holds: Callable[[float], bool], rule: str) -> float:
    if type(value) not in (int, float) or not holds(value):
        raise bad(f"{name} is {described(value)}", f"give a number {rule}")
    return float(value)


def _stop(value: Any) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(entry, str) and entry for entry in found):
        raise bad(f"stop is {described(value)}", "give a text or a list of texts, none of them empty")
    return tuple(map(str, found))


def _token_ids(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(entry) is int and entry >= 0 for entry in value):
        raise bad(f"stop_token_ids is {described(value)}", "give a list of token ids")
    return tuple(value)


def _logit_bias(value: Any) -> tuple[tuple[int, float], ...]:
    rule = "give a dict of token ids and numbers between -100 and 100"
    if not isinstance(value, dict):
        raise bad(f"logit_bias is {described(value)}", rule)
    for token_id, bias in value.items():
        if type(token_id) is not int or token_id < 0:
            raise bad(f"logit_bias names token id {described(token_id)}", rule)
        if type(bias) not in (int, float) or not -100 <= bias <= 100:
            raise bad(f"the logit_bias of token {token_id} is {described(bias)}", rule)
    return tuple((token_id, float(bias)) for token_id, bias in sorted(value.items()))


def _seed(value: Any) -> int:
    if type(value) is not int:
        raise bad(f"seed is {described(value)}", "give a whole number")
    return value


def _logprobs(value: Any) -> int | None:
    if value is True:
        return 0
    return None if value is False else _integer("logprobs", value, 0, 100)


def _regex(value: Any) -> ConstraintSpec:
    if not isinstance(value, str) or not value:
        raise bad(f"regex is {described(value)}", "give the pattern as a text")
    return ConstraintSpec("regex", value, TEXT)


def _choices(value: Any) -> ConstraintSpec:
    if not isinstance(value, list) or not value or not all(isinstance(entry, str) and entry for entry in value):
        raise bad(f"choices is {described(value)}", "give a list of texts, none of them empty")
    return ConstraintSpec("choices", _canonical(value), TEXT)


def _schema(value: Any) -> ConstraintSpec:
    if isinstance(value, type) and issubclass(value, pydantic.BaseModel):
        return ConstraintSpec("schema", _canonical(value.model_json_schema()), json_of(value.__name__))
    if isinstance(value, dict):
        title = value.get("title")
        try:
            text = _canonical(value)
        except (TypeError, ValueError) as error:
            raise bad(f"schema is no JSON: {error}", "give a JSON schema or a pydantic class") from error
        return ConstraintSpec("schema", text, json_of(title if isinstance(title, str) and title else "schema"))
    raise bad(f"schema is {described(value)}", "give a pydantic class or a JSON schema (a dict)")


def _dtype(value: Any) -> ConstraintSpec:
    if not isinstance(value, type) or value not in _DTYPES:
        raise bad(f"dtype is {described(value)}", "give int, float, bool or str")
    return ConstraintSpec("dtype", value.__name__, _DTYPES[value])


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "max_tokens": lambda value: _integer("max_tokens", value, 1),
    "min_tokens": lambda value: _integer("min_tokens", value, 0),
    "stop": _stop,
    "stop_token_ids": _token_ids,
    "temperature": lambda value: _number(
        "temperature", value, lambda number: 0 <= number < float("inf"), "not below 0"
    ),
    "top_p": lambda value: _number("top_p", value, lambda number: 0 < number <= 1, "above 0, at most 1"),
    "top_k": lambda value: _integer("top_k", value, 0),
    "min_p": lambda value: _number("min_p", value, lambda number: 0 <= number <= 1, "between 0 and 1"),
    "frequency_penalty": lambda value: _number(
        "frequency_penalty", value, lambda number: -2 <= number <= 2, "between -2 and 2"
    ),
    "presence_penalty": lambda value: _number(
        "presence_penalty", value, lambda number: -2 <= number <= 2, "between -2 and 2"
    ),
    "repetition_penalty": lambda value: _number(
        "repetition_penalty", value, lambda number: 0.01 <= number <= 100, "between 0.01 and 100"
    ),
    "logit_bias": _logit_bias,
    "seed": _seed,
    "logprobs": _logprobs,
}
_CONSTRAINT_CHECKS: dict[str, Callable[[Any], ConstraintSpec]] = {
    "regex": _regex,
    "choices": _choices,
    "schema": _schema,
    "dtype": _dtype,
}

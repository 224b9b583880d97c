"""The options of a generation, checked where the user wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from lmc.frontend.language.constraint_options import ConstraintSpec, checked_constraint
from lmc.frontend.language.refusals import bad, described, near
from lmc.frontend.schemas.conversions import Conversion
from lmc.ir.engine.protocol import JUMP_FORWARD
from lmc.ir.semantics.constraint_runtime import Compile, Constraints
from lmc.ir.types import TEXT, Type


class SamplingOptions(TypedDict, total=False):
    """The keyword arguments of ``gen`` whatever its value is, for type checkers. None stands for the default."""

    max_tokens: int | None
    min_tokens: int | None
    stop: str | Sequence[str] | None
    stop_token_ids: Sequence[int] | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    repetition_penalty: float | None
    logit_bias: Mapping[int, float] | None
    seed: int | None
    logprobs: int | None
    jump_forward: Literal["exact", "canonical", "off"] | None
    whitespace: Literal["compact", "flexible"] | None
    regex: str | None
    grammar: str | None


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """Checked options of ``gen``; the fields of ``lm.gen``, with the constraint still in the user's terms."""

    max_tokens: int = 256
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    temperature: float | None = None
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    logprobs: int | None = None
    jump_forward: str = "exact"
    constraint: ConstraintSpec | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """Fields by the names that ``lm.gen`` gives them, without the constraint."""
        return {name: getattr(self, name) for name in _ATTRIBUTES}

    @property
    def type(self) -> Type:
        """The type of the value."""
        return TEXT if self.constraint is None else self.constraint.type

    @property
    def conversion(self) -> Conversion | None:
        """The conversion of the text to a value by code of the user's, or None."""
        schema = None if self.constraint is None else self.constraint.schema
        return Conversion(schema) if schema is not None and schema.runs_code else None

    def constraints(self, compile: Compile | None) -> Constraints:
        """Return the constraints of a run of this generation alone, its constraint named by its kind."""
        spec = self.constraint
        if spec is None:
            return Constraints()
        schema = spec.schema
        readers = {} if schema is None or schema.read is None else {schema.name: schema.read}
        return Constraints.of([spec.symbol(spec.kind)], compile, readers)


_ATTRIBUTES = tuple(field.name for field in fields(GenerationOptions) if field.name != "constraint")
_CONSTRAINTS = ("regex", "choices", "schema", "dtype", "grammar")
_OF_CONSTRAINTS = ("whitespace", "parse")
KEYWORDS = (*_ATTRIBUTES, *_CONSTRAINTS, *_OF_CONSTRAINTS, "n")


def options(given: Mapping[str, Any]) -> tuple[GenerationOptions, int | None]:
    """Check what the user gave to ``gen``; also gives ``n``. Raises ``CaptureError`` at the user's line."""
    checked: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    count: int | None = None
    for key, value in given.items():
        if key not in KEYWORDS:
            raise bad(f"gen has no option {key!r}", near(key, KEYWORDS))
        if value is None:
            continue
        plain = _copied(value)
        if key == "n":
            count = _integer("n", plain, 1)
        elif key in _CONSTRAINTS or key in _OF_CONSTRAINTS:
            constraints[key] = plain
        else:
            checked[key] = _CHECKS[key](plain)
    constraint = checked_constraint(constraints)
    if "jump_forward" in checked and not constraints:
        raise bad(
            "gen has jump_forward, but no constraint whose text could be jumped over",
            f"leave it out, or give one of {', '.join(_CONSTRAINTS)}",
        )
    if constraint is None:
        checked["jump_forward"] = JUMP_FORWARD[0]  # a constraint that allows every text is none
    made = GenerationOptions(**checked, constraint=constraint)
    if made.min_tokens > made.max_tokens:
        raise bad(
            f"min_tokens is {made.min_tokens}, more than max_tokens ({made.max_tokens})",
            "raise max_tokens or lower min_tokens",
        )
    return made, count


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        return list(value)
    return dict(value) if kind is dict else value


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


def _jump_forward(value: Any) -> str:
    if value not in JUMP_FORWARD:
        raise bad(f"jump_forward is {described(value)}", f"give one of {', '.join(map(repr, JUMP_FORWARD))}")
    return value


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
    "jump_forward": _jump_forward,
}

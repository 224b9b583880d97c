"""Models of requests: parameters that take effect, those without effect, and all others, refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, model_validator

from lmc.ir.engine.protocol import SamplingParams
from lmc.runtime.server.errors import ApiError, refused

MOST_CHOICES = 128
MOST_STOPS = 64
MOST_LOGPROBS = 20
Ids = Annotated[list[int], Field(fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]
"""Long lists, of which one error is named: a list of the other kind has as many as members."""


class Parameters(BaseModel):
    """The body of a request. Fields take effect.

    Values of ``IGNORED`` parameters change no output, so they are taken and dropped. Of ``NEUTRAL`` ones those values
    are taken that mean the same as leaving them out. All others are refused by name.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    IGNORED: ClassVar[frozenset[str]] = frozenset()
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {}

    @model_validator(mode="after")
    def _check_names(self) -> Parameters:
        for name, value in (self.model_extra or {}).items():
            if name in self.IGNORED or value is None or value in self.NEUTRAL.get(name, ()):
                continue
            known = "no such value" if name in self.NEUTRAL else "no such parameter"
            raise UnsupportedError(name, f"this server has {known}")
        return self


class UnsupportedError(ValueError):
    """A parameter of the model that raises it: it has no effect here, or is missing, and should not be."""

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(problem)
        self.parameter = parameter


def invalid_body(problems: Sequence[Mapping[str, Any]]) -> ApiError:
    """Return the first of pydantic's deepest problems of a body as the error of the parameter that it is about.

    Of several types that a parameter may have, the deepest problem is that of the closest one. What is wrong comes
    before what is missing: it may be missing for that reason.
    """
    first = max(problems, key=lambda each: (len(each["loc"]), each["type"] != "missing"))
    if first["type"] == "json_invalid":
        return ApiError("invalid", "the body is no JSON")
    if not first["loc"] and first["type"] == "missing":
        return ApiError("invalid", "the body is empty")
    if not first["loc"] and first["type"] in ("model_attributes_type", "model_type"):
        is_unread = isinstance(first["input"], bytes)
        need = "the header Content-Type must be application/json" if is_unread else "the body is no JSON object"
        return ApiError("invalid", need)
    inner = first.get("ctx", {}).get("error")
    path = [str(step) for step in first["loc"]]
    if isinstance(inner, UnsupportedError):
        path.append(inner.parameter)
    name = ".".join(step for step in path if not _is_alternative(step)) or None
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "literal_error":
        message += f", and not {str(first['input'])[:80]!r}"
    return ApiError("invalid", message if name is None else f"{name}: {message}", name)


def by_type(meaning: str, default: str | None = None) -> Discriminator:
    """Return what tells types of JSON objects apart by their ``type``, which begins with a capital in their tags.

    So paths of errors leave out the tags. ``meaning`` is the error of an object of no such type; ``default`` is the
    type of those without one.
    """

    def tag(value: Any) -> str | None:
        kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else getattr(value, "type", None)
        kind = default if kind is None else kind
        return kind.capitalize() if isinstance(kind, str) else None

    return Discriminator(tag, custom_error_type="type", custom_error_message=meaning)


def _is_alternative(step: str) -> bool:
    """Return True for the parts of a path that pydantic adds to name one of several types."""
    return "[" in step or step[:1].isupper() or step in ("str", "int", "float", "bool")


def sampling_of(
    *,
    max_tokens: int,
    temperature: float | None,
    top_p: float | None,
    stop: str | list[str] | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    min_tokens: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    repetition_penalty: float | None = None,
    stop_token_ids: list[int] | None = None,
    logit_bias: dict[str, float] | None = None,
    logprobs: int | None = None,
    default_temperature: float = 1.0,
    vocabulary_size: int,
    prefix: str = "",
    names: Mapping[str, str] | None = None,
) -> SamplingParams:
    """Return the sampling of a request; None stands for the default.

    Raises ``ApiError`` that names a parameter: with ``prefix``, and as ``names`` has those that the protocol calls
    otherwise.
    """

    def name(parameter: str) -> str:
        return prefix + (names or {}).get(parameter, parameter)

    def number(parameter: str, value: Any, least: Any, most: Any, default: Any) -> Any:
        return within(name(parameter), value, least, most, default)

    texts = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
    if len(texts) > MOST_STOPS:
        raise refused(name("stop"), f"at most {MOST_STOPS} are taken")
    if any(not text for text in texts):
        raise refused(name("stop"), "a stop is not empty")
    if any(not _is_unicode(text) for text in texts):
        raise refused(name("stop"), "a text holds half of a surrogate pair, which no model can write")
    strange = next((each for each in stop_token_ids or () if not 0 <= each < vocabulary_size), None)
    if strange is not None:
        raise refused(name("stop_token_ids"), f"{strange} is no token id of this model")
    return SamplingParams(
        max_tokens=max_tokens,
        min_tokens=number("min_tokens", min_tokens, 0, max_tokens, 0),
        stop=tuple(dict.fromkeys(texts)),
        stop_token_ids=tuple(stop_token_ids or ()),
        temperature=number("temperature", temperature, 0.0, 100.0, default_temperature),
        top_p=number("top_p", top_p, 0.0, 1.0, 1.0) or 1e-9,
        top_k=max(number("top_k", top_k, -1, 1 << 31, 0), 0),
        min_p=number("min_p", min_p, 0.0, 1.0, 0.0),
        frequency_penalty=number("frequency_penalty", frequency_penalty, -2.0, 2.0, 0.0),
        presence_penalty=number("presence_penalty", presence_penalty, -2.0, 2.0, 0.0),
        repetition_penalty=number("repetition_penalty", repetition_penalty, 0.01, 100.0, 1.0),
        logit_bias=_biases(name("logit_bias"), logit_bias or {}, vocabulary_size),
        logprobs=logprobs,
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def within(name: str, value: Any, least: Any, most: Any, default: Any) -> Any:
    """Return a number, or the default of None. Raises ``ApiError`` where it is out of range."""
    if value is None:
        return default
    if not least <= value <= most:
        raise refused(name, f"it is {value}, and must be from {least} to {most}")
    return value


def _biases(name: str, given: dict[str, float], vocabulary_size: int) -> tuple[tuple[int, float], ...]:
    biases: dict[int, float] = {}
    for key, value in given.items():
        if not key.isascii() or not key.isdigit() or int(key) >= vocabulary_size:
            raise refused(name, f"{key!r} is no token id of this model")
        biases[int(key)] = within(name, value, -100.0, 100.0, 0.0)
    return tuple(sorted(biases.items()))

"""Expressions that programs append: ``sgl.gen(…)``, ``sgl.select(…)``, roles in every spelling, images.

These functions run as they are during a capture, with symbolic arguments too: they look at no argument, they only keep
it. Appending an expression checks its arguments (``state.py``, ``options.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lmc.frontend.language.messages import Appendable, Message, Several
from lmc.frontend.language.refusals import bad, described
from lmc.ir.wording import with_article

token_length_normalized = "token_length_normalized"  # noqa: S105 - a name
"""Choices method: the choice of the largest mean log-probability per token."""
greedy_token_selection = "greedy_token"  # noqa: S105 - a name
"""Choices method: the choice that greedy decoding among the choices would end with."""
unconditional_likelihood_normalized = "unconditional_likelihood_normalized"
"""Choices method: the choice that gains most by the context, compared to its log-probability without one."""


@dataclass(frozen=True, slots=True, eq=False)
class Gen(Appendable):
    """A generation to be appended; ``options`` holds what was given, by the names of ``gen``."""

    name: Any
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Select(Appendable):
    """A choice to be appended."""

    name: Any
    choices: Any
    method: Any
    temperature: Any


@dataclass(frozen=True, slots=True, eq=False)
class RoleBegin(Appendable):
    """The beginning of a message."""

    role: str


@dataclass(frozen=True, slots=True, eq=False)
class RoleEnd(Appendable):
    """The end of the open message."""

    role: str


@dataclass(frozen=True, slots=True, eq=False)
class Image(Appendable):
    """An image: a path, an URL, bytes or an image object."""

    source: Any


@dataclass(frozen=True, slots=True, eq=False)
class Video(Appendable):
    """``num_frames`` frames of a video file."""

    source: Any
    num_frames: Any


def gen(  # noqa: PLR0917 - the order is that of the sglang package
    name: str | None = None,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    n: int | None = None,
    stop: str | list[str] | None = None,
    stop_token_ids: list[int] | None = None,
    stop_regex: str | list[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
    dtype: type | str | None = None,
    choices: list[str] | None = None,
    choices_method: str | None = None,
    regex: str | None = None,
    json_schema: str | None = None,
) -> Gen | Select:
    """A generation: ``s += "A:" + sgl.gen("answer", stop=".")``. With ``choices`` it is a ``select``.

    Missing arguments default to those of ``run``. The README describes each argument.
    """
    given = _given(locals())
    given.pop("name", None)
    if choices is None:
        if choices_method is not None:
            raise bad("gen has choices_method, but no choices", "leave it out, or give choices=[…]")
        return Gen(name, given)
    for used in ("choices", "choices_method", "temperature"):
        given.pop(used, None)
    if given:
        raise bad(
            f"gen has choices and {', '.join(given)}",
            f"leave {' and '.join(given)} out: choices are scored, nothing is generated",
        )
    method = choices_method
    return Select(name, choices, method, 0.0 if temperature is None else temperature)


def gen_int(  # noqa: PLR0917 - the order is that of the sglang package
    name: str | None = None,
    max_tokens: int | None = None,
    n: int | None = None,
    stop: str | list[str] | None = None,
    stop_token_ids: list[int] | None = None,
    stop_regex: str | list[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
) -> Gen:
    """A generation that is a whole number (as text): ``gen(…, dtype=int)``."""
    given = _given(locals())
    given.pop("name", None)
    return Gen(name, {**given, "dtype": int})


def gen_string(  # noqa: PLR0917 - the order is that of the sglang package
    name: str | None = None,
    max_tokens: int | None = None,
    n: int | None = None,
    stop: str | list[str] | None = None,
    stop_token_ids: list[int] | None = None,
    stop_regex: str | list[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
) -> Gen:
    """A generation in double quotes: ``gen(…, dtype=str)``."""
    given = _given(locals())
    given.pop("name", None)
    return Gen(name, {**given, "dtype": str})


def select(
    name: str | None = None,
    choices: list[str] | None = None,
    temperature: float = 0.0,
    choices_method: str | None = None,
) -> Select:
    """The likeliest of ``choices``: ``s += "I use a " + sgl.select("tool", ["calculator", "browser"])``.

    ``temperature`` has to be 0: choices are scored, not drawn. ``choices_method`` is one of this module's.
    """
    if choices is None:
        raise bad("select has no choices", 'give them: sgl.select("name", ["yes", "no"])')
    return Select(name, choices, choices_method, temperature)


def system(expr: Any = None) -> Message:
    """A system message."""
    return _message("system", expr)


def user(expr: Any = None) -> Message:
    """A user message: ``s += sgl.user("What is " + topic + "?")``."""
    return _message("user", expr)


def assistant(expr: Any = None) -> Message:
    """An assistant message: ``s += sgl.assistant(sgl.gen("answer"))``."""
    return _message("assistant", expr)


def system_begin() -> RoleBegin:
    """The beginning of a system message; ``system_end()`` ends it."""
    return RoleBegin("system")


def system_end() -> RoleEnd:
    """The end of a system message."""
    return RoleEnd("system")


def user_begin() -> RoleBegin:
    """The beginning of a user message; ``user_end()`` ends it."""
    return RoleBegin("user")


def user_end() -> RoleEnd:
    """The end of a user message."""
    return RoleEnd("user")


def assistant_begin() -> RoleBegin:
    """The beginning of an assistant message; ``assistant_end()`` ends it."""
    return RoleBegin("assistant")


def assistant_end() -> RoleEnd:
    """The end of an assistant message."""
    return RoleEnd("assistant")


def image(expr: Any) -> Image:
    """An image in a message. A target that takes text only refuses it where it is appended."""
    if expr is None:
        raise bad("image has no image", 'give a path, an URL, bytes or an image object: sgl.image("cat.jpeg")')
    return Image(expr)


def video(path: Any, num_frames: int) -> Video:
    """``num_frames`` frames of a video in a message. A target that takes text only refuses it where it is appended."""
    if path is None:
        raise bad("video has no file", 'give its path: sgl.video("cat.mp4", num_frames=8)')
    return Video(path, num_frames)


def separate_reasoning(expr: Any = None, model_type: str | None = None) -> NoReturn:  # noqa: ARG001
    """Refused: which part of an answer is reasoning, lmc does not say."""
    raise bad(
        f"separate_reasoning(model_type={described(model_type)}): lmc takes no answer apart",
        'generate the two parts by themselves: sgl.gen("reasoning", stop="</think>") + "</think>" + sgl.gen("answer")',
    )


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _message(role: str, expr: Any) -> Message:
    if expr is None:
        return Message(role, "")
    kind = type(expr)
    parts: tuple[Any, ...] = expr.parts if kind is Several else (expr,)
    if any(type(part) in (Message, RoleBegin, RoleEnd) for part in parts):
        raise bad(f"{with_article(role)} message holds another message", "append them one after the other")
    wrapped = issubclass(kind, Appendable) and kind is not Several
    return Message(role, Several(parts) if wrapped else expr)

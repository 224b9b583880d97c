"""Appended parts: text, generations and choices, alone or as the content of a role message.

``s += lmc.user("…")``, ``s += lmc.assistant("It is " + lmc.gen("animal"))``, ``s += lmc.select("letter", ["A", "B"])``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from lmc.frontend.language.misuse import Handle
from lmc.frontend.language.refusals import bad, described
from lmc.ir.dialects.core_ops import ROLES
from lmc.ir.errors import CaptureError
from lmc.ir.wording import with_article


class Appendable:
    """Base of what ``s += …`` takes besides text. ``+`` puts several one after the other."""

    __slots__ = ()

    def __add__(self, other: Any) -> Several:
        return Several((*_flat(self), *_flat(other)))

    def __radd__(self, other: Any) -> Several:
        return Several((*_flat(other), *_flat(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Several(Appendable):
    """Texts, generations and choices, one after the other."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Generation(Appendable):
    """A generation to be appended; ``options`` are those of ``State.gen``."""

    name: str | None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Selection(Appendable):
    """A choice to be appended; see ``State.select``."""

    name: str | None
    choices: Sequence[Any]
    method: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Section(Appendable):
    """A text that may be moved as a whole (``movable``), or past which others may be moved (``sections.py``)."""

    text: Any
    movable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Message(Appendable):
    """A whole message of ``role``."""

    role: str
    content: Any


MISSING: Any = object()


def system(content: Any = MISSING) -> Message:
    """A system message: ``s += lmc.system("You are brief.")``. Raises ``CaptureError`` for what is no text."""
    return _message("system", content)


def user(content: Any = MISSING) -> Message:
    """A user message: ``s += lmc.user(f"Essay: {essay}")``. Raises ``CaptureError`` for what is no text."""
    return _message("user", content)


def assistant(content: Any = MISSING) -> Message:
    """An assistant message: ``s += lmc.assistant("It is " + lmc.gen("animal"))``.

    A message that repeats the answer right before it (``s += lmc.assistant(s.gen("animal"))``) is the turn of that
    answer, which it closes; white space at both ends does not count. Text joined to ``s.gen(…)`` is another message
    (``"It is " + s.gen("animal")`` generates before the text): join it to ``lmc.gen(…)``.

    Raises ``CaptureError`` for what is neither text nor to be generated.
    """
    return _message("assistant", content)


def message(role: str, content: Any) -> Message:
    """A message of ``role``, one of "system", "user", "assistant" and "tool": ``s += lmc.message("tool", found)``.

    Whether a model knows the role "tool" is up to its chat template. Raises ``CaptureError`` for another role, and for
    content that is neither text nor to be generated.
    """
    if role not in ROLES:
        raise bad(f"the role of a message is {described(role)}", f"give one of {', '.join(map(repr, ROLES))}")
    return _message(role, content)


def gen(name: str | None = None, **options: Any) -> Generation:
    """A generation to append: ``s += lmc.gen("answer", max_tokens=32)``. Options are those of ``s.gen``."""
    return Generation(name, options)


def select(name: str | None, choices: Sequence[Any], method: str | None = None) -> Selection:
    """A choice to append: ``s += lmc.select("letter", ["A", "B"])``. Options are those of ``s.select``."""
    return Selection(name, choices, method)


def _message(role: str, content: Any) -> Message:
    if content is MISSING:
        raise bad(
            f"lmc.{role}() has no content",
            f'write s += lmc.{role}("…"), or open the message and append to it inside: with s.{role}(): s += "…"',
        )
    for part in _flat(content):
        if type(part) is Message:
            raise bad(f"{with_article(role)} message holds another message", "append them one after the other")
        if type(part) not in (Generation, Selection, Section) and not is_text(part):
            raise no_text(type(part), f"{with_article(role)} message holds")
    return Message(role, content)


def is_text(value: Any) -> bool:
    """Return whether ``value`` can be appended as text."""
    return issubclass(type(value), str)


def no_text(kind: Any, where: str) -> CaptureError:
    """The error for an object of ``kind``, which is no text, where one is needed."""
    if kind is NoneType:
        remedy = "append what the call returns only if it returns a text; s.gen() and s.user() append by themselves"
    elif issubclass(kind, Appendable):
        remedy = "append messages one after the other"
    elif issubclass(kind, Handle):
        remedy = kind.instead
    else:
        remedy = "make it a text: f'{value}' or str(value)"
    return bad(f"{where} {with_article(kind.__name__)}, text is needed", remedy)


def _flat(part: Any) -> tuple[Any, ...]:
    return part.parts if type(part) is Several else (part,)

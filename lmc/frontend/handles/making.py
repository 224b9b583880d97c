"""Functions of lmc that make messages, generations and choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.known import concrete
from lmc.frontend.emit.raising import checked
from lmc.frontend.handles.appending import is_appendable_text, refuse_no_text, wrapped
from lmc.frontend.handles.cores import refuse
from lmc.frontend.handles.generating import checked_name
from lmc.frontend.handles.misuse import refuse_addition
from lmc.frontend.heap.values import FALSE, NONE, Abstract, Appended, Poison, Unbound, Union
from lmc.frontend.language import messages
from lmc.frontend.language.messages import Generation, Message, Section, Selection, Several
from lmc.frontend.language.sections import section
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def _message(role: str) -> Callable[..., Abstract]:
    def make(machine: Machine, *content: Abstract) -> Abstract:
        if not content:
            checked(machine, getattr(messages, role))
        return _new_message(machine, role, content[0])

    return make


def _new_message(machine: Machine, role: str, content: Abstract) -> Abstract:
    if isinstance(content, Union | Poison | Unbound):
        return machine.cases(content, lambda one: _new_message(machine, role, one))
    inner = content.made if isinstance(content, Appended) else None
    for part in inner.parts if isinstance(inner, Several) else (content,):
        made = part.made if isinstance(part, Appended) else part
        if type(made) is Message:
            refuse(machine, f"{with_article(role)} message holds another message", "append them one after the other")
        if type(made) in (Generation, Selection, Section):
            continue
        if not is_appendable_text(machine, wrapped(part)):
            refuse_no_text(machine, wrapped(part), f"{with_article(role)} message holds")
    return Appended(Message(role, content))


def _any_message(machine: Machine, role: Abstract, content: Abstract) -> Abstract:
    plain = concrete(machine, role, "the role of a message has to be known now")
    checked(machine, messages.message, plain, "x")
    return _new_message(machine, plain, content)


def _section(machine: Machine, text: Abstract, movable: Abstract = FALSE) -> Abstract:
    plain = concrete(machine, movable, "whether a section is movable has to be known now")
    checked(machine, section, "x", movable=plain)
    if isinstance(text, Union | Poison | Unbound):
        return machine.cases(text, lambda one: _section(machine, one, movable))
    if not is_appendable_text(machine, text):
        refuse_no_text(machine, text, "a section holds")
    return Appended(Section(text, plain))


def _new_gen(machine: Machine, name: Abstract = NONE, **options: Abstract) -> Abstract:
    return Appended(Generation(checked_name(machine, name), options))


def _new_select(machine: Machine, name: Abstract, choices: Abstract, method: Abstract = NONE) -> Abstract:
    return Appended(Selection(checked_name(machine, name), choices, method))  # type: ignore[arg-type] - values are abstract


FUNCTIONS: Mapping[Any, Callable[..., Abstract]] = {
    messages.system: _message("system"),
    messages.user: _message("user"),
    messages.assistant: _message("assistant"),
    messages.message: _any_message,
    section: _section,
    messages.gen: _new_gen,
    messages.select: _new_select,
}


def append_together(machine: Machine, left: Abstract, right: Abstract) -> Abstract | None:
    """``+`` of what is appended; None where neither is anything of the kind."""
    if not isinstance(left, Appended):
        refuse_addition(machine, left, right)
        if not isinstance(right, Appended):
            return None
    parts: list[Any] = []
    for value in (left, right):
        made = value.made if isinstance(value, Appended) else value
        parts += made.parts if isinstance(made, Several) else (value,)
    return Appended(Several(tuple(parts)))

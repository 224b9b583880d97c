"""Appending to a handle: text, messages, generations, several of them."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from itertools import groupby
from types import MethodType
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.join import UNSURE
from lmc.frontend.emit.operands import class_of, is_text, pure, schema_of_value, text_parts
from lmc.frontend.handles.cores import change, context_of, core_of, is_handle, language_of, refuse
from lmc.frontend.handles.generating import gen, select
from lmc.frontend.handles.misuse import class_of_handle, refuse_addition
from lmc.frontend.handles.roles import begin_role, end_role, extend, extend_or_end, open_role
from lmc.frontend.heap.cells import BranchesCell, HandleCell
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    Appended,
    BoundMethod,
    Concat,
    Const,
    Poison,
    Ref,
    RoleTurn,
    Symbol,
    Unbound,
    Union,
)
from lmc.frontend.language import messages
from lmc.frontend.language.messages import Generation, Message, Section, Selection, Several
from lmc.frontend.language.sections import Sections, merged_sections
from lmc.ir.dialects.core_ops import ExtendOp
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.types import ANY, CTX
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def append(machine: Machine, handle: Abstract, content: Abstract) -> None:
    """``s += content``."""
    cell = machine.cell(handle)
    if isinstance(cell, BranchesCell) and cell.source is not NONE:
        language_of(machine, cell.source).add_to_branches(machine, handle, content)
        return
    if not isinstance(cell, HandleCell):
        refuse_addition(machine, handle, content)
    if isinstance(content, Union | Poison | Unbound):

        def one_of(one: Abstract) -> Abstract:
            append(machine, handle, one)
            return NONE

        machine.cases(content, one_of)
        return
    if isinstance(content, Appended):
        _append_made(machine, handle, content.made)
        return
    if isinstance(content, Const) and isinstance(content.value, messages.Appendable):
        _append_made(machine, handle, content.value)
        return
    _append_text(machine, handle, content)


def _append_made(machine: Machine, handle: Abstract, made: Any) -> None:
    kind = type(made)
    language = language_of(machine, handle)
    rule = None if language is None else language.appended.get(kind)
    if rule is not None:
        rule(machine, handle, made)
    elif kind is Several:
        for part in _with_sections(machine, made.parts):
            append(machine, handle, wrapped(part))
    elif kind is Section:
        append(machine, handle, wrapped(made.text))
    elif kind is Sections:
        _append_sections(machine, handle, None, made)
    elif kind is Message:
        append_message(machine, handle, made)
    elif kind is Generation:
        name = None if made.name is None else wrapped(made.name)
        given = {key: wrapped(value) for key, value in made.options.items()}
        gen(machine, handle, *(() if name is None else (name,)), **given)
    elif kind is Selection:
        name = NONE if made.name is None else wrapped(made.name)
        select(machine, handle, name, wrapped(made.choices), wrapped(made.method))
    else:
        raise machine.unsupported(f"appending {with_article(kind.__name__)}")


def _with_sections(machine: Machine, parts: Sequence[Any]) -> list[Any]:
    """``parts``, in which texts and sections that follow each other are one ``Sections``, if there is a section."""
    found: list[Any] = []
    for is_plain, group in groupby(map(_unwrapped, parts), key=lambda part: _is_plain(machine, part)):
        members = list(group)
        if is_plain and any(type(part) is Section for part in members):
            found.append(merged_sections(members))
        else:
            found += members
    return found


def _unwrapped(part: Any) -> Any:
    return part.made if isinstance(part, Appended) else part


def _is_plain(machine: Machine, part: Any) -> bool:
    return type(part) is Section or is_appendable_text(machine, wrapped(part))


def wrapped(value: Any) -> Abstract:
    """``value`` as an abstract value: parts of what is appended are abstract already."""
    if isinstance(value, Abstract):
        return value
    return Appended(value) if isinstance(value, messages.Appendable) else Const(value)


def is_appendable_text(machine: Machine, value: Abstract) -> bool:
    """Return whether ``value`` is text, or may turn out to be."""
    kind = class_of(machine, value)
    if kind is not None:
        return issubclass(kind, str)
    schema = schema_of_value(machine, value)
    if schema is not None:
        return schema.may_be_text
    return isinstance(value, Symbol) and value.type == ANY


def as_text(machine: Machine, value: Abstract) -> Abstract:
    """A value that may be text as text."""
    return value if is_text(machine, value) else pure(machine, "text", (value,))


def refuse_no_text(machine: Machine, content: Abstract, where: str) -> None:
    """Raise what appending a value raises that is no text."""
    error = messages.no_text(_shown_class(machine, content), where)
    refuse(machine, error.cause, error.remedy or "")


def _shown_class(machine: Machine, content: Abstract) -> type:
    """Return the class name of a value for error messages."""
    if is_handle(machine, content):
        return class_of_handle(machine, content)
    if isinstance(content, BoundMethod):
        return MethodType
    schema = schema_of_value(machine, content)
    kind = schema.kind if schema is not None else class_of(machine, content)
    kind = typing.get_origin(kind) or kind
    return kind if isinstance(kind, type) else type("value", (), {})


def _append_text(machine: Machine, handle: Abstract, content: Abstract) -> None:
    if not is_appendable_text(machine, content):
        refuse_no_text(machine, content, "the program appends")
    if isinstance(content, Const) and content.value == "":
        return
    text = as_text(machine, content)
    (context,) = machine.emit(
        ExtendOp, (CTX,), context=context_of(machine, handle).ir, role=None, text=text_parts(machine, text)
    )
    change(machine, handle, context=Symbol(context, "a state"))
    _appended(machine, handle, [content])


def _append_sections(machine: Machine, handle: Abstract, role: str | None, sections: Sections) -> None:
    if role is not None:
        open_role(machine, handle, role)
    texts = [as_text(machine, wrapped(text)) for text in sections.texts]
    found = [text_parts(machine, text) for text in texts]
    (context,) = machine.emit(
        SectionsOp,
        (CTX,),
        context=context_of(machine, handle).ir,
        role=role,
        text=tuple(part for parts in found for part in parts),
        lengths=tuple(map(len, found)),
        kinds=tuple(sections.kinds),
    )
    change(machine, handle, context=Symbol(context, "a state"))
    if role is None:
        _appended(machine, handle, texts)


def _appended(machine: Machine, handle: Abstract, texts: Sequence[Abstract]) -> None:
    """Note that bare text was appended. Text that only a run knows may be empty, so only known text counts."""
    _address, core = core_of(machine, handle)
    known = any(_is_certainly_filled(text) for text in texts)
    fields: dict[str, Any] = {}
    if known:
        fields["answer"] = None
    elif core.answer is not None:
        fields["answer"] = UNSURE
    if not core.chat:
        fields["bare"] = core.bare or (known and core.chat is False)
        fields["unsure"] = True
    change(machine, handle, **fields)


def _is_certainly_filled(text: Abstract) -> bool:
    if isinstance(text, Const):
        return bool(text.value)
    return isinstance(text, Concat) and any(isinstance(part, str) and part for part in text.parts)


def append_message(machine: Machine, handle: Abstract, message: Message) -> None:
    """``s += lmc.user(content)``."""
    content = message.content
    inner = content.made if isinstance(content, Appended) else content
    found = _with_sections(machine, inner.parts if type(inner) is Several else (inner,))
    if len(found) == 1 and type(found[0]) is Sections:
        _append_sections(machine, handle, message.role, found[0])
        return
    if type(inner) in (Several, Generation, Selection):
        assert isinstance(handle, Ref)
        turn = RoleTurn(handle, message.role)
        begin_role(machine, turn)
        machine.turns.append(turn)
        try:
            append(machine, handle, wrapped(inner))
        finally:
            machine.turns.pop()
        end_role(machine, turn)
        return
    value = wrapped(content)
    if isinstance(value, Union | Poison | Unbound):

        def one_of(one: Abstract) -> Abstract:
            append_message(machine, handle, Message(message.role, one))
            return NONE

        machine.cases(value, one_of)
        return
    if not is_appendable_text(machine, value):
        refuse_no_text(machine, value, f"{with_article(message.role)} message holds")
    text = as_text(machine, value)
    _address, core = core_of(machine, handle)
    answer = core.answer
    open_role(machine, handle, message.role)
    _address, core = core_of(machine, handle)
    if message.role == "assistant" and answer is not None:
        extend_or_end(machine, handle, text, answer)
        return
    extend(machine, handle, message.role, text)

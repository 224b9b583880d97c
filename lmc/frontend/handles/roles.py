"""Turns: role messages, role blocks, and what follows an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from lmc.frontend.control.conditions import adopt, branch
from lmc.frontend.control.join import TRACKED, UNSURE
from lmc.frontend.emit.operands import is_scalar, pure, text_parts
from lmc.frontend.handles.cores import change, context_of, core_of, refuse
from lmc.frontend.heap.values import Abstract, Const, RoleTurn, Symbol, Union, same
from lmc.ir.dialects.core_ops import BeginOp, EndOp, ExtendOp, TranscriptOp
from lmc.ir.types import CTX, TEXT
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def open_role(machine: Machine, handle: Abstract, role: str) -> None:
    """A turn of ``role`` begins; refused behind bare text."""
    _address, core = core_of(machine, handle)
    if core.bare:
        _refuse_role(machine, role)
    if core.unsure and not core.chat and machine.protected:
        _check_in_run(machine, handle, core.chat, role)
    change(machine, handle, chat=True, answer=None, role=None)


def _refuse_role(machine: Machine, role: str) -> None:
    refuse(
        machine,
        f"{with_article(role)} message can't follow bare text",
        "put the text into a role message (lmc.system, lmc.user), or use no roles at all",
    )


def _check_in_run(machine: Machine, handle: Abstract, chat: bool | None, role: str) -> None:
    """Raise in the run, where a handler may take it, what a role message behind text raises that may be empty."""
    if chat is None:
        raise machine.unsupported("a role message in a `try` behind text of some ways")
    (text,) = machine.emit(TranscriptOp, (TEXT,), context=context_of(machine, handle).ir)
    flag = pure(machine, "ne", (Symbol(text, "the text of the state"), Const("")), raises=False)

    def refused() -> None:
        change(machine, handle, bare=True)
        _refuse_role(machine, role)

    adopt(machine, branch(machine, flag, refused, lambda: None))


def begin_role(machine: Machine, turn: RoleTurn) -> None:
    """``with s.user():`` opens."""
    open_role(machine, turn.handle, turn.role)
    (context,) = machine.emit(BeginOp, (CTX,), context=context_of(machine, turn.handle).ir, role=turn.role)
    change(machine, turn.handle, context=Symbol(context, "a state"), role=turn.role)


def end_role(machine: Machine, turn: RoleTurn) -> None:
    """The turn closes."""
    change(machine, turn.handle, answer=None, role=None)
    end(machine, turn.handle)


def extend(machine: Machine, handle: Abstract, role: str, text: Abstract) -> None:
    """Append a message."""
    (context,) = machine.emit(
        ExtendOp, (CTX,), context=context_of(machine, handle).ir, role=role, text=text_parts(machine, text)
    )
    change(machine, handle, context=Symbol(context, "a state"))


def end(machine: Machine, handle: Abstract) -> None:
    """Close the open turn."""
    (context,) = machine.emit(EndOp, (CTX,), context=context_of(machine, handle).ir)
    change(machine, handle, context=Symbol(context, "a state"))


def extend_or_end(machine: Machine, handle: Abstract, text: Abstract, answer: Abstract) -> None:
    """An assistant message behind an answer: the turn of that answer, where it repeats it."""
    if answer is UNSURE:
        machine.note_write(TRACKED, None, was_read=True)
    if isinstance(answer, Union):
        there = answer.first
        _either(
            machine,
            answer.flag,
            lambda: extend_or_end(machine, handle, text, there),
            lambda: extend(machine, handle, "assistant", text),
        )
        return
    if same(text, answer):
        end(machine, handle)
        return
    if not is_scalar(answer):
        if answer is not UNSURE and isinstance(text, Const) and not _is_json(text.value):
            extend(machine, handle, "assistant", text)  # the answer meets a schema, so it is JSON
            return
        raise machine.stop(
            "an assistant message follows an answer, and only a run knows whether it repeats that answer",
            "for a turn that is the answer, write s += lmc.assistant(lmc.gen(…)); for a turn after the answer, "
            "open it: with s.assistant(): s += text",
        )
    said = pure(machine, "str", (answer,))
    flag = pure(machine, "eq", tuple(pure(machine, "str.strip", (part,)) for part in (text, said)))
    _either(machine, flag, lambda: end(machine, handle), lambda: extend(machine, handle, "assistant", text))


def _either(machine: Machine, flag: Symbol, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    adopt(machine, branch(machine, flag, then, otherwise))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

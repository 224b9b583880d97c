"""Warn of assistant messages that join text to ``s.gen(…)``: the answer is a turn already, and is written again.

Compiled and eager runs know a repeated answer by its value only (``State._append_assistant``), so text that is joined
to it makes a second turn. The source tells what was meant.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

_MAKERS = "lmc.frontend.language.messages"
_STRIPS = ("strip", "lstrip", "rstrip")


def warn_of_joined_answers(node: ast.AST, function: FunctionType) -> None:
    """Warn, at its line, of each assistant message of ``function`` that joins text to a generation of its state."""
    code = function.__code__
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for part in ast.walk(node):
        for state, content in _assistant_contents(part, function):
            call = _joined_answer(content, state) if state in local else None
            if call is not None:
                made = ast.unparse(call.func)
                kind = made.rpartition(".")[2]
                warnings.warn_explicit(
                    f"{made}(…) is generated as a turn of its own before this assistant message, which repeats it\n"
                    f'  remedy: join lmc.{kind}(…) to the text: lmc.assistant("It is " + lmc.{kind}("x", …))',
                    UserWarning,
                    code.co_filename,
                    call.lineno,
                    registry=function.__globals__.setdefault("__warningregistry__", {}),
                )


def _assistant_contents(part: ast.AST, function: FunctionType) -> Iterator[tuple[str, ast.expr]]:
    """The content of the assistant message that a statement or a call appends, with the name of its state."""
    match part:
        case ast.AugAssign(target=ast.Name(id=state), op=ast.Add(), value=ast.Call() as call):
            yield from ((state, content) for content in _content(call, function))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=state), attr="append"), args=[ast.Call() as call]):
            yield from ((state, content) for content in _content(call, function))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=state), attr="assistant"), args=[content]):
            yield state, content
        case _:
            pass


def _content(call: ast.Call, function: FunctionType) -> Iterator[ast.expr]:
    """The content where ``call`` is ``lmc.assistant(…)`` or ``lmc.message("assistant", …)``."""
    made = _value_of(call.func, function)
    if getattr(made, "__module__", None) != _MAKERS:
        return
    match made.__name__, call.args:
        case "assistant", [content]:
            yield content
        case "message", [ast.Constant(value="assistant"), content]:
            yield content
        case _:
            pass


def _value_of(name: ast.expr, function: FunctionType) -> Any:
    """The object that a global name, or a name of a module, stands for; None for any other expression."""
    match name:
        case ast.Name(id=word):
            return function.__globals__.get(word)
        case ast.Attribute(value=ast.Name(id=word), attr=attribute):
            found = function.__globals__.get(word)
            return getattr(found, attribute, None) if isinstance(found, ModuleType) else None
        case _:
            return None


def _joined_answer(content: ast.expr, state: str) -> ast.Call | None:
    """The generation of ``state`` that ``content`` joins to other text."""
    match content:
        case ast.Call(func=ast.Name(id="str"), args=[inner]) | ast.NamedExpr(value=inner):
            return _joined_answer(inner, state)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]) if method in _STRIPS:
            return _joined_answer(inner, state)
        case ast.JoinedStr(values=[ast.FormattedValue(value=inner, format_spec=None)]):
            return _joined_answer(inner, state)
        case ast.IfExp(body=body, orelse=orelse):
            return _joined_answer(body, state) or _joined_answer(orelse, state)
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return _generation(content, state)
        case ast.Call(func=ast.Attribute(attr="format" | "join")):
            return _generation(content, state)
        case _:
            return None


def _generation(content: ast.expr, state: str) -> ast.Call | None:
    """The first generation in ``content`` that is appended to ``state``."""
    for part in ast.walk(content):
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="gen" | "select")) if name == state:
                if not any(keyword.arg in ("n", None) for keyword in part.keywords):
                    return part
            case _:
                pass
    return None

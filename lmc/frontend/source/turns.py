"""Warn of assistant messages that join text to ``s.gen(…)``: the answer is a turn already, and is written again.

Compiled and eager runs know a repeated answer by its value only (``State._append_assistant``), so text that is joined
to it makes a second turn. The source tells what was meant.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import warnings
from collections import ChainMap
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from lmc.ir.errors import LmcWarning

_MAKERS = "lmc.frontend.language.messages"
_STRIPS = ("strip", "lstrip", "rstrip")
Names = Mapping[str, Any]
"""Objects by the names that a function sees."""


def warn_of_joined_answers(node: ast.AST, function: FunctionType) -> None:
    """Warn, at its line, of each assistant message of ``function`` that joins text to a generation of its state."""
    code = function.__code__
    imported = _imported(node)
    names = ChainMap(imported, _enclosing(function), function.__globals__)
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars} - set(imported)
    local -= {name for name in code.co_freevars if isinstance(names.get(name), ModuleType)}
    for part in ast.walk(node):
        for state, content in _assistant_contents(part, names):
            call = _joined_answer(content, state) if state in local else None
            if call is not None:
                made = ast.unparse(call.func)
                kind = made.rpartition(".")[2]
                warnings.warn_explicit(
                    f"{made}(…) is generated as a turn of its own before this assistant message, which repeats it\n"
                    f'  remedy: join lmc.{kind}(…) to the text: lmc.assistant("It is " + lmc.{kind}("x", …))',
                    LmcWarning,
                    code.co_filename,
                    call.lineno,
                    registry=function.__globals__.setdefault("__warningregistry__", {}),
                )


def _imported(node: ast.AST) -> dict[str, Any]:
    """The names that a function imports, with their objects, None where they are not loaded yet."""
    found: dict[str, Any] = {}
    for part in ast.walk(node):
        match part:
            case ast.Import(names=names):
                for each in names:
                    first = each.name.partition(".")[0]
                    found[each.asname or first] = sys.modules.get(each.name if each.asname else first)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for each in names:
                    found[each.asname or each.name] = getattr(sys.modules.get(module), each.name, None)
            case _:
                pass
    return found


def _enclosing(function: FunctionType) -> dict[str, Any]:
    """The names of enclosing functions that have a value already."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # empty so far
            found[name] = cell.cell_contents
    return found


def _assistant_contents(part: ast.AST, names: Names) -> Iterator[tuple[str, ast.expr]]:
    """The content of the assistant message that a statement or a call appends, with the name of its state."""
    match part:
        case ast.AugAssign(target=ast.Name(id=state), op=ast.Add(), value=ast.Call() as call):
            yield from ((state, content) for content in _content(call, names))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=state), attr="append"), args=[ast.Call() as call]):
            yield from ((state, content) for content in _content(call, names))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=state), attr="assistant"), args=[content]):
            yield state, content
        case _:
            pass


def _content(call: ast.Call, names: Names) -> Iterator[ast.expr]:
    """The content where ``call`` is ``lmc.assistant(…)`` or ``lmc.message("assistant", …)``."""
    made = _value_of(call.func, names)
    if getattr(made, "__module__", None) != _MAKERS:
        return
    match made.__name__, call.args:
        case "assistant", [content]:
            yield content
        case "message", [ast.Constant(value="assistant"), content]:
            yield content
        case _:
            pass


def _value_of(name: ast.expr, names: Names) -> Any:
    """The object that a name of ``names``, or a name of a module, stands for; None for any other expression."""
    match name:
        case ast.Name(id=word):
            return names.get(word)
        case ast.Attribute(value=ast.Name(id=word), attr=attribute):
            found = names.get(word)
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

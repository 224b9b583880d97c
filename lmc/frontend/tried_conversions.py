"""Where in a statement a conversion is done before anything else that could be seen."""

from __future__ import annotations

import ast

from lmc.frontend.rewrite import Own

_CONVERSIONS = frozenset({"int", "float"})
# Methods that change no variable, so that those may as well be read behind them.
_PURE_METHODS = frozenset(name for name in dir(str) if not name.startswith("_")) | {"get", "gen", "select"}


def first_conversion(statement: ast.stmt) -> ast.Call | None:
    """The conversion with which ``statement`` begins, as far as anything can be seen of it."""
    match statement:
        case ast.Assign(targets=targets, value=value) if all(isinstance(target, ast.Name) for target in targets):
            return _first(value)
        case ast.AnnAssign(target=ast.Name(), value=value) if value is not None:
            return _first(value)
        case ast.AugAssign(target=ast.Name(), value=value):
            found = _first(value)
            return found if found is not None and _is_pure(found.args[0]) else None
        case ast.Return(value=value) | ast.Expr(value=value) if value is not None:
            return _first(value)
        case _:
            return None


def _first(node: ast.expr) -> ast.Call | None:
    """The conversion that is done before anything else in ``node``, but for what can be put off unseen."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _CONVERSIONS:
            if isinstance(argument, ast.Starred):
                return None
            return _first(argument) or node
        case ast.Call(func=ast.Name(), args=parts):
            pass
        case ast.Call(func=ast.Attribute(value=owner), args=parts):
            parts = [owner, *parts]
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.Compare(left=left, comparators=[right, *_]):
            parts = [left, right]
        case ast.UnaryOp(operand=part) | ast.Attribute(value=part) | ast.IfExp(test=part) | ast.NamedExpr(value=part):
            parts = [part]
        case ast.BoolOp(values=[part, *_]):
            parts = [part]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            pass
        case ast.Subscript(value=part, slice=key):
            parts = [part, key]
        case _:
            return None
    passed_names = False
    for part in parts:
        if isinstance(part, ast.Constant | Own):
            continue
        if isinstance(part, ast.Name):
            passed_names = True
            continue
        found = _first(part)
        return found if found is not None and (not passed_names or _is_pure(found.args[0])) else None
    return None


def _is_pure(node: ast.expr) -> bool:
    """Whether it can't be seen when ``node`` is evaluated."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await):
            return False
        if isinstance(part, ast.Call):
            function = part.func
            if not isinstance(function, ast.Attribute) or function.attr not in _PURE_METHODS:
                return False
    return True

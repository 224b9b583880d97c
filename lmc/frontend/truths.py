"""The source transform of ``and`` and ``or`` where only their truth is asked for.

``if items and text`` needs no value that is either a list or a text: each operand becomes whether it is true.
"""

from __future__ import annotations

import ast

from lmc.frontend.rewrite import Own


def write_truths(node: ast.FunctionDef) -> None:
    """Let the operands of ``and`` and ``or`` in conditions of ``node`` be bools, in place."""
    for part in ast.walk(node):
        match part:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                part.test = _asked(part.test)
            case ast.comprehension():
                part.ifs = [_asked(test) for test in part.ifs]
            case ast.UnaryOp(op=ast.Not()):
                part.operand = _asked(part.operand)
            case _:
                pass


def _asked(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.BoolOp):
        test.values = [_operand(value) for value in test.values]
    return test


def _operand(value: ast.expr) -> ast.expr:
    if isinstance(value, ast.BoolOp):
        return _asked(value)
    is_bool = isinstance(value, ast.Compare | ast.Constant | Own) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    )
    return value if is_bool else ast.copy_location(Own("asked", [value]), value)

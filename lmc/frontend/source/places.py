"""Positions of statements and nested functions in a function, and the code objects of the latter."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import CodeType

from lmc.frontend.source.files import Unsupported, inner_codes

FunctionNode = ast.FunctionDef | ast.Lambda
Place = tuple[int | str, ...]
"""``(3, "body", 0)``: the first statement in the body of the fourth; ``(3, "cases", 1, "body", 0)``: that of a case."""
BLOCKS = ("body", "orelse", "finalbody")
GROUPS = ("handlers", "cases")


def places_of(body: Sequence[ast.stmt]) -> Mapping[int, Place]:
    """The place of each statement of a function, by the id of its node; statements of nested scopes have none."""
    found: dict[int, Place] = {}
    _collect(body, (), found)
    return found


def _collect(body: Sequence[ast.stmt], around: Place, found: dict[int, Place]) -> None:
    for index, node in enumerate(body):
        place = found[id(node)] = (*around, index)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for name in BLOCKS:
            _collect(getattr(node, name, ()), (*place, name), found)
        for name in GROUPS:
            for number, part in enumerate(getattr(node, name, ())):
                _collect(part.body, (*place, name, number, "body"), found)


def statements_around(body: Sequence[ast.stmt], place: Place) -> list[tuple[ast.stmt, Place]]:
    """The statements that hold the one at ``place``, outermost first, each with the rest of the place inside of it."""
    found: list[tuple[ast.stmt, Place]] = []
    while len(place) > 1:
        index, name, *rest = place
        assert isinstance(index, int)
        assert isinstance(name, str)
        node = body[index]
        found.append((node, place[1:]))
        held = getattr(node, name)
        if name in GROUPS:
            number, _body, *rest = rest
            assert isinstance(number, int)
            held = held[number].body
        body, place = held, tuple(rest)
    return found


def functions_in(node: FunctionNode) -> list[FunctionNode]:
    """A function and those that are written in it, in a fixed order."""
    return [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef | ast.Lambda)]


def code_in(code: CodeType, node: FunctionNode) -> CodeType:
    """The code object of a function that is written in the one of ``code``.

    Raises ``Unsupported`` where there is none, or several that look alike.
    """
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    found = [each for each in inner_codes(code) if (each.co_name, each.co_firstlineno) == (name, node.lineno)]
    if isinstance(node, ast.Lambda) and len(found) > 1:
        body = node.body
        span = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
        found = [each for each in found if span in each.co_positions()]
    if len(found) != 1:
        raise Unsupported(f"its code is not found in that of {code.co_name}()", node.lineno)
    return found[0]

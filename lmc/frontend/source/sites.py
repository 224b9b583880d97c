"""Numbers of control flow in a function: comments and other lines do not change them.

What a condition is called may not depend on which of the conditions around it are known when the program is captured:
then a profile would say of one what was measured of another.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeGuard

from lmc.ir.errors import Location

_CONTROL = (
    ast.If,
    ast.IfExp,
    ast.BoolOp,
    ast.For,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Match,
    ast.Try,
    ast.Assert,
)
_FORMS = frozenset({"cond", "while_loop", "map", "race"})


@dataclass(frozen=True)
class Sites:
    """A function, ``name``, from line ``first`` to ``last`` of ``file``; ``lines`` are those with control flow."""

    name: str
    file: str
    first: int
    last: int
    lines: tuple[int, ...]

    @classmethod
    def of(cls, node: ast.FunctionDef, file: str) -> Sites:
        """Return the sites of a definition."""
        found = {part.lineno for part in ast.walk(node) if isinstance(part, _CONTROL) or _is_form(part)}
        return cls(node.name, file, node.lineno, node.end_lineno or node.lineno, tuple(sorted(found)))

    def number(self, line: int) -> int:
        """Return the number of lines with control flow up to ``line``."""
        return bisect_right(self.lines, line)


class SiteTable:
    """The functions that a capture has gone through."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Sites] = {}

    def add(self, sites: Sites) -> None:
        """Take in a function."""
        self._known[sites.file, sites.first] = sites

    def find(self, location: Location | None) -> Sites | None:
        """The innermost function that holds ``location``."""
        if location is None:
            return None
        around = [
            sites
            for sites in self._known.values()
            if sites.file == location.file and sites.first <= location.line <= sites.last
        ]
        return max(around, key=lambda sites: sites.first, default=None)


def _is_form(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return True if this may be ``lmc.map(…)`` or one of its like."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name in _FORMS

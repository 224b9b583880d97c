"""``match`` written as conditions, both ways of which can then be captured like those of any ``if``.

    match subject:                       held = subject
        case "a" | "b": A                if held in ("a", "b"): A
        case x if test: B                else:
        case _: C                            x = held
                                             if test: B
                                             else: C

Patterns that are literals, dotted names, names, or several of those, are written so. A ``match`` with others stays.
"""

from __future__ import annotations

import ast
from itertools import count

from lmc.frontend.rewrite import RESULT, Node
from lmc.frontend.rewrite_exits import Statements
from lmc.frontend.scopes import HELD

# As many cases as conditions may stand in each other.
_MAX_CASES = 40


class _StaysError(Exception):
    """The statement stays as it is."""


def write_matches(function: ast.FunctionDef) -> None:
    """Write each ``match`` in ``function``, and in the functions in it, as conditions where that is possible."""
    _Writer().generic_visit(function)


class _Writer(ast.NodeTransformer):
    def __init__(self) -> None:
        self._numbers = count(1)

    def visit(self, node: ast.AST) -> ast.AST | Statements:
        """No expression holds statements."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_Match(self, node: ast.Match) -> ast.AST | Statements:
        self.generic_visit(node)
        try:
            return self._conditions(node)
        except _StaysError:
            return node

    def _conditions(self, node: ast.Match) -> Statements:
        if len(node.cases) > _MAX_CASES:
            raise _StaysError
        held = self._name(f"{HELD}m")
        rest: Statements = []
        for case in reversed(node.cases):
            rest = self._case(case, held, rest)
        begin = ast.Assign([ast.Name(held, ast.Store())], node.subject)
        return [_placed(begin, node), *rest]

    def _case(self, case: ast.match_case, held: str, rest: Statements) -> Statements:
        """What stands for ``case`` where none before it has matched; ``rest`` are those behind it."""
        test, name = _pattern(case.pattern, held)
        body: Statements = list(case.body)
        binding: Statements = [] if name is None else [_placed(_bind(name, _read(held)), case.pattern)]
        guard = case.guard
        if test is None:
            return [*binding, *(body if guard is None else [_placed(ast.If(guard, body, rest), guard)])]
        if guard is None:
            return [_placed(ast.If(test, [*binding, *body], rest), case.pattern)]
        # Names are bound where the pattern fits, whatever the guard says.
        matched = self._name(f"{RESULT}_m")
        asked = _bind(matched, ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), guard)))
        return [
            _placed(_bind(matched, test), case.pattern),
            _placed(ast.If(_read(matched), [*binding, _placed(asked, guard)], []), case.pattern),
            _placed(ast.If(_read(matched), body, rest), case.pattern),
        ]

    def _name(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"


def _pattern(pattern: ast.pattern, held: str) -> tuple[ast.expr | None, str | None]:
    """What ``pattern`` asks of the subject (None: nothing), and the name it binds to it."""
    match pattern:
        case ast.MatchAs(pattern=None, name=name):
            return None, name
        case ast.MatchAs(pattern=inner, name=name):
            assert inner is not None
            test, other = _pattern(inner, held)
            if other is not None:
                raise _StaysError
            return test, name
        case ast.MatchValue(value=value):
            return _placed(ast.Compare(_read(held), [ast.Eq()], [value]), pattern), None
        case ast.MatchSingleton(value=value):
            return _placed(ast.Compare(_read(held), [ast.Is()], [ast.Constant(value)]), pattern), None
        case ast.MatchOr(patterns=patterns):
            return _either(patterns, held), None
        case _:
            raise _StaysError


def _either(patterns: list[ast.pattern], held: str) -> ast.expr | None:
    values = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
    if len(values) == len(patterns) and all(isinstance(value, ast.Constant) for value in values):
        return _placed(ast.Compare(_read(held), [ast.In()], [ast.Tuple(values, ast.Load())]), patterns[0])
    tests: list[ast.expr] = []
    for part in patterns:
        test, name = _pattern(part, held)
        if name is not None:
            raise _StaysError
        if test is None:
            return None if not tests else _placed(ast.BoolOp(ast.Or(), [*tests, ast.Constant(True)]), part)
        tests.append(test)
    return _placed(ast.BoolOp(ast.Or(), tests), patterns[0])


def _read(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _bind(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _placed(node: Node, place: ast.AST) -> Node:
    return ast.fix_missing_locations(ast.copy_location(node, place))

"""Early ends written as conditions, so that both ways through one can be captured and meet again.

    if test: A; continue                 if test: A
    B                                    else: B

The same for the returns of a function that is a part of a program: what it returns becomes a variable, and the one
``return`` stands at the end. Where an end may or may not come behind a statement, a flag says whether to go on:

    with block:                          on = True
        if test: return x                with block:
        A                                    if test: result = x; on = False
    B                                        else: A
                                         if on: B

A ``break`` becomes such a flag too, which the loop asks first; a return in a loop of such a function breaks.

    while test:                          on = True
        if x: A; break                   while on and test:
        B                                    if x: A; on = False
    else: C                                  else: B
                                         if on: C
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import count

Statements = list[ast.stmt]

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
# Conditions may come to stand this deep in each other; the regions of a capture may stand somewhat deeper.
_MAX_DEPTH = 40


class BreakingFor(ast.For):
    """A ``for`` which goes on while the variable ``flag`` is true."""

    flag: str = ""


class _StaysError(Exception):
    """The statements stay as they are."""


def fold_ends(function: ast.FunctionDef, result: str, *, whole: bool) -> None:
    """Fold the loops and the inner functions of ``function``; ``result`` begins the names that this takes.

    ``whole`` says to fold its own returns too; those that stand in a ``with`` always are, and then all are.
    """
    folder = _Folder(result)
    if whole or any(map(_returns_in_block, function.body)):
        folder.return_once(function)
    folder.generic_visit(function)


def early_returns(body: Statements) -> Statements:
    """The statements of a function that hold a return, other than one at its end."""
    return list(filter(_Fold(ast.Return, lambda _: [], map(str, count())).is_early, body))


class _Folder(ast.NodeTransformer):
    """Folds loops and functions, inner ones first."""

    def __init__(self, result: str) -> None:
        self._result = result
        self._flags = (f"{result}{number}" for number in count(1))

    def visit(self, node: ast.AST) -> ast.AST:
        """No expression holds loops or such functions."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_For(self, node: ast.For) -> ast.AST | Statements:
        flag = self._fold_loop(node)
        if flag is None:
            return node
        item = next(self._flags)
        target = ast.copy_location(ast.Name(item, ast.Store()), node.target)
        given = ast.copy_location(ast.Name(item, ast.Load()), node.target)
        bound = ast.copy_location(ast.Assign([node.target], given), node.target)
        inner = ast.copy_location(ast.If(_flag(flag, node.target), [bound, *node.body], []), node.target)
        made = ast.copy_location(BreakingFor(target, node.iter, [inner], []), node)
        made.flag = flag
        return _flagged(node, made, flag)

    def visit_While(self, node: ast.While) -> ast.AST | Statements:
        flag = self._fold_loop(node)
        if flag is None:
            return node
        goes_on: ast.expr = _flag(flag, node.test)
        if not (isinstance(node.test, ast.Constant) and node.test.value):
            goes_on = ast.copy_location(ast.BoolOp(ast.And(), [goes_on, node.test]), node.test)
        return _flagged(node, ast.copy_location(ast.While(goes_on, node.body, []), node), flag)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.return_once(node)
        self.generic_visit(node)
        return node

    def return_once(self, node: ast.FunctionDef) -> None:
        """Let ``node`` return at its end alone, where that is possible."""

        def bind(end: ast.stmt) -> Statements:
            assert isinstance(end, ast.Return)
            return [_bind(end, self._result, end.value or ast.Constant(None))]

        folded = None if _is_generator(node) else _Fold(ast.Return, bind, self._flags).of(node.body)
        if folded is not None:
            first, last = node.body[0], node.body[-1]
            end = ast.fix_missing_locations(ast.copy_location(ast.Return(ast.Name(self._result, ast.Load())), last))
            begin = [] if _leaves(node.body) else [_bind(first, self._result, ast.Constant(None))]
            node.body = [*begin, *folded, end]

    def _fold_loop(self, node: ast.For | ast.While) -> str | None:
        """Fold the ends of rounds of ``node``; gives the flag that stands for its breaks, None where they stay."""
        self.generic_visit(node)
        folded = _Fold(ast.Continue, lambda _: [], self._flags).of(node.body)
        if folded is not None:
            node.body = folded
        flag = next(self._flags)
        broken = _Fold(ast.Break, lambda end: [_bind(end, flag, ast.Constant(False))], self._flags).of(node.body)
        if broken is None:
            return None
        node.body = broken
        return flag


class _Fold:
    """Folds the ends of one kind; ``bind`` makes what stands in the place of one, ``flags`` are names of flags."""

    def __init__(self, kind: type[ast.stmt], bind: Callable[[ast.stmt], Statements], flags: Iterator[str]) -> None:
        self._kind = kind
        self._bind = bind
        self._flags = flags
        self._loops = 0  # how many loops there are around this place, for returns

    def of(self, body: Statements) -> Statements | None:
        """``body`` without early ends; None where there are none, or it stays as it is."""
        if not any(map(self.is_early, body)):
            return None
        try:
            return self._tail(body, ())
        except _StaysError:
            return None

    def is_early(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` holds ends, and is none itself."""
        return not isinstance(statement, self._kind) and self._has_end(statement)

    def _tail(self, statements: Statements, flags: tuple[str, ...], depth: int = 0) -> Statements:
        """``statements``, behind which nothing is left to do where they end; ``flags`` are to say that they have."""
        if depth > _MAX_DEPTH:
            raise _StaysError
        done: Statements = []
        for index, statement in enumerate(statements):
            rest = statements[index + 1 :]
            if isinstance(statement, self._kind):
                if rest:
                    raise _StaysError
                ended: Statements = [_bind(statement, flag, ast.Constant(False)) for flag in flags]
                if self._loops:
                    ended.append(ast.copy_location(ast.Break(), statement))
                return [*done, *self._bind(statement), *ended] or [ast.copy_location(ast.Pass(), statement)]
            if self._has_end(statement):
                return [*done, *self._folded(statement, rest, flags, depth)]
            done.append(statement)
        return done

    def _folded(self, statement: ast.stmt, rest: Statements, flags: tuple[str, ...], depth: int) -> Statements:
        """``statement``, which holds ends, and ``rest`` where it goes on."""
        if isinstance(statement, ast.If):
            arms = (statement.body, statement.orelse)
            goes_on = [not _leaves(arm) for arm in arms]
            if not any(goes_on) and rest:
                raise _StaysError
            if not (all(goes_on) and rest):
                made = [
                    self._tail([*arm, *rest] if on else arm, flags, depth + 1)
                    for arm, on in zip(arms, goes_on, strict=True)
                ]
                return [ast.copy_location(ast.If(statement.test, made[0], made[1]), statement)]
        leaves_both = self._loops > 0 and isinstance(statement, _LOOPS)  # a return leaves the loop around it too
        if not rest and not leaves_both:
            return [self._inner(statement, flags, depth)]
        flag = next(self._flags)
        begun = _bind(statement, flag, ast.Constant(True))
        inner = self._inner(statement, (*flags, flag), depth)
        place = rest[0] if rest else statement
        after = self._tail(rest, flags, depth + 1) or [ast.copy_location(ast.Pass(), place)]
        otherwise: Statements = [ast.copy_location(ast.Break(), place)] if leaves_both else []
        return [begun, inner, ast.copy_location(ast.If(_flag(flag, place), after, otherwise), place)]

    def _inner(self, statement: ast.stmt, flags: tuple[str, ...], depth: int) -> ast.stmt:
        """``statement`` with its blocks folded."""

        def block(statements: Statements) -> Statements:
            return self._tail(statements, flags, depth + 1)

        match statement:
            case ast.If():
                made: ast.stmt = ast.If(statement.test, block(statement.body), block(statement.orelse))
            case ast.With():
                made = ast.With(statement.items, block(statement.body))
            case ast.Match():
                cases = [ast.match_case(case.pattern, case.guard, block(case.body)) for case in statement.cases]
                made = ast.Match(statement.subject, cases)
            case ast.For() | ast.While() if not any(map(self._has_end, statement.orelse)):
                self._loops += 1
                body = block(statement.body)
                self._loops -= 1
                if isinstance(statement, ast.For):
                    made = ast.For(statement.target, statement.iter, body, statement.orelse)
                else:
                    made = ast.While(statement.test, body, statement.orelse)
            case _:
                raise _StaysError
        return ast.copy_location(made, statement)

    def _has_end(self, statement: ast.stmt) -> bool:
        stack: list[ast.AST] = [statement]
        while stack:
            node = stack.pop()
            if isinstance(node, self._kind):
                return True
            if isinstance(node, _NESTED) or (isinstance(node, _LOOPS) and self._kind is not ast.Return):
                continue
            stack.extend(ast.iter_child_nodes(node))
        return False


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether control never comes to the end of ``statements``."""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _returns_in_block(statement: ast.stmt) -> bool:
    """Whether a return stands in a ``with`` of ``statement``."""
    stack: list[tuple[ast.AST, bool]] = [(statement, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Return) and inside:
            return True
        if not isinstance(node, _NESTED):
            stack.extend((child, inside or isinstance(node, ast.With)) for child in ast.iter_child_nodes(node))
    return False


def _is_generator(function: ast.FunctionDef) -> bool:
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, _NESTED):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _flag(name: str, place: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), place)


def _flagged(node: ast.For | ast.While, made: ast.stmt, flag: str) -> Statements:
    """``made``, which goes on while ``flag`` is true, and behind it what ``node`` does when nothing broke it."""
    statements = [_bind(node, flag, ast.Constant(True)), made]
    if node.orelse:
        statements.append(ast.copy_location(ast.If(_flag(flag, node), node.orelse, []), node.orelse[0]))
    return statements


def _bind(place: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
    made = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), place)
    return ast.fix_missing_locations(made)

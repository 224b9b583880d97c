"""The source transform of ``if``: both arms can be run one after the other, in the user's own frame.

    if test: A                 t = _lmc_.branch(test)
    else: B                    if t.traced: t.enter(names, _lmc_.values(lambda: x, lambda: y))
                               if t.then(): A
                               if t.traced: x, y = t.turn(_lmc_.values(lambda: x, lambda: y))
                               if t.otherwise(): B
                               if t.done(): x, y = t.join(_lmc_.values(lambda: x, lambda: y))

``x, y`` are the names that an arm may bind. Where the way is known, this is the ``if`` it was made of. While an arm is
traced, ``return`` and ``raise`` only note what they do. Nothing is left to do in the arm where they stand at the end;
from elsewhere, as from functions that the arm calls, an exception takes the program there, and the arm is wrapped in a
``try``.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from lmc.frontend.rewrite import BRANCH, constant
from lmc.frontend.rewrite_binding import BindingRewriter, Statements
from lmc.frontend.scopes import names_bound_in
from lmc.frontend.state import State

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_GUARDED = (ast.With, ast.Try, ast.AsyncWith)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
# How many arms in each other are wrapped for what functions may raise: Python takes 20 blocks in each other.
_MOST_WRAPPED = 8
# Names of what is never a part of a program: Python's own functions, and methods of its types and of states.
_PLAIN = frozenset(name for owner in (builtins, str, list, dict, set, State) for name in dir(owner))


class BranchRewriter(BindingRewriter, ABC):
    """Rewrites ``if`` and ``return``."""

    def __init__(self, closure: frozenset[str], *, branches: bool = True, part: bool = False) -> None:
        super().__init__(closure, branches=branches, part=part)
        self._around: list[list[str]] = []  # for each function: the conditions around this place
        # For statements: at the end of how many of these conditions' arms they stand, the innermost first.
        self._levels: dict[int, int] = {}
        self._guards: list[int] = []  # for each function: how many `with` and `try` blocks there are around this place
        self._wrapped: list[int] = []  # for each function: how many arms around this place are wrapped

    @abstractmethod
    def block(self, statements: Statements) -> Statements:
        """Statements of a body, in order."""

    def begin_function(self, body: Statements) -> None:
        """The body of a function begins."""
        self._around.append([])
        self._guards.append(0)
        self._wrapped.append(0)
        self.merged.append(names_merged_in(body) & self.scopes[-1].local if self.branches else set())

    def end_function(self) -> None:
        """It ends."""
        self._around.pop()
        self._guards.pop()
        self._wrapped.pop()
        self.merged.pop()

    def on_if(self, node: ast.If) -> ast.stmt | Statements:
        test = self.visit(node.test)
        if not self.is_traceable(node):
            test = self.operator(node.test, "truth", test)
            return ast.copy_location(ast.If(test, self.block(node.body), self.block(node.orelse)), node)
        names = sorted(names_bound_in([*node.body, *node.orelse]) & self.scopes[-1].local)
        branch = self.construct(node)
        gone = [self.statement(self.leaving(node, "gone", branch))] if self._may_be_gone(node) else []
        with self.inside(branch):
            first, second = (
                self._arm(node, branch, arm, self._levels.get(id(node), 0)) for arm in (node.body, node.orelse)
            )
        traced = self.at(node, ast.Attribute(branch, "traced", ast.Load()))
        entering = self.method(node, branch, "enter", constant(tuple(names)), self._values(node, names))
        return [
            self.assign(branch, self.operator(node.test, "branch", test)),
            self.when(node, traced, [self.statement(entering)]),
            self.when(node, self.method(node, branch, "then"), first),
            self.when(
                node, traced, [self.take(node, names, self.method(node, branch, "turn", self._values(node, names)))]
            ),
            self.when(node, self.method(node, branch, "otherwise"), second),
            self.when(
                node,
                self.method(node, branch, "done"),
                [self.take(node, names, self.method(node, branch, "join", self._values(node, names))), *gone],
            ),
        ]

    def guarded(self, statements: Statements) -> Statements:
        """The body of a ``with`` or ``try``, in order."""
        self._guards[-1] += 1
        made = self.block(statements)
        self._guards[-1] -= 1
        return made

    def on_return(self, node: ast.Return) -> ast.stmt | Statements:
        value = None if node.value is None else self.visit(node.value)
        if not self._around or not self._around[-1]:
            return ast.copy_location(ast.Return(value), node)
        held = self.temporary(node)
        outermost = ast.Constant(len(self.scopes) == 1)
        return [
            self.assign(held, value or self.at(node, ast.Constant(None))),
            self.when(
                node, self.leaving(node, "returning", held, outermost), [ast.copy_location(ast.Return(held), node)]
            ),
        ]

    def leaving(self, node: ast.stmt, name: str, *arguments: ast.expr) -> ast.expr:
        """A call that ends the arms around ``node``, given those and how many it stands at the end of."""
        around = ast.Tuple([ast.Name(branch, ast.Load()) for branch in self._around[-1]], ast.Load())
        return self.operator(node, name, *arguments, around, ast.Constant(self._levels.get(id(node), 0)))

    def is_traceable(self, node: ast.If | ast.For | ast.While) -> bool:
        """Whether both arms can be run one after the other, or the rounds of a loop traced.

        A ``break`` or ``continue`` that leaves an arm is left to Python, and so are a ``return`` through a ``with`` or
        ``try``, and everything in a generator, whose frame stops in the middle of an arm.
        """
        if not self.branches or self.scopes[-1].is_generator:
            return False
        return not any(_leaves(statement, self._guards[-1]) for statement in (*node.body, *node.orelse))

    def construct(self, node: ast.stmt) -> ast.Name:
        """The name of the condition or loop that ``node`` becomes, to be read."""
        return self.at(node, ast.Name(f"{BRANCH}{len(self._around[-1])}", ast.Load()))

    @contextmanager
    def inside(self, construct: ast.Name) -> Generator[None]:
        """What is rewritten meanwhile stands in ``construct``."""
        self._around[-1].append(construct.id)
        yield
        self._around[-1].pop()

    def _arm(self, node: ast.If, branch: ast.Name, statements: Statements, levels: int) -> Statements:
        if statements:
            self._levels[id(statements[-1])] = levels + 1
        wrapped = _leaves_early(statements, by_calls=self._wrapped[-1] < _MOST_WRAPPED)
        self._wrapped[-1] += wrapped
        body = self.block(statements) or [ast.copy_location(ast.Pass(), node)]
        self._wrapped[-1] -= wrapped
        return self.ended_by(node, branch, statements, body) if wrapped else body

    def ended_by(self, node: ast.stmt, construct: ast.Name, statements: Statements, body: Statements) -> Statements:
        """``body``, which ``statements`` became, with its ends noted by ``construct``."""
        if not any(map(may_leave, statements)):
            return body
        end = self.temporary(node)
        leave = self.statement(self.method(node, construct, "left", end))
        handler = ast.ExceptHandler(self.helper(node, "exits"), end.id, [leave])
        return [self.at(node, ast.Try(body, [handler], [], []))]

    def _may_be_gone(self, node: ast.If) -> bool:
        """Whether both arms may leave."""
        return all(any(map(may_leave, arm)) for arm in (node.body, node.orelse))

    def when(self, node: ast.stmt, test: ast.expr, body: Statements) -> ast.stmt:
        """``if test: body``."""
        return self.at(node, ast.If(test, body, []))

    def _values(self, node: ast.AST, names: list[str]) -> ast.expr:
        """What ``names`` are bound to."""
        return self.operator(node, "values", *self.readers(node, names))

    def take(self, node: ast.stmt, names: list[str], values: ast.expr) -> ast.stmt:
        """``names = values``."""
        if not names:
            return self.statement(values)
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        return self.at(node, ast.Assign([target], values))


def names_merged_in(body: Statements) -> set[str]:
    """Names that an ``if``, a loop or ``:=`` in ``body`` binds: they may be unbound, or unclear, behind it."""
    found: set[str] = set()
    for statement in body:
        for part in _walk(statement):
            if isinstance(part, ast.If):
                found |= names_bound_in([*part.body, *part.orelse])
            elif isinstance(part, _LOOPS):
                found |= names_bound_in([part])
            elif isinstance(part, ast.NamedExpr):
                found.add(part.target.id)
    return found


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and what is in it, without nested functions and classes."""
    stack: list[ast.AST] = [node]
    while stack:
        found = stack.pop()
        yield found
        if not isinstance(found, _NESTED) or found is node:
            stack.extend(ast.iter_child_nodes(found))


def may_leave(statement: ast.AST, *, by_calls: bool = True) -> bool:
    """Whether a return of the function that ``statement`` stands in is in it, or what may raise for the program.

    ``by_calls`` says to look at calls of what may do that too.
    """
    return any(
        isinstance(part, ast.Return | ast.Raise) or (by_calls and _may_be_part(part)) for part in _walk(statement)
    )


def _leaves_early(arm: Statements, *, by_calls: bool) -> bool:
    """Whether ``arm`` may be left elsewhere than at its end. What a function raises is no end of the arm's own."""
    if not arm:
        return False
    *before, last = arm
    if any(may_leave(statement, by_calls=by_calls) for statement in before):
        return True
    match last:
        case ast.If():
            inner = (_leaves_early(part, by_calls=by_calls) for part in (last.body, last.orelse))
            return may_leave(last.test, by_calls=by_calls) or any(inner)
        case ast.Return() | ast.Raise():
            return any(may_leave(part, by_calls=by_calls) for part in ast.iter_child_nodes(last))
        case _:
            return may_leave(last, by_calls=by_calls)


def _may_be_part(node: ast.AST) -> bool:
    """Whether ``node`` is a call of what may be a part of the program, so that what it raises ends this one."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in _PLAIN
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in _PLAIN
        case _:
            return False


def _leaves(statement: ast.stmt, guards: int) -> bool:
    """Whether control may leave an arm by what stands in ``statement``, other than by a plain ``return``.

    ``guards`` is how many ``with`` and ``try`` blocks stand around the arm.
    """
    stack: list[tuple[ast.AST, bool, bool]] = [(statement, False, guards > 0)]  # in a loop, in a guarded block
    while stack:
        node, looped, guarded = stack.pop()
        if isinstance(node, ast.Break | ast.Continue) and not looped:
            return True
        if isinstance(node, ast.Return) and guarded:
            return True
        if isinstance(node, _NESTED):
            continue
        looped = looped or isinstance(node, _LOOPS)
        guarded = guarded or isinstance(node, _GUARDED)
        stack.extend((child, looped, guarded) for child in ast.iter_child_nodes(node))
    return False

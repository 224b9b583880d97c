"""The source transform of loops: a round can be traced once for all, in the user's own frame.

    while test: A              t = _lmc_.loop("x", "y")
                               while t.again(test, lambda: x, lambda: y):
                                   if t.traced: x, y = t.enter()
                                   A
                               if t.traced: x, y = t.leave()

``x, y`` are the names that a round may bind. A ``for`` is the same, with ``t.more(...)`` as the test of a loop ``t``
over items and ``x = t.item()`` at the beginning of the body. Where it is known whether there is another round, the loop
goes on as the one it was made of. Else its body runs several times over until nothing new changes in it, and becomes
one op.
"""

from __future__ import annotations

import ast

from lmc.frontend.rewrite_binding import Statements
from lmc.frontend.rewrite_branches import BranchRewriter, may_leave
from lmc.frontend.rewrite_exits import BreakingFor
from lmc.frontend.scopes import names_bound_in


class LoopRewriter(BranchRewriter):
    """Rewrites ``while`` and ``for``."""

    def on_while(self, node: ast.While) -> ast.stmt | Statements:
        if not self.is_traceable(node):
            test = self.operator(node.test, "truth", self.visit(node.test))
            return ast.copy_location(ast.While(test, self.block(node.body), self.block(node.orelse)), node)
        test = self.visit(node.test)
        loop = self.construct(node)
        names = self._names(node.test, *node.body)
        begin = self.assign(loop, self.operator(node, "loop", *map(ast.Constant, names)))
        again = self.method(node.test, loop, "again", test, *self.readers(node, names))
        return [begin, *self._traced(node, loop, names, again, [])]

    def on_for(self, node: ast.For) -> ast.stmt | Statements:
        if not self.is_traceable(node):
            target = self.check_target(node.target)
            items = self.each(node.iter, self.visit(node.iter), target)
            return ast.copy_location(ast.For(target, items, self.block(node.body), self.block(node.orelse)), node)
        return self._over_items(node, [])

    def on_breaking_for(self, node: BreakingFor) -> Statements:
        return self._over_items(node, [ast.Name(node.flag, ast.Load())])

    def _over_items(self, node: ast.For, flag: list[ast.expr]) -> Statements:
        fresh = ast.Constant(isinstance(node.iter, ast.Call))
        items = self.visit(node.iter)
        loop = self.construct(node)
        names = self._names(node.target, *node.body)
        traceable = ast.Constant(self.is_traceable(node))
        begin = self.assign(loop, self.operator(node, "over", items, traceable, fresh, *map(ast.Constant, names)))
        goes_on = flag or [ast.Constant(True)]
        more = self.method(node.iter, loop, "more", *goes_on, *self.readers(node, names))
        item = self.method(node.target, loop, "item")
        return [begin, *self._traced(node, loop, names, more, self._bind(node.target, item, node))]

    def _traced(
        self, node: ast.For | ast.While, loop: ast.Name, names: list[str], test: ast.expr, first: Statements
    ) -> Statements:
        """The loop while ``test``; ``first`` are the statements that bind what it goes over."""
        with self.inside(loop):
            body = [*first, *self.ended_by(node, loop, node.body, self.block(node.body))]
        traced = self.at(node, ast.Attribute(loop, "traced", ast.Load()))
        entering = self.when(node, traced, [self.take(node, names, self.method(node, loop, "enter"))])
        leaving: Statements = [self.take(node, names, self.method(node, loop, "leave"))]
        if any(map(may_leave, node.body)):
            leaving.append(self.statement(self.leaving(node, "gone", loop)))
        rounds = ast.copy_location(ast.While(test, [entering, *body], []), node)
        return [rounds, self.when(node, traced, leaving), *self.block(node.orelse)]

    def _names(self, *parts: ast.AST) -> list[str]:
        return sorted(names_bound_in(parts) & self.scopes[-1].local)

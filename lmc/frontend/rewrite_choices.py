"""The source transform of expressions that choose: ``and``, ``or`` and conditional expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from lmc.frontend.rewrite import BaseRewriter, constant, is_temporary


class ChoiceRewriter(BaseRewriter):
    """Rewrites what evaluates one of two expressions."""

    def chain(self, node: ast.expr, values: list[ast.expr], kind: str) -> ast.expr:
        """``a and b and c`` (or ``or``) with the truth of each asked of the operators."""
        result = values[-1]
        for value in reversed(values[:-1]):
            result = self.short_circuit(node, value, result, kind)
        return result

    def short_circuit(self, node: ast.expr, left: ast.expr, right: ast.expr, kind: str) -> ast.expr:
        """``right if (t := left) else t``, or the other way round."""
        held = self.temporary(node)
        arms = (right, held) if kind == "and" else (held, right)
        return self._holding(node, held, left, lambda first: self.choose(node, first, *arms))

    def on_if_exp(self, node: ast.IfExp) -> ast.expr:
        return self.choose(node, self.visit(node.test), self.visit(node.body), self.visit(node.orelse))

    def choose(self, node: ast.expr, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.expr:
        """``then if test else otherwise``, both of which can be captured in the user's own frame.

        ``(t := _lmc_.decide(test), t.then() and t.first(then), t.otherwise() and t.second(otherwise), t.chosen)[-1]``.
        Names that an arm binds are handed over as for a statement. An arm that yields is left to Python, and so is one
        that binds names of the function around a comprehension.
        """
        names = sorted(_bound_by(then) | _bound_by(otherwise))
        if not self.branches or any(map(_yields, (then, otherwise))) or (names and not self._owns(names)):
            return self.at(node, ast.IfExp(self.operator(node, "truth", test), then, otherwise))
        branch = self.temporary(node)
        readers = self.readers(node, names)

        def parts(first: ast.expr) -> ast.expr:
            made = [first]
            for runs, takes, value, gives in (
                ("then", "first", then, "entered"),
                ("otherwise", "second", otherwise, "merged"),
            ):
                taken = self.method(node, branch, takes, value, *readers)
                made.append(ast.BoolOp(ast.And(), [self.method(node, branch, runs), taken]))
                given = [
                    ast.NamedExpr(ast.Name(name, ast.Store()), self.method(node, branch, gives, ast.Constant(index)))
                    for index, name in enumerate(names, 1)
                ]
                traced = ast.Attribute(branch, "traced", ast.Load())
                made += [ast.BoolOp(ast.And(), [traced, ast.Tuple(list(given), ast.Load())])] if given else []
            made.append(ast.Attribute(branch, "chosen", ast.Load()))
            last = ast.UnaryOp(ast.USub(), ast.Constant(1))
            return self.at(node, ast.Subscript(ast.Tuple(made, ast.Load()), last, ast.Load()))

        decided = self.operator(node, "decide", test, *(constant(name) for name in names), *readers)
        return self._holding(node, branch, decided, parts)

    def _owns(self, names: list[str]) -> bool:
        """Whether ``names`` belong to the function itself, in which this place is no part of a comprehension."""
        return not self.bound and not self.no_walrus and self.scopes[-1].local.issuperset(names)

    def readers(self, node: ast.AST, names: list[str]) -> list[ast.expr]:
        """Functions that read ``names``."""
        nothing = ast.arguments([], [], None, [], [], None, [])
        return [self.at(node, ast.Lambda(nothing, ast.Name(name, ast.Load()))) for name in names]

    def _holding(
        self, node: ast.expr, name: ast.Name, value: ast.expr, make: Callable[[ast.expr], ast.expr]
    ) -> ast.expr:
        """``make(first)``, which uses ``name``, ``first`` before anything else, as what ``value`` is.

        In a comprehension's iterable, where ``:=`` can't be, by a lambda.
        """
        if not self.no_walrus:
            return make(self.at(node, ast.NamedExpr(self.store(name), value)))
        parameters = ast.arguments([], [ast.arg(name.id)], None, [], [], None, [])
        return self.at(node, ast.Call(self.at(node, ast.Lambda(parameters, make(name))), [value], []))


def _yields(node: ast.expr) -> bool:
    """Whether evaluating a rewritten expression may leave the frame."""
    return any(isinstance(part, ast.Yield) for part in ast.walk(node))


def _bound_by(node: ast.expr) -> set[str]:
    """The names of the user's that a rewritten expression binds."""
    stack: list[ast.AST] = [node]
    found: set[str] = set()
    while stack:
        part = stack.pop()
        if isinstance(part, ast.NamedExpr) and not is_temporary(part.target):
            found.add(part.target.id)
        if not isinstance(part, ast.Lambda):
            stack.extend(ast.iter_child_nodes(part))
    return found

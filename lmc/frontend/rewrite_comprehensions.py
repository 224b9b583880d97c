"""The source transform of comprehensions and of what loops go over."""

from __future__ import annotations

import ast
from collections.abc import Callable

from lmc.frontend.rewrite import OPERATORS, constant
from lmc.frontend.rewrite_choices import ChoiceRewriter
from lmc.frontend.scopes import Comprehension, comprehension_names
from lmc.frontend.source.files import Unsupported

# What binds names outside of a comprehension, leaves it, or looks later at the variables that all its items share.
_KEPT_IN_COMPREHENSIONS = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.GeneratorExp)


class ComprehensionRewriter(ChoiceRewriter):
    """Rewrites comprehensions."""

    def on_list_comp(self, node: ast.ListComp) -> ast.expr:
        names = self._target_names(node) if self.branches else None
        if names is not None:
            return self._listed(node, names)
        return self._comprehension(node, lambda parts: ast.ListComp(self.visit(node.elt), parts))

    def _target_names(self, node: Comprehension) -> list[str] | None:
        """The names that an item is bound to, where the rest of ``node`` can be functions of them."""
        generator = node.generators[0]
        target = generator.target
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        inner = [walked for part in (*made, *generator.ifs) for walked in ast.walk(part)]
        plain = not any(isinstance(part, _KEPT_IN_COMPREHENSIONS) for part in inner)
        single = len(node.generators) == 1 and not generator.is_async
        if not (single and plain and len(names) == len(parts)):
            return None
        # Of names that stand there twice the last one counts.
        return [f"{OPERATORS}{at}" if name in names[at + 1 :] else name for at, name in enumerate(names)]

    def _listed(self, node: ast.ListComp, names: list[str]) -> ast.expr:
        """``_lmc_.listed(items, spec, lambda names: elt, lambda names: test)``."""
        return self.operator(node, "listed", *self._parts(node, node.elt, names))

    def _parts(self, node: Comprehension, elt: ast.expr, names: list[str]) -> list[ast.expr]:
        """Items, how one is taken apart, and functions of one: what is made of it, and the tests."""
        generator = node.generators[0]
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])

        def function(body: ast.expr) -> ast.expr:
            return self.visit(self.at(body, ast.Lambda(arguments, body)))

        items = self.visit(generator.iter)
        spec = constant(unpacking(generator.target))
        return [items, spec, function(elt), *map(function, generator.ifs)]

    def on_set_comp(self, node: ast.SetComp) -> ast.expr:
        names = self._target_names(node) if self.branches else None
        if names is not None:
            return self.operator(node, "set_of", *self._parts(node, node.elt, names))
        return self._comprehension(node, lambda parts: ast.SetComp(self.hashed(node.elt), parts))

    def on_generator_exp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._comprehension(node, lambda parts: ast.GeneratorExp(self.visit(node.elt), parts))

    def on_dict_comp(self, node: ast.DictComp) -> ast.expr:
        names = self._target_names(node) if self.branches else None
        if names is not None:
            pair = self.at(node, ast.Tuple([node.key, node.value], ast.Load()))
            return self.operator(node, "dict_of", *self._parts(node, pair, names))
        return self._comprehension(
            node, lambda parts: ast.DictComp(self.hashed(node.key), self.visit(node.value), parts)
        )

    def hashed(self, node: ast.expr) -> ast.expr:
        """A key of a dict or an item of a set, which Python itself hashes."""
        if isinstance(node, ast.Constant | ast.Starred):
            return self.visit(node)
        return self.operator(node, "hashed", self.visit(node))

    def _comprehension(self, node: Comprehension, make: Callable[[list[ast.comprehension]], ast.expr]) -> ast.expr:
        if any(generator.is_async for generator in node.generators):
            raise Unsupported("an async comprehension", node.lineno)
        # The first iterable belongs to the scope around; the others see the names bound before them.
        first = self._items(node.generators[0])
        self.bound.append(comprehension_names(node))
        parts: list[ast.comprehension] = []
        for index, generator in enumerate(node.generators):
            items = first if index == 0 else self._items(generator)
            tests = [self.operator(test, "truth", self.visit(test)) for test in generator.ifs]
            parts.append(ast.comprehension(self.check_target(generator.target), items, tests, 0))
        made = self.at(node, make(parts))
        self.bound.pop()
        return self.made(made)

    def _items(self, generator: ast.comprehension) -> ast.expr:
        self.no_walrus += 1
        items = self.visit(generator.iter)
        self.no_walrus -= 1
        return self.each(generator.iter, items, generator.target)

    def each(self, node: ast.expr, items: ast.expr, target: ast.expr) -> ast.expr:
        """What ``for target in items`` goes over: items that ``target`` can unpack."""
        spec = unpacking(target)
        if spec is None:
            return self.operator(node, "iterate", items)
        return self.operator(node, "each", items, constant(spec))

    def check_target(self, target: ast.expr) -> ast.expr:
        """A target of ``for`` or ``with``: names, or tuples of names."""
        for part in ast.walk(target):
            if isinstance(part, ast.Attribute | ast.Subscript):
                raise Unsupported("a loop or `with` that binds an attribute or an item", part.lineno)
            if isinstance(part, ast.Name) and not any(part.id in names for names in self.bound):
                self.check_store(part)
        return target


def unpacking(target: ast.expr) -> tuple[object, ...] | None:
    """How ``target`` takes a value apart: None for a name, else (items before a star, star, items after, nested)."""
    if not isinstance(target, ast.Tuple | ast.List):
        return None
    stars = [index for index, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    nested = tuple(unpacking(part.value if isinstance(part, ast.Starred) else part) for part in target.elts)
    return (len(target.elts), stars[0] if stars else None, nested)

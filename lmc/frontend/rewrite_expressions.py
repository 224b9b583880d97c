"""The source transform of expressions."""

from __future__ import annotations

import ast

from lmc.frontend.rewrite import constant
from lmc.frontend.rewrite_comprehensions import ComprehensionRewriter
from lmc.frontend.source.files import Unsupported

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is_",
    ast.IsNot: "is_not",
    ast.In: "contains",
    ast.NotIn: "not_contains",
}


# Python's own functions that take a generator and hand nothing of it on.
_CONSUMERS = frozenset({"sum", "min", "max", "sorted", "list", "tuple", "set", "frozenset", "dict", "any", "all"})


class ExpressionRewriter(ComprehensionRewriter):
    """Rewrites expressions."""

    # Operations

    def on_attribute(self, node: ast.Attribute) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            raise Unsupported("an attribute is bound by something other than an assignment", node.lineno)
        self.check_private(node)
        return self.operator(node, "attribute", self.visit(node.value), ast.Constant(node.attr))

    def on_subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            raise Unsupported("an item is bound by something other than an assignment", node.lineno)
        return self.operator(node, "subscript", self.visit(node.value), self.visit(node.slice))

    def on_slice(self, node: ast.Slice) -> ast.expr:
        parts = [
            ast.Constant(None) if part is None else self.visit(part) for part in (node.lower, node.upper, node.step)
        ]
        return self.operator(node, "slice", *parts)

    def on_bin_op(self, node: ast.BinOp) -> ast.expr:
        name = ast.Constant(_BINARY[type(node.op)])
        return self.operator(node, "binary", name, self.visit(node.left), self.visit(node.right))

    def on_unary_op(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self.operator(node, "not_", self.visit(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return self.operator(node, "unary", ast.Constant(_UNARY[type(node.op)]), self.visit(node.operand))

    def on_compare(self, node: ast.Compare) -> ast.expr:
        left = self.visit(node.left)
        links: list[ast.expr] = []
        for index, (op, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.visit(comparator)
            following: ast.expr = right
            if index < len(node.ops) - 1:
                if self.no_walrus:
                    raise Unsupported("a chained comparison where a comprehension gets its items", node.lineno)
                following = self.temporary(node)
                right = self.at(node, ast.NamedExpr(self.store(following), right))
            links.append(self.operator(node, "compare", ast.Constant(_COMPARE[type(op)]), left, right))
            left = following
        return self.chain(node, links, "and")

    def on_bool_op(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(value) for value in node.values]
        return self.chain(node, values, "and" if isinstance(node.op, ast.And) else "or")

    def on_call(self, node: ast.Call) -> ast.expr:
        consumed = self._consumed(node) if self.branches else None
        if consumed is not None:
            return consumed
        function = self.visit(node.func)
        if _joins_text(node):
            # What is joined is made before any of it is looked at: it may as well be a list.
            (items,) = node.args
            assert isinstance(items, ast.GeneratorExp)
            node.args = [ast.copy_location(ast.ListComp(items.elt, items.generators), items)]
        arguments = [self.visit(argument) for argument in node.args]
        keywords = [self.on_keyword(keyword) for keyword in node.keywords]
        fresh = tuple(freshness(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords)))
        if any(spec is not None for spec in fresh):
            function = self.operator(node, "fresh", function, constant(fresh))
        return self.at(node, ast.Call(self.helper(node, "call"), [function, *arguments], keywords))

    def _consumed(self, node: ast.Call) -> ast.expr | None:
        """``_lmc_.consumed(f, (items, spec, lambda names: elt, …), {…})`` for ``f(elt for … in items)``."""
        match node:
            case ast.Call(func=ast.Name(name), args=[ast.GeneratorExp() as items]) if name in _CONSUMERS:
                names = self._target_names(items)
                if names is None or any(keyword.arg is None for keyword in node.keywords):
                    return None
                function = self.visit(node.func)
                parts = self.at(node, ast.Tuple(self._parts(items, items.elt, names), ast.Load()))
                keys: list[ast.expr | None] = [constant(keyword.arg) for keyword in node.keywords]
                values = [self.visit(keyword.value) for keyword in node.keywords]
                return self.operator(node, "consumed", function, parts, self.at(node, ast.Dict(keys, values)))
            case _:
                return None

    def on_keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.visit(node.value)
        return self.at(node, ast.keyword(node.arg, value if node.arg else self.operator(node, "mapping", value)))

    def on_starred(self, node: ast.Starred) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)  # type: ignore[return-value] - a Starred stays one
        return self.at(node, ast.Starred(self.operator(node, "iterate", self.visit(node.value)), node.ctx))

    def on_dict(self, node: ast.Dict) -> ast.expr:
        values = [
            self.operator(value, "mapping", self.visit(value)) if key is None else self.visit(value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        keys = [None if key is None else self.hashed(key) for key in node.keys]
        return self.made(self.at(node, ast.Dict(keys, values)))

    def on_list(self, node: ast.List) -> ast.expr:
        parts = [self._spread(part) if isinstance(part, ast.Starred) else self.visit(part) for part in node.elts]
        return self.made(ast.copy_location(ast.List(parts, node.ctx), node))

    def _spread(self, node: ast.Starred) -> ast.expr:
        """``*items`` in a list that is made."""
        if not isinstance(node.ctx, ast.Load):
            return self.on_starred(node)
        return self.at(node, ast.Starred(self.operator(node, "spread", self.visit(node.value)), node.ctx))

    def on_set(self, node: ast.Set) -> ast.expr:
        return self.made(ast.copy_location(ast.Set([self.hashed(part) for part in node.elts]), node))

    def on_joined_str(self, node: ast.JoinedStr) -> ast.expr:
        return self.operator(node, "fstring", *(self.visit(part) for part in node.values))

    def on_formatted_value(self, node: ast.FormattedValue) -> ast.expr:
        value = self.visit(node.value)
        conversion = ast.Constant(chr(node.conversion) if node.conversion > 0 else "")
        spec = ast.Constant("") if node.format_spec is None else self.visit(node.format_spec)
        return self.operator(node, "formatted", value, conversion, spec)

    def on_named_expr(self, node: ast.NamedExpr) -> ast.expr:
        self.check_store(node.target)
        return self.at(node, ast.NamedExpr(node.target, self.visit(node.value)))

    # What is left to Python

    def on_await(self, node: ast.Await) -> ast.expr:
        raise Unsupported("await", node.lineno)

    def on_yield(self, node: ast.Yield) -> ast.expr:
        value = None if node.value is None else self.visit(node.value)
        return self.at(node, ast.Yield(value))

    def on_yield_from(self, node: ast.YieldFrom) -> ast.expr:
        raise Unsupported("yield from", node.lineno)


def freshness(node: ast.expr) -> tuple[object, ...] | None:
    """For a list, tuple, set or dict written right here, the same of its items: nothing else can refer to it."""
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            return tuple(freshness(part) for part in node.elts)
        case ast.Dict():
            return tuple(freshness(part) for part in node.values)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return ("*", freshness(node.elt))
        case ast.DictComp():
            return ("*", freshness(node.value))
        case _:
            return None


def _joins_text(node: ast.Call) -> bool:
    """Whether ``node`` is ``"text".join(... for ...)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[ast.GeneratorExp()]):
            return not node.keywords
        case _:
            return False

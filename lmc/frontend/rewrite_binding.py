"""The source transform of what binds, changes and deletes names, items and attributes."""

from __future__ import annotations

import ast

from lmc.frontend.rewrite import constant
from lmc.frontend.rewrite_comprehensions import unpacking
from lmc.frontend.rewrite_expressions import ExpressionRewriter
from lmc.frontend.source.files import Unsupported

Statements = list[ast.stmt]

_INPLACE: dict[type[ast.operator], str] = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.MatMult: "imatmul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitAnd: "iand",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
}


class BindingRewriter(ExpressionRewriter):
    """Rewrites assignments and ``del``."""

    def on_assign(self, node: ast.Assign) -> Statements:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self._bind(node.targets[0], value, node)
        held = self.temporary(node)
        statements: Statements = [self.assign(held, value)]
        for target in node.targets:
            statements += self._bind(target, held, node)
        return statements

    def on_ann_assign(self, node: ast.AnnAssign) -> Statements:
        if node.value is None:
            if isinstance(node.target, ast.Name):
                return [ast.copy_location(ast.AnnAssign(node.target, constant(None), None, node.simple), node)]
            raise Unsupported("an annotation of an attribute or item", node.lineno)
        return self._bind(node.target, self.visit(node.value), node)

    def on_aug_assign(self, node: ast.AugAssign) -> Statements:
        name = constant(_INPLACE[type(node.op)])
        target = node.target
        if isinstance(target, ast.Name):
            old = self.visit(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            return self._bind(target, self.operator(node, "inplace", name, old, self.visit(node.value)), node)
        owner = self.temporary(node)
        statements: Statements = [self.assign(owner, self.visit(target.value))]
        if isinstance(target, ast.Attribute):
            self.check_private(target)
            key: ast.expr = self.at(node, ast.Constant(target.attr))
            read, write = "attribute", "set_attribute"
        else:
            key = self.temporary(node)
            statements.append(self.assign(key, self.visit(target.slice)))
            read, write = "subscript", "set_subscript"
        old = self.operator(node, read, owner, key)
        new = self.operator(node, "inplace", name, old, self.visit(node.value))
        # The value first, as Python does; then the store.
        return [*statements, self.statement(self.operator(node, write, owner, key, new))]

    def on_delete(self, node: ast.Delete) -> Statements:
        statements: Statements = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.check_store(target)
                if self.may_be_unclear(target.id):
                    name = ast.copy_location(ast.Name(target.id, ast.Load()), target)
                    statements.append(self.statement(self.read(name)))
                statements.append(ast.copy_location(ast.Delete([target]), node))
            elif isinstance(target, ast.Subscript):
                call = self.operator(node, "delete_subscript", self.visit(target.value), self.visit(target.slice))
                statements.append(self.statement(call))
            elif isinstance(target, ast.Attribute):
                self.check_private(target)
                call = self.operator(node, "delete_attribute", self.visit(target.value), constant(target.attr))
                statements.append(self.statement(call))
            else:
                raise Unsupported("del of several things in brackets", node.lineno)
        return statements

    def _bind(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> Statements:
        """Statements that bind ``target`` to ``value``, which is evaluated once."""
        if isinstance(target, ast.Name):
            if self.writes_outside(target.id):
                value = self.operator(node, "write_outside", ast.Constant(target.id), value)
            elif target.id in self.scopes[-1].declared_nonlocal:
                value = self.operator(node, "outer_store", value, ast.Constant(target.id))
            return [ast.copy_location(ast.Assign([self.store(target)], value), node)]
        if isinstance(target, ast.Starred):
            return self._bind(target.value, value, node)
        if isinstance(target, ast.Subscript | ast.Attribute):
            held = self.temporary(node)
            owner = self.visit(target.value)
            if isinstance(target, ast.Subscript):
                store = self.operator(node, "set_subscript", owner, self.visit(target.slice), held)
            else:
                self.check_private(target)
                store = self.operator(node, "set_attribute", owner, ast.Constant(target.attr), held)
            return [self.assign(held, value), self.statement(store)]
        assert isinstance(target, ast.Tuple | ast.List)
        return self._bind_several(target, value, node)

    def _bind_several(self, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt) -> Statements:
        taken = self.operator(node, "unpack", value, constant(unpacking(target)))
        held = [self.temporary(node) for _ in target.elts]
        slots = [
            self.at(node, ast.Starred(self.store(name), ast.Store()))
            if isinstance(part, ast.Starred)
            else self.store(name)
            for name, part in zip(held, target.elts, strict=True)
        ]
        statements: Statements = [
            ast.copy_location(ast.Assign([self.at(node, ast.Tuple(list(slots), ast.Store()))], taken), node)
        ]
        for name, part in zip(held, target.elts, strict=True):
            value = self.made(name) if isinstance(part, ast.Starred) else name
            statements += self._bind(part, value, node)
        return statements

    def assign(self, name: ast.expr, value: ast.expr) -> ast.stmt:
        """``name = value``."""
        assert isinstance(name, ast.Name)
        return ast.copy_location(ast.Assign([self.store(name)], value), name)

    def statement(self, call: ast.expr) -> ast.stmt:
        """``call`` as a statement."""
        return ast.copy_location(ast.Expr(call), call)

    def check_store_name(self, name: str, node: ast.AST) -> None:
        """``check_store`` for a name that has no node of its own."""
        self.check_store(self.at(node, ast.Name(name, ast.Store())))

"""What the source transform is made of: names and their scopes, places in the source, calls of the operators.

The transform turns every operation into a call of ``lmc.frontend.operators``: ``a + b`` becomes
``_lmc_.binary("add", a, b)``, ``f(x)`` becomes ``_lmc_.call(f, x)``. On plain operands those do just what Python does,
in the same order; on symbolic ones they record ops. ``_lmc_`` is a parameter of the transformed function, so that
nested functions see it too and nothing is ambient.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from lmc.frontend.scopes import FunctionScope
from lmc.frontend.source.files import Unsupported

OPERATORS = "_lmc_"
RESULT = "_lmc_result"
BRANCH = "_lmc_if"
_TEMPORARY = "_lmc_t"
# Functions that look at the frame they are called from.
FRAME_FUNCTIONS = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "super", "__class__", "breakpoint"})
Node = TypeVar("Node", bound=ast.AST)


class Own(ast.expr):
    """A call of the operator ``name``, which no program writes itself: earlier steps of the transform put it there."""

    _fields = ("name", "arguments")

    def __init__(self, name: str = "", arguments: Sequence[ast.expr] = ()) -> None:
        super().__init__()
        self.name = name
        self.arguments = list(arguments)


class HandledRaise(ast.Raise):
    """A ``raise`` in the handler of the ``try`` that the variable ``held`` stands for. It runs when that is over."""

    held: str = ""


class BaseRewriter(ast.NodeTransformer):
    """A transformer with one method ``on_bin_op`` … for each kind of node that it rewrites."""

    def __init__(self, closure: frozenset[str], *, branches: bool = True, part: bool = False) -> None:
        self.closure = closure
        self.branches = branches  # whether both arms of a condition can be captured
        self.part = part  # whether the function is a part of another program
        self.scopes: list[FunctionScope] = []
        self.bound: list[set[str]] = []  # names that comprehensions around bind
        self.merged: list[set[str]] = []  # for each function: names that may be unclear behind a condition
        self.no_walrus = 0  # depth of comprehension iterables, where `:=` is not allowed
        self._temporaries = 0

    def visit(self, node: ast.AST) -> Any:
        """Rewrite ``node``: by its method, else part by part."""
        method = getattr(self, _method_name(type(node)), None)
        return self.generic_visit(node) if method is None else method(node)

    def on_own(self, node: Own) -> ast.expr:
        return self.operator(node, node.name, *map(self.visit, node.arguments))

    # Names

    def on_name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            self.check_store(node)
            return node
        if node.id in FRAME_FUNCTIONS and not self.is_local(node.id):
            raise Unsupported(f"{node.id}() looks at the running function itself", node.lineno)
        if self.is_local(node.id):
            return self.read(node) if self.may_be_unclear(node.id) else node
        reader = "read_closure" if node.id in self.closure and not self.is_global(node.id) else "read_global"
        return self.operator(node, reader, ast.Constant(node.id), node)

    def read(self, node: ast.Name) -> ast.expr:
        """A variable that may be unclear."""
        if node.id == RESULT:
            return self.operator(node, "result", node)
        here = node.id in self.scopes[-1].local and not self.bound
        what = repr(node.id) if here else f"the variable {node.id!r}"
        if node.id.startswith(RESULT):
            what = "whether a loop or a function goes on"
        return self.operator(node, "bound", node, ast.Constant(what))

    def is_local(self, name: str) -> bool:
        """Whether the function itself, or one between it and this place, binds ``name``."""
        if any(name in names for names in self.bound):
            return True
        for scope in reversed(self.scopes):
            if name in scope.declared_global:
                return False
            if name in scope.local:
                return True
        return False

    def may_be_unclear(self, name: str) -> bool:
        """Whether the function that binds ``name`` may leave it unclear behind a condition."""
        if any(name in names for names in self.bound):
            return False
        for scope, merged in zip(reversed(self.scopes), reversed(self.merged), strict=True):
            if name in scope.local:
                return name in merged
        return False

    def is_global(self, name: str) -> bool:
        """Whether this scope declares ``name`` global."""
        return bool(self.scopes) and name in self.scopes[-1].declared_global

    def writes_outside(self, name: str) -> bool:
        """Whether binding ``name`` here changes a variable that is not the jitted function's own."""
        scope = self.scopes[-1]
        if name in scope.declared_global:
            return True
        return name in scope.declared_nonlocal and not any(name in outer.local for outer in self.scopes[:-1])

    def check_store(self, node: ast.Name) -> None:
        """Refuse what binds a global or an outer variable other than by a plain assignment."""
        if self.scopes and (self.writes_outside(node.id) or node.id in self.scopes[-1].declared_nonlocal):
            raise Unsupported(f"{node.id!r} belongs to the module or an enclosing function", node.lineno)

    def check_private(self, node: ast.Attribute) -> None:
        """Refuse names that Python mangles inside classes."""
        if node.attr.startswith("__") and not node.attr.endswith("__"):
            raise Unsupported(f"the private name {node.attr!r}", node.lineno)

    # Making nodes

    def operator(self, node: ast.AST, name: str, *arguments: ast.expr) -> ast.expr:
        """``_lmc_.name(*arguments)`` at the place of ``node``."""
        return self.at(node, ast.Call(self.helper(node, name), list(arguments), []))

    def helper(self, node: ast.AST, name: str) -> ast.expr:
        """``_lmc_.name``."""
        return self.at(node, ast.Attribute(self.at(node, ast.Name(OPERATORS, ast.Load())), name, ast.Load()))

    def made(self, node: ast.expr) -> ast.expr:
        """``node``, which makes a list, dict, set or generator."""
        return self.operator(node, "made", node) if self.branches else node

    def temporary(self, node: ast.AST) -> ast.Name:
        """A name that nothing else has, to be read."""
        self._temporaries += 1
        return self.at(node, ast.Name(f"{_TEMPORARY}{self._temporaries}", ast.Load()))

    def method(self, node: ast.AST, owner: ast.Name, name: str, *arguments: ast.expr) -> ast.expr:
        """``owner.name(*arguments)``."""
        return self.at(node, ast.Call(ast.Attribute(owner, name, ast.Load()), list(arguments), []))

    def store(self, name: ast.Name) -> ast.Name:
        """The same name, to be bound."""
        return self.at(name, ast.Name(name.id, ast.Store()))

    def at(self, place: ast.AST, node: Node) -> Node:
        """``node`` with the line and column of ``place``, also for parts that have none.

        A part that has them is finished, so that what is in it is not looked at again.
        """
        parts: list[ast.AST] = [node]
        while parts:
            part = parts.pop()
            if "lineno" in part._attributes:
                if hasattr(part, "lineno"):
                    continue
                ast.copy_location(part, place)
            parts.extend(ast.iter_child_nodes(part))
        return node


@lru_cache(maxsize=256)
def _method_name(kind: type[ast.AST]) -> str:
    return "on_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def is_temporary(name: ast.Name) -> bool:
    """Whether it is a name that the transform made."""
    return name.id.startswith(_TEMPORARY)


def constant(value: object) -> ast.expr:
    """A constant node; nested tuples of constants are constants too."""
    return ast.Constant(value)  # type: ignore[arg-type]

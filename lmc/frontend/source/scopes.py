"""The local names of a function; every other name is read from a closure, the module or the builtins."""

from __future__ import annotations

import ast
from collections.abc import Iterable

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class FunctionScope:
    """The names of one function: ``local``, and those it declares ``global`` or ``nonlocal``."""

    def __init__(self, node: FunctionNode) -> None:
        self.declared_global: set[str] = set()
        self.declared_nonlocal: set[str] = set()
        self.is_generator = False
        self.local = {argument.arg for argument in _arguments(node.args)}
        body: Iterable[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
        for part in body:
            self.collect(part)
        self.local -= self.declared_global | self.declared_nonlocal

    def collect(self, root: ast.AST) -> None:
        """Take in what ``root`` binds."""
        stack = [(root, False)]  # node, whether it is in a comprehension
        while stack:
            node, inside = stack.pop()
            match node:
                case ast.Name(ctx=ast.Store() | ast.Del()) if not inside:
                    self.local.add(node.id)
                case ast.NamedExpr():
                    self.local.add(node.target.id)
                    stack.append((node.value, inside))
                    continue
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self.local.add(node.name)
                case ast.Import() | ast.ImportFrom():
                    self.local |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
                case ast.ExceptHandler() if node.name:
                    self.local.add(node.name)
                case ast.MatchAs() | ast.MatchStar() if node.name:
                    self.local.add(node.name)
                case ast.MatchMapping() if node.rest:
                    self.local.add(node.rest)
                case ast.Yield() | ast.YieldFrom():
                    self.is_generator = True
                case ast.Global():
                    self.declared_global |= set(node.names)
                case ast.Nonlocal():
                    self.declared_nonlocal |= set(node.names)
                case _:
                    pass
            if isinstance(node, _SCOPES):
                stack.extend((child, inside) for child in _outside(node))
            else:
                inner = inside or isinstance(node, _COMPREHENSIONS)
                stack.extend((child, inner) for child in ast.iter_child_nodes(node))


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    stars = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def _outside(node: ast.AST) -> list[ast.AST]:
    """The parts of a nested function or class that the enclosing scope evaluates."""
    found: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        found += [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        found += node.decorator_list
    if isinstance(node, ast.ClassDef):
        found += [*node.bases, *(keyword.value for keyword in node.keywords)]
    return found

"""Functions that are written in a class: private names, ``super()``, and what they do with their object."""

from __future__ import annotations

import ast

from lmc.frontend.rewrite import Own
from lmc.frontend.scopes import FunctionScope
from lmc.frontend.source.files import Unsupported

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def write_methods(node: ast.FunctionDef, class_name: str | None) -> None:
    """Spell out in ``node`` what Python works out from the class around it, in place.

    ``self.__x`` becomes ``self._Class__x``, ``super()`` the operator ``parent``.
    """
    if class_name is not None:
        _mangle(node, class_name.lstrip("_"))
    if class_name is not None and "super" not in FunctionScope(node).local:
        _Supers(node).generic_visit(node)


def _mangle(node: ast.FunctionDef, class_name: str) -> None:
    for part in ast.walk(node):
        match part:
            case ast.Attribute() if _is_private(part.attr):
                part.attr = f"_{class_name}{part.attr}"
            case ast.Name() if _is_private(part.id):
                part.id = f"_{class_name}{part.id}"
            case ast.arg() if _is_private(part.arg):
                part.arg = f"_{class_name}{part.arg}"
            case ast.keyword(arg=str(name)) if _is_private(name):
                part.arg = f"_{class_name}{name}"
            case ast.FunctionDef() if part is not node and _is_private(part.name):
                part.name = f"_{class_name}{part.name}"
            case _:
                pass


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


class _Supers(ast.NodeTransformer):
    def __init__(self, node: ast.FunctionDef) -> None:
        self._first = first_parameter(node)
        self._depth = 0

    def visit(self, node: ast.AST) -> ast.AST:
        inner = isinstance(node, _SCOPES)
        self._depth += inner
        self.generic_visit(node)
        self._depth -= inner
        match node:
            case ast.Call(func=ast.Name(id="super"), args=[], keywords=[]):
                if self._first is None or self._depth:
                    raise Unsupported("super() without arguments in a function inside", node.lineno)
                return ast.copy_location(
                    Own("parent", [ast.copy_location(ast.Name(self._first, ast.Load()), node)]), node
                )
            case ast.Call(func=ast.Name(id="super"), args=[kind, owner], keywords=[]):
                return ast.copy_location(Own("parent", [owner, kind]), node)
            case _:
                return node


def first_parameter(node: ast.FunctionDef) -> str | None:
    """The name of the first positional parameter."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if arguments else None


def uses_of_first(node: ast.FunctionDef) -> frozenset[str] | None:
    """The attributes of its first parameter that ``node`` reads other than to call them right there.

    None where it does anything else with that parameter than to read attributes of it: hand it on, bind it anew.
    """
    first = first_parameter(node)
    parts = list(ast.walk(node))
    reads = [part for part in parts if isinstance(part, ast.Attribute) and _reads(part, first)]
    names = [part for part in parts if isinstance(part, ast.Name) and part.id == first]
    scopes = [part for part in parts if isinstance(part, ast.arg) and part.arg == first]
    if len(names) != len(reads) or len(scopes) != 1:
        return None
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    return frozenset(part.attr for part in reads if id(part) not in called)


def _reads(node: ast.Attribute, name: str | None) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == name and isinstance(node.ctx, ast.Load)

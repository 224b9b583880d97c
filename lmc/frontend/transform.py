"""From a function object to its transformed twin: same name, lines, defaults and closure, one more first parameter."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

from lmc.frontend.breaks import Break
from lmc.frontend.exception_reads import looks_at_exceptions
from lmc.frontend.methods import uses_of_first, write_methods
from lmc.frontend.rewrite_exits import early_returns
from lmc.frontend.rewrite_statements import Rewriter
from lmc.frontend.scopes import rebound_names
from lmc.frontend.sites import Sites
from lmc.frontend.source.files import (
    Unsupported,
    check_same,
    class_around,
    definition_in,
    inner_codes,
    parse_file,
    quietly,
    source_of_file,
)
from lmc.frontend.truths import write_truths
from lmc.frontend.turns import warn_of_joined_answers
from lmc.ir.errors import Location

_REFUSED_FLAGS = {
    inspect.CO_GENERATOR: "is a generator",
    inspect.CO_COROUTINE: "is async",
    inspect.CO_ASYNC_GENERATOR: "is an async generator",
}
_NAME = "_lmc_function_"
_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, feature).compiler_flag for feature in __future__.all_feature_names)
)


@dataclass(frozen=True)
class Transformed:
    """A function whose first parameter takes the operators.

    ``codes`` are its code object and those of the functions in it, by id; ``rebound`` the names that some function of
    its file may bind anew in the module or in an enclosing function; ``first`` what it does with its first parameter
    (``uses_of_first``). ``sites`` says where its control flow stands.
    """

    function: Callable[..., Any]
    codes: dict[int, CodeType]
    rebound: frozenset[str]
    sites: Sites
    first: frozenset[str] | None = None


def transform(function: Callable[..., Any], *, part: bool = False) -> Transformed | Break:
    """Transform ``function``, or say why it stays plain Python. As a ``part`` of a program it has one ``return``."""
    return _transform(function, _Identity(getattr(function, "__code__", None)), part=part)


class _Identity:
    """An object as a key of a cache, which keeps it alive."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return type(other) is _Identity and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@lru_cache(maxsize=512)
def _transform(function: Callable[..., Any], _code: _Identity, *, part: bool) -> Transformed | Break:
    if not isinstance(function, FunctionType):
        return Break(None, f"{function!r} is no plain function", "decorate a function written with def")
    code = function.__code__
    here = Location(code.co_filename, code.co_firstlineno)
    for flag, what in _REFUSED_FLAGS.items():
        if code.co_flags & flag:
            return Break(here, f"{function.__name__} {what}", "write it as a plain function that returns its result")
    try:
        source = source_of_file(code)
        tree = parse_file(source, code.co_filename)
        node = definition_in(tree, code)
        if part and not early_returns(node.body):
            return transform(function)
        check_same(source, node, code)
        warn_of_joined_answers(node, function)
        first = uses_of_first(node)
        made = _rewritten(node, function, class_name=class_around(tree, node), part=part)
    except Unsupported as reason:
        return Break(
            Location(code.co_filename, reason.line or code.co_firstlineno),
            f"{function.__name__} can't be transformed: {reason.what}",
            "nothing has to change: it runs eagerly; to have it compiled, move this into a function of its own",
        )
    cells = _cells(function)
    twin = FunctionType(
        made,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in made.co_freevars),
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__qualname__ = function.__qualname__
    twin.__module__ = function.__module__
    codes = {id(code): code for code in (made, *inner_codes(made))}
    return Transformed(twin, codes, rebound_names(tree), Sites.of(node, code.co_filename), first)


def _rewritten(node: ast.FunctionDef, function: FunctionType, *, class_name: str | None, part: bool) -> CodeType:
    """The code of the transformed function; where conditions stand too deep in it for Python, with plain ones."""
    code = function.__code__
    closure = frozenset(code.co_freevars)

    def looks(name: str) -> bool:
        cell = _cells(function).get(name)
        try:
            return looks_at_exceptions(function.__globals__.get(name) if cell is None else cell.cell_contents)
        except ValueError:  # a name that is not bound yet
            return False

    def copied() -> ast.FunctionDef:
        made = _copy(node)
        write_methods(made, class_name)
        write_truths(made)
        return made

    try:
        return _compile(Rewriter(closure, part=part).function(copied(), looks), code)
    except Unsupported as reason:
        if not reason.too_deep:
            raise
        return _compile(Rewriter(closure, branches=False).function(copied(), looks), code)


def _cells(function: FunctionType) -> dict[str, CellType]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def codes_of(code: CodeType) -> frozenset[int]:
    """Ids of a code object and of those nested in it."""
    return frozenset((id(code), *(id(inner) for inner in inner_codes(code))))


def _copy(node: ast.FunctionDef) -> ast.FunctionDef:
    """A deep copy without decorators (the tree is shared by all functions of a file)."""
    copied = _copy_node(node)
    assert isinstance(copied, ast.FunctionDef)
    copied.decorator_list = []
    return copied


def _copy_node(node: ast.AST) -> ast.AST:
    fields = {
        name: [_copy_node(part) if isinstance(part, ast.AST) else part for part in value]
        if isinstance(value, list)
        else _copy_node(value)
        if isinstance(value, ast.AST)
        else value
        for name, value in ast.iter_fields(node)
    }
    return ast.copy_location(type(node)(**fields), node)


def _compile(node: ast.FunctionDef, code: CodeType) -> CodeType:
    """The code of ``node`` as a function nested in one that has the names of the original's closure.

    It is compiled under a name of lmc's own: under its own name it would be a variable of that outer function.
    """
    node.name = _NAME
    names = [ast.copy_location(ast.arg(name), node) for name in code.co_freevars]
    outer = ast.FunctionDef("_lmc_closure_", ast.arguments([], names, None, [], [], None, []), [node], [], None, None)
    module = ast.Module([ast.copy_location(outer, node)], [])
    for part in ast.walk(module):
        # 3.12 and later want the (empty) list of type parameters of every definition.
        if isinstance(part, ast.FunctionDef) and "type_params" in part._fields and not hasattr(part, "type_params"):
            part.type_params = []  # type: ignore[attr-defined]
    try:
        with quietly():
            compiled = compile(module, code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        what = f"Python can't compile the transformed function ({error})"
        raise Unsupported(what, node.lineno, too_deep="nested" in str(error)) from None
    found = next(inner for inner in inner_codes(compiled) if inner.co_name == _NAME)
    return _renamed(found.replace(co_name=code.co_name), found.co_qualname, code.co_qualname)


def _renamed(code: CodeType, old: str, new: str) -> CodeType:
    """``code`` and the functions in it with the qualified names that the original has (messages show them)."""
    inner = tuple(_renamed(entry, old, new) if isinstance(entry, CodeType) else entry for entry in code.co_consts)
    return code.replace(co_consts=inner, co_qualname=new + code.co_qualname.removeprefix(old))

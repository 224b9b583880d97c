"""From a code object to its definition in the source, checked to be what runs."""

from __future__ import annotations

import ast
import linecache
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any


class Unsupported(Exception):  # noqa: N818 - names code that can't be captured, and is always caught
    """A function is left to Python: ``what`` it is or uses, at ``line`` (0: where it begins)."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def source_of_file(code: CodeType, namespace: dict[str, Any]) -> str:
    """The source of the file that ``code`` was loaded from, a module of that namespace. Raises ``Unsupported``."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, namespace)
    if not lines:
        raise Unsupported("Python has no source for it (define it in a file or a notebook cell)", 0)
    return "".join(lines)


@lru_cache(maxsize=64)
def parse_file(source: str, filename: str) -> ast.Module:
    """The tree of a file, once for each source. Raises ``Unsupported``."""
    try:
        with quietly():
            return ast.parse(source, filename)
    except SyntaxError as error:
        raise Unsupported("its file changed since it was loaded, and no longer parses", error.lineno or 0) from None


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """An index of the functions in a tree, made in one walk.

    ``functions`` by name and first line, ``lambdas`` by line. ``classes`` are the names of the classes in which
    functions and lambdas are written, however deep in them. ``rebound`` are the names that some function of the file
    may bind anew in its module or in an enclosing function.
    """

    functions: Mapping[tuple[str, int], ast.FunctionDef]
    lambdas: Mapping[int, Sequence[ast.Lambda]]
    classes: Mapping[ast.AST, str]
    rebound: frozenset[str]


@lru_cache(maxsize=64)
def index_of(tree: ast.Module) -> Index:
    """The index of a tree, once for each tree."""
    functions: dict[tuple[str, int], ast.FunctionDef] = {}
    lambdas: dict[int, list[ast.Lambda]] = {}
    classes: dict[ast.AST, str] = {}
    rebound: set[str] = set()
    waiting: deque[tuple[ast.AST, str | None]] = deque([(tree, None)])
    while waiting:
        node, around = waiting.popleft()
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            functions.setdefault((node.name, first), node)
        elif isinstance(node, ast.Lambda):
            lambdas.setdefault(node.lineno, []).append(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            rebound.update(node.names)
        if around is not None and isinstance(node, (ast.FunctionDef, ast.Lambda)):
            classes[node] = around
        inner = node.name if isinstance(node, ast.ClassDef) else around
        waiting.extend([(child, inner) for child in ast.iter_child_nodes(node)])
    return Index(functions, lambdas, classes, frozenset(rebound))


def definition_in(tree: ast.Module, code: CodeType) -> ast.FunctionDef:
    """The definition that ``code`` was compiled from."""
    found = index_of(tree).functions.get((code.co_name, code.co_firstlineno))
    if found is not None:
        return found
    what = "it is a lambda" if code.co_name == "<lambda>" else "its source is not where Python says it is"
    raise Unsupported(what, code.co_firstlineno)


def check_same(source: str, node: ast.FunctionDef, code: CodeType) -> None:
    """Refuse a source that is not what runs, as after an edit of a loaded file.

    Functions with ``assert`` are compared by their names only: test runners rewrite the assertions.
    """
    asserts = any(isinstance(part, ast.Assert) for part in ast.walk(node))
    for compiled in _codes_of(source, code.co_filename):
        if (compiled.co_name, compiled.co_firstlineno) != (code.co_name, code.co_firstlineno):
            continue
        same = compiled.co_varnames[: compiled.co_argcount] == code.co_varnames[: code.co_argcount]
        if asserts:
            same = same and set(compiled.co_names) <= {*code.co_names, "AssertionError"}
        else:
            same = same and compiled.co_code == code.co_code and _constants(compiled) == _constants(code)
        if same:
            return
    raise Unsupported("its file changed since it was loaded", code.co_firstlineno)


@lru_cache(maxsize=64)
def _codes_of(source: str, filename: str) -> tuple[CodeType, ...]:
    """Every function of a file, compiled anew."""
    with quietly():
        return tuple(inner_codes(compile(parse_file(source, filename), filename, "exec", dont_inherit=True)))


def _constants(code: CodeType) -> list[Any]:
    return [_constant(entry) for entry in code.co_consts]


def _constant(entry: Any) -> Any:
    """``entry`` to the bit; items of sets in one order, which those of a loaded file do not have."""
    if isinstance(entry, CodeType):
        return _constants(entry)
    if isinstance(entry, tuple):
        return tuple(map(_constant, entry))
    return sorted(map(repr, entry)) if isinstance(entry, frozenset) else repr(entry)


@contextmanager
def quietly() -> Generator[None]:
    """Without the warnings that Python gave when it compiled the file itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def inner_codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects nested in ``code``, outer before inner."""
    for entry in code.co_consts:
        if isinstance(entry, CodeType):
            yield entry
            yield from inner_codes(entry)

"""The part of a file that a program reaches by names: a script that also starts the program may change elsewhere."""

from __future__ import annotations

import ast
import hashlib
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OF_LMC = "jit"


@dataclass(frozen=True)
class _Statement:
    """A statement at the top level of a file. ``defines``: the name of its function or class."""

    source: str
    bound: frozenset[str]
    loaded: frozenset[str]
    defines: str | None
    binds_any: bool


def reached_digest(text: str, name: str) -> str | None:
    """Return a digest of the definition of ``name`` in a file, and of all top-level statements that it needs.

    A statement is needed if it binds a name that a needed one loads. Of ``name`` only definitions count: a later
    ``judge = judge.on(…)`` has other options, which are compared by themselves, as are those of ``@lmc.jit(…)``.
    None: the file is no Python source, or defines no such name at its top level.
    """
    try:
        statements = [_read(text, each) for each in ast.parse(text).body]
    except (SyntaxError, ValueError, RecursionError):
        return None
    needed = {number for number, each in enumerate(statements) if each.defines == name or each.binds_any}
    if not any(statements[number].defines == name for number in needed):
        return None
    before: set[int] = set()
    while needed != before:
        before = set(needed)
        loaded = {each for number in needed for each in statements[number].loaded} - {name}
        needed |= {number for number, each in enumerate(statements) if loaded & each.bound and name not in each.bound}
    digest = hashlib.sha256()
    for number in sorted(needed):
        digest.update(statements[number].source.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _read(text: str, statement: ast.stmt) -> _Statement:
    parts: list[ast.AST] = [statement]
    if isinstance(statement, _DEFINITIONS):  # without the decorator that makes it a program
        parts = [*(each for each in statement.decorator_list if not _makes_program(each)), statement]
    source = "\n".join(ast.get_source_segment(text, each) or "" for each in parts)
    table = symtable.symtable(source, "<program>", "exec")
    bound = {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
    loaded = {each.get_name() for each in table.get_symbols() if each.is_referenced()}
    loaded |= {each.get_name() for inner in _inner(table) for each in inner.get_symbols() if each.is_global()}
    return _Statement(
        source,
        frozenset(bound | set(_changed(statement))),
        frozenset(loaded),
        statement.name if isinstance(statement, _DEFINITIONS) else None,
        isinstance(statement, ast.ImportFrom) and any(each.name == "*" for each in statement.names),
    )


def _inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inner(child)


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of objects that a statement changes: ``CHOICES[0] = …``."""
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
        for target in ast.walk(statement):
            if isinstance(target, ast.Attribute | ast.Subscript) and not isinstance(target.ctx, ast.Load):
                yield from (each.id for each in ast.walk(target.value) if isinstance(each, ast.Name))


def _makes_program(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _OF_LMC in (getattr(called, "attr", None), getattr(called, "id", None))

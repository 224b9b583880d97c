"""Liveness of names: at the head of each loop, before and behind each statement.

Backward liveness over the AST (Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.2.5). Names that nested functions
read are always live. A name that is not live at the head of a loop need not be carried from round to round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

Names = frozenset[str]
Live = tuple[Mapping[int, Names], Mapping[int, Names], Mapping[int, Names]]
_NONE: Names = frozenset()
CONSUMING: Names = frozenset({"all", "any", "dict", "list", "max", "min", "next", "set", "sorted", "sum", "tuple"})
"""Python's own functions behind whose call nothing asks a generator expression in it for another item."""


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """The names in ``node`` that belong to the function around it, not to a comprehension."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        first, *_ = node.generators
        targets = [name for each in node.generators for name in names_in(each.target)]
        own = {name.id for name in targets if isinstance(name.ctx, ast.Store)}
        yield from names_in(first.iter)
        yield from (name for part in ast.iter_child_nodes(node) for name in names_in(part) if name.id not in own)
    else:
        for part in ast.iter_child_nodes(node):
            yield from names_in(part)


def live_names(node: ast.FunctionDef, builtins: Names = CONSUMING) -> Live:
    """By the id of its node: names that are live at the head of each loop, behind each statement, and before it.

    ``builtins`` are those of ``CONSUMING`` that mean Python's own functions in it.
    """
    return _Liveness(_read_by_nested(node, builtins)).of(node.body)


class _Liveness:
    def __init__(self, always: Names) -> None:
        self._always = always
        self._heads: dict[int, Names] = {}
        self._behind: dict[int, Names] = {}
        self._before: dict[int, Names] = {}
        self._loops: list[tuple[Names, Names]] = []  # live behind and at the head of the loops around
        self._handlers: list[Names] = []  # live in the handlers around, which any statement may reach

    def of(self, body: Sequence[ast.stmt]) -> Live:
        self._block(body, _NONE)
        tables = (self._heads, self._behind, self._before)
        heads, behind, before = [{key: names | self._always for key, names in each.items()} for each in tables]
        return heads, behind, before

    def _block(self, body: Sequence[ast.stmt], after: Names) -> Names:
        live = after
        for statement in reversed(body):
            self._behind[id(statement)] = self._behind.get(id(statement), _NONE).union(live, *self._handlers)
            live = self._statement(statement, live)
            for names in self._handlers:
                live |= names
            self._before[id(statement)] = self._before.get(id(statement), _NONE) | live
        return live

    def _statement(self, node: ast.stmt, after: Names) -> Names:
        match node:
            case ast.Return() | ast.Raise():
                return _reads([node])
            case ast.Break():
                return self._loops[-1][0]
            case ast.Continue():
                return self._loops[-1][1]
            case ast.If():
                return _reads([node.test]) | self._block(node.body, after) | self._block(node.orelse, after)
            case ast.For() | ast.While():
                return self._loop(node, after)
            case ast.Try():
                return self._try(node, after)
            case ast.With():
                return _reads(node.items) | self._block(node.body, after) | after
            case ast.Match():
                arms = [self._block(case.body, after) | _reads([case]) for case in node.cases]
                return _reads([node.subject]).union(after, *arms)
            case ast.FunctionDef():
                return (after - {node.name}) | _reads([node])
            case _:
                return (after - _certainly_bound(node)) | _reads([node])

    def _loop(self, node: ast.For | ast.While, after: Names) -> Names:
        bound = _certainly_bound_by(node.target) if isinstance(node, ast.For) else _NONE
        test = _reads([node.target]) if isinstance(node, ast.For) else _reads([node.test])
        behind = self._block(node.orelse, after)
        head = behind | test
        while True:
            self._loops.append((after, head))
            body = self._block(node.body, head)
            self._loops.pop()
            found = head | (body - bound)
            if found == head:
                break
            head = found
        self._heads[id(node)] = head | after  # a `break` leads there
        return head | _reads([node.iter]) if isinstance(node, ast.For) else head

    def _try(self, node: ast.Try, after: Names) -> Names:
        final = self._block(node.finalbody, after) | (after if node.finalbody else _NONE)
        behind = final if node.finalbody else after
        leaving = final if node.finalbody else _NONE
        self._handlers.append(leaving)
        handlers = _NONE
        for handler in node.handlers:
            handlers |= self._block(handler.body, behind) | _reads([] if handler.type is None else [handler.type])
        otherwise = self._block(node.orelse, behind)
        self._handlers[-1] = reached = handlers | leaving
        body = self._block(node.body, otherwise)
        self._handlers.pop()
        return body | reached


def _read_by_nested(node: ast.FunctionDef, builtins: Names) -> Names:
    """Names that functions, comprehensions and classes inside of ``node`` use, whenever they run."""
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and part.args]
    used_up = {id(call.args[0]) for call in calls if isinstance(call.func, ast.Name) and call.func.id in builtins}
    inner = [part for part in ast.walk(node) if isinstance(part, nested) and part is not node]
    inner = [part for part in inner if not isinstance(part, ast.GeneratorExp) or id(part) not in used_up]
    return frozenset(part.id for each in inner for part in names_in(each)) | frozenset(
        name for part in ast.walk(node) if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names
    )


def _reads(nodes: Iterable[ast.AST]) -> Names:
    """Names that are read somewhere in ``nodes``; deleting one, or changing it in place, reads it."""
    changed = [part.target for node in nodes for part in ast.walk(node) if isinstance(part, ast.AugAssign)]
    read = [part for node in nodes for part in names_in(node) if not isinstance(part.ctx, ast.Store)]
    return frozenset(part.id for part in (*read, *changed) if isinstance(part, ast.Name))


def _certainly_bound(node: ast.stmt) -> Names:
    if isinstance(node, ast.Assign):
        return _NONE.union(*map(_certainly_bound_by, node.targets))
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return _certainly_bound_by(node.target)
    return _NONE


def _certainly_bound_by(target: ast.expr) -> Names:
    if isinstance(target, ast.Name):
        return frozenset({target.id})
    if isinstance(target, ast.Starred):
        return _certainly_bound_by(target.value)
    return _NONE.union(*map(_certainly_bound_by, target.elts)) if isinstance(target, ast.Tuple | ast.List) else _NONE

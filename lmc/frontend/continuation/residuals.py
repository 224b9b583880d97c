"""The rest of a function from a statement on, compiled from its AST along the way to that statement.

Each construct around the statement has one rule. The code keeps file, lines and names of the function. Names that begin
with ``@`` are those of the continuation.
"""

from __future__ import annotations
import __future__

import ast
import copy
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lmc.frontend.source.files import inner_codes, quietly
from lmc.frontend.source.functions import Definition
from lmc.frontend.source.places import Place

ENTER: Any = object()
"""The first item of a loop that is entered in the middle of a round."""
CALL = "@call"
"""Gives what the call gives that is under way."""
REST = "@rest"
_FLAGS = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


@dataclass(frozen=True)
class Residual:
    """``code`` takes ``parameters`` by position; its free names are variables of the continuation's."""

    code: CodeType
    parameters: tuple[str, ...]


class Rounds:
    """The rounds of a ``for`` that is entered in the middle of one."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items
        self._entered = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._entered:
            self._entered = True
            return ENTER
        return next(self._items)


class Entered:
    """A context manager that was entered before."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._leave = type(manager).__exit__

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> Any:
        return self._leave(self._manager, *error)


def residual_of(
    definition: Definition, place: Place, names: Sequence[str], variables: Sequence[str], given: Sequence[str]
) -> Residual:
    """Compile the rest of a function.

    ``names`` are local names that are handed over, ``variables`` those that it shares with other functions, ``given``
    what the constructs around hand over.
    """
    node = definition.node
    assert isinstance(node, ast.FunctionDef)
    body = _Rest(frozenset(given)).block(_without_declarations(node), place)
    parameters = (*names, *given)
    local = sorted(name for name in definition.scope.local if definition.mangled(name) not in variables)
    prologue: list[ast.stmt] = []
    if local:  # a name that nothing binds any more stays a local one
        unbound = ast.Assign([_name(name, store=True) for name in local], ast.Constant(None))
        prologue.append(ast.If(ast.Constant(False), [unbound], []))
    if definition.scope.declared_global:
        prologue.append(ast.Global(sorted(definition.scope.declared_global)))
    if variables:
        prologue.append(ast.Nonlocal([*variables]))
    rest = ast.FunctionDef(REST, _arguments(parameters), [*prologue, *body], [])
    outer = ast.FunctionDef("@outer", _arguments(variables), [rest], [])
    whole: list[ast.stmt] = [outer]
    if definition.class_name is not None:
        whole = [ast.ClassDef(definition.class_name, [], [], whole, [])]
    module = ast.Module(whole, [])
    for made in (rest, outer, *whole, *prologue):
        ast.copy_location(made, node)
    ast.fix_missing_locations(module)
    with quietly():
        flags = definition.code.co_flags & _FLAGS
        compiled = compile(module, definition.file, "exec", flags=flags, dont_inherit=True)
    around = next(code for code in inner_codes(compiled) if code.co_name == "@outer")
    code = next(code for code in inner_codes(around) if code.co_name == REST)
    own = definition.code
    code = _requalified(code, code.co_qualname, own.co_qualname)
    return Residual(code.replace(co_name=own.co_name), parameters)


def _requalified(code: CodeType, old: str, new: str) -> CodeType:
    """Return ``code`` where functions and classes in it are named as in the user's function."""

    def change(constant: Any) -> Any:
        if isinstance(constant, CodeType):
            return _requalified(constant, old, new)
        # The body of a class assigns ``__qualname__``.
        return new + constant[len(old) :] if isinstance(constant, str) and constant.startswith(old) else constant

    constants = tuple(map(change, code.co_consts))
    return code.replace(co_consts=constants, co_qualname=change(code.co_qualname))


def _arguments(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


class _Undeclared(ast.NodeTransformer):
    """Drops declarations of a function, which stand at the beginning of the rest, and annotations of its names."""

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        made = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(made, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node


def _without_declarations(node: ast.FunctionDef) -> list[ast.stmt]:
    first = (*node.args.posonlyargs, *node.args.args)
    supers = [part for part in _own_parts(node) if _is_super(part)]
    declares = any(isinstance(part, ast.Global | ast.Nonlocal | ast.AnnAssign) for part in ast.walk(node))
    if not supers and not declares:
        return node.body
    made = copy.deepcopy(node)
    for part in _own_parts(made):
        if _is_super(part) and first:
            assert isinstance(part, ast.Call)
            part.args = [ast.copy_location(ast.Name(name, ast.Load()), part) for name in ("__class__", first[0].arg)]
    body = ast.Module(made.body, [])
    return _Undeclared().visit(body).body


def _own_parts(node: ast.AST) -> Generator[ast.AST]:
    """Yield the nodes of a function, but not those of functions and classes in it."""
    for part in ast.iter_child_nodes(node):
        yield part
        if not isinstance(part, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own_parts(part)


def _is_super(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "super" and not part.args


class _Rest:
    """Builds the statements that are left.

    ``given`` are the names that are handed over. With ``CALL`` the innermost statement waits for a call under way.
    """

    def __init__(self, given: frozenset[str]) -> None:
        self.given = given
        self._depth = 0

    def block(self, body: Sequence[ast.stmt], place: Place) -> list[ast.stmt]:
        """The rest of a block, from the statement at ``place`` on."""
        index, *rest = place
        assert isinstance(index, int)
        node = body[index]
        first = [self._called(node) if CALL in self.given else node] if not rest else self._entered(node, tuple(rest))
        return [*first, *body[index + 1 :]]

    def _called(self, node: ast.stmt) -> ast.stmt:
        """A statement about a call, with what that gives in its place."""
        made = copy.copy(node)
        assert isinstance(made, ast.Expr | ast.Assign | ast.Return)
        assert made.value is not None
        made.value = _located(made.value, ast.Call(_name(CALL), [], []))
        return made

    def _entered(self, node: ast.stmt, place: Place) -> list[ast.stmt]:
        return [_located(node, made) for made in _RULES[type(node)](self, node, place)]

    def named(self) -> str:
        """The depth of the construct that is entered next, among those that hand something over."""
        self._depth += 1
        return str(self._depth - 1)


def _name(name: str, *, store: bool = False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _located(node: ast.AST, made: Any) -> Any:
    """``made`` with the line of ``node`` where it has none: statements of the user's keep theirs."""
    for part in ast.walk(made):
        if isinstance(part, ast.expr | ast.stmt | ast.excepthandler) and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made


def _if(rest: _Rest, node: ast.If, place: Place) -> list[ast.stmt]:
    return rest.block(getattr(node, str(place[0])), place[1:])


def _match(rest: _Rest, node: ast.Match, place: Place) -> list[ast.stmt]:
    _cases, number, _body, *inner = place
    assert isinstance(number, int)
    return rest.block(node.cases[number].body, tuple(inner))


def _for(rest: _Rest, node: ast.For, place: Place) -> list[ast.stmt]:
    number = rest.named()
    inner = rest.block(getattr(node, str(place[0])), place[1:])
    if place[0] == "orelse":
        return inner
    item = f"@item{number}"
    target = _located(node.target, ast.Assign([node.target], _name(item)))
    entered = ast.Compare(_name(item), [ast.Is()], [_name(f"@enter{number}")])
    body = ast.If(entered, inner, [target, *node.body])
    return [ast.For(_name(item, store=True), _name(f"@rounds{number}"), [body], node.orelse)]


def _while(rest: _Rest, node: ast.While, place: Place) -> list[ast.stmt]:
    number = rest.named()
    inner = rest.block(getattr(node, str(place[0])), place[1:])
    if place[0] == "orelse":
        return inner
    enter = f"@enter{number}"
    begun = ast.Assign([_name(enter, store=True)], ast.Constant(False))
    body = ast.If(_name(enter), [begun, *inner], node.body)
    return [ast.While(ast.BoolOp(ast.Or(), [_name(enter), node.test]), [body], node.orelse)]


def _try(rest: _Rest, node: ast.Try, place: Place) -> list[ast.stmt]:
    number = rest.named()
    block = place[0]
    if block == "handlers":
        index = place[1]
        assert isinstance(index, int)
        handler = node.handlers[index]
        inner: list[ast.stmt] = rest.block(handler.body, place[3:])
        if handler.name is not None:
            unbound: list[ast.stmt] = [
                ast.Assign([_name(handler.name, store=True)], ast.Constant(None)),
                ast.Delete([ast.Name(handler.name, ast.Del())]),
            ]
            inner = [ast.Try(inner, [], [], unbound)]
        again = ast.Raise(_name(f"@error{number}"))
        caught = ast.ExceptHandler(_name(f"@every{number}"), None, inner)
        return [ast.Try([again], [caught], [], node.finalbody)]
    inner = rest.block(getattr(node, str(block)), place[1:])
    if block == "body":
        return [ast.Try(inner, node.handlers, node.orelse, node.finalbody)]
    if block == "orelse":
        return [ast.Try(inner, [], [], node.finalbody)] if node.finalbody else inner
    return [ast.Try(_pending(rest, number), [], [], inner)]


def _pending(rest: _Rest, number: str) -> list[ast.stmt]:
    """Return how a block was left whose ``finally`` runs: it is left so again."""
    actions: dict[str, ast.stmt] = {
        "return": ast.Return(_name(f"@return{number}")),
        "raise": ast.Raise(_name(f"@raise{number}")),
        "break": ast.Break(),
        "continue": ast.Continue(),
    }
    found: list[ast.stmt] = [ast.Pass()]
    for kind, action in actions.items():
        if f"@{kind}{number}" in rest.given:
            test = ast.Compare(_name(f"@left{number}"), [ast.Eq()], [ast.Constant(kind)])
            found.append(ast.If(test, [action], []))
    return found


def _with(rest: _Rest, node: ast.With, place: Place) -> list[ast.stmt]:
    number = rest.named()
    inner = rest.block(node.body, place[1:])
    items = [ast.withitem(_name(f"@manager{index}_{number}")) for index in range(len(node.items))]
    return [ast.With(items, inner)]


_RULES: dict[type[ast.stmt], Callable[[_Rest, Any, Place], list[ast.stmt]]] = {
    ast.If: _if,
    ast.Match: _match,
    ast.For: _for,
    ast.While: _while,
    ast.Try: _try,
    ast.With: _with,
}

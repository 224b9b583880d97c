"""``try`` around conversions written as a condition, both ways of which can then be captured.

    try:                                 held = _lmc_.attempt()
        x = int(text) + 1                try: _lmc_.convert(held, kinds, int, text)
    except ValueError: A                 except ValueError: _lmc_.caught(held, 0)
                                         if _lmc_.passed(held): x = _lmc_.converted(held) + 1
                                         else: A

Where the text is known, this is the ``try`` it was made of. Else nothing is converted yet: whether the text is a number
becomes a condition, and the first handler that takes a ``ValueError`` the other way. What stands behind the conversion
is tried in the same way again. What a handler raises is told which exception it handles, and so is the name that it has
for that. A ``try`` whose handlers call what may look at the exception unseen stays.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from itertools import count

from lmc.frontend.exception_reads import asks_for_exceptions
from lmc.frontend.rewrite import HandledRaise, Node, Own
from lmc.frontend.rewrite_exits import Statements
from lmc.frontend.scopes import HELD, names_bound_in
from lmc.frontend.tried_conversions import first_conversion

# Handlers are written once for each conversion of a block, so there may not be too many of both.
_MAX_CONVERSIONS = 3
_MAX_NODES = 400
_ENDS = (ast.Return, ast.Break, ast.Continue)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.GeneratorExp)


def write_tries(function: ast.FunctionDef, looks: Callable[[str], bool]) -> None:
    """Write each ``try`` in ``function``, and in the functions in it, as conditions where that is possible.

    ``looks`` says whether what has that name outside of it may ask for the exception that is being handled.
    """
    if not any(asks_for_exceptions(part) for part in ast.walk(function)):
        _Writer(looks).generic_visit(function)


class _Writer(ast.NodeTransformer):
    def __init__(self, looks: Callable[[str], bool]) -> None:
        self._looks = looks
        self._numbers = count(1)

    def visit(self, node: ast.AST) -> ast.AST | Statements:
        """No expression holds statements."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_Try(self, node: ast.Try) -> ast.AST | Statements:
        self.generic_visit(node)
        size = sum(1 for handler in node.handlers for _ in ast.walk(handler))
        if not 0 < size <= _MAX_NODES or not all(map(self._is_blind, node.handlers)):
            return node
        written = self._tried(node, node.body, _MAX_CONVERSIONS)
        if written is None:
            return node
        if node.finalbody:
            return ast.copy_location(ast.Try(written, [], [], node.finalbody), node)
        return written

    def _is_blind(self, handler: ast.ExceptHandler) -> bool:
        """Whether a handler does the same when the exception is no longer being handled, but for what it raises."""
        if not all(isinstance(kind, ast.Name) for kind in kinds_of(handler)):
            return False
        for part in (part for statement in handler.body for part in ast.walk(statement)):
            if isinstance(part, ast.Name) and self._looks(part.id):
                return False
        return handler.name is None or handler.name not in names_bound_in(handler.body)

    def _tried(self, node: ast.Try, body: Statements, left: int) -> Statements | None:
        """What stands for ``body`` with the handlers of ``node``; None where no conversion is found."""
        for index, statement in enumerate(body if left else []):
            conversion = first_conversion(statement)
            if conversion is not None:
                return self._split(node, body, index, conversion, left)
            if _has_end(statement):
                break
        return None

    def _split(self, node: ast.Try, body: Statements, index: int, conversion: ast.Call, left: int) -> Statements:
        statement = body[index]
        held = f"{HELD}t{next(self._numbers)}"
        kinds = [handler.type or ast.Name("BaseException", ast.Load()) for handler in node.handlers]
        nothing = ast.arguments([], [], None, [], [], None, [])
        read = ast.Lambda(nothing, ast.Tuple(copy.deepcopy(kinds), ast.Load()))
        tried = _placed(Own("convert", [_read(held), read, conversion.func, *conversion.args]), conversion)
        changed = _Replacer(conversion, held).visit(statement)
        assert isinstance(changed, ast.stmt)
        rest = [changed, *body[index + 1 :]]
        return [
            *self._attempt(node, held, [*body[:index], _placed(ast.Expr(tried), statement)]),
            self._decided(node, held, self._rest(node, rest, left - 1)),
        ]

    def _attempt(self, node: ast.Try, held: str, body: Statements) -> Statements:
        """``body`` in a ``try`` which only notes what handler is to be run."""
        begin = ast.Assign([ast.Name(held, ast.Store())], Own("attempt", []))
        handlers = [
            _placed(ast.ExceptHandler(copy.deepcopy(handler.type), None, [_noted(held, number, handler)]), handler)
            for number, handler in enumerate(node.handlers)
        ]
        return [_placed(begin, node), ast.copy_location(ast.Try(body, handlers, [], []), node)]

    def _decided(self, node: ast.Try, held: str, passed: Statements) -> ast.stmt:
        """``passed`` where nothing was raised, else what the handlers do."""
        handled: Statements = _handler_body(node.handlers[-1], held)
        for number, handler in reversed(list(enumerate(node.handlers[:-1]))):
            test = _placed(Own("handler", [_read(held), ast.Constant(number)]), handler)
            handled = [_placed(ast.If(test, _handler_body(handler, held), handled), handler)]
        test = _placed(Own("passed", [_read(held)]), node)
        return _placed(ast.If(test, passed, handled), node)

    def _rest(self, node: ast.Try, body: Statements, left: int) -> Statements:
        """What stands for the ``body`` behind a conversion."""
        if _cannot_raise(body):
            return [*body, *([] if isinstance(body[-1], _ENDS) else copy.deepcopy(node.orelse))]
        written = self._tried(node, body, left)
        if written is not None:
            return written
        if any(map(_has_end, body[:-1])) or (not isinstance(body[-1], _ENDS) and _has_end(body[-1])):
            handlers = [_placed(copy.deepcopy(handler), handler) for handler in node.handlers]
            return [ast.copy_location(ast.Try(body, handlers, copy.deepcopy(node.orelse), []), node)]
        held = f"{HELD}t{next(self._numbers)}"
        end: Statements = []
        if isinstance(body[-1], ast.Return):
            last = body[-1]
            result = f"{held}r"
            value = last.value or ast.Constant(None)
            body = [*body[:-1], _placed(ast.Assign([ast.Name(result, ast.Store())], value), last)]
            end = [_placed(ast.Return(_read(result)), last)]
        elif isinstance(body[-1], ast.Break | ast.Continue):
            *body, last = body
            end = [last]
        passed = end or copy.deepcopy(node.orelse) or [ast.copy_location(ast.Pass(), node)]
        return [*self._attempt(node, held, body), self._decided(node, held, passed)]


class _Replacer(ast.NodeTransformer):
    """Puts the value of the conversion in its place. Statements are copied as far as they change."""

    def __init__(self, conversion: ast.Call, held: str) -> None:
        self._conversion = conversion
        self._held = held

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._conversion:
            return _placed(Own("converted", [_read(self._held)]), node)
        return super().visit(node)


def _cannot_raise(body: Statements) -> bool:
    """Whether nothing is done but to take the value of the conversion, and to bind, return or leave."""
    bound: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Return(value=value) | ast.Expr(value=value):
                known = isinstance(value, Own | ast.Constant | None) or (
                    isinstance(value, ast.Name) and value.id in bound
                )
                if not known or any(not isinstance(part, ast.Name) for part in getattr(statement, "targets", [])):
                    return False
                bound |= names_bound_in([statement])
            case ast.Break() | ast.Continue() | ast.Pass():
                pass
            case _:
                return False
    return True


def kinds_of(handler: ast.ExceptHandler) -> list[ast.expr]:
    """The classes that a handler names."""
    if handler.type is None:
        return [ast.copy_location(ast.Name("BaseException", ast.Load()), handler)]
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]


def _handler_body(handler: ast.ExceptHandler, held: str) -> Statements:
    """What a handler does. Its name is unbound behind it."""
    body = [_Raising(held).statement(copy.deepcopy(statement)) for statement in handler.body]
    names = [part.id for statement in body for part in ast.walk(statement) if isinstance(part, ast.Name)]
    raises = any(isinstance(part, HandledRaise) for statement in body for part in ast.walk(statement))
    reads = raises or handler.name in names
    begin: Statements = [_placed(ast.Expr(Own("handling", [_read(held), ast.Constant(reads)])), handler)]
    end: Statements = [_placed(ast.Expr(Own("handled", [_read(held)])), handler)]
    if handler.name is not None:
        caught = Own("error", [_read(held)]) if reads else ast.Constant(None)
        begin.append(_placed(ast.Assign([ast.Name(handler.name, ast.Store())], caught), handler))
        end.append(_placed(ast.Delete([ast.Name(handler.name, ast.Del())]), handler))
    if isinstance(body[-1], (*_ENDS, ast.Raise)):
        end = []
    return [*begin, *body, *end]


def handled_in(statements: Statements) -> ast.expr | None:
    """The variable of the ``try`` whose handler ``statements`` are; None where they are none."""
    match statements:
        case [ast.Expr(value=Own(name="handling", arguments=[held, _])), *_]:
            return held
        case _:
            return None


class _Raising(ast.NodeTransformer):
    """Lets what a handler raises know which one that is."""

    def __init__(self, held: str) -> None:
        self._held = held

    def statement(self, node: ast.stmt) -> ast.stmt:
        """``node``, with what it raises."""
        made = self.visit(node)
        assert isinstance(made, ast.stmt)
        return made

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.expr, ast.ExceptHandler, HandledRaise, *_NESTED)):
            return node
        if not isinstance(node, ast.Raise):
            return super().visit(node)
        error = node.exc or _placed(Own("error", [_read(self._held)]), node)
        made = ast.copy_location(HandledRaise(error, node.cause), node)
        made.held = self._held
        return made


def _noted(held: str, number: int, place: ast.AST) -> ast.stmt:
    return _placed(ast.Expr(Own("caught", [_read(held), ast.Constant(number)])), place)


def _has_end(statement: ast.stmt) -> bool:
    """Whether control may leave a block by what stands in ``statement``."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, _ENDS):
            return True
        if not isinstance(node, _NESTED):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _read(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _placed(node: Node, place: ast.AST) -> Node:
    return ast.fix_missing_locations(ast.copy_location(node, place))

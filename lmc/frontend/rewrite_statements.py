"""The source transform of statements and functions. What it can't take raises ``Unsupported``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence

from lmc.frontend.rewrite import OPERATORS, RESULT, HandledRaise, constant
from lmc.frontend.rewrite_binding import Statements
from lmc.frontend.rewrite_exits import fold_ends
from lmc.frontend.rewrite_loops import LoopRewriter
from lmc.frontend.rewrite_matches import write_matches
from lmc.frontend.rewrite_tries import handled_in, kinds_of, write_tries
from lmc.frontend.scopes import FunctionScope
from lmc.frontend.source.files import Unsupported


class Rewriter(LoopRewriter):
    """Rewrites one jitted function, nested functions included."""

    def function(self, node: ast.FunctionDef, looks: Callable[[str], bool]) -> ast.FunctionDef:
        """The transformed function, without decorators, with ``_lmc_`` as its first parameter.

        ``looks`` says of a name outside of it whether it is a function that may ask for the exception being handled.
        """
        for part in ast.walk(node):
            name = part.id if isinstance(part, ast.Name) else part.arg if isinstance(part, ast.arg) else ""
            if name.startswith(OPERATORS):
                raise Unsupported(f"the name {name!r} is lmc's own", getattr(part, "lineno", node.lineno))
        if self.branches:
            write_matches(node)
            write_tries(node, looks)
            fold_ends(node, RESULT, whole=self.part)
        self.scopes.append(FunctionScope(node))
        arguments = _without_annotations(node.args)
        first = self.at(node, ast.arg(OPERATORS))
        if arguments.posonlyargs:
            arguments.posonlyargs.insert(0, first)
        else:
            arguments.args.insert(0, first)
        # Defaults are taken over from the original function object; these only keep their number right.
        arguments.defaults = [self.at(node, ast.Constant(None)) for _ in arguments.defaults]
        arguments.kw_defaults = [
            None if default is None else self.at(node, ast.Constant(None)) for default in arguments.kw_defaults
        ]
        self.begin_function(node.body)
        body = self.block(node.body)
        self.end_function()
        self.scopes.pop()
        made = ast.FunctionDef(node.name, arguments, body, [], None, None)
        return ast.copy_location(made, node)

    def block(self, statements: Statements) -> Statements:
        """Statements of a body, in order."""
        held = handled_in(statements)
        rewritten: Statements = []
        for statement in statements:
            found = self.visit(statement)
            rewritten.extend(found if isinstance(found, list) else [found])
        return rewritten if held is None else [self._handler_of(statements[0], held, rewritten)]

    def _handler_of(self, node: ast.stmt, held: ast.expr, body: Statements) -> ast.stmt:
        """``body``, a handler that runs behind its ``try``; what it raises has what it handles as its context."""
        error = self.temporary(node)
        told = self.statement(self.operator(node, "behind", held, error))
        handler = ast.ExceptHandler(self.helper(node, "anything"), error.id, [told, ast.Raise(None, None)])
        return self.at(node, ast.Try(body, [handler], [], []))

    # Functions inside

    def on_function_def(self, node: ast.FunctionDef) -> Statements:
        self.check_store_name(node.name, node)
        if getattr(node, "type_params", None):
            raise Unsupported("a generic function inside", node.lineno)
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        held = [self.temporary(decorator) for decorator in decorators]
        arguments = self._nested_arguments(node.args)
        self.scopes.append(FunctionScope(node))
        self.begin_function(node.body)
        body = self.block(node.body)
        self.end_function()
        self.scopes.pop()
        made = ast.copy_location(ast.FunctionDef(node.name, arguments, body, [], None, None), node)
        before = [self.assign(name, value) for name, value in zip(held, decorators, strict=True)]
        result: ast.expr = self.at(node, ast.Name(node.name, ast.Load()))
        for name in reversed(held):
            result = self.operator(name, "call", name, result)
        after = [self.assign(self.at(node, ast.Name(node.name, ast.Load())), result)] if held else []
        return [*before, made, *after]

    def on_lambda(self, node: ast.Lambda) -> ast.expr:
        arguments = self._nested_arguments(node.args)
        self.scopes.append(FunctionScope(node))
        self.begin_function([self.at(node, ast.Expr(node.body))])
        body = self.visit(node.body)
        self.end_function()
        self.scopes.pop()
        return self.at(node, ast.Lambda(arguments, body))

    def _nested_arguments(self, arguments: ast.arguments) -> ast.arguments:
        made = _without_annotations(arguments)
        made.defaults = [self.visit(default) for default in arguments.defaults]
        made.kw_defaults = [None if default is None else self.visit(default) for default in arguments.kw_defaults]
        return made

    def on_async_function_def(self, node: ast.AsyncFunctionDef) -> Statements:
        raise Unsupported("an async function inside", node.lineno)

    def on_class_def(self, node: ast.ClassDef) -> Statements:
        raise Unsupported("a class inside", node.lineno)

    # Control

    def on_async_for(self, node: ast.AsyncFor) -> ast.stmt:
        raise Unsupported("async for", node.lineno)

    def on_async_with(self, node: ast.AsyncWith) -> ast.stmt:
        raise Unsupported("async with", node.lineno)

    def on_assert(self, node: ast.Assert) -> ast.stmt:
        # A message that nothing has to be worked out for can be a part of the graph.
        known = isinstance(node.msg, ast.Constant | None)
        texts = [node.msg] if known and node.msg is not None else []
        test = self.operator(node.test, "checked" if known else "truth", self.visit(node.test), *texts)
        message = None if node.msg is None else self.visit(node.msg)
        return ast.copy_location(ast.Assert(test, message), node)

    def on_raise(self, node: ast.Raise) -> ast.stmt | Statements:
        if node.exc is None or not self.branches or self.scopes[-1].is_generator:
            error = None if node.exc is None else self.operator(node, "exception", self.visit(node.exc))
            cause = None if node.cause is None else self.operator(node, "exception", self.visit(node.cause))
            return ast.copy_location(ast.Raise(error, cause), node)
        parts = [part for part in (node.exc, node.cause) if part is not None]
        held = [self.temporary(part) for part in parts]
        handled = [ast.Name(node.held, ast.Load())] if isinstance(node, HandledRaise) else []
        raising = self.leaving(
            node, "raising", held[0], ast.Tuple([*held[1:]], ast.Load()), ast.Tuple([*handled], ast.Load())
        )
        return [
            *(self.assign(name, self.visit(part)) for name, part in zip(held, parts, strict=True)),
            self.when(node, raising, [self.at(node, ast.Raise(*held))]),
        ]

    def on_handled_raise(self, node: HandledRaise) -> ast.stmt | Statements:
        return self.on_raise(node)

    def on_try(self, node: ast.Try) -> Statements:
        """The body (and with ``finally`` everything else too) may not hold what could raise at run time."""
        # A capture that ends must not look like an error of the user's to a bare `except:`.
        ended = self.at(node, ast.ExceptHandler(self.helper(node, "ended"), None, [ast.Raise(None, None)]))
        body: Statements = [self._protected(node, self.guarded(node.body), node.handlers)]
        handlers = [ended, *(self._handler(handler) for handler in node.handlers)]
        made = ast.Try(body, handlers if node.handlers else [], self.guarded(node.orelse), [])
        if not node.finalbody:
            return [ast.copy_location(made, node)]
        final = self.at(node, ast.If(self.operator(node, "runs_on"), self.guarded(node.finalbody), []))
        if not node.handlers:
            return [ast.copy_location(ast.Try([*body, *made.orelse], [], [], [final]), node)]
        inner = self._protected(node, [ast.copy_location(made, node)])
        return [ast.copy_location(ast.Try([inner], [], [], [final]), node)]

    def _handler(self, handler: ast.ExceptHandler) -> ast.ExceptHandler:
        if handler.name is not None:
            self.check_store_name(handler.name, handler)
        kind = None if handler.type is None else self.operator(handler, "exception", self.visit(handler.type))
        return ast.copy_location(ast.ExceptHandler(kind, handler.name, self.guarded(handler.body)), handler)

    def on_try_star(self, node: ast.AST) -> Statements:
        raise Unsupported("except*", getattr(node, "lineno", 0))

    def on_with(self, node: ast.With) -> ast.stmt:
        items = [
            ast.withitem(
                self.operator(item.context_expr, "manage", self.visit(item.context_expr)),
                None if item.optional_vars is None else self.check_target(item.optional_vars),
            )
            for item in node.items
        ]
        return ast.copy_location(ast.With(items, self.guarded(node.body)), node)

    def on_match(self, node: ast.Match) -> ast.stmt:
        for case in node.cases:
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name is not None:
                    self.check_store_name(part.name, node)
            case.pattern = self._pattern(case.pattern)
            if case.guard is not None:
                case.guard = self.operator(case.guard, "truth", self.visit(case.guard))
            case.body = self.block(case.body)
        subject = self.operator(node.subject, "subject", self.visit(node.subject))
        return ast.copy_location(ast.Match(subject, node.cases), node)

    def _pattern(self, pattern: ast.pattern) -> ast.pattern:
        """Patterns name values and classes by themselves, which Python looks up unseen: only literals are taken."""
        for part in ast.walk(pattern):
            if isinstance(part, ast.MatchClass) or (
                isinstance(part, ast.MatchValue) and not isinstance(part.value, ast.Constant | ast.UnaryOp)
            ):
                raise Unsupported("a `case` that names a class or a variable", part.lineno)
        return pattern

    # Imports and declarations

    def on_import(self, node: ast.Import) -> Statements:
        names = tuple(alias.name for alias in node.names)
        return [self.statement(self.operator(node, "importing", constant(names))), node]

    def on_import_from(self, node: ast.ImportFrom) -> Statements:
        if node.level or node.module is None or any(alias.name == "*" for alias in node.names):
            raise Unsupported("a relative import inside", node.lineno)
        names = tuple(alias.name for alias in node.names)
        call = self.operator(node, "importing_from", constant(node.module), constant(names))
        return [self.statement(call), node]

    def _protected(self, node: ast.stmt, body: Statements, handlers: Sequence[ast.ExceptHandler] = ()) -> ast.stmt:
        """``body``, in which an exception may be caught by ``handlers``, or where there are none, whatever it is."""
        caught: ast.expr = ast.Constant(None)
        kinds = [named for handler in handlers for named in kinds_of(handler)]
        if handlers and all(isinstance(kind, ast.Name) and not self.is_local(kind.id) for kind in kinds):
            nothing = ast.arguments([], [], None, [], [], None, [])
            read = [self.visit(copy.deepcopy(kind)) for kind in kinds]
            caught = ast.Lambda(nothing, ast.Tuple(read, ast.Load()))
        return self.at(node, ast.With([ast.withitem(self.operator(node, "protected", caught), None)], body))


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    def plain(argument: ast.arg | None) -> ast.arg | None:
        return None if argument is None else ast.copy_location(ast.arg(argument.arg), argument)

    return ast.arguments(
        [ast.copy_location(ast.arg(argument.arg), argument) for argument in arguments.posonlyargs],
        [ast.copy_location(ast.arg(argument.arg), argument) for argument in arguments.args],
        plain(arguments.vararg),
        [ast.copy_location(ast.arg(argument.arg), argument) for argument in arguments.kwonlyargs],
        list(arguments.kw_defaults),
        plain(arguments.kwarg),
        list(arguments.defaults),
    )

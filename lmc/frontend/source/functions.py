"""Functions as a capture sees them: their definition, their names, and where free names are looked up."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from lmc.frontend.source.files import Unsupported, check_same, definition_in, index_of, parse_file, source_of_file
from lmc.frontend.source.liveness import CONSUMING, Live, live_names
from lmc.frontend.source.locations import is_user_file, location_of
from lmc.frontend.source.places import FunctionNode, Place, code_in, functions_in, places_of
from lmc.frontend.source.scopes import FunctionScope
from lmc.frontend.source.sites import Sites
from lmc.frontend.source.turns import warn_of_joined_answers
from lmc.ir.errors import Location

POLYFILLS = str(Path(__file__).parents[1] / "python" / "library" / "polyfills.py")
"""The file of the functions that stand for Python's own."""


@dataclass(eq=False)
class Definition:
    """A function: its node, its file, and what its free names mean.

    ``cells`` are the variables of the functions around it that exist outside the program, ``rebound`` the names that
    some function of its file may bind anew in the module or in an enclosing function. ``class_name`` is the class it is
    written in. ``function`` is the function itself where it exists outside
    the program, ``outer`` the definition that it is written in where the program makes it.
    """

    node: FunctionNode
    name: str
    file: str
    globals: dict[str, Any]
    cells: Mapping[str, CellType]
    rebound: frozenset[str]
    class_name: str | None = None
    function: FunctionType | None = None
    outer: Definition | None = None
    _inner: dict[int, Definition] = field(default_factory=dict[int, "Definition"])
    _signatures: dict[frozenset[str], inspect.Signature] = field(
        default_factory=dict[frozenset[str], inspect.Signature]
    )
    _locations: dict[tuple[int, int], Location] = field(default_factory=dict[tuple[int, int], Location])

    def __post_init__(self) -> None:
        self.scope = FunctionScope(self.node)

    @property
    def arguments(self) -> ast.arguments:
        """Its parameters."""
        return self.node.args

    def signature(self, defaults: Iterable[str]) -> inspect.Signature:
        """Return its parameters, those in ``defaults`` with ``...`` as their default; the same object each time."""
        having = frozenset(defaults)
        found = self._signatures.get(having)
        if found is None:
            found = self._signatures[having] = inspect.Signature(self._parameters(having))
        return found

    def _parameters(self, having: frozenset[str]) -> list[inspect.Parameter]:
        arguments = self.arguments
        groups = (
            (inspect.Parameter.POSITIONAL_ONLY, arguments.posonlyargs),
            (inspect.Parameter.POSITIONAL_OR_KEYWORD, arguments.args),
            (inspect.Parameter.VAR_POSITIONAL, [arguments.vararg] if arguments.vararg is not None else []),
            (inspect.Parameter.KEYWORD_ONLY, arguments.kwonlyargs),
            (inspect.Parameter.VAR_KEYWORD, [arguments.kwarg] if arguments.kwarg is not None else []),
        )
        empty = inspect.Parameter.empty
        return [
            inspect.Parameter(each.arg, kind, default=... if each.arg in having else empty)
            for kind, group in groups
            for each in group
        ]

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements; of a lambda none."""
        return [] if isinstance(self.node, ast.Lambda) else self.node.body

    @property
    def outermost(self) -> Definition:
        """The definition around it that exists outside the program; itself where there is none."""
        found = self
        while found.outer is not None:
            found = found.outer
        return found

    @cached_property
    def number(self) -> int:
        """Return which function of the outermost definition it is, in the order of ``functions_in``."""
        return next(index for index, each in enumerate(functions_in(self.outermost.node)) if each is self.node)

    def numbered(self, number: int) -> Definition:
        """The function of that number that is written in this definition, which exists outside the program."""
        found = functions_in(self.node)[number]
        return self if found is self.node else self.inner(found)

    @cached_property
    def only_reads_first(self) -> bool:
        """Return whether it does nothing with its first parameter but read attributes of it."""
        first = next(iter((*self.arguments.posonlyargs, *self.arguments.args)), None)
        parts = list(ast.walk(self.node))
        names = [part for part in parts if isinstance(part, ast.Name) and first is not None and part.id == first.arg]
        reads = [part for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load)]
        scopes = [part for part in parts if isinstance(part, ast.arg) and first is not None and part.arg == first.arg]
        return len(scopes) == 1 and {id(name) for name in names} <= {id(read.value) for read in reads}

    @cached_property
    def code(self) -> CodeType:
        """Its code object. Raises ``Unsupported`` where it is not found in that of the function around it."""
        function = self.outermost.function
        assert function is not None
        return function.__code__ if function is self.function else code_in(function.__code__, self.node)

    @cached_property
    def places(self) -> Mapping[int, Place]:
        """Return where each statement stands, by the id of its node."""
        return places_of(self.body)

    @cached_property
    def live(self) -> Live:
        """By the id of a node: the names that are live at the head of a loop, behind a statement, and before one."""
        if isinstance(self.node, ast.Lambda):
            return {}, {}, {}
        others = {*self.globals, *self.cells}
        around: Definition | None = self
        while around is not None:
            others |= around.scope.local
            around = around.outer
        return live_names(self.node, CONSUMING - others)

    @cached_property
    def is_own(self) -> bool:
        """Return whether it is one of lmc's own: what it does happens at the line of its call."""
        return not is_user_file(self.file)

    @cached_property
    def sites(self) -> Sites | None:
        """Return where its control flow stands."""
        return None if isinstance(self.node, ast.Lambda) or self.is_own else Sites.of(self.node, self.file)

    def location(self, node: Any) -> Location:
        """Return where a node of it begins; the same object each time."""
        place = (node.lineno, node.col_offset)
        found = self._locations.get(place)
        if found is None:
            found = self._locations[place] = location_of(self.file, *place)
        return found

    def inner(self, node: FunctionNode) -> Definition:
        """A function that is written in this one; the same object each time."""
        found = self._inner.get(id(node))
        if found is None:
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            found = self._inner[id(node)] = Definition(
                node, name, self.file, self.globals, self.cells, self.rebound, self.class_name, outer=self
            )
        return found

    def mangled(self, name: str) -> str:
        """``name`` as Python writes it in a class: private ones are made unique."""
        if self.class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
            return name
        stripped = self.class_name.lstrip("_")
        return f"_{stripped}{name}" if stripped else name


class _Identity:
    """An object as a key of a cache, which keeps it alive."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return type(other) is _Identity and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def definition_of(function: FunctionType) -> Definition:
    """The definition of a function that exists outside the program, with a warning of its source the first time.

    Raises ``Unsupported``.
    """
    return _definition_of(_Identity(function), _Identity(function.__code__))


@lru_cache(maxsize=512)
def _definition_of(held: _Identity, _code: _Identity) -> Definition:
    function = held.held
    assert isinstance(function, FunctionType)
    code = function.__code__
    source = source_of_file(code, function.__globals__)
    tree = parse_file(source, code.co_filename)
    node = _lambda_in(tree, code) if code.co_name == "<lambda>" else definition_in(tree, code)
    if isinstance(node, ast.FunctionDef):
        check_same(source, node, code)
    warn_of_joined_answers(node, function)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    name = function.__name__
    index = index_of(tree)
    return Definition(
        node,
        name,
        code.co_filename,
        function.__globals__,
        cells,
        index.rebound,
        index.classes.get(node),
        function,
    )


def _lambda_in(tree: ast.Module, code: CodeType) -> ast.Lambda:
    """The lambda that ``code`` was compiled from, where only one can be meant."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    lambdas = index_of(tree).lambdas.get(code.co_firstlineno, ())
    found = [node for node in lambdas if _parameters(node) == names]
    if len(found) != 1:
        raise Unsupported("it is a lambda, and its line has several", code.co_firstlineno)
    compiled = compile(ast.Expression(found[0]), code.co_filename, "eval", dont_inherit=True)
    inner = [entry for entry in compiled.co_consts if isinstance(entry, CodeType)]
    if not inner or not {*inner[0].co_names} <= {*code.co_names, *code.co_freevars}:
        raise Unsupported("its file changed since it was loaded", code.co_firstlineno)
    return found[0]


def _parameters(node: ast.Lambda) -> tuple[str, ...]:
    arguments = node.args
    return tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))

"""Values, ops, blocks and symbols: the data structures that a module (``module.py``) is made of.

Everything is immutable. Ops compare by identity; their operands are ``Value``s, which compare by name and type, so a
pass is one forward walk with a substitution map and nothing ever walks def-use chains recursively.

A concrete op is a dataclass whose fields are declared with ``operand()``, ``operands()``, ``parts()``, ``region()`` or
``attribute()``. Those declarations drive printer, parser, verifier, substitution and serialization, so adding an op
means adding one class (see the package's README).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Literal, TypeVar

from lmc.ir.cached import cached_property
from lmc.ir.errors import Location, VerifyError
from lmc.ir.types import Type

Attribute = None | bool | int | float | str | tuple["Attribute", ...]
FieldKind = Literal["operand", "operands", "parts", "arguments", "region", "attribute"]
BlockKind = Literal["function", "region"]
SymbolKind = Literal["constraint", "host"]
CONSTRAINT_KINDS = ("regex", "choices", "schema", "grammar", "dtype")
WHITESPACE = ("compact", "flexible")
_KIND = "lmc_kind"


class Effect(Enum):
    """The side effects of an op. Passes consult this (and the op's flags) and nothing else.

    ``LOCAL``: it makes, changes or looks into an object that this run of the program alone holds.
    """

    PURE = "pure"
    LOCAL = "local"
    SAMPLES = "samples"
    READS = "reads"
    WRITES = "writes"


@dataclass(frozen=True, slots=True)
class Value:
    """The result of an op or a parameter: a name, unique in its function, and a type."""

    name: str
    type: Type

    def __hash__(self) -> int:
        return hash(self.name)  # values are looked up more than anything else, and names are unique in a function

    def __str__(self) -> str:
        return f"%{self.name}"


def operand() -> Any:
    """A field that holds one Value."""
    return dataclasses.field(metadata={_KIND: "operand"})


def operands(default: Any = dataclasses.MISSING) -> Any:
    """A field that holds a tuple of Values."""
    return dataclasses.field(default=default, metadata={_KIND: "operands"})


def parts() -> Any:
    """A field that holds text: a tuple of literal strings and Values of type ``!text``."""
    return dataclasses.field(default=(), metadata={_KIND: "parts"})


def arguments() -> Any:
    """A field that holds call arguments: a tuple of Values and literal attributes."""
    return dataclasses.field(default=(), metadata={_KIND: "arguments"})


def region() -> Any:
    """A field that holds one Block."""
    return dataclasses.field(metadata={_KIND: "region"})


def attribute(
    default: Any = dataclasses.MISSING,
    *,
    keyword: bool = False,
    symbol: SymbolKind | None = None,
) -> Any:
    """A field that holds a literal. Without a default it must be given.

    A ``keyword`` is a string that the text form writes among the operands (``lm.extend %0, user [...]``). ``symbol``
    says that the string names a constraint or a host function of the module (``@c0``).
    """
    return dataclasses.field(default=default, metadata={_KIND: "attribute", "keyword": keyword, "symbol": symbol})


@dataclass(frozen=True, eq=False, kw_only=True)
class Op:
    """Base of all ops. ``location`` is the user's line; ``results`` are defined by the op, in order."""

    results: tuple[Value, ...] = ()
    location: Location | None = None

    NAME: ClassVar[str]
    ENDS: ClassVar[tuple[BlockKind, ...]] = ()
    IS_TERMINATOR: ClassVar[bool] = False
    FIELDS: ClassVar[tuple[tuple[str, FieldKind], ...]] = ()
    VALUE_FIELDS: ClassVar[tuple[tuple[str, FieldKind], ...]] = ()
    REGION_FIELDS: ClassVar[tuple[str, ...]] = ()

    @property
    def effect(self) -> Effect:
        """Return what the op does besides computing its results."""
        return Effect.PURE

    @property
    def may_raise(self) -> bool:
        """Return whether running the op can raise on well-typed operands, because of what the values are."""
        return False

    @property
    def billable(self) -> bool:
        """Return whether running the op costs money on a priced target."""
        return False

    def verify(self) -> None:
        """Raise ``VerifyError`` where a rule of this op is broken. Operands are defined and fields typed already."""

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        """Every Value the op uses, in field order, repeats included; not those used inside its regions."""
        found: list[Value] = []
        for name, kind in self.VALUE_FIELDS:
            held = getattr(self, name)
            if kind == "operand":
                found.append(held)
            else:
                found += [entry for entry in held if isinstance(entry, Value)]
        return tuple(found)

    @property
    def regions(self) -> tuple[Block, ...]:
        """The op's regions, in field order."""
        return tuple([getattr(self, name) for name in self.REGION_FIELDS]) if self.REGION_FIELDS else ()

    def substitute(self, mapping: Mapping[Value, Value]) -> Op:
        """The op with operands replaced by ``mapping`` (regions untouched); itself where nothing changes."""
        if not mapping or mapping.keys().isdisjoint(self.operands):
            return self
        changed: dict[str, Any] = {}
        for name, kind in self.VALUE_FIELDS:
            old = getattr(self, name)
            if kind == "operand":
                new = mapping.get(old, old)
            else:
                new = tuple(mapping.get(entry, entry) if isinstance(entry, Value) else entry for entry in old)
            if new != old:
                changed[name] = new
        return dataclasses.replace(self, **changed) if changed else self

    def fail(self, cause: str, remedy: str | None = None) -> VerifyError:
        """A ``VerifyError`` about this op, to be raised by ``verify``."""
        error = VerifyError(f"{self.NAME}: {cause}", remedy=remedy, location=self.location)
        error.op = self
        return error


OpClass = TypeVar("OpClass", bound=type[Op])
_REGISTRY: dict[str, type[Op]] = {}


def register(name: str, *, ends: tuple[BlockKind, ...] = ()) -> Callable[[OpClass], OpClass]:
    """Class decorator: make a dataclass an op called ``name`` (``dialect.op``), which ``ends`` such blocks."""

    def decorate(cls: OpClass) -> OpClass:
        made = dataclass(frozen=True, eq=False, kw_only=True)(cls)
        made.NAME = name
        made.ENDS = ends
        made.IS_TERMINATOR = bool(ends)
        made.FIELDS = tuple(
            (field.name, field.metadata[_KIND]) for field in dataclasses.fields(made) if _KIND in field.metadata
        )
        made.VALUE_FIELDS = tuple(field for field in made.FIELDS if field[1] not in {"attribute", "region"})
        made.REGION_FIELDS = tuple(name for name, kind in made.FIELDS if kind == "region")
        if name in _REGISTRY:
            raise ValueError(f"two ops are called {name}")
        _REGISTRY[name] = made
        return made

    return decorate


def op_class(name: str) -> type[Op] | None:
    """The op class called ``name``; None where there is none."""
    return _REGISTRY.get(name)


def op_names() -> tuple[str, ...]:
    """Names of all ops, sorted."""
    return tuple(sorted(_REGISTRY))


@dataclass(frozen=True, eq=False)
class Block:
    """Parameters and ops; the last op is the only terminator."""

    parameters: tuple[Value, ...] = ()
    ops: tuple[Op, ...] = ()

    @property
    def terminator(self) -> Op:
        """The last op."""
        return self.ops[-1]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A symbol for what a generation may produce: ``kind`` is one of ``CONSTRAINT_KINDS``, ``text`` its definition.

    ``choices`` and ``schema`` hold JSON without spaces, ``dtype`` the Python type's name, ``grammar`` Lark text.
    ``whitespace`` says what a schema allows between the tokens of JSON. ``digest`` names what it was compiled to, for
    one vocabulary; None before the pass compile-constraints.
    """

    name: str
    kind: str
    text: str
    whitespace: str = "compact"
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A symbol for a function of the user's program, called by ``host.call``.

    ``target`` is ``module:qualname`` and ``digest`` the SHA-256 of its source; it is resolved only from the program the
    user passes, never imported because a file names it. ``early``: it may be called for a way that is then not taken.
    """

    name: str
    target: str
    digest: str
    effect: Effect = Effect.WRITES
    early: bool = False


def walk(blocks: Iterable[Block]) -> Iterator[Op]:
    """Every op of ``blocks`` and of the regions in them, outer before inner, in order. Never recursive."""
    stack = [iter(block.ops) for block in reversed(list(blocks))]
    while stack:
        for op in stack[-1]:
            yield op
            if op.REGION_FIELDS:
                stack.extend([iter(region.ops) for region in reversed(op.regions)])
                break
        else:
            stack.pop()

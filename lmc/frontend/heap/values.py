"""Abstract values: the values of expressions during a capture.

All are immutable. What Python can change is a cell of the heap (``lmc.frontend.heap.state``), and a ``Ref`` names it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmc.frontend.heap.expressions import Expression
from lmc.ir.core import Value
from lmc.ir.types import SCALARS, Type

if TYPE_CHECKING:
    from lmc.frontend.source.functions import Definition

Domain = tuple[str, ...] | None
"""The texts that a value may be, or that may be items of a container, or keys of a dict. None: not known, or many."""


class Abstract:
    """Base of all abstract values."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Const(Abstract):
    """An object known now: a literal, a module, a class, a function, or any object from outside the program."""

    value: Any

    @property
    def is_literal(self) -> bool:
        """Return whether an op can hold it as an attribute."""
        return is_literal(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Symbol(Abstract):
    """A value that only a run knows.

    ``origin`` is what messages call it. ``expression`` says how it follows from the arguments; None where a model, a
    tool or a draw had a part in it. ``domain`` are the texts that it may be, or that may be in it. ``kind`` is its
    Python class, where that is known and its type is ``!any``. ``foreign``: it may be an object that functions of the
    user's can change, so that looking into it is ordered with calls of those. ``local``: it may be an object of the
    run, where it is not foreign.
    """

    ir: Value
    origin: str = "a value"
    expression: Expression | None = None
    domain: Domain = None
    kind: type | None = None
    foreign: bool = False
    local: bool = False

    @property
    def type(self) -> Type:
        """Its IR type."""
        return self.ir.type


@dataclass(frozen=True, slots=True, eq=False)
class Lent(Symbol):
    """The context of one of the branches that only a run counts, outside of a ``cf.map`` over them: it has no value.

    ``signal`` is raised where it is used, None where nothing else can be done; ``array`` is where the branches are.
    """

    signal: Any = None
    array: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Concat(Abstract):
    """A text that is put together of ``parts`` (texts and symbols of type ``!text``) where an op needs it."""

    parts: tuple[str | Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tuple(Abstract):
    """A tuple, or a named one of class ``kind``."""

    items: tuple[Abstract, ...]
    kind: type = tuple


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Abstract):
    """``slice(start, stop, step)``."""

    start: Abstract
    stop: Abstract
    step: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class NumberRange(Abstract):
    """``range(*bounds)`` of numbers that only a run knows; ``items`` is the list of its items.

    It has a rule where its items, their number or its truth are asked. Any other use ends the capture: it is no list.
    """

    bounds: Tuple
    items: Abstract


@dataclass(frozen=True, slots=True)
class Ref(Abstract):
    """The cell at ``address``. Two names with one reference see one object."""

    address: int


@dataclass(frozen=True, slots=True, eq=False)
class View(Abstract):
    """``d.keys()``, ``d.values()`` or ``d.items()`` (``what``) of a dict of the program's, which it follows."""

    owner: Abstract
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class Function(Abstract):
    """A function that the program makes, with the frames it closes over, innermost first.

    ``frames`` are addresses; ``defaults`` are by parameter name.
    """

    definition: Definition
    frames: tuple[int, ...]
    defaults: Mapping[str, Abstract] = field(default_factory=dict[str, Abstract])


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod(Abstract):
    """``function`` with its first argument: a ``Function``, a ``Const`` function, or the name of a builtin method."""

    function: Abstract | str
    receiver: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class Super(Abstract):
    """``super()``: attributes are looked up in the classes behind ``start``, and bound to ``receiver``."""

    start: type
    receiver: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class Partial(Abstract):
    """``functools.partial(function, *args, **kwargs)``."""

    function: Abstract
    args: tuple[Abstract, ...]
    kwargs: Mapping[str, Abstract]


@dataclass(frozen=True, slots=True, eq=False)
class Appended(Abstract):
    """A value that a program appends to a state besides text: a message, a generation, several of them.

    ``made`` is an ``Appendable`` whose fields hold abstract values instead of the user's.
    """

    made: Any


@dataclass(frozen=True, slots=True, eq=False)
class RoleTurn(Abstract):
    """``s.user()`` without content: what ``with`` opens on a handle."""

    handle: Ref
    role: str


@dataclass(frozen=True, slots=True, eq=False)
class Block(Abstract):
    """The value that ``with`` opens on a handle of another language.

    ``enter(machine, block)`` returns the value that the block binds and the argument of its end, ``leave(machine,
    block, that)`` is its end.
    """

    handle: Ref
    enter: Callable[..., Any]
    leave: Callable[..., None]
    given: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class Managed(Abstract):
    """The result of a function with ``contextlib.contextmanager``: ``with`` runs its body at the generator's yield."""

    generator: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class Raised(Abstract):
    """An exception that the program makes or catches.

    ``kind`` is its class, where that is known. ``symbol`` is the exception of the run, None where the program makes it
    of ``args`` and nothing has needed it yet. ``kinds`` are the classes it may be of, where ``kind`` is not known and
    these are. ``made`` is the exception itself where it is known now (misuse that lmc
    reports at the user's line). ``keywords`` are ``name`` and ``obj`` of a ``NameError`` or ``AttributeError``.
    """

    kind: type[BaseException] | None
    args: tuple[Abstract, ...] = ()
    symbol: Abstract | None = None
    made: BaseException | None = None
    cause: Abstract | None = None
    context: Abstract | None = None
    kinds: tuple[type[BaseException], ...] | None = None
    keywords: Mapping[str, Abstract] = field(default_factory=dict[str, "Abstract"])


class Unbound(Abstract):
    """No value: a name that is not bound, a variable that a state does not have."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()


@dataclass(frozen=True, slots=True, eq=False)
class Union(Abstract):
    """``first`` where ``flag`` is true, else ``second``: values without a common form. Operations split on the flag."""

    flag: Symbol
    first: Abstract
    second: Abstract


@dataclass(frozen=True, slots=True, eq=False)
class Poison(Abstract):
    """A value that may not be used: to read it ends the capture for ``cause``."""

    cause: str
    remedy: str

    def cause_of(self, name: str) -> str:
        """Return the cause where it is read by its name."""
        return f"{name!r} {self.cause.removeprefix('this ')}" if self.cause.startswith("this ") else self.cause


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)
ZERO = Const(0)
ONE = Const(1)
EMPTY = Const("")


def is_literal(value: Any) -> bool:
    """Return whether ``value`` can be an attribute of an op."""
    if type(value) is tuple:
        return all(map(is_literal, value))
    return type(value) in SCALARS


def alternatives(value: Abstract) -> list[Abstract]:
    """Return the values one of which ``value`` is."""
    return [*alternatives(value.first), *alternatives(value.second)] if isinstance(value, Union) else [value]


def same(left: Abstract, right: Abstract) -> bool:
    """Return whether two values are certainly the same object, or literals that nothing tells apart."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, Const) and isinstance(right, Const):
        if left.value is right.value:
            return True
        return left.is_literal and type(left.value) is type(right.value) and same_literal(left.value, right.value)
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        return left.ir == right.ir
    if isinstance(left, Concat) and isinstance(right, Concat):
        return len(left.parts) == len(right.parts) and all(
            one == other if isinstance(one, str) or isinstance(other, str) else one.ir == other.ir
            for one, other in zip(left.parts, right.parts, strict=True)
        )
    if isinstance(left, Ref) and isinstance(right, Ref):
        return left.address == right.address
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return left.kind is right.kind and _all_same(left.items, right.items)
    if isinstance(left, Function) and isinstance(right, Function):
        return (
            left.definition is right.definition
            and left.frames == right.frames
            and list(left.defaults) == list(right.defaults)
            and _all_same(list(left.defaults.values()), list(right.defaults.values()))
        )
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        functions = left.function, right.function
        if isinstance(functions[0], str) or isinstance(functions[1], str):
            return functions[0] == functions[1] and same(left.receiver, right.receiver)
        return same(functions[0], functions[1]) and same(left.receiver, right.receiver)
    if isinstance(left, Union) and isinstance(right, Union):
        return left.flag.ir == right.flag.ir and same(left.first, right.first) and same(left.second, right.second)
    return False


def same_literal(left: Any, right: Any) -> bool:
    """Return whether two literals of one class are equal to the bit: 0.0 is not -0.0."""
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(
            type(one) is type(other) and same_literal(one, other) for one, other in zip(left, right, strict=True)
        )
    return left == right


_HOLDS_NONE = frozenset({Const, Symbol, Ref, Poison})
"""Classes of values that hold no others; the most frequent ones."""


def rebuilt(value: Abstract, change: Callable[[Abstract], Abstract]) -> Abstract:
    """``value`` with ``change`` of each value that it holds directly; itself where it holds none."""
    if type(value) in _HOLDS_NONE:
        return value
    if isinstance(value, Tuple):
        return Tuple(tuple(map(change, value.items)), value.kind)
    if isinstance(value, Concat):
        parts = [part if isinstance(part, str) else change(part) for part in value.parts]
        return Concat(tuple(part for part in parts if isinstance(part, str | Symbol)))
    if isinstance(value, Slice):
        return Slice(change(value.start), change(value.stop), change(value.step))
    if isinstance(value, Function):
        if not value.defaults:
            return value
        return dataclasses.replace(value, defaults={name: change(held) for name, held in value.defaults.items()})
    if isinstance(value, BoundMethod):
        function = value.function if isinstance(value.function, str) else change(value.function)
        return BoundMethod(function, change(value.receiver))
    if isinstance(value, Super):
        return Super(value.start, change(value.receiver))
    if isinstance(value, Partial):
        kwargs = {name: change(held) for name, held in value.kwargs.items()}
        return Partial(change(value.function), tuple(map(change, value.args)), kwargs)
    if isinstance(value, Appended):
        return Appended(_rebuilt_fields(value.made, change))
    if isinstance(value, View | Managed | Block | RoleTurn | NumberRange):
        return _with_parts(value, change)
    if isinstance(value, Raised):
        ir = value.symbol and change(value.symbol)
        return dataclasses.replace(
            value,
            args=tuple(map(change, value.args)),
            keywords={name: change(held) for name, held in value.keywords.items()},
            symbol=ir,
            cause=value.cause and change(value.cause),
            context=value.context and change(value.context),
        )
    if isinstance(value, Union):
        flag = change(value.flag)
        if isinstance(flag, Const):
            return change(value.first if flag.value else value.second)
        assert isinstance(flag, Symbol)
        return Union(flag, change(value.first), change(value.second))
    return value


def _with_parts(
    value: View | Managed | Block | RoleTurn | NumberRange, change: Callable[[Abstract], Abstract]
) -> Abstract:
    parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    made = {name: change(part) for name, part in parts.items() if isinstance(part, Abstract)}
    assert isinstance(made.get("handle", Ref(0)), Ref), "what is opened on a handle has one"
    return dataclasses.replace(value, **made)


def parts_of(value: Abstract) -> list[Abstract]:
    """The values that ``value`` holds directly."""
    found: list[Abstract] = []

    def note(part: Abstract) -> Abstract:
        found.append(part)
        return part

    rebuilt(value, note)
    return found


def _rebuilt_fields(held: Any, change: Callable[[Abstract], Abstract]) -> Any:
    if isinstance(held, Abstract):
        return change(held)
    if type(held) in (list, tuple):
        return type(held)(_rebuilt_fields(part, change) for part in held)
    if type(held) is dict:
        return {key: _rebuilt_fields(part, change) for key, part in held.items()}
    if dataclasses.is_dataclass(held) and not isinstance(held, type):
        fields = {field.name: getattr(held, field.name) for field in dataclasses.fields(held)}
        return type(held)(**{name: _rebuilt_fields(part, change) for name, part in fields.items()})
    return held


def _all_same(left: Sequence[Abstract], right: Sequence[Abstract]) -> bool:
    return len(left) == len(right) and all(map(same, left, right))

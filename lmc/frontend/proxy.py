"""Proxies: values of the program that are known only when it runs.

A Proxy is no ``str``. Transformed code never touches one with Python's own operators, it hands it to
``lmc.frontend.operators``. Everything else that touches one (``str(p)`` inside a library, ``hash``, ``==``,
``isinstance``, an attribute …) gets a ``CaptureBreak``, never a silent answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.sizes import grows
from lmc.ir import builtins
from lmc.ir.core import Value
from lmc.ir.errors import Location
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT, Type

if TYPE_CHECKING:
    from lmc.frontend.values import ValueRecorder


_SCALAR_TYPES = (TEXT, INT, FLOAT, BOOL, NONE)
_SCALARS = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """How a value follows from the arguments alone: a parameter, or a pure builtin over expressions and literals."""

    function: str
    operands: tuple[Any, ...] = ()
    keywords: tuple[str, ...] = ()


class MissingInputError(Exception):
    """An argument that a value follows from was not given."""


class OutsizedError(Exception):
    """A value that follows from the arguments would be far larger than they are."""


def parameter(name: str) -> Expression:
    """The argument called ``name``."""
    return Expression("", (name,))


def evaluate(root: Expression, inputs: Mapping[str, Any], known: dict[Expression, Any]) -> Any:
    """The value of ``root`` for ``inputs``; ``known`` caches. Never recursive.

    Raises what the builtins raise, ``MissingInputError`` and ``OutsizedError``.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        if not node.function:
            if node.operands[0] not in inputs:
                raise MissingInputError(node.operands[0])
            known[node] = inputs[node.operands[0]]
            continue
        missing = [entry for entry in node.operands if isinstance(entry, Expression) and entry not in known]
        if missing:
            stack.extend(missing)
            continue
        builtin = builtins.lookup(node.function)
        assert builtin is not None, node.function
        values = [known[entry] if isinstance(entry, Expression) else entry for entry in node.operands]
        if grows(node.function, tuple(values)):
            raise OutsizedError(node.function)
        split = len(values) - len(node.keywords)
        known[node] = builtin.run(*values[:split], **dict(zip(node.keywords, values[split:], strict=True)))
    return known[root]


@dataclass(slots=True, eq=False)
class Symbol:
    """What a Proxy stands for.

    ``value`` is its IR value; None for text that is still a list of ``parts``, which the recorder turns into an op
    when it has to be one. ``expression`` says how it follows from the arguments (None: a model, a tool or a draw had a
    part in it); ``volatile`` that it may be an object which the user's own functions can still change;
    ``constant`` that it is an object of the user's which has no literal; ``scalar`` that it is a text, a number, a bool
    or None, whatever its type says.
    """

    recorder: ValueRecorder
    type: Type
    value: Value | None
    origin: str
    expression: Expression | None = None
    parts: tuple[Any, ...] = ()
    volatile: bool = False
    constant: bool = False
    scalar: bool = False
    location: Location | None = None

    @property
    def is_scalar(self) -> bool:
        """Whether it is a text, a number, a bool or None."""
        return self.scalar or self.type in _SCALAR_TYPES

    @property
    def held(self) -> bool:
        """Whether the graph alone holds it: an engine gave it, and nothing that could change it has seen it."""
        return self.expression is None and not self.volatile


class Proxy:
    """A value known only at run time. See the module's docstring."""

    __slots__ = ("_symbol",)
    _symbol: Symbol

    def __init__(self, symbol: Symbol) -> None:
        object.__setattr__(self, "_symbol", symbol)

    def __getattribute__(self, name: str) -> Any:
        raise _escaped(self, f"its attribute {name!r} was read")


class ProxyMethod:
    """``proxy.name``, waiting to be called by transformed code."""

    __slots__ = ("name", "proxy")

    def __init__(self, proxy: Proxy, name: str) -> None:
        self.proxy = proxy
        self.name = name

    def __call__(self, *_arguments: Any, **_keywords: Any) -> Any:
        raise _escaped(self.proxy, f"its method {self.name!r} was called")

    def __getattr__(self, name: str) -> Any:
        raise _escaped(self.proxy, f"attribute {name!r} of its method {self.name!r} was read")


class Grown:
    """Stands in a list of the capture's for all items of ``items``, a list that is known only when the program runs."""

    __slots__ = ("_items",)
    _items: Proxy

    def __init__(self, items: Proxy) -> None:
        object.__setattr__(self, "_items", items)

    def __getattribute__(self, name: str) -> Any:
        raise _escaped(object.__getattribute__(self, "_items"), f"attribute {name!r} of its items was read")


def items_of(grown: Grown) -> Proxy:
    """The list whose items ``grown`` stands for."""
    return object.__getattribute__(grown, "_items")


def symbol(proxy: Proxy) -> Symbol:
    """What ``proxy`` stands for."""
    return object.__getattribute__(proxy, "_symbol")


def is_proxy(value: object) -> bool:
    """Whether ``value`` is a Proxy; asks for its type only, which is the one safe question."""
    return type(value) is Proxy


def is_scalar(value: object) -> bool:
    """Whether ``value`` is, or will be, a text, a number, a bool or None."""
    return symbol(value).is_scalar if type(value) is Proxy else type(value) in _SCALARS


def holds_proxy(value: object, depth: int = 8) -> bool:
    """Whether a Proxy is in ``value`` or in a list, tuple, set or dict in it, ``depth`` levels down."""
    kind = type(value)
    if kind is Proxy or kind is ProxyMethod or kind is Grown:
        return True
    if kind in (list, tuple, set, frozenset):
        return depth > 0 and any(holds_proxy(entry, depth - 1) for entry in value)  # type: ignore[attr-defined]
    if kind is dict:
        entries: Sequence[Any] = list(value.values())  # type: ignore[attr-defined]
        return depth > 0 and any(holds_proxy(entry, depth - 1) for entry in entries)
    return False


def _escaped(proxy: Proxy, what: str) -> BaseException:
    found = symbol(proxy)
    return found.recorder.stop(
        f"{found.origin} is known only when the program runs, but it reached code that lmc does not transform: {what}",
        "use it in the jitted function itself (f-strings, operators, text methods), or pass it to a tool",
    )


def _guarded(name: str, of: Callable[[Any], Proxy] = lambda proxy: proxy) -> Callable[..., Any]:
    def refuse(self: Any, *_arguments: Any) -> Any:
        raise _escaped(of(self), f"{name} was called on it")

    refuse.__name__ = name
    return refuse


_UNARY = (
    "str repr bytes format hash bool len length_hint iter next reversed int float complex index neg pos abs invert"
    " round trunc floor ceil enter exit await aiter anext call dir sizeof reduce reduce_ex copy deepcopy fspath"
)
_BINARY = "lt le eq ne gt ge contains getitem setitem delitem setattr delattr"
_NUMERIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor"
# What Python may call on an object without being asked for it by name.
SPECIAL_METHODS = (
    *(f"__{name}__" for name in (*_UNARY.split(), *_BINARY.split())),
    *(f"__{prefix}{name}__" for name in _NUMERIC.split() for prefix in ("", "r", "i")),
)
for _name in SPECIAL_METHODS:
    setattr(Proxy, _name, _guarded(_name))
    setattr(Grown, _name, _guarded(_name, items_of))

"""Where two ways through a condition meet, value by value: what each of them yields, and what the condition gives."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.emitting import SCALARS
from lmc.frontend.growing import as_value
from lmc.frontend.proxy import Proxy, Symbol, symbol
from lmc.frontend.regions import Ended
from lmc.frontend.sizes import is_too_large
from lmc.ir.core import Value
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, Type, holds_context, type_of

# What a way yields for a value of which nothing is known there, because nothing will ask for it.
UNUSED: dict[Type, Any] = {TEXT: "", INT: 0, FLOAT: 0.0, BOOL: False, NONE: None, ANY: None}

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


class NotOneError(Exception):
    """A value can't be handed out of one way, because the other one has nothing to yield in its place."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way through a condition: the values of the names it may bind, in order, and the region it was traced in.

    ``values`` is None where it left the program.
    """

    values: tuple[Any, ...] | None
    ended: Ended


class Meeting:
    """Two ways through a condition on ``flag``: ``yields`` of each, and ``results``, what the condition gives."""

    def __init__(self, recorder: Recorder, flag: Proxy, ways: tuple[Way, Way]) -> None:
        self._recorder = recorder
        self.flag = flag
        self.ways = ways
        self.yields: tuple[list[Any], list[Any]] = ([], [])
        self.results: list[Value] = []
        self._known: dict[tuple[Any, ...], Value] = {}

    def leaves(self, side: int) -> bool:
        """Whether that way has left the program."""
        return self.ways[side].values is None

    def chosen(self, left: Any, right: Any, name: str) -> Proxy:
        """A scalar that is ``left`` on one way and ``right`` on the other."""
        if left is True and right is False:
            return self.flag
        irs = (self.ir(0, left), self.ir(1, right))
        types = [part.type if isinstance(part, Value) else type_of(part) for part in irs]
        kind = types[0] if types[0] == types[1] else ANY
        symbols = [symbol(part) for part in (left, right) if type(part) is Proxy]
        return Proxy(
            Symbol(
                self._recorder,
                kind,
                self._result(irs, kind),
                f"{name}, which depends on a condition" if not symbols else symbols[0].origin,
                volatile=any(part.volatile for part in symbols),
                constant=any(is_constant(part) for part in (left, right)),
                scalar=all(map(is_plain, (left, right))),
            )
        )

    def context(self, left: Value, right: Value) -> Value:
        """The context that is ``left`` on one way and ``right`` on the other."""
        if left == right:
            return left
        self._check_seen(0, left)
        self._check_seen(1, right)
        return self._result((left, right), left.type)

    def handed(self, side: int, ir: Any, kind: Type) -> Value:
        """What one way alone knows. Raises ``NotOneError`` where the other one goes on and could yield nothing."""
        other: Any = None
        if not self.leaves(1 - side):
            if holds_context(kind):
                raise NotOneError
            other = UNUSED.get(kind)
            kind = kind if kind in UNUSED else ANY
        return self._result((other, ir) if side else (ir, other), kind)

    def ir(self, side: int, value: Any, element: Type | None = None) -> Any:
        """``value`` as one way yields it; what it has to be made of is made there.

        ``element`` is what the items of a list are.
        """
        if type(value) in SCALARS and not is_too_large(value):
            return value
        self._recorder.regions.reopen(self.ways[side].ended.region)
        value = value if element is None else as_value(self._recorder, value, element)
        found = self._recorder.operand(value).ir
        self._recorder.regions.close()
        if isinstance(found, Value):
            self._check_seen(side, found)
        return found

    def _check_seen(self, side: int, value: Value) -> None:
        regions = self._recorder.regions
        regions.reopen(self.ways[side].ended.region)
        self._recorder.check_seen(value)
        regions.close()

    def _result(self, irs: tuple[Any, Any], kind: Type) -> Value:
        left, right = irs
        key = (type(left), repr(left)), (type(right), repr(right)), kind
        if key not in self._known:
            for held, part in zip(self.yields, irs, strict=True):
                held.append(part)
            self._known[key] = Value(self._recorder.builder.fresh_name(), kind)
            self.results.append(self._known[key])
        return self._known[key]


def is_scalar(value: Any) -> bool:
    """Whether ``value`` is symbolic, or a constant that never changes."""
    return type(value) is Proxy or type(value) in SCALARS or isinstance(value, enum.Enum)


def is_constant(value: Any) -> bool:
    """Whether it is an object of the user's which has no literal."""
    return symbol(value).constant if type(value) is Proxy else type(value) not in SCALARS


def is_plain(value: Any) -> bool:
    """Whether it is a text, a number, a bool or None, now or when the program runs."""
    return type(value) in SCALARS or (type(value) is Proxy and symbol(value).is_scalar)

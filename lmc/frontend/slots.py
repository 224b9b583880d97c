"""Places that a round of a traced loop may change: a name, a variable of a state, an item of a list, a context.

Each slot begins as one that stays the same. Where a round leaves something else in it, it becomes a value that the loop
carries, of the type of both; where what is left can't be such a value, its name is unclear. Slots only ever move in
this direction, so that there is an end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.emitting import SCALARS
from lmc.frontend.meeting import UNUSED, is_constant, is_plain, is_scalar
from lmc.frontend.proxy import Proxy, Symbol, symbol
from lmc.frontend.unclear import ABSENT, Maybe, Unclear
from lmc.ir.core import Value
from lmc.ir.types import ANY, BOOL, CTX, Type, type_of

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


@dataclass(frozen=True)
class Kind:
    """What is known of a carried value in every round."""

    type: Type
    origin: str
    volatile: bool = False
    constant: bool = False
    scalar: bool = True

    def with_(self, other: Kind) -> Kind:
        """What is known of one that may be either."""
        return Kind(
            self.type if self.type == other.type else ANY,
            self.origin,
            self.volatile or other.volatile,
            self.constant or other.constant,
            self.scalar and other.scalar,
        )

    def proxy(self, recorder: Recorder, value: Value) -> Proxy:
        """Such a value."""
        return Proxy(
            Symbol(
                recorder,
                self.type,
                value,
                self.origin,
                volatile=self.volatile,
                constant=self.constant,
                scalar=self.scalar,
            )
        )


class Slot:
    """A place, called ``name``, that holds ``entry`` before the first round.

    ``kind`` is None as long as each round leaves it as it is. ``maybe`` says that there may be nothing in it,
    ``unclear`` that what rounds leave in it is no value of the graph.
    """

    def __init__(self, name: str, entry: Any) -> None:
        self.name = name
        self.entry = entry
        self.kind: Kind | None = None
        self.maybe = False
        self.unclear = False

    @property
    def types(self) -> tuple[Type, ...]:
        """Types of the values that are carried for it."""
        if self.kind is None or self.unclear:
            return ()
        return (BOOL, self.kind.type) if self.maybe else (self.kind.type,)

    def value(self, recorder: Recorder, carried: tuple[Value, ...]) -> Any:
        """What it holds, given those values."""
        if self.unclear:
            return Unclear(self.name)
        if self.kind is None:
            return self.entry
        content = self.kind.proxy(recorder, carried[-1])
        if not self.maybe:
            return content
        return Maybe(Proxy(Symbol(recorder, BOOL, carried[0], f"whether there is {self.name}")), content)

    def given(self, value: Any) -> tuple[Any, ...]:
        """What is carried where it holds ``value``."""
        if self.kind is None or self.unclear:
            return ()
        if not self.maybe:
            return (value,)
        if value is ABSENT:
            return (False, UNUSED.get(self.kind.type))
        return (value.present, value.value) if type(value) is Maybe else (True, value)

    def take(self, value: Any, inside: Any) -> bool:
        """A round that began with ``inside`` has left ``value``; gives whether that is new."""
        if self.unclear or value is inside or _same(value, inside):
            return False
        before = (self.kind, self.maybe)
        parts = [part.value if type(part) is Maybe else part for part in (self.entry, value)]
        self.maybe = self.maybe or any(type(part) is Maybe or part is ABSENT for part in (self.entry, value))
        held = [part for part in parts if part is not ABSENT]
        if not all(map(is_scalar, held)):
            self.unclear = True
            return True
        for part in held:
            kind = _kind_of(part, self.name)
            self.kind = kind if self.kind is None else self.kind.with_(kind)
        if self.kind is not None and self.maybe and self.kind.type not in UNUSED:
            self.kind = self.kind.with_(Kind(ANY, self.name))
        return (self.kind, self.maybe) != before


class ContextSlot(Slot):
    """The context of a state."""

    def __init__(self, entry: Value) -> None:
        super().__init__("a context", entry)
        self._carried = False

    @property
    def types(self) -> tuple[Type, ...]:
        return (CTX,) if self._carried else ()

    def value(self, recorder: Recorder, carried: tuple[Value, ...]) -> Any:  # noqa: ARG002
        return carried[0] if self._carried else self.entry

    def given(self, value: Any) -> tuple[Any, ...]:
        return (value,) if self._carried else ()

    def take(self, value: Any, inside: Any) -> bool:
        if self._carried or value == inside:
            return False
        self._carried = True
        return True


def _kind_of(value: Any, name: str) -> Kind:
    if type(value) is not Proxy:
        kind = type_of(value) if type(value) in SCALARS else ANY
        return Kind(kind, f"{name}, which a loop changes", constant=is_constant(value))
    found = symbol(value)
    return Kind(found.type, found.origin, found.volatile, found.constant, is_plain(value))


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and type(left) in SCALARS and repr(left) == repr(right)

"""Places that a round of a traced loop may change: a name, a variable of a state, an item of a list, a context.

Each slot begins as one that stays the same. Where a round leaves something else in it, it becomes a value that the loop
carries, of the type of both; where what is left can't be such a value, its name is unclear. Slots only ever move in
this direction, so that there is an end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.emitting import SCALARS
from lmc.frontend.growing import element_type, is_flat_list, is_volatile
from lmc.frontend.meeting import UNUSED, is_constant, is_plain, is_scalar
from lmc.frontend.proxy import Grown, Proxy, Symbol, symbol
from lmc.frontend.unclear import ABSENT, Maybe, Unclear
from lmc.ir.core import Value
from lmc.ir.types import ANY, BOOL, CTX, INT, Type, list_of, type_of

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
        self.parts: list[Slot] = []
        self.items: ListSlot | None = None

    def numbers(self) -> None:
        """Take from the first round on that it holds the number of the round."""
        self.kind = Kind(INT, self.name)

    @property
    def types(self) -> tuple[Type, ...]:
        """Types of the values that are carried for it."""
        if self.items is not None and not self.unclear:
            return self.items.types
        if self.parts and not self.unclear:
            return tuple(kind for part in self.parts for kind in part.types)
        if self.kind is None or self.unclear:
            return ()
        return (BOOL, self.kind.type) if self.maybe else (self.kind.type,)

    def value(self, recorder: Recorder, carried: tuple[Value, ...]) -> Any:
        """What it holds, given those values."""
        if self.unclear:
            return Unclear(self.name)
        if self.items is not None:
            recorder.freeze(self.entry)
            return recorder.freeze(self.items.value(recorder, carried))
        if self.parts:
            left = iter(carried)
            return tuple(part.value(recorder, tuple(next(left) for _ in part.types)) for part in self.parts)
        if self.kind is None:
            return self.entry
        content = self.kind.proxy(recorder, carried[-1])
        if not self.maybe:
            return content
        return Maybe(Proxy(Symbol(recorder, BOOL, carried[0], f"whether there is {self.name}")), content)

    def given(self, value: Any) -> tuple[Any, ...]:
        """What is carried where it holds ``value``."""
        if self.items is not None and not self.unclear:
            return self.items.given(value)
        if self.parts and not self.unclear:
            return tuple(ir for part, held in zip(self.parts, value, strict=True) for ir in part.given(held))
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
        if type(value) is type(self.entry) is tuple and len(value) == len(self.entry) and value:
            return self._take_parts(value, inside)
        if is_flat_list(value) and is_flat_list(self.entry):
            new = self.items is None
            self.items = self.items or ListSlot(self.name, self.entry)
            return self.items.take(value, inside) or new
        if self.parts or self.items is not None:
            self.unclear = True
            return True
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

    def _take_parts(self, value: tuple[Any, ...], inside: tuple[Any, ...]) -> bool:
        if not self.parts:
            self.parts = [Slot(self.name, part) for part in self.entry]
        taken = [part.take(*held) for part, *held in zip(self.parts, value, inside, strict=True)]
        self.unclear = any(part.unclear for part in self.parts)
        return any(taken)


@dataclass(frozen=True)
class Items:
    """A list to be made one value, whose elements are of type ``element``."""

    items: list[Any]
    element: Type


class ListSlot(Slot):
    """A list whose items only a run decides: ``entry`` is what it holds before the first round.

    A value of it is what the list holds, too.
    """

    def __init__(self, name: str, entry: list[Any]) -> None:
        super().__init__(name, entry)
        self._element: Type | None = None
        self._volatile = False
        self._look_at(entry)

    @property
    def types(self) -> tuple[Type, ...]:
        return (list_of(self._element or ANY),)

    def value(self, recorder: Recorder, carried: tuple[Value, ...]) -> Any:
        recorder.grows = True
        origin = f"{self.name}, which grows in a loop"
        return [Grown(Proxy(Symbol(recorder, carried[0].type, carried[0], origin, volatile=self._volatile)))]

    def given(self, value: Any) -> tuple[Any, ...]:
        return (Items(value, self._element or ANY),)

    def take(self, value: Any, inside: Any) -> bool:  # noqa: ARG002
        before = (self._element, self._volatile)
        self._look_at(value)
        return (self._element, self._volatile) != before

    def _look_at(self, items: list[Any]) -> None:
        self._volatile = self._volatile or is_volatile(items)
        found = element_type(items)
        if found is not None:
            self._element = found if self._element in (None, found) else ANY


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

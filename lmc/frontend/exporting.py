"""What is known on one way through a condition alone, handed out to what comes behind it."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lmc.frontend.branches import Branches
from lmc.frontend.core import Core
from lmc.frontend.meeting import Way
from lmc.frontend.pairing import Pairs
from lmc.frontend.proxy import Grown, Proxy, ProxyMethod, Symbol, items_of, symbol
from lmc.frontend.regions import put_back
from lmc.frontend.state import State
from lmc.frontend.unclear import ABSENT, Maybe, one_or_unsure
from lmc.frontend.unknown_branches import UnknownBranches
from lmc.ir.core import Value
from lmc.ir.types import CTX, INT

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


class Exporter(Pairs):
    """The part of ``Merger`` that hands out what one way has."""

    def __init__(self, recorder: Recorder, flag: Proxy, ways: tuple[Way, Way]) -> None:
        super().__init__(recorder, flag, ways)
        self._handed: dict[int, tuple[Any, Any]] = {}

    def handed_out(self, side: int, value: Any) -> Any:
        """``value`` of one way, with what it is made of visible here. Lists, dicts and handles are changed in place.

        Raises ``NotOneError`` where the other way would have to give a context in its place.
        """
        kind = type(value)
        if kind is Proxy:
            return self._proxy_handed_out(side, value)
        if kind is Grown:
            items = self._proxy_handed_out(side, items_of(value))
            return value if items is items_of(value) else Grown(items)
        if kind is Maybe:
            return Maybe(self.handed_out(side, value.present), self.handed_out(side, value.value))
        if kind is ProxyMethod:
            return ProxyMethod(self.handed_out(side, value.proxy), value.name)
        if not (issubclass(kind, (State, Branches)) or kind in (list, dict, tuple, Core)):
            return value
        one = self.become_one(side, value)
        if one is not None:
            return one
        if id(value) not in self._handed:
            self._handed[id(value)] = (value, value)
            self._handed[id(value)] = (value, self._parts_replaced(side, value))
        return self._handed[id(value)][1]

    def parts_handed_out(self, side: int, content: Any, before: Any = ()) -> Any:
        """The content of a list or dict, which was ``before`` when the way began."""
        if type(content) is dict:
            old = before or {}
            return {
                key: value if value is old.get(key, ABSENT) else self.handed_out(side, value)
                for key, value in content.items()
            }
        pairs = zip_longest(content, before[: len(content)], fillvalue=ABSENT)
        return [value if value is old else self.handed_out(side, value) for value, old in pairs]

    def core_handed_out(self, side: int, core: Core, before: Core | None = None) -> Core:
        """What ``core`` is, which was ``before`` when the way began."""
        made = core.like()
        if not self._recorder.regions.sees(core.context):
            made.context = self.handed(side, core.context, CTX)
        made.answer = one_or_unsure(core.answer, None if before is None else before.answer)
        made.variables = self.parts_handed_out(side, core.variables, None if before is None else before.variables)
        made.metas = self.parts_handed_out(side, core.metas, None if before is None else before.metas)
        return made

    def number_handed_out(self, side: int, number: int) -> Proxy:
        """A number that is known, as a value of the graph."""
        return Proxy(Symbol(self._recorder, INT, self.handed(side, number, INT), "how often a name was used"))

    def _parts_replaced(self, side: int, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            parts = tuple(self.handed_out(side, part) for part in value)
            return parts if _differ(parts, value) else value
        if kind in (list, dict):
            content = self.parts_handed_out(side, value)
            if _differ(_entries(content), _entries(value)):
                self._recorder.touch(value)
                put_back(value, content)
        elif kind is Core:
            content = self.core_handed_out(side, value)
            self._recorder.touch(value)
            value.take(content)
        elif issubclass(kind, State):
            self.handed_out(side, value.core)
        elif issubclass(kind, UnknownBranches):
            value.hand_out(lambda one: self._value_handed_out(side, one), self.handed_out(side, value.size))
            self.handed_out(side, value.template)
        else:
            for state in value.handles:
                self.handed_out(side, state)
        return value

    def _proxy_handed_out(self, side: int, proxy: Proxy) -> Proxy:
        found = symbol(proxy)
        if self._is_seen(proxy):
            return proxy
        value = self.handed(side, self.ir(side, proxy), found.type)
        return Proxy(
            Symbol(
                self._recorder,
                value.type,
                value,
                found.origin,
                found.expression,
                volatile=found.volatile,
                constant=found.constant,
                scalar=found.is_scalar,
            )
        )

    def _value_handed_out(self, side: int, value: Value) -> Value:
        return value if self._recorder.regions.sees(value) else self.handed(side, value, value.type)

    def _is_seen(self, proxy: Proxy) -> bool:
        found = symbol(proxy)
        if found.value is not None:
            return self._recorder.regions.sees(found.value)
        return all(type(part) is str or self._is_seen(part) for part in found.parts)


def _entries(content: Any) -> list[Any]:
    return list(content.values()) if type(content) is dict else content


def _differ(new: Any, old: Any) -> bool:
    return any(one is not other for one, other in zip(new, old, strict=True))

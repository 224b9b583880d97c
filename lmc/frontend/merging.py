"""Where the two ways of a condition meet: what each left behind becomes one state.

What is the same on both ways stays. Values that differ become results of the condition. Objects older than the
condition are merged part by part with themselves. What can't be merged is no longer known under its name (``Unclear``):
to read it ends the capture there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmc.frontend.branches import Branches
from lmc.frontend.emitting import SCALARS
from lmc.frontend.proxy import Proxy, Symbol, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.regions import Ended, put_back
from lmc.frontend.state import Core, State
from lmc.frontend.unclear import Maybe, Unclear
from lmc.ir.core import Value
from lmc.ir.types import ANY, CTX, Type, type_of

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Way:
    """One way through a condition: the values of the names it may bind, in order, and the region it was traced in."""

    values: tuple[Any, ...]
    ended: Ended


class Merger:
    """Merges two ways; one of them may be None: it left the program. ``results`` are what the condition gives."""

    def __init__(self, recorder: Recorder, then: Way | None, otherwise: Way | None) -> None:
        self._recorder = recorder
        self._ways = (then, otherwise)
        self.yields: tuple[list[Any], list[Any]] = ([], [])
        self.results: list[Value] = []
        self._known: dict[tuple[Any, Any], Value] = {}
        self._moved: dict[int, tuple[Any, Any]] = {}

    def merge(self, names: tuple[str, ...]) -> tuple[Any, ...]:
        """The values of ``names`` behind the condition; handles, containers and counts are changed to what they are."""
        for held, contents in self._objects():
            self._recorder.touch(held)
            put_back(held, self._content(held, *contents))
        self._merge_counts()
        alive = [way for way in self._ways if way is not None]
        if len(alive) == 1:
            return tuple(self._moved_out(value) for value in alive[0].values)
        then, otherwise = alive
        pairs = zip(names, then.values, otherwise.values, strict=True)
        return tuple(self._value(left, right, name) for name, left, right in pairs)

    # What both ways changed

    def _objects(self) -> list[tuple[Any, tuple[Any, Any]]]:
        found: dict[int, Any] = {}
        for way in self._ways:
            if way is not None:
                found.update((key, held) for key, (held, _) in way.ended.objects.items())
        return [(held, tuple(self._end_of(way, held) for way in self._ways)) for held in found.values()]

    def _end_of(self, way: Way | None, held: Any) -> Any:
        if way is None:
            return None
        return way.ended.objects.get(id(held), (held, held))[1]

    def _content(self, held: Any, left: Any, right: Any) -> Any:
        if left is None or right is None:
            content: Any = right if left is None else left
            return self._moved_core(content) if type(held) is Core else self._moved_parts(content)
        if type(held) is Core:
            return self._core(left, right)
        if type(held) is list and len(left) == len(right):
            return [self._value(*pair, "an item of a list") for pair in zip(left, right, strict=True)]
        if type(held) is dict and list(left) == list(right):
            return {key: self._value(left[key], right[key], f"the entry {key!r}") for key in left}
        if type(held) is set and left == right:
            return set(left)
        raise self._recorder.stop(
            f"a {type(held).__name__} has another length or other keys on one way through this condition than on the "
            "other",
            "put in a text on both ways, or bind a new one",
        )

    def _core(self, left: Core, right: Core) -> Core:
        made = left.copy()
        made.context = self._context(left.context, right.context)
        if (left.chat, left.bare) != (right.chat, right.bare):
            raise self._recorder.stop(
                "on one way through this condition the state has roles, or text without a role, and not on the other",
                "begin the state the same way on both: with a message, or with text",
            )
        made.unsure = left.unsure or right.unsure
        names = [*left.variables, *(name for name in right.variables if name not in left.variables)]
        made.variables = {
            name: self._variable(left.variables.get(name, _ABSENT), right.variables.get(name, _ABSENT), name)
            for name in names
        }
        made.metas = {
            name: self._value(left.metas.get(name), right.metas.get(name), f"the meta data of {name!r}")
            for name in (*left.metas, *(name for name in right.metas if name not in left.metas))
        }
        return made

    def _variable(self, left: Any, right: Any, name: str) -> Any:
        if left is right:
            return left
        if not any(value is _ABSENT or type(value) is Maybe for value in (left, right)):
            return self._value(left, right, f"the variable {name!r}")
        present = self._value(_presence(left), _presence(right), name)
        return Maybe(present, self._value(_content(left), _content(right), name))

    def _merge_counts(self) -> None:
        counts = self._recorder.counts
        bases: dict[Any, None] = {}
        for way in self._ways:
            if way is not None:
                bases.update(dict.fromkeys(way.ended.counts))
        for base in bases:
            ends = [None if way is None else way.ended.counts.get(base, counts.get(base, 0)) for way in self._ways]
            if "/@" in base[0]:  # calls of host functions are told apart by where they stand
                merged = max(end for end in ends if end is not None)
            elif any(end is None for end in ends):
                merged = self._moved_out(ends[1] if ends[0] is None else ends[0])
            else:
                merged = self._value(ends[0], ends[1], str(base))
            self._recorder.regions.touch_count(base)
            counts[base] = merged

    # One value

    def _value(self, left: Any, right: Any, name: str) -> Any:
        if left is right or (type(left) is type(right) and type(left) in SCALARS and repr(left) == repr(right)):
            return left
        if _is_scalar(left) and _is_scalar(right):
            return self._phi(left, right, name)
        if type(left) is tuple and type(right) is tuple and len(left) == len(right):
            return tuple(self._value(one, other, name) for one, other in zip(left, right, strict=True))
        return Unclear(name)

    def _phi(self, left: Any, right: Any, name: str) -> Proxy:
        irs = (self._ir(0, left), self._ir(1, right))
        types = [part.type if isinstance(part, Value) else type_of(part) for part in irs]
        kind = types[0] if types[0] == types[1] else ANY
        value = self._result(irs, kind)
        symbols = [symbol(part) for part in (left, right) if type(part) is Proxy]
        return Proxy(
            Symbol(
                self._recorder,
                kind,
                value,
                f"{name}, which depends on a condition" if not symbols else symbols[0].origin,
                volatile=any(found.volatile for found in symbols),
                constant=any(found.constant for found in symbols),
            )
        )

    def _context(self, left: Value, right: Value) -> Value:
        return left if left == right else self._result((left, right), CTX)

    def _result(self, irs: tuple[Any, Any], kind: Type) -> Value:
        left, right = irs
        key = (type(left), repr(left)), (type(right), repr(right))
        if key not in self._known:
            for held, part in zip(self.yields, irs, strict=True):
                held.append(part)
            self._known[key] = Value(self._recorder.builder.fresh_name(), kind)
            self.results.append(self._known[key])
        return self._known[key]

    def _ir(self, side: int, value: Any) -> Any:
        way = self._ways[side]
        assert way is not None
        with self._recorder.regions.reopened(way.ended.region):
            return self._recorder.operand(value).ir

    # Of the only way that goes on, what was made there is handed out

    def _moved_out(self, value: Any) -> Any:
        kind = type(value)
        if kind is Proxy:
            return self._exported(value)
        handle = issubclass(kind, State)
        if handle or issubclass(kind, Branches) or kind in (list, dict, tuple, set, Core):
            known = self._moved.get(id(value))
            if known is not None:
                return known[1]
            self._moved[id(value)] = (value, value)
        if kind is tuple:
            parts = tuple(self._moved_out(part) for part in value)
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                self._moved[id(value)] = (value, parts)
                return parts
        elif kind in (list, dict):
            content = self._moved_parts(value)
            if any(new is not old for new, old in zip(_entries(content), _entries(value), strict=True)):
                self._recorder.touch(value)
                put_back(value, content)
        elif issubclass(kind, Branches):
            for state in value.handles:
                self._moved_out(state)
        elif handle:
            self._moved_out(value.core)
        elif kind is Core:
            content = self._moved_core(value)
            self._recorder.touch(value)
            value.take(content)
        elif kind is Maybe:
            return Maybe(self._moved_out(value.present), self._moved_out(value.value))
        return value

    def _moved_parts(self, content: Any) -> Any:
        if type(content) is dict:
            return {key: self._moved_out(value) for key, value in content.items()}
        if type(content) is list:
            return [self._moved_out(value) for value in content]
        return content

    def _moved_core(self, core: Core) -> Core:
        made = core.copy()
        if not self._recorder.regions.sees(core.context):
            made.context = self._hand_out(core.context, CTX)
        made.variables = {name: self._moved_out(value) for name, value in core.variables.items()}
        made.metas = {name: self._moved_out(value) for name, value in core.metas.items()}
        return made

    def _exported(self, proxy: Proxy) -> Proxy:
        found = symbol(proxy)
        if found.value is not None and self._recorder.regions.sees(found.value):
            return proxy
        if found.value is None and all(type(part) is str or self._seen(part) for part in found.parts):
            return proxy
        side = 0 if self._ways[0] is not None else 1
        value = self._hand_out(self._ir(side, proxy), found.type)
        return Proxy(
            Symbol(
                self._recorder,
                found.type,
                value,
                found.origin,
                found.expression,
                volatile=found.volatile,
                constant=found.constant,
            )
        )

    def _seen(self, proxy: Proxy) -> bool:
        found = symbol(proxy)
        if found.value is not None:
            return self._recorder.regions.sees(found.value)
        return all(type(part) is str or self._seen(part) for part in found.parts)

    def _hand_out(self, ir: Any, kind: Type) -> Value:
        return self._result((ir, None) if self._ways[0] is not None else (None, ir), kind)


def _entries(content: Any) -> list[Any]:
    return list(content.values()) if type(content) is dict else content


def _is_scalar(value: Any) -> bool:
    return type(value) is Proxy or type(value) in SCALARS


def _presence(value: Any) -> Any:
    return value.present if type(value) is Maybe else value is not _ABSENT


def _content(value: Any) -> Any:
    if type(value) is Maybe:
        return value.value
    return None if value is _ABSENT else value

"""What transformed code calls: plain Python on plain operands, recorded ops on symbolic ones.

One ``Operators`` belongs to one run of one program. In a capture its session is a ``Recorder``; in a replay no value is
symbolic, and what a host call answered in the captured part is looked up (``EagerSession.answer``) instead of done again.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.calls import Calls
from lmc.frontend.harmless import is_deeply_harmless, is_harmless
from lmc.frontend.messages import Appendable
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.reads import Reads
from lmc.frontend.recorder import Recorder
from lmc.frontend.state import Branches, RoleBlock, State
from lmc.ir import builtins
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, ListType

_IMMUTABLE_TEXT = (INT, FLOAT, BOOL, NONE)
_CONVERSIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "s": ("str", str),
    "r": ("repr", repr),
    "a": ("ascii", ascii),
}


class Operators(Calls, Reads):
    """The helpers of one transformed function that runs; ``path`` is where its ids begin."""

    ended = CaptureBreak

    # Arithmetic and comparison

    def binary(self, name: str, left: Any, right: Any) -> Any:
        """``left + right`` and the like."""
        tick = self.tick()
        if self.recorder is None:
            return self.served(tick, _BINARY[name], left, right)
        if type(left) is Proxy or type(right) is Proxy:
            return self.done(tick, self._symbolic_binary(self.recorder, name, left, right))
        if name == "mod" and type(left) is str and holds_proxy(right):
            return self.done(tick, self._percent(self.recorder, left, right))
        return self.plain(tick, name, _BINARY[name], left, right)

    def inplace(self, name: str, left: Any, right: Any) -> Any:
        """``left += right`` and the like; gives what ``left`` is bound to then."""
        recorder = self.recorder
        if recorder is not None and type(left) is not State:
            if type(left) is list and type(right) is Proxy and name == "iadd":
                right = list(self.iterate(right))
            if id(left) in recorder.foreign:
                raise self.mutation(recorder, left)
            if type(left) is Proxy and isinstance(symbol(left).type, ListType):
                raise self.mutation(recorder, left)
            if type(left) is Proxy or type(right) is Proxy or (name == "imod" and holds_proxy(right)):
                return self.binary(_PLAIN_NAMES[name], left, right)
        tick = self.tick()
        if recorder is None:
            return self.served(tick, _INPLACE[name], left, right)
        if type(left) is State:
            return _INPLACE[name](left, right)
        return self.plain(tick, name, _INPLACE[name], left, right)

    def unary(self, name: str, value: Any) -> Any:
        """``-value`` and the like."""
        return self.operate(name, getattr(operator, name), value)

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """One comparison."""
        if name == "not_contains":
            return self.not_(self.compare("contains", left, right))
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, _COMPARE[name], left, right)
        if name in ("is_", "is_not"):
            return self.done(tick, self._identity(recorder, name, left, right))
        if name == "contains":
            return self.done(tick, self._contains(recorder, tick, left, right))
        if type(left) is Proxy or type(right) is Proxy:
            return self.done(tick, recorder.pure(name, (left, right)))
        return self.plain(tick, name, _COMPARE[name], left, right, deep=True)

    def not_(self, value: Any) -> Any:
        """``not value``."""
        if type(value) is Proxy and self.recorder is not None:
            tick = self.tick()
            return self.done(tick, self.recorder.pure("not", (value,)))
        if self.recorder is None:
            tick = self.tick()
            return self.served(tick, operator.not_, value)
        self.tick()
        return not self.truth(value)

    def truth(self, value: Any) -> bool:
        """Which way a condition goes."""
        recorder = self.recorder
        if recorder is None:
            return bool(value)
        if type(value) is bool:
            return value
        if type(value) is Proxy:
            return bool(recorder.specialise(self._as_bool(recorder, value), "which way the program goes depends on it"))
        if type(value) in (State, Branches) or is_harmless(value):
            self.check_unchanged(recorder, value)
            return bool(value)
        raise self.foreign_operator(recorder, "bool", value)

    # Text

    def fstring(self, *pieces: Any) -> Any:
        """The pieces of an f-string, formatted already."""
        if self.recorder is None:
            return "".join(pieces)
        return self.recorder.concat(pieces)

    def formatted(self, value: Any, conversion: str, spec: Any) -> Any:
        """One ``{value!conversion:spec}`` of an f-string."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, _format, value, conversion, spec)
        if type(value) is Proxy or type(spec) is Proxy:
            return self.done(tick, self.symbolic_format(recorder, value, conversion, spec))
        if holds_proxy(value) and conversion in ("", "s", "r", "a"):
            return self.done(tick, self.symbolic_format(recorder, recorder.pure("str", (value,)), conversion, spec))
        if is_deeply_harmless(value):
            self.check_unchanged(recorder, value)
            return _format(value, conversion, spec)
        return self.done(tick, self.symbolic_format(recorder, recorder.constant(value), conversion, spec))

    # Items

    def slice(self, start: Any, stop: Any, step: Any) -> slice:
        """``start:stop:step``."""
        return slice(start, stop, step)

    def subscript(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, operator.getitem, owner, key)
        if type(owner) in (State, Branches):
            return owner[key]
        symbolic_slice = type(key) is slice and holds_proxy((key.start, key.stop, key.step))
        if type(owner) is Proxy or type(key) is Proxy or symbolic_slice:
            return self.done(tick, self._symbolic_item(recorder, owner, key))
        return self.plain(tick, "getitem", operator.getitem, owner, key)

    def set_subscript(self, owner: Any, key: Any, value: Any) -> None:
        """``owner[key] = value``."""
        owner[self.changed_key(owner, key)] = value

    def delete_subscript(self, owner: Any, key: Any) -> None:
        """``del owner[key]``."""
        del owner[self.changed_key(owner, key)]

    def changed_key(self, owner: Any, key: Any) -> Any:
        """The key under which ``owner`` is to be changed; in a capture only what the capture made may be."""
        recorder = self.recorder
        if recorder is None or type(owner) is Branches:
            return key
        if type(owner) not in (list, dict) or id(owner) in recorder.foreign:
            raise self.mutation(recorder, owner)
        if type(owner) is list and type(key) is slice:
            return slice(*(recorder.concrete(part) for part in (key.start, key.stop, key.step)))
        return recorder.concrete(key)

    # Iteration

    def iterate(self, items: Any) -> Iterable[Any]:
        """What ``for`` goes over."""
        recorder = self.recorder
        if recorder is None:
            return items
        if type(items) is Proxy:
            return self._symbolic_items(recorder, items)
        if type(items) is Branches:
            return items
        self.check_iterable(recorder, items)
        return items

    def each(self, items: Any, spec: tuple[Any, ...]) -> Iterator[Any]:
        """What ``for a, b in items`` goes over: items that Python can unpack."""
        for item in self.iterate(items):
            yield item if self.recorder is None else self._spread(item, spec)

    def unpack(self, value: Any, spec: tuple[Any, ...]) -> Iterable[Any]:
        """``a, b = value``: something that Python can unpack."""
        recorder = self.recorder
        if recorder is None:
            return value
        if type(value) is Proxy:
            return self._items_for(recorder, value, spec)
        return self.iterate(value)

    def mapping(self, value: Any) -> Any:
        """What stands after ``**``."""
        recorder = self.recorder
        if recorder is not None and type(value) is not dict:
            raise recorder.stop(
                f"a {self.describe(value)} stands after `**`", "name the arguments, or take them from a dict made here"
            )
        return value

    # Blocks

    @property
    def protected(self) -> AbstractContextManager[Any]:
        """A block in which an exception would be caught, or seen by a ``finally``."""
        return contextlib.nullcontext() if self.recorder is None else _Protected(self.recorder)

    def runs_on(self) -> bool:
        """Whether this run has not ended: a ``finally`` must not run because of a capture's end."""
        return self.recorder is None or self.recorder.broken is None

    def manage(self, manager: Any) -> Any:
        """What stands after ``with``."""
        recorder = self.recorder
        if recorder is not None and type(manager) is not RoleBlock:
            raise recorder.stop(
                f"`with` on a {self.describe(manager)} runs its own code",
                "open it inside a tool, or outside of the program",
            )
        return manager

    def subject(self, value: Any) -> Any:
        """What ``match`` looks at."""
        recorder = self.recorder
        if recorder is None:
            return value
        if type(value) is Proxy:
            return recorder.specialise(value, "`match` looks at it")
        if holds_proxy(value):
            raise recorder.stop(
                "`match` looks into values that are known only when the program runs", "compare them with =="
            )
        if not is_deeply_harmless(value):
            raise self.foreign_operator(recorder, "match", value)
        return value

    def exception(self, value: Any) -> Any:
        """What stands after ``raise``, ``from`` or ``except``."""
        if self.recorder is not None and holds_proxy(value):
            raise self.recorder.stop("an exception that is made when the program runs", "nothing has to change")
        return value

    # Symbolic operands

    def operate(self, name: str, python: Callable[..., Any], *operands: Any) -> Any:
        """A pure builtin of that name over operands, plain or symbolic."""
        tick = self.tick()
        if self.recorder is None:
            return self.served(tick, python, *operands)
        if any(type(operand) is Proxy for operand in operands):
            return self.done(tick, self.builtin(self.recorder, name, *operands))
        return self.plain(tick, name, python, *operands)

    def plain(self, tick: int, name: str, python: Callable[..., Any], *operands: Any, deep: bool = False) -> Any:
        """Python's own operation, where it runs no code of the user's; else a host call in its place."""
        recorder = self.recorder
        assert recorder is not None
        for operand in operands:
            if type(operand) in (State, Branches) or isinstance(operand, Appendable):
                continue
            if not (is_deeply_harmless(operand) if deep and not holds_proxy(operand) else is_harmless(operand)):
                return self.done(tick, self.foreign(recorder, name, operands))
            self.check_unchanged(recorder, operand)
        return python(*operands)

    def builtin(self, recorder: Recorder, name: str, *operands: Any) -> Any:
        """The builtin ``name`` as an op. Breaks where there is none."""
        if builtins.lookup(name) is None:
            raise recorder.stop(
                f"`{name}` has no counterpart in the graph, and an operand is known only when the program runs",
                "do it in a tool",
            )
        return recorder.pure(name, operands)

    def _symbolic_binary(self, recorder: Recorder, name: str, left: Any, right: Any) -> Any:
        for operand in (left, right):
            if type(operand) is not Proxy and isinstance(operand, Appendable):
                return operand + right if operand is left else operand.__radd__(left)
        if name == "add" and _is_text(left) and _is_text(right):
            return recorder.concat((left, right))
        if name == "mod" and _is_text(left):
            return self._percent(recorder, left, right)
        return self.builtin(recorder, name, left, right)

    def _percent(self, recorder: Recorder, template: Any, values: Any) -> Any:
        if type(values) is tuple:
            return recorder.pure("percent", (template, *values))
        return recorder.pure("mod", (template, values))

    def _identity(self, recorder: Recorder, name: str, left: Any, right: Any) -> Any:
        if type(left) is not Proxy and type(right) is not Proxy:
            return _COMPARE[name](left, right)
        if left is right:
            return name == "is_"
        value, other = (left, right) if type(left) is Proxy else (right, left)
        kind = symbol(value).type
        if other is None or other is True or other is False:
            if kind in (TEXT, INT, FLOAT) or isinstance(kind, ListType) or (kind == BOOL and other is None):
                return name == "is_not"
            return recorder.pure("is" if name == "is_" else "is_not", (value, other))
        raise recorder.stop(
            "`is` asks whether two values are one object, which a value that is known only when the program runs can't say",
            "compare with ==",
        )

    def _contains(self, recorder: Recorder, tick: int, item: Any, container: Any) -> Any:
        if type(container) is State:
            return item in container
        if type(container) is Proxy:
            return recorder.pure("contains", (container, item))
        self.check_unchanged(recorder, container)
        if type(item) is not Proxy and not (type(container) in (list, tuple) and holds_proxy(container)):
            return self.plain(tick, "contains", _contains_plain, item, container, deep=True)
        if type(container) is str:
            return recorder.pure("contains", (container, item))
        if type(container) in (list, tuple, set, frozenset, dict):
            if type(container) in (set, frozenset, dict) and symbol(item).type not in (TEXT, *_IMMUTABLE_TEXT):
                raise recorder.stop(f"a lookup of a {symbol(item).type} in a {type(container).__name__}", "use a list")
            return recorder.pure("contains", (tuple(container), item))
        raise self.foreign_operator(recorder, "in", container)

    def symbolic_format(self, recorder: Recorder, value: Any, conversion: str, spec: Any) -> Any:
        """``format(value, spec)`` after the conversion, where a part is symbolic."""
        if conversion:
            value = (
                self.text_of(recorder, value)
                if conversion == "s"
                else recorder.pure(_CONVERSIONS[conversion][0], (value,))
            )
        if type(spec) is str and not spec:
            return self.text_of(recorder, value, "format")
        return recorder.pure("format", (value, spec))

    def filtered(self, function: Any, items: Iterable[Any]) -> Iterator[Any]:
        """``filter(function, items)``."""
        return (item for item in items if self.truth(item if function is None else self.call(function, item)))

    def _symbolic_item(self, recorder: Recorder, owner: Any, key: Any) -> Any:
        if type(owner) is not Proxy:
            self.check_unchanged(recorder, owner)
            if type(owner) not in (str, list, tuple, dict):
                raise recorder.stop(
                    f"an item of a {self.describe(owner)} is looked up by a value that is known only when the program runs",
                    "look it up in a list or a dict",
                )
        if type(key) is not slice:
            return recorder.pure("getitem", (owner, key))
        bounds = (key.start, key.stop, key.step)
        if type(owner) in (str, Proxy):
            return recorder.pure("slice", (owner, *bounds))
        return owner[slice(*(recorder.concrete(part) for part in bounds))]

    def _symbolic_items(self, recorder: Recorder, items: Proxy) -> Iterator[Any]:
        count = self._length(recorder, items)
        return (recorder.pure("getitem", (items, index), total=True) for index in range(count))

    def _items_for(self, recorder: Recorder, value: Proxy, spec: tuple[Any, ...]) -> list[Any]:
        count = self._length(recorder, value)
        wanted, star, _nested = spec
        if count != wanted if star is None else count < wanted - 1:
            raise recorder.stop(f"{wanted} names take {count} values apart", "name as many as there are")
        return list(self._symbolic_items(recorder, value))

    def _spread(self, value: Any, spec: tuple[Any, ...]) -> Any:
        recorder = self.recorder
        assert recorder is not None
        if type(value) is Proxy:
            value = self._items_for(recorder, value, spec)
        count, star, nested = spec
        plain = star is None and any(part is not None for part in nested)
        if plain and type(value) in (list, tuple) and len(value) == count:
            return [
                part if inner is None else self._spread(part, inner) for part, inner in zip(value, nested, strict=True)
            ]
        if star is not None and any(part is not None for part in nested) and holds_proxy(value):
            raise recorder.stop(
                "a starred target with others inside it takes symbolic values apart", "unpack in two steps"
            )
        return self.iterate(value)

    def _length(self, recorder: Recorder, items: Proxy) -> int:
        kind = symbol(items).type
        if kind == ANY or (kind != TEXT and not isinstance(kind, ListType)):
            raise recorder.stop(
                f"{symbol(items).origin} is taken item by item, but its items are known only when the program runs",
                "annotate what the tool returns, or use one item at a time: value[0]",
            )
        return recorder.specialise(recorder.length(items), "how often the program goes round depends on it")

    def _as_bool(self, recorder: Recorder, value: Proxy) -> Proxy:
        return value if symbol(value).type == BOOL else recorder.pure("bool", (value,))


class _Protected:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        self._recorder.protected += 1

    def __exit__(self, *_error: object) -> None:
        self._recorder.protected -= 1


def _is_text(value: Any) -> bool:
    return type(value) is str or (type(value) is Proxy and symbol(value).type == TEXT)


def _format(value: Any, conversion: str, spec: str) -> str:
    if conversion:
        value = _CONVERSIONS[conversion][1](value)
    return format(value, spec)


def _contains_plain(item: Any, container: Any) -> bool:
    return item in container


_NAMES = "add sub mul matmul truediv floordiv mod pow lshift rshift and_ or_ xor".split()
_BINARY: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in _NAMES}
_PLAIN_NAMES = {f"i{name.rstrip('_')}": name for name in _NAMES}
_INPLACE: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in _PLAIN_NAMES}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "is_", "is_not")},
    "contains": _contains_plain,
}

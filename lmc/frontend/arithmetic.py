"""Operators between values in transformed code: arithmetic, comparison, and what changes its left side in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lmc.frontend import disorder
from lmc.frontend.harmless import is_harmless
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, Symbol, holds_proxy, is_scalar, symbol
from lmc.frontend.regions import is_iterator
from lmc.frontend.symbolic import Symbolic, contains_plain
from lmc.ir.builtins import lookup
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, JsonType, ListType, type_of


class Arithmetic(Symbolic):
    """The part of ``Operators`` that works values out."""

    def binary(self, name: str, left: Any, right: Any) -> Any:
        """``left + right`` and the like."""
        tick = self.tick()
        if self.recorder is None:
            return self.served(tick, _BINARY[name], left, right)
        if name != "add" or type(left) is Proxy or type(right) is Proxy:
            left, right = self.settled(left), self.settled(right)
        if type(left) is Proxy or type(right) is Proxy:
            found = self._symbolic_binary(self.recorder, name, left, right)
            if type(found) is Proxy and is_scalar(left) and is_scalar(right):
                symbol(found).scalar = True
            return self.done(tick, found)
        if name == "mod" and type(left) is str and holds_proxy(right):
            return self.done(tick, self._percent(self.recorder, left, right))
        return self.recorder.born(self.plain(tick, name, _BINARY[name], left, right))

    def inplace(self, name: str, left: Any, right: Any) -> Any:
        """``left += right`` and the like; gives what ``left`` is bound to then."""
        recorder = self.recorder
        if recorder is not None and not issubclass(type(left), Handle):
            if type(left) is list and type(right) is Proxy and name == "iadd":
                right = self.spread(right)
            if name == "iadd" and type(left) is list and self.is_outside(recorder, left):
                self.tick()
                return self.change_outside(recorder, left.__iadd__, (right,), {})
            if id(left) in recorder.foreign:
                raise self.mutation(recorder, left)
            if type(left) is Proxy and isinstance(symbol(left).type, ListType):
                raise self.mutation(recorder, left)
            if type(left) is Proxy and _may_change(symbol(left)):
                # It may be a list, which changes in place.
                tick = self.tick()
                return self.done(tick, self.call_host(recorder, _INPLACE[name], (left, right), {}, ()))
            if type(left) is not Proxy and not is_harmless(left):
                raise self.mutation(recorder, left)
            if type(left) is Proxy or type(right) is Proxy or (name == "imod" and holds_proxy(right)):
                plain = _PLAIN_NAMES[name]
                return self.binary(plain if _raises_alike(plain, left, right) else name, left, right)
            if type(left) is list and name == "iadd" and disorder.is_disordered(right):
                raise recorder.stop(disorder.CAUSE, disorder.REMEDY)
            if is_iterator(right):
                self.check_iterable(recorder, right)
            if type(left) in (list, dict, set):
                recorder.touch(left)
        tick = self.tick()
        if recorder is None:
            return self.served(tick, _INPLACE[name], left, right)
        if issubclass(type(left), Handle):
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
        left, right = self.settled(left), self.settled(right)
        if name == "contains":
            return self.done(tick, self._contains(recorder, tick, left, right))
        if type(left) is Proxy or type(right) is Proxy:
            return self.done(tick, recorder.pure(name, (left, right)))
        return self.plain(tick, name, _COMPARE[name], left, right)

    def not_(self, value: Any) -> Any:
        """``not value``."""
        value = self.settled(value)
        if type(value) is Proxy and self.recorder is not None and symbol(value).type != NONE:
            tick = self.tick()
            return self.done(tick, self.recorder.pure("not", (value,)))
        if self.recorder is None:
            tick = self.tick()
            return self.served(tick, operator.not_, value)
        self.tick()
        return not self.truth(value)


def _may_change(found: Symbol) -> bool:
    """Whether a value may be a list, which an operator like ``+=`` changes in place."""
    return not found.is_scalar and (found.type == ANY or isinstance(found.type, JsonType))


def _raises_alike(name: str, left: Any, right: Any) -> bool:
    """Whether ``left <name>= right`` raises nothing but what ``left <name> right`` does."""
    kinds = [symbol(value).type if type(value) is Proxy else type_of(value) for value in (left, right)]
    if lookup(f"i{name}") is None or all(kind in (INT, FLOAT, BOOL) for kind in kinds):
        return True
    return isinstance(kinds[0], ListType) or (kinds[0] == TEXT and name in ("add", "mul", "mod"))


_NAMES = ["add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"]
_PLAIN_NAMES = {f"i{name.rstrip('_')}": name for name in _NAMES}
_INPLACE: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in _PLAIN_NAMES}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {**_INPLACE, **{name: getattr(operator, name) for name in _NAMES}}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "is_", "is_not")},
    "contains": contains_plain,
}

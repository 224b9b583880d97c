"""Operators on symbolic operands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lmc.frontend import disorder, sizes
from lmc.frontend.calls import Calls
from lmc.frontend.harmless import is_deeply_harmless, is_harmless
from lmc.frontend.messages import Appendable
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.reads import Reads
from lmc.frontend.recorder import Recorder
from lmc.frontend.regions import is_iterator
from lmc.frontend.specs import Record
from lmc.frontend.state import State
from lmc.frontend.values import is_literal
from lmc.ir import builtins
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT, ListType
from lmc.ir.wording import with_article

_BLIND = frozenset({"add", "iadd", "mul", "imul"})
"""Operators that never look at the items of builtin containers; others may hash, compare or print them."""
_IMMUTABLE_TEXT = (INT, FLOAT, BOOL, NONE)
CONVERSIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "s": ("str", str),
    "r": ("repr", repr),
    "a": ("ascii", ascii),
}


class Symbolic(Calls, Reads):
    """The part of ``Operators`` that records ops."""

    # Symbolic operands

    def operate(self, name: str, python: Callable[..., Any], *operands: Any) -> Any:
        """A pure builtin of that name over operands, plain or symbolic."""
        tick = self.tick()
        if self.recorder is None:
            return self.served(tick, python, *operands)
        if any(type(operand) is Proxy for operand in operands):
            return self.done(tick, self.builtin(self.recorder, name, *operands))
        return self.plain(tick, name, python, *operands)

    def plain(self, tick: int, name: str, python: Callable[..., Any], *operands: Any) -> Any:
        """Python's own operation, where it runs no code of the user's; else a host call in its place."""
        recorder = self.recorder
        assert recorder is not None
        if name not in ("add", "iadd"):
            self.check_settled(recorder, *operands)
        for index, operand in enumerate(operands):
            if issubclass(type(operand), (Handle, Appendable)):
                continue
            deep = name not in _BLIND and not (name == "getitem" and index == 0)
            if not (is_deeply_harmless(operand) if deep and not holds_proxy(operand) else is_harmless(operand)):
                return self.done(tick, self.foreign(recorder, name, operands))
            self.check_unchanged(recorder, operand)
        if sizes.grows(name, operands):
            raise recorder.stop(sizes.CAUSE, sizes.REMEDY)
        if name in ("mod", "imod") and isinstance(operands[0], str):
            self.check_text(recorder, operands[1])
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
        operand: Any
        for operand in (left, right):
            if issubclass(type(operand), (Handle, Appendable)):
                if name != "add":
                    raise self.foreign_operator(recorder, name, operand)
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
            self._check_own(recorder, left, right)
            return left is right if name == "is_" else left is not right
        if left is right:
            return name == "is_"
        value, other = (left, right) if type(left) is Proxy else (right, left)
        kind = symbol(value).type
        if kind == NONE and other is None:
            return name == "is_"
        if other is None or other is True or other is False:
            if kind in (TEXT, INT, FLOAT) or isinstance(kind, ListType) or (kind == BOOL and other is None):
                return name == "is_not"
            return recorder.pure("is" if name == "is_" else "is_not", (value, other))
        raise recorder.stop(
            "`is` asks whether two values are one object, and one is known only when the program runs",
            "compare with ==",
        )

    def _check_own(self, recorder: Recorder, left: Any, right: Any) -> None:
        """Break where two containers that the capture did not make could be one: it sees copies of the arguments."""
        kinds = {value.kind if type(value) is Record else type(value) for value in (left, right)}
        foreign = any(id(value) in recorder.foreign or type(value) in (tuple, Record) for value in (left, right))
        if len(kinds) == 1 and foreign:
            raise recorder.stop(
                f"`is` asks whether two of {kinds.pop().__name__} are one object, and it is known by value only",
                "compare with ==",
            )

    def _contains(self, recorder: Recorder, tick: int, item: Any, container: Any) -> Any:
        if issubclass(type(container), State):
            return container.holds(item)
        if type(container) is Proxy:
            return recorder.pure("contains", (container, item))
        self.check_unchanged(recorder, container)
        if is_iterator(container):
            self.check_iterable(recorder, container)
        if type(item) is not Proxy and not (type(container) in (list, tuple) and holds_proxy(container)):
            return self.plain(tick, "contains", operator.contains, container, item)
        if type(container) is str:
            return recorder.pure("contains", (container, item))
        if type(container) in (list, tuple, set, frozenset, dict):
            if type(container) in (set, frozenset, dict) and symbol(item).type not in (TEXT, *_IMMUTABLE_TEXT):
                raise recorder.stop(
                    f"a lookup of {with_article(str(symbol(item).type))} in {with_article(type(container).__name__)}",
                    "use a list",
                )
            return recorder.pure("contains", (self._in_order(recorder, container), item))
        raise self.foreign_operator(recorder, "in", container)

    def _in_order(self, recorder: Recorder, container: Any) -> tuple[Any, ...]:
        """The items of ``container``, which is asked for an equal one; those of a set in an order of their own."""
        if not disorder.is_disordered(container):
            return tuple(container)
        if not all(map(is_literal, container)):
            raise recorder.stop(disorder.CAUSE, disorder.REMEDY)
        return tuple(sorted(container, key=lambda item: (type(item).__name__, repr(item))))

    def symbolic_format(self, recorder: Recorder, value: Any, conversion: str, spec: Any) -> Any:
        """``format(value, spec)`` after the conversion, where a part is symbolic."""
        if conversion:
            value = (
                self.text_of(recorder, value)
                if conversion == "s"
                else recorder.pure(CONVERSIONS[conversion][0], (value,))
            )
        if type(spec) is str and not spec:
            return self.text_of(recorder, value, "format")
        return recorder.pure("format", (value, spec))

    def _symbolic_item(self, recorder: Recorder, owner: Any, key: Any) -> Any:
        if type(owner) is not Proxy:
            self.check_unchanged(recorder, owner)
            if type(owner) not in (str, list, tuple, dict):
                raise recorder.stop(
                    f"an item of {with_article(self.describe(owner))} is looked up by what is known only when "
                    "the program runs",
                    "look it up in a list or a dict",
                )
        if type(key) is not slice:
            return recorder.item(owner, key) if type(owner) is Proxy else recorder.pure("getitem", (owner, key))
        bounds = (key.start, key.stop, key.step)
        if type(owner) in (str, Proxy):
            return recorder.pure("slice", (owner, *bounds))
        sequence: Any = owner
        return recorder.born(sequence[slice(*(recorder.concrete(part) for part in bounds))])


def contains_plain(item: Any, container: Any) -> bool:
    """``item in container``, with the operands in the order in which they are evaluated."""
    return item in container


def _is_text(value: Any) -> bool:
    return type(value) is str or (type(value) is Proxy and symbol(value).type == TEXT)

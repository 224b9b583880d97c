"""Whether two values of a capture are the same, whatever a run gives: by the ops that make them (value numbering)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.ir.core import Effect, Op, Value
from lmc.ir.ops import HostCallOp, PyCallOp
from lmc.ir.regions import effects_of

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


def are_same(recorder: Recorder, left: Any, right: Any) -> bool:
    """Whether the IR values or literals ``left`` and ``right`` are equal in every run, as far as that is easily seen.

    A list that the user's functions may change is the same as long as none that writes was called.
    """
    if type(left) is not Value or type(right) is not Value:
        return type(left) is type(right) and left == right
    if left == right:
        return True
    numbers = _Numbers(recorder)
    return numbers.of(left) == numbers.of(right)


def is_count(recorder: Recorder, value: Any) -> bool:
    """Whether ``value`` is how many there are of something."""
    return type(value) is Value and _Numbers(recorder).functions.get(value) in ("len", "branch_count")


class _Numbers:
    """A number for each value, the same for those that are the same. ``functions`` are the builtins that make them."""

    def __init__(self, recorder: Recorder) -> None:
        self.functions: dict[Value, str] = {}
        self._numbers: dict[Any, int] = {}
        self._of: dict[Value, int] = {}
        self._copies: dict[Value, tuple[Any, int | None]] = {}  # of lists: what was copied, after how many writes
        self._hosts = {recorder.hosts.symbol_of_builtin(name): name for name in ("len", "list_from")}
        writes = 0
        for builder in recorder.regions.builders:
            for op in builder.ops:
                self._look_at(op, writes)
                writes += Effect.WRITES in effects_of(op)

    def of(self, value: Any) -> Any:
        """The number of a value; of a literal what tells it from others."""
        if type(value) is not Value:
            return (type(value), value)
        return self._of.get(value, value)

    def _look_at(self, op: Op, writes: int) -> None:
        if isinstance(op, PyCallOp):
            self._made_by(op.results[0], op.function, op.arguments, op.keywords, None)
        elif isinstance(op, HostCallOp) and op.host in self._hosts:
            self._made_by(op.results[0], self._hosts[op.host], op.arguments, op.keywords, writes)

    def _made_by(
        self, value: Value, function: str, arguments: tuple[Any, ...], keywords: tuple[str, ...], writes: int | None
    ) -> None:
        self.functions[value] = function
        if function == "branch_count":  # where it gives something else, it raises
            self._of[value] = self.of(arguments[0])
        elif function == "list_from":
            self._copies[value] = self._copies.get(arguments[0], (self.of(arguments[0]), writes))
        elif function == "len":
            copied = self._copies.get(arguments[0], (self.of(arguments[0]), writes))
            self._of[value] = self._numbers.setdefault(("len", copied), len(self._numbers))
        elif writes is None:
            key = (function, keywords, tuple(map(self.of, arguments)))
            self._of[value] = self._numbers.setdefault(key, len(self._numbers))


def are_same_objects(items: list[Any], others: list[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(items) == len(others) and all(one is other for one, other in zip(items, others, strict=True))

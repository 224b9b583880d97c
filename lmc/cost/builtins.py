"""Builtins in a walk: what they give for values that are not all known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmc.cost.ranges import least_of
from lmc.cost.texts import LONGEST_TOKEN, MARK, TOKEN_BYTES, TextSize
from lmc.cost.values import UNKNOWN, UnknownValue, WalkedValues, holds_unknown
from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import AssumeOp, LocalCallOp, PyCallOp
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.types import BOOL, CTX, FLOAT, INT, SCALAR_TYPES, TEXT, Type

_STRUCTURAL = frozenset(
    {
        *("list", "list_from", "tuple", "tuple_from", "dict", "zip", "enumerate", "reversed", "interleaved", "range"),
        *("str.join", "list.with", "list.without", "list.popped", "list.replaced", "text", "getitem", "slice"),
        *("starred_from", "unpack2", "unpack3", "unpack4", "unpack_starred"),
    }
)
"""Builtins that move values without looking at them."""
_OVER_ITEMS = frozenset(
    {
        *("list_from", "tuple_from", "zip", "enumerate", "reversed", "interleaved", "getitem"),
        *("starred_from", "unpack2", "unpack3", "unpack4", "unpack_starred"),
    }
)
"""Builtins that go over the characters of a text."""
_MAKERS = frozenset({"list", "list_from", "dict", "OrderedDict", "deque"})
NEW = _MAKERS | {
    *("dict_from", "mapping_from", "set", "set_from", "Counter", "defaultdict", "deepcopy", "starred_from", "sorted"),
    *("sorted_by", "reversed", "zip", "enumerate", "range", "slice", "interleaved", "add", "mul", "list.with"),
    *("list.without", "list.without_first", "list.replaced", "list.deleted", "str.split", "str.splitlines"),
}
"""Builtins that make an object; others may give one that they were given."""
_SAME_ITEMS = frozenset(
    {"list_from", "tuple_from", "starred_from", "reversed", "sorted", "unpack2", "unpack3", "unpack4"}
)
"""Builtins that give the items of a list in a list."""
_SAME_NUMBER = _SAME_ITEMS | {"len", "branch_count", "range", "enumerate"}
"""Builtins that give as many items as a list has, that number, or so many items."""
_SPLITTING = frozenset({"str.split", "str.rsplit", "str.splitlines", "str.partition", "str.rpartition"})
_KEEPING = frozenset({"str.strip", "str.lstrip", "str.rstrip", "str.removeprefix", "str.removesuffix"})
"""Functions of a text that give a part of it."""
_CASED = frozenset({"str.lower", "str.upper", "str.title", "str.capitalize", "str.casefold", "str.swapcase"})
_CASE_BYTES = 3
"""Bytes that another case makes of one at most: U+0390 has 2, and 6 in upper case."""
_CHARACTER_BYTES = 4
_WRITING = frozenset({"str", "repr", "ascii", "format"})
_NUMBER_BYTES: Mapping[Type, int] = {BOOL: 5, FLOAT: 24, INT: 4301}
"""Bytes of numbers as texts: Python writes no integers with more than 4,300 digits."""


class WayEnded(Exception):  # noqa: N818 - no error: the way that is walked has come to its end
    """The program ends on the way that is walked, or fails there with ``error``. No other exception is a program's."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error


@dataclass
class WalkedBuiltins:
    """Runs ops that need no engine, on the ``values`` of a walk."""

    environment: Mapping[Value, Any]
    values: WalkedValues
    constraints: Constraints

    def run(self, op: Op) -> tuple[Any, ...]:
        """Results of an op that needs no engine."""
        values = [self.environment[value] for value in op.operands]
        is_unknown = any(map(self.values.is_unknown, values))
        if isinstance(op, AssumeOp) and is_unknown:
            return ()
        if isinstance(op, LocalCallOp):
            return self._on_object(op, is_unknown=is_unknown)
        if not isinstance(op, PyCallOp) or not is_unknown:
            if any(isinstance(value, UnknownValue) for value in values):
                return tuple(self.values.unknown(value.type) for value in op.results)
            return self._evaluated(op)
        return (self._called(op),)

    def _evaluated(self, op: Op) -> tuple[Any, ...]:
        """Return the results of an op. A builtin raises anything, as in the program; all else raises ``LmcError``."""
        try:
            return semantics.evaluate(op, self.environment, self.values.tokenizer, self.constraints)
        except RecursionError:
            raise
        except Exception as error:
            if isinstance(op, PyCallOp | LocalCallOp):
                raise WayEnded(error) from None
            raise

    def _called(self, op: PyCallOp) -> Any:
        """Return what a builtin gives for values that are not all known."""
        positional, named = semantics.call_arguments(op.arguments, op.keywords, self.environment)
        result = self._result(op, positional, named)
        if isinstance(result, UnknownValue) and op.results[0].type not in SCALAR_TYPES:
            self.values.lose((*positional, *named.values()))
        return result

    def _result(self, op: PyCallOp, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        kind = op.results[0].type
        first = positional[0] if positional else None
        if op.function in {"and", "or"} and kind == BOOL:
            decides = op.function == "or"
            return decides if any(value is decides for value in positional) else UNKNOWN
        if op.function in {"and", "or", "choose"}:
            return self._chosen(op.function, positional, kind)
        if isinstance(first, str):
            if op.function in _SPLITTING:
                return self._split(op.function, positional, named)
            size = self._size_of(op.function, positional)
            if size is not None:
                return self.values.unknown(TEXT, size)
        if op.function == "getitem" and isinstance(first, UnknownValue):
            return self.values.item(first, kind)
        if op.function in _WRITING and len(op.operands) == len(positional) == 1:
            longest = _NUMBER_BYTES.get(op.operands[0].type)
            if longest is not None:
                return self.values.unknown(TEXT, TextSize(self.values.tokenizer.ids_of(1), longest, longest))
        is_whole = self.values.is_whole(positional)
        if not is_whole and kind not in {TEXT, CTX}:
            return self._bounded(op.function, positional)
        if _needs_text(op.function, positional):
            return self.values.unknown(kind)
        if is_whole and (op.function in _STRUCTURAL or self._has_known_length(op, positional) or _adds(op, positional)):
            try:
                return self._evaluated(op)[0]
            except WayEnded:
                return self.values.unknown(kind)
        return self.values.unknown(kind) if kind in {TEXT, CTX} else self._bounded(op.function, positional)

    def _bounded(self, function: str, values: Sequence[Any]) -> Any:
        """Return a list or a number which is not known, with its bound; or the result of a comparison with that."""
        first = values[0] if values else UNKNOWN
        if function in {"lt", "gt"}:
            less, more = values if function == "lt" else reversed(values)
            bound = more.most if isinstance(more, UnknownValue) else None
            return False if type(less) is int and bound is not None and less >= bound else UNKNOWN
        if function == "slice":
            most = least_of([self.values.most_of(first), _most_items(*values[1:])])
            return UnknownValue(most, first.parts_of if isinstance(first, UnknownValue) else None)
        if function == "zip" or (function == "min" and len(values) > 1):
            return UnknownValue(least_of([self.values.most_of(value) for value in values]))
        if function not in _SAME_NUMBER or len(values) != 1:
            return UNKNOWN
        keeps = function in _SAME_ITEMS and isinstance(first, UnknownValue)
        return UnknownValue(self.values.most_of(first), first.parts_of if keeps else None)

    def _size_of(self, function: str, values: Sequence[Any]) -> TextSize | None:
        """Return the size of the text that a function makes of a text; None: no rule tells it."""
        if function in _KEEPING:
            size = self.values.size(values[0])
            return size if len(values) == 1 else self._cut(size, None)
        if function in _CASED:
            return self._longer(self.values.size(values[0]), _CASE_BYTES)
        if function == "getitem":
            return self._cut(self.values.size(values[0]), 1)
        if function == "slice":
            is_reversed = values[3] not in {None, 1}
            return self._cut(self.values.size(values[0]), _most_items(*values[1:]), is_reversed=is_reversed)
        if function == "str.replace" and all(
            isinstance(value, str) and not holds_unknown(value) for value in values[1:3]
        ):
            old, new = (len(value.encode()) for value in values[1:3])
            return self._longer(self.values.size(values[0]), -(-new // old) or 1) if old else None
        if function == "str.join" and isinstance(values[1], UnknownValue):
            parts, between = values[1], self.values.size(values[0]).most_bytes
            if parts.parts_of is None or parts.most is None or between is None:
                return None
            return self._longer(parts.parts_of, 1, between * parts.most)
        return None

    def _split(self, function: str, values: Sequence[Any], named: Mapping[str, Any]) -> UnknownValue:
        """Return the parts of a text, in a list."""
        size = self.values.size(values[0])
        limit = named.get(
            "maxsplit", values[2] if function in {"str.split", "str.rsplit"} and len(values) > 2 else None
        )
        if function in {"str.partition", "str.rpartition"}:
            most: int | None = 3
        elif type(limit) is int and limit >= 0:
            most = limit + 1
        else:
            most = None if size.most_bytes is None else size.most_bytes + 1
        return UnknownValue(most, self._cut(size, None))

    def _longer(self, size: TextSize, factor: int, more: int = 0) -> TextSize:
        """Return the size of a text in which each byte has become at most ``factor`` others, with so many ``more``."""
        most = None if size.most_bytes is None else size.most_bytes * factor + more
        return replace(size, most=most, most_bytes=most)

    def _cut(self, size: TextSize, count: int | None, *, is_reversed: bool = False) -> TextSize:
        """Return the size of a part of a text, of so many characters at most. Tokens at both ends may be cut."""
        lengths = [size.most_bytes, None if count is None else count * _CHARACTER_BYTES]
        longest = min((length for length in lengths if length is not None), default=None)
        tokens = longest if size.most is None or is_reversed else size.most + 2 * LONGEST_TOKEN
        most = longest if tokens is None or longest is None else min(tokens, longest)
        expected = size.expected
        if count is not None:
            expected = min(expected, self.values.tokenizer.ids_of(count / TOKEN_BYTES))
        return TextSize(expected, most, longest, size.is_guess and count is None)

    def _chosen(self, function: str, values: Sequence[Any], kind: Type) -> Any:
        """Return what ``and``, ``or`` and conditional expressions give: one of their values."""
        condition, first, second = values if function == "choose" else (values[0], values[0], values[1])
        if function == "and":
            first, second = second, first
        if self.values.is_unknown(condition):
            return self.values.either(first, second, kind)
        return first if condition else second

    def _has_known_length(self, op: PyCallOp, values: Sequence[Any]) -> bool:
        return op.function == "len" and not isinstance(values[0], str)

    def _on_object(self, op: LocalCallOp, *, is_unknown: bool) -> tuple[Any, ...]:
        """Results of an op that makes or changes an object of the run."""
        values = [self.environment[value] for value in op.operands]
        arguments, _ = semantics.call_arguments(op.arguments, op.keywords, self.environment)
        is_made = op.function in _MAKERS
        here = all(self.values.is_made_here(value) for value in values)
        moves = is_made or op.function in {"setitem", "getitem"} or _appends(op)
        owner = values[0] if values else None
        is_whole = self.values.is_whole(values)
        moves = moves and not _needs_text(op.function, arguments)
        if here and is_whole and (not is_unknown or (moves and (is_made or isinstance(owner, list | dict)))):
            try:
                return self._evaluated(op)
            except WayEnded:
                if not is_unknown:
                    raise
        self.values.touch(values, by_program=False)
        self.values.lose(values)
        return tuple(self.values.unknown(value.type) for value in op.results)


def _adds(op: PyCallOp, values: Sequence[Any]) -> bool:
    """Return True if two texts or two lists are put together."""
    return op.function in {"add", "iadd"} and (
        all(isinstance(value, str) for value in values) or all(isinstance(value, list) for value in values)
    )


def _most_items(start: Any, stop: Any, step: Any) -> int | None:
    """Return the most characters that a slice has; None: as many as its text."""
    if step is not None and step != 1:
        return None
    if type(stop) is int and stop >= 0 and (start is None or (type(start) is int and start >= 0)):
        return max(0, stop - (start or 0))
    return -start if type(start) is int and start < 0 else None


def _needs_text(function: str, values: Sequence[Any]) -> bool:
    """Return True if a builtin has to know a text that is unknown: it goes over its characters, or it is a key."""
    if function in {"dict", "OrderedDict"}:
        return any(map(holds_unknown, values[::2]))
    if function in {"getitem", "setitem"} and holds_unknown(values[1]):
        return True
    if function == "str.join":
        over = values[1:]
    elif function == "method":
        over = values[2:] if values[0] == "extend" else ()
    else:
        over = values if function in _OVER_ITEMS else ()
    return any(isinstance(value, str) and MARK in value for value in over)


def _appends(op: LocalCallOp) -> bool:
    return op.function == "method" and op.arguments[:1] in (("append",), ("extend",), ("appendleft",))

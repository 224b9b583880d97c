"""Loop-invariant values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from lmc.ir.core import Attribute, Block, Value
from lmc.ir.dialects.region_ops import ConditionOp, LoopOp, YieldOp
from lmc.ir.op_schema import exact_key

Held = Attribute | Value


def invariants(op: LoopOp, resolve: Callable[[Value], Held]) -> dict[Value, Held]:
    """Return the replacements of the parameters and results of a loop that are the same in every round.

    A replacement is a value from outside, or a literal; ``resolve`` returns the current one of a value. An optimistic
    fixed point: all count as invariant until the body yields another value; linear.
    """
    condition, body = op.condition.terminator, op.body.terminator
    outside = _Outside((op.condition, op.body), resolve)
    same: dict[Value, Held] = dict(zip(op.condition.parameters, op.initial, strict=True))
    given = condition.values if isinstance(condition, ConditionOp) else ()
    sources = _sources(op.condition.parameters, op.body.parameters, given)
    for parameter, value in zip(op.body.parameters, given, strict=False):
        if parameter in sources:
            same[parameter] = same[sources[parameter]]
        elif outside.has(value):
            same[parameter] = outside.resolved(value)
    following = body.values if isinstance(body, YieldOp) else ()
    back = _sources(op.body.parameters, op.condition.parameters, following)
    changes = [
        parameter
        for parameter, start, value in zip(op.condition.parameters, op.initial, following, strict=False)
        if not _stays(start, value, same, outside)
    ]
    _spread(changes, same, [sources, back])
    same.update((result, same[one]) for result, one in zip(op.results, op.body.parameters, strict=True) if one in same)
    return same


def _stays(start: Held, value: Held, same: Mapping[Value, Held], outside: _Outside) -> bool:
    """Return True if the body is known to yield the initial value for the next round."""
    if isinstance(value, Value) and value in same:
        return _key(same[value]) == _key(start)
    return outside.has(value) and _key(outside.resolved(value)) == _key(start)


def _spread(changes: list[Value], same: dict[Value, Held], flows: Sequence[Mapping[Value, Value]]) -> None:
    """Take out of ``same`` what changes, and all that it flows to."""
    users: dict[Value, list[Value]] = {}
    for flow in flows:
        for place, source in flow.items():
            users.setdefault(source, []).append(place)
    while changes:
        value = changes.pop()
        same.pop(value, None)
        changes.extend(users.pop(value, ()))


def _sources(parameters: Iterable[Value], places: Iterable[Value], values: Iterable[Held]) -> dict[Value, Value]:
    """For each of ``places`` the one of ``parameters`` that comes there unchanged, if one does."""
    known = set(parameters)
    pairs = zip(places, values, strict=False)
    return {place: value for place, value in pairs if isinstance(value, Value) and value in known}


class _Outside:
    """The values defined outside of some regions."""

    def __init__(self, blocks: Iterable[Block], resolve: Callable[[Value], Held]) -> None:
        self._inside = {
            value
            for block in blocks
            for value in (*block.parameters, *(value for op in block.ops for value in op.results))
        }
        self._resolve = resolve

    def has(self, value: Held) -> bool:
        return not isinstance(value, Value) or value not in self._inside

    def resolved(self, value: Held) -> Held:
        return self._resolve(value) if isinstance(value, Value) else value


def _key(value: Held) -> Hashable:
    return value if isinstance(value, Value) else exact_key(value)

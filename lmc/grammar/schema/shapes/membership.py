"""Membership of a value in a shape: for the values that `enum` and `const` list beside other keywords."""

from __future__ import annotations

from typing import Any, Protocol

from lmc.grammar.schema.numbers.numbers import is_within
from lmc.grammar.schema.shapes.expanding import Expander
from lmc.grammar.schema.shapes.shapes import Goal, LengthBound, Shape
from lmc.grammar.schema.strings.strings import Strings
from lmc.grammar.schema.values import NUMBER, STRING, class_of, exact, identity


class Deciding(Protocol):
    """The used part of ``SchemaBuilder``."""

    expander: Expander
    strings: Strings


def meets(value: Any, shape: Shape, by: Deciding) -> bool:
    """Return True if a JSON value meets a shape."""
    found = class_of(value)
    if not found & shape.classes or (shape.allowed is not None and identity(value) not in shape.allowed):
        return False
    if any(identity(value) == identity(each) for each in shape.excluded):
        return False
    if found & NUMBER:
        number = exact(value)
        return is_within(number, shape.low, shape.high) and all(
            (number / step).denominator == 1 for step, _ in shape.multiples
        )
    if found == STRING:
        return by.strings.meets(shape, value)
    if isinstance(value, list):
        return _array_meets(value, shape, by)
    return not isinstance(value, dict) or _object_meets(value, shape, by)


def _meets_goal(value: Any, goal: Goal, by: Deciding) -> bool:
    return not goal or any(meets(value, shape, by) for shape in by.expander.expand(goal))


def _is_counted(count: int, low: LengthBound | None, high: LengthBound | None) -> bool:
    return not (low is not None and count < low.value) and not (high is not None and count > high.value)


def _array_meets(value: list[Any], shape: Shape, by: Deciding) -> bool:
    if not _is_counted(len(value), shape.min_items, shape.max_items):
        return False
    if shape.unique is not None and len({identity(each) for each in value}) < len(value):
        return False
    for contains in shape.contains:
        hits = sum(_meets_goal(each, (contains.schema,), by) for each in value)
        if hits < contains.low or (contains.high is not None and hits > contains.high):
            return False
    goals = [shape.item_goal(index) for index in range(len(value))]
    return all(_meets_goal(each, goal, by) for each, goal in zip(value, goals, strict=True))


def _object_meets(value: dict[str, Any], shape: Shape, by: Deciding) -> bool:
    if not _is_counted(len(value), shape.min_members, shape.max_members):
        return False
    if any(name not in value for name, _ in shape.required):
        return False
    if shape.names and not all(_meets_goal(name, shape.names, by) for name in value):
        return False
    for names, wanted in shape.some:
        found = [each for name, each in value.items() if _meets_goal(name, (names,), by)]
        if not any(_meets_goal(each, (wanted,), by) for each in found):
            return False
    goals = [shape.member_goal(name, by.strings) for name in value]
    return all(_meets_goal(each, goal, by) for each, goal in zip(value.values(), goals, strict=True))

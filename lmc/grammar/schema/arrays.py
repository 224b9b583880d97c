"""Arrays of a shape: items by place, counts, ``contains``. What `uniqueItems` says is in ``uniqueness.py``."""

from __future__ import annotations

from lmc.grammar.nodes import Node
from lmc.grammar.schema.errors import Pointer, recursive, refusal
from lmc.grammar.schema.negation import negated
from lmc.grammar.schema.shapes import Contains, Goal, Shape
from lmc.grammar.schema.uniqueness import Building, unique_items


def array_node(shape: Shape, builder: Building, pointer: Pointer) -> Node:
    """The arrays that meet a shape.

    Raises ``ConstraintError`` for what is not regular: items of which nothing is said, items that differ out of an
    endless supply, ``contains`` beside ``prefixItems``.
    """
    low = 0 if shape.min_items is None else shape.min_items.value
    high = None if shape.max_items is None else shape.max_items.value
    count = max((len(items.prefix) for items in shape.items), default=0)
    arena = builder.arena
    rest = shape.item_goal(count)
    if not rest and (high is None or high > count):
        if low > count or (not count and high != 0):
            raise recursive(pointer, "the array may hold any JSON value")
        high = count
    if shape.contains and (count or not rest):
        raise refusal(
            shape.contains[0].schema.pointer,
            "contains is supported only where items says what all items are",
            "put the item that is meant into prefixItems, or use items",
        )
    slots: list[Node] = []
    for index in range(count if high is None else min(count, high)):
        slot = builder.node(shape.item_goal(index), pointer)
        if slot is arena.empty:
            high = index
            break
        slots.append(slot)
    item = arena.empty
    if rest and (high is None or high > len(slots)):
        item = builder.node(rest, pointer)
    if item is arena.empty:
        high = len(slots) if high is None else min(high, len(slots))
    if high is not None and high < low:
        return arena.empty
    if shape.unique is not None and (high is None or high > 1):
        return _brackets(builder, unique_items(shape, builder, low, high), low)
    if shape.contains:
        return _containing(shape, builder, rest, low, high)
    return _brackets(builder, _items(builder, slots, item, max(low, 1), high), low)


def _brackets(builder: Building, inner: Node, low: int) -> Node:
    return builder.layout.brackets(b"[]", inner, may_be_empty=low == 0)


def _items(builder: Building, slots: list[Node], item: Node, low: int, high: int | None) -> Node:
    """``low`` (at least 1) to ``high`` items: those of the slots, then others."""
    arena, comma = builder.arena, builder.layout.comma
    if high is not None and high < low:
        return arena.empty
    count = len(slots)
    if not count:
        more = arena.repeat(arena.concat(comma, item), low - 1, None if high is None else high - 1)
        return arena.concat(item, more)
    node = arena.epsilon
    if high is None or high > count:
        node = arena.repeat(arena.concat(comma, item), max(low - count, 0), None if high is None else high - count)
    for index in range(count - 1, 0, -1):
        node = arena.concat(comma, slots[index], node)
        if index >= low:
            node = arena.optional(node)
    return arena.concat(slots[0], node)


def _containing(shape: Shape, builder: Building, rest: Goal, low: int, high: int | None) -> Node:
    """Arrays of items of one kind, with so many that meet another schema as well."""
    arena, pointer = builder.arena, shape.contains[0].schema.pointer
    item = builder.node(rest, pointer)
    parts = [_hits(builder, rest, item, contains) for contains in shape.contains]
    if low > 1 or high is not None:
        parts.append(_items(builder, [], item, max(low, 1), high))
    low = max(low, *(min(contains.low, 1) for contains in shape.contains))
    return _brackets(builder, arena.intersection(parts), low)


def _hits(builder: Building, rest: Goal, item: Node, contains: Contains) -> Node:
    """One item or more, ``contains.low`` to ``contains.high`` of them such that they meet its schema."""
    arena, comma, sub = builder.arena, builder.layout.comma, contains.schema
    if contains.high is not None and contains.high < contains.low:
        return arena.empty
    hit = builder.node((*rest, sub), sub.pointer)
    # Without an upper count it does not matter which of the hits are counted.
    miss = item if contains.high is None else builder.node((*rest, negated(sub)), sub.pointer)
    misses = arena.repeat(arena.concat(comma, miss), 0, None)
    group = arena.concat(comma, hit, misses)

    def hits(low: int) -> Node:
        low = max(low, 0)
        if contains.high is None:
            return arena.repeat(group, low, None)
        return arena.repeat(group, low, contains.high - 1)

    parts: list[Node] = []
    if contains.high != 0:
        parts.append(arena.concat(hit, misses, hits(contains.low - 1)))
    high = contains.high
    parts.append(arena.concat(miss, misses, arena.repeat(group, contains.low, high)))
    return arena.union(parts)

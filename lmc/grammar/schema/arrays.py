"""Arrays of a shape: items by place, counts, ``contains``, ``uniqueItems``."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any, Protocol

from lmc.grammar.building import Arena
from lmc.grammar.nodes import Node
from lmc.grammar.schema.errors import Pointer, recursive, refusal
from lmc.grammar.schema.layout import Layout
from lmc.grammar.schema.negation import negated
from lmc.grammar.schema.shapes import Contains, Goal, Shape

MAX_ANY_ORDER = 8  # values of which every order is produced where items have to differ
MAX_COUNTED = 2_000  # values times counts


class Building(Protocol):
    """What is needed of a ``Builder``."""

    arena: Arena
    layout: Layout

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        """The values that meet a goal."""
        ...

    def listed(self, goal: Goal) -> dict[Hashable, Any] | None:
        """All values that meet a goal, where they are a short list."""
        ...

    def literal(self, value: Any) -> Node:
        """One value."""
        ...


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
        return _unique(shape, builder, low, high)
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


def _unique(shape: Shape, builder: Building, low: int, high: int | None) -> Node:
    """Arrays of different values out of a list of them: in any order where they are few, else in that of the list."""
    prefix = max((len(items.prefix) for items in shape.items), default=0)
    lists = [builder.listed(shape.item_goal(index)) for index in range(prefix)]
    rest = builder.listed(shape.item_goal(prefix)) if high is None or high > prefix else {}
    if shape.contains or rest is None or (prefix and (rest or not _are_distinct(lists))):
        raise refusal(
            shape.unique,
            "uniqueItems is supported only for items out of a list of values (enum, const, boolean)",
            "leave it out and remove duplicates afterwards, list the values in an enum, or give maxItems 1",
        )
    if prefix:
        places = range(prefix if high is None else min(prefix, high))
        slots = [builder.node(shape.item_goal(index), shape.unique) for index in places]
        return _brackets(builder, _items(builder, slots, builder.arena.empty, max(low, 1), high), low)
    values = [builder.literal(value) for value in rest.values()]
    high = len(values) if high is None else min(high, len(values))
    if high < low:
        return builder.arena.empty
    if len(values) > MAX_ANY_ORDER:
        return _brackets(builder, _ordered(builder, values, max(low, 1), high, shape.unique), low)
    return _brackets(builder, _any_order(builder, values, max(low, 1), high), low)


def _are_distinct(lists: list[dict[Hashable, Any] | None]) -> bool:
    seen: set[Hashable] = set()
    for found in lists:
        if found is None or not seen.isdisjoint(found):
            return False
        seen.update(found)
    return True


def _any_order(builder: Building, values: list[Node], low: int, high: int) -> Node:
    arena, comma = builder.arena, builder.layout.comma
    made: dict[int, Node] = {}

    def after(used: int) -> Node:
        """What may follow the values of this bit set."""
        node = made.get(used)
        if node is None:
            count = used.bit_count()
            node = arena.epsilon
            if count < high:
                more = arena.union(
                    arena.concat(comma, value, after(used | 1 << index))
                    for index, value in enumerate(values)
                    if not used >> index & 1
                )
                node = more if count < low else arena.optional(more)
            made[used] = node
        return node

    return arena.union(arena.concat(value, after(1 << index)) for index, value in enumerate(values))


def _ordered(builder: Building, values: list[Node], low: int, high: int, pointer: Pointer) -> Node:
    arena, comma = builder.arena, builder.layout.comma
    top = high if high < len(values) else low
    if top > 1 and len(values) * top > MAX_COUNTED:
        raise refusal(
            pointer, "uniqueItems with so many values and counts", "give fewer values, or leave the counts out"
        )
    # What may follow when so many items are there (`top` without an upper bound: or more) and only the values from some
    # place on are left. Optional parts in a row keep it linear where counts do not matter any more.
    is_bounded = high < len(values)
    after = [arena.epsilon if count >= low else arena.empty for count in range(1, top + 1)]
    firsts: list[Node] = []
    for value in reversed(values):
        firsts.append(arena.concat(value, after[0]))
        more = arena.concat(comma, value)
        last = after[-1] if is_bounded else arena.concat(arena.optional(more), after[-1])
        after = [arena.union([arena.concat(more, taken), left]) for left, taken in pairwise(after)] + [last]
    return arena.union(firsts)

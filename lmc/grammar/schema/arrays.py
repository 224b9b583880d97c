"""Arrays of a shape: items by place, counts, ``contains``. What `uniqueItems` says is in ``uniqueness.py``."""

from __future__ import annotations

from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.documents.errors import Pointer, recursive, refusal
from lmc.grammar.schema.shapes.negation import negated
from lmc.grammar.schema.shapes.shapes import Contains, Goal, Shape
from lmc.grammar.schema.uniqueness import ListBuilder, unique_items

MAX_COUNTED = 10_000  # items times those that meet `contains`


def array_node(shape: Shape, builder: ListBuilder, pointer: Pointer) -> Node:
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


def _brackets(builder: ListBuilder, inner: Node, low: int) -> Node:
    return builder.layout.brackets(b"[]", inner, may_be_empty=low == 0)


def _items(builder: ListBuilder, slots: list[Node], item: Node, low: int, high: int | None) -> Node:
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


def _containing(shape: Shape, builder: ListBuilder, rest: Goal, low: int, high: int | None) -> Node:
    """Arrays of items of one kind, with so many that meet another schema as well."""
    pointer = shape.contains[0].schema.pointer
    item = builder.node(rest, pointer)
    parts: list[Node] = []
    for contains in shape.contains:
        hit, miss = _hit_and_miss(builder, rest, item, contains)
        counted = (low, high) if contains is shape.contains[0] else (0, None)
        parts.append(_hits(builder, (hit, miss), contains, *counted))
    low = max(low, *(min(contains.low, 1) for contains in shape.contains))
    return _brackets(builder, parts[0] if len(parts) == 1 else builder.intersection(parts, pointer), low)


def _hit_and_miss(builder: ListBuilder, rest: Goal, item: Node, contains: Contains) -> tuple[Node, Node]:
    """Items that are counted, and items that need not be or must not be."""
    sub = contains.schema
    hit = builder.node((*rest, sub), sub.pointer)
    # Without an upper count it does not matter which of the hits are counted.
    return hit, item if contains.high is None else builder.node((*rest, negated(sub)), sub.pointer)


def _hits(builder: ListBuilder, items: tuple[Node, Node], contains: Contains, low: int, high: int | None) -> Node:
    """``low`` to ``high`` items, hits or misses, at least one, ``contains.low`` to ``contains.high`` of them hits."""
    arena, comma = builder.arena, builder.layout.comma
    hit, miss = items
    least, most = contains.low, contains.high
    low = max(low, 1)
    if (most is not None and most < least) or (high is not None and high < low):
        return arena.empty
    total = low if high is None else high  # counted one by one; without an upper bound any number more
    hits = least if most is None else most
    if (total + 1) * (hits + 1) > MAX_COUNTED:
        remedy = "ask for fewer, or leave out maxItems or maxContains"
        raise refusal(contains.schema.pointer, "contains with so many items to count", remedy)
    more_hit, more_miss = arena.concat(comma, hit), arena.concat(comma, miss)
    made: dict[tuple[int, int], Node] = {}

    def behind(count: int, found: int) -> Node:
        """Return the texts after ``count`` items with ``found`` hits; both stop counting at their bounds."""
        is_end = count >= low and found >= least
        if high is not None and count == high:
            return arena.epsilon if is_end else arena.empty
        at_end, all_found = high is None and count == total, most is None and found == hits
        loops = [more_miss] if at_end else []
        if at_end and all_found:
            loops.append(more_hit)
        steps = [arena.epsilon] if is_end else []
        if not at_end:
            steps.append(arena.concat(more_miss, made[count + 1, found]))
        if not (at_end and all_found) and (most is None or found < most):
            following = (count if at_end else count + 1, found if all_found else found + 1)
            steps.append(arena.concat(more_hit, made[following]))
        rest = arena.union(steps)
        return arena.concat(arena.repeat(arena.union(loops), 0, None), rest) if loops else rest

    for count in range(total, 0, -1):
        for found in range(hits if count == total else min(hits, count), -1, -1):
            made[count, found] = behind(count, found)
    firsts = [arena.concat(miss, made[1, 0])]
    if hits:
        firsts.append(arena.concat(hit, made[1, 1]))
    elif most is None:
        firsts.append(arena.concat(hit, made[1, 0]))
    return arena.union(firsts)

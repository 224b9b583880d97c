"""Arrays of a shape: items by place, counts, ``contains``, and items that have to differ (`uniqueItems`).

What came before has to be remembered, so unique items are out of lists of values (`enum`, `const`, truth values, whole
numbers between bounds), or of classes that nothing else in the array is of. Of strings without end the kind of one
character is remembered: items differ where these do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.errors import Pointer, Subschema, json_pointer, recursive, refusal
from lmc.grammar.schema.layout import ValueBuilder, Values
from lmc.grammar.schema.shapes.negation import negated
from lmc.grammar.schema.shapes.shapes import Contains, Goal, Shape
from lmc.grammar.schema.values import OBJECT, STRING, class_of

MAX_ANY_ORDER = 8  # values of which every order is produced
_KINDS = {STRING: 8, OBJECT: 5}  # of characters: every set of those that came before has items of its own
MAX_VALUES_COUNTED = 2_000  # values times counts, or sets of values that came before
MAX_DEPTH = 100  # items that differ by place
MAX_COUNTED = 10_000  # items times those that meet `contains`


def array_node(shape: Shape, builder: ValueBuilder, pointer: Pointer) -> Node:
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
        return _brackets(builder, _unique_items(shape, builder, low, high), low)
    if shape.contains:
        return _containing(shape, builder, rest, low, high)
    return _brackets(builder, _items(builder, slots, item, max(low, 1), high), low)


def _brackets(builder: ValueBuilder, inner: Node, low: int) -> Node:
    return builder.layout.brackets(b"[]", inner, may_be_empty=low == 0)


def _items(builder: ValueBuilder, slots: list[Node], item: Node, low: int, high: int | None) -> Node:
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


def _containing(shape: Shape, builder: ValueBuilder, rest: Goal, low: int, high: int | None) -> Node:
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


def _hit_and_miss(builder: ValueBuilder, rest: Goal, item: Node, contains: Contains) -> tuple[Node, Node]:
    """Items that are counted, and items that need not be or must not be."""
    sub = contains.schema
    hit = builder.node((*rest, sub), sub.pointer)
    # Without an upper count it does not matter which of the hits are counted.
    return hit, item if contains.high is None else builder.node((*rest, negated(sub)), sub.pointer)


def _hits(builder: ValueBuilder, items: tuple[Node, Node], contains: Contains, low: int, high: int | None) -> Node:
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


def _unique_items(shape: Shape, builder: ValueBuilder, low: int, high: int | None) -> Node:
    """``low`` to ``high`` different items, at least one, with commas.

    Of more than ``MAX_ANY_ORDER`` listed values they are in the order of the list. Of strings, and of objects with a
    required string, no two have the same kind of first (or last) character. Raises ``ConstraintError`` for other items
    out of an endless supply, and for too many values.
    """
    prefix = max((len(items.prefix) for items in shape.items), default=0)
    if high is not None:
        prefix = min(prefix, high)
    goals = [shape.item_goal(index) for index in range(prefix)]
    has_rest = bool(shape.item_goal(prefix)) and (high is None or high > prefix)
    rest = builder.listed(shape.item_goal(prefix)) if has_rest else {}
    if rest is None and not prefix and not shape.contains:
        return _of_kinds(shape, builder, max(low, 1), high)
    if shape.contains or rest is None:
        raise _endless(shape.unique)
    high = prefix + len(rest) if high is None else min(high, prefix + len(rest))
    if high < low:
        return builder.arena.empty
    if prefix:
        return _Tuple(shape, builder, goals, rest).node(max(low, 1), high)
    values = [builder.literal(value) for value in rest.values()]
    if len(values) > MAX_ANY_ORDER:
        builder.narrowed[json_pointer(shape.unique)] = "items in the order in which the schema lists them"
        return _ordered(builder, values, max(low, 1), high, shape.unique)
    return _any_order(builder, values, max(low, 1), high)


def _endless(pointer: Pointer) -> Exception:
    return refusal(
        pointer,
        "uniqueItems is supported only for items out of a list of values (enum, const, boolean, few integers), a few "
        "strings, and a few objects with a required string",
        "leave it out and remove duplicates afterwards, list the values in an enum, or give maxItems 1",
    )


def _of_kinds(shape: Shape, builder: ValueBuilder, low: int, high: int | None) -> Node:
    """Unbounded items, distinguished by the kind of one character of a string."""
    goal = shape.item_goal(0)
    classes = builder.classes(goal)
    names: list[str | None] = []
    if classes == STRING:
        names = [None]
    elif classes == OBJECT:
        names += dict.fromkeys(name for each in builder.expander.expand(goal) for name, _ in each.required)
    count = _KINDS.get(classes, 0)
    found: list[list[Node]] = []
    for name, at in product(names, ("^{}", "{}$")):
        kinds = [builder.node((*goal, _kind(kind, count, at, name)), shape.unique) for kind in range(count)]
        found.append([node for node in kinds if node is not builder.arena.empty])
    best: list[Node] = max(found, key=len, default=[])
    if len(best) < max(low, 2):
        raise _endless(shape.unique)
    where = "last" if found.index(best) % 2 else "first"
    name = names[found.index(best) // 2]
    of_what = "" if name is None else f" of {name!r}"
    builder.narrowed[json_pointer(shape.unique)] = (
        f"at most {len(best)} items, told apart by the kind of the {where} character{of_what}"
    )
    return _any_order(builder, best, low, len(best) if high is None else min(high, len(best)))


@lru_cache(maxsize=4096)  # goals go by the identity of their schemas
def _kind(kind: int, count: int, at: str, name: str | None) -> Subschema:
    """Strings with one of ``count`` kinds of character at one end, or objects with such a member.

    Of ASCII characters neighbours are of different kinds; all others are of kind 0.
    """
    others = (code for code in range(0x80) if code % count)
    own = range(kind, 0x80, count)
    characters = "".join(f"\\x{code:02x}" for code in (own if kind else others))
    schema: dict[str, Any] = {"type": "string", "pattern": at.format(f"[{'' if kind else '^'}{characters}]")}
    if name is not None:
        schema = {"type": "object", "properties": {name: schema}, "required": [name]}
    return Subschema(schema, None)


class _Tuple:
    """Items by place (``goals``), and others out of a list behind them."""

    def __init__(self, shape: Shape, builder: ValueBuilder, goals: list[Goal], rest: Values) -> None:
        self._builder, self._goals, self._pointer = builder, goals, shape.unique
        self._lists = [*map(builder.listed, goals), *[rest] * len(rest)]
        self._later: list[set[Hashable]] = [set()]
        """The listed values from each place on."""
        for values in reversed(self._lists):
            self._later.append(self._later[-1].union(values or ()))
        self._later.reverse()
        self._made: dict[tuple[int, frozenset[Hashable]], Node] = {}
        classes = [*map(builder.classes, goals), *map(class_of, rest.values())]
        for index in range(len(goals)):
            if self._lists[index] is None and any(
                classes[index] & own for own in classes[:index] + classes[index + 1 :]
            ):
                raise _endless(self._pointer)

    def node(self, low: int, high: int) -> Node:
        """``low`` to ``high`` items, at least one."""

        def items(index: int, used: frozenset[Hashable]) -> Node:
            """The items from a place on, none of them one of ``used``."""
            node = self._made.get((index, used))
            if node is None:
                if len(self._made) == MAX_VALUES_COUNTED or index > MAX_DEPTH:
                    remedy = "give lists with fewer values in common, or fewer items"
                    raise refusal(self._pointer, "uniqueItems with so many values in several places", remedy)
                node = self._made[index, used] = arena.union(
                    arena.concat(item, behind(index + 1, left)) for item, left in self._choices(index, used)
                )
            return node

        def behind(index: int, used: frozenset[Hashable]) -> Node:
            if index == high:
                return arena.epsilon
            more = arena.concat(self._builder.layout.comma, items(index, used & self._later[index]))
            return more if index < low else arena.optional(more)

        arena = self._builder.arena
        return items(0, frozenset())

    def _choices(self, index: int, used: frozenset[Hashable]) -> Iterator[tuple[Node, frozenset[Hashable]]]:
        """Yield the values of a place, each with those that may not come again."""
        values, later = self._lists[index], self._later[index + 1]
        if values is None:
            yield self._builder.node(self._goals[index], self._pointer), used
            return
        once = [self._builder.literal(value) for key, value in values.items() if key not in used | later]
        if once:
            yield self._builder.arena.union(once), used
        for key, value in values.items():
            if key in later and key not in used:
                yield self._builder.literal(value), used | {key}


def _any_order(builder: ValueBuilder, values: list[Node], low: int, high: int) -> Node:
    arena, comma = builder.arena, builder.layout.comma
    made: dict[int, Node] = {}

    def after(used: int) -> Node:
        """Return the texts after the values of this bit set."""
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


def _ordered(builder: ValueBuilder, values: list[Node], low: int, high: int, pointer: Pointer) -> Node:
    arena, comma = builder.arena, builder.layout.comma
    top = high if high < len(values) else low
    if top > 1 and len(values) * top > MAX_VALUES_COUNTED:
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

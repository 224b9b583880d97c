"""Objects of a shape: declared properties in their order, then additional ones.

The order is that in which the names are first met: `properties` as they are declared, then `required` names that no
`properties` has. A declared property comes once; an additional key may come twice, and since every value it comes with
is valid, the last one, which parsers keep, is too. What counts keys relies only on what is sure to differ.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple, Protocol

from lmc.grammar.building import Arena
from lmc.grammar.nodes import Node
from lmc.grammar.schema.distinct_keys import Other, one_property, two_properties
from lmc.grammar.schema.errors import Pointer, Subschema, recursive, refusal
from lmc.grammar.schema.layout import Layout
from lmc.grammar.schema.shapes import Goal, Shape
from lmc.grammar.schema.strings import Strings
from lmc.grammar.schema.values import string_text

MAX_COUNTED = 5_000  # properties times counts
MAX_PATTERNS = 4
_PAIR = b"{}"


class Building(Protocol):
    """What is needed of a ``Builder``."""

    arena: Arena
    layout: Layout
    strings: Strings
    conflict: Pointer

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        """The values that meet a goal."""
        ...

    def key_contents(self, goal: Goal) -> Node:
        """The contents of the strings that meet a goal."""
        ...

    def key_list(self, goal: Goal) -> list[str] | None:
        """All strings that meet a goal, where they are a list."""
        ...


class Member(NamedTuple):
    """A property that may be produced: its name with quotes, and its value."""

    name: bytes
    value: Node
    is_required: bool


def object_node(shape: Shape, builder: Building, pointer: Pointer) -> Node:
    """The objects that meet a shape.

    Raises ``ConstraintError`` where nothing is said of the properties, where keys would have to be counted that can't
    be told apart, and for too many patterns or counts.
    """
    if not shape.members and not shape.required and (shape.max_members is None or shape.max_members.value):
        raise recursive(pointer, "the object may have any properties")
    required = dict(shape.required)
    names = _Names(shape, builder)
    members: list[Member] = []
    for name in names.declared:
        goal = shape.member_goal(name, builder.strings)
        if not goal and name not in required:
            continue
        where = goal[0].pointer if goal else required[name]
        conflict = builder.conflict
        value = builder.node(goal, where) if names.are_allowed(name) else builder.arena.empty
        if value is not builder.arena.empty:
            members.append(Member(string_text(name, where), value, name in required))
        elif name in required:
            return builder.arena.empty
        else:
            builder.conflict = conflict  # it may be left out
    return _braces(shape, builder, members, names.others(pointer))


class _Names:
    """The keys of an object: those that the schema names, and sets of others."""

    def __init__(self, shape: Shape, builder: Building) -> None:
        self._shape = shape
        self._builder = builder
        listed = builder.key_list(shape.names) if shape.names else None
        self._allowed = None if listed is None else frozenset(listed)
        self._contents = builder.key_contents(shape.names) if shape.names and listed is None else None
        declared = dict.fromkeys(name for members in shape.members for name in members.named)
        declared.update(dict.fromkeys(name for name, _ in shape.required))
        declared.update(dict.fromkeys(listed or ()))
        self.declared = list(declared)

    def are_allowed(self, name: str) -> bool:
        """Whether `propertyNames` lets it be."""
        if self._allowed is not None:
            return name in self._allowed
        return self._contents is None or self._builder.strings.holds(self._contents, name, self._shape.pointer)

    def others(self, pointer: Pointer) -> list[Other]:
        """Properties whose keys the schema does not name. What is neither asked for nor described is not produced."""
        builder, shape = self._builder, self._shape
        patterns = [(pattern, sub, members) for members in shape.members for pattern, sub in members.patterns]
        has_rest = any(members.rest is not None for members in shape.members)
        if self._allowed is not None or not (patterns or has_rest):
            return []
        if len(patterns) > MAX_PATTERNS:
            remedy = "join patterns that have the same schema with |, or name the properties"
            raise refusal(patterns[0][1].pointer, f"more than {MAX_PATTERNS} patterns for properties", remedy)
        found: list[Other] = []
        for matching in product((True, False), repeat=len(patterns)):
            matched = [entry for entry, is_matching in zip(patterns, matching, strict=True) if is_matching]
            goal = {id(sub.schema): sub for _, sub, _ in matched}
            for members in shape.members:
                if members.rest is not None and all(members is not each for _, _, each in matched):
                    goal[id(members.rest.schema)] = members.rest
            if not goal or any(sub.schema is False for sub in goal.values()):
                continue
            value = builder.node(tuple(goal.values()), pointer)
            if value is not builder.arena.empty:
                unmatched = [entry for entry, is_matching in zip(patterns, matching, strict=True) if not is_matching]
                contents = self._keys([entry[:2] for entry in matched], [entry[:2] for entry in unmatched])
                found.append(Other(contents, value))
        return found

    def _keys(self, matched: list[tuple[str, Subschema]], unmatched: list[tuple[str, Subschema]]) -> Node | None:
        """The contents of keys without a name, in which these patterns are found and those are not; None: of any."""
        strings = self._builder.strings
        parts = [strings.pattern(pattern, sub.pointer) for pattern, sub in matched]
        if self._contents is not None:
            parts.append(self._contents)
        declared = [
            name for name in self.declared if all(strings.holds(part, name, self._shape.pointer) for part in parts)
        ]
        if declared or (unmatched and not parts):
            parts.append(strings.other_than(declared))
        parts += [strings.pattern(pattern, sub.pointer, is_negated=True) for pattern, sub in unmatched]
        return self._builder.arena.intersection(parts) if parts else None


def _braces(shape: Shape, builder: Building, members: list[Member], others: list[Other]) -> Node:
    """The members in their order and any number of others, within the bounds on how many there are.

    Read from the right, the closing bracket first: what may follow once ``count`` members are there. Counts that make
    no difference are one, and then optional members are a plain sequence, so that hundreds of them cost no more than
    each by itself.
    """
    arena, layout, comma = builder.arena, builder.layout, builder.layout.comma
    low = 0 if shape.min_members is None else shape.min_members.value
    high = None if shape.max_members is None else shape.max_members.value
    extra = one_property(others, builder)
    has_extra = extra is not arena.empty
    if low > len(members) + 2 and has_extra:
        remedy = f"list the keys (properties, or an enum in propertyNames), or ask for at most {len(members) + 2}"
        cause = "minProperties can't be enforced: of three keys that are not listed, two may be the same"
        raise refusal(shape.min_members.pointer if shape.min_members else None, cause, remedy)
    if high is not None and high >= len(members) and not has_extra:
        high = None
    if low > len(members) and not has_extra:
        return arena.empty
    top = max(low, 1) if high is None else min(high, len(members))
    if top > 1 and len(members) * top > MAX_COUNTED:
        bound = shape.min_members if high is None else shape.max_members
        remedy = "leave the bound out, or have fewer properties"
        raise refusal(bound.pointer if bound else None, "so many properties can't be counted", remedy)

    def extras(count: int) -> Node:
        """Others behind ``count`` declared members; they count as two at most."""
        least = max(low - count, 0)
        most = None if high is None else high - count
        if least > (2 if has_extra else 0) or (most is not None and most < least):
            return arena.empty
        if least == 2:
            return arena.concat(comma, two_properties(others, builder, most), closing)
        return arena.concat(arena.repeat(arena.concat(comma, extra), least, most if has_extra else 0), closing)

    closing = layout.closing(_PAIR)
    after = [arena.empty, *(extras(count) for count in range(1, top + 1))]
    if top == 1 and high is None:
        rests = _uncounted(builder, members, after[1])
    else:
        rests = _counted(builder, members, after, is_bounded=high is not None)
    firsts: list[Node] = []
    for (name, value, is_required), rest in zip(members, reversed(rests), strict=False):
        if is_required and not firsts:
            return layout.opened(_PAIR, layout.key(name), value, *rest)
        firsts.append(arena.concat(layout.key(name), value, *rest))
        if is_required:
            return layout.opened(_PAIR, arena.union(firsts))
    if has_extra and low <= 1 and high != 0:
        more = arena.repeat(arena.concat(comma, extra), 0, None if high is None else high - 1)
        firsts.append(arena.concat(extra, more, closing))
    elif has_extra and low == 2 and high not in (0, 1):
        firsts.append(arena.concat(two_properties(others, builder, high), closing))
    if low == 0:
        firsts.append(arena.literal(_PAIR[1:]))
    return layout.opened(_PAIR, arena.union(firsts))


def _uncounted(builder: Building, members: list[Member], end: Node) -> list[list[Node]]:
    """What follows each member, as parts, where it is the first; from the last on. ``end`` follows the last.

    Only of members that may be first. Required members in a row are put together at once.
    """
    arena, later_key = builder.arena, builder.layout.later_key
    last_first = next((at for at, member in enumerate(members) if member.is_required), len(members))
    rests: list[list[Node]] = []
    waiting: list[Node] = []  # from the last on
    for at in range(len(members) - 1, -1, -1):
        if at <= last_first:
            rests.append([*reversed(waiting), end])
        name, value, is_required = members[at]
        if is_required:
            waiting += (value, later_key(name))
        elif at:
            end = arena.concat(arena.optional(arena.concat(later_key(name), value)), *reversed(waiting), end)
            waiting.clear()
    return rests


def _counted(builder: Building, members: list[Member], after: list[Node], *, is_bounded: bool) -> list[list[Node]]:
    """The same where it matters how many members there are: ``after[count]`` follows ``count`` members."""
    arena, later_key = builder.arena, builder.layout.later_key
    top = len(after) - 1
    rests: list[list[Node]] = []
    for name, value, is_required in reversed(members):
        rests.append([after[1] if top else arena.empty])
        following = [arena.concat(later_key(name), value, after[count + 1]) for count in range(1, top)]
        if not is_bounded and is_required:
            following.append(arena.concat(later_key(name), value, after[top]))
        elif not is_bounded:
            following.append(arena.concat(arena.optional(arena.concat(later_key(name), value)), after[top]))
        elif top:
            following.append(arena.empty)
        if not is_required:
            same = len(following) - (not is_bounded)  # the last one may be left out as it is
            following[:same] = [arena.union(pair) for pair in zip(following[:same], after[1:], strict=False)]
        after = [arena.empty, *following]
    return rests

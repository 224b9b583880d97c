"""Objects of a shape: declared properties in their order, then additional ones.

The order is that in which the names are first met: `properties` as they are declared, then `required` names that no
`properties` has. A declared property comes once; an additional key may come twice, and since every value it comes with
is valid, the last one, which parsers keep, is too. What counts keys relies only on what is sure to differ. An
additional property that has to be there (``shapes.Some``) comes last, so that no other one with its key follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import NamedTuple

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.alphabet import JSON, any_character
from lmc.grammar.schema.errors import Pointer, Subschema, UndescribedError, recursive, refusal
from lmc.grammar.schema.layout import ValueBuilder
from lmc.grammar.schema.shapes.shapes import LengthBound, PropertyRules, Shape, Some, of_schemas
from lmc.grammar.schema.values import string_text

MAX_COUNTED = 5_000  # properties times counts
MAX_PATTERNS = 4
MAX_CASES = 500  # of which property it is that has to be there
_KINDS = 7  # of characters
_PAIR = b"{}"


class Other(NamedTuple):
    """Properties that the schema does not name: the contents of their keys (None: any) and their values."""

    contents: Node | None
    value: Node


class Property(NamedTuple):
    """A property that may be produced: its name with quotes, and its value."""

    name: bytes
    value: Node
    is_required: bool


def object_node(shape: Shape, builder: ValueBuilder, pointer: Pointer) -> Node:
    """The objects that meet a shape.

    Raises ``RecursiveSchemaError`` where nothing describes the properties, ``UndescribedError`` where nothing describes
    some that there have to be, and ``ConstraintError`` where keys would have to be counted that can't be told apart and
    for too many patterns or counts.
    """
    if not shape.some:
        return _object(shape, (), builder, pointer)
    cases = list(islice(_cases(shape, builder), MAX_CASES + 1))
    if len(cases) > MAX_CASES:
        remedy = "in oneOf, give every branch a required property with a const of its own"
        raise refusal(pointer, "too many properties by which alternatives may differ", remedy)
    found: list[Node] = []
    undescribed: UndescribedError | None = None
    for case, hits in cases:
        try:
            found.append(_object(case, hits, builder, pointer))
        except UndescribedError as error:
            undescribed = error
    node = builder.arena.union(found)
    if undescribed is not None and node is builder.arena.empty:
        raise undescribed
    return node


def _cases(shape: Shape, builder: ValueBuilder) -> Iterator[tuple[Shape, tuple[Some, ...]]]:
    """The cases of which declared property it is that has to be there, without those that are seen to be impossible.

    With each the demands that an additional property is left to meet.
    """
    stack: list[tuple[Shape, tuple[Some, ...], tuple[Some, ...]]] = [(shape, shape.some, ())]
    while stack:
        shape, some, hits = stack.pop()
        if not some:
            yield shape, hits
            continue
        (names, value), *others = some
        contents = builder.key_contents((names,))
        declared = _Names(shape, builder).declared
        named = [name for name in declared if builder.strings.holds(contents, name, names.pointer)]
        required = {name for name, _ in shape.required}
        if any(name in required and _is_met(value, shape, name, builder) for name in named):
            stack.append((shape, tuple(others), hits))
            continue
        made = shape.copy()
        cases: list[tuple[Shape, tuple[Some, ...], tuple[Some, ...]]] = []
        for name in named:
            case = made.copy()
            case.required += ((name, names.pointer),)
            if value.schema is not True:
                case.members += (PropertyRules({name: value}, [], None),)
            cases.append((case, tuple(others), hits))
            if value.schema is True:  # in the cases that follow this one is not there
                made = made.copy()
                made.members += (PropertyRules({name: Subschema(False, names.pointer)}, [], None),)
        stack += [(made, tuple(others), (*hits, some[0])), *reversed(cases)]


def _is_met(value: Subschema, shape: Shape, name: str, builder: ValueBuilder) -> bool:
    """Return whether a required property meets a schema because it is asked to."""
    return value.schema is True or any(sub.schema is value.schema for sub in shape.member_goal(name, builder.strings))


def _object(shape: Shape, hits: tuple[Some, ...], builder: ValueBuilder, pointer: Pointer) -> Node:
    """The objects that meet a shape, the last of their properties an additional one that meets ``hits``, if any."""
    if not hits and not shape.members and not shape.required and (not shape.max_members or shape.max_members.value):
        raise recursive(pointer, "the object may have any properties")
    required = dict(shape.required)
    names = _Names(shape, builder)
    members: list[Property] = []
    for name in names.declared:
        goal = shape.member_goal(name, builder.strings)
        if not goal and name not in required:
            continue
        where = goal[0].pointer if goal else required[name]
        conflict = builder.conflict
        value = builder.node(goal, where) if names.are_allowed(name) else builder.arena.empty
        if value is not builder.arena.empty:
            members.append(Property(string_text(name, where), value, name in required))
        elif name in required:
            return builder.arena.empty
        else:
            builder.conflict = conflict  # it may be left out
    if names.may_be_others and any(hit.value.schema is True for hit in hits) and not shape.has_patterns:
        raise UndescribedError("a property is needed that nothing describes")
    others = names.others(pointer)
    hit = _one_property(names.others(pointer, hits), builder) if hits else None
    if hit is builder.arena.empty:
        return builder.arena.empty
    least = shape.min_members.value if shape.min_members is not None else 0
    described = sum(builder.surely_has_value(member.value) for member in members) + bool(hits)
    is_short = least > described and not any(builder.surely_has_value(other.value) for other in others)
    if is_short and names.may_be_others:
        raise UndescribedError("the object has to have more properties than are described")
    return _braces(shape, builder, members, others, hit)


class _Names:
    """The keys of an object: those that the schema names, and sets of others."""

    def __init__(self, shape: Shape, builder: ValueBuilder) -> None:
        self._shape = shape
        self._builder = builder
        listed = builder.key_list(shape.names) if shape.names else None
        self._allowed = None if listed is None else frozenset(listed)
        self._contents = builder.key_contents(shape.names) if shape.names and listed is None else None
        self.declared = list(dict.fromkeys([*shape.declared(), *(listed or ())]))

    @property
    def may_be_others(self) -> bool:
        """Return whether there may be properties that nothing describes."""
        if self._shape.has_rest:
            return False
        return self._allowed is None or not all(
            self._shape.member_goal(name, self._builder.strings) for name in self._allowed
        )

    def are_allowed(self, name: str) -> bool:
        """Return whether `propertyNames` lets it be."""
        if self._allowed is not None:
            return name in self._allowed
        return self._contents is None or self._builder.strings.holds(self._contents, name, self._shape.pointer)

    def others(self, pointer: Pointer, hits: tuple[Some, ...] = ()) -> list[Other]:
        """Properties whose keys the schema does not name, all those that meet ``hits``.

        What is neither asked for nor described is not produced.
        """
        builder, shape = self._builder, self._shape
        within = [builder.key_contents((hit.names,)) for hit in hits]
        patterns = [(pattern, sub, members) for members in shape.members for pattern, sub in members.patterns]
        if self._allowed is not None or not (patterns or shape.has_rest or hits):
            return []
        if len(patterns) > MAX_PATTERNS:
            remedy = "join patterns that have the same schema with |, or name the properties"
            raise refusal(patterns[0][1].pointer, f"more than {MAX_PATTERNS} patterns for properties", remedy)
        found: list[Other] = []
        for matching in product((True, False), repeat=len(patterns)):
            matched = [entry for entry, is_matching in zip(patterns, matching, strict=True) if is_matching]
            subs = [sub for _, sub, _ in matched] + [hit.value for hit in hits]
            for members in shape.members:
                if members.rest is not None and all(members is not each for _, _, each in matched):
                    subs.append(members.rest)
            goal = of_schemas(subs)
            if not goal or any(sub.schema is False for sub in goal):
                continue
            unmatched = [entry for entry, is_matching in zip(patterns, matching, strict=True) if not is_matching]
            contents = self._keys([entry[:2] for entry in matched], [entry[:2] for entry in unmatched], within)
            if contents is not None and not builder.is_live(contents):
                continue
            value = builder.node(goal, pointer)
            if value is not builder.arena.empty:
                found.append(Other(contents, value))
        return found

    def _keys(
        self, matched: list[tuple[str, Subschema]], unmatched: list[tuple[str, Subschema]], within: list[Node]
    ) -> Node | None:
        """The contents of keys without a name in which these patterns are found and those are not; None: of any.

        All are ``within`` some contents.
        """
        strings = self._builder.strings
        parts = [*within, *(strings.pattern(pattern, sub.pointer) for pattern, sub in matched)]
        if self._contents is not None:
            parts.append(self._contents)
        declared = [
            name for name in self.declared if all(strings.holds(part, name, self._shape.pointer) for part in parts)
        ]
        if declared or (unmatched and not parts):
            parts.append(strings.other_than(declared))
        parts += [strings.pattern(pattern, sub.pointer, is_negated=True) for pattern, sub in unmatched]
        return self._builder.arena.intersection(parts) if parts else None


def _braces(
    shape: Shape, builder: ValueBuilder, members: list[Property], others: list[Other], hit: Node | None
) -> Node:
    """The members in their order and any number of others, within the bounds on how many there are.

    ``hit``, if not None, is a property that comes behind all of them.

    Read from the right, the closing bracket first: what may follow once ``count`` members are there. Counts that make
    no difference are one, and then optional members are a plain sequence, so that hundreds of them cost no more than
    each by itself.
    """
    arena, layout, comma = builder.arena, builder.layout, builder.layout.comma
    low = 0 if shape.min_members is None else shape.min_members.value
    high = None if shape.max_members is None else shape.max_members.value
    extra = _one_property(others, builder)
    has_extra = extra is not arena.empty or hit is not None
    countable = len(members) + (2 if hit is None else 1)
    if low > countable and has_extra:
        remedy = f"list the keys (properties, or an enum in propertyNames), or ask for at most {countable}"
        cause = "minProperties can't be enforced: of three keys that are not listed, two may be the same"
        raise refusal(_at(shape.min_members), cause, remedy)
    if high is not None and high >= len(members) and not has_extra:
        high = None
    if low > len(members) and not has_extra:
        return arena.empty
    top = max(low, 1) if high is None else min(high, len(members))
    if top > 1 and len(members) * top > MAX_COUNTED:
        bound = shape.min_members if high is None else shape.max_members
        remedy = "leave the bound out, or have fewer properties"
        raise refusal(_at(bound), "so many properties can't be counted", remedy)

    def extras(count: int) -> Node:
        """Others behind ``count`` declared members; they count as two at most."""
        least = max(low - count, 0)
        most = None if high is None else high - count
        if hit is not None:
            if least > 1 or most == 0:
                return arena.empty
            before = arena.repeat(arena.concat(comma, extra), 0, None if most is None else most - 1)
            return arena.concat(before, comma, hit, closing)
        if least > (2 if has_extra else 0) or (most is not None and most < least):
            builder.has_other_values |= has_extra
            return arena.empty
        if least == 2:
            builder.leaves_out = True
            return arena.concat(comma, _two_properties(others, builder, most, _at(shape.min_members)), closing)
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
    if hit is not None:
        if low <= 1 and high != 0:
            before = arena.repeat(arena.concat(extra, comma), 0, None if high is None else high - 1)
            firsts.append(arena.concat(before, hit, closing))
    elif has_extra and low <= 1 and high != 0:
        more = arena.repeat(arena.concat(comma, extra), 0, None if high is None else high - 1)
        firsts.append(arena.concat(extra, more, closing))
    elif has_extra and low == 2 and high not in (0, 1):
        builder.leaves_out = True
        firsts.append(arena.concat(_two_properties(others, builder, high, _at(shape.min_members)), closing))
    if low == 0 and hit is None:
        firsts.append(arena.literal(_PAIR[1:]))
    return layout.opened(_PAIR, arena.union(firsts))


def _at(count: LengthBound | None) -> Pointer:
    return None if count is None else count.pointer


def _uncounted(builder: ValueBuilder, members: list[Property], end: Node) -> list[list[Node]]:
    """Return what follows each member, as parts, where it is the first; from the last on. ``end`` follows the last.

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


def _counted(
    builder: ValueBuilder, members: list[Property], after: list[Node], *, is_bounded: bool
) -> list[list[Node]]:
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


def _one_property(others: list[Other], builder: ValueBuilder) -> Node:
    """One of these properties."""
    return _one_of(
        [Other(builder.strings.contents(Shape()), each.value) if each.contents is None else each for each in others],
        builder,
    )


def _two_properties(others: list[Other], builder: ValueBuilder, most: int | None, pointer: Pointer) -> Node:
    """Two or more of these properties, up to ``most``, with commas, two of which are sure to have different keys.

    That two keys differ is not regular. That they differ in their first characters, or in their last, is, and is cheap
    where few kinds of characters count: by the last byte of a character modulo 7. Left out are objects all of
    whose keys agree in both; of pairs of words one in 25 does. Keys have their one spelling here.
    """
    arena, comma = builder.arena, builder.layout.comma
    any_text = arena.repeat(any_character(), 0, None)
    anything = _one_of(_held(others, any_text, arena), builder)
    found: list[Node] = []

    def add(own: Node, differing: Node) -> None:
        """The first key is of one kind, some other is not."""
        same, other = (_one_of(_held(others, texts, arena), builder) for texts in (own, differing))
        before, behind = (arena.repeat(arena.concat(comma, each), 0, None) for each in (same, anything))
        found.append(arena.concat(same, before, comma, other, behind))

    kinds = [_characters(kind, arena) for kind in range(_KINDS)]
    for kind, own in enumerate(kinds):
        rest = arena.union(kinds[:kind] + kinds[kind + 1 :])
        add(arena.concat(own, any_text), arena.optional(arena.concat(rest, any_text)))
        add(arena.concat(any_text, own), arena.optional(arena.concat(any_text, rest)))
    add(arena.epsilon, arena.repeat(any_character(), 1, None))
    node = arena.union(found)
    if most is None:
        return node
    counted = arena.concat(anything, arena.repeat(arena.concat(comma, anything), 1, most - 1))
    return builder.intersection([node, counted], pointer)


def _characters(kind: int, arena: Arena) -> Node:
    """One character of a kind, in its one spelling."""

    def byte_range(first: int, last: int) -> Node:
        return arena.byte_set((1 << last + 1) - (1 << first))

    ascii_ones = CharSet.of("".join(map(chr, range(kind, 0x80, _KINDS))))
    any_byte = byte_range(0x80, 0xBF)
    last = arena.byte_set(sum(1 << byte for byte in range(0x80, 0xC0) if byte % _KINDS == kind))
    two = byte_range(0xC2, 0xDF)
    three = arena.union(
        [
            arena.concat(byte_range(0xE0, 0xE0), byte_range(0xA0, 0xBF)),
            arena.concat(arena.byte_set(byte_range(0xE1, 0xEF).mask & ~(1 << 0xED)), any_byte),
            arena.concat(byte_range(0xED, 0xED), byte_range(0x80, 0x9F)),
        ]
    )
    four = arena.union(
        [
            arena.concat(byte_range(0xF0, 0xF0), byte_range(0x90, 0xBF)),
            arena.concat(byte_range(0xF1, 0xF3), any_byte),
            arena.concat(byte_range(0xF4, 0xF4), byte_range(0x80, 0x8F)),
        ]
    )
    longer = arena.union([two, three, arena.concat(four, any_byte)])
    return arena.union([JSON.encode(arena, ascii_ones), arena.concat(longer, last)])


def _held(others: list[Other], texts: Node, arena: Arena) -> list[Other]:
    """The same with keys that are among some texts."""
    return [
        Other(texts if each.contents is None else arena.intersection([each.contents, texts]), each.value)
        for each in others
    ]


def _one_of(others: list[Other], builder: ValueBuilder) -> Node:
    pairs: list[Node] = []
    for contents, value in others:
        assert contents is not None
        pairs.append(builder.layout.pair(builder.strings.quoted(contents), value))
    return builder.arena.union(pairs)

"""Definitions that refer to each other: what is left of them, and what their references say."""

import pytest

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Kind, Node, references
from lmc.grammar.schema.compiling import linked


def _list_of(arena: Arena, item: Node, low: int = 0) -> Node:
    return arena.concat(arena.literal(b"["), arena.repeat(item, low, None), arena.literal(b"]"))


def _matching(node: Node, arena: Arena, texts: list[bytes]) -> list[bytes]:
    automaton = Automaton(node, arena)
    return [text for text in texts if automaton.matches(text)]


def test_a_definition_may_refer_to_itself():
    arena = Arena()
    root, endless = linked(arena.reference(4), {4: _list_of(arena, arena.reference(4))}, arena)
    assert endless == []
    assert [each.state for each in references(root)] == [4]
    assert _matching(root, arena, [b"[]", b"[[][[]]]", b"", b"[", b"[]]"]) == [b"[]", b"[[][[]]]"]


def test_definitions_without_a_finite_value_are_left_out():
    arena = Arena()
    first, second, third = map(arena.reference, range(3))
    definitions = {
        0: arena.union([arena.literal(b"a"), _list_of(arena, second, 1)]),
        1: _list_of(arena, third, 2),
        2: arena.union([_list_of(arena, second, 1), arena.concat(arena.literal(b"x"), third)]),
    }
    root, endless = linked(_list_of(arena, arena.union([first, second])), definitions, arena)
    assert endless == [1, 2]
    assert _matching(root, arena, [b"[]", b"[aa]", b"[[]]", b"[x]"]) == [b"[]", b"[aa]"]
    nothing, endless = linked(second, {1: _list_of(arena, second, 1)}, arena)
    assert nothing is arena.empty
    assert endless == [1]


def test_definitions_that_are_each_other_are_the_same_value():
    arena = Arena()
    first, second, third = map(arena.reference, range(3))
    definitions = {
        0: arena.union([second, arena.literal(b"a")]),
        1: arena.union([third, arena.literal(b"b")]),
        2: arena.union([first, _list_of(arena, first), second]),
    }
    for number in range(3):
        root, endless = linked(arena.reference(number), definitions, arena)
        assert endless == []
        assert _matching(root, arena, [b"a", b"b", b"[ab[]]", b"", b"[c]"]) == [b"a", b"b", b"[ab[]]"]
    for reference in (first, second, third):
        assert reference.resolved is not None
        assert all(part.kind is not Kind.REFERENCE for part in reference.resolved.parts)


def test_a_definition_that_is_nothing_but_itself_has_no_value():
    arena = Arena()
    first, second = map(arena.reference, range(2))
    root, endless = linked(arena.union([first, arena.literal(b"x")]), {0: second, 1: first}, arena)
    assert endless == [0, 1]
    assert _matching(root, arena, [b"x", b""]) == [b"x"]


@pytest.mark.parametrize("low", [0, 1])
def test_a_repeat_of_nothing_may_be_left_out(low: int):
    arena = Arena()
    endless = arena.reference(0)
    pair = arena.repeat(arena.concat(arena.literal(b","), endless), low, 3)
    node = arena.concat(arena.literal(b"{"), pair, arena.literal(b"}"))
    root, _ = linked(node, {0: _list_of(arena, endless, 1)}, arena)
    assert _matching(root, arena, [b"{}"]) == ([] if low else [b"{}"])
    assert (root is arena.empty) == bool(low)

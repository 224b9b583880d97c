"""Shortest strings, of nodes with and without references."""

import pytest
from hypothesis import given

from lmc.grammar import regex
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.shortest import ShortestStrings, shortest_path
from lmc.grammar.schema import any_node
from lmc.ir.errors import ConstraintError
from tests.grammar.regex.pattern_strategies import Example, unflagged


@given(unflagged)
def test_the_length_is_that_of_a_search(example: Example):
    arena = Arena()
    try:
        node = Derivatives(arena).resolved(regex.to_node(example.pattern, arena))
    except ConstraintError:
        return
    automaton = Automaton(node, arena)
    found = automaton.shortest()
    assert (found is None) == automaton.is_empty
    if found is not None:
        shortest = ShortestStrings().of(node)
        assert len(shortest) == len(found)
        assert automaton.matches(shortest)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 2, "maxItems": 1}, None),
        ({"anyOf": [{"const": "long"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}]}, b'"long"'),
        (
            {
                "$defs": {
                    "a": {"type": "array", "items": {"$ref": "#/$defs/b"}, "minItems": 1},
                    "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/c"}]},
                    "c": {"type": "object", "properties": {"k": {"$ref": "#/$defs/a"}}},
                },
                "$ref": "#/$defs/a",
            },
            b"[{}]",
        ),
        (
            {
                "type": "object",
                "properties": {"v": {"type": "string", "minLength": 3, "pattern": "b"}, "c": {"$ref": "#"}},
                "required": ["v"],
            },
            b'{"v":"???"}',
        ),
    ],
)
def test_recursive_schemas(schema: dict[str, object], text: bytes | None):
    try:
        arena = Arena()
        node = any_node(schema, arena)
    except ConstraintError:
        assert text is None
        return
    assert text is not None
    automaton = Automaton(node, arena)
    found = automaton.shortest()
    assert found is not None
    assert len(found) == len(text)
    assert automaton.matches(found)


def test_the_rest_of_a_text_is_found_from_every_place():
    arena = Arena()
    node = any_node({"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "object"}]}}, arena)
    automaton = Automaton(node, arena)
    text, rests = b'[[],{"a":[{', (1, 2, 1, 3, 2, 5, 5, 4, 3, 3, 4)
    state = 0
    for at, expected in enumerate(rests):
        state = automaton.step(state, text[at])
        rest = automaton.shortest(state)
        assert rest is not None
        assert automaton.matches(text[: at + 1] + rest)
        assert len(rest) == expected, text[: at + 1]


def test_what_is_too_long_is_refused():
    arena = Arena()
    node = any_node({"anyOf": [{"type": "array", "items": {"$ref": "#"}, "minItems": 2**40}, {"const": 1}]}, arena)
    assert Automaton(node, arena).shortest() == b"1"
    many = arena.concat(arena.literal(b"x"), arena.repeat(node, 2**40, None))
    with pytest.raises(ConstraintError, match="every output has more than"):
        Automaton(many, arena).shortest()


def test_a_path_is_the_first_of_the_shortest():
    def arcs(at: int) -> list[tuple[int, int]]:
        return [(0b0001, at + 1), (0b1100, at + 2), (0b10000, at + 2)] if at < 6 else []

    assert shortest_path(0, arcs, lambda at: at == 6) == b"\x02\x02\x02"
    assert shortest_path(0, arcs, lambda at: at == 5) == b"\x00\x02\x02"
    assert shortest_path(0, arcs, lambda at: at > 9) is None

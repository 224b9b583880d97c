import pytest

from lmc.grammar.building import Arena
from lmc.grammar.context_free.cutting import Cutting, reference, rule_name
from lmc.grammar.context_free.rules import Repetition
from lmc.grammar.nodes import Node
from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import of_schema


def _cut(arena: Arena, node: Node) -> dict[str, list[tuple[object, ...]]]:
    cutting = Cutting(arena, {7: ((None, "items"), "a/b")})
    cutting.add("start", node)
    return {name: list(alternatives) for name, alternatives in cutting.alternatives.items()}


def _said(symbol: object) -> object:
    """The bytes of a terminal that is one string, the name of a rule."""
    return symbol.data or bytes((symbol.mask.bit_length() - 1,)) if isinstance(symbol, Node) else symbol


def test_a_row_is_cut_into_the_tokens_of_json():
    arena = Arena()
    data = b'{"a":[-1.5,true,"x{\\"}"],"b":' + reference(7) + b"}"
    (row,) = _cut(arena, arena.literal(data))["start"]
    said = [_said(symbol) for symbol in row]
    assert said == [
        *(b"{", b'"a"', b":", b"[", b"-1.5", b",", b"true", b",", b'"x{\\"}"', b"]", b",", b'"b"', b":"),
        rule_name(7),
        b"}",
    ]


def test_strings_and_numbers_stay_whole_and_alternatives_of_one_token_are_one():
    arena = Arena()
    digits = arena.repeat(arena.byte_set(0x3FF << ord("0")), 1, None)
    string = arena.concat(
        arena.literal(b'"a'), arena.repeat(arena.byte_set(1 << ord("{") | 1 << ord("x")), 0, 3), arena.literal(b'"')
    )
    minus = arena.optional(arena.literal(b"-"))
    node = arena.union(
        [
            string,
            arena.concat(minus, digits),
            arena.literal(b"null"),
            arena.concat(arena.literal(b"["), digits, arena.literal(b"]")),
        ]
    )
    found = _cut(arena, node)["start"]
    assert len(found) == 2
    assert sorted(map(len, found)) == [1, 3]


def test_repeats_and_options_become_rules_of_their_own():
    arena = Arena()
    item = arena.concat(arena.literal(b","), arena.literal(reference(7)))
    space = arena.repeat(arena.byte_set(1 << ord(" ")), 0, None)
    found = _cut(arena, arena.concat(arena.literal(b"["), space, arena.repeat(item, 2, 5), arena.literal(b"]")))
    ((_, between, repeated, _),) = found["start"]
    assert between is space
    assert repeated == Repetition("part0", 2, 5)
    assert [symbol for symbol in found["part0"][0] if isinstance(symbol, str)] == [rule_name(7)]


def test_references_where_texts_are_compared_are_refused():
    arena = Arena()
    inner = arena.concat(arena.literal(b"["), arena.literal(reference(7)), arena.literal(b"]"))
    node = arena.intersection([inner, arena.complement(arena.literal(b"[]"))])
    with pytest.raises(ConstraintError, match="contains asks for values that nest without bound") as caught:
        _cut(arena, node)
    assert caught.value.pointer == "/items/a~1b"
    assert caught.value.remedy


def test_a_schema_that_becomes_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("lmc.grammar.context_free.cutting.MAX_SYMBOLS", 50)
    with pytest.raises(ConstraintError, match="a grammar of more than 50 symbols"):
        of_schema({"type": "object", "properties": {f"p{number}": {"$ref": "#"} for number in range(30)}})

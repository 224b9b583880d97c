import pytest

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.context_free.matching import MAX_DEPTH, as_characters, emit
from lmc.grammar.context_free.rules import Repetition, RuleSet
from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import of_grammar


def test_every_byte_is_one_character():
    assert as_characters(bytes(range(256))).decode() == "".join(map(chr, range(256)))


def test_every_kind_of_node_means_what_it_does_as_an_automaton():
    arena = Arena()
    node = arena.union(
        [
            arena.repeat(arena.byte_set(sum(1 << byte for byte in b"ab\xff")), 0, 3),
            arena.concat(
                arena.literal(b'"\\\x00'), arena.repeat(arena.literal(b"a"), 2, 4), arena.optional(arena.literal(b"b"))
            ),
            arena.repeat(arena.literal(b"cc"), 3, None),
        ]
    )
    start = (arena.literal(b"["), Repetition(node, 0, 1), arena.literal(b"]"))
    rules = RuleSet({"start": [start]}, "start", Derivatives(arena))
    text = emit(rules)
    assert text == emit(rules)
    assert text.startswith('%llguidance {"no_forcing": true')

    from lmc.grammar.context_free.matching import Matcher, byte_tokenizer

    matcher = Matcher.of(byte_tokenizer(), text)

    def matches(data: bytes) -> bool:
        copy = matcher.copy()
        return copy.take(data) and copy.accepts

    for data in (b"[]", b"[ba\xff]", b'["\\\x00aab]', b"[cccccc]", b'["\\\x00aaaa]'):
        assert matches(data), data
    for data in (b"[caba]", b"[abab]", b'["\\\x00a]', b"[d]", b"[", b'["\\\x00aaaaab]'):
        assert not matches(data), data


def test_rules_nested_too_deeply_are_refused_before_they_reach_the_stack():
    chain = (
        "start: r0\n" + "".join(f'r{number}: "a" r{number + 1} "b"\n' for number in range(2_000)) + 'r2000: "c" start'
    )
    with pytest.raises(ConstraintError, match=f"rules refer to others more than {MAX_DEPTH} deep"):
        of_grammar(chain + ' | "d"')


def test_terminals_nested_too_deeply_are_refused_before_they_reach_the_stack():
    pattern = "(?:a(?:b|" * 1_000 + "c" + "))" * 1_000
    with pytest.raises(ConstraintError, match=f"parts of a terminal nest more than {MAX_DEPTH} deep"):
        of_grammar(f'start: "(" start ")" | /{pattern}/')

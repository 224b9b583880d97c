"""Generations under constraints that combine patterns, lengths and counts: what compiled never fails on the way."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lmc import grammar
from lmc.grammar.constraint import Constraint
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import bits

VOCABULARY = Vocabulary.of("lmc/builtin_model")
TOKENS = 60
NESTED = re.compile(r"\)[{*+]")  # `re` takes exponential time for repeats of repeats
WORDS = ["badword", "stupid", "idiot", "damn", "hell", "crap", "fool", "moron", "test", "and", "é", "an"]

words = st.sampled_from(WORDS)
_classes = st.sampled_from(["[a-z]", "[^a]", ".", r"\w", r"\S", "[a-z ]", "(an|the)", "a", "[^x]b"])
_bounds = st.sampled_from(["{2,5}", "{5,20}", "{0,100}", "{3}", "{1,64}", "{10,}", "*", "+"])
counted = st.builds(str.__add__, _classes, _bounds)
# A text of the first letters of several of these holds many places at which each may have begun.
BEGINNINGS = "abc"
spread = st.builds(
    "{}.{}{}".format,
    st.sampled_from(BEGINNINGS),
    st.sampled_from(["{1,20}", "{1,10}", "{2,8}", "*"]),
    st.sampled_from("xyz"),
)
patterns = st.one_of(
    words,
    spread,
    st.builds("^(?!.*{})".format, words).map(lambda start: start + ".*$"),
    st.builds("^(?=.*{0}){1}$".format, words, counted),
    st.builds("^{}$".format, counted),
    st.builds("{}{}{}".format, words, counted, words),
    st.builds("^({}{}){}$".format, counted, counted, _bounds),
    st.lists(words, min_size=2, max_size=5).map("|".join),
)


def _schema_of(pattern: str) -> dict[str, str]:
    return {"pattern": pattern}


_several = st.lists(patterns.map(_schema_of), min_size=1, max_size=4)
strings = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "allOf": _several,
        "not": st.one_of(patterns.map(_schema_of), _several.map(lambda found: {"anyOf": found})),
        "pattern": patterns,
        "minLength": st.sampled_from([1, 3, 30]),
        "maxLength": st.sampled_from([5, 40, 100, 1000, 20_000]),
        "format": st.sampled_from(["email", "hostname", "uri", "date-time", "ipv6", "uuid"]),
        "enum": st.just(["a test", "badword", "an idiot and a fool"]),
    },
)
spread_strings = st.builds(
    lambda found: {"type": "string", "allOf": found},
    st.lists(spread.map(_schema_of), min_size=2, max_size=2),
)
strings = st.one_of(strings, spread_strings)
schemas = st.one_of(
    strings,
    st.builds(lambda each: {"type": "array", "items": each, "minItems": 1, "maxItems": 50}, strings),
    st.builds(lambda left, right: {"anyOf": [left, right]}, strings, strings),
    st.builds(
        lambda left, right: {"type": "object", "properties": {"a": left, "b": right}, "required": ["a", "b"]},
        strings,
        strings,
    ),
)
# Values that nest without bound, each with such strings.
recursive = st.one_of(
    st.builds(
        lambda each: {"type": "object", "properties": {"v": each, "c": {"$ref": "#"}}, "required": ["v"]}, strings
    ),
    st.builds(lambda each: {"type": "array", "items": {"anyOf": [each, {"$ref": "#"}]}, "maxItems": 3}, strings),
    st.builds(
        lambda left, right: {
            "anyOf": [
                left,
                {"type": "object", "properties": {"a": right, "b": {"$ref": "#"}}, "required": ["b"]},
                {"type": "object", "additionalProperties": {"$ref": "#"}, "maxProperties": 2},
            ]
        },
        strings,
        strings,
    ),
)
_repeats = st.recursive(
    st.one_of(words, counted),
    lambda inner: st.one_of(
        st.builds("({}{}?){}".format, inner, words, _bounds), st.builds("({}|{}){}".format, inner, inner, _bounds)
    ),
    max_leaves=5,
)


def generated(
    constraint: Constraint, chance: random.Random, tokens: int = TOKENS, preferred: bytes = b""
) -> bytes | None:
    """A random generation as engines run them; None where it was cut off. Raises where a step fails.

    Most tokens are single bytes out of ``preferred`` where these may follow.
    """
    written, state = bytearray(), constraint.start()
    vocabulary = constraint.vocabulary
    favourites = frozenset(vocabulary.tokens.index(bytes((byte,))) for byte in preferred)
    for _ in range(tokens):
        allowed = bits(state.mask())
        assert allowed, f"nothing may follow {bytes(written)!r}"
        state.forced()
        token = chance.choice(allowed)
        liked = [each for each in allowed if each in favourites] if favourites else []
        if liked and chance.random() < 0.95:
            token = chance.choice(liked)
        # The end of a text as seldom as models write it.
        if vocabulary.tokens[token] in (b'"', b'"]', b"") and len(allowed) > 1 and chance.random() < 0.8:
            token = chance.choice(allowed)
        if token in vocabulary.eos_ids:
            return bytes(written)
        written += vocabulary.tokens[token]
        state = state.advance(token)
        if state.complete:
            return bytes(written)
    return None


def compiled(**definition: Any) -> Constraint | None:
    """The constraint; None where it is refused."""
    try:
        return grammar.compile(tokenizer=VOCABULARY, **definition)
    except ConstraintError as error:
        event(f"refused: {error.cause[:80]}")
        return None


# States that generations of one constraint share add up.
RUNS = [(TOKENS, b""), (TOKENS, b""), *[(4 * TOKENS, f"{BEGINNINGS} ".encode())] * 4]


@given(st.one_of(schemas, recursive), st.integers(0, 1000))
def test_schemas_that_compiled_generate_to_the_end(schema: Any, seed: int) -> None:
    constraint = compiled(schema=schema)
    if constraint is None:
        return
    for each, (tokens, preferred) in enumerate(RUNS):
        output = generated(constraint, random.Random(seed + each), tokens, preferred)
        if output is not None:
            assert constraint.matches(output)
            if not NESTED.search(json.dumps(schema)):
                Draft202012Validator(schema).validate(json.loads(output))


@given(_repeats, st.integers(0, 1000))
def test_regexes_that_compiled_generate_to_the_end(pattern: str, seed: int) -> None:
    constraint = compiled(regex=pattern)
    if constraint is None:
        return
    for each in range(2):
        output = generated(constraint, random.Random(seed + each))
        assert output is None or constraint.matches(output)


EIGHT = WORDS[:8]
SUBSTRINGS = [{"pattern": word} for word in EIGHT]
LARGE = {
    "eight banned words": ({"not": {"anyOf": SUBSTRINGS}}, ["", "foo badwor", "hel"], EIGHT),
    "eight banned words and a length": ({"not": {"anyOf": SUBSTRINGS}, "maxLength": 300}, ["foo"], ["a" * 301, *EIGHT]),
    "mail but of one name": (
        {"format": "email", "maxLength": 100, "not": {"pattern": "test"}},
        ["a.b@example.org"],
        ["test@example.org", "a@tester.org", "a" * 40 + "@" + "b" * 60 + ".org"],
    ),
    "eight words that have to be there": ({"allOf": SUBSTRINGS}, [" ".join(EIGHT), "".join(EIGHT)], EIGHT),
    "eight words and a length": (
        {"allOf": SUBSTRINGS, "maxLength": len("".join(EIGHT))},
        ["".join(EIGHT), "".join(reversed(EIGHT))],
        [" ".join(EIGHT), ""],
    ),
    "eight words and a long length": ({"allOf": SUBSTRINGS, "maxLength": 20_000}, ["é".join(EIGHT)], ["a" * 90]),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_combines_many_patterns_works(name: str) -> None:
    keywords, valid, invalid = LARGE[name]
    schema = {"type": "string", **keywords}
    constraint = grammar.compile(schema=schema, tokenizer=VOCABULARY)
    for text in valid:
        assert constraint.matches(json.dumps(text, ensure_ascii=False))
    for text in invalid:
        assert not constraint.matches(json.dumps(text))
    for seed in range(2):
        output = generated(constraint, random.Random(seed))
        if output is not None:
            Draft202012Validator(schema).validate(json.loads(output))


@pytest.mark.parametrize("name", LARGE)
def test_what_combines_many_patterns_works_in_a_recursive_schema(name: str) -> None:
    item = {"type": "string", **LARGE[name][0]}
    node = {"type": "object", "properties": {"v": item, "c": {"$ref": "#"}}, "required": ["v"]}
    constraint = grammar.compile(schema=node, tokenizer=VOCABULARY)
    for seed in range(2):
        output = generated(constraint, random.Random(seed), tokens=30)
        if output is not None:
            Draft202012Validator(node).validate(json.loads(output))


def test_a_long_text_of_what_patterns_begin_with_never_fails_in_a_recursive_schema() -> None:
    item = {"type": "string", "allOf": [{"pattern": "a.{1,20}b"}, {"pattern": "c.{1,20}d"}]}
    node = {"type": "object", "properties": {"v": item, "c": {"$ref": "#"}}, "required": ["v"]}
    constraint = grammar.compile(schema=node, tokenizer=VOCABULARY)
    for seed in range(2):
        generated(constraint, random.Random(seed), 200, b"acexy")
    assert constraint.matches('{"v":"acxxbd","c":{"v":"cabd-b"}}')
    assert not constraint.matches('{"v":"acxxbd","c":{"v":"cab"}}')


# Each keeps track of where its letter came in the last 200 characters.
TOO_LARGE: Any = {"type": "string", "allOf": [{"pattern": f"{letter}.{{50,200}}{letter}"} for letter in "abcdefgh"]}


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (TOO_LARGE, ""),
        ({"type": "object", "properties": {"v": TOO_LARGE, "c": {"$ref": "#"}}, "required": ["v"]}, "/properties/v"),
    ],
    ids=["alone", "in a recursive schema"],
)
def test_what_is_too_large_is_refused_when_it_is_compiled(schema: Any, pointer: str) -> None:
    with pytest.raises(ConstraintError, match=r"the patterns and lengths .* take more than \d+ steps") as caught:
        grammar.compile(schema=schema, tokenizer=VOCABULARY)
    assert caught.value.pointer == pointer

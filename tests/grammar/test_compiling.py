"""From each kind of source to a constraint over a small vocabulary, and what is refused on the way."""

import pydantic
import pytest

import lmc
from lmc import grammar
from lmc.grammar.vocabulary.vocabulary import Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*BYTES, b"", b"ab", b'{"', "é".encode()], special_ids=[256], eos_id=256)


class Pair(pydantic.BaseModel):
    name: str
    size: int


def ids_of(state, text: bytes):
    for byte in text:
        state = state.advance(byte)
    return state


def allowed(state) -> set[int]:
    words = state.mask()
    return {token for token in range(VOCABULARY.size) if words[token // 32] >> (token % 32) & 1}


@pytest.mark.parametrize(
    ("given", "inside", "outside"),
    [
        ({"regex": "(?i)[ab]{2}é?"}, ["Ab", "abé"], ["abc", "", "é"]),
        ({"choices": ["yes", "no", "été"]}, ["yes", "no", "été"], ["ye", "maybe", ""]),
        ({"schema": {"type": "array", "items": {"type": "boolean"}}}, ["[]", "[true,false]"], ["[true, false]", "{}"]),
        ({"schema": Pair}, ['{"name":"a","size":3}'], ['{"name":"a"}', '{"name":"a","size":"3"}']),
        ({"grammar": 'start: "(" start ")" | "a"'}, ["a", "((a))"], ["((a)", "()"]),
        (
            {"schema": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}},
            ["[]", "[[],[[]]]"],
            ["[1]", "[[]"],
        ),
    ],
    ids=["regex", "choices", "schema", "class", "grammar", "recursive"],
)
def test_each_kind_takes_what_it_should(given, inside, outside):
    constraint = grammar.compile(**given, tokenizer=VOCABULARY)
    assert all(constraint.matches(text) and constraint.matches(text.encode()) for text in inside)
    assert not any(constraint.matches(text) for text in outside)
    for text in inside:
        state = ids_of(constraint.start(), text.encode())
        assert state.accepting
        assert 256 in allowed(state)
    assert constraint.digest == grammar.compile(**given, tokenizer=VOCABULARY).digest


def test_whitespace_is_an_option_of_schemas():
    schema = {"type": "array", "items": {"type": "integer"}}
    flexible = grammar.compile(schema=schema, tokenizer=VOCABULARY, whitespace="flexible")
    assert flexible.matches("[ 1,\n 2 ]")
    assert flexible.digest != grammar.compile(schema=schema, tokenizer=VOCABULARY).digest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"regex": r"(a[^\s\S]|[^\s\S])"}, "nothing meets the constraint"),
        ({"choices": []}, "nothing meets the constraint"),
        ({"choices": ["a", "\ud800"]}, "choice 2 has half of a surrogate pair"),
        ({"grammar": 'start: "a" start'}, "nothing meets the constraint"),
        ({"regex": "a(?=b)"}, "look-ahead"),
        ({"schema": {"type": "array", "uniqueItems": True}}, "uniqueItems"),
        ({}, "nothing given"),
    ],
)
def test_what_can_not_be_met_or_enforced_is_refused(given, message):
    with pytest.raises(lmc.ConstraintError, match=message) as error:
        grammar.compile(**given, tokenizer=VOCABULARY)
    assert error.value.remedy


def test_a_vocabulary_that_can_not_write_the_output_is_refused():
    with pytest.raises(lmc.ConstraintError):
        grammar.compile(regex="ab", tokenizer=Vocabulary([b"a", b"<end>"], special_ids=[1], eos_id=1))


def test_a_folder_of_others_is_refused_at_once(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(lmc.ConstraintError, match="others may write"):
        grammar.compile(regex="[ab]{1,9}", tokenizer=VOCABULARY, cache=tmp_path)


def test_indexes_are_kept_in_the_folder(tmp_path):
    first = grammar.compile(regex="[ab]{1,9}", tokenizer=VOCABULARY, cache=tmp_path)
    built = first.build()
    assert len(list(tmp_path.rglob("*"))) > 0
    again = grammar.compile(regex="[ab]{1,9}", tokenizer=VOCABULARY, cache=str(tmp_path))
    loaded = again.build()
    assert built is not None
    assert loaded is not None
    assert all((built.arrays()[name] == loaded.arrays()[name]).all() for name in built.arrays())

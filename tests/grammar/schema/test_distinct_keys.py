"""At least two keys that the schema does not name."""

import json
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.schema.sampling import automaton_of, draw, is_valid

_ANY: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}
_DECLARED = {**_ANY, "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
SCHEMAS: dict[str, Any] = {
    "any": _ANY,
    "at most three": {**_ANY, "maxProperties": 3},
    "just two": {**_ANY, "maxProperties": 2},
    "beside declared ones": _DECLARED,
    "more than declared ones": {**_DECLARED, "minProperties": 4},
    "beside a required one": {**_DECLARED, "required": ["b"], "minProperties": 3, "maxProperties": 4},
    "patterns": {"patternProperties": {"^x": {"type": "integer"}}, "minProperties": 2, "type": "object"},
    "names": {**_ANY, "propertyNames": {"pattern": "^[a-c]*$"}},
}
NAMES = ["", "a", "b", "xa", "xb", "x", "é", '"', "c", "ac"]
AUTOMATA = {name: automaton_of(schema) for name, schema in SCHEMAS.items()}


def _text(names: list[str]) -> bytes:
    return ("{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:1" for name in names) + "}").encode()


@pytest.mark.parametrize("name", SCHEMAS)
def test_whatever_comes_out_has_so_many_keys(name: str):
    source = random.Random(name)
    for index in range(12):
        output = draw(AUTOMATA[name], source, steps=index * 4)
        assert is_valid(SCHEMAS[name], json.loads(output)), output


@given(st.sampled_from(sorted(SCHEMAS)), st.lists(st.sampled_from(NAMES), max_size=5))
def test_keys_that_come_twice_count_once(name: str, names: list[str]):
    if AUTOMATA[name].matches(_text(names)):
        assert is_valid(SCHEMAS[name], dict.fromkeys(names, 1)), names


def _ends(name: str) -> tuple[int, ...]:
    return tuple(character.encode()[-1] % 7 for character in (name[:1], name[-1:]) if character)


def test_keys_that_differ_at_an_end():
    for one, other in product([*NAMES, "日本", "月", "😀"], repeat=2):
        assert AUTOMATA["any"].matches(_text([one, other])) == (_ends(one) != _ends(other)), (one, other)
    assert AUTOMATA["any"].matches(_text(["item_1", "item_2"]))
    assert AUTOMATA["any"].matches(_text(["name", "name", "type"]))
    assert not AUTOMATA["any"].matches(b'{"a":1,"\\u0061":2}')
    assert not AUTOMATA["any"].matches(b'{"b":1,"\\u0061":2}')  # in one spelling only
    assert AUTOMATA["more than declared ones"].matches(_text(["a", "b", "c", "d"]))
    assert not AUTOMATA["more than declared ones"].matches(_text(["a", "b", "c"]))


def test_no_more_than_were_asked_for():
    assert not AUTOMATA["just two"].matches(_text(["a", "b", "c"]))
    assert not AUTOMATA["at most three"].matches(_text(["a", "b", "c", "d"]))
    assert AUTOMATA["at most three"].matches(_text(["a", "b", "c"]))

"""White space: none where it is compact, any where JSON has it where it is flexible."""

import json
import random
from typing import Any

import pytest

from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import automaton_of, draw

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"type": "integer"}},
        "b": {"enum": [{"x": [1, {}], "y": []}]},
        "c": {"type": "object", "additionalProperties": {"type": "null"}},
        "d": {"type": "array", "prefixItems": [{"type": "null"}, {"type": "string"}]},
    },
}
VALUES = [
    {},
    {"a": []},
    {"a": [1], "c": {}},
    {"a": [1, 2], "b": {"x": [1, {}], "y": []}, "c": {"k": None, "l": None}, "d": [None, " "]},
]


def _spread(value: Any, space: str) -> str:
    """With white space wherever there may be some."""
    if isinstance(value, dict):
        pairs = (f"{space}{json.dumps(key)}{space}:{_spread(each, space)}" for key, each in value.items())
        return f"{space}{{{','.join(pairs) or space}}}{space}"
    if isinstance(value, list):
        return f"{space}[{','.join(_spread(each, space) for each in value) or space}]{space}"
    return f"{space}{json.dumps(value)}{space}"


@pytest.mark.parametrize("value", VALUES)
def test_spaces_wherever_json_has_them(value: Any):
    compact, flexible = automaton_of(SCHEMA), automaton_of(SCHEMA, "flexible")
    for space in ("", " ", "\n", "\t \r\n  "):
        text = _spread(value, space)
        assert json.loads(text) == value
        assert compact.matches(text.encode()) == (space == "")
        assert flexible.matches(text.encode())
    for indent in (None, 2, "\t"):
        assert flexible.matches(json.dumps(value, indent=indent).encode())


@pytest.mark.parametrize(
    "text", ['{"a":[1 2]}', '{ "a" : [1 , ] }', '{"a":[1]\x0b}', '{"a" "b"}', '{"a":[-\n1]}', "{}}", ""]
)
def test_no_space_within_a_token_nor_for_one(text: str):
    assert not automaton_of(SCHEMA, "flexible").matches(text.encode())


def test_compact_outputs_have_no_space_outside_of_strings():
    source = random.Random(5)
    automaton = automaton_of(SCHEMA)
    for _ in range(20):
        output = draw(automaton, source, steps=200).decode()
        outside = "".join(output.split('"')[::2]) if "\\" not in output else ""
        assert not set(outside) & set(" \t\n\r")


def test_the_whole_may_stand_between_spaces():
    for schema in ({"type": "integer"}, {"const": "a"}, {"type": "boolean"}):
        automaton = automaton_of(schema, "flexible")
        text = automaton.shortest()
        assert text is not None
        assert automaton.matches(b" \n" + text + b"\t ")


def test_a_part_that_no_value_meets_is_no_better_with_spaces():
    with pytest.raises(ConstraintError, match="no value meets"):
        automaton_of({"items": {"type": "null"}, "minItems": 2, "maxItems": 1}, "flexible")

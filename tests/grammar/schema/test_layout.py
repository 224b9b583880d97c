"""White space: none where it is compact; what printers of JSON write, and not without end, where it is flexible."""

import json
import random
from typing import Any

import pytest

from lmc.grammar.schema.layout import MAX_SPACES, MAX_TABS
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


def _nested(depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema of objects and arrays in each other, and a value of it whose innermost lines have that many indents."""
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = 1
    for level in range(depth):
        if level % 2:
            schema, value = {"type": "object", "properties": {"k": schema}}, {"k": value}
        else:
            schema, value = {"type": "array", "items": schema}, [value, value]
    return schema, value


def _spread(value: Any, space: str, line: str) -> str:
    """With ``space`` around colons and before commas, and with ``line`` wherever a line may end."""
    if isinstance(value, dict):
        pairs = [f"{json.dumps(key)}{space}:{space}{_spread(each, space, line)}" for key, each in value.items()]
    elif isinstance(value, list):
        pairs = [_spread(each, space, line) for each in value]
    else:
        return json.dumps(value)
    inner = line + f"{space},{line}".join(pairs) + line if pairs else line
    return f"{{{inner}}}" if isinstance(value, dict) else f"[{inner}]"


@pytest.mark.parametrize("value", VALUES)
def test_spaces_and_lines_where_printers_write_them(value: Any):
    compact, flexible = automaton_of(SCHEMA), automaton_of(SCHEMA, "flexible")
    for space, line in (("", ""), (" ", " "), ("", "\n"), (" ", "\r\n  "), ("", " \n" + "\t" * MAX_TABS)):
        text = line + _spread(value, space, line) + line
        assert json.loads(text) == value
        assert compact.matches(text.encode()) == (line == "")
        assert flexible.matches(text.encode())


@pytest.mark.parametrize("indent", [None, 0, 1, 2, 3, 4, 5, "\t"])
def test_what_json_dumps_writes(indent: Any):
    schema, value = _nested(8)
    automaton = automaton_of(schema, "flexible")
    assert automaton.matches(json.dumps(value, indent=indent).encode())
    for value in VALUES:
        assert automaton_of(SCHEMA, "flexible").matches(json.dumps(value, indent=indent).encode())


@pytest.mark.parametrize(
    ("line", "most"), [("\n" + " " * MAX_SPACES, " "), ("\n" + "\t" * MAX_TABS, "\t"), ("\n", "\n"), (" ", " ")]
)
@pytest.mark.parametrize(
    "text", ["{}{{}}", '{{{}"a":[]}}', '{{"a":[]{}}}', '{{"a":[{}1]}}', '{{"a":[1,{}2]}}', "{{}}{}"]
)
def test_a_run_of_white_space_ends(text: str, line: str, most: str):
    automaton = automaton_of(SCHEMA, "flexible")
    assert automaton.matches(text.format(line).encode())
    assert not automaton.matches(text.format(line + most).encode())


def test_outputs_of_bounded_parts_are_bounded():
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    line = len(" \r\n") + MAX_SPACES
    assert automaton_of(schema, "flexible").longest == len('{"a" : false}') + 4 * line


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[1 2]}',
        '{ "a" : [1 , ] }',
        '{"a":[1]\x0b}',
        '{"a" "b"}',
        '{"a":[-\n1]}',
        '{"a":\n[]}',
        '{"a"  :[]}',
        '{"a":[1\n,2]}',
        '{"a":[1,\t2]}',
        '{"a":[\r1]}',
        '{"a":[\n \t1]}',
        "{}}",
        "",
    ],
)
def test_no_space_within_a_token_nor_elsewhere_nor_for_one(text: str):
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
        assert automaton.matches(b" \n" + text + b"\n")


def test_a_part_that_no_value_meets_is_no_better_with_spaces():
    with pytest.raises(ConstraintError, match="no value meets"):
        automaton_of({"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 1}, "flexible")

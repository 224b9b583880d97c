"""Which part of a schema is named: the smallest that no value meets, or that most of a budget went into."""

from contextlib import ExitStack
from typing import Any

import pytest

from lmc.grammar.automata.building import Arena
from lmc.grammar.schema import RecursiveSchemaError, any_node
from lmc.grammar.schema.errors import Culprit, Pointer
from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import automaton_of

_EMPTY: dict[str, Any] = {"type": "string", "pattern": "^ab$", "minLength": 4}
_MAIL: dict[str, Any] = {"type": "string", "format": "email", "maxLength": 5}
_TEXT: dict[str, Any] = {"type": "string"}


def _object(*optional: str, **properties: Any) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


EMPTY: dict[str, tuple[Any, str]] = {
    "a pattern and a length": (_object(a=_TEXT, b=_EMPTY), "/properties/b"),
    "a format and a length": (_object(a={"items": _MAIL, "minItems": 1}), "/properties/a/items"),
    "a property that may be left out is not to blame": (
        _object("a", a=_EMPTY, b={"type": "integer", "minimum": 4, "maximum": 3}),
        "/properties/b",
    ),
    "nor is an array that may be empty": (
        _object(a={"items": _EMPTY}, b={"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 1}),
        "/properties/b",
    ),
    "the first of alternatives": ({"anyOf": [_MAIL, {"type": "integer", "minimum": 3, "maximum": 2}]}, "/anyOf/0"),
    "a definition": (_object(a={"$ref": "#/$defs/mail"}) | {"$defs": {"mail": _MAIL}}, "/$defs/mail"),
    "a definition that is no matter elsewhere": (
        _object("a", a={"$ref": "#/$defs/mail"}, b={"prefixItems": [{"$ref": "#/$defs/mail"}], "minItems": 1})
        | {"$defs": {"mail": _MAIL}},
        "/$defs/mail",
    ),
    "too many properties": (
        _object(a=_object(x=_TEXT) | {"minProperties": 3, "additionalProperties": False}),
        "/properties/a",
    ),
    "enums without a common value": (_object(a={"allOf": [{"enum": [1]}, {"enum": [2]}]}), "/properties/a"),
    "a property that has to be there and can't": (_object(a=False), ""),
    "patterned properties": (
        {
            "type": "object",
            "patternProperties": {"^x": _EMPTY},
            "additionalProperties": False,
            "minProperties": 1,
        },
        "/patternProperties/^x",
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_the_smallest_part_that_no_value_meets(name: str):
    schema, pointer = EMPTY[name]
    with pytest.raises(ConstraintError, match="meets this schema") as caught:
        automaton_of(schema)
    assert caught.value.pointer == pointer
    assert f"#{pointer}:" in caught.value.cause
    # There are shorter addresses than those that are produced.
    expected = "is listed in" if "email" in repr(schema) and pointer else "contradict each other"
    assert expected in (caught.value.remedy or "")


def test_what_no_value_meets_is_left_out_where_it_may_be():
    automaton = automaton_of(_object("a", a=_EMPTY, b=_TEXT))
    assert automaton.matches(b'{"b":""}')
    assert not automaton.matches(b'{"a":"ab","b":""}')
    assert automaton_of({"items": _MAIL, "type": "array"}).forced_bytes(0) == b"[]"


def _bomb(letter: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"({letter}|b)*{letter}(a|b){{16}}$", "not": {"pattern": "q.{40}z"}}


@pytest.mark.parametrize(
    ("schema", "pointer", "cause"),
    [
        (_object(a=_TEXT, b={"enum": list(range(30_000))}), "/properties/b", "alternatives at one place"),
        (_object(a={"items": {"const": "x" * 30_000}}), "/properties/a/items", "a text of more than"),
        (_object(a=_TEXT, b={"items": _bomb("a")}), "/properties/b/items", "have to hold together take"),
        (
            _object(a={"allOf": [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(20)]}),
            "/properties/a",
            "more than 20000 combinations",
        ),
    ],
)
def test_the_smallest_part_that_is_too_large(schema: Any, pointer: str, cause: str):
    with pytest.raises(ConstraintError, match=cause) as caught:
        automaton_of(schema)
    assert caught.value.pointer == pointer
    assert f"#{pointer}:" in caught.value.cause
    assert caught.value.remedy


def _spend(parts: list[tuple[list[str], int]]) -> None:
    """Take so many steps for each part, named by its path."""
    arena = Arena()
    culprit = Culprit(arena)
    with culprit.watch(None):
        for path, steps in parts:
            pointer: Pointer = None
            with ExitStack() as stack:
                for name in path:
                    pointer = (pointer, name)
                    stack.enter_context(culprit.watch(pointer))
                arena.charge(steps)


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [
        ([(["large", "inner"], 150_000), (["small"], 60_000)], "/large/inner"),
        ([(["small"], 60_000), (["large"], 150_000)], "/large"),
        ([([f"part{index}"], 30_000) for index in range(10)], ""),
    ],
)
def test_steps_of_the_whole_are_put_down_to_where_most_were_taken(parts: list[tuple[list[str], int]], pointer: str):
    with pytest.raises(ConstraintError, match="too many steps") as caught:
        _spend(parts)
    assert caught.value.pointer == pointer


_SELF = {"$ref": "#"}


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [_object(next=_SELF), _object(next=_SELF, x=_TEXT), {"type": "null"}]},
        {"oneOf": [{"type": "array", "items": _SELF}, {"type": "array", "items": _TEXT}, _TEXT]},
        {"oneOf": [_object(next=_SELF), {"not": {"type": "object"}, "type": ["string", "object"]}]},
        {
            "$defs": {
                "a": {"oneOf": [_object(k={"$ref": "#/$defs/b"}), _TEXT]},
                "b": {"oneOf": [_object(k={"$ref": "#/$defs/a"}), _object(k={"$ref": "#/$defs/b"}), _TEXT]},
            },
            "$ref": "#/$defs/b",
        },
    ],
)
def test_branches_that_depend_on_themselves(schema: Any):
    with pytest.raises(RecursiveSchemaError, match="refers to itself") as caught:
        automaton_of(schema)
    assert caught.value.pointer is not None
    assert f"#{caught.value.pointer}:" in caught.value.cause


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "minimum": 9007199254740993, "multipleOf": 0.5},
        {"type": "string", "format": "email", "maxLength": 3},
        {"minLength": 3, "maxLength": 2},
        {"type": "number", "not": {"type": "integer"}, "minimum": 1e15},
        {"type": "object", "propertyNames": {"pattern": "^[ah]$"}, "additionalProperties": True, "minProperties": 2},
    ],
)
def test_what_is_valid_and_not_produced_is_no_contradiction(schema: dict[str, Any]):
    with pytest.raises(ConstraintError, match="none of the values that can be produced meets this schema") as caught:
        any_node(schema, Arena())
    assert "name the type" in str(caught.value.remedy)


def test_what_ends_only_in_a_type_that_is_not_produced_is_no_contradiction():
    schema = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    with pytest.raises(ConstraintError, match="every value that can be produced for this schema holds another one"):
        any_node(schema, Arena())
    with pytest.raises(ConstraintError, match="every value that meets this schema holds another one"):
        any_node({"type": "object", **schema}, Arena())

"""The remark on parts of a schema that restrict nothing."""

from typing import Any

import pytest

from lmc.grammar import compile as compile_constraint
from lmc.grammar.compiling import Source, compile_source
from lmc.grammar.compiling import remark_of as remark_of_source
from lmc.grammar.schema import SchemaRemark, remark_of
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], special_ids=[256], eos_id=256)
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# name → schema, parts of the remark
CASES: dict[str, tuple[Any, list[str]]] = {
    "unknown keywords, each once with its number": (
        {"ui": 1, "properties": {"a": {"ui": {}, "order": 1}, "b": {"ui": 2}}},
        ["unknown keywords: ui (3 times), order"],
    ),
    "unknown formats": (
        {"properties": {"a": {"type": "string", "format": "isbn"}, "b": {"format": "isbn"}}},
        ["unknown formats: isbn (2 times)"],
    ),
    "keywords beside a reference": (
        {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#", "maxProperties": 1, "description": "x"}}},
        ["keywords beside $ref, which draft-07 ignores: maxProperties"],
    ),
    "keywords of later drafts": (
        {"$schema": DRAFT_7, "dependentRequired": {"a": ["b"]}},
        ["keywords that draft-07 does not have: dependentRequired"],
    ),
    "additionalItems without a list": ({"items": True, "additionalItems": False}, ["where items is no list"]),
    "nullable": ({"type": "string", "nullable": True}, ["without which null stays forbidden: nullable"]),
    "contentSchema of other media": ({"contentSchema": {"type": "null"}}, ["contentSchema of texts"]),
    "definitions that are not used": ({"$defs": {"a": {"order": 1}}}, ["unknown keywords: order"]),
    "a part that is refused elsewhere": ({"order": 1, "$defs": {"a": {"type": "strin"}}}, ["unknown keywords: order"]),
    "misspelt": (
        {"order": 1, "properties": {"a": {"minlength": 3}}},
        ["likely misspelt: minlength at #/properties/a/minlength (did you mean minLength?); unknown keywords: order"],
    ),
    "misspelt in several places": (
        {"properties": {"b": {"minlength": 3}, "a": {"minlength": 3}, "c": {"minlength": 1}}},
        ["likely misspelt: minlength at #/properties/a/minlength and 2 more places (did you mean minLength?)"],
    ),
    "misspelt in one place, of another kind in another": (
        {"minlength": 3, "properties": {"a": {"minlength": "short"}}},
        ["minlength at #/minlength (did you mean minLength?); unknown keywords: minlength"],
    ),
    "a misspelt format": (
        {"properties": {"a": {"type": "string", "format": "emial"}}},
        ["likely misspelt: emial at #/properties/a/format (did you mean email?)"],
    ),
    "unknown beside a reference, where nothing would restrict": (
        {"$schema": DRAFT_7, "properties": {"a": {"$ref": "#", "minLenght": 1}}},
        ["unknown keywords: minLenght"],
    ),
    "many": ({f"k{number:02}": 1 for number in range(20)}, ["k07 and 12 more"]),
}


@pytest.mark.parametrize("name", CASES)
def test_remark(name: str):
    schema, parts = CASES[name]
    remark = remark_of(schema)
    assert remark is not None
    assert all(part in remark.text for part in parts), remark.text
    assert "\n" not in remark.text


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"title": "a", "x-order": 1, "$comment": "", "default": {"order": 1}, "examples": [{"order": 1}]},
        {"type": "string", "format": "password", "nullable": False},
        {"properties": {"order": True, "propertis": True}, "$defs": {"ui": True}, "const": {"order": 1}},
    ],
)
def test_nothing_is_said_of_what_restricts_or_is_known(schema: Any):
    assert remark_of(schema) is None


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("propertis", {}, "properties"),
        ("propertiess", {}, "properties"),
        ("prpoerties", {}, "properties"),
        ("Properties", {}, "properties"),
        ("additionalproperties", False, "additionalProperties"),
        ("tipe", "string", "type"),
        ("reqired", ["a"], "required"),
        ("form", "date", None),
        ("tipe", "gauge", None),
        ("propertis", 3, None),
        ("propties", {}, None),
    ],
)
def test_a_name_that_is_one_edit_from_a_keyword_and_has_such_a_value(name: str, value: Any, meant: str | None):
    remark = remark_of({name: value})
    assert remark is not None
    assert [each.meant for each in remark.misspelt] == ([] if meant is None else [meant])


def test_a_keyword_that_is_likely_misspelt_is_warned_of():
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLenght": 3}}, "additionalProperties": False}
    with pytest.warns(UserWarning, match=r"maxLenght at #/properties/a/maxLenght \(did you mean maxLength\?\)"):
        made = compile_constraint(schema=schema, tokenizer=BYTES)
    assert made.matches('{"a":"xxxx"}')


STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
NAMED = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"], "additionalProperties": False}
MANY = {"enum": [f"v{number}" for number in range(9)]}

# name → schema, what is produced of each array, by pointer
NARROWED: dict[str, tuple[Any, dict[str, str]]] = {
    "strings": (STRINGS, {"": "at most 8 items, told apart by the kind of the first character"}),
    "objects": (
        {**STRINGS, "items": NAMED},
        {"": "at most 5 items, told apart by the kind of the first character of 'n'"},
    ),
    "strings that begin alike": (
        {**STRINGS, "items": {"type": "string", "pattern": "^x.*[a-d]$"}},
        {"": "at most 4 items, told apart by the kind of the last character"},
    ),
    "many values": ({**STRINGS, "items": MANY}, {"": "items in the order in which the schema lists them"}),
    "a part": (
        {"type": "object", "properties": {"a": STRINGS, "b": MANY}, "additionalProperties": False},
        {"/properties/a": "at most 8 items"},
    ),
    "in a recursive schema": (
        {
            "type": "object",
            "properties": {"tags": STRINGS, "child": {"$ref": "#"}},
            "additionalProperties": False,
        },
        {"/properties/tags": "at most 8 items"},
    ),
}


def _remark(schema: Any) -> SchemaRemark | None:
    """The remark on a schema by the constraint that it is compiled to; without that on one that is refused."""
    source = Source.of(schema=schema)
    try:
        return remark_of_source(source, compile_source(source, BYTES))
    except ConstraintError:
        return remark_of_source(source)


@pytest.mark.parametrize("name", NARROWED)
def test_unique_items_that_allow_fewer_values_than_the_schema_are_remarked(name: str):
    schema, expected = NARROWED[name]
    remark = _remark(schema)
    assert remark is not None
    assert remark.misspelt == ()
    assert remark.text.startswith("fewer values are produced than the schema allows: ")
    assert remark.text.count("uniqueItems") == len(expected)
    for pointer, how in expected.items():
        assert f"#{pointer}/uniqueItems ({how}" in remark.text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 1},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": False},
        {"type": "array", "items": {"type": "number"}, "uniqueItems": True},
    ],
)
def test_nothing_is_said_of_unique_items_that_are_enforced_exactly_or_refused(schema: Any):
    assert _remark(schema) is None


def test_one_remark_says_both():
    remark = _remark({**STRINGS, "order": 1})
    assert remark is not None
    assert remark.text.startswith("parts of the schema restrict nothing: unknown keywords: order; fewer values are ")

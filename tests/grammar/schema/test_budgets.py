"""Large schemas stay cheap: work is counted, so that the verdict is that of any machine."""

from typing import Any

import pytest

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.schema import to_node
from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import accepts, automaton_of, compact


def _work(schema: Any) -> int:
    """Nodes made, and parts of unions and intersections looked at, until the first row is there."""
    arena = Arena()
    Automaton(to_node(schema, arena), arena).expand(0)
    return arena.work + len(arena)


def _properties(count: int, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {f"name{index}": {"type": "string"} for index in range(count)}, **more}


def test_counts_of_items_cost_nothing():
    small, large = ({"items": {"type": "integer"}, "minItems": 5, "maxItems": high} for high in (10, 10_000))
    assert _work(small) == _work(large)
    assert accepts(large, [7] * 500)
    assert not accepts(large, [7] * 4)


@pytest.mark.parametrize("is_required", [True, False])
def test_properties_cost_the_same_each(is_required: bool):
    def work(count: int) -> int:
        names = [f"name{index}" for index in range(count)]
        return _work(_properties(count, required=names if is_required else []))

    assert work(200) < 5 * work(50)
    automaton = automaton_of(_properties(200, required=["name199"]))
    assert automaton.matches(compact({"name3": "a", "name150": "b", "name199": "c"}))
    assert not automaton.matches(compact({"name150": "a", "name3": "b", "name199": "c"}))


def test_bounds_on_how_many_properties():
    schema = _properties(50, minProperties=3, maxProperties=10)
    assert _work(schema) < 40_000
    assert accepts(schema, {f"name{index}": "" for index in range(0, 50, 5)})
    assert not accepts(schema, {f"name{index}": "" for index in range(0, 50, 4)})


def test_long_enums_are_linear():
    def enum(count: int) -> dict[str, Any]:
        return {"enum": [f"value {index}" for index in range(count)]}

    assert _work(enum(1000)) < 5 * _work(enum(250))
    assert accepts(enum(1000), "value 999")
    assert accepts({"items": enum(1000), "uniqueItems": True}, ["value 3", "value 700"])


def test_branches_that_a_constant_tells_apart_are_linear():
    def union(count: int) -> dict[str, Any]:
        kinds = ({"const": f"kind{index}"} for index in range(count))
        return {
            "oneOf": [{"properties": {"kind": kind, "n": {"type": "integer"}}, "required": ["kind"]} for kind in kinds]
        }

    for branch in (schema := union(200))["oneOf"]:
        branch["type"] = "object"
    assert _work(schema) < 20_000
    assert accepts(schema, {"kind": "kind77", "n": 1})


def test_a_definition_is_built_once():
    definition = _properties(20)
    once = {"$ref": "#/$defs/a", "$defs": {"a": definition}}
    ten = {"prefixItems": [{"$ref": "#/$defs/a"}] * 10, "items": False, "$defs": {"a": definition}}
    assert _work(ten) < 3 * _work(once)


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"type": "string", "allOf": [{"anyOf": [{"minLength": n}, {"pattern": "a"}]} for n in range(16)]}, "combin"),
        ({"enum": list(range(30_000))}, "alternatives at one place"),
    ],
)  # fmt: skip
def test_bombs_are_refused(schema: Any, cause: str):
    with pytest.raises(ConstraintError, match=cause):
        _work(schema)

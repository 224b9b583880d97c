"""The arguments of a saved plan as JSON, both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lmc.backend.json.attributes_json import MAX_DEPTH, dump_literal, load_literal
from lmc.backend.json.untrusted_json import fields_of, list_of_width, parse_json, shorten, text_of
from lmc.backend.plan import Argument, Condition, Fields, Frozen, Items, Leaf, NodeRef, Plan, PlanError, Shape
from lmc.ir.builtins.builtins import lookup
from lmc.ir.core import Attribute


def dump_arguments(arguments: tuple[Argument, ...] | None) -> Any:
    """The inverse of ``load_arguments``."""
    return None if arguments is None else [[entry.name, _dump(entry.shape), entry.default] for entry in arguments]


def load_arguments(data: Any) -> tuple[Argument, ...] | None:
    """Raises ``PlanError`` for what ``dump_arguments`` did not write."""
    if data is None:
        return None
    rows = [list_of_width(row, "arguments", 3) for row in list_of_width(data, "arguments")]
    return tuple(Argument(text_of(name), _load(shape, 0), _json_text(default)) for name, shape, default in rows)


def check_arguments(plan: Plan) -> None:
    """Raise ``PlanError`` unless the arguments have a name each, and give every parameter once."""
    parameters = {entry.name for entry in plan.parameters}
    for condition in plan.conditions:
        if any(not function and operands[0] not in parameters for function, operands, _ in condition.nodes):
            raise PlanError("a condition is about what is no parameter")
    if plan.arguments is None:
        return
    names = [entry.name for entry in plan.arguments]
    given = [leaf.parameter for entry in plan.arguments for leaf in leaves(entry.shape)]
    if len(set(names)) != len(names) or sorted(given) != sorted(entry.name for entry in plan.parameters):
        raise PlanError("arguments don't give every parameter once")


def dump_condition(condition: Condition) -> Any:
    """The inverse of ``load_condition``."""
    nodes = [
        [function, [{"node": x.index} if isinstance(x, NodeRef) else dump_literal(x) for x in operands], list(keywords)]
        for function, operands, keywords in condition.nodes
    ]
    return [nodes, dump_literal(condition.expected)]


def load_condition(data: Any) -> Condition:
    """Raises ``PlanError`` for what ``dump_condition`` did not write. Only pure builtins of the IR may be named."""
    rows, expected = list_of_width(data, "a condition", 2)
    if not list_of_width(rows, "a condition"):
        raise PlanError("a condition is empty")
    nodes = tuple(_load_node(list_of_width(row, "a condition", 3), index) for index, row in enumerate(rows))
    return Condition(nodes, load_literal(expected))


def _load_node(row: list[Any], index: int) -> tuple[str, tuple[Attribute | NodeRef, ...], tuple[str, ...]]:
    function = text_of(row[0])
    operands = tuple(_load_operand(entry, index) for entry in list_of_width(row[1], "operands"))
    keywords = tuple(map(text_of, list_of_width(row[2], "keywords")))
    if not function:
        if len(operands) != 1 or not isinstance(operands[0], str) or keywords:
            raise PlanError("a condition is about what is no parameter")
    elif lookup(function) is None or len(keywords) > len(operands) or len(set(keywords)) != len(keywords):
        raise PlanError(f"a condition can't call {shorten(function)}")
    return function, operands, keywords


def _load_operand(data: Any, index: int) -> Attribute | NodeRef:
    if not isinstance(data, dict) or set(data) != {"node"}:
        return load_literal(data)
    if type(data["node"]) is not int or not 0 <= data["node"] < index:
        raise PlanError(f"there is no earlier node {shorten(data['node'])}")
    return NodeRef(data["node"])


def leaves(shape: Shape) -> Iterator[Leaf]:
    """The parameters that an argument gives, in order."""
    match shape:
        case Leaf():
            yield shape
        case Items(items):
            for item in items:
                yield from leaves(item)
        case Fields(fields):
            for _, field in fields:
                yield from leaves(field)
        case Frozen():
            return


def _dump(shape: Shape) -> Any:
    match shape:
        case Leaf(parameter, fixed, default, length):
            return {"parameter": parameter, "fixed": fixed, "default": default, "length": length}
        case Frozen(text, is_json):
            return {"json" if is_json else "repr": text}
        case Items(items):
            return {"items": [_dump(item) for item in items]}
        case Fields(fields):
            return {"fields": [[name, _dump(field)] for name, field in fields]}


def _load(data: Any, depth: int) -> Shape:
    if depth > MAX_DEPTH:
        raise PlanError(f"an argument is nested deeper than {MAX_DEPTH} levels")
    match data:
        case {"parameter": _}:
            names = ("parameter", "fixed", "default", "length")
            parameter, fixed, default, length = fields_of(data, names, "an argument")
            if length is not None and (type(length) is not int or length < 0):
                raise PlanError(f"not a length: {shorten(length)}")
            return Leaf(text_of(parameter), _json_text(fixed), _json_text(default), length)
        case {"json": str(text)} if len(data) == 1:
            _json_text(text)
            return Frozen(text, is_json=True)
        case {"repr": str(text)} if len(data) == 1:
            return Frozen(text, is_json=False)
        case {"items": list(items)} if len(data) == 1:
            return Items(tuple(_load(item, depth + 1) for item in items))
        case {"fields": list(rows)} if len(data) == 1:
            pairs = [list_of_width(row, "fields", 2) for row in rows]
            if len({text_of(name) for name, _ in pairs}) != len(pairs):
                raise PlanError("two fields of an argument have one name")
            return Fields(tuple((name, _load(field, depth + 1)) for name, field in pairs))
        case _:
            raise PlanError(f"not an argument: {shorten(data)}")


def _json_text(data: Any) -> str | None:
    """``data`` if it is JSON text, not nested too deep to be compared."""
    if data is None:
        return None
    _check_depth(parse_json(text_of(data), "value"), 0)
    return data


def _check_depth(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise PlanError(f"a value is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            _check_depth(entry, depth + 1)


def json_text(value: Any) -> str:
    """JSON data as text: the same text for the same data."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)

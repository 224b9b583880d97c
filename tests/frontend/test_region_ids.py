"""What conditions, loops, maps and races are called, however much is known when a program is captured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lmc
from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.core import walk
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.ids import base_of
from lmc.ir.verify.verifier import verify


def helper(text: str) -> str:
    return "short" if len(text) < 3 else "long"


@lmc.jit
def asks(s, topic: str):
    s += topic
    if s.gen("g") == "x":
        s += "!"
    return s.gen("h")


@lmc.jit
def program(s, topic: str, items: list[str]):
    s += topic
    if s.gen("a") == "x":
        if s.gen("b") == "y":
            s += "1"
    else:
        while s.gen("c") == "z":
            s += "2"
    for item in items:
        s += item
        if s.gen("d") == "u" or s.gen("e") == "v":
            s += helper(s.gen("f"))
        asks(item)
    return lmc.map(lambda item: item + "?", items), lmc.race(lambda item: item, items, good=lambda text: text == "a")


@lmc.jit
def moved(s, topic: str, items: list[str]):
    """The same control flow, at other lines."""
    s += topic

    other = [item + "!" for item in ["p", "q"]]
    if s.gen("a") == "x":
        s += "1"
        s += other[0]
    # words
    for item in items:
        if s.gen("d") == "u":
            s += item
    return s.gen("z")


@lmc.jit
def unmoved(s, topic: str, items: list[str]):
    other = [item + "!" for item in ["p", "q"]]
    if s.gen("a") == topic + other[0]:
        s += "1"
    for item in items:
        if s.gen("d") == "u":
            s += item


def ids(function: JittedFunction, arguments: Mapping[str, Any] | None = None) -> list[str]:
    module = capture(function, None if arguments is None else bind(function, (), arguments)).module
    verify(module)
    return [op.id or "" for op in walk([module.main.body]) if isinstance(op, RegionOp)]


PLACES = [
    "program/@cf.cond.1",
    "program/@cf.cond.2",
    "program/@cf.loop.3",
    "program/@cf.cond.value.5",
    "program/@cf.cond.5",
    "program/helper/@cf.cond.value.1",
    "program/@cf.map.6",
    "program/@cf.race.6",
]


def test_ids_say_where_an_op_stands():
    found = ids(program)
    assert [op_id for op_id in found if op_id in PLACES] == PLACES
    assert [op_id for op_id in found if op_id not in PLACES] == ["program/@cf.loop.4", "program/asks#_/@cf.cond.1"]


def test_a_list_that_is_given_moves_nothing():
    assert ids(program, {"topic": "t", "items": ["i", "j"]}) == ids(program)


def test_rounds_that_are_captured_one_by_one_are_at_the_same_place():
    @lmc.jit
    def f(s):
        for item in ["i", "j"]:
            if s.gen("a") == item:
                s += asks(item)

    found = ids(f)
    assert {base_of(op_id) for op_id in found} == {"f/@cf.cond.2", "f/asks/@cf.cond.1"}
    assert found.count("f/@cf.cond.2") == found.count("f/@cf.cond.2#1") == 1


def test_what_is_known_when_a_program_is_captured_moves_nothing():
    @lmc.jit
    def f(s, topic: str, loud: bool):
        if loud:
            s += "!"
        if s.gen("a") == topic:
            s += "?"

    assert ids(f, {"topic": "t", "loud": True}) == ids(f, {"topic": "t", "loud": False}) == ["f/@cf.cond.2"]


def test_lines_without_control_flow_move_nothing():
    ends = [op_id.removeprefix("moved") for op_id in ids(moved)]
    assert ends == [op_id.removeprefix("unmoved") for op_id in ids(unmoved)]


def test_a_condition_has_the_line_of_its_test():
    module = capture(asks, None).module
    [op] = [op for op in walk([module.main.body]) if isinstance(op, RegionOp)]
    assert op.location is not None
    lines = asks.definition.__code__.co_firstlineno
    assert op.location.line == lines + 3

"""Reads of globals, closures and attributes are part of what a capture holds for."""

import math
from typing import Any

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.guards import Snapshot
from tests.frontend.harness import EFFECTS, check

WORD = "one"
WORDS: list[Any] = ["a", {"k": ("b", 1)}]
FLAG = True


class Options:
    size = 2

    def __init__(self):
        self.level = 1


OPTIONS = Options()


def helper(x):
    return x


@JittedFunction
def inner(s, text="default"):
    s += text


@JittedFunction
def reads(s, a: str):
    s += WORD + str(WORDS[1]["k"][0]) + a + str(OPTIONS.level) + str(Options.size) + f"{math.pi:.2f}"
    if FLAG:
        s += f"{helper(a)}"
    inner()
    return s.gen("g", max_tokens=2)


def holds(captured):
    return captured.matches(bind(reads, ("x",), {}))


def fresh():
    captured = check(reads, ("x",))
    assert holds(captured)
    return captured


CHANGES = [
    ("WORD", "two"),
    ("FLAG", False),
    ("FLAG", 1),
    ("WORDS", ["a", {"k": ("c", 1)}]),
    ("helper", lambda x: x),
    ("OPTIONS", Options()),
    ("str", repr),
    ("inner", JittedFunction(lambda s: None)),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_name_that_is_bound_anew(monkeypatch, name, value):
    captured = fresh()
    monkeypatch.setitem(globals(), name, value)
    assert not holds(captured)


def test_equal_values_hold_whatever_object_they_are(monkeypatch):
    captured = fresh()
    monkeypatch.setitem(globals(), "WORDS", ["a", {"k": ("b", 1)}])
    monkeypatch.setitem(globals(), "WORD", "".join(["o", "ne"]))
    assert holds(captured)


HELD: dict[str, Any] = {"items": []}


def log():
    EFFECTS.append("log")


@JittedFunction
def hands_on(s, a: str):
    items = HELD["items"]
    s += a
    log()
    items.append(s.gen("g", max_tokens=2))
    return len(HELD["items"])


def test_a_container_that_the_graph_hands_on_is_the_same_object():
    captured = check(hands_on, lambda: (HELD["items"].clear(), "x")[1:])
    HELD["items"].clear()
    assert captured.matches(bind(hands_on, ("x",), {}))
    HELD["items"] = []
    assert not captured.matches(bind(hands_on, ("x",), {}))


def test_a_container_changed_in_place(monkeypatch):
    captured = fresh()
    monkeypatch.setitem(WORDS[1], "k", ("c", 1))
    assert not holds(captured)
    monkeypatch.undo()
    assert holds(captured)
    monkeypatch.setattr(OPTIONS, "level", 2)
    assert not holds(captured)


def test_attributes_of_modules_and_classes(monkeypatch):
    captured = fresh()
    monkeypatch.setattr(Options, "size", 3)
    assert not holds(captured)
    monkeypatch.undo()
    monkeypatch.setattr(math, "pi", 3.0)
    assert not holds(captured)


def test_defaults_of_programs_that_are_called(monkeypatch):
    captured = fresh()
    monkeypatch.setattr(inner.function, "__defaults__", ("other",))
    assert not holds(captured)


def test_a_deleted_name_does_not_hold(monkeypatch):
    captured = fresh()
    monkeypatch.delitem(globals(), "WORD")
    assert not holds(captured)


def test_closures():
    def make():
        word = "x"

        def program(s, a: str):
            s += word + a
            return s.gen("g", max_tokens=2)

        def change(value):
            nonlocal word
            word = value

        return JittedFunction(program), change

    program, change = make()
    captured = capture(program, bind(program, ("a",), {}))
    assert captured.matches(bind(program, ("a",), {}))
    change("y")
    assert not captured.matches(bind(program, ("a",), {}))
    check(program, ("a",))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (1, 1, True), (1, True, False), (1, 1.0, False), (0.0, -0.0, False), (float("nan"), float("nan"), True),
        ([1, [2]], [1, [2]], True), ([1], (1,), False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({1, 2}, {2, 1}, True),
        (helper, helper, True), (OPTIONS, Options(), False), ("x", "y", False), (None, None, True),
        (frozenset({1}), {1}, False), ({OPTIONS}, {OPTIONS}, True),
    ],
)  # fmt: skip
def test_snapshots(first, second, same):
    assert Snapshot(first).matches(second) is same


def test_snapshots_of_bound_methods_are_those_of_their_object():
    assert Snapshot(OPTIONS.__init__).matches(OPTIONS.__init__)
    assert not Snapshot(OPTIONS.__init__).matches(Options().__init__)


def test_a_snapshot_of_a_container_in_itself_ends():
    loop = []
    loop.append(loop)
    assert not Snapshot(loop).matches(loop)


def test_snapshots_tell_what_equality_does_not():
    assert not Snapshot({0, 8}).matches({8, 0}) or list({0, 8}) == list({8, 0})
    assert not Snapshot({1}).matches({True})
    seen = {("a", 1)}
    before = Snapshot(seen)
    seen.add(("b", 2))
    assert not before.matches(seen)
    assert not Snapshot(0.0).matches(-0.0)
    assert not Snapshot(0j).matches(-0j)


def test_what_is_nested_too_deep_never_matches():
    nested: list[Any] = ["leaf"]
    for _ in range(40):
        nested = [nested]
    assert not Snapshot(nested).matches(nested)

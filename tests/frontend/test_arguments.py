"""Arguments as pytrees: what is symbolic, what a capture holds for, and when it does not."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind, shape_of, shape_of_annotations
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import VariantCache, inputs_of
from lmc.ir.dialects.core_ops import AssumeOp
from lmc.ir.errors import InputError
from tests.frontend.harness import check


@dataclass
class Item:
    title: str
    tags: list[str] = dataclasses.field(default_factory=list)


class Model(pydantic.BaseModel):
    name: str
    item: dict[str, Any] = {}


def parameters(function, *args, **kwargs):
    program = JittedFunction(function)
    module = capture(program, bind(program, args, kwargs)).module
    return {value.name: str(value.type) for value in module.main.parameters}


def whatever(s, *args, **kwargs):
    return None


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("x", 1, 2.5), {}, {"args.0": "!text", "args.1": "!int", "args.2": "!float"}),
        ((["x", "y"], [1]), {}, {"args.0": "!list<!text>", "args.1": "!list<!int>"}),
        ((True, None, b"x", [], {}), {}, {}),
        ((["x", 1],), {}, {"args.0.0": "!text", "args.0.1": "!int"}),
        ((("x", "y"),), {}, {"args.0.0": "!text", "args.0.1": "!text"}),
        ((), {"k": {"q": "x", "deep": [{"z": 1}]}}, {"kwargs.k.q": "!text", "kwargs.k.deep.0.z": "!int"}),
        ((Item("t", ["a"]),), {}, {"args.0.title": "!text", "args.0.tags": "!list<!text>"}),
        ((Model(name="n", item={"a": 1}),), {}, {"args.0.name": "!text", "args.0.item.a": "!int"}),
        (({"a.b": "x", "a": {"b": "y"}},), {}, {"args.0.a.b": "!text", "args.0.a.b_1": "!text"}),
    ],
)
def test_leaves(args, kwargs, expected):
    assert parameters(whatever, *args, **kwargs) == expected


def test_arguments_that_do_not_fit_the_signature():
    def program(s, a: str):
        return a

    with pytest.raises(InputError, match="missing a required argument: 'a'") as caught:
        bind(JittedFunction(program), (), {})
    assert "(a: str)" in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def uses(s, a, b=None):
    s += f"{a}"
    if b:
        s += "b"
    return len(a) > 2 if isinstance(a, str) else a


def variant(*args):
    program = JittedFunction(uses)
    return program, capture(program, bind(program, args, {}))


@pytest.mark.parametrize(
    ("given", "other", "same"),
    [
        (("x",), ("y",), True),
        (("x",), (1,), False),
        (("x", True), ("x", False), False),
        (("x", None), ("x", True), False),
        (("x", "t"), ("y", "other"), True),  # specialised for the truth of b only
        (("x", "t"), ("y", ""), False),
        (({"q": "x"},), ({"q": "y"},), True),
        (({"q": "x"},), ({"r": "y"},), False),
        (({"q": "x", "r": "y"},), ({"r": "y", "q": "x"},), False),
        (((1, "x"),), ((2, "y"),), True),
        (((1, "x"),), ([2, "y"],), False),
        ((["x"],), (["x", "y"],), True),
        ((["x"],), ([1],), False),
        ((Item("x"),), (Item("y"),), True),
        ((b"x",), (b"x",), True),
        ((b"x",), (b"y",), False),
        ((1.0,), (1,), False),
        ((True,), (1,), False),
    ],
)
def test_matching_variants(given, other, same):
    program, captured = variant(*given)
    assert captured.matches(bind(program, given, {}))
    assert captured.matches(bind(program, other, {})) is same


def test_inputs_of_another_shape_are_refused():
    program, captured = variant("x")
    assert inputs_of(captured, bind(program, ("y",), {})) == {"a": "y"}
    with pytest.raises(InputError, match=r"the arguments of uses\(\) have another shape") as caught:
        inputs_of(captured, bind(program, (3,), {}))
    assert "compiles a variant" in (caught.value.remedy or "")


def test_lists_are_taken_as_they_are_when_the_program_is_called():
    program, captured = variant(["x"])
    words = ["p"]
    inputs = inputs_of(captured, bind(program, (words,), {}))
    words.append("q")
    assert inputs == {"a": ["p"]}


def test_specialising_is_seen_in_module_and_guards():
    def program(s, words: list[str], n: int):
        for word in words:
            s += word
        if n > 1 and words[0] != "skip":
            s += "!"

    built = JittedFunction(program)
    captured = capture(built, bind(built, (["a", "skip"], 3), {}))
    assumed = [op.expected for op in captured.module.main.body.ops if type(op) is AssumeOp]
    assert assumed == [True, True]
    assert [guard.expected for guard in captured.guards] == assumed
    assert captured.matches(bind(built, (["b", "skip", "c"], 5), {}))
    assert not captured.matches(bind(built, (["skip", "c"], 5), {}))
    assert not captured.matches(bind(built, (["b", "skip"], 1), {}))


def test_what_a_loop_asks_of_each_item_is_no_guard():
    def program(s, words: list[str], n: int):
        for word in words:
            if word != "skip" and n > 1:
                s += word

    built = JittedFunction(program)
    captured = capture(built, bind(built, (["a", "skip"], 3), {}))
    assert captured.guards == ()
    for given in ((["skip", "c"], 5), ([], 0), (["b"], 1)):
        check(built, given, captured=captured)


def test_a_guard_that_raises_does_not_hold():
    def program(s, a: str):
        if int(a) > 1:
            s += "x"

    built = JittedFunction(program)
    captured = capture(built, bind(built, ("12",), {}))
    assert captured.matches(bind(built, ("3",), {}))
    assert not captured.matches(bind(built, ("three",), {}))


def test_the_cache_keeps_the_variants_used_last():
    program = JittedFunction(uses)
    cache = VariantCache(2)
    captures = [capture(program, bind(program, ("x", flag), {})) for flag in (True, False, None)]
    cache.add(captures[0])
    cache.add(captures[1])
    assert cache.find(bind(program, ("y", True), {})) is captures[0]
    cache.add(captures[2])
    assert len(cache) == 2
    assert cache.find(bind(program, ("y", False), {})) is None
    assert cache.find(bind(program, ("y", True), {})) is captures[0]


def without_inputs(function):
    program = JittedFunction(function)
    captured = capture(program, None)
    return captured, {value.name: str(value.type) for value in captured.module.main.parameters}


def test_without_inputs_annotations_say_what_is_symbolic():
    def program(
        s, a: str, n: int, x: float, words: list[str], flag: bool, item: Item, other, rows: list[dict], nothing: None
    ):
        s += f"{a}{n}{x}{' '.join(words)}{item.title}{other}{flag}"
        s.gen("g")

    captured, found = without_inputs(program)
    assert captured.breaks == ()
    assert found == {
        "a": "!text", "n": "!int", "x": "!float", "words": "!list<!text>", "flag": "!bool", "item.title": "!text",
        "item.tags": "!list<!text>", "other": "!any", "rows": "!any",
    }  # fmt: skip


def test_without_inputs_defaults_are_specialised_for():
    def program(s, a: str, n: int = 2, words=("x", "y"), *rest: str, k: int = 1, **more: str):
        for i in range(n):
            s += words[i] + a
        s.gen("g", max_tokens=k)

    captured, found = without_inputs(program)
    assert captured.breaks == ()
    assert found == {"a": "!text", "n": "!int", "words.0": "!text", "words.1": "!text", "k": "!int"}


def test_without_inputs_a_value_that_is_needed_is_a_break():
    def program(s, a: str, n: int):
        s += a
        s.gen("g", max_tokens=n)

    captured, _ = without_inputs(program)
    (found,) = captured.breaks
    assert "the argument 'n' is not given, but max_tokens of gen has to be known now" in found.cause
    assert "example inputs" in found.remedy
    assert found.location is not None
    assert found.location.line == program.__code__.co_firstlineno + 2


def test_shapes_of_annotations_and_of_arguments_are_told_apart_by_values_only():
    def program(s, a: str, words: list[str]):
        return a

    built = JittedFunction(program)
    promised = shape_of_annotations(built)
    given = shape_of(built, bind(built, ("x", []), {}))
    assert promised.specs == given.specs

"""What a program does wrong whatever the model answers is an error of compile, and the same one eagerly."""

import pytest

import lmc
from lmc.ir.wording import with_article
from tests.frontend.strategies import load

HEADER = """
import lmc
import pydantic
from typing import Literal


class City(pydantic.BaseModel):
    name: str = "a"


@lmc.tool
def number(text: str) -> int:
    return 1


@lmc.tool
def words(text: str) -> list[str]:
    return [text]


@lmc.tool
def nothing(text: str) -> None:
    return None


"""
# What is no text, by what messages call it.
NO_TEXTS = {
    's.gen("x", dtype=int)': "int",
    's.gen("x", dtype=float)': "float",
    's.gen("x", dtype=bool)': "bool",
    's.gen("x", schema=City)': "City",
    's.gen("x", schema=list[int])': "list",
    's.gen("x", schema={"type": "object"})': "",
    's.gen("x", schema={"type": ["integer", "null"]})': "",
    's.gen("x", n=2)': "list",
    "number(q)": "int",
    "words(q)": "list",
    "nothing(q)": "NoneType",
    "City()": "City",
    "[q]": "list",
    "{'k': q}": "dict",
    "None": "NoneType",
    "len(q)": "int",
    "q.split()": "list",
    "(q == 'a')": "bool",
    "s.text": "method",
}
APPENDED = ["s += {}", "s.append({})", "s += lmc.user({})", "s.assistant({})", "s += lmc.section({})"]
PLACES = ["{}", "if s.select('c', ['a', 'b']) == 'a': {}", "for view in s.fork(2): {}", "while s.gen('w'): {}"]
OTHERS = [
    ('s.gen("x"); s.meta("x")', "has no meta data"),
    ('s.gen("x", dtype=int); s.meta("x")', "has no meta data"),
    ('s.meta("y")', "no variable 'y'"),
    ('s["y"]', "no variable 'y'"),
    ('s.select("x", [number(q), "b"])', "a choice is no text"),
    ('s.select("x", number(q))', "choices is"),
    ('s.select("x", [])', "select has no choices"),
    ('s.gen("x", max_tokens=0)', "max_tokens is 0"),
    ("s.fork(q)", "n is a"),
    ('s.fork(s.gen("x", dtype=float))', "n is a"),
    ('s += lmc.message("boss", q)', "the role of a message is 'boss'"),
    ("s += s.fork(2)", "appends a Branches"),
    ("s += s.gen", "appends a method"),
    ("s.user()", "with neither a text nor `with`"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("misuse")


def errors(folder, line):
    """The errors of compile and of an eager run of a program with ``line``."""
    program = load(f"{HEADER}@lmc.jit\ndef program(s, q: str):\n    s += lmc.user('Hi')\n    {line}\n", folder).program
    toy = program.on("toy")
    for run in (toy.compile, lambda: toy.compile("a b"), lambda: toy.eager("a b")):
        with pytest.raises(lmc.CaptureError) as caught:
            run()
        assert caught.value.location is not None
        yield caught.value


@pytest.mark.parametrize(("value", "name"), NO_TEXTS.items())
def test_what_is_no_text_is_refused_before_anything_runs(folder, value, name):
    for number, appended in enumerate(APPENDED):
        place = PLACES[0] if number else PLACES[2]
        *compiled, eager = errors(folder, place.format(appended.format(value)))
        for error in compiled:
            assert type(error) is type(eager)
            assert error.location == eager.location
            assert f" {with_article(name)}" in error.cause
            assert error.cause.endswith(", text is needed")
            assert error.remedy == eager.remedy


@pytest.mark.parametrize("place", PLACES)
def test_misuse_is_refused_wherever_it_stands(folder, place):
    line = place.format("s += number(q)")
    program = load(f"{HEADER}@lmc.jit\ndef program(s, q: str):\n    {line}\n", folder).program
    with pytest.raises(lmc.CaptureError, match="the program appends an int"):
        program.on("toy").compile()


@pytest.mark.parametrize(("line", "cause"), OTHERS)
def test_misuse_of_a_state_is_refused_before_anything_runs(folder, line, cause):
    *compiled, eager = errors(folder, line)
    for error in compiled:
        assert type(error) is type(eager)
        assert (error.location, error.remedy) == (eager.location, eager.remedy)
        assert cause in error.cause


ALLOWED = [
    's += s.gen("x", schema={"type": "string", "maxLength": 3})',
    's += s.gen("x", schema=Literal["a", "b"])',
    's += s.gen("x", dtype=str)',
    's += str(s.gen("x", dtype=int))',
    's += s.get("y", "none")',
    's.gen("x", logprobs=1, max_tokens=2); s.meta("x")',
    "s += str(words(q))",
    "try:\n        s += number(q)\n    except lmc.CaptureError:\n        s += 'caught'",
    "if len(q) > 99: s += number(q)",
]


@pytest.mark.parametrize("line", ALLOWED)
def test_what_may_be_right_is_compiled(folder, line):
    program = load(f"{HEADER}@lmc.jit\ndef program(s, q: str):\n    {line}\n", folder).program
    program.on("toy").compile("a b")
    program.on("toy").eager("a b")

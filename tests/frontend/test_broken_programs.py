"""Captures that end anywhere: the continuation of every program of the corpus does what plain Python does.

LMC_TEST_FULL=1 ends each at every operation, or at many places where it has many.
"""

import os
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO

import pytest

from benchmarks.captured_share import Program, Run, corpus
from lmc.frontend.function import JittedFunction
from lmc.frontend.growing import TYPED_LIST
from lmc.ir.errors import CaptureError
from tests.frontend.corpus.cases import CASES
from tests.frontend.corpus.conditions.cases import INPUTS
from tests.frontend.harness import check, effect, operations_of, stop_at

FULL = os.environ.get("LMC_TEST_FULL") == "1"
MOST = 60
# Ordinary programs have such a test of their own, which compares what they print, too.
PROGRAMS = {f"{program.group}/{program.name}": program for program in corpus() if program.group != "ordinary"}


def places(operations: int) -> list[int]:
    """Numbers of the operations that captures end at."""
    if FULL:
        return list(range(1, operations + 1, max(1, operations // MOST)))
    return sorted({max(1, operations // 3), max(1, operations // 2), max(1, operations * 2 // 3)})


def runs(program: Program) -> Sequence[Run]:
    """Those that the program is run with; to find inputs that take every way through it would take long."""
    if FULL:
        return program.runs()
    return [lambda: (INPUTS[0], {})] if program.group in ("conditions", "loops") else program.runs()[:1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_continuation_from_the_middle_does_what_plain_python_does(name):
    program = PROGRAMS[name]
    watch = CASES[program.name].watch if program.group == "corpus" else None
    with redirect_stdout(StringIO()):  # some programs print
        for run in runs(program):
            kwargs = run()[1]
            for number in places(operations_of(program.function, *run())):
                with pytest.MonkeyPatch.context() as patch:
                    stop_at(patch, number)
                    try:
                        check(program.function, lambda run=run: run()[0], kwargs, watch=watch)
                    except CaptureError as error:  # a form that is spelt out is captured or refused
                        assert "this is the middle" in error.cause  # noqa: PT017


def strict(text: str) -> str:
    if text:
        raise ValueError(text)
    return text


@pytest.mark.parametrize("number", range(1, 16))
def test_a_function_that_raised_what_the_program_caught_counts_the_same_again(number, monkeypatch):
    @JittedFunction
    def program(s, a: str):
        effect("before", a)
        try:
            found = strict("plain")
        except ValueError:
            found = "none"
        s += found
        effect("behind", found)
        return s.gen("x", max_tokens=2)

    stop_at(monkeypatch, number)
    check(program, ("w",))


def steps(text):
    for letter in text:
        effect("step", letter)
        yield letter


@pytest.mark.parametrize("number", range(1, 24))
def test_what_can_be_gone_over_once_is_not_gone_over_again(number, monkeypatch):
    @JittedFunction
    def program(s, a: str):
        for letter in steps(a):
            s += letter
        for index, letter in enumerate(steps(a)):
            s += f"{index}{letter}"
        s += f"{list(steps(a))}"
        return s.gen("x", max_tokens=2)

    stop_at(monkeypatch, number)
    check(program, ("abc",))


def test_a_capture_that_breaks_ends_before_what_may_be_gone_over_once():
    @JittedFunction
    def program(s, a: str):
        s.gen("x", max_tokens=2)
        for letter in steps(a):
            s += letter
        return hash(s.gen("y", max_tokens=2)) * 0

    captured = check(program, ("abc",))
    assert "gone over, which can be done once if it is an iterator" in captured.breaks[0].cause
    assert captured.breaks[0].remedy == TYPED_LIST

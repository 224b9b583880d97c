"""A break before any statement changes nothing: graph and continuation do what plain Python does."""

from typing import Any

import pytest
from hypothesis import given, note, settings

from benchmarks.captured_share import Program
from lmc.frontend.program.arguments import bind
from tests.frontend.interpret.forced import check_breaks
from tests.frontend.interpret.test_programs import CORPUS, FULL, STRATEGIES
from tests.frontend.strategies import arguments, load, with_own_list

pytestmark = pytest.mark.slow("captures end before every statement")

MOST = 1_000 if FULL else 1
"""Statements and steps of a program before which it breaks."""
NAMES = list(CORPUS) if FULL else list(CORPUS)[::4]


@pytest.mark.parametrize("name", NAMES)
def test_a_break_before_any_statement_of_a_corpus_is_plain_python(name: str):
    program: Program = CORPUS[name]
    for run in program.runs()[: 2 if FULL else 1]:
        args, kwargs = run()
        if bind(program.function, args, kwargs).program.receiver:  # its object is changed by each run
            return
        check_breaks(program.function, lambda run=run: run()[0], kwargs, MOST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forced")


@pytest.mark.parametrize("part", range(5 if FULL else 1))  # each takes minutes: no test may take ten
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_break_before_any_statement_of_a_random_program_is_plain_python(name: str, part: int, folder: Any):
    header, sources = STRATEGIES[name]

    @settings(max_examples=60 if FULL else 4)
    @given(source=sources, args=arguments())
    def run(source: str, args: Any):
        source = with_own_list(source)
        note(source)
        module = load("@jit\n" + source, folder, header)
        reset = getattr(module, "reset", lambda: None)
        check_breaks(module.program, lambda: (reset(), *args[:3], list(args[3]))[1:], {}, 12 if FULL else 3)

    run()

"""Every program of the corpus, in every way: what it gives, what it does to the world, what it asks of the engine."""

import sys

import pytest

from tests.frontend.corpus import (
    arguments,
    branches,
    breaks,
    constructs,
    helpers,
    host_calls,
    inherited_methods,
    methods,
    nasty,
    refusals,
    strange_methods,
    sub_programs,
    surroundings,
    text,
    thread_state,
    traps,
    typed,
    undecided,
)
from tests.frontend.corpus.cases import CASES
from tests.frontend.harness import check

FILES = (
    arguments,
    branches,
    breaks,
    constructs,
    host_calls,
    helpers,
    inherited_methods,
    methods,
    nasty,
    refusals,
    strange_methods,
    sub_programs,
    surroundings,
    text,
    thread_state,
    traps,
    typed,
    undecided,
)


@pytest.mark.parametrize("name", CASES)
def test_eager_and_captured_agree(name, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)  # for the case of a module that is not loaded
    case = CASES[name]
    captured = check(case.program, case.args, watch=case.watch)
    if case.stops is None:
        assert captured.breaks == ()
    else:
        assert captured.breaks
        for found in captured.breaks:
            assert case.stops in found.cause
            assert found.location is not None
            assert found.remedy


def test_the_corpus_is_large_and_mostly_captured_whole():
    assert all(program.program.function.__module__ in {file.__name__ for file in FILES} for program in CASES.values())
    whole = [name for name, case in CASES.items() if case.stops is None]
    assert len(CASES) >= 90
    assert len(whole) >= 50

"""Conditions that only a run decides: the graph does what plain Python does, whichever way is taken."""

import pytest

from lmc.frontend import branching
from lmc.frontend.arguments import bind
from lmc.frontend.recorder import Recorder
from tests.frontend.corpus.conditions import (
    branches,
    containers,
    effects,
    exits,
    expressions,
    forms,
    names,
    states,
    values,
)
from tests.frontend.corpus.conditions.cases import CONDITIONS
from tests.frontend.harness import check

FILES = (branches, containers, effects, exits, expressions, forms, names, states, values)


@pytest.fixture(autouse=True)
def captured_conditions(monkeypatch):
    monkeypatch.setattr(branching, "CAPTURE_CONDITIONS", True, raising=False)


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_way_is_that_of_plain_python(name):
    case = CONDITIONS[name]
    inputs = case.inputs()
    first = check(case.program, inputs[0])
    for given in inputs[1:]:
        check(case.program, given)
        if first.matches(bind(case.program, given, {})):
            check(case.program, given, captured=first)
    causes = [found.cause for found in first.breaks]
    if case.stops is None:
        assert causes == []
    else:
        assert len(causes) == 1
        assert case.stops in causes[0]


@pytest.mark.parametrize("name", [name for name, case in CONDITIONS.items() if case.stops is None])
def test_a_continuation_goes_the_same_way(name, monkeypatch):
    case = CONDITIONS[name]

    def finish(self, *_end):
        raise self.stop("this is the end", "nothing has to change")

    monkeypatch.setattr(Recorder, "finish", finish)
    for given in case.inputs():
        assert check(case.program, given).breaks


def test_the_corpus_is_large_and_mostly_captured_whole():
    assert all(case.program.function.__module__ in {file.__name__ for file in FILES} for case in CONDITIONS.values())
    assert len(CONDITIONS) >= 60
    assert sum(case.stops is None for case in CONDITIONS.values()) >= 40

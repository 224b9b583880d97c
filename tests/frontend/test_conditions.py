"""Conditions that only a run decides: the graph does what plain Python does, whichever way is taken."""

import importlib
import pkgutil

import pytest
from hypothesis import given, settings

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.ir.dialects.region_ops import CondOp
from tests.frontend.condition_strategies import CONDITIONS_HEADER, conditional_programs
from tests.frontend.corpus import conditions
from tests.frontend.corpus.conditions.cases import CONDITIONS
from tests.frontend.harness import FULL, at_the_end, check_inputs, some
from tests.frontend.strategies import load, with_own_list

for found in pkgutil.iter_modules(conditions.__path__):
    importlib.import_module(f"{conditions.__name__}.{found.name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_way_is_that_of_plain_python(name):
    case = CONDITIONS[name]
    first = check_inputs(case.program, case.inputs)
    causes = [found.cause for found in first.breaks]
    if case.stops is None:
        assert causes == []
    else:
        assert causes
        assert all(case.stops in cause for cause in causes)


@pytest.mark.parametrize("name", some((name for name, case in CONDITIONS.items() if case.stops is None), 3))
def test_a_continuation_goes_the_same_way(name):
    case = CONDITIONS[name]
    assert check_inputs(case.program, case.inputs[: None if FULL else 1], stop_before=at_the_end).breaks


def test_random_programs_are_mostly_captured_with_their_conditions(folder):
    whole: list[bool] = []

    # Other seeds draw very different shares of programs without a condition: the share is taken of the others alone.
    @settings(max_examples=100)
    @given(conditional_programs())
    def look(source):
        program = load(CONDITIONS_HEADER + "@jit\n" + with_own_list(source), folder).program
        captured = capture(program, bind(program, ("x", "b", 1, ["w"]), {}))
        if captured.breaks or any(isinstance(op, CondOp) for op in captured.module.main.body.ops):
            whole.append(not captured.breaks)

    look()
    assert len(whole) > 20
    assert sum(whole) > len(whole) / 2

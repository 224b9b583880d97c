"""Loops that only a run ends: the graph does what plain Python does, however many rounds there are."""

import importlib
import pkgutil

import pytest

from tests.frontend.corpus import loops
from tests.frontend.corpus.conditions.cases import INPUTS
from tests.frontend.corpus.loops.cases import LOOPS
from tests.frontend.harness import FULL, at_the_end, check_inputs, some

pytestmark = pytest.mark.slow("a corpus of loops, with many rounds")

for found in pkgutil.iter_modules(loops.__path__):
    importlib.import_module(f"{loops.__name__}.{found.name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("name", LOOPS)
def test_any_number_of_rounds_is_that_of_plain_python(name):
    case = LOOPS[name]
    first = check_inputs(case.program, [*case.inputs, *INPUTS[: 2 if FULL else 0]])
    causes = [found.cause for found in first.breaks]
    if case.stops is None:
        assert causes == []
    else:
        assert causes
        assert all(case.stops in cause for cause in causes)


@pytest.mark.parametrize("name", some((name for name, case in LOOPS.items() if case.stops is None), 3))
def test_a_continuation_goes_the_same_rounds(name):
    case = LOOPS[name]
    assert check_inputs(case.program, case.inputs[: None if FULL else 1], stop_before=at_the_end).breaks

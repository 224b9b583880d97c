"""Programs with loops and conditions as plans: each level does what plain Python does, whatever is answered first."""

import importlib
import pkgutil

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import Captured
from lmc.passes.pipelines import pipeline
from tests.driver.levels import check_levels
from tests.frontend.condition_strategies import CONDITIONS_HEADER, conditional_programs
from tests.frontend.corpus import conditions, loops, thread_state
from tests.frontend.corpus.cases import CASES as CORPUS
from tests.frontend.corpus.conditions.cases import CONDITIONS, INPUTS
from tests.frontend.corpus.loops.cases import LOOPS
from tests.frontend.harness import FULL, some
from tests.frontend.loop_strategies import LOOPS_HEADER, looping_programs
from tests.frontend.strategies import arguments, load

pytestmark = pytest.mark.slow("every program of two corpora is compiled at each level")

for package in (conditions, loops):
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
STATEFUL = thread_state.__name__
CASES = {**CONDITIONS, **LOOPS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("name", some(CASES, 2))
def test_every_level_is_plain_python(name):
    program = CASES[name].program
    captured: Captured | None = None
    for given_text in INPUTS[: 60 if FULL else 1]:
        bound = bind(program, given_text, {})
        if captured is None or FULL or not captured.matches(bound):
            captured = capture(program, bound)
        check_levels(captured, lambda given_text=given_text: given_text)


@pytest.mark.parametrize(
    "name", [name for name, case in CORPUS.items() if case.program.function.__module__ == STATEFUL]
)
def test_no_level_loses_the_state_of_a_thread(name):
    case = CORPUS[name]
    check_levels(capture(case.program, bind(case.program, case.args, {})), lambda: case.args)


@settings(max_examples=max(5, settings.default.max_examples // 5))  # type: ignore[union-attr]
@given(
    source=looping_programs().map(lambda source: LOOPS_HEADER + "@jit\n" + source)
    | conditional_programs().map(lambda source: CONDITIONS_HEADER + "@jit\n" + source),
    args=arguments(),
    other=st.sampled_from(["e", "t", "x y"]),
    disabled=st.sampled_from([each.NAME for each in pipeline("O2").passes]),
)
def test_random_programs_are_the_same_at_every_level_and_without_any_pass(folder, source, args, other, disabled):
    note(source)
    program = load(source, folder).program
    captured = capture(program, bind(program, (*args[:3], list(args[3])), {}))
    for first in (args[0], other):
        if captured.matches(bind(program, (first, *args[1:]), {})):
            check_levels(captured, lambda first=first: (first, *args[1:3], list(args[3])), disabled)

"""Generated programs: eager, interpreted and continued runs agree; transformed code is plain Python on plain values."""

import traceback

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lmc.frontend.arguments import bind
from lmc.frontend.eager import EagerSession
from lmc.frontend.eager_runs import EagerFrame, activate
from lmc.frontend.function import JittedFunction
from lmc.frontend.operators import Operators
from lmc.frontend.transform import Transformed
from lmc.ir.toy import ToyEngine
from tests.frontend.harness import EFFECTS, check
from tests.frontend.strategies import HEADER, arguments, load, programs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@given(source=programs(), args=arguments(), other=arguments())
def test_every_way_of_running_agrees(folder, source, args, other):
    note(source)
    program = load(HEADER + "@jit\n" + source, folder).program
    captured = check(program, lambda: (*args[:3], list(args[3])))
    note(str(captured.breaks))
    bound = bind(program, (*other[:3], list(other[3])), {})
    if captured.matches(bound):
        check(program, (*other[:3], list(other[3])), captured=captured)


@given(source=programs(states=False), args=arguments())
def test_transformed_code_is_plain_python_on_plain_values(folder, source, args):
    note(source)
    program = JittedFunction(load(HEADER + source, folder).program)
    transformed = program.transformed
    assert isinstance(transformed, Transformed), transformed
    session = EagerSession(ToyEngine())
    operators = Operators(session, program, "program")

    def run_transformed(*values):
        with activate(EagerFrame(session, "program")):
            return transformed.function(operators, None, *values)

    def run_original(*values):
        return program.function(None, *values)

    assert _end(run_transformed, args, program) == _end(run_original, args, program)


def _end(run, args, program):
    """What a run gave, or the error with the line of the program where it was raised; and the effects."""
    EFFECTS.clear()
    try:
        end = ("gave", run(*args[:3], list(args[3])))
    except Exception as error:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == program.function.__code__.co_filename
        ]
        end = ("raised", type(error), str(error), lines[0])
    return end, list(EFFECTS)


def test_strategies_reach_every_statement():
    seen = set()

    @settings(max_examples=100)
    @given(programs(), st.none())
    def look(source, _):
        seen.update(
            word
            for word in ("fork", "gen(", "schema=", "select", "try", "while", "copy", "with", "sub(")
            if word in source
        )

    look()
    assert {"fork", "gen(", "schema=", "try"} <= seen

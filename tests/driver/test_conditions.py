"""Programs whose way only a run decides, compiled: plans at any level do what plain Python does."""

import os
from typing import Any

import pytest

from lmc.driver.defaults import Wish
from lmc.driver.run import Runner
from lmc.driver.start import Options
from lmc.ir.errors import LmcError
from tests.frontend.corpus.conditions.cases import CONDITIONS, INPUTS
from tests.frontend.harness import EFFECTS
from tests.frontend.test_conditions import FILES

PROGRAMS = [name for name in CONDITIONS if FILES]  # its import fills the corpus
FULL = os.environ.get("LMC_TEST_FULL") == "1"


def outcome(run: Any, arguments: Any) -> tuple[Any, ...]:
    """What a run gave or raised, and what it did to the world."""
    EFFECTS.clear()
    try:
        result = run((arguments, {}))
    except LmcError as error:
        return "raised", type(error), error.cause, list(EFFECTS)
    except Exception as error:
        return "raised", type(error), str(error), list(EFFECTS)
    return "gave", repr(result.value), dict(result.variables), result.text, result.usage.calls, list(EFFECTS)


@pytest.mark.parametrize("level", ["O0", "O2"] if FULL else ["O2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_does_what_plain_python_does(name: str, level: str):
    case = CONDITIONS[name]
    runner = Runner(case.program, Options(Wish("toy"), level=level))
    for arguments in case.inputs() if FULL else INPUTS[:2]:
        assert outcome(runner.run, arguments) == outcome(runner.eager, arguments)

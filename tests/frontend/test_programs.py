"""Every program of the corpus, in every way: what it gives, what it does to the world, what it asks of the engine."""

import pytest

from tests.frontend.harness import check
from tests.frontend.programs import CASES


@pytest.mark.parametrize("name", CASES)
def test_eager_and_captured_agree(name):
    case = CASES[name]
    captured = check(case.program, case.args)
    if case.stops is None:
        assert captured.breaks == ()
    else:
        assert len(captured.breaks) == 1
        assert case.stops in captured.breaks[0].cause
        assert captured.breaks[0].location is not None
        assert captured.breaks[0].remedy

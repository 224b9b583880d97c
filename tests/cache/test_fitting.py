import random

import pytest

from lmc.cache.simulation.fitting import fit_cost_model
from lmc.cache.simulation.report import CostModel, StepWork

COST = CostModel(step=2e-3, row=1e-4, attended=3e-8, drawn=5e-5, held=1e-6, least_rows=16)
WORKS = [
    StepWork(rows, drawn, rows * length, drawn * length)
    for rows, drawn in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (64, 1), (128, 1), (512, 1), (256, 8)]
    for length in (16, 300, 2000)
]


def test_the_constants_of_exact_steps_are_found():
    found = fit_cost_model([(work, COST.seconds(work)) for work in WORKS])
    assert found.largest_error < 1e-6
    assert found.cost.least_rows == 16
    for name in ("step", "row", "drawn", "attended", "held"):
        if name != "step":  # below 16 rows, the step and its least rows are one constant, which only the sum tells
            assert getattr(found.cost, name) == pytest.approx(getattr(COST, name), rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_no_constant_is_negative(seed: int):
    draw = random.Random(seed)
    found = fit_cost_model([(work, draw.uniform(1e-4, 1)) for work in WORKS])
    assert min(found.cost.step, found.cost.row, found.cost.drawn, found.cost.attended, found.cost.held) >= 0
    assert found.mean_error <= 1  # a model that predicts nothing has that


def test_noise_is_the_error():
    draw = random.Random(0)
    found = fit_cost_model([(work, COST.seconds(work) * draw.uniform(0.9, 1.1)) for work in WORKS])
    assert 0.01 < found.mean_error < 0.1
    assert found.largest_error < 0.2


def test_steps_are_needed():
    for samples in ([], [(WORKS[0], 0.0)]):
        with pytest.raises(ValueError, match="are needed"):
            fit_cost_model(samples)

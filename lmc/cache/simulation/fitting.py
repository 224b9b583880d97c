"""Constants of a cost model from measured steps: the least squares of relative errors, none of them negative."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmc.cache.simulation.report import CostModel, StepWork

_FEATURES = ("step", "row", "drawn", "attended", "held")
_LEAST_ROWS = (0, *(2**power for power in range(1, 11)))


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A cost model and its relative errors on the samples, as (predicted - measured) / measured."""

    cost: CostModel
    errors: tuple[float, ...]

    @property
    def mean_error(self) -> float:
        """The mean of the absolute errors."""
        return sum(map(abs, self.errors)) / len(self.errors)

    @property
    def largest_error(self) -> float:
        """The largest absolute error."""
        return max(map(abs, self.errors))


def fit_cost_model(samples: Sequence[tuple[StepWork, float]]) -> FittedModel:
    """Fit constants to steps and their seconds.

    A step counts by its relative error, so that small steps count as much as large ones. All subsets of the constants
    are solved, which is exact for so few (Lawson and Hanson, Solving Least Squares Problems, chapter 23, finds the
    same subset step by step).

    Raises:
        ValueError: there is no sample, or a time that is not positive.
    """
    seconds = np.array([measured for _, measured in samples])
    if not samples or not (seconds > 0).all():
        raise ValueError("steps and their seconds are needed, and seconds are more than 0")
    largest = max(work.rows for work, _ in samples)
    found = [_solve(samples, seconds, least) for least in _LEAST_ROWS if least < largest]
    _, cost = min(found, key=lambda each: each[0])
    errors = [cost.seconds(work) / measured - 1 for work, measured in samples]
    return FittedModel(cost, tuple(errors))


def _solve(
    samples: Sequence[tuple[StepWork, float]], seconds: NDArray[np.float64], least_rows: int
) -> tuple[float, CostModel]:
    """The sum of squares and the model with the best constants for one number of least rows."""
    works = [work for work, _ in samples]
    columns = np.array([[1.0, max(each.rows, least_rows), each.drawn, each.attended, each.held] for each in works])
    relative = columns / seconds[:, None]
    scales = np.linalg.norm(relative, axis=0)
    scales[scales == 0] = 1.0
    scaled = relative / scales
    best, constants = float(len(samples)), np.zeros(len(_FEATURES))  # of a model that predicts 0
    for count in range(1, len(_FEATURES) + 1):
        for chosen in map(list, itertools.combinations(range(len(_FEATURES)), count)):
            solution, *_ = np.linalg.lstsq(scaled[:, chosen], np.ones(len(samples)), rcond=None)
            if (solution < 0).any():
                continue
            squares = float(((scaled[:, chosen] @ solution - 1) ** 2).sum())
            if squares < best:
                best, constants = squares, np.zeros(len(_FEATURES))
                constants[chosen] = solution
    values = map(float, constants / scales)
    return best, CostModel(**dict(zip(_FEATURES, values, strict=True)), least_rows=least_rows)

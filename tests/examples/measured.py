"""Estimated and measured figures of programs side by side."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from lmc.cost.estimate import Figures
from lmc.cost.ranges import CostRange
from lmc.driver import Options, Result, Runner
from lmc.driver.commands.cost import estimate_rows_of
from lmc.frontend.program.function import JittedFunction
from lmc.ir.profile import Profile
from lmc.ir.usage import Usage

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Measured:
    """The figures of a run by the names of ``Figures``; no dollars where the target has no price.

    ``rows`` are the parts of the rows, of their ``results``. ``error`` is that of the first row that failed: less may
    have been asked than is estimated at least.
    """

    figures: Mapping[str, int | Decimal]
    rows: Sequence[Mapping[str, int | Decimal]]
    profile: Profile
    error: BaseException | None
    results: Sequence[Result]

    @property
    def fails(self) -> bool:
        """True if a row did not come to its end."""
        return self.error is not None

    @property
    def dollars(self) -> Decimal | None:
        """The dollars of all calls together."""
        found = self.figures.get("dollars")
        return None if found is None else Decimal(found)


def run_rows(program: JittedFunction, options: Options, rows: Rows) -> Measured:
    """Run a program on rows."""
    results = Runner(program, options).batch([((), row) for row in rows])
    has_prices = all(each.cost is not None for each in results)
    parts = [_figures(each.usage, each.cost if has_prices else None) for each in results]
    figures = {name: sum(each[name] for each in parts) for name in parts[0]}
    profile = Profile.merge(program.name, [each.profile for each in results])
    error = next((each.error for each in results if each.error is not None), None)
    return Measured(figures, parts, profile, error, results)


def _figures(usage: Usage, dollars: Decimal | None) -> dict[str, int | Decimal]:
    found: dict[str, int | Decimal] = {
        "calls": usage.calls,
        "prompt": usage.prompt_tokens,
        "cached": usage.cached_tokens,
        "cache_written": usage.cache_written_tokens,
        "output": usage.generated_tokens,
        "reasoning": usage.reasoning_tokens,
    }
    return found if dollars is None else {**found, "dollars": dollars}


def estimated(program: JittedFunction, options: Options, rows: Rows, profile: Profile | None = None) -> Figures:
    """Return the estimated figures of a program on rows."""
    return estimate_rows_of(program, options.updated(program.name, profile=profile), rows).total


def range_of(figures: Figures, name: str) -> CostRange[Any]:
    """Return a figure by name; dollars of a target without a price are an error."""
    found = getattr(figures, name)
    assert found is not None, f"{name} is not known"
    return found


def outside(figures: Figures, measured: Measured) -> list[str]:
    """Return the figures of a run that are not in their ranges, as text."""
    found: list[str] = []
    for name, value in measured.figures.items():
        expected = range_of(figures, name)
        most = None if expected.most is None else Fraction(expected.most)
        is_more = most is not None and most < Fraction(value)
        if is_more or (not measured.fails and Fraction(value) < Fraction(expected.least)):
            found.append(f"{name} {value} is not in {expected}")
    return found


def errors(figures: Figures, measured: Measured) -> dict[str, float]:
    """Return the errors of the expected figures, as shares of what was measured; without those that are 0."""
    return {
        name: float(Fraction(range_of(figures, name).expected) / Fraction(value)) - 1
        for name, value in measured.figures.items()
        if value
    }


def sampling_error(name: str, first: Measured, second: Measured) -> float:
    """Return the standard error of the difference of a figure's means in two runs, as a share of the second mean.

    Figures of other rows differ by so much where an estimate has no error of its own. Runs have at least two rows.
    """
    means, variances = zip(*(_mean_of(name, run) for run in (first, second)), strict=True)
    return math.sqrt(sum(variances)) / means[1] if means[1] else 0.0


def _mean_of(name: str, run: Measured) -> tuple[float, float]:
    """Return the mean of a figure over rows, and the variance of that mean."""
    values = [float(row[name]) for row in run.rows]
    return statistics.mean(values), statistics.variance(values) / len(values)

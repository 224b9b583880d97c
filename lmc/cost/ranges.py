"""Ranges of figures: the least, the expected and the most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

N = TypeVar("N", int, float, Decimal)
M = TypeVar("M", int, float, Decimal)


@dataclass(frozen=True, slots=True)
class CostRange(Generic[N]):
    """A figure that is not known exactly: ``least <= expected <= most``, none of them negative.

    ``most`` is None where there is no bound; sums, products and the like keep that.
    """

    least: N
    expected: N
    most: N | None

    def __post_init__(self) -> None:
        is_ordered = self.least <= self.expected and (self.most is None or self.expected <= self.most)
        if not (is_ordered and self.least >= 0):
            raise ValueError(f"{self.least} <= {self.expected} <= {self.most} is no range")

    @classmethod
    def exactly(cls, value: N) -> CostRange[N]:
        """Return the range of a figure that is known."""
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        """True if the figure is known."""
        return self.least == self.most

    def __add__(self, other: CostRange[N]) -> CostRange[N]:
        most = None if self.most is None or other.most is None else self.most + other.most
        return CostRange(self.least + other.least, self.expected + other.expected, most)

    def __mul__(self, other: CostRange[N]) -> CostRange[N]:
        """Multiply two ranges: nothing times an unbounded figure is nothing."""
        if other.most == 0 or self.most == 0:
            most = self.least * 0
        else:
            most = None if self.most is None or other.most is None else self.most * other.most
        return CostRange(self.least * other.least, self.expected * other.expected, most)

    def __contains__(self, value: N) -> bool:
        return self.least <= value and (self.most is None or value <= self.most)

    def map(self, figure: Callable[[N], M]) -> CostRange[M]:
        """Return the range of a figure that only grows with this one."""
        most = None if self.most is None else figure(self.most)
        return CostRange(figure(self.least), figure(self.expected), most)

    def hull(self, other: CostRange[N], weight: float = 0.5) -> CostRange[float]:
        """Return the range of one of both; ``weight``, from 0 to 1, is the probability of this one."""
        if not 0 <= weight <= 1:
            raise ValueError(f"{weight} is no probability")
        expected = float(self.expected) * weight + float(other.expected) * (1 - weight)
        least = min(float(self.least), float(other.least))
        most = None if self.most is None or other.most is None else max(float(self.most), float(other.most))
        return CostRange(least, max(least, expected if most is None else min(expected, most)), most)


def least_of(bounds: Iterable[int | None]) -> int | None:
    """Return the least of some bounds; None: there is none."""
    return min((bound for bound in bounds if bound is not None), default=None)


def largest_of(bounds: Iterable[int | None]) -> int | None:
    """Return the largest of some bounds; None: one of the figures has none."""
    found = list(bounds)
    known = [bound for bound in found if bound is not None]
    return max(known) if len(known) == len(found) else None


def total(ranges: Iterable[CostRange[N]], zero: N) -> CostRange[N]:
    """Return the sum of ranges; ``zero`` is that of none."""
    return sum(ranges, CostRange.exactly(zero))

"""Limits of requests and tokens in any minute, as a provider keeps them, and as a test measures them."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Window:
    """The amounts of one limit over the last ``minute`` seconds. ``limit`` None: there is none."""

    limit: int | None
    minute: float
    _amounts: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    used: int = 0

    def fits(self, now: float, amount: int) -> bool:
        self._forget(now)
        return self.limit is None or self.used + amount <= self.limit

    def add(self, now: float, amount: int) -> None:
        self._amounts.append((now, amount))
        self.used += amount

    def seconds_until(self, now: float, amount: int) -> float:
        """Return the seconds until ``amount`` fits; all of the window, if it never does."""
        if self.fits(now, amount):
            return 0.0
        assert self.limit is not None
        over = self.used + amount - self.limit
        for at, freed in self._amounts:
            over -= freed
            if over <= 0:
                return max(at + self.minute - now, 0.0)
        return self.minute

    def remaining(self, now: float) -> int:
        self._forget(now)
        return max((self.limit or 0) - self.used, 0)

    def seconds_until_full(self, now: float) -> float:
        """Return the seconds until nothing is used."""
        self._forget(now)
        return max(self._amounts[-1][0] + self.minute - now, 0.0) if self._amounts else 0.0

    def _forget(self, now: float) -> None:
        while self._amounts and self._amounts[0][0] <= now - self.minute:
            self.used -= self._amounts.popleft()[1]


def most_in_any(window: float, amounts: Iterable[tuple[float, int]]) -> int:
    """Return the largest sum of amounts within any ``window`` seconds: the end of one is outside it."""
    running: deque[tuple[float, int]] = deque()
    total = most = 0
    for at, amount in sorted(amounts):
        while running and running[0][0] <= at - window:
            total -= running.popleft()[1]
        running.append((at, amount))
        total += amount
        most = max(most, total)
    return most

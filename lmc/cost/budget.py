"""Budgets that a run can't overspend: each request reserves its worst case before it leaves."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any

from lmc.cost.prices import MONEY
from lmc.ir.errors import BudgetError, InputError
from lmc.ir.usage import Usage

_LOGGER = logging.getLogger("lmc.budget")


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may cost: dollars, tokens of prompts and outputs, requests. None: no limit of that kind.

    Failed attempts count. Raises ``InputError`` for what is no limit.
    """

    usd: Decimal | None = None
    tokens: int | None = None
    calls: int | None = None

    def __init__(
        self, usd: Decimal | float | str | None = None, tokens: int | None = None, calls: int | None = None
    ) -> None:
        object.__setattr__(self, "usd", None if usd is None else _checked_dollars(usd))
        for name, value in (("tokens", tokens), ("calls", calls)):
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(f"{name} of a budget is {value!r}", remedy="give a whole number from 1 on")
            object.__setattr__(self, name, value)
        if (self.usd, tokens, calls) == (None, None, None):
            raise InputError("a budget has no limit", remedy="give usd, tokens or calls")

    def __str__(self) -> str:
        limits = [] if self.usd is None else [f"{self.usd} dollars"]
        limits += [f"{value:,} {name}" for name in ("tokens", "calls") if (value := getattr(self, name)) is not None]
        return ", ".join(limits)


@dataclass(frozen=True, slots=True)
class Amount:
    """Dollars, tokens and calls. Dollars are 0 where no budget counts them."""

    usd: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0

    @classmethod
    def of(cls, usage: Usage, usd: Decimal = Decimal(0)) -> Amount:
        """Return the amount of a usage with its price."""
        return cls(usd, usage.prompt_tokens + usage.generated_tokens, usage.calls)

    def __add__(self, other: Amount) -> Amount:
        return Amount(MONEY.add(self.usd, other.usd), self.tokens + other.tokens, self.calls + other.calls)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(MONEY.subtract(self.usd, other.usd), self.tokens - other.tokens, self.calls - other.calls)

    def __mul__(self, count: int) -> Amount:
        return Amount(MONEY.multiply(self.usd, Decimal(count)), self.tokens * count, self.calls * count)

    def at_least(self, other: Amount) -> Amount:
        """Return the higher figure of each kind."""
        return Amount(max(self.usd, other.usd), max(self.tokens, other.tokens), max(self.calls, other.calls))

    def fits(self, budget: Budget) -> bool:
        """Return True if no limit is exceeded."""
        limits = ((getattr(self, each.name), getattr(budget, each.name)) for each in fields(Amount))
        return all(limit is None or value <= limit for value, limit in limits)

    def counted_by(self, budget: Budget) -> str:
        """Return the figures that the budget limits, as text."""
        parts = [] if budget.usd is None else [f"{self.usd.normalize(MONEY):f} dollars"]
        limited = (name for name in ("tokens", "calls") if getattr(budget, name) is not None)
        parts += [f"{getattr(self, name):,} {name}" for name in limited]
        return ", ".join(parts)


_LEAST = Amount(tokens=1, calls=1)
"""A request costs no less."""


@dataclass(eq=False, slots=True)
class Reservation:
    """The worst case of a request: it waits, is held, or is over.

    For an attempt whose cost can be looked up, ``decided`` starts the look-up, during which it is held. Lower ranks go
    first.
    """

    worst: Amount
    decided: Callable[[BudgetError | None, Reservation], object]
    is_held: bool = False
    rank: int = 0


@dataclass
class BudgetLedger:
    """The account of one run. Thread-safe; ``spent`` and all that is ``reserved`` never exceed the budget together.

    Reservations that do not fit wait: the lowest rank is first, then the one that came first. Where nothing is held and
    the first of them still does not fit, the costs of ``fetchable`` attempts are looked up. Where there are none left,
    the run is over: it and all others are refused. ``unknown`` counts attempts whose usage never came, and requests of
    earlier sessions that were in flight: ``spent`` has them at their worst case. ``fetchable`` is the part of that
    whose usage may still come: the provider keeps the answers.
    """

    budget: Budget
    spent: Amount = Amount()
    reserved: Amount = Amount()
    fetchable: Amount = Amount()
    unknown: int = 0
    is_over: bool = False
    _held: int = 0
    _waiting: list[Reservation] = field(default_factory=list[Reservation], repr=False)
    """The first one is at the end."""
    _fetchable: dict[Reservation, None] = field(default_factory=dict[Reservation, None], repr=False)
    _to_find: list[Reservation] = field(default_factory=list[Reservation], repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _is_deciding: bool = False

    def reserve(
        self, worst: Amount, decided: Callable[[BudgetError | None, Reservation], object], rank: int = 0
    ) -> Reservation:
        """Reserve ``worst``, now or later: any thread calls ``decided`` once, with an error if it is refused."""
        reservation = Reservation(worst, decided, rank=rank)
        with self._lock:
            self._waiting.insert(bisect_left(self._waiting, -rank, key=lambda each: -each.rank), reservation)
        self._decide()
        return reservation

    def withdraw(self, reservation: Reservation) -> bool:
        """Take back a reservation that waits; False if it was decided before."""
        with self._lock:
            if reservation not in self._waiting:
                return False
            self._waiting.remove(reservation)
        self._decide()
        return True

    def settle(self, reservation: Reservation, actual: Amount, unknown: int = 0) -> None:
        """Replace a reservation that is held by what the request cost; ``unknown`` attempts are in that."""
        if self._release(reservation, actual, unknown):
            self._decide()

    def add(self, spent: Amount, unknown: int) -> None:
        """Count what was spent before; ``unknown`` attempts are in that."""
        with self._lock:
            self.spent += spent
            self.unknown += unknown

    def add_fetchable(self, worst: Amount, decided: Callable[[BudgetError | None, Reservation], object]) -> Reservation:
        """Count an attempt of before at its worst case: its provider keeps the answer.

        Before a request is refused, ``decided`` is called, which looks up the cost and settles the reservation.
        ``reopen`` it to fetch the answer.
        """
        reservation = Reservation(worst, decided)
        with self._lock:
            self.spent += worst
            self.fetchable += worst
            self.unknown += 1
            self._fetchable[reservation] = None
        return reservation

    def reopen(self, fetchable: Reservation) -> None:
        """Hold what ``add_fetchable`` has counted while the answer is fetched. ``settle`` it with the cost.

        Nothing changes where its cost is known, or is being looked up.
        """
        with self._lock:
            self._reopen(fetchable)

    def postpone(self, fetchable: Reservation) -> None:
        """Count an attempt that is held at its worst case again: its answer was not fetched, and may be later."""
        with self._lock:
            if not fetchable.is_held:
                return
            self._end(fetchable, fetchable.worst, 1)
            self.fetchable += fetchable.worst
            self._fetchable[fetchable] = None
        self._decide()

    @property
    def promised(self) -> Amount:
        """The sum of what is spent and reserved."""
        with self._lock:
            return self.spent + self.reserved

    @property
    def held(self) -> int:
        """The number of reservations whose cost is not known yet."""
        return self._held

    def refusal(self) -> BudgetError | None:
        """Return the error of all requests to come, if no other one will fit; else None.

        Answers that may be fetched are left out: fetching them costs nothing, and may make room.
        """
        with self._lock:
            is_over = self.is_over or not (self.spent - self.fetchable + _LEAST).fits(self.budget)
            return self._error(None) if is_over else None

    def _decide(self) -> None:
        """Decide about the reservations that wait. One thread does at a time, in a loop: callers do not nest.

        An error of ``decided`` keeps no other request waiting: its own reservation then counts as spent.
        """
        with self._lock:
            if self._is_deciding:
                return
            self._is_deciding = True
        interrupt: BaseException | None = None
        while (found := self._next()) is not None:
            reservation, error = found
            try:
                reservation.decided(error, reservation)
            except BaseException as raised:
                self._release(reservation, reservation.worst, 1)
                if isinstance(raised, Exception):
                    _LOGGER.exception("the decision about a request was not taken")
                else:
                    interrupt = raised
        if interrupt is not None:
            raise interrupt

    def _release(self, reservation: Reservation, actual: Amount, unknown: int) -> bool:
        """End a reservation; False if it is not held."""
        with self._lock:
            if not reservation.is_held:
                return False
            self._end(reservation, actual, unknown)
            return True

    def _end(self, reservation: Reservation, actual: Amount, unknown: int) -> None:
        reservation.is_held = False
        self._held -= 1
        self.reserved -= reservation.worst
        self.spent += actual
        self.unknown += unknown

    def _reopen(self, fetchable: Reservation) -> bool:
        """Hold an attempt whose cost can be looked up; False: it is held, or its cost is known."""
        if fetchable not in self._fetchable:
            return False
        del self._fetchable[fetchable]
        self.spent -= fetchable.worst
        self.fetchable -= fetchable.worst
        self.unknown -= 1
        self._hold(fetchable)
        return True

    def _hold(self, reservation: Reservation) -> None:
        reservation.is_held = True
        self._held += 1
        self.reserved += reservation.worst

    def _next(self) -> tuple[Reservation, BudgetError | None] | None:
        with self._lock:
            if self._waiting and not self.is_over:
                first = self._waiting[-1]
                if (self.spent + self.reserved + first.worst).fits(self.budget):
                    self._waiting.pop()
                    self._hold(first)
                    return first, None
                if not self._held:
                    self._to_find = list(self._fetchable)
                while self._to_find:
                    fetchable = self._to_find.pop()
                    if self._reopen(fetchable):
                        return fetchable, None
                self.is_over = not self._held
            if self._waiting and self.is_over:
                refused = self._waiting.pop()
                return refused, self._error(refused.worst)
            self._is_deciding = False
            return None

    def _error(self, worst: Amount | None) -> BudgetError:
        request = "" if worst is None else f", and this request may cost {worst.counted_by(self.budget)}"
        fewer = ""
        if worst is not None and worst.calls > 1:
            fewer = f", or lower the attempts of the target: this request is counted with {worst.calls}"
        return BudgetError(
            f"the budget of {self.budget} is used up: {self.spent.counted_by(self.budget)} are spent{request}",
            remedy=f"raise the budget{fewer}; with a journal, --resume (resume=True) continues the run",
        )


def _checked_dollars(usd: Any) -> Decimal:
    try:
        dollars = Decimal(str(usd)) if type(usd) in (int, float, str, Decimal) else Decimal("nan")
    except InvalidOperation:
        dollars = Decimal("nan")
    if not (dollars.is_finite() and 0 < dollars <= Decimal(10) ** 12):
        raise InputError(f"usd of a budget is {usd!r}", remedy="give a number of dollars greater than 0")
    return dollars

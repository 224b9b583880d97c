"""The account of a run: bounds and costs of its requests, and what it has spent."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from decimal import Decimal
from functools import partial
from typing import Any

from lmc.cost.budget import Amount, Budget, BudgetLedger, Reservation
from lmc.cost.prices import Price
from lmc.ir.engine.protocol import Engine, Generation, KeepsAnswers, Request, Score, ScoreRequest
from lmc.ir.engine.target import Target
from lmc.ir.errors import BudgetError, EngineClosedError, LmcError, RequestCancelledError, RequestTimeoutError
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.budget.bounds import TokenBound, TokenBounds
from lmc.runtime.remote.asking import place_of


class PricedTarget:
    """A target that may be asked. ``price``: None where the budget has no limit of dollars."""

    def __init__(self, target: Target, price: Price | None) -> None:
        self.target = target
        self.attempts = 1 if target.remote is None else target.remote.attempts
        """The most attempts of one request."""
        self._price = price
        self._bounds = TokenBounds(target.spec, target.capabilities)

    def most(self, request: Request | ScoreRequest) -> Amount:
        """Return a bound for one attempt."""
        return self.most_of(self._bounds.most(request))

    def most_of(self, bound: TokenBound) -> Amount:
        """Return a bound for one attempt with at most so many tokens."""
        usd = Decimal(0) if self._price is None else self._price.most(*bound)
        assert usd is not None, "a budget of dollars is refused for a price without a bound"
        return Amount(usd, bound.prompt + bound.output, 1)

    def cost(self, usage: Usage) -> Decimal:
        """Return the dollars of one attempt."""
        if self._price is None:
            return Decimal(0)
        found = self._price.cost(usage)
        bound = self._price.most(usage.prompt_tokens, usage.generated_tokens) if found is None else found
        return bound or Decimal(0)


class RunBudget:
    """The budget of one run: its ledger, and the targets that it may ask, the first one first."""

    def __init__(self, budget: Budget, targets: Sequence[PricedTarget]) -> None:
        self.ledger = BudgetLedger(budget)
        self._targets = targets
        first = targets[0].target
        self._is_local = first.remote is None
        self._keeper: KeepsAnswers | None = None
        self._stored: dict[str, Reservation] = {}
        self._lock = threading.Lock()
        self._places = {name: place for place, name in enumerate((None, *first.fallback_names))}

    def most(self, request: Request | ScoreRequest) -> tuple[Amount, Sequence[Amount]]:
        """Return a bound for one request with all attempts of all targets, and for one attempt at each of them."""
        each = [target.most(request) for target in self._targets]
        return _sum(each, [target.attempts for target in self._targets]), each

    def cost(self, result: Any, worst: Amount, each: Sequence[Amount]) -> tuple[Amount, int]:
        """Return the cost of a request with its result or its error, and how many attempts count at their worst case.

        ``worst`` and ``each`` are the bounds of ``most``.
        """
        attempts = self._attempts_of(result)
        if attempts is None or any(attempt.fallback not in self._places for attempt in attempts):
            return worst, 1
        total, unknown = Amount(), 0
        for attempt in attempts:
            place = self._places[attempt.fallback]
            known = Amount.of(attempt.usage, self._targets[place].cost(attempt.usage))
            unknown += not attempt.is_whole
            total += known if attempt.is_whole else known.at_least(each[place])
        return total, unknown

    @property
    def targets(self) -> int:
        """The number of targets."""
        return len(self._targets)

    def opened(self, engine: Engine) -> None:
        """Take the engine of the run: it may tell what answers that its provider keeps have cost."""
        self._keeper = engine if isinstance(engine, KeepsAnswers) else None

    def add_sent(self, bound: TokenBound, attempts: Sequence[int], result: Any, stored: str | None = None) -> None:
        """Count a request of an earlier session of the run, of which each target got at most so many ``attempts``.

        ``result``: None where it had left and did not end. Its answer may be ``stored`` under an id by its provider:
        that attempt counts at its cost once this is known, and the others at their worst case.
        """
        each = [target.most_of(bound) for target in self._targets]
        worst = _sum(each, attempts)
        if result is not None:
            self.ledger.add(*self.cost(result, worst, each))
            return
        rest = worst if stored is None else worst - self._add_stored(stored, each)
        if rest != Amount():
            self.ledger.add(rest, 1)

    def settle(self, reservation: Reservation, result: Any, each: Sequence[Amount], kept: str | None) -> None:
        """Replace the reservation of a request that ended by its cost.

        ``kept`` is the id under which the provider keeps the answer to its last attempt. Where that attempt counts at
        its worst case, its cost can be looked up later, as that of ``add_sent``.
        """
        cost, unknown = self.cost(result, reservation.worst, each)
        if kept is not None and unknown:
            attempts = self._attempts_of(result)
            if attempts is None:  # one of them is the one of the answer, and the others are not known either
                cost -= self._add_stored(kept, each)
                unknown = int(cost != Amount())
            else:  # results have the attempt that answered first, errors the last one last
                last = attempts[0 if isinstance(result, Generation | Score) else -1]
                if not last.is_whole and self._places.get(last.fallback) == place_of(kept):
                    stored = self._add_stored(kept, each)
                    cost, unknown = cost - stored, unknown - (stored != Amount())
        self.ledger.settle(reservation, cost, unknown)

    def reopen(self, stored: str) -> Reservation | None:
        """Return the reservation of an attempt whose answer is fetched now; None: it is not counted.

        It is over where the cost was looked up before.
        """
        with self._lock:
            found = self._stored.get(stored)
        if found is not None:
            self.ledger.reopen(found)
        return found

    def settle_stored(self, stored: str, reservation: Reservation, usage: Usage | None) -> None:
        """Replace the reservation of an attempt, whose answer was stored under an id, by its cost.

        None: that is not known, and it counts at its worst case.
        """
        if usage is None:
            self.ledger.settle(reservation, reservation.worst, 1)
        else:
            cost = self._targets[place_of(stored)].cost(usage)
            self.ledger.settle(reservation, Amount.of(usage, cost), 0)

    def _add_stored(self, stored: str, each: Sequence[Amount]) -> Amount:
        """Count an attempt whose answer its provider keeps. Returns its worst case; nothing where it counts already."""
        place = place_of(stored)
        with self._lock:
            if self._keeper is None or place >= len(each) or stored in self._stored:
                return Amount()
            self._stored[stored] = self.ledger.add_fetchable(each[place], partial(self._look_up, self._keeper, stored))
        return each[place]

    def _look_up(self, keeper: KeepsAnswers, stored: str, _: BudgetError | None, reservation: Reservation) -> None:
        """Look up the cost of an answer. An unknown one counts at its worst case."""

        def found(done: Future[Usage | None]) -> None:
            is_known = not done.cancelled() and done.exception() is None
            self.settle_stored(stored, reservation, done.result() if is_known else None)

        keeper.stored_usage(stored).future.add_done_callback(found)

    def _attempts_of(self, result: Any) -> Sequence[Attempt] | None:
        """Return the attempts of a request that ended; None: nothing is known of them."""
        if (
            isinstance(result, LmcError)
            and result.usage is None
            and self._is_local
            and not isinstance(result, RequestCancelledError | RequestTimeoutError | EngineClosedError)
        ):
            return ()  # it was not begun
        return attempts_of(result)


def _sum(each: Sequence[Amount], attempts: Sequence[int]) -> Amount:
    amounts = (amount * count for amount, count in zip(each, attempts, strict=True))
    return sum(amounts, Amount())


def attempts_of(result: Any) -> Sequence[Attempt] | None:
    """Return the attempts that a result or an error tells of; None where it tells of none."""
    if isinstance(result, Generation | Score):
        return result.attempts
    if isinstance(result, LmcError) and result.usage is not None:
        return result.attempts or (() if result.usage == Usage() else (Attempt(result.usage),))
    return None

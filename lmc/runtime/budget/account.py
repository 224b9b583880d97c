"""The account of a run: bounds and costs of its requests, and what it has spent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from lmc.cost.budget import Amount, Budget, BudgetLedger
from lmc.cost.prices import Price
from lmc.ir.engine.protocol import Generation, Request, Score, ScoreRequest
from lmc.ir.engine.target import Target
from lmc.ir.errors import EngineClosedError, LmcError, RequestCancelledError, RequestTimeoutError
from lmc.ir.usage import Usage
from lmc.runtime.budget.bounds import TokenBound, TokenBounds


class Attempts(NamedTuple):
    """The attempts of a request that ended: the usage of each one that is known, and the number of the others."""

    known: Sequence[Usage]
    unknown: int


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
        self._is_local = targets[0].target.remote is None

    def most(self, request: Request | ScoreRequest) -> tuple[Amount, Amount]:
        """Return bounds for one request, with all attempts of all targets, and for its dearest attempt."""
        return self._sums([each.most(request) for each in self._targets])

    def cost(self, result: Any, worst: Amount, attempt: Amount) -> tuple[Amount, int]:
        """Return the cost of a request with its result or its error, and how many attempts count at their worst case.

        ``worst`` and ``attempt`` are the bounds of ``most``.
        """
        attempts = self._attempts_of(result)
        if attempts is None:
            return worst, 1
        known = Amount()
        for usage in attempts.known:
            known += Amount.of(usage, max(each.cost(usage) for each in self._targets))
        return (known + attempt * attempts.unknown).at_most(worst) if attempts.unknown else known, attempts.unknown

    def add_sent(self, bound: TokenBound, result: Any) -> None:
        """Count a request of an earlier session of the run. ``result``: None where it had left and did not end."""
        worst, attempt = self._sums([each.most_of(bound) for each in self._targets])
        self.ledger.add(*((worst, 1) if result is None else self.cost(result, worst, attempt)))

    def _sums(self, attempts: Sequence[Amount]) -> tuple[Amount, Amount]:
        total, dearest = Amount(), Amount()
        for target, attempt in zip(self._targets, attempts, strict=True):
            total += attempt * target.attempts
            dearest = dearest.at_least(attempt)
        return total, dearest

    def _attempts_of(self, result: Any) -> Attempts | None:
        """Return the attempts of a request that ended; None: nothing is known of them."""
        if (
            isinstance(result, LmcError)
            and result.usage is None
            and self._is_local
            and not isinstance(result, RequestCancelledError | RequestTimeoutError | EngineClosedError)
        ):
            return Attempts((), 0)  # it was not begun
        return attempts_of(result)


def attempts_of(result: Any) -> Attempts | None:
    """Return the attempts that a result or an error tells of; None where it tells of none."""
    if isinstance(result, Generation):
        own = Usage(
            result.prompt_tokens,
            result.cached_tokens,
            result.generated_tokens,
            1,
            result.cache_written_tokens,
            result.reasoning_tokens,
        )
        return Attempts((own, *result.failed), result.unknown_calls)
    if isinstance(result, Score):
        return Attempts((Usage(result.prompt_tokens, result.cached_tokens, 0, 1),), result.unknown_calls)
    if isinstance(result, LmcError) and result.usage is not None:
        return Attempts((result.usage,), result.unknown_calls)
    return None

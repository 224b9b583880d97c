"""An engine whose requests reserve their worst case in the budget of their run before they leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Generic, TypeVar

from lmc.cost.budget import Amount, Budget, BudgetLedger, Reservation
from lmc.cost.prices import Price
from lmc.grammar.constraint import Constraint
from lmc.grammar.provider_schema import form_of
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.observing import Observable
from lmc.ir.engine.protocol import (
    CacheFlushing,
    Engine,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    Leaving,
    OnDelta,
    Planned,
    PrefixCaching,
    Queueing,
    Request,
    Score,
    ScoreRequest,
)
from lmc.ir.engine.target import Target
from lmc.ir.errors import (
    BudgetError,
    ConstraintError,
    EngineClosedError,
    LmcError,
    RequestCancelledError,
    RequestTimeoutError,
)
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Usage

T = TypeVar("T")
_CAPABILITIES = (PrefixCaching, Planned, Observable, CacheFlushing)
_TOKENS_PER_REQUEST = 1024
"""A bound for what a provider adds to a prompt: instructions, the message that asks the model to continue.

What its template adds to a message has fewer tokens than the marks and the name of the role here, of a byte each.
"""
SPENT = "spent"
"""The fact of a journal that holds what its run has spent and reserved."""
Save = Callable[[str, Callable[[Exception | None], object]], object]
"""Writes what is spent; calls its second argument once that is on disk, or with the error."""


@dataclass(frozen=True)
class PricedTarget:
    """A target that may be asked. ``price``: None where the budget has no limit of dollars."""

    target: Target
    price: Price | None

    @property
    def attempts(self) -> int:
        """The most attempts of one request."""
        return 1 if self.target.remote is None else self.target.remote.attempts

    def most(self, request: Request | ScoreRequest) -> Amount:
        """Return a bound for one attempt."""
        prompt, output = self._most_tokens(request)
        usd = Decimal(0) if self.price is None else self.price.most(prompt, output)
        assert usd is not None, "a budget of dollars is refused for a price without a bound"
        return Amount(usd, prompt + output, 1)

    def cost(self, usage: Usage) -> Decimal:
        """Return the dollars of one attempt."""
        if self.price is None:
            return Decimal(0)
        found = self.price.cost(usage)
        bound = self.price.most(usage.prompt_tokens, usage.generated_tokens) if found is None else found
        return bound or Decimal(0)

    def _most_tokens(self, request: Request | ScoreRequest) -> tuple[int, int]:
        length = len(request.prompt)
        if isinstance(request, ScoreRequest):  # each continuation is a prompt of its own
            return sum(length + len(each) for each in request.continuations), len(request.continuations)
        remote, capabilities = self.target.remote, self.target.capabilities
        if remote is None:
            return length, request.sampling.max_tokens
        if capabilities.contexts != "tokens":
            length += _TOKENS_PER_REQUEST
            if request.constraint is not None and capabilities.structured == "schema":
                length += _schema_bytes(request.constraint, self.target)
        return length, request.sampling.max_tokens + remote.reasoning_tokens


class RunBudget:
    """The budget of one run: its ledger, and the prices of the targets that it may ask, the first one first."""

    def __init__(self, budget: Budget, targets: Sequence[PricedTarget]) -> None:
        self.ledger = BudgetLedger(budget)
        self._targets = targets

    def most(self, request: Request | ScoreRequest) -> tuple[Amount, Amount]:
        """Return bounds for one request, with all attempts of all targets, and for its dearest attempt."""
        total, dearest = Amount(), Amount()
        for each in self._targets:
            attempt = each.most(request)
            total += attempt * each.attempts
            dearest = Amount(*(max(getattr(dearest, name), getattr(attempt, name)) for name in Amount.__slots__))
        return total, dearest

    def actual(self, parts: Sequence[Usage], unknown: int, worst: Amount, attempt: Amount) -> Amount:
        """Return what a request cost: ``parts`` are its attempts, ``unknown`` of them count at their worst case."""
        known = Amount()
        for usage in parts:
            known += Amount.of(usage, max(each.cost(usage) for each in self._targets))
        return known if not unknown else (known + attempt * unknown).at_most(worst)

    @property
    def is_local(self) -> bool:
        """True if the engine is on this machine."""
        return self._targets[0].target.remote is None

    def resume(self, text: str | None) -> None:
        """Count what an earlier session of the run has spent and reserved, from its journal."""
        if text is not None:
            data = json.loads(text)
            self.ledger.spent += Amount(Decimal(data["usd"]), int(data["tokens"]), int(data["calls"]))

    def saved(self) -> str:
        """Return what is spent and reserved, for a journal."""
        found = self.ledger.promised
        return json.dumps({"usd": str(found.usd), "tokens": found.tokens, "calls": found.calls})


class BudgetedEngine:
    """``engine``, whose requests wait until ``budget`` has room for them. It keeps its optional capabilities.

    With ``save`` a reservation is on disk before its request leaves. Computing prefixes ahead costs no tokens: they are
    counted in the prompts that begin with them.
    """

    def __init__(self, engine: Engine, budget: RunBudget, save: Save | None = None) -> None:
        self._engine = engine
        self._budget = budget
        self._save = save
        for capability in _CAPABILITIES:
            if isinstance(engine, capability):
                for name in vars(capability):
                    if not name.startswith("_"):
                        setattr(self, name, getattr(engine, name))
        if isinstance(engine, Queueing):
            self.submit_announced = self._submit_announced
            self.score_announced = self._score_announced

    @property
    def tokenizer(self) -> Tokenizer:
        return self._engine.tokenizer

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    @property
    def statistics(self) -> EngineStatistics:
        return self._engine.statistics

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        return self._reserved(request, lambda: self._engine.submit(request, on_delta))

    def score(self, request: ScoreRequest) -> Handle[Score]:
        return self._reserved(request, lambda: self._engine.score(request))

    def _submit_announced(
        self, request: Request, on_delta: OnDelta | None, leaving: Leaving | None
    ) -> Handle[Generation]:
        assert isinstance(self._engine, Queueing)
        return self._reserved(request, partial(self._engine.submit_announced, request, on_delta, leaving))

    def _score_announced(self, request: ScoreRequest, leaving: Leaving | None) -> Handle[Score]:
        assert isinstance(self._engine, Queueing)
        return self._reserved(request, partial(self._engine.score_announced, request, leaving))

    def close(self) -> None:
        """Nothing: the engine belongs to somebody else."""

    def _reserved(self, request: Request | ScoreRequest, submit: Callable[[], Handle[T]]) -> Handle[T]:
        worst, attempt = self._budget.most(request)
        handle = _Budgeted[T](self._budget, submit, worst, attempt, self._save)
        handle.reservation = self._budget.ledger.reserve(worst, handle.decided)
        return handle


@dataclass(eq=False)
class _Budgeted(Generic[T]):
    """A request that waits for its budget, or is under way."""

    budget: RunBudget
    submit: Callable[[], Handle[T]]
    worst: Amount
    attempt: Amount
    save: Save | None
    future: Future[T] = field(default_factory=Future)
    reservation: Reservation | None = None
    inner: Handle[T] | None = None
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Cancel it in the engine, or before it gets there."""
        self.is_cancelled = True
        if self.inner is not None:
            self.inner.cancel()
        elif self.reservation is not None and self.budget.ledger.withdraw(self.reservation):
            self.future.set_exception(RequestCancelledError("the request was cancelled"))

    def decided(self, error: BudgetError | None, reservation: Reservation) -> None:
        """Send it, or fail."""
        self.reservation = reservation
        if error is not None:
            self.future.set_exception(error)
        elif self.save is None:
            self._send(None)
        else:
            self.save(self.budget.saved(), self._send)

    def _send(self, error: Exception | None) -> None:
        if self.is_cancelled and error is None:
            error = RequestCancelledError("the request was cancelled")
        if error is None:
            try:
                self.inner = self.submit()
            except Exception as raised:  # an engine should answer through its handle; one that does not fails alone
                error = raised
        if self.inner is None:
            assert error is not None
            self._settle(Amount(), 0)
            self.future.set_exception(error)
            return
        if self.is_cancelled:  # meanwhile
            self.inner.cancel()
        self.inner.future.add_done_callback(self._ended)

    def _ended(self, done: Future[T]) -> None:
        error = RequestCancelledError("the request was cancelled") if done.cancelled() else done.exception()
        result = None if error is not None else done.result()
        parts, unknown = self._parts(result if error is None else error)
        actual = self.worst if parts is None else self.budget.actual(parts, unknown, self.worst, self.attempt)
        self._settle(actual, unknown)
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(done.result())

    def _settle(self, actual: Amount, unknown: int) -> None:
        assert self.reservation is not None
        self.budget.ledger.settle(self.reservation, actual, unknown)
        if self.save is not None:
            self.save(self.budget.saved(), lambda _: None)

    def _parts(self, result: Any) -> tuple[Sequence[Usage] | None, int]:
        """Return the attempts of a request, and the number of those that are not known; None: nothing is known."""
        if isinstance(result, Generation):
            own = Usage(
                result.prompt_tokens,
                result.cached_tokens,
                result.generated_tokens,
                1,
                result.cache_written_tokens,
                result.reasoning_tokens,
            )
            return (own, *result.failed), result.unknown_calls
        if isinstance(result, Score):
            return (Usage(result.prompt_tokens, result.cached_tokens, 0, 1),), result.unknown_calls
        if isinstance(result, LmcError):
            if result.usage is not None:
                return (result.usage,), result.unknown_calls
            if self.budget.is_local and not isinstance(
                result, RequestCancelledError | RequestTimeoutError | EngineClosedError
            ):
                return (), 0  # it was not begun
        return None, 1


def _schema_bytes(constraint: TokenConstraint, target: Target) -> int:
    source = constraint.source if isinstance(constraint, Constraint) else None
    if source is None:
        return 0
    try:
        form = form_of(source, target.capabilities.schema_keywords, target.spec)
    except ConstraintError:
        return 0  # the engine refuses it
    return len(json.dumps(form.schema).encode())

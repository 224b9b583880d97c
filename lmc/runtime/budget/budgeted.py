"""An engine whose requests reserve their worst case in the budget of their run before they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from lmc.cost.budget import Amount, Reservation
from lmc.ir.engine.layer import EngineLayer, LayerHandle, cancelled_request
from lmc.ir.engine.protocol import (
    Engine,
    Generation,
    Handle,
    Leaving,
    OnDelta,
    Queueing,
    Request,
    Score,
    ScoreRequest,
    StoredAnswer,
)
from lmc.ir.errors import BudgetError, LmcError
from lmc.runtime.budget.account import RunBudget

T = TypeVar("T")
Submit = Callable[[Leaving | None], Handle[T]]


class BudgetedEngine(EngineLayer):
    """``engine``, whose requests wait until ``budget`` has room for them: it is an engine in which requests queue.

    Computing prefixes ahead costs no tokens: they are counted in the prompts that begin with them.
    """

    def __init__(self, engine: Engine, budget: RunBudget) -> None:
        super().__init__(engine)
        budget.opened(engine)
        self._budget = budget
        self._queueing = engine if isinstance(engine, Queueing) else None

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        return self.submit_announced(request, on_delta, None)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        return self.score_announced(request, None)

    def submit_announced(
        self, request: Request, on_delta: OnDelta | None, leaving: Leaving | None
    ) -> Handle[Generation]:
        def submit(asked: Request, told: Leaving | None) -> Handle[Generation]:
            if self._queueing is None:
                return self.below.submit(asked, on_delta)
            return self._queueing.submit_announced(asked, on_delta, told)

        stored = request.stored
        if stored is None:
            return self._reserved(request, lambda told: submit(request, told), leaving)
        kept = _KeptAnswer(stored.keep)
        announced = None if leaving is None else partial(kept.leaves, leaving)
        anew = replace(request, stored=StoredAnswer(kept.keep))
        held = None if stored.id is None else self._budget.reopen(stored.id)
        if held is None:
            asked = anew if stored.id is None else replace(request, stored=replace(stored, keep=kept.keep))
            return self._reserved(request, lambda told: submit(asked, told), announced, kept)
        fetched = StoredAnswer(kept.keep, stored.id, may_be_asked=False)
        handle = self._handle(request, lambda told: submit(replace(request, stored=fetched), told), announced, kept)
        handle.fetch(held, fetched, (lambda: submit(anew, announced)) if stored.may_be_asked else None)
        return handle

    def score_announced(self, request: ScoreRequest, leaving: Leaving | None) -> Handle[Score]:
        queueing = self._queueing
        if queueing is None:
            return self._reserved(request, lambda _: self.below.score(request), leaving)
        return self._reserved(request, lambda told: queueing.score_announced(request, told), leaving)

    def _reserved(
        self,
        request: Request | ScoreRequest,
        submit: Submit[T],
        leaving: Leaving | None,
        kept: _KeptAnswer | None = None,
    ) -> Handle[T]:
        handle = self._handle(request, submit, leaving, kept)
        handle.reserve()
        return handle

    def _handle(
        self, request: Request | ScoreRequest, submit: Submit[T], leaving: Leaving | None, kept: _KeptAnswer | None
    ) -> _Budgeted[T]:
        worst, each = self._budget.most(request)
        announced_here = leaving if self._queueing is None else None
        return _Budgeted[T](
            budget=self._budget,
            submit=lambda: submit(leaving),
            leaving=announced_here,
            worst=worst,
            each=each,
            kept=kept,
            rank=0 if request.place is None else request.place.rank,
        )


@dataclass(eq=False, slots=True)
class _KeptAnswer:
    """The ``id`` under which a provider keeps the answer to the last attempt of a request; None: it keeps none."""

    tell: Callable[[str], None]
    id: str | None = None

    def keep(self, stored: str) -> None:
        """Take the id, and tell it."""
        self.id = stored
        self.tell(stored)

    def leaves(self, leaving: Leaving, place: int, then: Callable[[Exception | None], object]) -> None:
        """Announce another attempt."""
        self.id = None
        leaving(place, then)


@dataclass(eq=False, kw_only=True)
class _Budgeted(LayerHandle[T]):
    """A request that waits for its budget, or is under way. ``leaving``: it is announced here, and not below."""

    budget: RunBudget
    submit: Callable[[], Handle[T]] = field(repr=False)
    leaving: Leaving | None
    worst: Amount
    each: Sequence[Amount]
    kept: _KeptAnswer | None
    rank: int
    reservation: Reservation | None = None

    def reserve(self) -> None:
        """Wait for room in the budget, then send it."""
        self.reservation = self.budget.ledger.reserve(self.worst, self.decided, self.rank)

    def fetch(self, held: Reservation, stored: StoredAnswer, asks: Callable[[], Handle[T]] | None) -> None:
        """Fetch its answer, which costs nothing more than ``held``. ``asks`` it anew where its provider has none."""
        self.reservation = held
        name = stored.id
        assert name is not None

        def ended(result: Any) -> None:
            ledger = self.budget.ledger
            told = result.usage if isinstance(result, LmcError) else None
            is_found = isinstance(result, Generation) or (told is not None and told.prompt_tokens > 0)  # without text
            if is_found:
                ledger.settle(held, *self.budget.cost(result, held.worst, self.each))
            elif stored.id is None:  # it is lost, or has failed
                self.budget.settle_stored(name, held, stored.usage)
            else:
                ledger.postpone(held)
            if is_found or asks is None or stored.id is not None or self.is_cancelled:
                self.end(result)
                return
            self.below, self.submit = None, asks
            self.reserve()

        self.pass_on(self.submit, ended)

    def cancel(self) -> None:
        """Cancel it in the engine, or before it gets there."""
        super().cancel()
        if self.below is None and self.reservation is not None and self.budget.ledger.withdraw(self.reservation):
            self.end(cancelled_request())

    def decided(self, error: BudgetError | None, reservation: Reservation) -> None:
        """Send it, or fail."""
        self.reservation = reservation
        if error is not None:
            self.end(error)
        elif self.leaving is None or self.is_cancelled:
            self._send(None)
        else:
            try:
                self.leaving(0, self._send)
            except BaseException as raised:
                self._send(raised)

    def _send(self, error: BaseException | None) -> None:
        if error is None and not self.is_cancelled:
            self.pass_on(self.submit, self._ended)
            return
        assert self.reservation is not None
        self.budget.ledger.settle(self.reservation, Amount(), 0)  # it does not leave
        self.end(error or cancelled_request())

    def _ended(self, result: Any) -> None:
        assert self.reservation is not None
        try:
            if self.below is None:  # the engine has refused it at once
                self.budget.ledger.settle(self.reservation, Amount(), 0)
            else:
                kept = None if self.kept is None else self.kept.id
                self.budget.settle(self.reservation, result, self.each, kept)
        finally:
            self.budget.ledger.settle(self.reservation, self.worst, 1)  # where its cost could not be told
            self.end(result)

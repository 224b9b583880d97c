"""The end of a run before all of its rows are finished."""

from __future__ import annotations

from collections.abc import Callable

from lmc.driver.run.result import Result, stopped
from lmc.driver.targets.cancelling import RunInterruptedError
from lmc.ir.errors import EngineError, LmcError
from lmc.runtime.budget.account import RunBudget

OnResult = Callable[[int, Result], None]


class RunEnd:
    """Ends a run where its budget is used up, or where an engine's error ends the batch (an exhausted quota).

    Rows that are under way come to their ends, so what is paid for is kept. Others don't start: they have the error.
    """

    def __init__(self, budget: RunBudget | None) -> None:
        self.has_refused = False
        """True once a row did not start: no other one will."""
        self._budget = budget
        self._error: EngineError | None = None

    def refusal(self) -> LmcError | None:
        """Return the error of a row that would start now; None: it may start."""
        error = self._error
        if error is not None:
            found: LmcError | None = type(error)(error.cause, remedy=error.remedy)
        else:
            found = None if self._budget is None else self._budget.ledger.refusal()
        self.has_refused = self.has_refused or found is not None
        return found

    def deliver(self, number: int, result: Result, on_result: OnResult, on_stopped: OnResult | None) -> None:
        """Report the result of an instance.

        Raises ``RunInterruptedError`` where the instance stops all others: an interrupt by the user's code, or a
        journal that can't be written. It is stopped then.
        """
        error = result.error
        ends = isinstance(error, LmcError) and error.ends_batch
        if isinstance(error, EngineError) and ends:
            self._error = self._error or error
        elif isinstance(error, KeyboardInterrupt) or (isinstance(error, LmcError) and ends):
            if on_stopped is not None:
                on_stopped(number, stopped(result.profile, result.spending))
            raise RunInterruptedError(error)
        on_result(number, result)

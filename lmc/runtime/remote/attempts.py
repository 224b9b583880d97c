"""Attempts of a request: the only layer of retries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import stamina

from lmc.ir.usage import Attempt, Usage
from lmc.runtime.remote.failures import AttemptError
from lmc.runtime.remote.limits import Charge

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class Tries:
    """The attempts of one request at one target: those that failed, and the one that is under way."""

    def __init__(self) -> None:
        self._failed: list[Attempt] = []
        self._charge: Charge | None = None

    def begin(self, charge: Charge | None) -> None:
        """Note an attempt that begins; None: it is over, and answered."""
        self._charge = charge

    def fail(self, failure: AttemptError) -> None:
        """Note that the attempt has failed. One that can't have arrived costs nothing."""
        charge, self._charge = self._charge, None
        if charge is not None and charge.may_have_arrived:
            self._failed.append(Attempt(failure.usage, failure.is_whole))

    def ended(self) -> tuple[Attempt, ...]:
        """Return all of them; the answer to the one under way is not known."""
        if self._charge is not None and self._charge.may_have_arrived:
            return (*self._failed, Attempt(Usage(calls=1), is_whole=False))
        return tuple(self._failed)


async def attempts(ask: Callable[[], Awaitable[T]], most: int, hold: Callable[[float], None], tries: Tries) -> T:
    """Return the answer of the first attempt that succeeds, of at most ``most``. Raises the last ``AttemptError``.

    Pauses double, with jitter, from half a second on; where the provider names one, it is kept for all requests
    (``hold``). Failed attempts are noted in ``tries``.
    """
    retries = stamina.retry_context(
        on=_pause_after,
        attempts=most,
        timeout=None,
        wait_initial=_FIRST_PAUSE,
        wait_max=_LONGEST_PAUSE,
        wait_jitter=0.5,
    )
    async for attempt in retries:
        with attempt:
            try:
                return await ask()
            except AttemptError as failure:
                tries.fail(failure)
                if failure.again and failure.after is not None:
                    hold(failure.after)
                raise
    raise AssertionError("the last attempt returns or raises")


def _pause_after(error: Exception) -> bool | float:
    """Return how long to wait before another attempt; False: there is none."""
    if not isinstance(error, AttemptError) or not error.again:
        return False
    if error.after is None:
        return True
    return error.after + 0.05

"""Attempts of a request: the only layer of retries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import stamina

from lmc.runtime.remote.failures import AttemptError

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


async def attempts(
    ask: Callable[[], Awaitable[T]], most: int, hold: Callable[[float], None], failed: list[AttemptError]
) -> T:
    """Return the answer of the first attempt that succeeds, of at most ``most``. Raises the last ``AttemptError``.

    Pauses double, with jitter, from half a second on; where the provider names one, it is kept for all requests
    (``hold``). Failed attempts are appended to ``failed``.
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
                failed.append(failure)
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

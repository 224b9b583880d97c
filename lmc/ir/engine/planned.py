"""Hints of a plan to an engine about future requests."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

_RUNS = itertools.count(1)


def new_run() -> int:
    """Return the number of a run: no other in this process has it."""
    return next(_RUNS)


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a request in a plan: ``run`` is the number of the run in its process, ``rank`` its place.

    Ranks count requests of the run from 0, lower ones come first; several may have the same. ``lane`` is the client of
    the run: runs of one client share its turns (None: the run is a client of its own).
    """

    run: int
    rank: int
    lane: int | None = None


@runtime_checkable
class Planned(Protocol):
    """Optional capability: engines that accept hints about the next uses of prefixes.

    Both calls are hints: they are thread-safe, return at once and never fail, whatever state the engine is in, and no
    output depends on them.
    """

    def expect(self, prompt: tuple[int, ...], place: Place) -> int:
        """Requests that begin with ``prompt`` are still to come, the next of them at ``place``.

        Gives the key that takes this back. One prompt may be expected several times; an empty one says that the run
        goes on. While a run has expectations, tokens that only it used and that it does not expect are evicted first.
        """
        ...

    def withdraw(self, key: int) -> None:
        """Withdraw the expectation of ``key``. Unknown or withdrawn keys do nothing."""
        ...

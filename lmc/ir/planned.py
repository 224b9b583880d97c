"""What a plan may tell an engine about requests that are still to come.."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Planned(Protocol):
    """Optional capability: engines that may be told which prefixes will be asked for again, and when.

    Both calls are hints: they are thread-safe, return at once and never fail, whatever state the engine is in, and no
    output depends on them.
    """

    def expect(self, prompt: tuple[int, ...], rank: int) -> int:
        """Requests that begin with ``prompt`` are still to come, the next of them at place ``rank`` of the plan.

        Lower ranks come first. Gives the key that takes this back. One prompt may be expected several times.
        """
        ...

    def withdraw(self, key: int) -> None:
        """What ``expect`` said under ``key`` is true no more. Keys that are unknown or taken back do nothing."""
        ...

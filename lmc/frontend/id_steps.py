"""How many ids each round takes on paths that others see, where all rounds run at the same time.

A round in which they are counted from none says how many; after that each begins with its number times that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.frontend.regions import Ended
from lmc.ir.types import INT

if TYPE_CHECKING:
    from lmc.frontend.proxy import Proxy
    from lmc.frontend.recorder import Recorder


class IdSteps:
    """The ids of the rounds of one loop; where how many depends on the round that is a break with ``remedy``."""

    def __init__(self, recorder: Recorder, remedy: str) -> None:
        self._recorder = recorder
        self._remedy = remedy
        self._steps: dict[Any, int | None] = {}

    def enter(self, number: Proxy) -> None:
        """The round ``number`` begins: how many there are on each base then."""
        for base, step in self._steps.items():
            self._put(base, 0 if step is None else self._after(base, number, step))

    def measure(self, ended: Ended) -> bool:
        """Whether another round is to be traced than ``ended``, to find out or to use how many ids one takes."""
        recorder = self._recorder
        again = False
        for base, count in ended.counts.items():
            if "/@" in base[0] or not all(map(recorder.regions.sees, base[1])):
                continue
            if base not in self._steps:
                self._steps[base] = None
                again = True
            elif self._steps[base] is None:
                if type(count) is not int:
                    raise recorder.stop(
                        "how many ids a round over branches takes depends on what is generated in it", self._remedy
                    )
                self._steps[base] = count
                again = True
        return again

    def leave(self, rounds: Any) -> None:
        """All rounds are over, of which there were so many."""
        for base, step in self._steps.items():
            if step is not None:
                self._put(base, self._after(base, rounds, step))

    def _after(self, base: Any, rounds: Any, step: int) -> Proxy:
        recorder = self._recorder
        taken = recorder.pure("mul", (rounds, step), gives=INT)
        return recorder.pure("add", (recorder.counts.get(base, 0), taken), gives=INT)

    def _put(self, base: Any, count: Any) -> None:
        self._recorder.regions.touch_count(base)
        self._recorder.counts[base] = count

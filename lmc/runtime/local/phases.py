"""Time of the engine's thread, by phase."""

import time
from typing import Literal

from lmc.ir.engine.protocol import EngineStatistics

Phase = Literal["model_seconds", "sampling_seconds", "scheduling_seconds", "delivery_seconds"]


class PhaseClock:
    """Adds the time since the last call to one of the totals: two function calls a lap, no nesting to unwind."""

    def __init__(self, statistics: EngineStatistics) -> None:
        self._statistics = statistics
        self._last = time.perf_counter()

    def restart(self) -> None:
        """Count the time since the last lap as waiting."""
        self._last = time.perf_counter()

    def move(self, seconds: float, source: Phase, to: Phase) -> None:
        """Count as another phase what a lap of `source` had in it."""
        setattr(self._statistics, source, getattr(self._statistics, source) - seconds)
        setattr(self._statistics, to, getattr(self._statistics, to) + seconds)

    def lap(self, phase: Phase) -> None:
        """Count the time since the last lap as `phase`."""
        now = time.perf_counter()
        setattr(self._statistics, phase, getattr(self._statistics, phase) + now - self._last)
        self._last = now

"""Retention hints for the engine: the contexts of an instance that its plan uses again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lmc.ir.core import Value
from lmc.ir.engine.protocol import Engine, Place, Planned
from lmc.runtime.prepared_body import PreparedBody


class BodyRun(Protocol):
    """One run of a body; compared by identity."""

    @property
    def body(self) -> PreparedBody: ...


class KeptContexts:
    """The expectations of one run of a plan, by the frame and the context that ``lm.keep`` is about.

    Each is withdrawn at the ``lm.free`` of its context, or once its frame is over and what follows has begun; all that
    are left, when the run ends. So nothing is expected for a run that is over, however it ended. ``place_at`` gives the
    place of a stage of the instance.
    """

    def __init__(self, engine: Engine, place_at: Callable[[int], Place]) -> None:
        self.engine = engine if isinstance(engine, Planned) else None
        self._place_at = place_at
        self._keys: dict[BodyRun, dict[Value, int]] = {}
        self._loose: list[int] = []

    def expect(self, frame: BodyRun, keep: int, prompt: tuple[int, ...]) -> None:
        """Send the hint of the ``lm.keep`` at ``keep`` for ``prompt``; it replaces the last one of its context."""
        if self.engine is None or not prompt:
            return
        context = frame.body.ops[keep].operands[0]
        keys = self._keys.setdefault(frame, {})
        key = self.engine.expect(prompt, self._place_at(frame.body.kept_stages[keep]))
        before = keys.get(context)
        keys[context] = key
        if before is not None:
            self.engine.withdraw(before)

    def begun(self, frame: BodyRun, index: int, prompt: tuple[int, ...]) -> None:
        """The call at ``index`` begins. What it leaves may be kept: from its end on, which the engine knows first."""
        keep = frame.body.keeps.get(index)
        if keep is not None:
            self.expect(frame, keep, prompt)

    def withdraw(self, frame: BodyRun, context: Value) -> None:
        """The context is not kept any more."""
        key = self._keys.get(frame, {}).pop(context, None)
        if key is not None and self.engine is not None:
            self.engine.withdraw(key)

    def frame_is_over(self, frame: BodyRun) -> None:
        """Keep the contexts of a finished frame until its successors, which may use them at once, have begun."""
        self._loose += self._keys.pop(frame, {}).values()

    def withdraw_loose(self) -> None:
        """Release the contexts kept for finished frames: everything that can begin has begun."""
        if self.engine is not None:
            while self._loose:
                self.engine.withdraw(self._loose.pop())

    def withdraw_all(self) -> None:
        """The run is over."""
        for frame in list(self._keys):
            self.frame_is_over(frame)
        self.withdraw_loose()

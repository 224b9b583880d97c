"""Runs of ops with regions: which region runs when, and its results (semantics: ``lmc.ir.semantics.control_flow``).

A region is run by a frame. Nothing here is recursive but over the nesting of regions: the end of a frame is reported
by the machine's own loop, so a loop may have any number of rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from lmc.ir.core import Op
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp, TryOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.semantics import control_flow
from lmc.runtime.machine import Ending, Failed, Frame
from lmc.runtime.prepared_body import PreparedBody
from lmc.runtime.scope import Scope


def run_regions(frame: Frame, index: int, op: RegionOp) -> None:
    """Start an instruction that has regions. Raises what looking at its operands raises."""
    if isinstance(op, CondOp):
        _CondRun(frame, index, op).start()
    elif isinstance(op, LoopOp):
        _LoopRun(frame, index, op).start()
    elif isinstance(op, TryOp):
        _TryRun(frame, index, op).start()
    elif isinstance(op, MapOp):
        _MapRun(frame, index, op).start()
    elif isinstance(op, RaceOp):
        _RaceRun(frame, index, op).start()
    else:
        raise TypeError(f"{op.NAME} has regions of no known meaning")


class _Run(ABC):
    """The run of the op at ``index`` of ``frame``."""

    def __init__(self, frame: Frame, index: int) -> None:
        self._frame = frame
        self._index = index
        self._bodies = frame.body.bodies[index]

    @abstractmethod
    def cancel(self) -> None:
        """Stop the frames that are under way."""

    @abstractmethod
    def _ended(self, frame: Frame) -> None:
        """``frame`` has come to its end. What this raises is the op's error."""

    def aborting(self, frame: Frame) -> None:  # noqa: ARG002 - whichever it is
        """The op will end the frame around it, as one of its own will be ended."""
        self._frame.abort_after(self._index)

    def over(self, frame: Frame) -> None:
        """``frame`` has come to its end."""
        try:
            self._ended(frame)
        except Exception as error:
            self.cancel()
            self._frame.fail(self._index, error)

    def _make(self, body: PreparedBody, values: Sequence[Any], number: int | None) -> Frame:
        """A frame of a region, with values for its parameters. ``number`` is that of the round or element."""
        around = self._frame
        rank = around.body.ranks[self._index]
        return Frame(
            around.machine,
            body,
            Scope(around.environment, zip(body.parameters, values, strict=True)),
            stage=body.whole,
            place=(*around.place, rank) if number is None else (*around.place, rank, number),
            owner=self,
            rounds=around.rounds if number is None else (*around.rounds, number),
        )


class _CondRun(_Run):
    """One region, once."""

    def __init__(self, frame: Frame, index: int, op: CondOp) -> None:
        super().__init__(frame, index)
        then, otherwise = self._bodies
        takes_then = control_flow.chosen_region(op, frame.environment) is op.then
        chosen, skipped = (then, op.otherwise) if takes_then else (otherwise, op.then)
        frame.machine.begun.region_is_skipped(skipped, frame.rounds)
        frame.machine.upcoming.skipped(skipped, frame.rounds)
        frame.machine.recording.branch(op.id, then=takes_then)
        self._child = self._make(chosen, (), None)

    def start(self) -> None:
        self._frame.begin(self._index, self)
        self._frame.machine.start([self._child])

    def cancel(self) -> None:
        self._child.cancel()

    def _ended(self, frame: Frame) -> None:
        if frame.end is not None:
            self._frame.stop(self._index, frame.end)
        else:
            self._frame.finish(self._index, _results(frame))


class _TryRun(_Run):
    """One region, once; an exception that ends it becomes values."""

    def __init__(self, frame: Frame, index: int, op: TryOp) -> None:
        super().__init__(frame, index)
        self._op = op
        self._child = self._make(self._bodies[0], (), None)

    def start(self) -> None:
        self._frame.begin(self._index, self)
        self._frame.machine.start([self._child])

    def cancel(self) -> None:
        self._child.cancel()

    def aborting(self, frame: Frame) -> None:
        """Return what comes after the op goes on: its error may be caught."""

    def _ended(self, frame: Frame) -> None:
        end, recording = frame.end, frame.machine.recording
        if end is None:
            recording.branch(self._op.id, then=True)
            self._frame.finish(self._index, control_flow.yielded_results(_results(frame)))
        elif isinstance(end, Failed) and control_flow.catches(self._op, end.error):
            control_flow.caught_at(end.error, end.op)
            recording.branch(self._op.id, then=False)
            results = control_flow.caught_results(self._op, end.error, self._frame.environment)
            self._frame.finish(self._index, results)
        else:
            self._frame.stop(self._index, end)


class _LoopRun(_Run):
    """Two regions in turn. Of the rounds only the one that is under way is there."""

    def __init__(self, frame: Frame, index: int, op: LoopOp) -> None:
        super().__init__(frame, index)
        self._op = op
        self._condition, self._body = self._bodies
        self._rounds = 0
        frame.machine.recording.repeat(op.id)
        self._child = self._next(self._condition, control_flow.given(op.initial, frame.environment))

    def start(self) -> None:
        self._frame.begin(self._index, self)
        self._frame.machine.start([self._child])

    def cancel(self) -> None:
        self._child.cancel()

    def _ended(self, frame: Frame) -> None:
        if frame.end is not None:
            self._frame.stop(self._index, frame.end)
        elif frame.body is self._body:
            self._rounds += 1
            self._go_on(self._condition, _results(frame))
        else:
            goes_on, *values = _results(frame)
            if goes_on:
                control_flow.check_round(self._op, self._rounds)
                self._frame.machine.recording.round(self._op.id, self._rounds + 1)
                self._go_on(self._body, values)
            else:
                self._frame.finish(self._index, tuple(values))

    def _next(self, body: PreparedBody, values: Sequence[Any]) -> Frame:
        return self._make(body, values, self._rounds)

    def _go_on(self, body: PreparedBody, values: Sequence[Any]) -> None:
        self._child = self._next(body, values)
        self._frame.machine.wake(self._child)  # behind what else is ready, so that it can't keep others from starting


class _ElementsRun(_Run):
    """One region for each element, up to a window of them at the same time.

    The lowest element that decides (``_decides``) makes those after it needless: they are cancelled or never started.
    """

    def __init__(self, frame: Frame, index: int, op: MapOp | RaceOp) -> None:
        super().__init__(frame, index)
        self._elements = control_flow.elements(op, frame.environment)
        frame.machine.recording.repeat(op.id, len(self._elements))
        self._window = 1 if op.writes or op.changes_objects else frame.machine.around.in_flight.limit
        self._needed = len(self._elements)  # those from here on are needless
        self._started = 0
        self._under_way: dict[int, Frame] = {}

    def start(self) -> None:
        self._frame.begin(self._index, self)
        self._go_on()

    def cancel(self) -> None:
        for frame in self._under_way.values():
            frame.cancel()
        self._under_way.clear()

    @abstractmethod
    def _finish(self) -> None:
        """All elements that are needed have come to their ends."""

    def _need_up_to(self, number: int) -> None:
        """The element ``number`` decides: those after it are needless."""
        self._needed = min(self._needed, number + 1)
        for later in [other for other in self._under_way if other > number]:
            self._under_way.pop(later).cancel()

    def _go_on(self) -> None:
        begun: list[Frame] = []
        while self._started < self._needed and len(self._under_way) < self._window:
            number = self._started
            frame = self._make(self._bodies[0], self._elements[number], number)
            self._under_way[number] = frame
            self._started += 1
            begun.append(frame)
        self._frame.machine.start(begun)
        if not self._under_way:
            self._finish()

    def _number(self, frame: Frame) -> int:
        return frame.rounds[-1]


class _MapRun(_ElementsRun):
    """Every element is needed. The lowest one that fails decides."""

    def __init__(self, frame: Frame, index: int, op: MapOp) -> None:
        super().__init__(frame, index, op)
        self._op = op
        self._yielded: list[tuple[Any, ...]] = [()] * len(self._elements)
        self._failure: Ending | None = None

    def aborting(self, frame: Frame) -> None:
        self._need_up_to(self._number(frame))
        super().aborting(frame)

    def _ended(self, frame: Frame) -> None:
        number = self._number(frame)
        del self._under_way[number]
        if frame.end is not None:
            self._failure = frame.end
        else:
            self._yielded[number] = _results(frame)
        self._go_on()

    def _finish(self) -> None:
        if self._failure is not None:
            self._frame.stop(self._index, self._failure)
        else:
            self._frame.finish(self._index, control_flow.map_results(self._op, self._yielded))


class _RaceRun(_ElementsRun):
    """The lowest element decides that is good or fails."""

    def __init__(self, frame: Frame, index: int, op: RaceOp) -> None:
        super().__init__(frame, index, op)
        self._decided: tuple[Any, ...] | Ending = ()  # what the last element yielded, where none decides

    def aborting(self, frame: Frame) -> None:
        """The element will fail, but a lower one may win."""
        self._need_up_to(self._number(frame))

    def _ended(self, frame: Frame) -> None:
        number = self._number(frame)
        del self._under_way[number]
        if frame.end is not None:
            self._decided = frame.end
            self._need_up_to(number)
        else:
            yielded = _results(frame)
            if yielded[0]:
                self._need_up_to(number)
            if number == self._needed - 1:
                self._decided = yielded
        self._go_on()

    def _finish(self) -> None:
        if isinstance(self._decided, tuple):
            self._frame.finish(self._index, control_flow.race_results(self._decided))
        else:
            self._frame.stop(self._index, self._decided)


def _results(frame: Frame) -> tuple[Any, ...]:
    """Return what the region's terminator lists."""
    end: Op = frame.body.terminator
    return control_flow.region_results(end, frame.environment)

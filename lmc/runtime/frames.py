"""One run of a body: each instruction starts as soon as those it waits for are finished."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lmc.ir import semantics
from lmc.ir.core import Op, Value
from lmc.ir.errors import located
from lmc.ir.ops import FreeOp, KeepOp, PrefillOp, PyCallOp, SampleOp, SamplingOp
from lmc.ir.regions import LEAVING, RegionOp
from lmc.ir.statements import RAISING
from lmc.runtime.early_calls import EarlyCalls
from lmc.runtime.prefixes import HeldPrefixes
from lmc.runtime.prepared import PreparedBody, Stage

if TYPE_CHECKING:
    from lmc.runtime.machine import Machine


@dataclass(frozen=True, slots=True)
class Left:
    """The program, or its captured part, ends at ``op``; ``environment`` holds what that names."""

    op: Op
    environment: Mapping[Value, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """``op`` raised ``error``."""

    op: Op
    error: BaseException

    def located(self) -> BaseException:
        """The error, with the user's line."""
        return located(self.error, self.op.location)


_FOR_THE_ENGINE = (PrefillOp, KeepOp, FreeOp)
Ending = Left | Failed
"""What ends a body before the op around it goes on: the end of the program, or a failure."""


class Activity(Protocol):
    """What an instruction waits for."""

    def cancel(self) -> None:
        """Nobody needs it any more."""
        ...


class Owner(Protocol):
    """The run of an op with regions, as a frame of one of its regions sees it."""

    def doomed(self, frame: Frame) -> None:
        """``frame`` will end early; what comes before that in it is still under way."""
        ...

    def over(self, frame: Frame) -> None:
        """``frame`` has come to its end."""
        ...


class Frame:
    """One run of a body, for one instance. ``environment`` holds the values known before and takes the results.

    Where several instructions would end it early, the first in program order counts, as in plain Python: from the
    moment that is known (``doom``), nothing after it starts and what is under way there is cancelled, but what comes
    before it goes on, since that may end it still earlier. ``end`` is what did, once the frame is over.

    ``place`` is where it stands in the order of requests (``in_flight.Priority``), ``rounds`` are the numbers of the
    rounds and elements around it.
    """

    def __init__(
        self,
        machine: Machine,
        body: PreparedBody,
        environment: dict[Value, Any],
        *,
        stage: Stage,
        place: tuple[int, ...],
        owner: Owner | None = None,
        rounds: tuple[int, ...] = (),
    ) -> None:
        self.machine = machine
        self.body = body
        self.environment = environment
        self.place = place
        self.owner = owner
        self.rounds = rounds
        self.end: Ending | None = None
        self.is_awake = False
        self.is_over = False
        self._waits = dict(stage.waits)
        self._ready = list(stage.first)
        self._active: dict[int, Activity] = {}
        self._limit = len(body.ops)  # instructions before it may start
        engine = machine.prefix_engine if body.prefill_ids else None
        self.prefixes = None if engine is None else HeldPrefixes(body, engine, machine.around.budget)
        self.early = EarlyCalls(self, stage) if stage.early_waits else None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready and nothing under way: all that could be finished is."""
        return not self._ready and not self._active

    def step(self) -> bool:
        """Start the first instruction that is ready. False where none is."""
        while self._ready:
            index = heapq.heappop(self._ready)
            if index < self._limit:
                self._start(index)
                return True
        if self.early is not None:
            self.early.start_ready()
        return False

    def begin(self, index: int, activity: Activity) -> None:
        """The instruction at ``index`` is under way until ``finish``, ``fail`` or ``stop``."""
        self._active[index] = activity

    def has_begun(self, index: int) -> bool:
        """Whether the instruction at ``index`` is under way, or finished. Without results nobody can tell: then too."""
        results = self.body.ops[index].results
        return index in self._active or not results or results[0] in self.environment

    def finish(self, index: int, results: tuple[Any, ...]) -> None:
        """Take the results of an instruction, and see who was waiting for them."""
        self._active.pop(index, None)
        op = self.body.ops[index]
        self.environment.update(zip(op.results, results, strict=True))
        for dependent in self.body.dependents[index]:
            waits = self._waits.get(dependent)
            if waits is None:  # it belongs to another stage
                continue
            self._waits[dependent] = waits - 1
            if waits == 1:
                heapq.heappush(self._ready, dependent)
        if self.prefixes is not None:
            self.prefixes.finished(index)
        if self.early is not None:
            self.early.finished(index)
        if isinstance(op, RegionOp):
            self.machine.to_come.over(self, op)
        self.machine.wake(self)

    def fail(self, index: int, error: BaseException) -> None:
        """The instruction at ``index`` raises ``error``."""
        self.stop(index, Failed(self.body.ops[index], error))

    def stop(self, index: int, end: Ending) -> None:
        """The instruction at ``index`` ends the frame, unless one before it does."""
        self._active.pop(index, None)
        self.doom(index)
        if index == self._limit:
            self.end = end
        self.machine.wake(self)

    def doom(self, index: int) -> None:
        """The instruction at ``index`` will end the frame, or one before it: what comes after it is in vain."""
        if index >= self._limit:
            return
        is_first = self._limit == len(self.body.ops)
        self._limit = index
        for later in [other for other in self._active if other > index]:
            self._active.pop(later).cancel()
        if self.early is not None:
            self.early.doomed(index)
        if is_first and self.owner is not None:
            self.owner.doomed(self)

    def cancel(self) -> None:
        """Stop all that is under way."""
        if self.is_over:
            return
        self.is_over = True
        self._ready.clear()
        for activity in self._active.values():
            activity.cancel()
        self._active.clear()
        self.let_go()

    def let_go(self) -> None:
        """It is over: nothing is held for it any more."""
        self.let_go_of_prefixes()
        self.machine.kept.frame_is_over(self)
        if self.early is not None:
            self.early.let_go_of_all()

    def let_go_of_prefixes(self) -> None:
        """Unpin every prefix that is still held."""
        if self.prefixes is not None:
            self.prefixes.let_go_of_all()

    def _start(self, index: int) -> None:
        op = self.body.ops[index]
        if self.early is not None:
            self.early.reached(index)
        try:
            if isinstance(op, LEAVING):
                self.stop(index, Left(op, self.environment))
            elif op.IS_TERMINATOR:
                self.finish(index, ())
            elif semantics.is_local(op) and not isinstance(op, _FOR_THE_ENGINE):
                self._evaluate(index, op)
            else:
                self.machine.ask(self, index, op)
        except BaseException as error:  # the user's expressions raise what they like
            if not isinstance(error, Exception) and not (isinstance(op, PyCallOp) and op.function in RAISING):
                raise
            self.fail(index, error)

    def _evaluate(self, index: int, op: Op) -> None:
        around = self.machine.around
        results = semantics.evaluate(op, self.environment, around.engine.tokenizer, around.constraints)
        if isinstance(op, SamplingOp):
            report_forced(self.machine, op, self.environment)
        self.finish(index, results)


def report_forced(machine: Machine, op: SamplingOp, environment: Mapping[Value, Any]) -> None:
    """Tell about the text of an op whose tokens are known without a model."""
    around = machine.around
    if around.on_event is None or not op.forced:
        return
    text = semantics.forced_generation(op, op.forced, around.engine.tokenizer).text
    op_id = semantics.runtime_id(op, environment)
    for sample in range(op.n if isinstance(op, SampleOp) else 1):
        machine.report(op_id, op.name, sample, text, environment[op.context])

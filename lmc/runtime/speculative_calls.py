"""Host calls that start before it is known whether their regions run (``lmc.ir.semantics.speculation``).

These calls are speculative, so they wait until all certain ones have been started, and never fail anything: the
call takes over what has begun for it when a run comes to it, or is made then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from lmc.ir.core import Block, Value
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.speculation import CondRegion, EarlyStart, Place, Round
from lmc.runtime.batch_context import BatchContext
from lmc.runtime.host_calls import HostRun, begin
from lmc.runtime.observed import observed_call
from lmc.runtime.prepared_body import Early, Stage
from lmc.runtime.scope import Scope

Key = tuple[HostCallOp, Round]
"""A call, and the rounds and elements around it."""
_Region = tuple[Block, Round]


class BegunCalls:
    """The early calls of one instance that the program has not reached yet."""

    def __init__(self) -> None:
        self._begun: dict[Key, tuple[HostRun, tuple[_Region, ...]]] = {}
        self._inside: dict[_Region, set[Key]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._begun

    def add(self, key: Key, run: HostRun, regions: tuple[_Region, ...]) -> None:
        """Keep ``run`` for its call, as long as all of ``regions``, the arms that the call is in, may still run."""
        self._begun[key] = (run, regions)
        for region in regions:
            self._inside.setdefault(region, set()).add(key)

    def take(self, key: Key) -> HostRun | None:
        """Return the early run of a call that the program has reached; None if there is none, or it waits for a thread.

        In that case it is withdrawn: a certain call does not wait for a thread behind speculative ones.
        """
        run = self._forget(key)
        return None if run is None or (run.in_thread and run.future.cancel()) else run

    def drop(self, key: Key) -> None:
        """Cancel a call that the program will not reach."""
        run = self._forget(key)
        if run is not None:
            run.cancel()

    def region_is_skipped(self, region: Block, rounds: Round) -> None:
        """The other arm of the conditional runs."""
        for key in [*self._inside.get((region, rounds), ())]:
            self.drop(key)

    def drop_all(self) -> None:
        """The run is over."""
        for key in [*self._begun]:
            self.drop(key)

    def _forget(self, key: Key) -> HostRun | None:
        if key not in self._begun:
            return None
        run, regions = self._begun.pop(key)
        for region in regions:
            self._inside[region].discard(key)
            if not self._inside[region]:
                del self._inside[region]
        return run


class EarlyCalls:
    """The early calls of a run of a stage of a body, from the regions of its ops.

    ``environment`` holds its values, ``rounds`` are the numbers of the rounds and elements around it. ``row`` is the
    number of the instance (None: all share it).
    """

    def __init__(
        self,
        early: Early,
        stage: Stage,
        begun: BegunCalls,
        around: BatchContext,
        *,
        environment: Mapping[Value, Any],
        rounds: Round,
        row: int | None,
    ) -> None:
        self._early = early
        self._row = row
        self._environment = environment
        self._rounds = rounds
        self._begun = begun
        self._around = around
        self._waits = dict(stage.early_waits)
        self._ready = deque(number for number, count in self._waits.items() if not count)
        self._keys: dict[int, list[Key]] = {}  # what has begun, by the op it is in
        self._ahead = set(self._early.of_holders)  # the ops with regions that have not been reached

    def reached(self, index: int) -> None:
        """The instruction at ``index`` starts: what is in its regions is up to those."""
        self._ahead.discard(index)

    def finished(self, index: int) -> None:
        """The instruction at ``index`` is finished; if it has regions, nothing in them is needed any more."""
        for number in self._early.dependents.get(index, ()):
            if number in self._waits:
                self._waits[number] -= 1
                if not self._waits[number]:
                    self._ready.append(number)
        self._drop(index)

    def abort_after(self, first: int) -> None:
        """Drop the calls from ``first`` on, which will not be reached."""
        for holder in self._early.of_holders:
            if holder >= first:
                self._ahead.discard(holder)
                self._drop(holder)

    def release(self) -> None:
        """Drop all calls: the body is over."""
        self.abort_after(0)

    def start_ready(self) -> None:
        """Begin the calls whose arguments are known, but for those whose way is known not to be taken."""
        while self._ready:
            start = self._early.starts[self._ready.popleft()]
            if start.holder in self._ahead and not self._is_ruled_out(start):
                # What goes wrong is an error of the call itself, where a run comes to it.
                with suppress(Exception):
                    self._start(start)

    def _start(self, start: EarlyStart) -> None:
        if not start.ahead.each:
            self._call(start, None, self._environment)
            return
        rows = zip(*(self._environment[value] for value in start.ahead.lists), strict=False)
        for number, row in enumerate(islice(rows, self._around.in_flight.limit)):
            values = zip(start.ahead.each, (number, *row), strict=True)
            self._call(start, number, Scope(self._environment, values))

    def _call(self, start: EarlyStart, number: int | None, environment: Mapping[Value, Any]) -> None:
        """Begin the call, of the element ``number`` of the map that it is in, if it is in one."""
        call = start.ahead.call
        key = (call, self._round(start.ahead.rounds, number))
        if key in self._begun:
            return
        positional, keyword = semantics.call_arguments(start.ahead.arguments, call.keywords, environment)
        observe = observed_call(self._around, call, self._row, early=True)
        host, pool = self._around.hosts[call.host], self._around.host_pool
        scope = self._around.scope_of(call, self._row or 0, key[1])
        run = begin(host, positional, keyword, pool, scope=scope, early=True, observe=observe)
        self._begun.add(key, run, tuple((arm.region, self._round(arm.rounds, number)) for arm in start.ahead.arms))
        self._keys.setdefault(start.holder, []).append(key)

    def _round(self, place: Place, number: int | None) -> Round:
        return (*self._rounds, *(number or 0 if step is None else step for step in place))

    def _is_ruled_out(self, start: EarlyStart) -> bool:
        return any(self._is_other_way(arm) for arm in start.ahead.arms)

    def _is_other_way(self, arm: CondRegion) -> bool:
        try:
            flag = self._environment[arm.cond.flag]
        except KeyError:
            return False
        return arm.region is not (arm.cond.then if flag else arm.cond.otherwise)

    def _drop(self, holder: int) -> None:
        for key in self._keys.pop(holder, ()):
            self._begun.drop(key)

"""The shared state of a batch's instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.ir.core import Effect
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.engine.hosts import CallJournal, CallScope, run_id
from lmc.ir.engine.observing import Observer
from lmc.ir.engine.protocol import Engine
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.runtime.events import OnEvent
from lmc.runtime.hints.lookahead import LookaheadHints
from lmc.runtime.hints.pinned_prefixes import PinBudget
from lmc.runtime.in_flight import InFlight
from lmc.runtime.prepared import PreparedPlan
from lmc.runtime.threads import DaemonPool


@dataclass(frozen=True)
class BatchContext:
    """The shared state of a batch's instances.

    ``run`` is its number, ``block`` the number of instances that are served kind by kind
    (``lmc.cache.batch_order.ranks``), ``priority`` and ``lane`` those of its requests. ``observer`` takes its requests
    and calls, ``journal`` records the calls of tools.
    """

    prepared: PreparedPlan
    engine: Engine
    hosts: Mapping[str, Callable[..., Any]]
    host_pool: DaemonPool
    in_flight: InFlight
    budget: PinBudget
    lookahead: LookaheadHints
    run_seed: int
    on_event: OnEvent | None
    request_timeout: float | None = None
    constraints: Constraints = semantics.NO_CONSTRAINTS
    run: int = 0
    block: int = 1
    priority: int = 0
    lane: int | None = None
    observer: Observer | None = None
    journal: CallJournal | None = None

    def scope_of(self, op: HostCallOp, row: int, rounds: tuple[int, ...]) -> CallScope:
        """The scope of the tools that a host call of a row calls, in these rounds and elements."""
        place = f"{op.id}{list(rounds)}" if rounds else op.id
        run = run_id(self.run) if self.journal is None else self.journal.run
        plain = op.host if op.effect is Effect.WRITES else None
        return CallScope(self.journal, run, row, place, op.location, plain=plain)

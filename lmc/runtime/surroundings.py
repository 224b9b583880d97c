"""What all instances of a batch have in common while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.ir import semantics
from lmc.ir.constraints import Constraints
from lmc.ir.engine import Engine
from lmc.runtime.calls_to_come import Outlook
from lmc.runtime.events import OnEvent
from lmc.runtime.in_flight import InFlight
from lmc.runtime.prefixes import PinBudget
from lmc.runtime.prepared import PreparedPlan
from lmc.runtime.threads import DaemonPool


@dataclass(frozen=True)
class Surroundings:
    """What all instances of a batch have in common while they run.

    ``run`` is its number, ``block`` how many instances are served kind by kind (``lmc.cache.ranks``), ``priority`` that
    of its requests.
    """

    prepared: PreparedPlan
    engine: Engine
    hosts: Mapping[str, Callable[..., Any]]
    host_pool: DaemonPool
    in_flight: InFlight
    budget: PinBudget
    outlook: Outlook
    run_seed: int
    on_event: OnEvent | None
    request_timeout: float | None = None
    constraints: Constraints = semantics.NO_CONSTRAINTS
    run: int = 0
    block: int = 1
    priority: int = 0

"""The passes by name. A new pass adds its import and its class here."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from dataclasses import dataclass

from lmc.passes.apply_profile.apply_profile import ApplyProfile
from lmc.passes.base import Pass
from lmc.passes.canonicalize.canonicalize import Canonicalize
from lmc.passes.compile_constraints.compile_constraints import CompileConstraints
from lmc.passes.cse import EliminateCommonSubexpressions
from lmc.passes.dce import EliminateDeadCode
from lmc.passes.distribute_loops.distribute_loops import DistributeLoops
from lmc.passes.hoist_prefixes.hoist_prefixes import HoistPrefixes
from lmc.passes.kv_liveness.kv_liveness import KvLiveness
from lmc.passes.order_sections import OrderSections
from lmc.passes.plan_fork_join.plan_fork_join import PlanForkJoin
from lmc.passes.start_reads_early import StartReadsEarly

PASSES: dict[str, type[Pass]] = {
    kind.NAME: kind
    for kind in (
        ApplyProfile,
        Canonicalize,
        CompileConstraints,
        EliminateCommonSubexpressions,
        EliminateDeadCode,
        DistributeLoops,
        HoistPrefixes,
        KvLiveness,
        OrderSections,
        PlanForkJoin,
        StartReadsEarly,
    )
}


@dataclass(frozen=True, slots=True)
class PassDescription:
    """A pass as a user sees it: name, one line about it, and its options as ``name=default``."""

    name: str
    summary: str
    options: tuple[str, ...]


def describe_passes() -> Iterator[PassDescription]:
    """Every pass, in the order of ``PASSES``; all of it derives from the classes."""
    for name, kind in PASSES.items():
        summary = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
        options = tuple(f"{field.name}={option_text(field.default)}" for field in dataclasses.fields(kind))
        yield PassDescription(name, summary, options)


def option_text(value: object) -> str:
    """An option's value as a pipeline writes it, such as ``none``, ``true`` or ``8``."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)

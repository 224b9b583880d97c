"""Modules as data for ``lmc.report``: lengths of prompts, names of files, the profile of a compilation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmc.backend.plan import Plan
from lmc.ir.core import Block, Op, walk
from lmc.ir.dialects.core_ops import PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.errors import Location
from lmc.ir.module import Module
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.types import CTX
from lmc.passes.analysis.context_lengths import ContextLengths
from lmc.passes.base import PassContext
from lmc.report.given import Given, Length, Step
from lmc.report.model import CompiledView
from lmc.report.view import view_of


def final_view(module: Module, plan: Plan, context: PassContext, *, target: str, level: str) -> CompiledView:
    """Return the view of a module after all passes, without those before, remarks and sources. Runs no pass."""
    steps = [Step("final", module)]
    return view_of(
        Given(
            steps,
            plan,
            prompt_lengths(module, context),
            files=shown_files(steps),
            measured=measured_ops(module, context.profile),
            target=target,
            level=level,
        )
    )


def prompt_lengths(module: Module, context: PassContext) -> dict[Op, tuple[Length, Length]]:
    """Return the lengths of the prompts of calls and prefills, and of the parts of them that are computed ahead."""
    lengths = ContextLengths(context)
    users: list[Op] = []

    def visit(block: Block) -> None:
        """Recursion is as deep as regions are nested."""
        for value in block.parameters:
            if value.type == CTX:
                lengths.start(value)
        for op in block.ops:
            for value in op.results:
                if value.type == CTX:
                    lengths.add(op, value)
            for region in op.regions:
                visit(region)
            if _is_call(op) or isinstance(op, PrefillOp):
                users.append(op)

    visit(module.main.body)
    found: dict[Op, tuple[Length, Length]] = {}
    for op in users:
        value = next(value for value in op.operands if value.type == CTX)
        whole, covered = lengths.whole(value), lengths.covered(value)
        found[op] = (whole.tokens, whole.unknown), (covered.tokens, covered.unknown)
    return found


def _is_call(op: Op) -> bool:
    return op.billable and not isinstance(op, RegionOp)


def measured_ops(module: Module, profile: Profile | None) -> dict[Op, OpProfile]:
    """Return the measurements that a profile has of the calls of a module.

    Profiles are by id. Of calls that share one, as they exclude each other, the first has the figures of all.
    """
    if profile is None:
        return {}
    found: dict[str, Op] = {}
    for op in walk([module.main.body]):
        if isinstance(op, SamplingOp | SelectOp) and op.id in profile.ops:
            found.setdefault(op.id, op)
    return {op: profile.ops[op_id] for op_id, op in found.items()}


def shown_files(steps: Sequence[Step], more: Sequence[Location | None] = ()) -> dict[str, str]:
    """Return the names to show of the files of locations."""
    ops = (op for step in steps for op in walk([step.module.main.body]))
    remarks = (remark for step in steps for remark in step.remarks)
    places = [*(op.location for op in ops), *(remark.location for remark in remarks), *more]
    return {place.file: shown_file(place.file) for place in dict.fromkeys(places) if place is not None}


def shown_file(file: str) -> str:
    """Return a file below the current folder by its path from there, else by its name: no absolute path is shown."""
    path = Path(file)
    if not path.is_absolute():
        return file
    folder = Path.cwd()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name

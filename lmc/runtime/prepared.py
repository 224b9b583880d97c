"""What the executor works out once per plan: who waits for whom, what all instances share, how long a prefix stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmc.backend.plan import Plan
from lmc.ir import semantics
from lmc.ir.core import Op, Value
from lmc.ir.ops import AssumeOp, PrefillOp, SamplingOp, SelectOp


@dataclass(frozen=True)
class Stage:
    """Some instructions of a plan, to be run together: ``waits[i]`` others of the stage come before instruction i."""

    instructions: tuple[int, ...]
    waits: dict[int, int]


@dataclass(frozen=True)
class PreparedPlan:
    """A plan with what every run of it needs. Make one with ``prepare``.

    ``shared`` are the instructions that give the same for every instance of a batch (literal contexts and the
    prefills of their prefixes), ``own`` all others; ``whole`` both. ``dependents[i]`` wait for instruction i. Of calls
    that wait for room in the engine, the one with the lowest of ``ranks`` is first: by wave, then group, then order.
    ``prefill_parents`` and ``prefill_users``: see ``lmc.runtime.prefixes``.
    """

    plan: Plan
    ops: tuple[Op, ...]
    shared: Stage
    own: Stage
    whole: Stage
    dependents: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...]
    prefill_of: dict[int, int]
    prefill_users: dict[int, int]
    prefill_ids: dict[int, str]


def prepare(plan: Plan) -> PreparedPlan:
    """Linear in the plan's size."""
    ops = tuple(instruction.op for instruction in plan.instructions)
    depends = [instruction.depends for instruction in plan.instructions]
    dependents: list[list[int]] = [[] for _ in ops]
    for index, needed in enumerate(depends):
        for before in needed:
            dependents[before].append(index)
    shared = _shared(ops)
    prefill_of = _enclosing_prefills(ops, shared)
    users: dict[int, int] = {}
    for prefill in prefill_of.values():
        users[prefill] = users.get(prefill, 0) + 1
    everything = range(len(ops))
    return PreparedPlan(
        plan=plan,
        ops=ops,
        shared=_stage([index for index in everything if index in shared], depends),
        own=_stage([index for index in everything if index not in shared], depends),
        whole=_stage(everything, depends),
        dependents=tuple(map(tuple, dependents)),
        ranks=_ranks(plan),
        prefill_of=prefill_of,
        prefill_users=users,
        prefill_ids=_prefill_ids(plan.name, ops),
    )


def _stage(instructions: Sequence[int], depends: Sequence[Sequence[int]]) -> Stage:
    members = set(instructions)
    waits = {index: sum(before in members for before in depends[index]) for index in instructions}
    return Stage(tuple(instructions), waits)


def _ranks(plan: Plan) -> tuple[int, ...]:
    """Places of the instructions in the order of waves, with the calls of a group side by side."""
    starts: dict[str, int] = {}
    keys: list[tuple[int, int, int]] = []
    for index, instruction in enumerate(plan.instructions):
        group = instruction.op.group if isinstance(instruction.op, SamplingOp | SelectOp) else None
        start = index if group is None else starts.setdefault(group, index)
        keys.append((instruction.wave, start, index))
    ranks = [0] * len(keys)
    for rank, (_, _, index) in enumerate(sorted(keys)):
        ranks[index] = rank
    return tuple(ranks)


def _shared(ops: Sequence[Op]) -> set[int]:
    """Instructions that use no input, no model and no host function, so that one result serves the whole batch."""
    constant: set[Value] = set()
    found: set[int] = set()
    for index, op in enumerate(ops):
        runs_alone = semantics.is_local(op) and not isinstance(op, AssumeOp)
        if isinstance(op, PrefillOp):
            runs_alone = op.scope == "batch"
        if runs_alone and all(value in constant for value in op.operands):
            found.add(index)
            constant.update(op.results)
    return found


def _enclosing_prefills(ops: Sequence[Op], shared: set[int]) -> dict[int, int]:
    """For each instruction that uses a pinned prefix of its instance, the innermost prefill that pinned one.

    Those are engine calls and prefills inside other prefills. Prefixes of the batch are left out: they stay to the end.
    """
    enclosing: dict[Value, int] = {}
    found: dict[int, int] = {}
    for index, op in enumerate(ops):
        inner = next((enclosing[value] for value in op.operands if value in enclosing), None)
        is_prefill = isinstance(op, PrefillOp) and index not in shared
        if inner is not None and (is_prefill or op.billable):
            found[index] = inner
        if is_prefill:
            inner = index
        if inner is not None:
            enclosing.update((value, inner) for value in op.results if value.type.name == "ctx")
    return found


def _prefill_ids(program: str, ops: Sequence[Op]) -> dict[int, str]:
    """Names for the profile: prefills have no stable id of their own."""
    indices = [index for index, op in enumerate(ops) if isinstance(op, PrefillOp)]
    return {index: f"{program}/prefill#{number}" for number, index in enumerate(indices)}

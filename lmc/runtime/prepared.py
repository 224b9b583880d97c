"""Facts computed once per plan: dependences, values shared by all instances, lifetimes of prefixes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from lmc.backend.plan import Body, Instruction, Plan
from lmc.ir.analysis.ordering import Objects, objects_of, uses
from lmc.ir.cached import cached_property
from lmc.ir.core import Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import AssumeOp, FreeOp, HostCallOp, KeepOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.speculation import EarlyStart, early_starts
from lmc.ir.types import holds_context
from lmc.runtime.hints.known_prefixes import Step as StepToCome
from lmc.runtime.hints.known_prefixes import steps_to_come
from lmc.runtime.prepared_body import Early, PreparedBody, Stage

_NOT_EARLY = Early((), {}, {})


@dataclass(frozen=True)
class PreparedPlan:
    """A plan with what every run of it needs. Make one with ``prepare``.

    ``stages`` says how many instructions ask the engine. ``shared`` are the instructions that give the same for every
    instance of a batch (literal contexts and the prefills of their prefixes), ``own`` all others.
    """

    plan: Plan
    main: PreparedBody
    stages: int
    shared: Stage
    own: Stage

    @cached_property
    def steps_to_come(self) -> tuple[StepToCome, ...]:
        """See ``lmc.runtime.hints.known_prefixes``."""
        return steps_to_come(self.main)


def prepare(plan: Plan) -> PreparedPlan:
    """Linear in the plan's size."""
    body = plan.body
    block = plan.module.main.body
    shared = _shared(block.ops)
    everything = range(len(block.ops))
    any_early = any(isinstance(op, HostCallOp) and op.early for op in walk((block,)))
    objects = objects_of(block.ops) if any_early else None
    stages = count()
    main = _prepare_body(body, plan.name, _Numbers(count(), stages), shared, objects)
    own = [index for index in everything if index not in shared]
    return PreparedPlan(
        plan=plan,
        main=main,
        stages=next(stages),
        shared=_stage([index for index in everything if index in shared], body.instructions, _NOT_EARLY),
        own=_stage(own, body.instructions, main.early),
    )


@dataclass(frozen=True)
class _Numbers:
    """The numbers of the plan's prefills, and of its stages, that are still free."""

    prefills: Iterator[int]
    stages: Iterator[int]


def _prepare_body(
    body: Body, program: str, numbers: _Numbers, shared: set[int], objects: Objects | None
) -> PreparedBody:
    """Recursion is as deep as regions are nested.

    ``objects`` are those of the program (``objects_of``), None where nothing starts early.
    """
    instructions = body.instructions
    ops = tuple(entry.op for entry in instructions)
    early = _NOT_EARLY if objects is None else _early(early_starts(ops, objects))
    ranks = _ranks(instructions)
    dependents: list[list[int]] = [[] for _ in ops]
    prefill_ids: dict[int, str] = {}
    stages: dict[int, int] = {}
    bodies: dict[int, tuple[PreparedBody, ...]] = {}
    for index, entry in enumerate(instructions):
        for before in entry.depends:
            dependents[before].append(index)
        if isinstance(entry.op, PrefillOp):  # it has no stable id of its own
            prefill_ids[index] = f"{program}/prefill#{next(numbers.prefills)}"
    for index in sorted(range(len(ops)), key=ranks.__getitem__):
        entry = instructions[index]
        if isinstance(entry.op, SamplingOp | SelectOp | PrefillOp):
            stages[index] = next(numbers.stages)
        if entry.bodies:
            bodies[index] = tuple(_prepare_body(inner, program, numbers, set(), objects) for inner in entry.bodies)
    prefills_of = _enclosing_prefills(ops, shared)
    users = Counter(prefill for prefills in prefills_of.values() for prefill in prefills)
    users.update(index for index in prefill_ids if index in shared)  # held by the batch
    return PreparedBody(
        parameters=body.parameters,
        ops=ops,
        whole=_stage(range(len(ops)), instructions, early),
        dependents=tuple(map(tuple, dependents)),
        ranks=ranks,
        stages=stages,
        bodies=bodies,
        prefills_of=prefills_of,
        prefill_users=dict(users),
        prefill_ids=prefill_ids,
        prefills={ops[index].results[0]: index for index in prefill_ids},
        keeps=_keeps(ops),
        kept_stages=_kept_stages(instructions, stages, bodies),
        early=early,
    )


def _early(starts: Sequence[EarlyStart]) -> Early:
    dependents: dict[int, list[int]] = {}
    of_holders: dict[int, list[int]] = {}
    for number, start in enumerate(starts):
        of_holders.setdefault(start.holder, []).append(number)
        for before in start.waits:
            dependents.setdefault(before, []).append(number)
    return Early(tuple(starts), dependents, of_holders)


def _stage(members: Sequence[int], instructions: Sequence[Instruction], early: Early) -> Stage:
    known = members if isinstance(members, range) else set(members)
    waits = {index: sum(before in known for before in instructions[index].depends) for index in members}
    early_waits = {number: sum(before in known for before in start.waits) for number, start in enumerate(early.starts)}
    return Stage(tuple(members), waits, early_waits)


def _ranks(instructions: Sequence[Instruction]) -> tuple[int, ...]:
    """Places of the instructions in the order of waves, with the calls of a group side by side."""
    starts: dict[str, int] = {}
    keys: list[tuple[int, int, int]] = []
    for index, instruction in enumerate(instructions):
        group = instruction.op.group if isinstance(instruction.op, SamplingOp | SelectOp) else None
        start = index if group is None else starts.setdefault(group, index)
        keys.append((instruction.wave, start, index))
    ranks = [0] * len(keys)
    for rank, (_, _, index) in enumerate(sorted(keys)):
        ranks[index] = rank
    return tuple(ranks)


def _keeps(ops: Sequence[Op]) -> dict[int, int]:
    """For the instructions whose context is kept from the beginning the one that says so."""
    givers = {value: index for index, op in enumerate(ops) for value in op.results}
    first = [index for index, op in enumerate(ops) if isinstance(op, KeepOp) and not op.after]
    return {givers[ops[index].operands[0]]: index for index in first if ops[index].operands[0] in givers}


def _kept_stages(
    instructions: Sequence[Instruction], stages: dict[int, int], bodies: dict[int, tuple[PreparedBody, ...]]
) -> dict[int, int]:
    """For each ``lm.keep`` the first stage of its wave; the last one there is where that lies behind the body."""
    first = dict(stages)
    for index, inner in bodies.items():
        found = [stage for each in inner for stage in _stages_in(each)]
        if found:
            first[index] = min(found)
    places = sorted((instructions[index].wave, stage) for index, stage in first.items())
    waves = [wave for wave, _ in places]
    kept: dict[int, int] = {}
    for index, entry in enumerate(instructions):
        if isinstance(entry.op, KeepOp):
            at = min(bisect_left(waves, entry.op.next_use), len(places) - 1)
            kept[index] = places[at][1] if places else 0
    return kept


def _stages_in(body: PreparedBody) -> Iterator[int]:
    yield from body.stages.values()
    for inner in body.bodies.values():
        for each in inner:
            yield from _stages_in(each)


def _shared(ops: Sequence[Op]) -> set[int]:
    """Instructions that use no input, model, host function or object, so that one result serves the whole batch."""
    constant: set[Value] = set()
    found: set[int] = set()
    for index, op in enumerate(ops):
        runs_alone = semantics.is_local(op) and op.effect is not Effect.LOCAL
        runs_alone = runs_alone and not isinstance(op, AssumeOp | KeepOp | FreeOp)
        if isinstance(op, PrefillOp):
            runs_alone = op.scope == "batch"
        if runs_alone and all(value in constant for value in op.operands):
            found.add(index)
            constant.update(op.results)
    return found


def _enclosing_prefills(ops: Sequence[Op], shared: set[int]) -> dict[int, tuple[int, ...]]:
    """For each instruction that uses prefixes pinned in its body, the innermost prefills that pinned them.

    Those are engine calls, prefills inside other prefills, and ops with regions, which use all prefixes that the ops
    inside do. Prefixes of the batch are left out: they stay to the end.

    What an op with regions gives counts as built on the last prefix that it uses: more than one is rarely of use, and
    to name all would make long plans slow.
    """
    enclosing: dict[Value, int] = {}
    found: dict[int, tuple[int, ...]] = {}
    for index, op in enumerate(ops):
        inner = tuple(dict.fromkeys(enclosing[value] for value in uses(op) if value in enclosing))
        is_prefill = isinstance(op, PrefillOp) and index not in shared
        if inner and (is_prefill or op.billable or isinstance(op, RegionOp)):
            found[index] = inner
        prefill = index if is_prefill else max(inner, default=None)
        if prefill is not None:
            enclosing.update((value, prefill) for value in op.results if holds_context(value.type))
    return found

"""The pass ``apply-profile``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from lmc.ir.core import Block, Op, walk
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp, TryOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.errors import InputError
from lmc.ir.ids import base_of, count_holes, each_round_id, matching
from lmc.ir.module import Module
from lmc.ir.profile import BranchProfile, OpProfile, Profile, RepeatProfile
from lmc.ir.rewriter import with_regions
from lmc.ir.wording import with_count
from lmc.passes.base import Pass, PassContext
from lmc.passes.rewriting import with_ops

_NUMBER = re.compile(r"[0-9]+")
_BRANCH = re.compile(r"(?<=/)(?:[0-9]+|\$)(?=/|$)")
_Counts = TypeVar("_Counts", bound=Any)


def measured(templates: Iterable[str], ops: Mapping[str, OpProfile]) -> tuple[dict[str, OpProfile], list[str]]:
    """Return the measurements of each op, by its id in the module, and the unmatched ids of runs.

    An id without holes is that of a run, one with holes matches those of all its runs; where several match a run (arms
    of a condition may share an id) each gets it. An op without a matching run gets those whose ids differ in numbers
    alone: other uses of its name, other branches of its fork.
    """
    exact: set[str] = set()
    by_shape: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    families: dict[str, str] = {}
    for template in dict.fromkeys(templates):
        families[template] = _family(template)
        if count_holes(template):
            shape = _shape(template.replace("*", "").replace("$", "0"))
            by_shape.setdefault(shape, []).append((template, matching(template)))
        else:
            exact.add(template)
    found: dict[str, OpProfile] = {}
    of_family: dict[str, OpProfile] = {}
    unknown: list[str] = []
    for op_id, entry in ops.items():
        owners = [op_id] if op_id in exact else []
        owners = owners or [one for one, pattern in by_shape.get(_shape(op_id), ()) if pattern.fullmatch(op_id)]
        for owner in owners:
            _add(found, owner, entry)
        _add(of_family, _family(op_id), entry)
        if not owners:
            unknown.append(op_id)
    for template, family in families.items():
        if template not in found and family in of_family:
            found[template] = of_family[family]
    asked = set(families.values())
    return found, [op_id for op_id in unknown if _family(op_id) not in asked]


class Places(Generic[_Counts]):
    """Counts at each place of a program. ``op_ids`` are those of a module.

    Rounds of a loop that are captured one by one are at one place, each with an id. If the module has all ids that the
    profile has there, each has its own counts; otherwise other arguments have led to another number of rounds, and all
    share the sum of the counts.
    """

    def __init__(self, counts: Mapping[str, _Counts], op_ids: Collection[str]) -> None:
        self.together: dict[str, _Counts] = {}
        self._counts = counts
        self._differ: set[str] = set()
        for op_id, entry in counts.items():
            _add(self.together, base_of(op_id), entry)
            if op_id not in op_ids:
                self._differ.add(base_of(op_id))

    def find(self, op_id: str) -> _Counts | None:
        """Return the counts of an op; None if there are none."""
        place = base_of(op_id)
        alone = None if place in self._differ else self._counts.get(op_id)
        return self.together.get(place) if alone is None else alone


def _shape(op_id: str) -> str:
    """The id with all numbers alike, so that few patterns have to be tried on each id."""
    return _NUMBER.sub("0", base_of(op_id))


def _family(op_id: str) -> str:
    """The id without the numbers of uses and of branches."""
    return _BRANCH.sub("0", base_of(op_id.replace("*", "")))


def _add(found: dict[str, _Counts], key: str, entry: _Counts) -> None:
    found[key] = found[key] + entry if key in found else entry


_DIGITS = 4
_MOST_NAMED = 3
_Region = TypeVar("_Region", CondOp, LoopOp)


@dataclass(frozen=True)
class ApplyProfile(Pass):
    """Write measurements of a profile into the module: lengths of outputs, branch probabilities, rounds of loops.

    ``expected_tokens`` of a generation becomes the mean length of its outputs, ``probability`` of a ``cf.cond`` the
    share of runs that took ``then``, ``expected_rounds`` of a ``cf.loop`` the mean number of rounds. A measurement
    replaces an earlier value; ops without measurements stay as they are.

    Sound because all three are hints: they change the order of work and speculation, never results. Ops and
    measurements match by stable ids, so a profile of an older version of the program applies where ids match; remarks
    list the rest. Where the profile has other rounds or calls at one place in the source than the module, because
    other arguments lead to another number of them, all of them get the sum of the measurements there. A profile of
    another program is an ``InputError``. Without a profile nothing happens.

    Before::

        %2, %a = lm.gen %1 {id = "f/a", max_tokens = 64} : !ctx, !text
        %3 = py.call eq (%a, "yes") : !bool
        %4 = cf.cond %3 {id = "f/@cf.cond"} : !ctx ^then() {
          ...

    After::

        %2, %a = lm.gen %1 {expected_tokens = 12, id = "f/a", max_tokens = 64} : !ctx, !text
        %3 = py.call eq (%a, "yes") : !bool
        %4 = cf.cond %3 {id = "f/@cf.cond", probability = 0.75} : !ctx ^then() {
          ...
    """

    NAME: ClassVar[str] = "apply-profile"

    def run(self, module: Module, context: PassContext) -> Module:
        profile = context.profile
        if profile is None:
            return module
        if profile.program != module.name:
            raise InputError(
                f"the profile is of the program {profile.program!r}, not of {module.name!r}",
                remedy="make one with a run of this program: lmc run PROGRAM.py --profile-generate FILE",
            )
        walk_over = _Walk(self, module, profile, context)
        body = walk_over.block(module.main.body)
        walk_over.remark_misfits()
        return module if body is module.main.body else module.with_main(body)


class _Walk:
    """Sets the hints of one function. Recursion is as deep as regions are nested."""

    def __init__(self, owner: ApplyProfile, module: Module, profile: Profile, context: PassContext) -> None:
        self._owner = owner
        self._context = context
        self._profile = profile
        self._asked: dict[str, Op] = {}  # what a run of the program counts; of ops that share an id the first
        for op in walk((module.main.body,)):
            if isinstance(op, RegionOp) and op.id is not None:
                self._asked[op.id] = op
            elif isinstance(op, SamplingOp | SelectOp) and op.billable:
                self._asked.setdefault(op.id, op)
        calls = [op_id for op_id, op in self._asked.items() if not isinstance(op, RegionOp)]
        self._measured, self._unknown = measured(calls, profile.ops)
        self._branches = Places(profile.branches, self._asked)
        self._repeats = Places(profile.repeats, self._asked)

    def block(self, block: Block) -> Block:
        """The block with what was measured."""
        return with_ops(block, [self._op(op) for op in block.ops])

    def remark_misfits(self) -> None:
        """Record the ids that are in the profile or in the program alone."""
        profile = self._profile
        places = {base_of(op_id) for op_id in self._asked}
        places.update(map(each_round_id, list(places)))
        # What is computed ahead of calls has ids of its own, and no calls.
        unknown = [op_id for op_id in self._unknown if profile.ops[op_id].usage.calls]
        unknown += [place for place in (*self._branches.together, *self._repeats.together) if place not in places]
        if unknown:
            message = f"the profile has {with_count(len(unknown), 'id')} that the program does not: {_listed(unknown)}"
            self._owner.missed(self._context, None, message)
        never = {op_id: op for op_id, op in self._asked.items() if not self._was_measured(op_id, op)}
        if never:
            of_all = f"{len(never)} of the {with_count(len(self._asked), 'id')} of the program"
            message = f"the profile says nothing of {of_all}: {_listed(list(never))}"
            self._owner.missed(self._context, next(iter(never.values())), message)

    def _op(self, op: Op) -> Op:
        if isinstance(op, RegionOp):
            op = with_regions(op, [self.block(region) for region in op.regions])
        if isinstance(op, CondOp):
            return self._cond(op)
        if isinstance(op, LoopOp):
            return self._loop(op)
        return self._generation(op) if isinstance(op, SamplingOp) else op

    def _generation(self, op: SamplingOp) -> SamplingOp:
        entry = self._measured.get(op.id, OpProfile())
        mean = entry.mean_length
        if mean is None or not op.billable:
            return op
        expected = min(int(mean + 0.5), op.max_tokens)
        because = f"{with_count(entry.outputs, 'output')}, the longest of {with_count(entry.longest, 'token')}"
        self._remark(op, "expected_tokens", expected, because)
        return op if op.expected_tokens == expected else dataclasses.replace(op, expected_tokens=expected)

    def _cond(self, op: CondOp) -> CondOp:
        entry = self._branch(op)
        if entry.probability is None:
            return op
        because = f"then {_times(entry.then)}, otherwise {_times(entry.otherwise)}"
        return self._with_hint(op, "probability", entry.probability, because)

    def _loop(self, op: LoopOp) -> LoopOp:
        entry = self._repeat(op)
        if entry.mean is None:
            return op
        because = f"{with_count(entry.runs, 'run')}, the longest of {with_count(entry.most, 'round')}"
        return self._with_hint(op, "expected_rounds", entry.mean, because)

    def _with_hint(self, op: _Region, name: str, measurement: float, because: str) -> _Region:
        value = round(measurement, _DIGITS)
        self._remark(op, name, value, because)
        return op if getattr(op, name) == value else dataclasses.replace(op, **{name: value})

    def _branch(self, op: RegionOp) -> BranchProfile:
        return self._branches.find(op.id or "") or BranchProfile()

    def _repeat(self, op: RegionOp) -> RepeatProfile:
        """Return the measurements of an op that repeats; for a loop that was split, those of either part."""
        op_id = op.id or ""
        return self._repeats.find(op_id) or self._repeats.find(each_round_id(op_id)) or RepeatProfile()

    def _was_measured(self, op_id: str, op: Op) -> bool:
        if not isinstance(op, RegionOp):
            return op_id in self._measured
        return (self._branch(op).probability if isinstance(op, CondOp | TryOp) else self._repeat(op).mean) is not None

    def _remark(self, op: CondOp | LoopOp | SamplingOp, name: str, new: object, because: str) -> None:
        old = getattr(op, name)
        if new != old:
            instead = "" if old is None else f", not {old}"
            self._owner.applied(self._context, op, f"{name} of {op.id!r} is {new}{instead} ({because})")


def _listed(op_ids: Sequence[str]) -> str:
    """A few ids, and how many there are besides."""
    shown = ", ".join(f"{op_id[:80]!r}" for op_id in sorted(op_ids)[:_MOST_NAMED])
    more = len(op_ids) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _times(count: int) -> str:
    return "never" if not count else "once" if count == 1 else f"{count} times"

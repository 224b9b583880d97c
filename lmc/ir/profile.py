"""What a run recorded, per stable op id: costs, lengths of outputs, ways taken. Read by later compilations and reports.

Everything here adds up exactly: the profile of two runs is the sum of theirs, in any order (seconds but for rounding).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from lmc.ir.cached import cached_property

_Key = TypeVar("_Key", int, str)
_EXACT_LENGTHS = 16
"""Lengths below this have a bin each; above, each doubling has eight, so a bin is at most an eighth of its length."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and engine calls. ``cached_tokens`` are the part of ``prompt_tokens`` that was not computed again."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in _USAGE_FIELDS))


_USAGE_FIELDS = tuple(entry.name for entry in fields(Usage))


@dataclass(frozen=True, slots=True)
class OpProfile:
    """Totals of one op over all instances and samples. ``seconds`` is wall-clock time from submit to result.

    ``longest`` is the most tokens that one output had, ``lengths`` how many outputs there were by ``length_bin``.
    """

    usage: Usage = Usage()
    seconds: float = 0.0
    longest: int = 0
    finish_reasons: tuple[tuple[str, int], ...] = ()
    lengths: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: OpProfile) -> OpProfile:
        return OpProfile(
            self.usage + other.usage,
            self.seconds + other.seconds,
            max(self.longest, other.longest),
            _added(self.finish_reasons, other.finish_reasons),
            _added(self.lengths, other.lengths),
        )

    @property
    def outputs(self) -> int:
        """How many texts were generated."""
        return sum(count for _, count in self.lengths)

    @property
    def mean_length(self) -> float | None:
        """Tokens of an output on average; None where there is none."""
        return self.usage.generated_tokens / self.outputs if self.lengths else None

    def length_quantile(self, share: float) -> int | None:
        """The bin of the length that ``share`` of the outputs, between 0 and 1, do not exceed; None without outputs."""
        needed = share * self.outputs
        for start, count in self.lengths:
            needed -= count
            if needed <= 0:
                return start
        return self.lengths[-1][0] if self.lengths else None


@dataclass(frozen=True, slots=True)
class BranchProfile:
    """How often each way of a condition was taken; of a ``cf.try``, how often its body came to its end, or raised."""

    then: int = 0
    otherwise: int = 0

    def __add__(self, other: BranchProfile) -> BranchProfile:
        return BranchProfile(self.then + other.then, self.otherwise + other.otherwise)

    @property
    def probability(self) -> float | None:
        """The share of ``then``; None where neither was taken."""
        total = self.then + self.otherwise
        return self.then / total if total else None


@dataclass(frozen=True, slots=True)
class RepeatProfile:
    """How often a loop, a map or a race ran; ``rounds`` are those begun in all, or elements; ``most`` those of one."""

    runs: int = 0
    rounds: int = 0
    most: int = 0

    def __add__(self, other: RepeatProfile) -> RepeatProfile:
        return RepeatProfile(self.runs + other.runs, self.rounds + other.rounds, max(self.most, other.most))

    @property
    def mean(self) -> float | None:
        """Rounds or elements of a run on average; None where there is none."""
        return self.rounds / self.runs if self.runs else None


@dataclass(frozen=True)
class Profile:
    """A program's record: what each op cost, by its id in the run, and what each op with regions did, by its id.

    ``branches`` are the ``cf.cond`` and ``cf.try``, ``repeats`` the ``cf.loop``, ``cf.map`` and ``cf.race``. What asks
    no model may run, and is counted then, before it is clear that a program ends in front of it.
    """

    program: str
    ops: Mapping[str, OpProfile] = field(default_factory=dict[str, OpProfile])
    branches: Mapping[str, BranchProfile] = field(default_factory=dict[str, BranchProfile])
    repeats: Mapping[str, RepeatProfile] = field(default_factory=dict[str, RepeatProfile])

    @property
    def usage(self) -> Usage:
        """The sum over all ops."""
        return sum((entry.usage for entry in self.ops.values()), Usage())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def merge(cls, program: str, profiles: Iterable[Profile]) -> Profile:
        """The profile of all runs together."""
        recording = Recording()
        for profile in profiles:
            recording.add(profile)
        return recording.profile(program)

    def to_json(self) -> str:
        """Versioned JSON, ids sorted: the same text for equal profiles."""
        from lmc.ir.profile_json import dump_profile  # the format is written over these classes

        return dump_profile(self)

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read what ``to_json`` wrote. Raises ``InputError`` for anything else."""
        from lmc.ir.profile_json import load_profile

        return load_profile(text)


class Recording:
    """A profile that is being made. Not for several threads at the same time."""

    def __init__(self) -> None:
        self._ops: dict[str, OpProfile] = {}
        self._branches: dict[str, list[int]] = {}
        self._repeats: dict[str, list[int]] = {}

    def op(self, op_id: str, entry: OpProfile) -> None:
        """Count what an op cost, and what it gave."""
        known = self._ops.get(op_id)
        self._ops[op_id] = entry if known is None else known + entry

    def branch(self, op_id: str | None, *, then: bool) -> None:
        """Count which way a condition took. What has no id is not counted."""
        if op_id is not None:
            self._branches.setdefault(op_id, [0, 0])[0 if then else 1] += 1

    def repeat(self, op_id: str | None, elements: int = 0) -> None:
        """Count that a loop began, or a map or a race of so many elements."""
        if op_id is not None:
            self._add_repeat(op_id, 1, elements, elements)

    def round(self, op_id: str | None, number: int) -> None:
        """Count that a round of a loop began: the first of a run has the number 1."""
        if op_id is not None:
            self._add_repeat(op_id, 0, 1, number)

    def add(self, other: Profile | Recording) -> None:
        """Count all that ``other`` has."""
        found = other if isinstance(other, Profile) else other.profile("")
        for op_id, entry in found.ops.items():
            self.op(op_id, entry)
        for op_id, branch in found.branches.items():
            counts = self._branches.setdefault(op_id, [0, 0])
            counts[0] += branch.then
            counts[1] += branch.otherwise
        for op_id, repeat in found.repeats.items():
            self._add_repeat(op_id, repeat.runs, repeat.rounds, repeat.most)

    def profile(self, program: str) -> Profile:
        """What was recorded so far."""
        branches = {op_id: BranchProfile(*counts) for op_id, counts in self._branches.items()}
        repeats = {op_id: RepeatProfile(*counts) for op_id, counts in self._repeats.items()}
        return Profile(program, dict(self._ops), branches, repeats)

    def _add_repeat(self, op_id: str, runs: int, rounds: int, most: int) -> None:
        counts = self._repeats.setdefault(op_id, [0, 0, 0])
        counts[0] += runs
        counts[1] += rounds
        counts[2] = max(counts[2], most)


def length_bin(length: int) -> int:
    """The least length that is counted together with ``length``."""
    if length < _EXACT_LENGTHS:
        return length
    shift = length.bit_length() - _EXACT_LENGTHS.bit_length() + 1
    return (length >> shift) << shift


def length_bins(lengths: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """How many outputs there are in each bin, shortest first."""
    counts: dict[int, int] = {}
    for length in lengths:
        counts[length_bin(length)] = counts.get(length_bin(length), 0) + 1
    return tuple(sorted(counts.items()))


def _added(counts: tuple[tuple[_Key, int], ...], more: tuple[tuple[_Key, int], ...]) -> tuple[tuple[_Key, int], ...]:
    found = dict(counts)
    for key, count in more:
        found[key] = found.get(key, 0) + count
    return tuple(sorted(found.items()))

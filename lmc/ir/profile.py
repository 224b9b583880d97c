"""The profile of a run, by stable op id: costs, output lengths, branches. Read by later compilations and reports.

Everything here adds up exactly: the profile of two runs is the sum of theirs, in any order (seconds but for rounding).
A profile is stored as versioned JSON; its readers trust nothing in it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any, TypeVar

from lmc.ir.cached import cached_property
from lmc.ir.errors import InputError
from lmc.ir.usage import Usage

VERSION = 5
MAX_CHARACTERS = 64 * 2**20
_MOST = 2**63
_PARTS = ("ops", "branches", "repeats")
_Key = TypeVar("_Key", int, str)
_Entry = TypeVar("_Entry")
_EXACT_LENGTHS = 16
"""Lengths below this have a bin each; above, each doubling has eight, so a bin is at most an eighth of its length."""


@dataclass(frozen=True, slots=True)
class FallbackProfile:
    """Cost of a fallback, and the number of requests that it answered."""

    usage: Usage = field(default_factory=Usage)
    answers: int = 0

    def __add__(self, other: FallbackProfile) -> FallbackProfile:
        return FallbackProfile(self.usage + other.usage, self.answers + other.answers)


@dataclass(frozen=True, slots=True)
class OpProfile:
    """Totals of one op over all instances and samples. ``seconds`` is wall-clock time from submit to result.

    ``longest`` is the most tokens that one output had, ``lengths`` how many outputs there were by ``length_bin``.
    ``fallbacks`` of the target, by name, have a part of ``usage``. Where its tokenizer is not known, ``sent_bytes`` are
    the bytes and marks of turns of the contexts that calls continued, and ``sent_tokens`` those counted for them.
    """

    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    longest: int = 0
    finish_reasons: tuple[tuple[str, int], ...] = ()
    lengths: tuple[tuple[int, int], ...] = ()
    fallbacks: tuple[tuple[str, FallbackProfile], ...] = ()
    sent_bytes: int = 0
    sent_tokens: int = 0

    def __add__(self, other: OpProfile) -> OpProfile:
        return OpProfile(
            self.usage + other.usage,
            self.seconds + other.seconds,
            max(self.longest, other.longest),
            _added(self.finish_reasons, other.finish_reasons),
            _added(self.lengths, other.lengths),
            _added(self.fallbacks, other.fallbacks),
            self.sent_bytes + other.sent_bytes,
            self.sent_tokens + other.sent_tokens,
        )

    @property
    def outputs(self) -> int:
        """The number of generated texts."""
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


_Count = TypeVar("_Count", int, FallbackProfile)
_OP_FIELDS = tuple(entry.name for entry in fields(OpProfile))


@dataclass(frozen=True, slots=True)
class BranchProfile:
    """Counts of the arms taken by a condition; of a ``cf.try``, how often its body completed, or raised."""

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
    """Runs of a loop, a map or a race; ``rounds`` are those begun in all, or elements; ``most`` those of one.

    ``by_number`` counts the rounds of a loop by their numbers, in the bins of ``length_bin``. The first round of each
    run has the number 1.
    """

    runs: int = 0
    rounds: int = 0
    most: int = 0
    by_number: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: RepeatProfile) -> RepeatProfile:
        return RepeatProfile(
            self.runs + other.runs,
            self.rounds + other.rounds,
            max(self.most, other.most),
            _added(self.by_number, other.by_number),
        )

    @property
    def mean(self) -> float | None:
        """Rounds or elements of a run on average; None where there is none."""
        return self.rounds / self.runs if self.runs else None

    def reached(self, number: int) -> float | None:
        """The share of the runs of a loop that come to a round, the first being 1; None where not all were counted."""
        if not self.runs or sum(count for _, count in self.by_number) < self.rounds:
            return None
        start = length_bin(number)
        return min(1.0, dict(self.by_number).get(start, 0) / _bin_width(start) / self.runs)


_REPEAT_FIELDS = tuple(entry.name for entry in fields(RepeatProfile))


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

    @property
    def fallbacks(self) -> Mapping[str, FallbackProfile]:
        """The parts of the fallbacks in ``usage``, by name; empty where the target answered all requests."""
        total: tuple[tuple[str, FallbackProfile], ...] = ()
        for entry in self.ops.values():
            if entry.fallbacks:
                total = _added(total, entry.fallbacks)
        return dict(total)

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
        parts = {name: {key: asdict(entry) for key, entry in sorted(getattr(self, name).items())} for name in _PARTS}
        return json.dumps({"version": VERSION, "program": self.program, **parts}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read what ``to_json`` wrote. Raises ``InputError`` for anything else."""
        if len(text) > MAX_CHARACTERS:
            raise InputError(f"a profile of {len(text)} characters is too large", remedy=f"at most {MAX_CHARACTERS}")
        try:
            data = json.loads(text)
            version = _object(data, "a profile")["version"]
            if version != VERSION:
                raise InputError(f"profile version {version!r:.40}, this lmc reads {VERSION}", remedy="run again")
            _, program, ops, branches, repeats = _fields(data, ("version", "program", *_PARTS), "a profile")
            return cls(
                _text(program),
                _entries(ops, _op_profile),
                _entries(branches, _branch_profile),
                _entries(repeats, _repeat_profile),
            )
        except (ValueError, KeyError, RecursionError) as error:
            raise InputError(f"not a profile: {error}", remedy="name a file that holds a saved Profile") from error


class Recording:
    """A profile that is being made. Not for several threads at the same time."""

    def __init__(self) -> None:
        self._ops: dict[str, OpProfile] = {}
        self._branches: dict[str, list[int]] = {}
        self._repeats: dict[str, list[int]] = {}
        self._by_number: dict[str, Counter[int]] = {}

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
            self._by_number.setdefault(op_id, Counter())[length_bin(number)] += 1

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
            if repeat.by_number:
                self._by_number.setdefault(op_id, Counter()).update(dict(repeat.by_number))

    def profile(self, program: str) -> Profile:
        """Return the profile recorded so far."""
        branches = {op_id: BranchProfile(*counts) for op_id, counts in self._branches.items()}
        repeats = {
            op_id: RepeatProfile(runs, rounds, most, tuple(sorted(self._by_number.get(op_id, {}).items())))
            for op_id, (runs, rounds, most) in self._repeats.items()
        }
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
    shift = _shift(length)
    return (length >> shift) << shift


def _shift(length: int) -> int:
    return max(0, length.bit_length() - _EXACT_LENGTHS.bit_length() + 1)


def _bin_width(start: int) -> int:
    """The number of lengths in a bin."""
    return 1 << _shift(start)


def length_bins(lengths: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Count the outputs in each bin, shortest first."""
    counts: dict[int, int] = {}
    for length in lengths:
        counts[length_bin(length)] = counts.get(length_bin(length), 0) + 1
    return tuple(sorted(counts.items()))


def _added(
    counts: tuple[tuple[_Key, _Count], ...], more: tuple[tuple[_Key, _Count], ...]
) -> tuple[tuple[_Key, _Count], ...]:
    if not more:
        return counts
    found = dict(counts)
    for key, count in more:
        found[key] = found[key] + count if key in found else count
    return tuple(sorted(found.items(), key=lambda entry: entry[0]))


def _entries(data: Any, read: Callable[[Any], _Entry]) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    for key, entry in _object(data, "entries by id").items():
        try:
            found[key] = read(entry)
        except ValueError as error:
            raise ValueError(f"{key!r:.200}: {error}") from error
    return found


def _op_profile(data: Any) -> OpProfile:
    usage, seconds, longest, reasons, lengths, fallbacks, sent_bytes, sent_tokens = _fields(data, _OP_FIELDS, "an op")
    bins = _bins(lengths)
    found = OpProfile(
        Usage(*_totals(usage, Usage)),
        _seconds(seconds),
        _count(longest),
        _counts(reasons, _text),
        bins,
        _fallbacks(fallbacks),
        _count(sent_bytes),
        _count(sent_tokens),
    )
    if length_bin(found.longest) != (bins[-1][0] if bins else 0):
        raise ValueError(f"no output is counted that is as long as the longest, of {found.longest} tokens")
    if not sum(start * count for start, count in bins) <= found.usage.generated_tokens <= found.outputs * found.longest:
        raise ValueError(f"{found.outputs} outputs of such lengths can't have {found.usage.generated_tokens} tokens")
    return found


def _fallbacks(data: Any) -> tuple[tuple[str, FallbackProfile], ...]:
    found: list[tuple[str, FallbackProfile]] = []
    for name, entry in _pairs(data):
        usage, answers = _fields(entry, ("usage", "answers"), "a fallback")
        found.append((_text(name), FallbackProfile(Usage(*_totals(usage, Usage)), _count(answers))))
    _check_ascending([name for name, _ in found])
    return tuple(found)


def _branch_profile(data: Any) -> BranchProfile:
    return BranchProfile(*_totals(data, BranchProfile))


def _repeat_profile(data: Any) -> RepeatProfile:
    runs, rounds, most, by_number = _fields(data, _REPEAT_FIELDS, "counts")
    found = RepeatProfile(_count(runs), _count(rounds), _count(most), _bins(by_number))
    if not found.most <= found.rounds <= found.runs * found.most:
        raise ValueError(f"{found.runs} runs of at most {found.most} rounds can't have {found.rounds}")
    in_bins = all(1 <= start <= most and count <= runs * _bin_width(start) for start, count in found.by_number)
    if not in_bins or sum(count for _, count in found.by_number) > rounds:
        raise ValueError(f"{runs} runs of at most {most} rounds can't have such rounds by number")
    return found


def _totals(data: Any, kind: type[Any]) -> list[int]:
    """The fields of a class of counts."""
    return list(map(_count, _fields(data, [entry.name for entry in fields(kind)], "counts")))


def _counts(data: Any, key_of: Callable[[Any], _Entry]) -> tuple[tuple[_Entry, int], ...]:
    """Pairs of a key and how often it was counted, with ascending keys."""
    found = tuple((key_of(key), _count(count)) for key, count in _pairs(data))
    _check_ascending([key for key, _ in found])
    if not all(count for _, count in found):
        raise ValueError("what was counted is not in order, once each")
    return found


def _bins(data: Any) -> tuple[tuple[int, int], ...]:
    found = _counts(data, _count)
    if any(length_bin(start) != start for start, _ in found):
        raise ValueError("lengths and numbers are counted by bins")
    return found


def _pairs(data: Any) -> list[list[Any]]:
    if not isinstance(data, list) or not all(isinstance(row, list) and len(row) == 2 for row in data):
        raise ValueError("a list of pairs is needed")
    return data


def _check_ascending(keys: Sequence[Any]) -> None:
    if any(not one < other for one, other in pairwise(keys)):
        raise ValueError("what was counted is not in order, once each")


def _fields(data: Any, names: Sequence[str], what: str) -> list[Any]:
    if set(_object(data, what)) != set(names):
        raise ValueError(f"{what} has exactly the fields {', '.join(names)}")
    return [data[name] for name in names]


def _object(data: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{what} is an object")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise ValueError("text is needed")
    return data


def _count(data: Any) -> int:
    if type(data) is not int or not 0 <= data < _MOST:
        raise ValueError(f"a count is a whole number from 0 on, not {data!r:.40}")
    return data


def _seconds(data: Any) -> float:
    if type(data) not in (int, float) or not 0 <= data < _MOST or not math.isfinite(data):
        raise ValueError(f"seconds are a finite number from 0 on, not {data!r:.40}")
    return float(data)

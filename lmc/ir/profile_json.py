"""Profiles as versioned JSON. Whoever reads one trusts nothing in it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any, TypeVar

from lmc.ir.errors import InputError
from lmc.ir.profile import BranchProfile, OpProfile, Profile, RepeatProfile, Usage, length_bin

VERSION = 2
MAX_CHARACTERS = 64 * 2**20
_MOST = 2**63
_Entry = TypeVar("_Entry")
_PARTS = ("ops", "branches", "repeats")


def dump_profile(profile: Profile) -> str:
    """Ids sorted, one field to a line: the same text for equal profiles."""
    parts = {name: {key: asdict(entry) for key, entry in sorted(getattr(profile, name).items())} for name in _PARTS}
    return json.dumps({"version": VERSION, "program": profile.program, **parts}, indent=1) + "\n"


def load_profile(text: str) -> Profile:
    """Read what ``dump_profile`` wrote. Raises ``InputError`` for anything else."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"a profile of {len(text)} characters is too large", remedy=f"at most {MAX_CHARACTERS}")
    try:
        data = json.loads(text)
        version = _object(data, "a profile")["version"]
        if version != VERSION:
            raise InputError(f"profile version {version!r:.40}, this lmc reads {VERSION}", remedy="run again")
        _, program, ops, branches, repeats = _fields(data, ("version", "program", *_PARTS), "a profile")
        return Profile(
            _text(program),
            _entries(ops, _op_profile),
            _entries(branches, _branch_profile),
            _entries(repeats, _repeat_profile),
        )
    except (ValueError, KeyError, RecursionError) as error:
        raise InputError(f"not a profile: {error}", remedy="name a file that holds a saved Profile") from error


def _entries(data: Any, read: Callable[[Any], _Entry]) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    for key, entry in _object(data, "entries by id").items():
        try:
            found[key] = read(entry)
        except ValueError as error:
            raise ValueError(f"{key!r:.200}: {error}") from error
    return found


def _op_profile(data: Any) -> OpProfile:
    usage, seconds, longest, reasons, lengths = _fields(data, [entry.name for entry in fields(OpProfile)], "an op")
    bins = _counts(lengths, _count)
    if any(length_bin(start) != start for start, _ in bins):
        raise ValueError("lengths are not counted by bins")
    found = OpProfile(Usage(*_totals(usage, Usage)), _seconds(seconds), _count(longest), _counts(reasons, _text), bins)
    if length_bin(found.longest) != (bins[-1][0] if bins else 0):
        raise ValueError(f"no output is counted that is as long as the longest, of {found.longest} tokens")
    if not sum(start * count for start, count in bins) <= found.usage.generated_tokens <= found.outputs * found.longest:
        raise ValueError(f"{found.outputs} outputs of such lengths can't have {found.usage.generated_tokens} tokens")
    return found


def _branch_profile(data: Any) -> BranchProfile:
    return BranchProfile(*_totals(data, BranchProfile))


def _repeat_profile(data: Any) -> RepeatProfile:
    found = RepeatProfile(*_totals(data, RepeatProfile))
    if not found.most <= found.rounds <= found.runs * found.most:
        raise ValueError(f"{found.runs} runs of at most {found.most} rounds can't have {found.rounds}")
    return found


def _totals(data: Any, kind: type[Any]) -> list[int]:
    """The fields of a class of counts."""
    return list(map(_count, _fields(data, [entry.name for entry in fields(kind)], "counts")))


def _counts(data: Any, key_of: Callable[[Any], _Entry]) -> tuple[tuple[_Entry, int], ...]:
    """Pairs of a key and how often it was counted, with ascending keys."""
    if not isinstance(data, list) or not all(isinstance(row, list) and len(row) == 2 for row in data):
        raise ValueError("a list of pairs is needed")
    found = tuple((key_of(key), _count(count)) for key, count in data)
    keys: Sequence[Any] = [key for key, _ in found]
    if any(not one < other for one, other in pairwise(keys)) or not all(count for _, count in found):
        raise ValueError("what was counted is not in order, once each")
    return found


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

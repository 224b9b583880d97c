"""What a run recorded, per stable op id: versioned JSON, read by later compilations and by reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lmc.ir.errors import InputError

VERSION = 1
_MAX_BYTES = 64 * 2**20


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
    """Totals of one op over all instances and samples. ``seconds`` is wall-clock time from submit to result."""

    usage: Usage = Usage()
    seconds: float = 0.0
    longest: int = 0
    finish_reasons: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: OpProfile) -> OpProfile:
        reasons = dict(self.finish_reasons)
        for reason, count in other.finish_reasons:
            reasons[reason] = reasons.get(reason, 0) + count
        return OpProfile(
            self.usage + other.usage,
            self.seconds + other.seconds,
            max(self.longest, other.longest),
            tuple(sorted(reasons.items())),
        )


@dataclass(frozen=True)
class Profile:
    """A program's record: what each op (by id) cost."""

    program: str
    ops: Mapping[str, OpProfile] = field(default_factory=dict)

    @property
    def usage(self) -> Usage:
        """The sum over all ops."""
        return sum((entry.usage for entry in self.ops.values()), Usage())

    @classmethod
    def merge(cls, program: str, profiles: Iterable[Profile]) -> Profile:
        """The profile of all runs together."""
        ops: dict[str, OpProfile] = {}
        for profile in profiles:
            for op_id, entry in profile.ops.items():
                ops[op_id] = ops[op_id] + entry if op_id in ops else entry
        return cls(program, ops)

    def to_json(self) -> str:
        """Versioned JSON, ops sorted by id."""
        ops = {op_id: asdict(self.ops[op_id]) for op_id in sorted(self.ops)}
        return (
            json.dumps({"version": VERSION, "program": self.program, "ops": ops}, indent=1, ensure_ascii=False) + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read what ``to_json`` wrote. Raises ``InputError`` for anything else."""
        if len(text) > _MAX_BYTES:
            raise InputError(f"a profile of {len(text)} characters is too large", remedy=f"at most {_MAX_BYTES}")
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise InputError(f"profile version {data['version']!r}, this lmc reads {VERSION}", remedy="run again")
            return cls(str(data["program"]), {str(key): _op_profile(entry) for key, entry in data["ops"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"not a profile: {error}", remedy="name a file that holds a saved Profile") from error


def _op_profile(data: Mapping[str, Any]) -> OpProfile:
    usage = Usage(**{name: int(data["usage"][name]) for name in _USAGE_FIELDS})
    reasons = tuple(sorted((str(reason), int(count)) for reason, count in data["finish_reasons"]))
    return OpProfile(usage, float(data["seconds"]), int(data["longest"]), reasons)

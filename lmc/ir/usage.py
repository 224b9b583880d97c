"""Tokens and calls that a request, an op or a run cost."""

from __future__ import annotations

from dataclasses import dataclass, fields


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

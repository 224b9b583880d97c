"""Tokens, calls and times that a request, an op or a run cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Obstacle = Literal["batch", "memory", "budget"]
"""The reason for which an engine lets a request wait: the most sequences run; there are no pages for it; the prompt
tokens of the step are those of others."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and engine calls; those of failed attempts count too.

    ``cached_tokens`` are the part of ``prompt_tokens`` that was not computed again, ``cache_written_tokens`` the part
    that a provider put into its cache at a price. ``reasoning_tokens`` are the part of ``generated_tokens`` that is
    hidden reasoning. Each is a part of its whole, whatever a provider's own counting is.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    calls: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in _USAGE_FIELDS))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) - getattr(other, name) for name in _USAGE_FIELDS))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a request, and its cost.

    ``fallback`` is the name of the fallback it was sent to; None: the target itself. Where its answer did not come, or
    not whole (``is_whole``), it may have cost more. Attempts that can't have arrived are none.
    """

    usage: Usage
    is_whole: bool = True
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of a request in its engine, in seconds of ``time.perf_counter``.

    ``admitted``: its computation starts; ``first_token``: the first token is drawn; None: that did not happen.
    ``computed_tokens`` are the tokens that were computed for it and not generated, as ``EngineStatistics`` counts
    ``prefilled_tokens``: those that a preemption made the engine compute again count again. ``cached_tokens`` of its
    prompt were in the cache when it was admitted. ``obstacle`` held it up in the last step before it was admitted;
    None: it did not wait for a step.
    """

    admitted: float | None
    first_token: float | None
    computed_tokens: int
    cached_tokens: int
    obstacle: Obstacle | None


_USAGE_FIELDS = tuple(entry.name for entry in fields(Usage))

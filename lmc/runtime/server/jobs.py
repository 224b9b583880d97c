"""Jobs: what a request asks of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import Generation, Place, SamplingParams, TokenDelta, derive_seed
from lmc.ir.usage import Usage

_SEEDS = 1 << 64
MOST_PRIORITY = 100
"""The highest that a client can ask for; its negative is the lowest."""
UNLIMITED = 256
"""Tokens for which a batch plans where a request has no limit: as many as a generation has without one."""


Seen = dict[tuple[int, int], Usage | Generation]
"""Generations, or the cost of those that have not ended, by the places of their job and their seed."""


@dataclass(frozen=True, slots=True)
class ClientLane:
    """Whose job it is, as a number, and the priority of the request; ``place`` is that of a line in its batch.

    ``is_large``: the body is so large that its prompts take long to make. ``seen`` is for the log of a
    request that ends before its answer does.
    """

    number: int
    priority: int = 0
    place: Place | None = None
    is_large: bool = False
    seen: Seen = field(default_factory=Seen, compare=False)


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """Generations from one prompt (token ids), one for each of ``seeds``. ``parameter`` is the one with the prompt."""

    prompt: tuple[int, ...]
    sampling: SamplingParams
    seeds: tuple[int, ...]
    lane: ClientLane
    constraint: TokenConstraint | None
    parameter: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer of a request as JSON data, and the generations behind it."""

    content: dict[str, Any]
    found: Sequence[Generation]


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """The tokens of a prompt from place ``start`` on (at least 1), to be scored after those before it."""

    tokens: tuple[int, ...]
    start: int

    @property
    def prompt(self) -> tuple[int, ...]:
        """The tokens before the place."""
        return self.tokens[: self.start]

    @property
    def rest(self) -> tuple[int, ...]:
        """The scored tokens."""
        return self.tokens[self.start :]


@dataclass(frozen=True, slots=True)
class Event:
    """Something new of generation ``choice`` of a job: text and tokens of it, or its end."""

    choice: int
    content: TokenDelta | Generation


def seeds_of(seed: int, count: int) -> tuple[int, ...]:
    """Return the keys of ``count`` generations of a request with this seed; the first is the seed itself."""
    return (seed % _SEEDS, *(derive_seed(seed, 0, "", sample=number) for number in range(1, count)))

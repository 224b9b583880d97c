"""The requests of a row before it runs, with ranges of runs and of tokens, and the graph breaks beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lmc.cost.caching import Ways
from lmc.cost.ranges import CostRange
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.errors import Location

Basis = Literal["recorded", "profile", "plan", "guess"]
"""The source of the expected length of an output: its record, a profile, the plan's own hint, or its limit alone."""
_NO_TOKENS = CostRange[int].exactly(0)


@dataclass(frozen=True, slots=True)
class EstimatedRequest:
    """A request that a row makes.

    Attributes:
        op_id: the id in the run.
        number: that of the sample, or of the score.
        runs: how often it is made: once, perhaps, or for each of an unknown number of elements or rounds.
        prompt: token ids; negative ones are ``PromptSpan`` of the tokenizer's ``texts``.
        tokens: those of the prompt.
        output: tokens that are generated, reasoning included; 0 for a score.
        reasoning: the part of them that is reasoning.
        after: the places of the requests that it waits for, among those of the row; -1, -2 … are its prefixes.
        answer: token ids that its output leaves in its context.
        mean: the tokens that are expected of the output by a profile, before they are rounded.
        ways: the uncertain ways on which it is made.
        is_endless: it stands for any number of rounds, one after the other.
    """

    op: SamplingOp | SelectOp
    op_id: str
    number: int
    runs: CostRange[float]
    prompt: tuple[int, ...] = field(repr=False)
    tokens: CostRange[int]
    output: CostRange[int]
    basis: Basis
    reasoning: CostRange[int] = _NO_TOKENS
    after: tuple[int, ...] = ()
    answer: tuple[int, ...] = field(default=(), repr=False)
    mean: float | None = None
    ways: Ways = frozenset()
    is_endless: bool = False

    @property
    def mean_output(self) -> CostRange[float]:
        """Its output as a part of sums: lengths are rounded for a single output alone."""
        least, expected, most = self.output.least, self.output.expected, self.output.most
        if self.mean is not None:
            expected = max(self.mean, least) if most is None else min(max(self.mean, least), most)
        return CostRange(float(least), float(expected), None if most is None else float(most))

    @property
    def location(self) -> Location | None:
        """The line of the call."""
        return self.op.location


@dataclass(frozen=True, slots=True)
class ComputedPrefix:
    """A prefix that the plan computes ahead. It is no request, and its tokens are not counted.

    Attributes:
        prompt: token ids, as those of a request.
        place: the number of the requests of the row that come before it.
        is_shared: True: it is computed once for all rows of a batch, before them.
        runs, ways, after: as those of a request.
    """

    prompt: tuple[int, ...] = field(repr=False)
    place: int
    runs: CostRange[float]
    is_shared: bool = False
    ways: Ways = frozenset()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BreakReached:
    """A graph break to which a row comes so often: what is behind it is not known."""

    location: Location | None
    cause: str
    runs: CostRange[float]


@dataclass(frozen=True, slots=True)
class RowRequests:
    """The requests of one row in program order, the graph breaks it may come to, and the error that ends it.

    ``inputs`` are its values by parameter name, ``prefixes`` those computed ahead, in program order.
    """

    requests: tuple[EstimatedRequest, ...]
    breaks: tuple[BreakReached, ...]
    error: Exception | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    prefixes: tuple[ComputedPrefix, ...] = ()

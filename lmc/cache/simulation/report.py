"""The report of a simulation, and its cost model of steps."""

from collections.abc import Iterable
from dataclasses import dataclass

from lmc.cache.memory import Slice
from lmc.cache.simulation.recording import Timeline


@dataclass(frozen=True, slots=True)
class StepWork:
    """The work of a step, or the mean of several.

    `rows` are computed, and the logits of `drawn` of them are read. Row `i` of a sequence attends to `i + 1` keys:
    `attended` counts them for each row, `held` are the pages of all that runs, those of a shared prefix counted once.
    """

    rows: float
    drawn: float
    attended: float
    held: float

    @classmethod
    def of(cls, slices: Iterable[Slice], held: int) -> "StepWork":
        """Return the work of these rows, before they count as computed."""
        rows = drawn = attended = 0
        for each in slices:
            count = each.end - each.start
            rows += count
            drawn += each.end == each.sequence.length
            attended += count * (each.start + each.end + 1) // 2
        return cls(rows, drawn, attended, held)


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds of a step: a sum of constants of a machine and a model, each times a figure of `StepWork`.

    Attributes:
        step: for the step itself: scheduling, calls of kernels.
        row: for each row. A step takes as long as one of `least_rows`, because it reads the weights however few rows
            it has.
        drawn: for each row whose logits are read: output layer, draw, delivery.
        attended: for each key that a row attends to.
        held: for each page that is read.
    """

    step: float
    row: float
    attended: float
    drawn: float = 0.0
    held: float = 0.0
    least_rows: int = 0

    def coarse(self, scale: int) -> "CostModel":
        """The costs where one row stands for so many."""
        return CostModel(
            step=self.step * scale,
            row=self.row * scale,
            attended=self.attended * scale * scale,
            drawn=self.drawn * scale,
            held=self.held * scale * scale,
            least_rows=self.least_rows,
        )

    def seconds(self, work: StepWork) -> float:
        """Return the time of a step."""
        return (
            self.step
            + self.row * max(work.rows, self.least_rows)
            + self.attended * work.attended
            + self.drawn * work.drawn
            + self.held * work.held
        )


REFERENCE = CostModel(step=8e-3, row=1e-4, attended=1e-8)
"""An 8B model (32 layers, 32 heads of 128) on one A100, for which layouts are chosen: schedules depend on no machine.

For a step 16 GB of weights, read at 2 TB/s; for a row 16 GFLOP at 160 TFLOP/s; for each key that it attends to 0.5
MFLOP at 50 TFLOP/s.
"""


@dataclass(frozen=True, slots=True)
class Served:
    """One request on the clock of a simulation, in seconds since its start, and the tokens it found in the cache.

    It is `ready` once it has arrived and all that it comes after has ended, `started` when the first step that computes
    rows of it begins. `first_token` is the end of the step that gives its first token; where it generates nothing, of
    the step with its last row. `cached` is counted when it is admitted for the first time.
    """

    ready: float
    started: float
    first_token: float
    ended: float
    cached: int


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The figures of a policy on a trace.

    Of `prompt_tokens`, `hit_tokens` were in the cache when their request was admitted for the first time (never the
    last token of a prompt, which is computed for its logits). `rows` counts all computed rows: misses, generated
    tokens, and recomputation after preemptions. `depth` is the number of requests in the longest chain in which each
    waits for the one before. `served` are the requests in the order of the trace, by the policy's own service.
    """

    policy: str
    kv_tokens: int
    batch: int
    requests: int
    prompt_tokens: int
    hit_tokens: int
    evicted_tokens: int
    preemptions: int
    steps: int
    depth: int
    predicted_seconds: float
    generated_tokens: int
    rows: int
    served: tuple[Served, ...]
    timeline: Timeline

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens found in the cache, 0 … 1."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def first_token_seconds(self) -> tuple[float, ...]:
        """For each request the time to its first token since it was ready."""
        return tuple(each.first_token - each.ready for each in self.served)

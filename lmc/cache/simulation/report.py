"""The report of a simulation, and its cost model of steps."""

from collections.abc import Iterable
from dataclasses import dataclass

from lmc.cache.memory import Slice
from lmc.cache.simulation.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds that a step takes: so much for itself, for each row, and for each key that a row attends to.

    The defaults are those of an 8B model (32 layers, 32 heads of 128) on one A100: for a step 16 GB of weights, read at
    2 TB/s; for a row 16 GFLOP at 160 TFLOP/s; for each key that it attends to 0.5 MFLOP at 50 TFLOP/s.
    """

    step: float = 8e-3
    row: float = 1e-4
    attended: float = 1e-8

    def coarse(self, scale: int) -> "CostModel":
        """The costs where one row stands for so many."""
        return CostModel(self.step * scale, self.row * scale, self.attended * scale * scale)

    def seconds(self, slices: Iterable[Slice]) -> float:
        """Return the time of a step that computes these rows; row `i` attends to `i + 1` keys."""
        rows = attended = 0
        for each in slices:
            count = each.end - each.start
            rows += count
            attended += count * (each.start + each.end + 1) // 2
        return self.step + self.row * rows + self.attended * attended


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The figures of a policy on a trace.

    Of `prompt_tokens`, `hit_tokens` were in the cache when their request was admitted for the first time (never the
    last token of a prompt, which is computed for its logits). `rows` counts all computed rows: misses, generated
    tokens, and recomputation after preemptions. `waves` is the number of requests in the longest chain in which each
    waits for the one before. `first_token_seconds` is, for each request, the time to its first token since it had
    arrived and its predecessors had ended; where it generates nothing, to its last row.
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
    waves: int
    predicted_seconds: float
    generated_tokens: int
    rows: int
    first_token_seconds: tuple[float, ...]
    timeline: Timeline

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens found in the cache, 0 … 1."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

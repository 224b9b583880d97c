"""Traces of `traces.py` under policies of the simulator, each pool once; what `reuse.py` and `policies.py` print."""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.traces import WORKLOADS, trace_of
from lmc.cache.simulation.optimum import distinct_tokens, found_hits, optimal_hits, order_free_hits
from lmc.cache.simulation.report import REFERENCE
from lmc.cache.simulation.simulator import Report, simulate
from lmc.cache.trace import TraceRequest

SHARES = (10, 25, 50, 100)  # pool, in % of the distinct tokens
BATCH = 8
EACH_ONCE = "each once"
SUMMARY_HEAD = ("p %", "experiments", "at the floor")


class Traced:
    """A workload's requests, its sizes, and the simulations of it."""

    def __init__(self, name: str, instances: int | None = None) -> None:
        self.name = name
        self.requests: Sequence[TraceRequest] = trace_of(name, instances)
        self.distinct = distinct_tokens(self.requests)
        self.longest = max(request.cached_length for request in self.requests)
        self.order_free = order_free_hits(self.requests)
        self._reports: dict[tuple[str, int, int], Report] = {}

    def pool(self, share: int, batch: int) -> int:
        """So many percent of the distinct tokens, at least `batch` times the longest request."""
        return max(math.ceil(share * self.distinct / 100), batch * self.longest)

    def experiments(self, batch: int) -> list["Experiment"]:
        """Each pool once, however many shares come to it."""
        shares: dict[int, list[int]] = {}
        for share in SHARES:
            shares.setdefault(self.pool(share, batch), []).append(share)
        return [
            Experiment(self, tuple(of_pool), pool, at_floor=pool == batch * self.longest)
            for pool, of_pool in shares.items()
        ]

    def served(self, policy: str, pool: int, batch: int) -> "Served":
        """What a policy makes of it."""
        key = policy, pool, batch
        if key not in self._reports:
            self._reports[key] = simulate(self.requests, policy=policy, kv_tokens=pool, batch=batch)
        return Served(self, self._reports[key])


@dataclass(frozen=True, eq=False)
class Experiment:
    """A workload in one pool, of so many tokens. `at_floor` where that is what `batch` of the longest request need."""

    traced: Traced
    shares: tuple[int, ...]
    pool: int
    at_floor: bool

    def cells(self) -> list[str]:
        """Workload, shares and pool, as all tables show them."""
        return [self.traced.name, ", ".join(map(str, self.shares)), f"{self.pool:,}"]


def by_share(experiments: Sequence[Experiment]) -> dict[str, list[Experiment]]:
    """Those of each share, of which some stand in several; and all of them."""
    groups = {str(share): [each for each in experiments if share in each.shares] for share in SHARES}
    return groups | {EACH_ONCE: [*experiments]}


def summary_cells(share: str, group: Sequence[Experiment]) -> list[str]:
    """Share, how many experiments, and how many of these in a pool at the floor."""
    return [share, str(len(group)), str(sum(each.at_floor for each in group))]


@dataclass(frozen=True)
class Served:
    """A workload under one policy."""

    traced: Traced
    report: Report

    @property
    def of_order_free(self) -> float:
        """Hits in % of those of an infinite pool, whatever the order."""
        return percent(self.report.hit_tokens, self.traced.order_free)

    @property
    def of_best_eviction(self) -> float:
        """Hits in % of exact MIN on this timeline, those after preemptions too."""
        timeline = self.report.timeline
        return percent(found_hits(timeline), optimal_hits(timeline, self.report.kv_tokens))

    @property
    def tokens_per_second(self) -> float:
        """Tokens of prompts and answers per predicted second."""
        return (self.report.prompt_tokens + self.report.generated_tokens) / self.report.predicted_seconds


def percent(part: int, whole: int) -> float:
    """A share in %; all of nothing is all."""
    return 100 * part / whole if whole else 100.0


def command_line(about: str | None) -> argparse.ArgumentParser:
    """What both scripts take."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md; needs all workloads")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="may be repeated; default: all")
    parser.add_argument("--batch", type=int, default=BATCH, help=f"requests at once; default: {BATCH}")
    return parser


def traced(names: Sequence[str] | None) -> Iterator[Traced]:
    """The workloads asked for, with a word on the screen for each."""
    chosen = names or [*WORKLOADS]
    for at, name in enumerate(chosen, 1):
        print(f"{name}: {at} of {len(chosen)}", file=sys.stderr, flush=True)
        yield Traced(name)


def about(batch: int) -> str:
    """What all rows have in common."""
    cost = REFERENCE
    return (
        f"At most {batch} requests at once; the pool is p % of the distinct tokens, those of answers too, and at least "
        f"{batch} times the longest request (the floor): where that is more, several p are one experiment and one row. "
        f"Seconds are predicted: {cost.step * 1e3:g} ms a step, {cost.row * 1e6:g} "
        f"µs a row, {cost.attended * 1e9:g} ns a row and key; tokens per second are those of prompts and answers.\n\n"
    )

"""First tokens of a batch and of single requests that come beside it, by policy, without a model.

python benchmarks/latency.py [--write] [--workload llm_judge …] [--batch 8]

A batch is there from the start; while it is served, requests of others come one by one, at random moments, and share
nothing. Their time to the first token is what a policy may cost them: no more than the bound that is stated in
`lmc/cache/fair_queue.py`, in seconds, beyond first come, first served.

A batch's own requests have no such bound. Its plan says in which order they come: instance by instance, so that what
they share is computed once, where first come, first served begins all of them before it goes on with any. So one at the
end of the plan waits for nearly the whole batch; what the batch is asked for is when it ends, which stands beside it.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.results import table, write_section
from benchmarks.traces import WORKLOADS, trace_of
from lmc.cache.fair_queue import QUANTUM
from lmc.cache.simulation.report import REFERENCE, Report
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest, read_trace

POLICIES = ("lmc", "lpm", "fcfs")
CHOSEN = ("llm_judge", "multi_turn_chat_short", "tree_of_thought", "agents", "mmlu")
OTHERS = 60
PREFILL_TOKENS = 512
POPULATIONS = ("others", "the batch's own", "all")
HEAD = ("workload", "policy", *(f"{name}: p50 · p99 s" for name in POPULATIONS), "batch ends s")
BOUND_HEAD = ("workload", "bound s", *POPULATIONS, "one of the others, most")
Seconds = dict[str, np.ndarray]  # to the first tokens, by population; "all" has others, then the batch's own


def mixed(name: str, batch: int, pool: int) -> list[TraceRequest]:
    """The workload's requests, and those of others over the time that it takes first come, first served."""
    requests = trace_of(name)
    seconds = simulate(requests, policy="fcfs", kv_tokens=pool, batch=batch).predicted_seconds
    rng = random.Random(f"latency/{name}")
    arrivals = sorted(rng.uniform(0, 0.9 * seconds) for _ in range(OTHERS))
    others = read_trace(
        (
            None,
            {
                "id": f"other {number}",
                "tokens": [rng.randrange(10**6, 10**9) for _ in range(rng.randint(20, 400))],
                "output": 16,
                "arrival": arrival,
            },
        )
        for number, arrival in enumerate(arrivals)
    )
    instances = 1 + max(request.instance for request in requests)
    return [*requests, *(replace(other, instance=instances + number) for number, other in enumerate(others))]


@dataclass(frozen=True)
class Behind:
    """How far lmc is behind first come, first served: in p99 by population, and for one of the others at the most."""

    workload: str
    bound: float
    p99: dict[str, float]
    latest: float

    def line(self) -> list[str]:
        """Of the table."""
        return [self.workload, f"{self.bound:.2f}", *(f"{each:+.2f}" for each in (*self.p99.values(), self.latest))]


def measured(name: str, batch: int) -> tuple[list[list[str]], Behind]:
    """A line for each policy, and what to hold against the bound. Ends the program where others miss it."""
    longest = max(request.cached_length for request in trace_of(name))
    pool = 2 * batch * longest
    requests = mixed(name, batch, pool)
    reports = {
        policy: simulate(requests, policy=policy, kv_tokens=pool, batch=batch, prefill_tokens=PREFILL_TOKENS)
        for policy in POLICIES
    }
    seconds = {policy: by_population(requests, report) for policy, report in reports.items()}
    lines = [
        [name, policy, *(shown(seconds[policy][each]) for each in POPULATIONS), f"{report.predicted_seconds:.1f}"]
        for policy, report in reports.items()
    ]
    ours, theirs = seconds["lmc"], seconds["fcfs"]
    p99 = {each: float(np.quantile(ours[each], 0.99) - np.quantile(theirs[each], 0.99)) for each in POPULATIONS}
    behind = Behind(name, stated(requests, batch), p99, float(np.max(ours["others"] - theirs["others"])))
    if max(behind.latest, p99["others"]) > behind.bound:
        raise SystemExit(f"{name}: others come {behind.latest:.2f} s later, and may come {behind.bound:.2f} s later")
    return lines, behind


def by_population(requests: Sequence[TraceRequest], report: Report) -> Seconds:
    """Seconds to the first token, of whom they are."""
    seconds = np.array(report.first_token_seconds)
    other = np.array([str(request.id).startswith("other") for request in requests])
    return dict(zip(POPULATIONS, (seconds[other], seconds[~other], seconds), strict=True))


def shown(seconds: np.ndarray) -> str:
    """The middle and the late."""
    return " · ".join(f"{np.quantile(seconds, share):.2f}" for share in (0.5, 0.99))


def stated(requests: Sequence[TraceRequest], batch: int) -> float:
    """Seconds of the bound: a turn of the batch, one request beyond it, and what runs already.

    That many rows at most are computed in the meantime. A step in which the budget of rows ran out has all of it; in
    any other one each of the running requests, of which there are `batch`, gets a token of its answer.
    """
    cost = REFERENCE
    longest = max(request.cached_length for request in requests)
    answer = max(request.generated.size for request in requests)
    rows = QUANTUM + (1 + batch) * longest
    steps = rows / PREFILL_TOKENS + (QUANTUM + (1 + batch) * answer) / batch
    return rows * (cost.row + cost.attended * longest) + steps * cost.step


def told(lines: list[list[str]], all_behind: list[Behind], batch: int) -> str:
    """The tables, and what they say of the bound."""
    beyond = [each.workload for each in all_behind if each.p99["all"] > each.bound]
    kept = "is kept with all requests of the stream too"
    if beyond:
        kept += f", but for {', '.join(beyond)}"
    return f"""{OTHERS} requests of others beside each batch; at most {batch} at once, a pool of twice as many of the \
longest request. Seconds to the first token, since a request had arrived and what it waits for had ended; predicted \
(`REFERENCE` of `lmc/cache/simulation/report.py`).

{table(HEAD, lines)}
How far lmc is behind first come, first served, in seconds: p99 by whose requests they are, and the most for one \
request of others (less than 0: all of them come sooner). The bound is stated for others, and no request of theirs \
misses it. The batch's own are outside it: its plan orders them instance by instance, so the instances at its end wait \
for those before them, where first come, first served begins all of them first. Counted by p99 the bound {kept}.

{table(BOUND_HEAD, [each.line() for each in all_behind])}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help=f"default: {', '.join(CHOSEN)}")
    parser.add_argument("--batch", type=int, default=8, help="requests at once; default: 8")
    options = parser.parse_args()
    found = [measured(name, options.batch) for name in options.workload or CHOSEN]
    text = told([line for lines, _ in found for line in lines], [behind for _, behind in found], options.batch)
    print(text, end="")
    if options.write:
        write_section("latency", "python benchmarks/latency.py --write", text)


if __name__ == "__main__":
    main()

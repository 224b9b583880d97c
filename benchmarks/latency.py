"""First tokens of single requests that come beside a batch, by policy, without a model.

python benchmarks/latency.py [--write] [--workload llm_judge …] [--batch 8]

A batch is there from the start; while it is served, requests of others come one by one, at random moments, and share
nothing. Their time to the first token is what a policy may cost them: no more than the bound that is stated in
`lmc/cache/fair_queue.py` beyond first come, first served. How soon the batch ends stands beside it.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.results import table, write_section
from benchmarks.traces import WORKLOADS, trace_of
from lmc.cache.fair_queue import QUANTUM
from lmc.cache.report import CostModel, Report
from lmc.cache.simulator import simulate
from lmc.cache.trace import TraceRequest, read_trace

POLICIES = ("lmc", "lpm", "fcfs")
CHOSEN = ("llm_judge", "multi_turn_chat_short", "tree_of_thought", "agents", "mmlu")
OTHERS = 60
HEAD = ("workload", "policy", "p50 s", "p99 s", "p99 of fcfs + bound s", "batch ends s")


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


def rows_of(name: str, batch: int) -> list[list[str]]:
    """A line for each policy."""
    longest = max(request.cached_length for request in trace_of(name))
    pool = 2 * batch * longest
    requests = mixed(name, batch, pool)
    others = [at for at, request in enumerate(requests) if str(request.id).startswith("other")]
    reports = {policy: simulate(requests, policy=policy, kv_tokens=pool, batch=batch) for policy in POLICIES}
    bound = quantile(reports["fcfs"], others, 0.99) + stated(batch, longest)
    found: list[list[str]] = []
    for policy, report in reports.items():
        middle, late = (quantile(report, others, share) for share in (0.5, 0.99))
        limit = f"{bound:.2f}" if policy == "lmc" else ""
        if policy == "lmc" and late > bound:
            raise SystemExit(f"{name}: p99 is {late:.2f} s, and may be {bound:.2f} s")
        found.append([name, policy, f"{middle:.2f}", f"{late:.2f}", limit, f"{report.predicted_seconds:.1f}"])
    return found


def quantile(report: Report, places: Sequence[int], share: float) -> float:
    """Of the seconds to the first token of some requests."""
    return float(np.quantile([report.first_token_seconds[at] for at in places], share))


def stated(batch: int, longest: int) -> float:
    """Seconds of the bound: a turn of the batch, one request beyond it, and what runs already."""
    cost = CostModel()
    return (QUANTUM + (1 + batch) * longest) * (cost.row + cost.attended * longest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help=f"default: {', '.join(CHOSEN)}")
    parser.add_argument("--batch", type=int, default=8, help="requests at once; default: 8")
    options = parser.parse_args()
    lines = [line for name in options.workload or CHOSEN for line in rows_of(name, options.batch)]
    text = f"{OTHERS} requests of others beside each batch; at most {options.batch} at once, a pool of twice as many "
    text += "of the longest request. Seconds are predicted (`CostModel`).\n\n" + table(HEAD, lines)
    print(text, end="")
    if options.write:
        write_section("latency", "python benchmarks/latency.py --write", text)


if __name__ == "__main__":
    main()

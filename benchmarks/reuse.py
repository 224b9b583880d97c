"""How close lmc's reuse of tokens comes to what is possible, on the workloads of `traces.py`, without a model.

python benchmarks/reuse.py [--write] [--workload react …] [--batch 8]

Three limits (`lmc/cache/simulation/optimum.py`, `lmc/cache/simulation/best_order.py`):

- order-free: with an infinite pool every token that was computed before is a hit, whatever the order;
- MIN: the best eviction there is, on the timeline of lmc's own order;
- best order: branch and bound over all orders of ten requests of two instances or more, one at a time, each with the
  best eviction; lmc gets the same pool, half of the distinct tokens, and one request at a time.

It ends with an error, and writes nothing, where lmc finds less than it is to find (`shortfalls`).
"""

import statistics
import sys
from collections import Counter
from collections.abc import Mapping

from benchmarks.replay import (
    SUMMARY_HEAD,
    Experiment,
    Served,
    about,
    by_share,
    command_line,
    percent,
    summary_cells,
    traced,
)
from benchmarks.results import table, write_section
from benchmarks.traces import WORKLOADS, Workload, trace_of
from lmc.cache.simulation.best_order import MOST_REQUESTS, best_order
from lmc.cache.simulation.optimum import distinct_tokens
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest

POLICY = "lmc"
LARGE = 50  # pool in % of the distinct tokens, from which on hits have to come close to the order-free bound
LEAST_MEAN, LEAST_EACH = 99.0, 97.0  # % of the order-free bound in large pools: over all experiments, and of each
LEAST_OF_MIN = 99.0  # % of MIN, of each experiment in any pool
HEAD = (
    "workload",
    "p %",
    "pool",
    "instances",
    "requests",
    "prompt tokens",
    "hit rate %",
    "of order-free %",
    "of MIN %",
)
ORDER_HEAD = ("workload", "requests", "pool", "hits of lmc", "hits of the best order", "ratio %")


def row(experiment: Experiment, served: Served) -> list[str]:
    """One line of the table of order-free bound and MIN."""
    report = served.report
    return [
        *experiment.cells(),
        instances_of(WORKLOADS[experiment.traced.name]),
        f"{report.requests:,}",
        f"{report.prompt_tokens:,}",
        f"{100 * report.hit_rate:.1f}",
        f"{served.of_order_free:.2f}",
        f"{served.of_best_eviction:.2f}",
        f"{served.tokens_per_second:,.0f}",
    ]


def instances_of(workload: Workload) -> str:
    """How many, and of how many in the paper."""
    return str(workload.instances) + (f" of {workload.paper}" if workload.paper else "")


def order_row(name: str) -> tuple[list[str], float]:
    """lmc beside the best order of a few requests; and the ratio."""
    requests = few_requests(name)
    pool = max(distinct_tokens(requests) // 2, *(request.cached_length for request in requests))
    best = best_order(requests, pool)
    hits = simulate(requests, policy=POLICY, kv_tokens=pool, batch=1).hit_tokens
    ratio = percent(hits, best.hits)
    return [name, str(len(requests)), f"{pool:,}", f"{hits:,}", f"{best.hits:,}", f"{ratio:.2f}"], ratio


def few_requests(name: str) -> list[TraceRequest]:
    """As many as branch and bound takes, of two instances or more, of each its first."""
    sizes = range(2, MOST_REQUESTS + 1)
    requests = next(found for count in sizes if len(found := trace_of(name, count)) >= MOST_REQUESTS)
    seen: Counter[int] = Counter()
    turns: list[tuple[int, int]] = []  # how many of its instance are before it
    for place, request in enumerate(requests):
        turns.append((seen[request.instance], place))
        seen[request.instance] += 1
    return [requests[place] for place in sorted(place for _, place in sorted(turns)[:MOST_REQUESTS])]


def summary(found: dict[Experiment, Served]) -> str:
    """Mean and least over the workloads, by size of the pool, and over all experiments."""
    lines: list[list[str]] = []
    for share, group in by_share([*found]).items():
        bound = [found[each].of_order_free for each in group]
        evicted = [found[each].of_best_eviction for each in group]
        means = [statistics.fmean(bound), min(bound), statistics.fmean(evicted), min(evicted)]
        lines.append([*summary_cells(share, group), *(f"{value:.2f}" for value in means)])
    return table([*SUMMARY_HEAD, "of order-free %, mean", "least", "of MIN %, mean", "least"], lines)


def shortfalls(found: Mapping[Experiment, Served]) -> list[str]:
    """What falls short of the limits: of the order-free bound in large pools, of MIN in all of them."""
    large = {each: served.of_order_free for each, served in found.items() if max(each.shares) >= LARGE}
    mean = statistics.fmean(large.values()) if large else 100.0
    lines = [f"mean over p >= {LARGE} %: {mean:.2f} % of order-free, not {LEAST_MEAN:g} %"] if mean < LEAST_MEAN else []
    for each, served in found.items():
        where = f"{each.traced.name}, pool of {each.pool:,}"
        if large.get(each, 100.0) < LEAST_EACH:
            lines.append(f"{where}: {large[each]:.2f} % of order-free, not {LEAST_EACH:g} %")
        if served.of_best_eviction < LEAST_OF_MIN:
            lines.append(f"{where}: {served.of_best_eviction:.2f} % of MIN, not {LEAST_OF_MIN:g} %")
    return lines


def main() -> None:
    parser = command_line(__doc__)
    options = parser.parse_args()
    if options.write and options.workload:
        parser.error("--write keeps all workloads: leave --workload out")
    found: dict[Experiment, Served] = {}
    orders: list[list[str]] = []
    ratios: list[float] = []
    for workload in traced(options.workload):
        for experiment in workload.experiments(options.batch):
            found[experiment] = workload.served(POLICY, experiment.pool, options.batch)
        line, ratio = order_row(workload.name)
        orders.append(line)
        ratios.append(ratio)
    lines = [row(experiment, served) for experiment, served in found.items()]
    text = f"{summary(found)}\n{table([*HEAD, 'tokens/s'], lines)}\n"
    text += f"One request at a time; mean ratio {statistics.fmean(ratios):.2f} %, least {min(ratios):.2f} %.\n\n"
    text += table(ORDER_HEAD, orders)
    print(text, end="")
    if short := shortfalls(found):
        sys.exit("\n".join(short))
    if options.write:
        write_section("reuse", "python benchmarks/reuse.py --write", about(options.batch) + text)


if __name__ == "__main__":
    main()

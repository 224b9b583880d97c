"""The policies of the simulator beside each other: what each finds in the cache, and how fast it is predicted to be.

python benchmarks/policies.py [--write] [--workload react …] [--policy lpm …] [--batch 8]

All have the same requests, pool, batch limit, cache and costs; they differ in order and eviction only
(`lmc/cache/simulation/simulator.py`). Their LRU and longest prefix first are checked against SGLang's by
`public_policies.py`.
"""

import math
import statistics

from benchmarks.replay import SUMMARY_HEAD, Experiment, Served, about, by_share, command_line, summary_cells, traced
from benchmarks.results import table, write_section
from lmc.cache.simulation.simulator import POLICIES


def row(experiment: Experiment, all_served: list[Served]) -> list[str]:
    """Hits in % of the order-free bound and tokens per second of each policy."""
    speeds = (f"{each.of_order_free:.1f} · {each.tokens_per_second:,.0f}" for each in all_served)
    return [*experiment.cells(), *speeds]


def summary(found: dict[Experiment, list[Served]], policies: list[str]) -> str:
    """Mean of the hits, and geometric mean of the speeds over those of the first policy, by size of the pool."""
    lines: list[list[str]] = []
    for share, group in by_share([*found]).items():
        rows = [found[each] for each in group]
        cells: list[str] = []
        for at in range(len(policies)):
            hits = statistics.fmean(row[at].of_order_free for row in rows)
            speeds = [math.log(row[at].tokens_per_second / row[0].tokens_per_second) for row in rows]
            cells.append(f"{hits:.1f} · {math.exp(statistics.fmean(speeds)):.2f}×")
        lines.append([*summary_cells(share, group), *cells])
    return table([*SUMMARY_HEAD, *policies], lines)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="may be repeated; default: all")
    options = parser.parse_args()
    if options.write and (options.workload or options.policy):
        parser.error("--write keeps all of the table: leave --workload and --policy out")
    policies: list[str] = options.policy or [*POLICIES]
    found = {
        experiment: [workload.served(policy, experiment.pool, options.batch) for policy in policies]
        for workload in traced(options.workload)
        for experiment in workload.experiments(options.batch)
    }
    lines = [row(experiment, all_served) for experiment, all_served in found.items()]
    text = f"Hits in % of the order-free bound · predicted speed, in means that of {policies[0]} is 1.\n\n"
    text += f"{summary(found, policies)}\n"
    text += "Hits in % of the order-free bound · tokens per predicted second.\n\n"
    text += table(["workload", "p %", "pool", *policies], lines)
    print(text, end="")
    if options.write:
        write_section("policies", "python benchmarks/policies.py --write", about(options.batch) + text)


if __name__ == "__main__":
    main()

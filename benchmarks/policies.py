"""The policies of the simulator beside each other: what each finds in the cache, and how fast it is predicted to be.

python benchmarks/policies.py [--write] [--workload react …] [--policy lpm …] [--batch 8]

All have the same requests, pool, batch limit, cache and costs; they differ in order and eviction only
(`lmc/cache/simulator.py`). Their LRU and longest prefix first are checked against SGLang's by `public_policies.py`.
"""

import math
import statistics

from benchmarks.replay import SHARES, Served, about, command_line, traced
from benchmarks.results import table, write_section
from lmc.cache.simulator import POLICIES


def row(name: str, share: int, all_served: list[Served]) -> list[str]:
    """Hits in % of the order-free bound and tokens per second of each policy."""
    return [name, str(share), *(f"{each.of_order_free:.1f} · {each.tokens_per_second:,.0f}" for each in all_served)]


def summary(found: dict[int, list[list[Served]]], policies: list[str]) -> str:
    """Mean of the hits, and geometric mean of the speeds over those of the first policy, by size of the pool."""
    lines: list[list[str]] = []
    for share, rows in found.items():
        cells: list[str] = []
        for at in range(len(policies)):
            hits = statistics.fmean(row[at].of_order_free for row in rows)
            speeds = [math.log(row[at].tokens_per_second / row[0].tokens_per_second) for row in rows]
            cells.append(f"{hits:.1f} · {math.exp(statistics.fmean(speeds)):.2f}×")
        lines.append([str(share), *cells])
    return table(["p %", *policies], lines)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--policy", action="append", choices=POLICIES, help="may be repeated; default: all")
    options = parser.parse_args()
    if options.write and (options.workload or options.policy):
        parser.error("--write keeps all of the table: leave --workload and --policy out")
    policies: list[str] = options.policy or [*POLICIES]
    found: dict[int, list[list[Served]]] = {share: [] for share in SHARES}
    lines: list[list[str]] = []
    for workload in traced(options.workload):
        for share in SHARES:
            pool = workload.pool(share, options.batch)
            found[share].append([workload.served(policy, pool, options.batch) for policy in policies])
            lines.append(row(workload.name, share, found[share][-1]))
    text = f"Hits in % of the order-free bound · predicted speed, in means that of {policies[0]} is 1.\n\n"
    text += f"{summary(found, policies)}\n"
    text += "Hits in % of the order-free bound · tokens per predicted second.\n\n"
    text += table(["workload", "p %", *policies], lines)
    print(text, end="")
    if options.write:
        write_section("policies", "python benchmarks/policies.py --write", about(options.batch) + text)


if __name__ == "__main__":
    main()

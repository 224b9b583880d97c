"""Where next use by rank falls short of MIN: random chains of agents in pools of `batch` times the longest request.

python benchmarks/chains.py [--write] [--seeds 120]

Instances go through agents with system prompts of their own, in random orders, and sometimes go on from their last
answer. The workloads of `reuse.py` are shaped as programs are; these are not, and the pools are the smallest in which
so many requests run together.
"""

import argparse
import random
import statistics
from typing import Any

from benchmarks.results import table, write_section
from lmc.cache.simulation.optimum import found_hits, optimal_hits
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest, read_trace

BATCHES = (2, 3)
HEAD = ("batch", "runs", "of MIN %, mean", "least", "below 99 %", "lpm's predicted seconds / lmc's, mean", "least")


def chains(seed: int) -> list[TraceRequest]:
    """Three to nine instances of two to five requests."""
    rng = random.Random(seed)

    def text(least: int, most: int) -> list[int]:
        return [rng.randrange(10**6) for _ in range(rng.randint(least, most))]

    agents = [text(20, 60) for _ in range(rng.randint(2, 4))]
    rows: list[dict[str, Any]] = []
    for instance in range(rng.randint(3, 9)):
        before: list[int] = []
        for stage in range(rng.randint(2, 5)):
            goes_on = bool(before) and rng.random() < 0.4
            said = text(2, 12)
            prompt = [*before, *text(2, 6)] if goes_on else [*rng.choice(agents), *text(2, 20)]
            known = len(rows[-1]["tokens"]) if goes_on else len(prompt)
            rows.append(
                {
                    "id": len(rows),
                    "instance": instance,
                    "tokens": prompt,
                    "known": known,
                    "output": len(said),
                    "after": [len(rows) - 1] if stage else [],
                }
            )
            before = [*prompt, *said]
    return read_trace((None, row) for row in rows)


def line(batch: int, seeds: int) -> list[str]:
    """Shares over all seeds."""
    shares: list[float] = []
    ratios: list[float] = []
    for seed in range(seeds):
        requests = chains(seed)
        pool = batch * max(request.cached_length for request in requests)
        report = simulate(requests, policy="lmc", kv_tokens=pool, batch=batch)
        most = optimal_hits(report.timeline, pool)
        if most:
            shares.append(100 * found_hits(report.timeline) / most)
        rival = simulate(requests, policy="lpm", kv_tokens=pool, batch=batch)
        ratios.append(rival.predicted_seconds / report.predicted_seconds)
    below = sum(share < 99 for share in shares)
    found = [statistics.fmean(shares), min(shares), statistics.fmean(ratios), min(ratios)]
    return [
        str(batch),
        str(len(shares)),
        f"{found[0]:.1f}",
        f"{found[1]:.1f}",
        str(below),
        *(f"{x:.3f}" for x in found[2:]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--seeds", type=int, default=120, help="traces; default: 120")
    options = parser.parse_args()
    text = table(HEAD, [line(batch, options.seeds) for batch in BATCHES])
    print(text, end="")
    if options.write:
        write_section("chains", f"python benchmarks/chains.py --write --seeds {options.seeds}", text)


if __name__ == "__main__":
    main()

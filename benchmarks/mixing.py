"""Batches in which some instances mostly read and others mostly write: one kind after the other, and mixed.

python benchmarks/mixing.py [--write]

Without a model: the policy `lmc` of the simulator, in the order of the tree of prompts, in the mixed one
(`lmc/cache/batch_order/mixing.py`), and in what it chooses itself. *Least* is the number of steps that no order goes
below: all slots decode in each of them, or each is full of prompt tokens, or the longest instance takes as many. The
workloads of `traces.py` have one kind of instance each; there the second table says how many steps could be saved at
all.
"""

import argparse
from collections.abc import Sequence

from benchmarks.replay import BATCH, Traced
from benchmarks.results import table, write_section
from benchmarks.traces import WORKLOADS, Trace
from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.cache.simulation.report import REFERENCE, Report
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest

PREFILL_TOKENS = 512


Asked = list[tuple[list[int], int, int]]
"""Prompts, and how long their answers are: at least, at most."""


def documents(trace: Trace) -> tuple[Asked, Asked]:
    """40 documents of 3,000 tokens answered briefly, and 40 short tasks answered at length."""
    return [(trace.text(3000), 4, 16) for _ in range(40)], _tasks(trace)


def questions(trace: Trace) -> tuple[Asked, Asked]:
    """Eight questions on each of six documents of 2,000 tokens, and 40 short tasks answered at length."""
    stems = [trace.text(2000) for _ in range(6)]
    return [(stem + trace.text(40), 8, 24) for stem in stems for _ in range(8)], _tasks(trace)


def mails(trace: Trace) -> tuple[Asked, Asked]:
    """200 texts answered alike, half of them of 1,000 to 4,000 tokens, the others of 20 to 200."""
    return [(trace.text(1000, 4000), 16, 128) for _ in range(100)], [(trace.text(20, 200), 16, 128) for _ in range(100)]


def _tasks(trace: Trace) -> Asked:
    return [(trace.text(60), 128, 256) for _ in range(40)]


BATCHES = {"documents": documents, "questions": questions, "mails": mails}


def requests_of(name: str, first: str) -> list[TraceRequest]:
    """A batch; `first` are those of its instances that come first in the order of the tree."""
    trace = Trace(name)
    reading, writing = BATCHES[name](trace)
    asked = [reading, writing] if first == "reading" else [writing, reading]
    rows = [([kind, *prompt], least, most) for kind, part in enumerate(asked) for prompt, least, most in part]
    for number in trace.instances(len(rows)):
        trace.ask(*rows[number])
    return trace.requests()


def least_steps(requests: Sequence[TraceRequest], report: Report, batch: int) -> int:
    """Steps below which no order of these requests goes with as many hits."""
    decoded = sum(max(request.generated.size - 1, 0) for request in requests)
    chains: dict[str | int, int] = {}
    for request in requests:
        before = max((chains[each] for each in request.after), default=0)
        chains[request.id] = before + max(request.generated.size, 1)
    prefilled = report.rows - decoded
    return max(-(-decoded // batch), -(-prefilled // PREFILL_TOKENS), *chains.values())


def row(name: str, first: str, batch: int) -> list[str]:
    """Steps and predicted seconds of each order."""
    requests = requests_of(name, first)
    pool = batch * max(request.cached_length for request in requests)
    layouts = (Layout(), Layout(InstanceOrder.MIXED), None)
    apart, mixed, chosen = (
        simulate(requests, policy="lmc", kv_tokens=pool, batch=batch, prefill_tokens=PREFILL_TOKENS, layout=layout)
        for layout in layouts
    )
    cells = [f"{each.steps:,} · {each.predicted_seconds:.1f} · {each.hit_rate:.1%}" for each in (apart, mixed, chosen)]
    speed = apart.predicted_seconds / chosen.predicted_seconds
    return [name, first, str(batch), *cells, f"{least_steps(requests, chosen, batch):,}", f"{speed:.3f}"]


def left_row(name: str, batch: int) -> list[str]:
    """What a workload of one kind of instance could still save."""
    traced = Traced(name)
    report = simulate(traced.requests, policy="lmc", kv_tokens=traced.pool(10, batch), batch=batch)
    least = least_steps(traced.requests, report, batch)
    saved = (report.steps - least) * REFERENCE.step / report.predicted_seconds
    return [name, f"{report.steps:,}", f"{least:,}", f"{saved:.1%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    options = parser.parse_args()
    lines: list[list[str]] = []
    for name in BATCHES:
        for batch in (BATCH, 4 * BATCH):
            lines += [row(name, first, batch) for first in ("reading", "writing")]
    head = ["batch", "first in the tree", "at once", "apart", "mixed", "chosen", "least steps", "speed, chosen / apart"]
    text = "Steps · predicted seconds · hits; the pool is as many times the longest request as run at once.\n\n"
    text += table(head, lines) + f"\nWorkloads of one kind, {BATCH} at once, pool of 10 %:\n\n"
    head = ["workload", "steps", "least", "of its time"]
    text += table(head, [left_row(name, BATCH) for name in WORKLOADS])
    print(text, end="")
    if options.write:
        write_section("mixing", "python benchmarks/mixing.py --write", text)


if __name__ == "__main__":
    main()

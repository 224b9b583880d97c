"""The page of `lmc viz` (`page.py`), and the cost of `lmc run --timeline`: the same runs with and without it, by turns.

python benchmarks/view.py [--write] [--repeats 7]

`page.py` tells of the figures of the page. Those of the timeline are of the CPU time of the whole process, the thread
that writes included. A pair is a run with and one without a timeline, in an order that changes; both have the same rows
and an empty cache. The cost is the median of the pairs, with the 95 % interval of a bootstrap: it holds the limit where
the whole interval is below it. The m125 shape is that of `engine.py`: 32 rows that share 512 tokens, with 16 of their
own and 64 new ones, bfloat16. On the toy engine 200 rows make eight requests of up to 24 tokens each. The column of the
writing thread is its share of the CPU time.
"""

import argparse
import gc
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

import lmc
from benchmarks.engine import FOLDER, make_model
from benchmarks.page import page_table
from benchmarks.results import machine, processor, table, write_section
from lmc.driver.batch.timeline import TimelineFile, timeline_header
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.engines import flush_cache

LIMIT = 0.01
Row = dict[str, Any]


@lmc.jit
def shape(s: lmc.State, stem: str, own: str) -> str:
    """The m125 shape: one request a row, and the prefix of the batch."""
    s += stem + own
    return s.gen("answer", max_tokens=64, min_tokens=64)


@lmc.jit
def judge(s: lmc.State, essay: str) -> str:
    """Seven generations of up to 24 tokens and a choice a row."""
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay: {essay}")
    views = s.fork(5)
    for number in range(5):
        views[number] += lmc.user(f"View {number}?")
        views[number].gen("view", max_tokens=24)
    s += lmc.user("Views: " + "\n".join(views["view"]))
    s.gen("verdict", max_tokens=24)
    return s.select("grade", ["good", "bad"])


@dataclass(frozen=True)
class Workload:
    """A program with its target and rows. ``repeats`` are the pairs of runs for one on the m125 shape."""

    name: str
    program: Any
    options: Options
    rows: list[Row]
    repeats: int


def workloads() -> Iterable[Workload]:
    """The m125 shape and the toy engine."""
    model = make_model(FOLDER / "model").resolve()
    prompts = [{"stem": "0123" * 128, "own": f"{row:016}"} for row in range(32)]  # a token is a byte
    yield Workload("m125", shape, Options(f"local:{model}", dtype="bfloat16", kv_tokens=60_000), prompts, 1)
    yield Workload("toy", judge, Options("toy"), [{"essay": f"essay {row}"} for row in range(200)], 8)


class TimedFile(TimelineFile):
    """A timeline that measures the CPU seconds of the thread that writes it."""

    writing = 0.0

    def _run(self) -> None:
        super()._run()
        self.writing = time.thread_time()


@dataclass(frozen=True)
class Measured:
    """CPU seconds of a run; of its recording, those of the thread that writes, and events."""

    cpu: float
    writing: float = 0.0
    events: int = 0


def run(workload: Workload, timeline: Path | None) -> Measured:
    """Run the rows once."""
    runner = Runner(workload.program, workload.options)
    part = [(index, ((), row)) for index, row in enumerate(workload.rows)]
    flush_cache(workload.options)
    gc.collect()
    cpu = time.process_time()
    if timeline is None:
        results = dict(runner.run_rows([part]))
        cpu = time.process_time() - cpu
        assert all(result.error is None for result in results.values())
        return Measured(cpu)
    file = TimedFile(str(timeline), timeline_header(runner.program, [], runner.target(), None))
    with file:
        results = dict(runner.run_rows([part], None, file))
    cpu = time.process_time() - cpu
    assert all(result.error is None for result in results.values())
    return Measured(cpu, file.writing, timeline.read_bytes().count(b"\n"))


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median of these: a bootstrap (Efron 1979)."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def compare(workload: Workload, repeats: int) -> list[str]:
    """A row of the table: the median of pairs of runs."""
    plain: list[Measured] = []
    recorded: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.json"
        for timeline in (None, file):  # loads the model, compiles the program
            run(workload, timeline)
        for repeat in range(repeats * workload.repeats):
            for timeline in (None, file) if repeat % 2 else (file, None):
                (plain if timeline is None else recorded).append(run(workload, timeline))
    ratios = [after.cpu / before.cpu - 1 for before, after in zip(plain, recorded, strict=True)]
    low, high = interval(ratios)
    fastest = min(each.cpu for each in recorded) / min(each.cpu for each in plain) - 1
    writing = statistics.median(each.writing / each.cpu for each in recorded)
    seconds = statistics.median(each.cpu for each in plain)
    return [
        workload.name,
        str(len(ratios)),
        f"{seconds:.2f}",
        f"{statistics.median(ratios):+.2%} ({low:+.2%} to {high:+.2%})",
        f"{fastest:+.2%}",
        f"{writing:.2%}",
        str(recorded[-1].events),
        f"{LIMIT:.0%}",
    ]


def timeline(repeats: int) -> str:
    """The cost of ``--timeline``."""
    rows = [compare(workload, repeats) for workload in workloads()]
    head = [
        "timeline",
        "pairs",
        "CPU s of a run",
        "more, median of pairs (95 %)",
        "more, fastest runs",
        "writing thread",
        "events",
        "limit",
    ]
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    text = f"{page_table(max(options.repeats // 2, 1))}\n{timeline(options.repeats)}"
    print(text, end="")
    if options.write:
        write_section("view", "python benchmarks/view.py --write", f"{machine()}, {processor()}.\n\n{text}")


if __name__ == "__main__":
    main()

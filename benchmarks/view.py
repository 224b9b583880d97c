"""The page of `lmc viz` (`page.py`), and the cost of `lmc run --timeline`: the same runs with and without it, by turns.

python benchmarks/view.py [--write] [--repeats 7]

`page.py` tells of the figures of the page. Those of the timeline are of the CPU time of the whole process, the thread
that writes included. A pair is a run with and one without a timeline, in an order that changes; each run has rows of
its own. The m125 shape is that of `engine.py`: 32 rows that share 512 tokens, with 16 of their own and 64 new ones,
bfloat16. On the toy engine 200 rows make seven requests of up to 24 tokens each. The column of the writing thread is
its share of the CPU time.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
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

LIMIT = 0.01
Row = dict[str, Any]


@lmc.jit
def shape(s: lmc.State, stem: str, own: str) -> str:
    """The m125 shape: one request a row, and the prefix of the batch."""
    s += stem + own
    return s.gen("answer", max_tokens=64, min_tokens=64)


@lmc.jit
def judge(s: lmc.State, essay: str) -> str:
    """Seven requests a row, 24 tokens each."""
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
    """A program with its target; ``rows`` makes those of the run with a number."""

    name: str
    program: Any
    options: Options
    rows: Callable[[int], list[Row]]


def workloads() -> Iterable[Workload]:
    """The m125 shape and the toy engine."""
    model = make_model(FOLDER / "model").resolve()

    def prompts(number: int) -> list[Row]:
        stem = f"{number:04}" * 128  # a token is a byte
        return [{"stem": stem, "own": f"{row:016}"} for row in range(32)]

    yield Workload("m125", shape, Options(f"local:{model}", dtype="bfloat16", kv_tokens=60_000), prompts)
    yield Workload(
        "toy", judge, Options("toy"), lambda number: [{"essay": f"essay {number} {row}"} for row in range(200)]
    )


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


def run(workload: Workload, number: int, timeline: Path | None) -> Measured:
    """Run the rows with a number once."""
    runner = Runner(workload.program, workload.options)
    part = [(index, ((), row)) for index, row in enumerate(workload.rows(number))]
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


def compare(workload: Workload, repeats: int) -> list[str]:
    """A row of the table: the median of pairs of runs."""
    run(workload, 0, None)  # loads the model, compiles the program
    plain: list[Measured] = []
    recorded: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.json"
        for repeat in range(repeats):
            for timeline in (None, file) if repeat % 2 else (file, None):
                number = 1 + 2 * repeat + (timeline is None)
                (plain if timeline is None else recorded).append(run(workload, number, timeline))
    pairs = list(zip(plain, recorded, strict=True))
    cost = statistics.median(after.cpu / before.cpu - 1 for before, after in pairs)
    fastest = min(each.cpu for each in recorded) / min(each.cpu for each in plain) - 1
    writing = statistics.median(each.writing / each.cpu for each in recorded)
    seconds = statistics.median(each.cpu for each in plain)
    return [
        workload.name,
        f"{seconds:.2f}",
        f"{cost:+.2%}",
        f"{fastest:+.2%}",
        f"{writing:.2%}",
        str(recorded[-1].events),
        f"{LIMIT:.0%}",
    ]


def timeline(repeats: int) -> str:
    """The cost of ``--timeline``."""
    rows = [compare(workload, repeats * (1 if workload.name == "m125" else 4)) for workload in workloads()]
    head = [
        "timeline",
        "CPU s of a run",
        "more, median of pairs",
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
        about = f"{machine()}, {processor()}; {options.repeats} pairs, on the toy engine four times as many.\n\n"
        write_section("view", "python benchmarks/view.py --write", about + text)


if __name__ == "__main__":
    main()

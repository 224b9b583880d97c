"""The cost of a journal: milliseconds per call and share of a run, by requests in flight; resuming a finished run.

python benchmarks/journal.py [--write]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results import machine, processor, table, write_section
from lmc.ir.engine.protocol import Generation, OnDelta, Request, SamplingParams
from lmc.ir.engine.toy import ToyEngine
from lmc.runtime.journal.engine import JournaledEngine
from lmc.runtime.journal.file import DONE, JournalFile
from lmc.runtime.journal.journal import RunJournal

CALLS = 10_000
PROMPT = tuple(range(1000))
SECONDS = 1.0
"""The time of an answer: that of a short one from a hosted model."""
IN_FLIGHT = (1, 8, 64, 1000)
ROWS = 10_000
PROGRAM = """
import lmc


@lmc.jit(target="toy")
def grade(s, number: int):
    s += f"Essay {number}: "
    return s.gen("a", max_tokens=16)
"""


@dataclass(eq=False)
class TimedHandle:
    """An answer that comes later."""

    future: Future[Generation] = field(default_factory=Future)

    def cancel(self) -> None:
        """Nothing is cancelled here."""


class TimedEngine(ToyEngine):
    """Answers each request after ``seconds``, from one thread; at once without any."""

    answer = Generation(tuple(range(64)), "x" * 256, "length", prompt_tokens=1000, generated_tokens=64)

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Any:  # noqa: ARG002 - protocol
        handle = TimedHandle()
        if self._seconds:
            self._loop.call_soon_threadsafe(self._loop.call_later, self._seconds, handle.future.set_result, self.answer)
        else:
            handle.future.set_result(self.answer)
        return handle


def calls(engine: Any, count: int, in_flight: int) -> None:
    """Make ``count`` requests, ``in_flight`` at a time."""
    free = threading.Semaphore(in_flight)
    sampling = SamplingParams(max_tokens=64)
    for number in range(count):
        free.acquire()
        request = Request(PROMPT, sampling, op_id=f"judge/{number % 5}", instance=number // 5)
        engine.submit(request).future.add_done_callback(lambda _: free.release())
    for _ in range(in_flight):
        free.acquire()


def cost(count: int, in_flight: int, seconds: float, folder: Path) -> tuple[float, float, float]:
    """Wall seconds without and with a journal, and the CPU milliseconds that it adds to a call."""
    plain = TimedEngine(seconds)
    wall, cpu = time.perf_counter(), time.process_time()
    calls(plain, count, in_flight)
    without, without_cpu = time.perf_counter() - wall, time.process_time() - cpu
    with RunJournal.open(str(folder / f"{in_flight}-{seconds}.lmcj")) as journal:
        journal.start({"record": "{}"})
        engine = JournaledEngine(plain, journal)
        wall, cpu = time.perf_counter(), time.process_time()
        calls(engine, count, in_flight)
        with_journal, with_cpu = time.perf_counter() - wall, time.process_time() - cpu
    return without, with_journal, (with_cpu - without_cpu) / count * 1000


def least(folder: Path) -> list[str]:
    """Milliseconds for each of ``CALLS`` in sequence: by the disk alone, and by SQLite alone."""
    page, count = bytes(8192), CALLS // 10
    with (folder / "pages").open("w+b", buffering=0) as file:
        file.write(page * count)
        os.fsync(file.fileno())
        start = time.perf_counter()
        for number in range(2 * count):
            os.pwrite(file.fileno(), page, number // 2 * len(page))
            os.fdatasync(file.fileno())
        disk = (time.perf_counter() - start) / count
    answer = json.dumps({"token_ids": TimedEngine.answer.token_ids, "text": TimedEngine.answer.text})
    file = JournalFile(str(folder / "least.lmcj"), writable=True)
    try:
        with file.transaction():
            file.create()
        start = time.perf_counter()
        for number in range(count):
            place: tuple[Any, ...] = ("generate", number // 5, f"judge/{number % 5}", 0)
            with file.transaction():
                parts = {"digest": bytes(16), "request": "x" * 200, "bound": 1000, "most": 64, "attempts": "[1]"}
                entry = file.begin(*place, **parts)
            with file.transaction():
                file.end(entry, DONE, answer, TimedEngine.answer.usage)
        database = (time.perf_counter() - start) / count
    finally:
        file.close()
    return [f"{disk * 1000:.3f}", f"{database * 1000:.3f}"]


def measured(folder: Path) -> list[list[str]]:
    """One row for each number of requests in flight, with answers at once and after ``SECONDS``."""
    rows: list[list[str]] = []
    for in_flight in IN_FLIGHT:
        for seconds in (0.0, SECONDS):
            count = max(2, min(CALLS, 10 * in_flight)) if seconds else CALLS // (10 if in_flight < 64 else 1)
            without, with_journal, cpu = cost(count, in_flight, seconds, folder)
            added = (with_journal - without) / count * 1000
            share = f"{(with_journal / without - 1) * 100:.1f} %" if seconds else "–"
            rows.append([str(in_flight), f"{seconds:g} s", f"{count:,}", f"{added:.3f}", f"{cpu:.3f}", share])
    return rows


def resumed(folder: Path) -> list[str]:
    """Seconds in which ``lmc run`` ends, whose rows are finished, without its start; with and without its output."""
    (folder / "program.py").write_text(PROGRAM)
    (folder / "rows.jsonl").write_text("".join(json.dumps({"number": number}) + "\n" for number in range(ROWS)))
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "program.py", "--input", "rows.jsonl", "--journal", "j.lmcj"]
    command += ["-o", "out.jsonl", "--resume"]

    def run() -> float:
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return time.perf_counter() - start

    whole, again = run(), run()
    (folder / "out.jsonl").unlink()
    (folder / "out.jsonl.meta.json").unlink()
    rewritten = run()
    assert len((folder / "out.jsonl").read_text().splitlines()) == ROWS
    return [f"{ROWS:,}", f"{whole:.1f} s", f"{again:.1f} s", f"{rewritten:.1f} s"]


def main() -> None:
    """Print the rows, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    build = Path(__file__).parents[1] / "build"  # on a disk: the folder for temporary files may be in memory
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        costs, floor, resumption = measured(Path(folder)), least(Path(folder)), resumed(Path(folder))
    head = ["in flight", "answer after", "calls", "ms per call, wall", "ms per call, CPU", "share of the run"]
    text = f"{machine()}, {processor()}. Prompts of 1,000 tokens, answers of 64; `synchronous=FULL`.\n\n"
    text += table(head, costs)
    text += "\n" + table(
        ["ms per call in sequence: two writes that the disk confirms", "two transactions of SQLite"], [floor]
    )
    text += "\n" + table(["rows", "first run", "resumed", "resumed, output rewritten"], [resumption])
    print(text)
    if arguments.write:
        write_section("journal", "python benchmarks/journal.py --write", text)


if __name__ == "__main__":
    main()

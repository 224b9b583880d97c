"""``lmc run --journal`` in a process that is killed at random moments, and resumed until it ends."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Said

pytestmark = pytest.mark.slow("a batch of many rows in processes that are killed")
FULL = os.environ.get("LMC_TEST_FULL") == "1"
ROWS, KILLS = (1000, 20) if FULL else (300, 3)
REQUESTS = 5
PROGRAM = """
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import lmc
from lmc.ir.engine.toy import ToyEngine

WORKERS = ThreadPoolExecutor(32)


def log(name, text):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{text}\\n".encode())
    os.close(file)


class Slow:
    \"\"\"An answer that takes a while, so that many are in flight.\"\"\"

    def __init__(self, work):
        self.future = Future()
        WORKERS.submit(self._answer, work)

    def _answer(self, work):
        time.sleep(0.002)
        found = work().future.result()
        log("billed", found.prompt_tokens + getattr(found, "generated_tokens", 0))
        self.future.set_result(found)

    def cancel(self):
        pass


submit, score = ToyEngine.submit, ToyEngine.score


def slow_submit(engine, request, on_delta=None):
    log("sent", f"{request.instance} {request.op_id} {request.number}")
    return Slow(lambda: submit(engine, request, on_delta))


def slow_score(engine, request):
    log("sent", f"{request.instance} {request.op_id} {request.number}")
    return Slow(lambda: score(engine, request))


ToyEngine.submit, ToyEngine.score = slow_submit, slow_score


@lmc.tool(effect="writes")
def save(number: int, text: str) -> int:
    log("saved", number)
    return len(text)


@lmc.jit(target="toy")
def grade(s, number: int):
    s += f"Essay {number}: "
    first = s.gen("a", max_tokens=6)
    views = s.fork(2)
    for view, dim in zip(views, ["tone", "style"]):
        view += f" Its {dim}: "
        view.gen("view", max_tokens=4)
    s += f"{views[0]['view']}{views[1]['view']} {save(number, first)} "
    verdict = s.select("verdict", ["yes", "no"])
    return verdict + s.gen("why", max_tokens=6, temperature=1.0)
"""


def sent_by(name: str) -> Counter[tuple[int, str, int]]:
    """Return the number of times that each request reached the engine."""
    found: Counter[tuple[int, str, int]] = Counter()
    for line in Path(name).read_text().splitlines():
        row, op, number = line.split(" ")
        found[int(row), op, int(number)] += 1
    return found


def killed_at(process: subprocess.Popen[str], name: str, count: int) -> bool:
    """Kill a process once ``count`` requests were sent; False where it ended before."""
    while process.poll() is None:
        if Path(name).exists() and Path(name).stat().st_size >= count * len("100 grade/why 0\n"):
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return process.returncode == -signal.SIGKILL
        time.sleep(0.001)
    process.communicate()
    return False


def test_a_killed_batch_is_finished_and_no_finished_request_is_sent_again(
    lmc: Callable[..., Said], program: str, start: Callable[..., Any]
):
    draw = random.Random(os.environ.get("LMC_TEST_FULL", ""))
    Path("killed.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps({"number": number}) + "\n" for number in range(ROWS)))
    command = ["run", "killed.py:grade", "--input", "rows.jsonl"]
    process = start(*command, "-o", "plain.jsonl")
    process.communicate()
    assert process.returncode == 0
    once = sent_by("sent")
    assert sum(once.values()) == len(once) == ROWS * REQUESTS
    for name in ("sent", "saved", "billed"):
        Path(name).unlink()

    command += ["-o", "out.jsonl", "--journal", "j", "--retry-writes", "save", "--resume"]
    reported: Counter[tuple[int, str, int]] = Counter()
    blockers: Counter[int] = Counter()
    moments = sorted(draw.randrange(ROWS * REQUESTS) for _ in range(KILLS))
    for moment in moments:
        if not killed_at(start(*command), "sent", moment):
            break
        if not Path("j").stat().st_size:
            continue
        said = lmc("journal", "j", "--json")
        if "no run has begun" in said.err:
            continue
        listed = json.loads(said.out)
        assert listed["state"] == "running"
        reported.update((entry["row"], entry["op"], entry["sample"]) for entry in listed["in_flight"])
        blockers.update(entry["row"] for entry in listed["blockers"])
    process = start(*command)
    _, said = process.communicate()
    assert process.returncode == 0, said

    rows = sorted(Path("out.jsonl").read_text().splitlines())
    assert len(rows) == ROWS
    assert rows == sorted(Path("plain.jsonl").read_text().splitlines())
    sent = sent_by("sent")
    assert sent.keys() == once.keys()
    repeated = {key: count - 1 for key, count in sent.items() if count > 1}
    assert all(count <= reported[key] for key, count in repeated.items())
    saved = Counter(map(int, Path("saved").read_text().splitlines()))
    assert saved.keys() == set(range(ROWS))
    assert all(count <= 1 + blockers[row] for row, count in saved.items())
    listed = json.loads(lmc("journal", "j", "--json").out)
    assert (listed["state"], listed["rows"], listed["in_flight"]) == ("finished", ROWS, [])
    assert listed["requests"]["finished"] == ROWS * REQUESTS


def test_sessions_that_are_killed_cost_no_more_than_their_budget_together(
    lmc: Callable[..., Said], program: str, start: Callable[..., Any]
):
    """A server outside of the process counts the requests. Each session has another kind of limit."""
    rows = ROWS // 4
    draw = random.Random(os.environ.get("LMC_TEST_FULL", ""))
    Path("killed.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps({"number": number}) + "\n" for number in range(rows)))
    command = ["run", "killed.py:grade", "--input", "rows.jsonl", "-o", "out.jsonl", "--journal", "j"]
    command += ["--retry-writes", "save", "--resume"]
    budgets = [("calls", rows * share) for share in range(1, KILLS + 1)]
    budgets += [("tokens", 60 * rows * share) for share in range(1, KILLS + 1)]
    draw.shuffle(budgets)
    for unit, limit in budgets:
        before = spent()
        killed_at(start(*command, f"--budget-{unit}", str(limit)), "sent", before["calls"] + draw.randrange(rows))
        after = spent()
        assert after["calls"] == before["calls"] or after[unit] <= limit
    unit, limit = "calls", spent()["calls"] + rows
    for _ in range(3):
        process = start(*command, f"--budget-{unit}", str(limit))
        process.communicate()
        assert process.returncode == 1, "the budget is used up"
        assert spent()["calls"] <= limit
    process = start(*command, "--budget-calls", str(100 * rows))
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert len(Path("out.jsonl").read_text().splitlines()) == rows


def spent() -> Mapping[str, int]:
    """Return the requests that were sent, and the tokens of those that were answered."""
    sent, billed = (
        Path(name).read_text().split("\n")[:-1] if Path(name).exists() else [] for name in ("sent", "billed")
    )
    return {"calls": len(sent), "tokens": sum(map(int, billed))}

"""Processes made by fork after programs have run: real ones, from a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lmc
from tests.driver import fork_programs
from tests.driver.programs import judge

pytestmark = pytest.mark.slow("engines in processes that fork")

SCRIPT = """
import multiprocessing, os, sys
from tests.driver.programs import breaks, judge
import lmc

program = judge.on(TARGET)
OTHER = {"kv_tokens": 2000} if TARGET == "builtin" else {"priority": 1}
before = program("essay").__repr__()
breaks.on("toy")("topic")  # with threads for a tool and for what follows a break


def child():
    for use in (
        lambda: program("essay"),
        lambda: program.batch([{"essay": "a"}, {"essay": "b"}])[0].value,
        lambda: program.eager("essay").value,
        lambda: list(program.stream("essay")) and None,
        lambda: judge.on(TARGET, **OTHER)("essay"),
    ):
        try:
            print("same" if repr(use()) == before else "ran", flush=True)
        except lmc.EngineError as error:
            print(type(error).__name__, error.cause.split(":")[0], error.remedy[:40], flush=True)


def parent(status):
    print("child ended", status, "parent agrees", repr(program("essay")) == before, flush=True)


if (pid := os.fork()) == 0:
    child()
    sys.exit(0)
parent(os.waitpid(pid, 0)[1])
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(60)
parent(process.exitcode)
process.kill()
"""
REFUSED = "EngineError no model can run in this process start processes with the spawn method (m"
ENDED = "child ended 0 parent agrees True"


def run(target: str) -> list[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}  # one thread is no pool
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.replace("TARGET", repr(target))],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_after_a_model_ran_a_child_is_refused_each_use_and_the_parent_goes_on():
    assert run("builtin") == ([REFUSED] * 5 + [ENDED]) * 2


def test_after_the_toy_ran_a_child_has_an_engine_of_its_own():
    assert run("toy") == (["same", "ran", "same", "ran", "same", ENDED]) * 2


@pytest.mark.parametrize(("target", "children"), [("toy", 8), ("builtin", 3)])
def test_a_child_of_a_process_that_is_at_work_in_other_threads_never_hangs(target: str, children: int):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", fork_programs.__name__, target, str(children)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"[(3, {children})] []\n"


def test_a_child_is_refused_the_stream_of_its_parent_which_goes_on():
    stream = judge.on("toy").stream("essay")
    first = next(stream)
    pid = os.fork()
    if pid == 0:
        refused = 0
        for use in (lambda: next(stream), lambda: stream.result, stream.close):
            try:
                use()
            except lmc.EngineError as error:
                refused += "forked" in error.cause
        os._exit(refused)
    assert fork_programs.ended(pid) == 3
    assert [first, *stream]
    assert stream.result.error is None

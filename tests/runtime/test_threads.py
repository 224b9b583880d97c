import subprocess
import sys
import threading
import time

import pytest

from lmc.runtime.threads import DaemonPool


def test_it_runs_work_in_a_bounded_number_of_threads() -> None:
    pool = DaemonPool(3, "test")
    gate = threading.Barrier(3, timeout=10)
    names = [pool.submit(lambda: (gate.wait(), threading.current_thread().name)[1]) for _ in range(6)]
    assert {future.result(10) for future in names} == {"test-1", "test-2", "test-3"}


def test_an_idle_thread_takes_the_next_work() -> None:
    pool = DaemonPool(8, "test")
    for _ in range(5):
        assert pool.submit(lambda: threading.current_thread().name).result(10) == "test-1"
        deadline = time.monotonic() + 5
        while pool._idle == 0 and time.monotonic() < deadline:
            time.sleep(0.001)


def test_errors_go_to_the_future() -> None:
    future = DaemonPool(1, "test").submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        future.result(10)


def test_shutdown_cancels_what_waits_and_refuses_more() -> None:
    pool = DaemonPool(1, "test")
    started, go_on = threading.Event(), threading.Event()

    def hold() -> bool:
        started.set()
        return go_on.wait(10)

    running, waiting = pool.submit(hold), pool.submit(int, "1")
    assert started.wait(10)
    pool.shutdown(cancel_futures=True)
    assert waiting.cancelled()
    go_on.set()
    assert running.result(10)
    with pytest.raises(RuntimeError):
        pool.submit(int, "1")


def test_the_process_does_not_wait_for_a_running_call() -> None:
    code = (
        "import time; from lmc.runtime.threads import DaemonPool as P; P(1, '').submit(time.sleep, 60); time.sleep(1)"
    )
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
    assert time.monotonic() - start < 40

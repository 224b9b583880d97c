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


def test_work_that_may_be_in_vain_has_half_of_the_threads_and_waits_for_all_other() -> None:
    pool = DaemonPool(4, "test")
    go_on, done = threading.Event(), list[str]()
    started = threading.Semaphore(0)

    def hold(name: str) -> None:
        started.release()
        assert go_on.wait(10)
        done.append(name)

    early = [pool.submit_early(hold, "early") for _ in range(3)]
    for _ in range(2):
        assert started.acquire(timeout=10)
    certain = [pool.submit(hold, "certain") for _ in range(2)]  # there are threads for these at once
    for _ in range(2):
        assert started.acquire(timeout=10)
    assert not started.acquire(timeout=0.05)
    assert [future.running() for future in early] == [True, True, False]
    later = pool.submit(hold, "later")
    go_on.set()
    for future in (*early, *certain, later):
        future.result(10)
    assert started.acquire(timeout=10)
    assert started.acquire(timeout=10)


def test_of_one_thread_none_is_for_work_that_may_be_in_vain() -> None:
    pool = DaemonPool(1, "test")
    early = pool.submit_early(int, "1")
    assert pool.submit(int, "2").result(10) == 2
    assert not early.running()
    assert early.cancel()
    later = pool.submit_early(int, "3")
    assert len(pool._early) == 1  # what was withdrawn is gone
    pool.shutdown(cancel_futures=True)
    assert later.cancelled()


def test_what_is_certain_comes_before_what_may_be_in_vain() -> None:
    pool = DaemonPool(2, "test")
    go_on, order = threading.Event(), list[str]()
    held = [pool.submit(go_on.wait, 10) for _ in range(2)]
    early = [pool.submit_early(order.append, "early") for _ in range(2)]
    certain = [pool.submit(order.append, "certain") for _ in range(4)]
    go_on.set()
    for future in (*held, *early, *certain):
        future.result(10)
    assert order.count("early") == 2
    assert order.index("early") >= 2  # one of two threads may be told to go on before the other


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


def test_work_that_nobody_waits_for_keeps_no_place() -> None:
    pool = DaemonPool(1, "test")
    never, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        never.wait()

    hung = pool.submit(hang)
    later = pool.submit(threading.current_thread)
    assert begun.acquire(timeout=10)
    pool.abandon(hung)
    other = later.result(10)
    never.set()
    hung.result(10)
    assert pool.submit(threading.current_thread).result(10) is other  # that of the first has ended
    deadline = time.monotonic() + 5
    while pool._abandoned and time.monotonic() < deadline:
        time.sleep(0.001)
    assert (pool._threads, pool._abandoned, pool._running) == (1, 0, {})


def test_early_work_that_nobody_waits_for_makes_room_for_other_early_work() -> None:
    pool = DaemonPool(2, "test")
    never = threading.Event()
    hung = pool.submit_early(never.wait)
    later = pool.submit_early(int, "1")
    while not hung.running():
        time.sleep(0.001)
    pool.abandon(hung)
    assert later.result(10) == 1
    never.set()


def test_work_that_has_not_begun_is_cancelled_when_nobody_waits_for_it() -> None:
    pool = DaemonPool(1, "test")
    go_on = threading.Event()
    pool.submit(go_on.wait)
    waiting = pool.submit(int, "1")
    pool.abandon(waiting)
    assert waiting.cancelled()
    go_on.set()


def test_threads_that_hang_are_bounded() -> None:
    pool = DaemonPool(1, "test")
    never, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        never.wait()

    for _ in range(17):
        hung = pool.submit(hang)
        assert begun.acquire(timeout=10)
        pool.abandon(hung)
    later = pool.submit(int, "1")
    assert (pool._abandoned, pool._threads) == (16, 1)
    assert not begun.acquire(timeout=0.05)
    assert not later.done()
    never.set()
    assert later.result(10) == 1

"""The pool of native/pool.c, through a kernel that uses it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from lmc.runtime.kernels import layers
from lmc.runtime.kernels.native.library import why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason="no C compiler"),
    # What Python 3.12 and later warn of is what is tested.
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]
CHILD_SECONDS = 10
# Big enough to be shared out, and made here: torch's own threads hang in a process made by fork.
STATES, WEIGHT = torch.ones(512, 256), torch.full((256,), 3.0)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def in_child(work: Callable[[], bool]) -> bool:
    """What `work` gives in a process made by fork; False where it hangs."""
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    until = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def is_right() -> bool:
    results = [layers.rms_norm(STATES, WEIGHT, 0.0) for _ in range(3)]
    return all(result[row, 7].item() == 3.0 for result in results for row in (0, 511))


def test_a_process_made_by_fork_has_a_pool_of_its_own() -> None:
    assert is_right()
    assert in_child(is_right)
    assert in_child(lambda: in_child(is_right))
    assert is_right()


def test_a_fork_during_a_run_does_not_disturb_parent_or_child() -> None:
    stop = threading.Event()
    broken: list[int] = []

    def run() -> None:
        while not stop.is_set():
            if not is_right():
                broken.append(1)

    runner = threading.Thread(target=run)
    runner.start()
    try:
        assert all(in_child(is_right) for _ in range(5))
    finally:
        stop.set()
        runner.join()
    assert not broken


def test_callers_at_once_wait_for_each_other() -> None:
    results: list[bool] = []
    callers = [threading.Thread(target=lambda: results.extend(is_right() for _ in range(20))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [True] * 80

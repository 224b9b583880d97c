"""From the first request to the end: statistics, many requests, shutdown, files that change, killed threads."""

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmc.cache.eviction import NextUse
from lmc.ir.engine.protocol import Request, SamplingParams, ScoreRequest
from lmc.ir.errors import EngineError, RequestCancelledError
from lmc.runtime.local import LocalEngine, load_local_engine
from tests.runtime.local.checkpoints import SENTENCES
from tests.runtime.local.conftest import OpenEngine

pytestmark = pytest.mark.slow("engines that end, in processes of their own")

LONG = SamplingParams(max_tokens=150, min_tokens=150)
MANY = 100_000 if os.environ.get("LMC_TEST_FULL") == "1" else 3000


def test_statistics_count_rows_and_split_the_time(open_engine: OpenEngine) -> None:
    engine = open_engine(prefill_tokens=16)
    words = engine.tokenizer.encode(SENTENCES[0])
    start = time.perf_counter()
    handles = [engine.submit(Request((*words, last), SamplingParams(max_tokens=8, min_tokens=8))) for last in range(4)]
    handles += [engine.submit(Request(words, SamplingParams(max_tokens=20)), lambda _: time.sleep(0.03))]
    for handle in handles:
        handle.future.result(30)
    engine.score(ScoreRequest(words, ((5, 6),))).future.result(30)
    engine.close()
    elapsed = time.perf_counter() - start
    found = engine.statistics
    assert found.requests == 6
    # Every generated token but a request's last is computed as a row of its own.
    assert found.rows == found.prefilled_tokens + found.generated_tokens - len(handles)
    assert found.rows / found.steps == found.mean_rows
    assert found.mean_rows < found.largest_step <= 16 + 4
    parts = (found.model_seconds, found.sampling_seconds, found.scheduling_seconds, found.delivery_seconds)
    assert min(parts) > 0
    assert found.delivery_seconds > 0.03
    assert sum(parts) < elapsed


def test_an_engine_that_did_nothing_has_no_mean(open_engine: OpenEngine) -> None:
    assert open_engine().statistics.mean_rows == 0.0


def live_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_many_requests_leave_nothing_behind(checkpoints: dict[str, Path]) -> None:
    """Ten thousands of requests with prompts of their own: objects, memory, tree and heaps stay as they are."""
    with load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=3000, max_running=128) as engine:
        memory, deadlines = engine._worker._scheduler.memory, engine._worker._deadlines
        under_way: deque[Any] = deque()
        seen: list[tuple[int, int]] = []
        for number in range(MANY):
            prompt = (number % 300, number // 300 % 300, number // 90_000, 7, 8)
            sampling = SamplingParams(max_tokens=1 + number % 3)
            under_way.append(engine.submit(Request(prompt, sampling, instance=number, timeout=3600.0)))
            if number % 50 == 0:
                under_way.append(engine.score(ScoreRequest(prompt, ((5, 6),))))
                under_way.append(engine.prefill(prompt))
                engine.unpin(under_way.pop().future.result(60))
            while len(under_way) > 300 or (under_way and number % (MANY // 3) == MANY // 3 - 1):
                under_way.popleft().future.result(60)
            if number % (MANY // 3) == MANY // 3 - 1:
                gc.collect()
                seen.append((len(gc.get_objects()), live_bytes()))
                assert memory.radix.total_tokens <= 3000
                assert memory.radix._node_count <= 3000
                eviction = memory.radix.eviction
                assert isinstance(eviction, NextUse)
                heaps = (eviction._dead, eviction._aged, eviction._expected)
                assert all(len(heap._entries) <= 2 * 3000 + 64 for heap in heaps)
                assert (len(deadlines), len(deadlines._heap)) <= (0, 64)
        (_, first), (objects, size), (objects_later, size_later) = seen
        assert objects_later - objects < 3000  # the tree itself breathes: a node is a few objects
        # A leak grows in each third; threads that other tests of this process left may grow in one of them.
        assert min(size - first, size_later - size) < 30 * 2**20
        assert engine.statistics.evicted_tokens > 0
        assert (engine._worker._tasks, engine._worker._pins) == ({}, set())


def test_without_a_prefix_cache_ended_requests_leave_nothing(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=200, prefix_cache=False)
    memory = engine._worker._scheduler.memory
    tasks: list[weakref.ref[Any]] = []
    for number in range(60):
        prompt = (number, 7, 8)
        handles: list[Any] = [engine.submit(Request(prompt, SamplingParams(max_tokens=1 + number % 3)))]
        handles += [engine.score(ScoreRequest(prompt, ((5, 6), (6, 5)))), engine.submit(Request(prompt, LONG))]
        tasks += [weakref.ref(handle._task) for handle in handles]
        for handle in handles[:2]:
            handle.future.result(30)
        handles[2].cancel()
        with pytest.raises(RequestCancelledError):
            handles[2].future.result(30)
        assert (memory.pool.used_count, memory.radix._roots) == (0, {})
    gc.collect()
    assert sum(task() is not None for task in tasks) <= 3  # those of the last round
    assert engine.statistics.evicted_tokens == 0


def test_a_model_folder_may_change_or_go_while_the_engine_runs(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoints["llama"], tmp_path / "model"))
    with load_local_engine(folder, device="cpu", kv_tokens=300, prefix_cache=False) as engine:
        words = engine.tokenizer.encode(SENTENCES[0])

        def answer() -> tuple[int, ...]:
            return engine.submit(Request(words, SamplingParams(max_tokens=9))).future.result(30).token_ids

        expected = answer()
        weights = folder / "model.safetensors"
        os.truncate(weights, 10)  # a mapping of the file would now end the process with SIGBUS
        assert answer() == expected
        weights.write_bytes(b"\xff" * weights.stat().st_size)
        (folder / "tokenizer.json").write_text("{")
        assert answer() == expected
        shutil.rmtree(folder)
        assert answer() == expected
        assert str(folder) not in Path("/proc/self/maps").read_text(encoding="utf-8")


def test_a_closed_engine_holds_neither_weights_nor_pages(checkpoints: dict[str, Path]) -> None:
    engine = load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=100)
    handle = engine.submit(Request((5, 6), SamplingParams(max_tokens=3)))
    handle.future.result(30)
    paged: Any = engine._worker._model
    held = [weakref.ref(paged._model), *(weakref.ref(pages) for pages in (*paged._keys, *paged._values))]
    engine.close()
    gc.collect()
    assert [each() for each in held] == [None] * len(held)
    with pytest.raises(EngineError, match=r"engine was closed\n  remedy: call the program again"):
        engine.submit(Request((5, 6), SamplingParams())).future.result(0)
    assert handle.future.result().prompt_tokens == 2


def test_close_in_the_middle_of_a_step_waits_for_it(open_engine: OpenEngine) -> None:
    engine = open_engine()
    in_step, go_on = threading.Event(), threading.Event()
    forward = engine._worker._model.forward

    def slow(slices: Any) -> Any:
        in_step.set()
        assert go_on.wait(30)
        return forward(slices)

    engine._worker._model.forward = slow
    handle = engine.submit(Request((5, 6), SamplingParams(max_tokens=400)))
    assert in_step.wait(30)
    closers = [threading.Thread(target=engine.close) for _ in range(3)]
    for closer in closers:
        closer.start()
    assert not handle.future.done()
    go_on.set()
    for closer in closers:
        closer.join(30)
    with pytest.raises(EngineError, match="engine was closed"):
        handle.future.result(0)
    assert not engine._worker.is_alive


def test_close_from_a_callback_ends_the_engine_without_waiting_for_itself(open_engine: OpenEngine) -> None:
    engine = open_engine()
    request = Request(engine.tokenizer.encode(SENTENCES[0]), SamplingParams(max_tokens=400, min_tokens=400))
    handles = [engine.submit(request, lambda _: engine.close()), engine.submit(request)]
    for handle in handles:
        with pytest.raises(EngineError, match="engine was closed"):
            handle.future.result(30)
    engine.close()
    assert not engine._worker.is_alive
    assert not engine._finalizer.alive


def kill(thread: threading.Thread) -> None:
    """Raise SystemExit in another thread, wherever it is."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


@pytest.mark.parametrize("seconds", [0.0, 0.003, 0.01, 0.03])
def test_a_killed_thread_leaves_nobody_waiting(seconds: float, open_engine: OpenEngine) -> None:
    engine = open_engine()
    request = Request(engine.tokenizer.encode(SENTENCES[0]), SamplingParams(max_tokens=400, min_tokens=400))
    handles = [engine.submit(request) for _ in range(5)]
    time.sleep(seconds)
    kill(engine._worker._thread)
    for handle in [*handles, engine.submit(request), engine.score(ScoreRequest((5, 6), ((7,),)))]:
        with pytest.raises(EngineError, match="engine stopped: SystemExit") as failure:
            handle.future.result(30)
        assert failure.value.remedy
    engine.close()


def test_a_callback_that_exits_ends_its_request_only(open_engine: OpenEngine) -> None:
    engine = open_engine()
    request = Request(engine.tokenizer.encode(SENTENCES[0]), SamplingParams(max_tokens=9, min_tokens=9))
    leaving, fine = engine.submit(request, lambda _: sys.exit(3)), engine.submit(request)
    with pytest.raises(EngineError, match="on_delta callback raised SystemExit: 3"):
        leaving.future.result(30)
    assert fine.future.result(30).generated_tokens == 9


def test_a_done_callback_that_exits_ends_nothing(open_engine: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    engine = open_engine()
    prompt = engine.tokenizer.encode(SENTENCES[0])
    leaving = engine.submit(Request(prompt, SamplingParams(max_tokens=2, min_tokens=2)))
    fine = engine.submit(Request(prompt, SamplingParams(max_tokens=30, min_tokens=30)))
    leaving.future.add_done_callback(lambda _: sys.exit(3))
    assert fine.future.result(30).generated_tokens == 30
    assert leaving.future.result(0).generated_tokens == 2
    assert "SystemExit: 3" in caplog.text
    # The same at the end, where everything that is outstanding fails.
    handles = [engine.submit(Request(prompt, SamplingParams(max_tokens=400, min_tokens=400))) for _ in range(3)]
    for handle in handles:
        handle.future.add_done_callback(lambda _: sys.exit(3))
    engine.close()
    for handle in handles:
        with pytest.raises(EngineError, match="engine was closed"):
            handle.future.result(0)
    assert engine._worker._unresolved == set()


def test_an_error_of_the_engine_itself_in_giving_a_result_fails_everybody(open_engine: OpenEngine) -> None:
    engine = open_engine()
    broken: Any = engine.submit(Request((5, 6), SamplingParams(max_tokens=300, min_tokens=300)))
    other = engine.submit(Request((5, 7), SamplingParams(max_tokens=400, min_tokens=400)))
    broken._task.result = lambda: 1 // 0
    for handle in (broken, other):
        with pytest.raises(EngineError, match="engine stopped: ZeroDivisionError"):
            handle.future.result(30)


def test_commands_after_the_end_do_not_pile_up(open_engine: OpenEngine) -> None:
    engine = open_engine()
    handle = engine.submit(Request((5, 6), SamplingParams(max_tokens=300)))
    pins = [engine.prefill((5, 6, 7)).future.result(30) for _ in range(3)]
    engine.close()
    for pin in pins:
        handle.cancel()
        engine.unpin(pin)
    assert len(engine._worker._inbox) == 0


def in_child(check: Callable[[], None]) -> bool:
    """Whether `check` ends well in a forked process, within 10 seconds; that process is not to run anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of newer Pythons: forking a process that has threads
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            check()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_process_is_told_that_the_engine_stayed_behind(
    open_engine: OpenEngine, checkpoints: dict[str, Path]
) -> None:
    engine = open_engine()
    before = engine.submit(Request((5, 6), SamplingParams(max_tokens=300)))
    pin = engine.prefill((5, 6, 7)).future.result(30)

    def check() -> None:
        before.cancel()
        request = Request((5, 6), SamplingParams(max_tokens=2))
        for handle in (engine.submit(request), engine.score(ScoreRequest((5, 6), ((7,),))), engine.prefill((5, 6))):
            error = handle.future.exception(0)
            assert isinstance(error, EngineError)
            assert "no model can run in this process: it was forked" in str(error)
            assert error.remedy is not None
            assert error.remedy.startswith("start processes with the spawn method")
        with pytest.raises(EngineError, match="no model can run in this process"):
            engine.unpin(pin)
        with pytest.raises(EngineError, match="no model can run in this process"):
            load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=100)
        engine.close()

    assert in_child(check)
    with engine._worker._condition:  # as it may be at the moment of a fork: nobody is left to release it
        assert in_child(check)
    assert before.future.result(30).generated_tokens > 0
    engine.unpin(pin)


def test_an_interpreter_that_ends_ends_a_busy_engine(checkpoints: dict[str, Path]) -> None:
    script = textwrap.dedent("""
        import sys
        from lmc.ir.engine.protocol import Request, SamplingParams
        from lmc.runtime.local import load_local_engine

        engine = load_local_engine(sys.argv[1], device="cpu", kv_tokens=4000)
        ask = Request((5, 6, 7), SamplingParams(max_tokens=450, min_tokens=450))
        handles = [engine.submit(ask) for _ in range(30)]
        engine.submit(Request((5, 6), SamplingParams(max_tokens=1))).future.result(30)
        print("leaving")
    """)
    command = [sys.executable, "-c", script, str(checkpoints["llama"])]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "leaving\n", "")


def test_an_engine_with_work_left_can_be_forgotten(checkpoints: dict[str, Path]) -> None:
    def leave() -> tuple[Any, threading.Thread]:
        engine: LocalEngine = load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=1000)
        handle = engine.submit(Request((5, 6, 7), SamplingParams(max_tokens=500, min_tokens=500)))
        return handle.future, engine._worker._thread

    future, thread = leave()
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()
    assert future.done()

import asyncio
import threading

from lmc.ir.engine.loop_thread import LoopThread


def test_it_runs_in_its_own_thread_and_cancels_what_is_left_when_it_is_closed():
    made = LoopThread("test-loop")
    began, ended = threading.Event(), threading.Event()
    seen: list[bool] = []

    async def work() -> None:
        seen.append(made.is_here)
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(work(), made._loop)
    assert began.wait(10)
    assert not made.is_here
    made.close()
    assert ended.wait(10)
    assert seen == [True]
    assert future.cancelled()
    assert not made._thread.is_alive()

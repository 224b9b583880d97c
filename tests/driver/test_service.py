import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lmc.driver.targets.service import BackgroundLoop, EngineCache, service
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import InputError, LmcError, RequestCancelledError


def test_one_engine_and_one_tokenizer_per_target():
    engines = EngineCache()
    toy = engines.engine(Target("toy"))
    assert engines.engine(Target("toy")) is toy
    assert engines.tokenizer(Target("toy")) is engines.tokenizer(Target("toy", dtype="bfloat16"))
    engines.close()
    assert engines.engine(Target("toy")) is not toy


def test_closing_closes_every_engine():
    engines = EngineCache()
    toy = engines.engine(Target("toy"))
    assert isinstance(toy, ToyEngine)
    engines.close()
    assert toy._closed


def test_a_relative_path_means_the_folder_of_the_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=str(tmp_path / "none")):
        EngineCache().tokenizer(Target("local", "none"))


def test_work_runs_in_the_background():
    loop = BackgroundLoop()

    async def work() -> int:
        with pytest.raises(LmcError, match="from a callback of another program's run") as caught:
            loop.check_outside()
        assert caught.value.remedy
        await asyncio.sleep(0)
        return 3

    assert loop.start(work()).result(5) == 3
    loop.check_outside()
    loop.close()
    assert not loop._thread.is_alive()


def test_running_work_can_be_stopped_at_any_time():
    loop = BackgroundLoop()
    for pause in (0.0, 0.02):
        running = loop.start(asyncio.sleep(60))
        time.sleep(pause)
        start = time.monotonic()
        running.stop()
        assert time.monotonic() - start < 5
        with pytest.raises(RequestCancelledError, match="the run was cancelled"):
            running.result()
        running.stop()
    loop.close()


def test_what_work_raises_comes_out():
    loop = BackgroundLoop()

    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.start(work()).result(5)

    async def elsewhere() -> None:
        with pytest.raises(ValueError, match="no"):
            await loop.start(work()).wait()

    asyncio.run(elsewhere())
    loop.close()


def test_a_loop_that_stops_waiting_says_nothing_and_leaves_nothing(caplog: pytest.LogCaptureFixture):
    loop = BackgroundLoop()
    ends: list[str] = []
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ends.append("work")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: ends.append(str(context)))
        running = loop.start(work())
        assert await asyncio.to_thread(begun.wait, 60)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(running.wait(), 0.05)
        ends.append("waiting")
        gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    gc.collect()
    assert ends == ["work", "waiting"]
    assert not caplog.records
    loop.close()


def test_who_cancels_twice_does_not_wait(caplog: pytest.LogCaptureFixture):
    loop = BackgroundLoop()
    begun, hold = threading.Event(), threading.Event()
    said: list[str] = []

    async def work() -> None:
        begun.set()
        hold.wait(10)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(str(context)))
        task = asyncio.ensure_future(loop.start(work()).wait())
        assert await asyncio.to_thread(begun.wait, 10)  # work that has not begun ends at once
        for _ in range(2):
            await asyncio.sleep(0.02)
            assert not task.done()
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    hold.set()
    loop.close()
    gc.collect()
    assert not said
    assert not caplog.records


def test_closing_ends_what_runs(caplog: pytest.LogCaptureFixture):
    loop = BackgroundLoop()
    ends: list[str] = []
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.gather(asyncio.sleep(60), asyncio.sleep(60))
        finally:
            await asyncio.sleep(0.01)
            ends.append("work")

    running = loop.start(work())
    assert begun.wait(60)
    loop.close()
    with pytest.raises(RequestCancelledError, match="the run was cancelled"):
        running.result(0)
    gc.collect()
    assert ends == ["work"]
    assert not loop._thread.is_alive()
    assert not caplog.records


FIRST = """
import threading, time
from lmc.driver.targets import service

made = []
service.Service.__init__ = lambda self: (time.sleep(0.05), made.append(self))[0]
service.Service.close = lambda self: None
threads = [threading.Thread(target=service.service) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(made))
"""


def test_threads_that_come_first_together_get_one_service():
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1\n", done.stderr


def test_a_process_has_one_service_and_a_forked_child_its_own():
    mine = service()
    assert service() is mine
    reader, writer = os.pipe()
    if os.fork() == 0:
        other = service()
        works = other is not mine and other.loop.start(asyncio.sleep(0, 7)).result(5) == 7
        mine.close()  # what the child inherited is not its own to close
        os.write(writer, b"1" if works else b"0")
        os._exit(0)
    assert os.read(reader, 1) == b"1"
    assert mine.loop.start(asyncio.sleep(0, 8)).result(5) == 8

"""Clients that go away: what they asked for is cancelled, and its memory is free."""

import asyncio
import contextlib
import json
import random
import resource
import socket
import struct
import time
from collections.abc import Generator
from typing import Any

import httpx2
import pytest

from lmc.cache.pool import InvariantError
from lmc.driver.targets.registry import make_engine
from lmc.ir.engine.target import Target
from tests.runtime.server.in_process import Inside, running

STREAMS = 200
ROUNDS = 5


@pytest.fixture(scope="module")
def server() -> Generator[Inside]:
    engine: Any = make_engine(Target("builtin", kv_tokens=4096))
    with running(engine) as inside:
        yield inside
    engine.close()


def body_of(number: int, rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a path and a request that would run for long."""
    text = f"Story {number}: " + "so it goes. " * rng.randrange(20)
    stream = rng.random() < 0.7
    if number % 3 == 0:
        sampling = {"max_new_tokens": 2000, "min_new_tokens": 2000}
        return "/generate", {"text": text, "stream": stream, "sampling_params": sampling}
    messages = [{"role": "user", "content": text}]
    if number % 3 == 1:
        return "/v1/messages", {"model": "model", "messages": messages, "max_tokens": 2000, "stream": stream}
    more = {"min_tokens": 2000, "n": rng.choice([1, 2])}
    return "/v1/chat/completions", {
        "model": "model",
        "messages": messages,
        "max_tokens": 2000,
        "stream": stream,
        **more,
    }


async def leave(port: int, number: int, rng: random.Random) -> None:
    """Send a request and go away at some moment, politely or not."""
    path, body = body_of(number, rng)
    content = json.dumps(body).encode()
    fields = ["Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {len(content)}"]
    head = "\r\n".join([f"POST {path} HTTP/1.1", *fields, "", ""])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    cut = rng.randrange(len(content)) if rng.random() < 0.1 else len(content)
    writer.write(head.encode() + content[:cut])
    await writer.drain()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(reader.read(rng.choice([1, 200, 2000])), rng.random() * 2)
    if rng.random() < 0.3:  # reset the connection
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


def _check_pages(scheduler: Any, end: float) -> None:
    """Check that no page is lost at ``end``: the engine's thread may still be releasing those of the last step."""
    while True:
        try:
            scheduler.memory.check_invariants(())
        except InvariantError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def test_clients_that_leave_release_all_they_hold(server: Inside):
    scheduler = server.engine._worker._scheduler
    peaks: list[int] = []
    for number in range(ROUNDS):
        rng = random.Random(number)

        async def all_of_them(rng: random.Random = rng) -> None:
            await asyncio.gather(*(leave(server.port, each, rng) for each in range(STREAMS)))

        asyncio.run(all_of_them())
        end = time.monotonic() + 60
        while server.model.in_flight or scheduler.has_work:
            assert time.monotonic() < end, "requests of clients that are gone still run"
            time.sleep(0.01)
        _check_pages(scheduler, end)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[-1] - peaks[1] < 30_000, "kilobytes of memory grow from round to round"
    answer = httpx2.post(f"{server.url}/generate", json={"text": "x", "sampling_params": {"max_new_tokens": 2}})
    assert answer.status_code == 200


def test_the_pages_of_a_stream_are_free_one_step_after_its_client_is_gone(server: Inside):
    scheduler = server.engine._worker._scheduler
    steps: list[bool] = []
    body = {"text": "x", "stream": True, "sampling_params": {"max_new_tokens": 2000, "min_new_tokens": 2000}}
    noticed = 0

    def on_step(_: Any) -> None:
        steps.append(server.model.in_flight > 0)

    stop = server.engine.observe(on_step)
    try:
        with httpx2.stream("POST", f"{server.url}/generate", json=body) as answer:
            next(answer.iter_lines())
        end = time.monotonic() + 30
        while scheduler.has_work:
            assert time.monotonic() < end
            time.sleep(0.001)
    finally:
        stop()
    noticed = steps.index(False) if False in steps else len(steps)
    assert len(steps) - noticed <= 1

"""Streams that are left before their end: nothing of them is closed twice, and no connection stays open."""

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import Handle, Request, SamplingParams
from lmc.ir.tokens.messages import message_tokenizer
from lmc.runtime.remote import engine as engine_module
from lmc.runtime.remote.engine import RemoteEngine
from tests.runtime.remote.hosted_runs import KEY_NAME, SPECS, hosted
from tests.runtime.remote.simulator import Simulator

FULL = os.environ.get("LMC_TEST_FULL") == "1"
REQUESTS = 200 if FULL else 20


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_streams_that_are_left_are_closed_once(api: str):
    """At a stop, or cancelled; the garbage collector finds what is left of them.

    No generator of lmc is left to the event loop, which closes those that it finds at any time.
    """
    failures: list[Any] = []
    spec, path = SPECS[api]
    text = " ".join(f"word{number}" for number in range(40))
    with hosted(), Simulator(lambda _: text, event_seconds=0.001) as simulator:
        settings: dict[str, Any] = {"base_url": simulator.url + path, "api_key_env": KEY_NAME, "concurrency": 40}
        if api == "responses":
            settings["api"] = api
        engine = RemoteEngine(hosted_target(spec, settings), message_tokenizer())

        async def watch() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
            hooks = sys.get_asyncgen_hooks()

            def left(generator: Any) -> None:
                if Path(generator.ag_code.co_filename).is_relative_to(Path(engine_module.__file__).parent):
                    failures.append(generator)
                assert hooks.finalizer is not None
                hooks.finalizer(generator)

            sys.set_asyncgen_hooks(finalizer=left)

        try:
            engine._loop.start(watch())
            stops = ("word9 ", "word17 ", "a", "b", "word33")  # more than a provider takes
            handles: list[Handle[Any]] = []
            for number in range(REQUESTS):
                prompt = (256, *f"user\n{number}".encode(), 257, 256, *b"assistant\n")
                sampling = SamplingParams(max_tokens=200, stop=stops[number % 2 :])
                handles.append(engine.submit(Request(prompt, sampling), lambda _: None))
            for number, handle in enumerate(handles):
                if number % 5 == 0:
                    handle.cancel()
            errors = [handle.future.exception(60.0) for handle in handles]
            for _ in range(2):
                gc.collect()
                time.sleep(0.05)
        finally:
            engine.close()
    assert failures == []
    assert errors.count(None) >= REQUESTS * 0.8, "they are left at a stop"

"""Programs of lmc on the simulated providers: targets, rows, and engines whose pauses and minutes are short."""

import contextlib
import functools
import sqlite3
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

import lmc
from lmc.driver.targets.hosted import RemoteTarget, hosted_target, remote
from lmc.ir.engine.target import Target
from lmc.ir.tokens.messages import message_tokenizer
from lmc.runtime.remote import attempts, engine
from lmc.runtime.remote.engine import RemoteEngine
from lmc.runtime.remote.limits import RateLimits
from tests.runtime.remote.simulator import KEY, Simulator

PROGRAM = """
import lmc


@lmc.jit
def answer(s, question: str):
    s.user(question)
    with s.assistant():
        return s.gen("answer", max_tokens=60)
"""
KEY_NAME = "LMC_TEST_KEY"
SPECS = {
    "chat": ("openai:gpt-4.1", "/v1"),
    "chat-reasoning": ("openai:gpt-5.6", "/v1"),
    "responses": ("openai:gpt-5.6", "/v1"),
    "messages": ("anthropic:claude-haiku-4-5", ""),
}


@lmc.jit
def answer(s: Any, question: str):
    """One request."""
    s.user(question)
    with s.assistant():
        return s.gen("answer", max_tokens=60)


@lmc.jit
def discussion(s: Any, question: str):
    """Four requests: two branches, and one before and behind them."""
    s.system("You are brief.")
    s.user(f"Question: {question}")
    with s.assistant():
        first = s.gen("first", max_tokens=60)
    branches = s.fork(2)
    for number, branch in enumerate(branches):
        branch.user(f"View {number} of {first}?")
        with branch.assistant():
            branch.gen("view", max_tokens=60)
    views = [branch["view"] for branch in branches]
    s.user(f"Sum up {views[0]} and {views[1]}.")
    with s.assistant():
        last = s.gen("last", max_tokens=60)
    return [first, *views, last]


ON_THE_WAY = 0.3
"""Seconds that a request may be on its way to the server, in place of the one of ``WINDOW``."""
REQUESTS = 4
"""Of one row of ``discussion``."""


def target(url: str, api: str, **settings: Any) -> RemoteTarget:
    """Return the target of a simulated provider at ``url``, for one of ``SPECS``."""
    spec, path = SPECS[api]
    settings = {"base_url": f"{url}{path}", "api_key_env": KEY_NAME, **settings}
    if api == "responses":
        settings["api"] = "responses"
    return remote(spec, **settings)


@contextmanager
def hosted(key: str = KEY, pause: float = 0.01, minute: float = 60.0) -> Generator[None]:
    """Run engines that have the key, short pauses and short minutes. They are closed behind the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_NAME, key)
        patch.setattr(attempts, "_FIRST_PAUSE", pause)
        patch.setattr(attempts, "_LONGEST_PAUSE", 4 * pause)
        patch.setattr(engine, "RateLimits", functools.partial(RateLimits, window=minute + ON_THE_WAY))
        try:
            yield
        finally:
            lmc.close()


@contextmanager
def simulated_engines(
    simulator: Simulator, specs: Mapping[str, tuple[str, str, dict[str, Any]]], **settings: Any
) -> Generator[dict[str, tuple[Target, RemoteEngine]]]:
    """Engines that ask a simulator, with their targets: ``specs`` are targets, paths of APIs and settings by name."""
    made: dict[str, tuple[Target, RemoteEngine]] = {}
    for name, (spec, path, more) in specs.items():
        given = {"base_url": simulator.url + path, "api_key_env": KEY_NAME, **settings, **more}
        place = hosted_target(spec, given)
        made[name] = place, RemoteEngine(place, message_tokenizer())
    try:
        yield made
    finally:
        for _, made_engine in made.values():
            made_engine.close()


def broken_off(program: Any, path: str) -> None:
    """End a run while its answer is read, with the id of the answer on disk."""
    with program.on(journal=path).stream("What?") as stream:
        next(stream)  # the answer stops coming behind its first text
        limit = time.monotonic() + 20.0
        while not kept_ids(path) and time.monotonic() < limit:
            time.sleep(0.02)


def kept_ids(path: str) -> list[str]:
    """The ids of answers that are on disk; none before the first request."""
    with contextlib.closing(sqlite3.connect(path)) as database, contextlib.suppress(sqlite3.OperationalError):
        return [each for (each,) in database.execute("SELECT result FROM entries WHERE state = 0") if each]
    return []

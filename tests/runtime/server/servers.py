"""Servers for tests: ``lmc serve`` as a process on a free port."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai

from tests.processes import Running

SECONDS = 120.0
FULL = os.environ.get("LMC_TEST_FULL") == "1"


@dataclass
class Served:
    """A server that runs: where it is, the name of its model, and what it prints to standard error."""

    process: Running | subprocess.Popen[str]
    url: str = ""
    model: str = ""
    lines: list[str] = field(default_factory=list[str])

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """Send JSON."""
        return httpx2.post(f"{self.url}{path}", json=body, headers=headers, timeout=SECONDS)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{self.url}{path}", headers=headers, timeout=SECONDS)

    def stop(self) -> int:
        """End it as an operator does; gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


_OPEN = ExitStack()


def openai_client(url: str, **options: Any) -> openai.OpenAI:
    """Return a client of OpenAI's SDK, open until the test ends."""
    options = {"api_key": "none", "max_retries": 0, "timeout": SECONDS, **options}
    return _OPEN.enter_context(openai.OpenAI(base_url=f"{url}/v1", **options))


def anthropic_client(url: str, **options: Any) -> anthropic.Anthropic:
    """Return a client of Anthropic's SDK, open until the test ends."""
    options = {"api_key": "none", "max_retries": 0, "timeout": SECONDS, **options}
    return _OPEN.enter_context(anthropic.Anthropic(base_url=url, **options))


def close_clients() -> None:
    """Close the connections of a test: collected later, they would fail another one."""
    _OPEN.close()


def interpreted(*options: str) -> subprocess.Popen[str]:
    """Start ``lmc serve`` in a new interpreter: what it imports is what it needs."""
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *options]
    none = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=none, stdout=none, stderr=subprocess.PIPE, text=True)


@contextmanager
def served(
    *options: str, process: Running | subprocess.Popen[str] | None = None, **environment: str
) -> Generator[Served]:
    """Run ``lmc serve`` with options (or a process of it) until the block ends; the server is ready in it."""
    process = process or Running(["lmc", "serve", "--port", "0", *options], None, stdout=False, **environment)
    server = Served(process)
    reader = threading.Thread(target=_read, args=(server,), daemon=True)
    reader.start()
    try:
        _wait_until_ready(server)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
        if process.stderr is not None:
            process.stderr.close()


def _read(server: Served) -> None:
    assert server.process.stderr is not None
    for line in server.process.stderr:
        server.lines.append(line.rstrip("\n"))
        found = re.match(r"(\S+) is served at (http://\S+)", line)
        if found:
            server.model, server.url = found.groups()


def _wait_until_ready(server: Served) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if server.process.poll() is not None:
            raise AssertionError("the server has ended:\n" + "\n".join(server.lines))
        if server.url:
            try:
                with urllib.request.urlopen(f"{server.url}/ready", timeout=SECONDS):
                    return
            except urllib.error.URLError:
                pass
        time.sleep(0.02)
    raise AssertionError("the server is not ready:\n" + "\n".join(server.lines))

"""The process of a server: its socket, signals, draining and exit."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

import uvicorn

from lmc.ir.errors import InputError
from lmc.runtime.server.app import ServerApp

_POLL_SECONDS = 0.05
_CLOSE_SECONDS = 2
"""For connections whose requests were cut, or never came in whole."""
_SWITCH_SECONDS = 0.001
"""After so long a thread that compiles a constraint lets the loop go on; the default is five times that."""


def bound(host: str, port: int) -> socket.socket:
    """Return a socket on an address, which does not listen yet. Raises ``InputError`` where it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        # Without it the kernel lets two processes bind the address, as long as none listens.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError as error:
        made.close()
        raise InputError(
            f"the address {host}:{port} can't be used: {error.strerror or error}",
            remedy="give another --port (0: any free one), or end what uses it",
        ) from error
    return made


class Process(uvicorn.Server):
    """Serves until a signal: then it drains. A second signal ends it at once."""

    def __init__(self, server: ServerApp, drain_seconds: float, started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            server.gate,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_CLOSE_SECONDS,
        )
        super().__init__(config)
        self._gate = server.gate
        self._resume = server.resume
        self._drain_seconds = drain_seconds
        self._started = started
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        gc.collect()
        gc.freeze()  # what is loaded stays: looking through it took 0.3 s at each full collection
        for each in sockets or ():  # connections inherit it: what is left of them does not hold up the next process
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._resume()
        self._started()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle signals while the server runs; the process exits with 0 after them."""
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end at the second."""
        del sig, frame
        if self._gate.is_draining:
            self.should_exit = self.force_exit = True
            return
        self._gate.is_draining = True
        self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._draining = asyncio.ensure_future(self._drained())

    async def _drained(self) -> None:
        """Wait for the requests that run, cut them when the time is over, and stop."""
        deadline = self._loop.time() + self._drain_seconds
        while self._gate.in_flight and self._loop.time() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
        self._gate.cut()
        while self._gate.in_flight and self._loop.time() < deadline + 5:
            await asyncio.sleep(_POLL_SECONDS)
        self.should_exit = True


def run(server: ServerApp, listening: socket.socket, drain_seconds: float, started: Callable[[], Any]) -> None:
    """Serve until a signal ends the process."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    process = Process(server, drain_seconds, started)
    process.run(sockets=[listening])

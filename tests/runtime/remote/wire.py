"""An HTTP/1.1 server on loopback with control of every byte: for the simulator and for the faults."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Request:
    """A request as it arrived. Names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """One request and its answer. A client that goes away cancels the task that answers."""

    def __init__(self, request: Request, connection: _Connection) -> None:
        self.request = request
        self.ended = False
        """True if the answer was written to its end."""
        self._connection = connection

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Answer whole."""
        await self.write(head(status, {**headers, "content-length": str(len(body))}) + body)
        self.ended = True

    async def respond_json(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        await self.respond(status, {"content-type": "application/json", **headers}, encoded(body))

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer in chunks."""
        await self.write(head(status, {**headers, "transfer-encoding": "chunked"}))

    async def send(self, data: bytes) -> None:
        """Send a chunk."""
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """End an answer in chunks."""
        await self.write(b"0\r\n\r\n")
        self.ended = True

    async def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        await self._connection.write(data)

    def reset(self) -> None:
        """Reset the connection: the client reads an error, not an end."""
        self._connection.close(abruptly=True)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


Handler = Callable[[Exchange], Awaitable[None]]


class LoopbackServer:
    """A server on a free port of the loopback interface, in a thread of its own, until it is closed.

    ``handle`` answers a request in the loop of that thread. Its errors are raised by ``close``.
    """

    def __init__(self, handle: Handler, port: int = 0) -> None:
        self.handle = handle
        self.failures: list[BaseException] = []
        self.connections: set[_Connection] = set()
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), name="loopback")
        self._thread.start()
        self._started.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if kind is None and self.failures:
            raise self.failures[0]

    def close(self) -> None:
        """Cut what is being answered, and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), sock=self._listening, backlog=2048)
        self._started.set()
        await self._stopping.wait()
        server.close()
        for connection in list(self.connections):
            connection.close(abruptly=True)
        while self.connections:
            await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One connection: requests come one after the other."""

    def __init__(self, server: LoopbackServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._writable.set()
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        """Answer the next request, once it is complete and the one before is answered."""
        if self._task is not None:
            return
        request = taken(self._buffer)
        if request is not None:
            self._task = asyncio.get_running_loop().create_task(self._answer(Exchange(request, self)))

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._server.handle(exchange)
        except Exception as error:
            self._server.failures.append(error)
        finally:
            self._task = None
            if not exchange.ended:
                self.close()
        self._next()

    async def write(self, data: bytes) -> None:
        self._transport.write(data)
        await self._writable.wait()

    def close(self, abruptly: bool = False) -> None:
        if abruptly:
            sock = self._transport.get_extra_info("socket")
            if sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self._transport.abort()
        else:
            self._transport.close()


def taken(buffer: bytearray) -> Request | None:
    """Take a whole request out of ``buffer``; None: it is not complete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    first, fields = parsed_head(bytes(buffer[:end]))
    method, path, _ = first.split(" ")
    assert "transfer-encoding" not in fields, "the SDKs send bodies of known length"
    start = end + 4
    length = int(fields.get("content-length", "0"))
    if len(buffer) < start + length:
        return None
    body = bytes(buffer[start : start + length])
    del buffer[: start + length]
    return Request(method, path, fields, body)


def parsed_head(data: bytes) -> tuple[str, dict[str, str]]:
    """Return the first line and the headers, with names in lower case."""
    first, *lines = data.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in fields}


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return the head of an answer."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def encoded(content: Any) -> bytes:
    """Return JSON in one line."""
    return json.dumps(content, separators=(",", ":")).encode()


def event(content: Any, name: str | None = None) -> bytes:
    """Return a server-sent event."""
    named = b"event: %b\n" % name.encode() if name else b""
    return named + b"data: %b\n\n" % encoded(content)

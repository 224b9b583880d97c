"""Event streams, and work for a client that may go away."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lmc.runtime.server.errors import ApiError, error_of

T = TypeVar("T")


class ClientGoneError(Exception):
    """The client closed its connection."""


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``work``. Cancels it and raises ``ClientGoneError`` where the client goes away before."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGoneError
    finally:
        await _cancelled(task)
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancelled(task: asyncio.Future[Any]) -> None:
    """Cancel a task, and wait until it has released what it holds."""
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


def data(content: Any, event: str | None = None) -> bytes:
    """Return a server-sent event with JSON data (one line; text as it is, in UTF-8)."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    return (f"event: {event}\ndata: {text}\n\n" if event else f"data: {text}\n\n").encode()


DONE = b"data: [DONE]\n\n"


class EventStream(Response):
    """A stream of server-sent events.

    ``events`` is closed as soon as the client goes away. An error in it ends the stream with ``failed(error)``, which
    gives it the form of the protocol.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], failed: Callable[[ApiError], bytes]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self._events = events
        self._failed = failed

    @classmethod
    async def open(
        cls, request: Request, events: AsyncIterator[bytes], failed: Callable[[ApiError], bytes]
    ) -> EventStream:
        """Begin a stream with its first event. An error before that is raised, and becomes an answer with a status."""

        async def first() -> bytes:
            try:
                return await anext(events)
            except BaseException:
                await _close(events)
                raise

        head = await while_connected(request, first())
        return cls(_chained(head, events), failed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        del scope
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            await _cancelled(sending)
            gone.cancel()

    async def _send(self, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            try:
                async for event in self._events:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
            except Exception as error:
                await send({"type": "http.response.body", "body": self._failed(error_of(error)), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await _close(self._events)


async def _close(events: AsyncIterator[Any]) -> None:
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


async def _chained(head: bytes, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield head
        async for event in events:
            yield event
    finally:
        await _close(events)

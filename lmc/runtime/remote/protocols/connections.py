"""Connections of the SDKs' clients: when a request leaves, how much of an answer is read, and pools of a few."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Self, TypeVar
from urllib.request import getproxies

import anyio
import httpx2

from lmc.runtime.remote.asking import LOOP_NAME, RemoteService
from lmc.runtime.remote.failures import too_large
from lmc.runtime.remote.limits import UNDER_WAY, Charge

T = TypeVar("T")
_SDK_LOGGERS = ("openai._base_client", "anthropic._base_client")
_EACH = 32
"""Requests at a time of one pool: for each request, it looks at all of its connections."""


def _without_requests(record: logging.LogRecord) -> bool:
    """Drop the records of whole requests, with the texts of users, that the SDKs write about those of lmc."""
    return not (record.funcName == "_build_request" and record.threadName == LOOP_NAME)


def http_options(service: RemoteService) -> dict[str, Any]:
    """Return the options of an SDK's HTTP client, which has as many connections as there may be requests."""
    for name in _SDK_LOGGERS:
        logging.getLogger(name).addFilter(_without_requests)  # the same one is added once
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=service.settings.concurrency)
    verify = httpx2.create_ssl_context()
    return {
        "limits": limits,
        "timeout": httpx2.Timeout(service.settings.timeout, pool=None),
        "verify": verify,
        "event_hooks": _hooks(service),
        # A proxy of the environment has a pool of its own.
        "mounts": {} if getproxies() else {"all://": _Pools(limits, verify)},
    }


class _Pools(httpx2.AsyncBaseTransport):
    """Connections in pools of a few each."""

    def __init__(self, limits: httpx2.Limits, verify: Any) -> None:
        self._limits = limits
        self._verify = verify
        self._pools: list[_Pool] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        pool = next((each for each in self._pools if each.running < _EACH), None)
        if pool is None:
            pool = _Pool(self._limits, self._verify)
            self._pools.append(pool)
        pool.running += 1
        try:
            response = await _asked(pool.transport, request)
        except BaseException:
            pool.running -= 1
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Released(response.stream, pool)
        return response

    async def aclose(self) -> None:
        for each in self._pools:
            await each.transport.aclose()


async def _asked(transport: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
    """Return the response to a request. Where that is cancelled, anyio cancels the library's work (``_whole``)."""
    scope = anyio.CancelScope()

    async def work() -> httpx2.Response | None:
        with scope:
            return await transport.handle_async_request(request)
        return None

    task = asyncio.create_task(work())
    try:
        response = await _whole(task, scope.cancel)
    except asyncio.CancelledError:
        if not task.cancelled() and task.exception() is None and (late := task.result()) is not None:
            await _close(late)
        raise
    assert response is not None
    return response


async def _close(answer: httpx2.Response | httpx2.AsyncByteStream, parts: AsyncIterator[bytes] | None = None) -> None:
    """Close an answer, and what has been reading it."""

    async def work() -> None:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()
        await answer.aclose()

    await _whole(asyncio.create_task(work()))


async def _whole(task: asyncio.Task[T], cancel: Callable[[], object] = lambda: None) -> T:
    """Await work of the HTTP library to its end, ``cancel``led or not.

    It closes connections, those of other requests too, in scopes of anyio that are shielded. asyncio's cancelling
    ignores those, and their sockets would stay open.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        cancel()
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):  # once more: it ends as cancelled in any case
                await asyncio.wait([task])
        raise


class _Pool:
    """One pool, and how many requests it has."""

    def __init__(self, limits: httpx2.Limits, verify: Any) -> None:
        alive = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        self.transport = httpx2.AsyncHTTPTransport(verify=verify, limits=limits, socket_options=alive)
        self.running = 0


class _Released(httpx2.AsyncByteStream):
    """The bytes of an answer; its end gives the place in the pool back.

    It reads and closes the library's own iterator, and is no generator itself: one that a stream leaves behind would be
    closed by the event loop, whenever it is found.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, pool: _Pool) -> None:
        self._stream = stream
        self._parts: AsyncIterator[bytes] = aiter(stream)
        self._pool: _Pool | None = pool

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._parts)

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.running -= 1
            await _close(self._stream, self._parts)


def _hooks(service: RemoteService) -> dict[str, list[Callable[[Any], Awaitable[None]]]]:
    """Return the hooks of an HTTP client: they note when a request leaves, and bound and read its answer."""

    async def leaves(request: httpx2.Request) -> None:
        charge = UNDER_WAY.get()
        if charge is None:
            return

        opened: Any = None

        async def traced(event: str, about: Mapping[str, Any]) -> None:
            nonlocal opened
            if event.endswith(".send_request_headers.started"):
                charge.may_have_arrived = True
            elif event.endswith(".send_request_body.complete"):
                charge.limits.sent(charge)
            elif event == "connection.connect_tcp.complete":
                opened = about["return_value"]
            elif event == "connection.start_tls.failed":  # where it is cancelled, the library leaves the socket open
                await opened.aclose()

        request.extensions["trace"] = traced

    async def answered(response: httpx2.Response) -> None:
        charge = UNDER_WAY.get()
        if charge is None:
            return
        charge.counts_plan = "x-ratelimit-remaining-tokens" in response.headers  # OpenAI does
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, charge, service)

    return {"request": [leaves], "response": [answered]}


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, as many as its tokens can have."""

    def __init__(self, stream: httpx2.AsyncByteStream, charge: Charge, service: RemoteService) -> None:
        self._stream = stream
        self._parts: AsyncIterator[bytes] = aiter(stream)
        self._left = charge.most_bytes
        self._most = charge.most_bytes
        self._service = service

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        part = await anext(self._parts)
        self._left -= len(part)
        if self._left < 0:
            raise too_large(self._service.model, self._most)
        return part

    async def aclose(self) -> None:
        await self._stream.aclose()

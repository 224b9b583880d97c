"""Streams of events under the timeouts of a target, and bounds of what is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Self, TypeVar

from lmc.ir.usage import Usage
from lmc.runtime.remote.asking import RemoteService
from lmc.runtime.remote.failures import malformed, too_slow

T = TypeVar("T")
MOST_CHARACTERS = 16 << 20
"""Of the text of one reply."""


def check_model(served: Any, service: RemoteService, usage: Usage | None = None) -> None:
    """Raise ``AttemptError`` for an answer of another model.

    An alias is the beginning of the name that is served, before a date. What servers call their models is their own.
    """
    asked = service.model
    if not asked or service.is_server or not isinstance(served, str):
        return
    if not (served == asked or (served.startswith(f"{asked}-") and served[len(asked) + 1 :][:1].isdigit())):
        raise malformed(asked, f"an answer of {served!r:.200}", usage)


def kind_of(event: Any, service: RemoteService) -> str:
    """Return the type of an event. Raises ``AttemptError`` for one that has none: what it held would be lost."""
    if not isinstance(event.type, str):
        raise malformed(service.model, "an event without a type")
    return event.type


class ReplyText:
    """The text of a reply as it is read."""

    def __init__(self, service: RemoteService) -> None:
        self._service = service
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: Any) -> str:
        """Append a piece. Raises ``AttemptError`` beyond the bound."""
        if not isinstance(piece, str):
            raise malformed(self._service.model, f"text of type {type(piece).__name__}")
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length > MOST_CHARACTERS:
            raise malformed(self._service.model, f"more than {MOST_CHARACTERS:,} characters")
        return piece

    def __str__(self) -> str:
        return "".join(self._pieces)

    @property
    def is_empty(self) -> bool:
        """True until there is some text."""
        return self._length == 0


class StreamEvents:
    """The events of a stream, under the timeouts of a target. ``opening`` sends the request; the block closes it.

    Until ``text`` has its first token the limit is that of the first token, from the sending on; then that of the pause
    between two events. Raises ``AttemptError`` where an event takes longer.
    """

    def __init__(self, opening: Awaitable[Any], service: RemoteService, text: ReplyText) -> None:
        self._opening = opening
        self._service = service
        self._text = text
        self._started = 0.0
        self._stream: Any = None
        self._events: AsyncIterator[Any]

    async def __aenter__(self) -> Self:
        self._started = time.monotonic()
        self._stream = await self._in_time(self._opening, self._service.settings.first_token_timeout)
        self._events = aiter(self._stream)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        settings = self._service.settings
        if self._text.is_empty and settings.first_token_timeout is not None:
            return await self._in_time(anext(self._events), settings.first_token_timeout)
        limit = settings.idle_timeout
        try:
            async with asyncio.timeout(limit):
                return await anext(self._events)
        except TimeoutError:
            if limit is None:
                raise
            raise too_slow(self._service.model, "further event", limit) from None

    async def _in_time(self, work: Awaitable[T], limit: float | None) -> T:
        """Await what the first token waits for."""
        left = None if limit is None else max(self._started + limit - time.monotonic(), 0.0)
        try:
            async with asyncio.timeout(left):
                return await work
        except TimeoutError:
            if limit is None:
                raise
            raise too_slow(self._service.model, "first token", limit) from None

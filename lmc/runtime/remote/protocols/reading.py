"""Streams of events under the timeouts of a target, and bounds of what is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from lmc.runtime.remote.asking import RemoteService
from lmc.runtime.remote.failures import malformed, too_slow

T = TypeVar("T")
MOST_CHARACTERS = 16 << 20
"""Of the text of one reply."""


async def timed(events: AsyncIterator[T], service: RemoteService) -> AsyncIterator[T]:
    """Yield the events of a stream. Raises ``AttemptError`` where the first one or the next one takes too long."""
    settings = service.settings
    limit, what = settings.first_token_timeout or settings.idle_timeout, "first token"
    while True:
        try:
            async with asyncio.timeout(limit):
                event = await anext(events)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if limit is None:
                raise
            raise too_slow(service.model, what, limit) from None
        yield event
        limit, what = settings.idle_timeout, "further event"


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

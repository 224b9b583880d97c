"""Faults in front of any HTTP server: a proxy on loopback that breaks some of the answers.

    with Simulator() as simulator, FaultProxy(simulator.url, seeded(1, rate=0.5)) as proxy:
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0)

A plan names the fault of each request. A seeded plan depends on the request alone, not on the order of arrivals: the
same requests meet the same faults in any run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.runtime.remote.wire import Exchange, LoopbackServer, Request, encoded, head, parsed_head


class Fault(Enum):
    """Kinds of faults. Those of the first group never reach the server; the others happen to its answer."""

    RATE_LIMIT = "429"
    RATE_LIMIT_WITH_DELAY = "429 with Retry-After"
    SERVER_ERROR = "500"
    OVERLOADED = "529"
    UNAVAILABLE = "503 with Retry-After"
    REFUSED_CONNECTION = "reset before the request is read"

    RESET_BEFORE_ANSWER = "reset before the answer"
    RESET_WITHIN_ANSWER = "reset within the answer"
    RESET_AFTER_ANSWER = "reset after the answer"
    CUT = "an answer that ends in the middle of a chunk or body"
    CUT_CLEANLY = "a stream that ends well-formed without its last events"
    SLOW_FIRST_TOKEN = "a first byte that comes late"
    IDLE = "an answer that stops coming"
    MALFORMED_JSON = "JSON that cannot be parsed"
    MALFORMED_EVENT = "JSON without what it must hold"
    WRONG_MODEL = "an answer of another model"
    TOO_LARGE = "an answer of many bytes"


WITHOUT_SERVER = frozenset(list(Fault)[:6])
"""Faults of requests that never reach the server: they are not paid for."""
HARMLESS = frozenset({Fault.RESET_AFTER_ANSWER})
"""Faults that leave the answer whole. The next request on that connection may be lost before the server reads it."""
ONLY_STREAMS = frozenset({Fault.CUT_CLEANLY})
"""Faults that an answer in one piece cannot have."""
OTHER_MODEL = "another-model-1"
_WITHIN = (Fault.RESET_WITHIN_ANSWER, Fault.CUT, Fault.CUT_CLEANLY, Fault.IDLE)
_REPLACED = (Fault.MALFORMED_JSON, Fault.MALFORMED_EVENT, Fault.WRONG_MODEL, Fault.TOO_LARGE)
_HOP_BY_HOP = ("connection", "transfer-encoding", "content-length")
_ARRIVES = 0.05
"""Seconds in which what was written arrives: a reset takes with it what did not."""


@dataclass(frozen=True)
class Sent:
    """A request at the proxy: ``digest`` of path and body, ``attempt`` counts the equal ones before it.

    ``at`` is in seconds of ``time.monotonic``.
    """

    number: int
    path: str
    digest: str
    attempt: int
    stream: bool
    at: float = 0.0


@dataclass(frozen=True)
class Injected:
    """A fault that happened to a request."""

    fault: Fault
    sent: Sent


Plan = Callable[[Sent], Fault | None]


def seeded(seed: int, rate: float, faults: Sequence[Fault] = tuple(Fault), most: int = 3) -> Plan:
    """Return a plan that breaks a share ``rate`` of the attempts, each request at most ``most`` times in a row."""

    def plan(sent: Sent) -> Fault | None:
        rng = random.Random(f"{seed}/{sent.digest}/{sent.attempt}")
        if sent.attempt >= most or rng.random() >= rate:
            return None
        return rng.choice([each for each in faults if sent.stream or each not in ONLY_STREAMS])

    return plan


def listed(faults: Sequence[Fault | None]) -> Plan:
    """Return a plan by the order of arrivals; requests behind its end are left alone."""
    return lambda sent: faults[sent.number] if sent.number < len(faults) else None


class FaultProxy:
    """A proxy in front of ``url`` until closed.

    Args:
        url: the server.
        plan: gives the fault of a request, or None.
        slow: seconds until the first byte of a slow answer.
        idle: seconds that an idle answer stops for; the client leaves before.
        retry_after: the seconds of ``Retry-After``.
        large: bytes of an answer that is too large, at least.
    """

    def __init__(
        self,
        url: str,
        plan: Plan = lambda _: None,
        slow: float = 30.0,
        idle: float = 30.0,
        retry_after: float = 0.0,
        large: int = 2**20,
    ) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self.plan = plan
        self.slow = slow
        self.idle = idle
        self.retry_after = retry_after
        self.large = large
        self.injected: list[Injected] = []
        """Faults that happened, in their order. A fault that an answer was too short for did not happen."""
        self.sent: list[Sent] = []
        """All requests that arrived."""
        self._attempts: Counter[str] = Counter()
        self._server = LoopbackServer(self._handle)
        self.url = self._server.url

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self._server.__exit__(kind, *rest)

    def close(self) -> None:
        self._server.close()

    def counts(self) -> Counter[Fault]:
        """Return how often each fault happened."""
        return Counter(each.fault for each in self.injected)

    async def _handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method != "POST":
            await self._pass(exchange, None, None)
            return
        digest = hashlib.sha256(request.path.encode() + request.body).hexdigest()
        is_stream = json.loads(request.body or b"{}").get("stream") is True
        sent = Sent(len(self.sent), request.path, digest, self._attempts[digest], is_stream, time.monotonic())
        self._attempts[digest] += 1
        self.sent.append(sent)
        fault = self.plan(sent)
        if fault in WITHOUT_SERVER:
            self.injected.append(Injected(fault, sent))
            await self._refuse(exchange, fault)
        else:
            await self._pass(exchange, fault, sent)

    async def _refuse(self, exchange: Exchange, fault: Fault) -> None:
        if fault is Fault.REFUSED_CONNECTION:
            exchange.reset()
            return
        is_anthropic = exchange.request.path.startswith("/v1/messages")
        status, kind, text = {
            Fault.RATE_LIMIT: (429, "rate_limit_error", "Too many requests."),
            Fault.RATE_LIMIT_WITH_DELAY: (429, "rate_limit_error", "Too many requests."),
            Fault.SERVER_ERROR: (500, "api_error", "Internal server error"),
            Fault.OVERLOADED: (529, "overloaded_error", "Overloaded"),
            Fault.UNAVAILABLE: (503, "api_error", "Down for maintenance"),
        }[fault]
        headers: dict[str, str] = {}
        if fault in (Fault.RATE_LIMIT_WITH_DELAY, Fault.UNAVAILABLE):
            headers["retry-after"] = f"{self.retry_after:g}"
        error: dict[str, Any] = {"type": kind, "message": text}
        body = {"type": "error", "error": error} if is_anthropic else {"error": {**error, "param": None, "code": None}}
        await exchange.respond_json(status, headers, body)

    async def _pass(self, exchange: Exchange, fault: Fault | None, sent: Sent | None) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(_forwarded(exchange.request))
            await writer.drain()
            first, headers = parsed_head((await reader.readuntil(b"\r\n\r\n"))[:-4])
            status = int(first.split(" ")[1])
            answer = _Answer(self, exchange, status, headers, fault if status == 200 else None, sent)
            if headers.get("content-type", "").startswith("text/event-stream"):
                await answer.stream(_events(_decoded(reader, headers)))
            else:
                await answer.whole(b"".join([each async for each in _decoded(reader, headers)]))
        finally:
            writer.close()


class _Answer:
    """An answer of the server on its way to the client, with at most one fault."""

    def __init__(
        self,
        proxy: FaultProxy,
        exchange: Exchange,
        status: int,
        headers: Mapping[str, str],
        fault: Fault | None,
        sent: Sent | None,
    ) -> None:
        self.proxy = proxy
        self.exchange = exchange
        self.status = status
        self.headers = {name: value for name, value in headers.items() if name not in _HOP_BY_HOP}
        self.fault = fault
        self.sent = sent
        self._happened = False

    def _happens(self) -> None:
        if self.fault is not None and self.sent is not None and not self._happened:
            self._happened = True
            self.proxy.injected.append(Injected(self.fault, self.sent))

    async def whole(self, body: bytes) -> None:
        """Send an answer in one piece."""
        if await self._before():
            return
        if self.fault in _WITHIN:
            self._happens()
            answer = head(self.status, {**self.headers, "content-length": str(len(body))})
            await self.exchange.write(answer + body[: len(body) // 2])
            await self._stop()
            return
        if self.fault in _REPLACED:
            self._happens()
            body = self._changed(body)
        if self.fault is Fault.RESET_AFTER_ANSWER:
            self._happens()
        await self.exchange.respond(self.status, self.headers, body)
        await self._after()

    def _changed(self, body: bytes) -> bytes:
        if self.fault is Fault.MALFORMED_JSON:
            return body[: len(body) // 2]
        if self.fault is Fault.MALFORMED_EVENT:
            return b'{"object":"surprise"}'
        if self.fault is Fault.WRONG_MODEL:
            return _of_another_model(body)
        return body + b" " * self.proxy.large

    async def stream(self, events: AsyncIterator[bytes]) -> None:
        """Send an answer in events. A fault within it happens at the first event with text."""
        if await self._before():
            return
        await self.exchange.begin(self.status, self.headers)
        async for each in events:
            sent = each
            if self.fault is Fault.WRONG_MODEL:
                sent = _event_of_another_model(each)
                if sent != each:
                    self._happens()
            elif self.fault in (*_WITHIN, *_REPLACED) and not self._happened and _has_text(each):
                self._happens()
                if self.fault in _WITHIN:
                    await self.exchange.send(each)
                    await self._stop()
                    return
                sent = self._instead(each)
            await self.exchange.send(sent)
        if self.fault is Fault.RESET_AFTER_ANSWER:
            self._happens()
        await self.exchange.end()
        await self._after()

    def _instead(self, each: bytes) -> bytes:
        """Return what comes in the place of an event."""
        if self.fault is Fault.MALFORMED_JSON:
            return each[: len(each) // 2].rstrip() + b"\n\n"
        if self.fault is Fault.MALFORMED_EVENT:
            return each.partition(b"data: ")[0] + b'data: {"choices":7,"type":7}\n\n'
        return b": %b\n\n" % (b"x" * self.proxy.large) + each

    async def _before(self) -> bool:
        """Inject what happens before the answer begins; true if there is no answer then."""
        if self.fault is Fault.SLOW_FIRST_TOKEN:
            self._happens()
            await asyncio.sleep(self.proxy.slow)
        elif self.fault is Fault.RESET_BEFORE_ANSWER:
            self._happens()
            self.exchange.reset()
            return True
        return False

    async def _stop(self) -> None:
        """End an answer in its middle."""
        if self.fault is Fault.IDLE:
            await asyncio.sleep(self.proxy.idle)
        elif self.fault is Fault.RESET_WITHIN_ANSWER:
            await asyncio.sleep(_ARRIVES)
            self.exchange.reset()
        elif self.fault is Fault.CUT_CLEANLY:
            await self.exchange.end()
        # Otherwise the connection is closed behind what was sent.

    async def _after(self) -> None:
        if self.fault is Fault.RESET_AFTER_ANSWER:
            await asyncio.sleep(_ARRIVES)
            self.exchange.reset()


def _forwarded(request: Request) -> bytes:
    """Return the request for the server: one for each connection."""
    fields = {name: value for name, value in request.headers.items() if name not in (*_HOP_BY_HOP, "accept-encoding")}
    fields |= {"connection": "close", "content-length": str(len(request.body))}
    lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + request.body


async def _decoded(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they come."""
    if headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            yield await reader.readexactly(size)
            await reader.readline()
    else:
        yield await reader.readexactly(int(headers["content-length"]))


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield whole server-sent events."""
    rest = b""
    async for part in parts:
        *whole, rest = (rest + part).split(b"\n\n")
        for each in whole:
            yield each + b"\n\n"
    if rest:
        yield rest


def _content(each: bytes) -> Any:
    """Return the JSON of an event; None: it has none."""
    try:
        return json.loads(each.partition(b"data: ")[2])
    except ValueError:
        return None


def _has_text(each: bytes) -> bool:
    found = _content(each)
    if not isinstance(found, dict):
        return False
    if found.get("type") in ("response.output_text.delta", "content_block_delta"):
        return True
    choices = found.get("choices")
    return bool(choices) and bool(choices[0].get("text") or choices[0].get("delta", {}).get("content"))


def _of_another_model(body: bytes) -> bytes:
    found: dict[str, Any] = json.loads(body)
    return encoded({**found, "model": OTHER_MODEL})


def _event_of_another_model(each: bytes) -> bytes:
    found: Any = _content(each)
    if not isinstance(found, dict):
        return each
    if "model" in found:
        found["model"] = OTHER_MODEL
    for name in ("response", "message"):
        if "model" in found.get(name, ()):
            found[name]["model"] = OTHER_MODEL
    return each.partition(b"data: ")[0] + b"data: %b\n\n" % encoded(found)

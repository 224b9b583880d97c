"""Checks that hold for every request, its lane, and its line in the log."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmc.ir.engine.protocol import Generation
from lmc.ir.usage import Usage
from lmc.runtime.server.errors import ApiError, refused
from lmc.runtime.server.jobs import MOST_PRIORITY, ClientLane, Seen
from lmc.runtime.server.metrics import Metrics
from lmc.runtime.server.model import Model
from lmc.runtime.server.settings import Settings

Refuse = Callable[[str, ApiError], ASGIApp]
"""Gives the answer of an error, in the form of the protocol of a path."""
LOG = logging.getLogger("lmc.server")
_OPEN = frozenset({"/health", "/ready"})
"""Paths that need no key: load balancers ask them."""
_BULK = frozenset({"/v1/files", "/v1/messages/batches"})
_LARGE = 32 << 10
MOST_JSON = 4 << 20
"""Bytes of other bodies: they are parsed on the event loop, where all requests wait for it."""
_SHOWN_HEADERS = "retry-after, request-id, x-request-id"
"""Headers of answers that a page may read."""
_MOST_DROPPED = 64 << 20
_DROPPING_SECONDS = 10.0


@dataclass
class Exchange:
    """One request while it is served, for its line in the log."""

    id: str
    lane: int
    body_bytes: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    texts: list[str] = field(default_factory=list[str])
    seen: Seen = field(default_factory=Seen)

    def add(self, found: Sequence[Usage | Generation]) -> None:
        """Count the generations of one prompt."""
        self.prompt_tokens += max((each.prompt_tokens for each in found), default=0)
        self.cached_tokens += max((each.cached_tokens for each in found[:1]), default=0)
        self.generated_tokens += sum(each.generated_tokens for each in found)
        self.texts += [each.text for each in found if isinstance(each, Generation)]

    def add_seen(self) -> None:
        """Count what was seen of prompts whose generations were not counted."""
        for prompt in dict.fromkeys(prompt for prompt, _ in self.seen):
            self.add([each for (other, _), each in self.seen.items() if other == prompt])


class Lanes:
    """Numbers of lanes: one for each key, else one for each connection."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._of: dict[object, int] = {}

    def of(self, key: object) -> int:
        """Return the number of a lane. Old ones are forgotten; their clients get new ones."""
        found = self._of.pop(key, None)
        self._of[key] = number = next(self._numbers) if found is None else found
        if len(self._of) > 1 << 16:
            del self._of[next(iter(self._of))]
        return number


class Gate:
    """Stands before the app. Refuses what no endpoint may see; ``drain`` makes it refuse everything."""

    def __init__(self, app: ASGIApp, settings: Settings, model: Model, metrics: Metrics, refuse: Refuse) -> None:
        self._app = app
        self._settings = settings
        self._model = model
        self._metrics = metrics
        self._refuse = refuse
        self._lanes = Lanes()
        self._key = None if settings.api_key is None else _digest(settings.api_key)
        self.is_draining = False
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        lane = self._lanes.of(_token(headers) or scope.get("client"))
        served = Exchange(f"req_{uuid.uuid4().hex}", lane)
        scope["state"] = {**scope.get("state", {}), "served": served, "model": self._model, "gate": self}
        started, status = time.perf_counter(), 0
        # HEAD is GET for the app; the HTTP server leaves out the body.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        body = LimitedBody(receive, self._most(scope), self._settings.body_seconds, served)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message), headers, served)
            await send(message)

        is_work = scope["path"] not in _OPEN
        self.in_flight += is_work
        try:
            self._check(scope, headers)
            if scope["method"] == "OPTIONS" and "origin" in headers:
                await answer({"type": "http.response.start", "status": 204, "headers": []})
                await answer({"type": "http.response.body", "body": b""})
            else:
                await self._app(inner, body.receive, answer)
        except ApiError as error:
            if error.kind == "too_large" and "expect" not in headers:
                await body.drop_rest()
            await self._refuse(scope["path"], error)(scope, receive, answer)
        except Exception:
            if not status:
                raise
            # It is answered. Raised further, it would close a connection on which the client may send again.
            LOG.exception("%s failed", served.id)
        finally:
            self.in_flight -= is_work
            seconds = time.perf_counter() - started
            served.add_seen()
            self._metrics.finished(inner, status, seconds, served)
            if is_work or status >= 400:
                self._log(scope, status, seconds, served)

    def cut(self) -> None:
        """End the requests that run."""
        self._model.cut()

    def _check(self, scope: Scope, headers: Headers) -> None:
        settings = self._settings
        if settings.hosts is not None and _host(headers.get("host", "")) not in settings.hosts:
            raise ApiError("forbidden", "this server is reached under another name (header Host)")
        origin = headers.get("origin")
        own = None if settings.hosts is None else f"{scope['scheme']}://{headers.get('host', '')}"
        if origin is not None and origin not in (settings.allow_origin, own):
            raise ApiError("forbidden", "pages of this origin are not allowed (--allow-origin)")
        if self.is_draining and scope["path"] != "/health":
            raise ApiError("unavailable", "the server is about to stop", headers={"Retry-After": "5"})
        if self._key is not None and scope["path"] not in _OPEN and scope["method"] != "OPTIONS":
            token = _token(headers)
            if token is None or not hmac.compare_digest(_digest(token), self._key):
                raise ApiError("unauthorized", "the API key is missing or wrong", code="invalid_api_key")
        if headers.get("content-encoding", "identity") != "identity":
            raise ApiError("invalid", "a body is taken as it is, without a Content-Encoding")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self._most(scope):
            raise too_large(self._most(scope))

    def _most(self, scope: Scope) -> int:
        """Return how many bytes a body may have."""
        return self._settings.max_body if scope["path"] in _BULK else min(self._settings.max_body, MOST_JSON)

    def _add_headers(self, headers: MutableHeaders, asked: Headers, served: Exchange) -> None:
        headers["x-request-id"] = headers["request-id"] = served.id
        origin = asked.get("origin")
        if origin is not None and origin == self._settings.allow_origin:
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = _SHOWN_HEADERS
            headers["access-control-allow-methods"] = "GET, POST, DELETE"
            if "access-control-request-headers" in asked:
                headers["access-control-allow-headers"] = asked["access-control-request-headers"]
            headers.add_vary_header("origin, access-control-request-headers")

    def _log(self, scope: Scope, status: int, seconds: float, served: Exchange) -> None:
        line: dict[str, Any] = {
            "id": served.id,
            "route": f"{scope['method']} {scope['path'][:200]}",
            "tokens": served.prompt_tokens + served.generated_tokens,
            "cached": served.cached_tokens,
            "ms": round(seconds * 1000, 1),
            "status": status or 499,  # the client was gone before an answer
        }
        if self._settings.log_texts:
            line["texts"] = served.texts
        LOG.info(json.dumps(line))


class LimitedBody:
    """Reads the body of a request, up to a limit. Nothing of it may take longer than ``seconds`` to come."""

    def __init__(self, receive: Receive, limit: int, seconds: float, served: Exchange) -> None:
        self._receive = receive
        self._limit = limit
        self._seconds = seconds
        self._served = served
        self._is_whole = False

    async def receive(self) -> Message:
        """Return the next message. Raises ``ApiError`` behind the limit, or where more of the body does not come."""
        try:
            async with asyncio.timeout(None if self._is_whole else self._seconds):
                message = await self._receive()
        except TimeoutError:
            raise ApiError(
                "slow", f"nothing of the body came in {self._seconds:g} s", headers={"Connection": "close"}
            ) from None
        self._is_whole = not message.get("more_body", False)
        self._served.body_bytes += len(message.get("body", b""))
        if self._served.body_bytes > self._limit:
            await self.drop_rest(message)
            raise too_large(self._limit)
        return message

    async def drop_rest(self, message: Message | None = None) -> None:
        """Read what is left behind ``message``, within bounds: a client may write all before it reads an answer."""
        dropped = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DROPPING_SECONDS):
                while dropped < _MOST_DROPPED and (message is None or message.get("more_body")):
                    message = await self._receive()
                    dropped += len(message.get("body", b""))


def too_large(limit: int) -> ApiError:
    """Return the error of a body that is too large."""
    return ApiError("too_large", f"the body has more than {limit} bytes", headers={"Connection": "close"})


def model_of(request: Request) -> Model:
    """Return the model of a request."""
    return request.state.model


def lane_of(request: Request) -> ClientLane:
    """Return the lane of a request. Raises ``ApiError`` for a priority that is no number."""
    given = request.headers.get("x-lmc-priority", "0")
    try:
        priority = int(given)
    except ValueError:
        raise refused("X-Lmc-Priority", f"{given!r} is no whole number") from None
    if abs(priority) > MOST_PRIORITY:
        raise refused("X-Lmc-Priority", f"it must be from {-MOST_PRIORITY} to {MOST_PRIORITY}")
    served: Exchange = request.state.served
    return ClientLane(served.lane, priority, is_large=served.body_bytes > _LARGE, seen=served.seen)


def note_usage(request: Request, found: Sequence[Generation], choices: int | None = None) -> None:
    """Note what a request has cost, for the log and the metrics: a prompt with ``choices`` generations (None: all)."""
    served: Exchange = request.state.served
    for choice in [choice for choice, each in served.seen.items() if isinstance(each, Generation)]:
        del served.seen[choice]
    count = choices or len(found)
    for start in range(0, len(found), count or 1):
        served.add(found[start : start + count])


def note_run(request: Request, usage: Usage) -> None:
    """Note what the run of a program has cost."""
    served: Exchange = request.state.served
    served.prompt_tokens += usage.prompt_tokens
    served.cached_tokens += usage.cached_tokens
    served.generated_tokens += usage.generated_tokens


def _token(headers: Headers) -> str | None:
    """Return the key that a client sends, as either protocol does."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return headers.get("x-api-key")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.rpartition(":")[0].lower() if header.rpartition(":")[2].isdigit() else header.lower()

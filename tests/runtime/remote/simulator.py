"""Hosted providers on loopback: OpenAI's and Anthropic's APIs, with their limits, errors, ends and usage.

    with Simulator(requests_per_minute=60, minute=2.0) as simulator:
        client = openai.OpenAI(base_url=f"{simulator.url}/v1", api_key=KEY, max_retries=0)

It knows nothing of lmc. Every request is recorded as it arrived. As a process of its own, it prints its address, and
ends with its standard input: ``python -m tests.runtime.remote.simulator --latency 0.05``.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.runtime.remote.providers.anthropic_api import AnthropicForm, MessagesApi
from tests.runtime.remote.providers.hosted_models import MODELS, HostedModel, PrefixCache, Provider, pieces
from tests.runtime.remote.providers.limits import Window, most_in_any
from tests.runtime.remote.providers.openai_api import ChatApi, OpenAIForm, ResponsesApi
from tests.runtime.remote.providers.protocol import Answered, Api, ProviderForm, RefusedError
from tests.runtime.remote.providers.replies import Answering, Asked, Reply, hashed
from tests.runtime.remote.wire import Exchange, LoopbackServer

KEY = "sk-simulated-0123456789abcdef"
_APIS: Mapping[str, Api] = {
    "/v1/chat/completions": ChatApi(),
    "/v1/responses": ResponsesApi(),
    "/v1/messages": MessagesApi(),
}
_COUNT = "/v1/messages/count_tokens"
_FORMS: Mapping[Provider, ProviderForm] = {"openai": OpenAIForm(), "anthropic": AnthropicForm()}


@dataclass
class Arrival:
    """A request as it arrived, and what became of it. Times are of the simulator's clock, in seconds.

    ``status`` is None until the answer begins; ``whole``: it was written to its end. ``tokens`` count against limits.
    """

    number: int
    at: float
    path: str
    key: str | None
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None
    digest: str
    tokens: int = 0
    status: int | None = None
    error: str | None = None
    whole: bool = False
    ended_at: float | None = None
    answer: Answered | None = field(default=None, repr=False)

    @property
    def finished(self) -> bool:
        """True if the request was answered in full, and not with an error."""
        return self.whole and self.status == 200


class Simulator:
    """Providers on loopback until closed.

    Args:
        reply: gives the answer to a request.
        models: the models of both providers.
        keys: the keys that are accepted.
        requests_per_minute, tokens_per_minute: limits of each provider; None: none.
        minute: seconds of a minute of the limits.
        quota: requests that are paid for; each one behind them is refused for good.
        latency: seconds until the first byte of an answer.
        event_seconds: seconds before each event of a stream but the first.
        echoes_keys: an error of a wrong key quotes it whole.
        clock: seconds, for limits and records.
    """

    def __init__(
        self,
        reply: Answering = hashed,
        models: Iterable[HostedModel] = MODELS,
        keys: Iterable[str] = (KEY,),
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        minute: float = 60.0,
        quota: int | None = None,
        latency: float | Callable[[Asked], float] = 0.0,
        event_seconds: float = 0.0,
        echoes_keys: bool = False,
        clock: Callable[[], float] = time.monotonic,
        port: int = 0,
    ) -> None:
        self.reply = reply
        self.models = {
            name: model for model in models for name in ((model.name, model.served) if model.served else (model.name,))
        }
        self.keys = set(keys)
        self.minute = minute
        self.quota = quota
        self.latency = latency
        self.event_seconds = event_seconds
        self.echoes_keys = echoes_keys
        self.clock = clock
        self.arrivals: list[Arrival] = []
        self.peak = 0
        """The most requests that were being answered at the same time."""
        self._windows: dict[Provider, dict[str, Window]] = {
            provider: {"requests": Window(requests_per_minute, minute), "tokens": Window(tokens_per_minute, minute)}
            for provider in _FORMS
        }
        self._running = 0
        self._draws: Counter[str] = Counter()
        self._caches: dict[str, PrefixCache] = {}
        self.stored: dict[str, Mapping[str, Any]] = {}
        """Responses that can be fetched, by their ids."""
        self.fetched: list[str] = []
        self._server = LoopbackServer(self._handle, port)
        self.url = self._server.url

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self._server.__exit__(kind, *rest)

    def close(self) -> None:
        self._server.close()

    def most_requests(self, provider: Provider = "openai") -> int:
        """Return the most requests that arrived within any minute."""
        return most_in_any(self.minute, ((each.at, 1) for each in self.of(provider)))

    def most_tokens(self, provider: Provider = "openai") -> int:
        """Return the most planned tokens that arrived within any minute."""
        return most_in_any(self.minute, ((each.at, each.tokens) for each in self.of(provider)))

    def of(self, provider: Provider) -> list[Arrival]:
        """Return the requests to a provider, in the order of their arrival."""
        return [each for each in self.arrivals if each.path in _APIS and _APIS[each.path].provider == provider]

    def repeated(self) -> dict[str, list[Arrival]]:
        """Return the requests that arrived more than once, by their digest."""
        found: dict[str, list[Arrival]] = defaultdict(list)
        for each in self.arrivals:
            found[each.digest].append(each)
        return {digest: each for digest, each in found.items() if len(each) > 1}

    def finished_twice(self) -> list[list[Arrival]]:
        """Return the groups of equal requests of which one came again although it had been answered in full."""
        return [
            group
            for group in self.repeated().values()
            if any(first.finished and (first.ended_at or 0.0) <= last.at for first, last in _pairs(group))
        ]

    async def _handle(self, exchange: Exchange) -> None:
        request = exchange.request
        path = request.path.partition("?")[0]
        is_anthropic = "anthropic-version" in request.headers or path.startswith("/v1/messages")
        provider: Provider = "anthropic" if is_anthropic else "openai"
        form = _FORMS[provider]
        arrival = Arrival(
            len(self.arrivals) + 1,
            self.clock(),
            path,
            form.key_of(request.headers),
            request.headers,
            _json(request.body),
            hashlib.sha256(path.encode() + request.body).hexdigest(),
        )
        if request.method == "POST":
            self.arrivals.append(arrival)
        headers = {"x-request-id": f"req_{arrival.number:08d}", "request-id": f"req_{arrival.number:08d}"}
        self._running += 1
        self.peak = max(self.peak, self._running)
        try:
            self._check_key(arrival, form)
            if request.method == "GET":
                await exchange.respond_json(200, headers, self._page(path, provider))
            else:
                await self._answer(exchange, arrival, form, headers)
        except RefusedError as refused:
            arrival.status, arrival.error = refused.status, _error_name(refused.body)
            if arrival.status != 401:
                headers |= self._limit_headers(provider)
            self._ends(arrival)
            await exchange.respond_json(refused.status, {**headers, **refused.headers}, refused.body)
        finally:
            self._running -= 1
            arrival.ended_at = arrival.ended_at or self.clock()

    def _check_key(self, arrival: Arrival, form: ProviderForm) -> None:
        if arrival.key in self.keys:
            return
        refused = form.wrong_key(arrival.key)
        if self.echoes_keys and arrival.key is not None:
            error: Any = refused.body["error"]
            error["message"] += f" It was {arrival.key}"
        raise refused

    async def _answer(
        self, exchange: Exchange, arrival: Arrival, form: ProviderForm, headers: Mapping[str, str]
    ) -> None:
        if not isinstance(arrival.body, dict):
            raise form.not_json()
        if arrival.path == _COUNT:
            found = MessagesApi().count(arrival.body, self._models_of("anthropic"))
            arrival.status = 200
            self._ends(arrival)
            await exchange.respond_json(200, headers, found)
        elif arrival.path in _APIS:
            api = _APIS[arrival.path]
            answered = self._admitted(arrival.body, arrival, api, form)
            delay = self.latency(answered.asked) if callable(self.latency) else self.latency
            if delay:
                await asyncio.sleep(delay)
            arrival.answer = answered
            await self._send(exchange, arrival, api, {**headers, **self._limit_headers(api.provider)})
        else:
            raise form.no_page(arrival.path)

    def _admitted(self, body: Mapping[str, Any], arrival: Arrival, api: Api, form: ProviderForm) -> Answered:
        """Return the answer to a request, which is checked and charged. Raises ``RefusedError``."""
        self._charge(arrival, form, "requests", 1, str(body.get("model")))
        asked = api.asked(body, self._models_of(api.provider))
        answered = self._answered(asked, arrival)
        # OpenAI counts what a request plans, Anthropic what it uses.
        used = answered.prompt_tokens + answered.reply.output_tokens
        arrival.tokens = used if api.provider == "anthropic" else asked.planned_tokens
        self._charge(arrival, form, "tokens", arrival.tokens, asked.model.name)
        if self.quota is not None:
            if self.quota <= 0:
                raise form.out_of_quota()
            self.quota -= 1
        self._draws[_draw(asked)] += 1
        return answered

    async def _send(self, exchange: Exchange, arrival: Arrival, api: Api, headers: Mapping[str, str]) -> None:
        assert arrival.answer is not None
        if not arrival.answer.asked.stream:
            found = api.whole(arrival.answer)
            arrival.status = 200
            self._store(found)
            self._ends(arrival)
            await exchange.respond_json(200, headers, found)
            return
        arrival.status = 200
        if arrival.answer.asked.api == "responses":
            self._store(api.whole(arrival.answer))  # a client that leaves does not end it
        await exchange.begin(200, {"content-type": "text/event-stream; charset=utf-8", **headers})
        for number, each in enumerate(api.events(arrival.answer)):
            if number and self.event_seconds:
                await asyncio.sleep(self.event_seconds)
            await exchange.send(each)
        self._ends(arrival)
        await exchange.end()

    def _ends(self, arrival: Arrival) -> None:
        """Note the end of an answer before its last byte leaves: a test may look at once."""
        arrival.whole, arrival.ended_at = True, self.clock()

    def _charge(self, arrival: Arrival, form: ProviderForm, unit: str, amount: int, model: str) -> None:
        """Charge a request against a limit. A request that is refused counts as a request, but not its tokens."""
        provider = _APIS[arrival.path].provider
        window = self._windows[provider][unit]
        fits = window.fits(arrival.at, amount)
        if fits or unit == "requests":
            window.add(arrival.at, amount)
        if not fits:
            seconds = window.seconds_until(arrival.at, amount)
            raise form.rate_limited(model, unit, window, amount, seconds)

    def _answered(self, asked: Asked, arrival: Arrival) -> Answered:
        counted = replace(asked, draw=self._draws[_draw(asked)])
        found = self.reply(counted)
        reply = (Reply(found) if isinstance(found, str) else found).within(counted)
        cached, written = self._cached(asked)
        return Answered(counted, reply, arrival.number, int(time.time()), cached, written)

    def _cached(self, asked: Asked) -> tuple[int, int]:
        """Return the tokens of the prompt that were cached, and those that are cached now at a price."""
        cache = self._caches.setdefault(asked.model.name, PrefixCache(asked.model))
        if asked.model.provider == "openai":
            prompt = pieces(asked.prompt)
            cached, stored = cache.cached(prompt), cache.store(prompt)
            return cached, max(stored - cached, 0) if asked.model.writes_cache else 0
        marked = [pieces(asked.prompt[:end]) for end in asked.cache_ends]
        found = max((cache.cached(prefix) for prefix in marked), default=0)
        stored = max((cache.store(prefix) for prefix in marked), default=0)
        return found, max(stored - found, 0)

    def _limit_headers(self, provider: Provider) -> dict[str, str]:
        now, form = self.clock(), _FORMS[provider]
        headers: dict[str, str] = {}
        for unit, window in self._windows[provider].items():
            if window.limit is not None:
                headers |= form.limit_headers(unit, window, now, time.time())
        return headers

    def _store(self, found: Mapping[str, Any]) -> None:
        if found.get("object") == "response" and found["store"]:
            self.stored[found["id"]] = found

    def _models_of(self, provider: Provider) -> Mapping[str, HostedModel]:
        return {name: model for name, model in self.models.items() if model.provider == provider}

    def _page(self, path: str, provider: Provider) -> Mapping[str, Any]:
        """Return a list of models, a model, or a stored response."""
        if path == "/v1/models":
            listed = [_listed(name, provider) for name in self._models_of(provider)]
            more = {"has_more": False, "first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
            return {"object": "list", "data": listed, **(more if provider == "anthropic" else {})}
        kind, _, name = path.removeprefix("/v1/").partition("/")
        if kind == "models" and name in self._models_of(provider):
            return _listed(name, provider)
        if kind == "responses" and name in self.stored:
            self.fetched.append(name)
            return self.stored[name]
        raise _FORMS[provider].no_page(path)


def _draw(asked: Asked) -> str:
    return f"{asked.model.name}{asked.prompt}"


def _listed(name: str, provider: Provider) -> Mapping[str, Any]:
    if provider == "anthropic":
        return {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
    return {"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "openai"}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _error_name(body: Mapping[str, Any]) -> str:
    error = body["error"]
    return error.get("code") or error["type"]


def _pairs(group: Sequence[Arrival]) -> Iterable[tuple[Arrival, Arrival]]:
    return ((first, last) for number, first in enumerate(group) for last in group[number + 1 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until the first byte of an answer")
    parser.add_argument("--event-seconds", type=float, default=0.0, help="seconds between events of a stream")
    parser.add_argument("--requests-per-minute", type=int)
    parser.add_argument("--tokens-per-minute", type=int)
    parser.add_argument("--minute", type=float, default=60.0, help="seconds of a minute of the limits")
    options = parser.parse_args()
    with Simulator(
        latency=options.latency,
        event_seconds=options.event_seconds,
        requests_per_minute=options.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute,
        minute=options.minute,
    ) as simulator:
        print(simulator.url, flush=True)
        for line in sys.stdin:  # a line asks what has arrived
            assert line
            arrived = [[each.at, each.tokens, each.status, each.whole] for each in simulator.arrivals]
            print(json.dumps({"arrivals": arrived, "peak": simulator.peak}), flush=True)


if __name__ == "__main__":
    main()

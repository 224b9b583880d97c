"""``/v1/completions``: with token ids (vLLM, ``lmc serve``), or with plain text (llama.cpp and others)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import openai

from lmc.grammar.constraint import Constraint
from lmc.ir.engine.protocol import Score, ScoreRequest, TokenLogprob
from lmc.ir.usage import Usage
from lmc.runtime.remote.asking import Asked, End, Fetched, OnText, RemoteService, Reply
from lmc.runtime.remote.failures import malformed
from lmc.runtime.remote.protocols.openai_client import client_of, headers_of, model_of, parameters_of, stop_of, usage_of
from lmc.runtime.remote.protocols.reading import ReplyText, StreamEvents
from lmc.runtime.remote.protocols.sdk_errors import translated
from lmc.runtime.remote.protocols.server_constraints import structured_outputs

_ENDS: dict[str, End] = {"stop": "eos", "length": "length"}


class CompletionsProtocol:
    """Plain completions of a server.

    Where contexts are tokens, prompts are token ids, and so are outputs (``return_token_ids``).
    """

    def __init__(self, service: RemoteService) -> None:
        self._service = service
        self._client = client_of(service)
        self._model: str | None = None

    async def generate(self, asked: Asked, on_text: OnText | None) -> Reply:
        async with translated(openai, self._service):
            body = await self._body(asked)
            if on_text is None:
                answer: Any = await self._client.completions.create(**body)
                choice = answer.choices[0]
                usage = usage_of(answer.usage, self._service)
                return self._reply(choice.text, self._ids(choice), choice, usage, asked)
            return await self._stream(body, on_text, asked)

    async def fetch(self, stored: str) -> Fetched:
        del stored  # this API keeps no answers
        return Fetched()

    async def score(self, request: ScoreRequest, timeout: float) -> Score:
        del timeout  # that of the client
        prompts = [[*request.prompt, *each] for each in request.continuations]
        async with translated(openai, self._service):
            model = await self._named()
            answer: Any = await self._client.completions.create(
                model=model,
                prompt=prompts,
                max_tokens=0,
                echo=True,
                logprobs=0,
                temperature=0.0,
                **headers_of(request, self._service),
            )
            rows: list[tuple[float, ...]] = [()] * len(prompts)
            for choice in answer.choices:
                logprobs = choice.logprobs
                if logprobs is None or logprobs.token_logprobs is None:
                    raise malformed(self._service.model, "an echo without log-probabilities")
                values: list[float | None] = list(logprobs.token_logprobs)
                if len(values) < len(prompts[choice.index]):
                    raise malformed(self._service.model, "log-probabilities of fewer tokens than it was given")
                row = values[len(request.prompt) : len(prompts[choice.index])]
                rows[choice.index] = tuple(float(value) for value in row if value is not None)
            usage = usage_of(answer.usage, self._service)
        return Score(tuple(rows), usage.prompt_tokens, usage.cached_tokens)

    async def close(self) -> None:
        await self._client.close()

    async def _named(self) -> str:
        if self._model is None:
            self._model = await model_of(self._client, self._service)
        return self._model

    async def _body(self, asked: Asked) -> dict[str, Any]:
        request = asked.request
        known, own = parameters_of(asked, self._service)
        body: dict[str, Any] = {
            "model": await self._named(),
            "prompt": list(request.prompt) if asked.conversation is None else asked.conversation.raw,
            "max_tokens": asked.max_tokens,
            **known,
        }
        if asked.stops:
            body["stop"] = list(asked.stops)
        if request.sampling.logit_bias:
            body["logit_bias"] = {str(token_id): bias for token_id, bias in request.sampling.logit_bias}
        if request.sampling.logprobs is not None:
            body["logprobs"] = request.sampling.logprobs
        if isinstance(request.constraint, Constraint):
            own |= structured_outputs(request.constraint, self._service.capabilities)
        if asked.conversation is None:
            own["return_token_ids"] = True
        if own:
            body["extra_body"] = own
        return body

    async def _stream(self, body: dict[str, Any], on_text: OnText, asked: Asked) -> Reply:
        text, ids, last, usage = ReplyText(self._service), list[int](), None, None
        values: list[float] = []
        opening = self._client.completions.create(**body, stream=True, stream_options={"include_usage": True})
        async with StreamEvents(opening, self._service, text) as events:
            async for event in events:
                if event.usage is not None:
                    usage = usage_of(event.usage, self._service)
                if not event.choices:
                    continue
                choice = event.choices[0]
                ids += self._ids(choice) or ()
                if choice.logprobs is not None:
                    values += choice.logprobs.token_logprobs or ()
                last = choice if choice.finish_reason else last
                if choice.text and not on_text(text.add(choice.text)):
                    return Reply(str(text), "stop", usage, tuple(ids) if self._gives_ids else None, is_whole=False)
        if last is None:
            raise malformed(self._service.model, "a stream that ends before its end")
        reply = self._reply(str(text), tuple(ids) if self._gives_ids else None, last, usage, asked)
        return replace(reply, logprobs=tuple(map(TokenLogprob, ids, values)) if values else None)

    @property
    def _gives_ids(self) -> bool:
        return self._service.capabilities.contexts == "tokens"

    def _ids(self, choice: Any) -> tuple[int, ...] | None:
        """Return the token ids of a choice, an extension of the protocol; None where contexts are text."""
        return tuple(choice.token_ids or ()) if self._gives_ids else None

    def _reply(self, text: str, ids: tuple[int, ...] | None, choice: Any, usage: Usage | None, asked: Asked) -> Reply:
        if choice.finish_reason not in _ENDS:
            raise malformed(self._service.model, f"the finish reason {choice.finish_reason!r}")
        stop = stop_of(choice, asked)
        end = _ENDS[choice.finish_reason] if stop is None else "stop"
        return Reply(text, end, usage, ids, stop if isinstance(stop, str) else None, _logprobs(choice, ids))


def _logprobs(choice: Any, ids: tuple[int, ...] | None) -> tuple[TokenLogprob, ...] | None:
    found = choice.logprobs
    if ids is None or found is None or found.token_logprobs is None:
        return None
    return tuple(map(TokenLogprob, ids, found.token_logprobs))

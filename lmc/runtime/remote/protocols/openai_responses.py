"""``/v1/responses``."""

from __future__ import annotations

import asyncio
from typing import Any

import openai

from lmc.ir.engine.protocol import Score, ScoreRequest
from lmc.ir.errors import EngineError
from lmc.ir.usage import Usage
from lmc.runtime.remote.asking import Asked, Fetched, OnText, RemoteService, Reply, kept_name
from lmc.runtime.remote.failures import AttemptError, malformed, of_status, refused_text
from lmc.runtime.remote.protocols.openai_client import client_of, parameters_of
from lmc.runtime.remote.protocols.reading import ReplyText, StreamEvents, check_model, kind_of
from lmc.runtime.remote.protocols.sdk_errors import translated

_LOOKS, _LOOK_SECONDS = 60, 1.0
"""Looks for an answer that is still being written, and the pauses between them."""


class ResponsesProtocol:
    """OpenAI's responses: no stops and no seeds, so stops are looked for in the stream."""

    def __init__(self, service: RemoteService) -> None:
        self._service = service
        self._client = client_of(service)

    async def generate(self, asked: Asked, on_text: OnText | None) -> Reply:
        async with translated(openai, self._service):
            body, stored = self._body(asked), asked.request.stored
            if on_text is None and not body["store"]:
                return self._reply(await self._client.responses.create(**body))
            text, final = ReplyText(self._service), None
            opening = self._client.responses.create(**body, stream=True)
            async with StreamEvents(opening, self._service, text) as events:
                async for event in events:
                    kind = kind_of(event, self._service)
                    if kind == "response.output_text.delta":
                        if not (on_text or _takes_all)(text.add(event.delta)):
                            return Reply(str(text), "stop", None)
                    elif kind == "response.created" and body["store"] and stored is not None:
                        stored.keep(kept_name(event.response.id, self._service.place))
                    elif kind in ("response.completed", "response.incomplete", "response.failed"):
                        final = event.response
                    elif kind == "error":
                        raise _failure(event, self._service.model, None)
            if final is None:
                raise malformed(self._service.model, "a stream that ends before its end")
            return self._reply(final)

    async def fetch(self, stored: str) -> Fetched:
        answer: Any = None
        async with translated(openai, self._service):
            for _ in range(_LOOKS if self._service.settings.store else 0):
                try:
                    answer = await self._client.responses.retrieve(stored)
                except openai.NotFoundError:
                    break
                if answer.status not in ("queued", "in_progress"):
                    break
                await asyncio.sleep(_LOOK_SECONDS)
            if answer is None:
                return Fetched()
            if answer.status in ("completed", "incomplete"):
                reply = self._reply(answer)
                return Fetched(reply, reply.usage)
            if answer.status in ("failed", "cancelled"):
                unknown = Usage(calls=1) if answer.status == "failed" else None
                return Fetched(None, unknown if answer.usage is None else _usage(answer.usage))
            if answer.status not in ("queued", "in_progress"):
                raise malformed(self._service.model, f"a stored answer with the status {answer.status!r:.40}")
            error = EngineError(
                f"{self._service.model} still writes the answer {stored} of an earlier run", remedy="resume it later"
            )
            raise AttemptError(error, again=False, usage=Usage())

    async def score(self, request: ScoreRequest, timeout: float) -> Score:
        del request, timeout
        raise AttemptError(EngineError("a chat API scores no texts"), again=False)

    async def close(self) -> None:
        await self._client.close()

    def _body(self, asked: Asked) -> dict[str, Any]:
        known, _ = parameters_of(asked, self._service)
        body: dict[str, Any] = {
            "model": self._service.model,
            "input": asked.messages(keeps_open=False),
            "max_output_tokens": asked.max_tokens,
            "store": self._service.settings.store,
            **known,
        }
        if asked.form is not None:
            form = {"type": "json_schema", "name": "output", "schema": asked.form.schema, "strict": True}
            body["text"] = {"format": form}
        return body

    def _reply(self, answer: Any) -> Reply:
        name = self._service.model
        usage = None if answer.usage is None else _usage(answer.usage)
        check_model(answer.model, self._service, usage)
        if answer.status == "failed":
            raise _failure(answer.error, name, usage)
        if usage is None:
            raise malformed(name, "no usage")
        pieces: list[str] = []
        for item in answer.output:
            if item.type in ("function_call", "custom_tool_call"):
                raise refused_text(name, "calls a tool that nobody has offered", "change the prompt", usage)
            for part in item.content or () if item.type == "message" else ():
                if part.type == "refusal":
                    remedy = "change the prompt; the model will not answer this one"
                    raise refused_text(name, f"refuses to answer: {part.refusal}", remedy, usage)
                pieces.append(part.text)
        text = "".join(pieces)
        if answer.status == "completed":
            if not any(item.type == "message" for item in answer.output):
                raise refused_text(name, "gives no output", "change the prompt, or the model", usage)
            return Reply(text, "eos", usage)
        reason = answer.incomplete_details.reason if answer.incomplete_details is not None else None
        if reason == "content_filter":
            raise refused_text(name, "was cut by the provider's content filter", "change the prompt", usage)
        if reason != "max_output_tokens":
            raise refused_text(
                name, f"ends with {answer.status!r} ({reason})", "this end is not known; report it", usage
            )
        if not text:
            raise refused_text(
                name,
                "gave no visible text before its limit",
                "raise max_tokens, or set reasoning_tokens for the target: reasoning has used the limit",
                usage,
            )
        return Reply(text, "length", usage)


def _takes_all(_: str) -> bool:
    return True


def _failure(error: Any, name: str, usage: Usage | None) -> AttemptError:
    """Return the failure of a response, by its code: what is wrong with the request is not sent again."""
    if error is None:
        return of_status(500, "it does not say why", name)
    code = str(error.code or "")
    status = 429 if "rate_limit" in code or "quota" in code else 500 if code in ("", "server_error") else 400
    failure = of_status(status, f"{error.message} ({code})", name)
    failure.usage = usage or failure.usage
    return failure


def _usage(found: Any) -> Usage:
    details, output = found.input_tokens_details, found.output_tokens_details
    return Usage(
        found.input_tokens,
        (details.cached_tokens or 0) if details is not None else 0,
        found.output_tokens,
        1,
        (getattr(details, "cache_write_tokens", 0) or 0) if details is not None else 0,
        (output.reasoning_tokens or 0) if output is not None else 0,
    )

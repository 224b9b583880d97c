"""Anthropic's ``/v1/messages``."""

from __future__ import annotations

from typing import Any

import anthropic

from lmc.ir.engine.protocol import Score, ScoreRequest
from lmc.ir.errors import EngineError
from lmc.ir.usage import Usage
from lmc.runtime.remote.asking import BYTES_PER_TOKEN, Asked, End, Fetched, OnText, RemoteService, Reply
from lmc.runtime.remote.failures import AttemptError, malformed, refused_text
from lmc.runtime.remote.protocols.connections import http_options
from lmc.runtime.remote.protocols.reading import ReplyText, StreamEvents, check_model, kind_of
from lmc.runtime.remote.protocols.sdk_errors import translated

_ENDS: dict[str, End] = {"end_turn": "eos", "stop_sequence": "stop", "max_tokens": "length"}


class MessagesProtocol:
    """Anthropic's messages. System messages at the beginning are its ``system``; later ones are refused there."""

    def __init__(self, service: RemoteService) -> None:
        self._service = service
        self._client = anthropic.AsyncAnthropic(
            api_key=service.api_key,
            base_url=service.settings.base_url,
            max_retries=0,
            timeout=service.settings.timeout,
            http_client=anthropic.DefaultAsyncHttpxClient(**http_options(service)),
        )

    async def generate(self, asked: Asked, on_text: OnText | None) -> Reply:
        async with translated(anthropic, self._service):
            body = self._body(asked)
            if on_text is None:
                answer: Any = await self._client.messages.create(**body)
                usage = _usage(answer.usage)
                check_model(answer.model, self._service, usage)
                text = ReplyText(self._service)
                for block in answer.content:
                    self._check(block.type, usage)
                    if block.type == "text":
                        text.add(block.text)
                return self._reply(str(text), answer.stop_reason, answer.stop_sequence, usage)
            return await self._stream(body, on_text)

    async def fetch(self, stored: str) -> Fetched:
        del stored  # this API keeps no answers
        return Fetched()

    async def score(self, request: ScoreRequest, timeout: float) -> Score:
        del request, timeout
        raise AttemptError(EngineError("a chat API scores no texts"), again=False)

    async def close(self) -> None:
        await self._client.close()

    def _body(self, asked: Asked) -> dict[str, Any]:
        continues = asked.continues and self._service.capabilities.continuation != "turns"
        messages = asked.messages(keeps_open=continues)
        leading = next((at for at, each in enumerate(messages) if each["role"] != "system"), len(messages))
        body: dict[str, Any] = {
            "model": self._service.model,
            "messages": messages[leading:],
            "max_tokens": asked.max_tokens,
        }
        if leading:
            body["system"] = [{"type": "text", "text": each["content"]} for each in messages[:leading]]
        if asked.stops:
            body["stop_sequences"] = list(asked.stops)
        if asked.form is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": asked.form.schema}}
        extra = {
            name: value
            for name, default in (("temperature", None), ("top_p", 1.0), ("top_k", 0))
            if name in self._service.capabilities.parameters
            and (value := getattr(asked.request.sampling, name)) != default
        }
        if extra:
            body["extra_body"] = extra  # parameters that this version of the SDK does not have
        return body

    async def _stream(self, body: dict[str, Any], on_text: OnText) -> Reply:
        text, usage, reason, stop = ReplyText(self._service), Usage(calls=1), None, None
        kinds: list[str] = []
        opening = self._client.messages.create(**body, stream=True)
        async with StreamEvents(opening, self._service, text) as events:
            async for event in events:
                kind = kind_of(event, self._service)
                if kind == "message_start":
                    usage = _usage(event.message.usage)
                    check_model(event.message.model, self._service, usage)
                elif kind == "content_block_start":
                    kinds.append(event.content_block.type)
                elif kind == "content_block_delta" and event.delta.type == "text_delta":
                    if not on_text(text.add(event.delta.text)):
                        return Reply(str(text), "stop", _estimated(usage, str(text)), is_whole=False)
                elif kind == "message_delta":
                    reason, stop = event.delta.stop_reason, event.delta.stop_sequence
                    usage = _with_output(usage, event.usage)
        if reason is None:
            raise malformed(self._service.model, "a stream that ends before its end", usage)
        for kind in kinds:
            self._check(kind, usage)
        return self._reply(str(text), reason, stop, usage)

    def _check(self, kind: str, usage: Usage) -> None:
        if kind not in ("text", "thinking", "redacted_thinking"):
            raise refused_text(
                self._service.model, f"gives a block of type {kind!r} that nobody asked for", "change the prompt", usage
            )

    def _reply(self, text: str, reason: str | None, stop: str | None, usage: Usage) -> Reply:
        name = self._service.model
        if reason == "refusal":
            raise refused_text(
                name, "refuses to answer", "change the prompt; the model will not answer this one", usage
            )
        if reason == "pause_turn":
            raise refused_text(name, "pauses its turn", "ask for less in one turn", usage)
        if reason == "model_context_window_exceeded":
            raise refused_text(
                name, "has no room left in its context", "shorten the prompt, or lower max_tokens", usage
            )
        if reason not in _ENDS:
            raise refused_text(name, f"ends with {reason!r}", "this end is not known; report it", usage)
        if not text and reason == "max_tokens":
            raise refused_text(
                name,
                "gave no visible text before its limit",
                "raise max_tokens, or set reasoning_tokens for the target: reasoning has used the limit",
                usage,
            )
        return Reply(text, _ENDS[reason], usage, matched_stop=stop)


def _usage(found: Any) -> Usage:
    """Return the usage of an answer: cached and written tokens are beside ``input_tokens`` here."""
    cached, written = found.cache_read_input_tokens or 0, found.cache_creation_input_tokens or 0
    details = getattr(found, "output_tokens_details", None)
    reasoning = (getattr(details, "thinking_tokens", 0) or 0) if details is not None else 0
    return Usage(found.input_tokens + cached + written, cached, found.output_tokens, 1, written, reasoning)


def _estimated(usage: Usage, text: str) -> Usage:
    """Return the usage of a stream that is left: its output is not told then."""
    output = -(-len(text.encode()) // BYTES_PER_TOKEN)
    return Usage(usage.prompt_tokens, usage.cached_tokens, output, 1, usage.cache_written_tokens)


def _with_output(usage: Usage, found: Any) -> Usage:
    details = getattr(found, "output_tokens_details", None)
    reasoning = (getattr(details, "thinking_tokens", 0) or 0) if details is not None else 0
    return Usage(
        usage.prompt_tokens, usage.cached_tokens, found.output_tokens, 1, usage.cache_written_tokens, reasoning
    )

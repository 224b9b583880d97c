"""``/v1/chat/completions``."""

from __future__ import annotations

from typing import Any

import openai

from lmc.grammar.constraint import Constraint
from lmc.ir.engine.protocol import Score, ScoreRequest
from lmc.ir.errors import EngineError
from lmc.ir.usage import Usage
from lmc.runtime.remote.asking import Asked, End, Fetched, OnText, RemoteService, Reply
from lmc.runtime.remote.failures import AttemptError, malformed, refused_text
from lmc.runtime.remote.protocols.openai_client import client_of, model_of, parameters_of, stop_of, usage_of
from lmc.runtime.remote.protocols.reading import ReplyText, StreamEvents, check_model
from lmc.runtime.remote.protocols.sdk_errors import translated
from lmc.runtime.remote.protocols.server_constraints import structured_outputs

_ENDS: dict[str, End] = {"stop": "eos", "length": "length"}


class ChatProtocol:
    """Chat completions of OpenAI and of servers."""

    def __init__(self, service: RemoteService) -> None:
        self._service = service
        self._client = client_of(service)
        self._model: str | None = None

    async def generate(self, asked: Asked, on_text: OnText | None) -> Reply:
        async with translated(openai, self._service):
            if self._model is None:
                self._model = await model_of(self._client, self._service)
            body = self._body(asked, self._model)
            if on_text is None:
                answer: Any = await self._client.chat.completions.create(**body)
                usage = usage_of(answer.usage, self._service)
                check_model(answer.model, self._service, usage)
                if not answer.choices:
                    raise self._no_choices(usage)
                message = answer.choices[0].message
                self._check(message.refusal, message.tool_calls, usage)
                return self._reply(message.content or "", answer.choices[0], usage, asked)
            return await self._stream(body, on_text, asked)

    async def fetch(self, stored: str) -> Fetched:
        del stored  # this API keeps no answers
        return Fetched()

    async def score(self, request: ScoreRequest, timeout: float) -> Score:
        del request, timeout
        raise AttemptError(EngineError("a chat API scores no texts"), again=False)

    async def close(self) -> None:
        await self._client.close()

    def _body(self, asked: Asked, model: str) -> dict[str, Any]:
        known, own = parameters_of(asked, self._service)
        continues = asked.continues and self._service.capabilities.continuation != "turns"
        body: dict[str, Any] = {
            "model": model,
            "messages": asked.messages(keeps_open=continues),
            # Servers do not all know the new name, and OpenAI's newer models refuse the old one.
            ("max_tokens" if self._service.is_server else "max_completion_tokens"): asked.max_tokens,
            **known,
        }
        if asked.stops:
            body["stop"] = list(asked.stops)
        if continues:
            own |= {"continue_final_message": True, "add_generation_prompt": False}
        if asked.form is not None:
            schema = {"name": "output", "schema": asked.form.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif isinstance(asked.request.constraint, Constraint):
            own |= structured_outputs(asked.request.constraint, self._service.capabilities)
        if own:
            body["extra_body"] = own
        return body

    async def _stream(self, body: dict[str, Any], on_text: OnText, asked: Asked) -> Reply:
        text, last, usage = ReplyText(self._service), None, None
        refusal, calls_tool, has_choices = "", False, False
        opening = self._client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
        async with StreamEvents(opening, self._service, text) as events:
            async for event in events:
                check_model(event.model, self._service, usage)
                if event.usage is not None:
                    usage = usage_of(event.usage, self._service)
                if not event.choices:
                    continue
                choice, has_choices = event.choices[0], True
                refusal += choice.delta.refusal or ""
                calls_tool = calls_tool or bool(choice.delta.tool_calls)
                last = choice if choice.finish_reason else last
                if choice.delta.content and not on_text(text.add(choice.delta.content)):
                    # What follows is not needed: leaving the stream ends the generation at most providers.
                    return Reply(str(text), "stop", usage, is_whole=False)
        if usage is not None and not has_choices:
            raise self._no_choices(usage)
        if last is None:
            raise malformed(self._service.model, "a stream that ends before its end", usage)
        self._check(refusal, calls_tool, usage)
        return self._reply(str(text), last, usage, asked)

    def _no_choices(self, usage: Usage) -> AttemptError:
        return refused_text(self._service.model, "gives no choices", "change the prompt, or the model", usage)

    def _check(self, refusal: Any, tool_calls: Any, usage: Usage | None) -> None:
        if refusal:
            remedy = "change the prompt; the model will not answer this one"
            raise refused_text(self._service.model, f"refuses to answer: {refusal}", remedy, usage)
        if tool_calls:
            raise refused_text(
                self._service.model, "calls a tool that nobody has offered", "change the prompt, or the model", usage
            )

    def _reply(self, text: str, choice: Any, usage: Usage | None, asked: Asked) -> Reply:
        name, finish = self._service.model, choice.finish_reason
        if finish == "content_filter":
            raise refused_text(name, "was cut by the provider's content filter", "change the prompt", usage)
        if finish not in _ENDS:
            raise refused_text(name, f"ends with {finish!r}", "this end is not known; report it", usage)
        if not text and finish == "length":
            raise refused_text(
                name,
                "gave no visible text before its limit",
                "raise max_tokens, or set reasoning_tokens for the target: reasoning has used the limit",
                usage,
            )
        stop = stop_of(choice, asked)
        end = _ENDS[finish] if stop is None else "stop"
        return Reply(text, end, usage, matched_stop=stop if isinstance(stop, str) else None)

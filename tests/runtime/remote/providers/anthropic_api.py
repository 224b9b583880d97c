"""Anthropic's messages, as the types of the anthropic SDK 2.14 and the provider's errors say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import ceil
from typing import Any

from anthropic.types import message_count_tokens_params, message_create_params

from tests.runtime.remote.providers.hosted_models import HostedModel, Provider, pieces
from tests.runtime.remote.providers.limits import Window
from tests.runtime.remote.providers.protocol import Answered, RefusedError, counted, text_of
from tests.runtime.remote.providers.replies import Asked, Turn, deltas
from tests.runtime.remote.wire import event

_MESSAGES = {*message_create_params.MessageCreateParamsBase.__annotations__, "stream"}
_COUNT = set(message_count_tokens_params.MessageCountTokensParams.__annotations__)
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    "tool_calls": "tool_use",
    "context_window": "model_context_window_exceeded",
}
_NOT_SUPPORTED = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "array": ("maxItems", "uniqueItems"),
}
_DETAILS = {"type": "refusal", "category": "general_harms", "explanation": "The request was declined."}


def refused(message: str, status: int = 400, kind: str = "invalid_request_error") -> RefusedError:
    """Return an error in Anthropic's form."""
    error = {"type": kind, "message": message}
    return RefusedError(status, {"type": "error", "error": error, "request_id": "req_00000001"})


class AnthropicForm:
    """Anthropic's errors and headers."""

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ") or None

    def wrong_key(self, key: str | None) -> RefusedError:
        text = "x-api-key header is required" if key is None else "invalid x-api-key"
        return refused(text, 401, "authentication_error")

    def rate_limited(self, model: str, unit: str, window: Window, amount: int, seconds: float) -> RefusedError:
        text = (
            f"This request would exceed your organization's rate limit of {window.limit} {unit} per minute "
            f"(model: {model})."
        )
        error = refused(text, 429, "rate_limit_error")
        error.headers["retry-after"] = str(ceil(seconds))
        return error

    def out_of_quota(self) -> RefusedError:
        return refused(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
            "purchase credits."
        )

    def overloaded(self) -> RefusedError:
        return refused("Overloaded", 529, "overloaded_error")

    def failed(self) -> RefusedError:
        return refused("Internal server error", 500, "api_error")

    def not_json(self) -> RefusedError:
        return refused("The request body is not valid JSON")

    def no_page(self, path: str) -> RefusedError:
        return refused(f"Not found: {path}", 404, "not_found_error")

    def limit_headers(self, unit: str, window: Window, now: float, time: float) -> Mapping[str, str]:
        reset = datetime.fromtimestamp(time + window.seconds_until_full(now), UTC)
        return {
            f"anthropic-ratelimit-{unit}-limit": str(window.limit),
            f"anthropic-ratelimit-{unit}-remaining": str(window.remaining(now)),
            f"anthropic-ratelimit-{unit}-reset": reset.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }


class MessagesApi:
    """``/v1/messages`` and ``/v1/messages/count_tokens``."""

    provider: Provider = "anthropic"

    def asked(self, body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> Asked:
        for name in ("model", "max_tokens", "messages"):
            if name not in body:
                raise refused(f"{name}: Field required")
        for name in body:
            if name not in _MESSAGES:
                raise refused(f"{name}: Extra inputs are not permitted")
        model = _model(body, models)
        limit = body["max_tokens"]
        if not counted(limit):
            raise refused("max_tokens: Input should be a valid integer")
        if limit < 0:
            raise refused("max_tokens: Input should be greater than or equal to 0")
        if limit > model.max_output:
            raise refused(
                f"max_tokens: {limit} > {model.max_output}, which is the maximum allowed number of output tokens for "
                f"{body['model']}"
            )
        stops = tuple(body.get("stop_sequences") or ())
        if not all(stop.strip() for stop in stops):
            raise refused("stop_sequences: each stop sequence must contain non-whitespace")
        turns, marks = _turns(body, model)
        schema = _schema(body)
        asked = Asked("messages", model, turns, limit, stops, schema, bool(body.get("stream")), marks, body)
        tokens = len(pieces(asked.prompt))
        if tokens > model.context:
            raise refused(f"prompt is too long: {tokens} tokens > {model.context} maximum")
        return asked

    def count(self, body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> Mapping[str, Any]:
        """Count the tokens of a prompt."""
        for name in body:
            if name not in _COUNT:
                raise refused(f"{name}: Extra inputs are not permitted")
        model = _model(body, models)
        turns, _ = _turns(body, model)
        return {"input_tokens": len(pieces(Asked("messages", model, turns).prompt))}

    def whole(self, answered: Answered) -> Mapping[str, Any]:
        if answered.reply.end == "failed":
            raise AnthropicForm().overloaded()
        return {
            **self._message(answered),
            "content": _blocks(answered),
            **_ending(answered),
            "usage": _usage(answered, answered.reply.output_tokens),
        }

    def _message(self, answered: Answered) -> Mapping[str, Any]:
        return {
            "id": f"msg_{answered.number:08d}",
            "type": "message",
            "role": "assistant",
            "model": answered.served,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(answered, 1),
        }

    def events(self, answered: Answered) -> Iterable[bytes]:
        def made(kind: str, **fields: Any) -> bytes:
            return event({"type": kind, **fields}, kind)

        yield made("message_start", message=self._message(answered))
        for index, block in enumerate(_blocks(answered)):
            yield made("content_block_start", index=index, content_block=_begun(block))
            if index == 0:
                yield made("ping")
            for delta in _block_deltas(block):
                yield made("content_block_delta", index=index, delta=delta)
            yield made("content_block_stop", index=index)
        if answered.reply.end == "failed":
            yield event(AnthropicForm().overloaded().body, "error")
            return
        usage = {"output_tokens": answered.reply.output_tokens, **_thinking(answered)}
        yield made("message_delta", delta=_ending(answered), usage=usage)
        yield made("message_stop")


def _model(body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> HostedModel:
    name = body["model"]
    if name not in models:
        raise refused(f"model: {name}", 404, "not_found_error")
    return models[name]


def _turns(body: Mapping[str, Any], model: HostedModel) -> tuple[tuple[Turn, ...], tuple[int, ...]]:
    """Return the turns, those of one role that follow each other as one, and where the prompt is to be cached."""
    messages = body["messages"]
    if not messages:
        raise refused("messages: at least one message is required")
    for number, message in enumerate(messages):
        _check_message(number, message, model, number == len(messages) - 1)
        if message["role"] == "system" and (not number or messages[number - 1]["role"] not in ("user", "system")):
            raise refused(f"messages.{number}: a system message must immediately follow a user turn")
    system = body.get("system")
    if isinstance(system, list) and not all(block["text"] for block in system):
        raise refused("system: text content blocks must be non-empty")
    if messages[0]["role"] == "assistant":
        raise refused('messages: first message must use the "user" role')
    last = messages[-1]
    if last["role"] == "assistant":
        if not model.prefill:
            raise refused(
                "This model does not support assistant message prefill. The conversation must end with a user message."
            )
        if text_of(last["content"])[-1:].isspace():
            raise refused("messages: final assistant content cannot end with trailing whitespace")
    given = [{"role": "system", "content": body["system"]}, *messages] if body.get("system") else messages
    turns: list[Turn] = []
    marks: list[int] = []
    before = 0
    for role, group in groupby(given, key=lambda each: each["role"]):
        text = ""
        before += len(f"<{role}>")
        for each in group:
            content = each["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                text += block["text"]
                if block.get("cache_control"):
                    marks.append(before + len(text))
        turns.append(Turn(role, text))
        before += len(text) + 1
    if body.get("cache_control"):
        marks.append(before)
    if len(marks) > 4:
        raise refused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    return tuple(turns), tuple(marks)


def _check_message(number: int, message: Mapping[str, Any], model: HostedModel, is_last: bool) -> None:
    role, content = message["role"], message["content"]
    if role == "system" and not model.system_messages:
        raise refused(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" '
            "as an input message role."
        )
    if role not in ("user", "assistant", "system"):
        raise refused(f"messages.{number}.role: Input should be 'user' or 'assistant'")
    if not isinstance(content, str) and any(block["type"] == "text" and not block["text"] for block in content):
        raise refused("messages: text content blocks must be non-empty")
    if not content and not (is_last and role == "assistant"):
        raise refused(
            f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
            "message"
        )


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    form = (body.get("output_config") or {}).get("format")
    if form is None:
        return None
    if body["messages"][-1]["role"] == "assistant":
        raise refused("output_config.format: prefill is not supported with structured outputs")
    if form.get("type") != "json_schema":
        raise refused("output_config.format.type: Input should be 'json_schema'")
    for name in form:
        if name not in ("type", "schema"):
            raise refused(f"output_config.format.{name}: Extra inputs are not permitted")
    _check_schema(form["schema"])
    return form["schema"]


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Check what Anthropic needs: no other properties, and no bounds of numbers and lengths."""
    where = "output_config.format.schema"
    kind = schema.get("type")
    if kind == "object" and schema.get("additionalProperties") is not False:
        raise refused(f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false")
    found = [name for name in _NOT_SUPPORTED.get(str(kind), ()) if name in schema]
    if found:
        raise refused(f"{where}: For '{kind}' type, properties {', '.join(found)} are not supported")
    inner: Sequence[Mapping[str, Any]] = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("anyOf", ()),
    ]
    for each in (*inner, *([schema["items"]] if "items" in schema else [])):
        _check_schema(each)


def _blocks(answered: Answered) -> list[dict[str, Any]]:
    reply = answered.reply
    blocks: list[dict[str, Any]] = []
    thinking = answered.asked.body.get("thinking") or {}
    if reply.reasoning_tokens and thinking.get("type") in ("enabled", "adaptive"):
        blocks.append({"type": "thinking", "thinking": "I think about it.", "signature": "c2lnbmF0dXJl"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text, "citations": None})
    if reply.end == "tool_calls":
        blocks.append({"type": "tool_use", "id": "toolu_00000001", "name": "lookup", "input": {"of": "something"}})
    return blocks


def _begun(block: Mapping[str, Any]) -> Mapping[str, Any]:
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
    return {**block, **empty[block["type"]]}


def _block_deltas(block: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    if block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": '{"of":'}
        yield {"type": "input_json_delta", "partial_json": '"something"}'}
    else:
        for text in deltas(block["text"]):
            yield {"type": "text_delta", "text": text}


def _ending(answered: Answered) -> Mapping[str, Any]:
    reply = answered.reply
    reason = "stop_sequence" if reply.stop_text is not None else _STOP_REASONS.get(reply.end)
    assert reason is not None, f"messages have no end {reply.end}"
    ending: dict[str, Any] = {"stop_reason": reason, "stop_sequence": reply.stop_text}
    if reason == "refusal":
        ending["stop_details"] = _DETAILS
    return ending


def _usage(answered: Answered, output: int) -> Mapping[str, Any]:
    """Return the usage: cached and written tokens are not among those of the input."""
    return {
        "input_tokens": answered.prompt_tokens - answered.cached - answered.written,
        "cache_creation_input_tokens": answered.written,
        "cache_read_input_tokens": answered.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": answered.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
        **_thinking(answered),
    }


def _thinking(answered: Answered) -> Mapping[str, Any]:
    tokens = answered.reply.reasoning_tokens
    return {"output_tokens_details": {"thinking_tokens": tokens}} if tokens else {}

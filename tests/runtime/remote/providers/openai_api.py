"""OpenAI's chat completions and responses, as the types of the openai SDK 3.57 and the provider's errors say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, NoReturn

from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from tests.runtime.remote.providers.hosted_models import HostedModel, Provider, pieces
from tests.runtime.remote.providers.limits import Window
from tests.runtime.remote.providers.protocol import Answered, RefusedError, counted, text_of
from tests.runtime.remote.providers.replies import Asked, Turn, deltas
from tests.runtime.remote.wire import event

_CHAT = {*completion_create_params.CompletionCreateParamsBase.__annotations__, "stream"}
_RESPONSES = {*response_create_params.ResponseCreateParamsBase.__annotations__, "stream"}
_SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
_MOST_STOPS = 4
_LEAST_RESPONSE = 16
_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "title", "description", "default", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "definitions",
}  # fmt: skip
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
REFUSAL = "I'm sorry, but I can't help with that."
DONE = b"data: [DONE]\n\n"


def refused(
    message: str, param: str | None = None, code: str | None = None, status: int = 400, kind: str = ""
) -> RefusedError:
    """Return an error in OpenAI's form."""
    error = {"message": message, "type": kind or "invalid_request_error", "param": param, "code": code}
    return RefusedError(status, {"error": error})


class OpenAIForm:
    """OpenAI's errors and headers."""

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("authorization", "").removeprefix("Bearer ") or None

    def wrong_key(self, key: str | None) -> RefusedError:
        if key is None:
            return refused("You didn't provide an API key.", status=401)
        shown = f"{key[:3]}{'*' * max(len(key) - 7, 1)}{key[-4:]}"
        text = f"Incorrect API key provided: {shown}. You can find your API key in the platform's settings."
        return refused(text, code="invalid_api_key", status=401)

    def rate_limited(self, model: str, unit: str, window: Window, amount: int, seconds: float) -> RefusedError:
        name = {"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}[unit]
        text = (
            f"Rate limit reached for {model} on {name}: Limit {window.limit}, Used {window.used}, "
            f"Requested {amount}. Please try again in {_duration(seconds)}."
        )
        error = refused(text, code="rate_limit_exceeded", status=429, kind=unit)
        error.headers["retry-after-ms"] = str(ceil(seconds * 1000))
        error.headers["retry-after"] = str(ceil(seconds))
        return error

    def out_of_quota(self) -> RefusedError:
        text = "You exceeded your current quota, please check your plan and billing details."
        return refused(text, code="insufficient_quota", status=429, kind="insufficient_quota")

    def overloaded(self) -> RefusedError:
        return refused("The server is overloaded. Please try again later.", status=503, kind="server_error")

    def failed(self) -> RefusedError:
        text = "The server had an error while processing your request. Sorry about that!"
        return refused(text, status=500, kind="server_error")

    def not_json(self) -> RefusedError:
        return refused("We could not parse the JSON body of your request.")

    def no_page(self, path: str) -> RefusedError:
        return refused(f"Invalid URL ({path})", status=404)

    def limit_headers(self, unit: str, window: Window, now: float, time: float) -> Mapping[str, str]:
        return {
            f"x-ratelimit-limit-{unit}": str(window.limit),
            f"x-ratelimit-remaining-{unit}": str(window.remaining(now)),
            f"x-ratelimit-reset-{unit}": _duration(window.seconds_until_full(now)),
        }


class ChatApi:
    """``/v1/chat/completions``."""

    provider: Provider = "openai"

    def asked(self, body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> Asked:
        model = _model(body, models)
        for name in body:
            if name not in _CHAT:
                raise refused(f"Unrecognized request argument supplied: {name}")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise refused(
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array "
                "instead.",
                "messages",
                "empty_array",
            )
        if any(each["role"] == "tool" for each in messages):  # the simulator's clients offer no tools
            raise refused(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                "messages",
            )
        turns = tuple(Turn(each["role"], text_of(each["content"], ("text", "refusal"))) for each in messages)
        _check_sampling(body, model)
        if body.get("stream_options") and not body.get("stream"):
            raise refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
        asked = Asked(
            "chat",
            model,
            turns,
            self._max_tokens(body, model),
            _stops(body, model),
            _chat_schema(body),
            bool(body.get("stream")),
            body=body,
        )
        return _within_context(asked, "messages")

    def _max_tokens(self, body: Mapping[str, Any], model: HostedModel) -> int | None:
        if "max_tokens" in body and model.reasons:
            raise refused(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                "max_tokens",
                "unsupported_parameter",
            )
        name = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        return _checked_limit(body, name, model, 1)

    def whole(self, answered: Answered) -> Mapping[str, Any]:
        end = answered.reply.end
        if end == "failed":
            raise OpenAIForm().failed()
        choices = [] if end == "no_choices" else [_choice(answered, number) for number in range(_n(answered))]
        return {**_chat_head(answered, "chat.completion"), "choices": choices, "usage": _chat_usage(answered)}

    def events(self, answered: Answered) -> Iterable[bytes]:
        reply = answered.reply
        opening = _chat_head(answered, "chat.completion.chunk")
        with_usage = (answered.asked.body.get("stream_options") or {}).get("include_usage")
        # Some servers send what is counted so far with each part.
        counted = {**_chat_usage(answered), "completion_tokens": 1} if len(reply.text) % 2 else None
        more: dict[str, Any] = {"usage": counted} if with_usage else {}

        def chunk(number: int, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": number, "delta": delta, "logprobs": None, "finish_reason": finish}
            return event({**opening, "choices": [choice], **more})

        numbers = range(0 if reply.end == "no_choices" else _n(answered))
        for number in numbers:
            message = _message(answered)
            yield chunk(number, {"role": "assistant", "content": "", "refusal": None})
            for text in deltas(message["content"] or ""):
                yield chunk(number, {"content": text})
            if reply.end == "failed":
                yield event(OpenAIForm().failed().body)
                return
            if message["refusal"]:
                yield chunk(number, {"refusal": message["refusal"]})
            for index, call in enumerate(message.get("tool_calls", ())):
                yield chunk(number, {"tool_calls": [{"index": index, **call}]})
            yield chunk(number, {}, _choice(answered, number)["finish_reason"])
        if with_usage:
            yield event({**opening, "choices": [], "usage": _chat_usage(answered)})
        yield DONE


class ResponsesApi:
    """``/v1/responses``."""

    provider: Provider = "openai"

    def asked(self, body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> Asked:
        model = _model(body, models)
        for name in body:
            if name not in _RESPONSES:
                raise refused(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
        given = body.get("input")
        if not given:
            raise refused("Missing required parameter: 'input'.", "input", "missing_required_parameter")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        for number, each in enumerate(items):
            if each["role"] not in ("user", "assistant", "system", "developer"):
                raise refused(
                    f"Invalid value: '{each['role']}'. Supported values are: 'assistant', 'system', 'developer', and "
                    "'user'.",
                    f"input[{number}].role",
                    "invalid_value",
                )
        turns = [Turn(each["role"], self._text(each, number)) for number, each in enumerate(items)]
        if body.get("instructions"):
            turns.insert(0, Turn("system", body["instructions"]))
        if model.reasons:
            for name in ("temperature", "top_p"):
                if name in body:
                    raise _unsupported(name)
        asked = Asked(
            "responses",
            model,
            tuple(turns),
            _checked_limit(body, "max_output_tokens", model, _LEAST_RESPONSE),
            schema=_responses_schema(body),
            stream=bool(body.get("stream")),
            body=body,
        )
        return _within_context(asked, "input")

    def _text(self, item: Mapping[str, Any], number: int) -> str:
        """Return the text of an item: turns of the assistant have parts of output, others of input."""
        allowed = ("output_text", "refusal") if item["role"] == "assistant" else ("input_text",)
        for place, part in enumerate(() if isinstance(item["content"], str) else item["content"]):
            if part["type"] not in allowed:
                names = " and ".join(f"'{name}'" for name in allowed)
                raise refused(
                    f"Invalid value: '{part['type']}'. Supported values are: {names}.",
                    f"input[{number}].content[{place}]",
                    "invalid_value",
                )
        return text_of(item["content"], allowed)

    def whole(self, answered: Answered) -> Mapping[str, Any]:
        """Return the response. One that failed is answered with status 200."""
        reply = answered.reply
        status = {"length": "incomplete", "content_filter": "incomplete", "failed": "failed"}.get(
            reply.end, "completed"
        )
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.end)
        error = {"code": "server_error", "message": "The model failed to generate a response."}
        return {
            **self._response(answered, status),
            "incomplete_details": {"reason": reason} if reason else None,
            "error": error if reply.end == "failed" else None,
            "output": self._output(answered),
            "usage": _responses_usage(answered),
        }

    def _response(self, answered: Answered, status: str) -> Mapping[str, Any]:
        body = answered.asked.body
        return {
            "id": f"resp_{answered.number:08d}",
            "object": "response",
            "created_at": answered.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "model": answered.served,
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": body.get("store") is not False,
            "temperature": body.get("temperature", 1.0),
            "text": body.get("text", {"format": {"type": "text"}}),
            "tool_choice": "auto",
            "tools": [],
            "top_p": body.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": None,
            "metadata": body.get("metadata") or {},
        }

    def _output(self, answered: Answered) -> list[Mapping[str, Any]]:
        reply, number = answered.reply, answered.number
        items: list[Mapping[str, Any]] = []
        if reply.reasoning_tokens:
            items.append({"id": f"rs_{number:08d}", "type": "reasoning", "summary": []})
        if reply.end == "tool_calls":
            items.append({**_CALL, "type": "function_call", "id": f"fc_{number:08d}", "status": "completed"})
        elif reply.text or reply.end in ("stop", "refusal"):
            part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
            if reply.end == "refusal":
                part = {"type": "refusal", "refusal": reply.text or REFUSAL}
            status = "incomplete" if reply.end in ("length", "content_filter") else "completed"
            items.append(
                {
                    "id": f"msg_{number:08d}",
                    "type": "message",
                    "status": status,
                    "role": "assistant",
                    "content": [part],
                }
            )
        return items

    def events(self, answered: Answered) -> Iterable[bytes]:
        count = 0

        def made(kind: str, **fields: Any) -> bytes:
            nonlocal count
            count += 1
            return event({"type": kind, "sequence_number": count - 1, **fields}, kind)

        opened = self._response(answered, "in_progress")
        yield made("response.created", response=opened)
        yield made("response.in_progress", response=opened)
        for index, item in enumerate(self._output(answered)):
            empty = {"status": "in_progress", "content": []}
            begun = {**item, **{name: value for name, value in empty.items() if name in item}}
            yield made("response.output_item.added", output_index=index, item=begun)
            for part in item.get("content", ()):
                at = {"item_id": item["id"], "output_index": index, "content_index": 0}
                key = "refusal" if part["type"] == "refusal" else "text"
                kind = "refusal" if part["type"] == "refusal" else "output_text"
                scored = {} if key == "refusal" else {"logprobs": []}
                yield made("response.content_part.added", part={**part, key: ""}, **at)
                for text in deltas(part[key]):
                    yield made(f"response.{kind}.delta", delta=text, **at, **scored)
                yield made(f"response.{kind}.done", **{key: part[key]}, **at, **scored)
                yield made("response.content_part.done", part=part, **at)
            yield made("response.output_item.done", output_index=index, item=item)
        found = self.whole(answered)
        yield made(f"response.{found['status']}", response=found)


def _model(body: Mapping[str, Any], models: Mapping[str, HostedModel]) -> HostedModel:
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise refused("you must provide a model parameter")
    if name not in models:
        text = f"The model `{name}` does not exist or you do not have access to it."
        raise refused(text, code="model_not_found", status=404)
    return models[name]


def _check_sampling(body: Mapping[str, Any], model: HostedModel) -> None:
    if not model.reasons:
        return
    for name, default in _SAMPLING.items():
        if body.get(name, default) != default:
            raise refused(
                f"Unsupported value: '{name}' does not support {body[name]} with this model. "
                f"Only the default ({default}) value is supported.",
                name,
                "unsupported_value",
            )
    for name in ("logprobs", "top_logprobs", "logit_bias"):
        if body.get(name):
            raise _unsupported(name)


def _stops(body: Mapping[str, Any], model: HostedModel) -> tuple[str, ...]:
    stop = body.get("stop")
    if stop is None:
        return ()
    if model.reasons:
        raise _unsupported("stop")
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if len(stops) > _MOST_STOPS:
        raise refused(
            f"Invalid 'stop': array too long. Expected an array with maximum length {_MOST_STOPS}, but got an array "
            f"with length {len(stops)} instead.",
            "stop",
            "array_above_max_length",
        )
    return stops


def _unsupported(name: str) -> RefusedError:
    text = f"Unsupported parameter: '{name}' is not supported with this model."
    return refused(text, name, "unsupported_parameter")


def _checked_limit(body: Mapping[str, Any], name: str, model: HostedModel, least: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not counted(value):
        raise refused(f"Invalid type for '{name}': expected an integer.", name, "invalid_type")
    if value < least:
        raise refused(
            f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead.",
            name,
            "integer_below_min_value",
        )
    if value > model.max_output:
        raise refused(
            f"{name} is too large: {value}. This model supports at most {model.max_output} completion tokens, "
            f"whereas you provided {value}.",
            name,
            "invalid_value",
        )
    return value


def _within_context(asked: Asked, param: str) -> Asked:
    tokens, most = len(pieces(asked.prompt)), asked.model.context
    if tokens > most:
        text = (
            f"This model's maximum context length is {most} tokens. However, your messages resulted in {tokens} tokens."
        )
        raise refused(text, param, "context_length_exceeded")
    return asked


def _chat_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    form = body.get("response_format") or {"type": "text"}
    if form["type"] != "json_schema":
        return None
    given = form.get("json_schema")
    if not isinstance(given, dict):
        text = "Missing required parameter: 'response_format.json_schema'."
        raise refused(text, "response_format.json_schema", "missing_required_parameter")
    return _checked_schema(given, "response_format", None)


def _responses_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    form = (body.get("text") or {}).get("format") or {"type": "text"}
    if form["type"] != "json_schema":
        return None
    if "json_schema" in form:  # the form of chat completions
        text = "Missing required parameter: 'text.format.name'."
        raise refused(text, "text.format.name", "missing_required_parameter")
    return _checked_schema(form, "text.format.schema", "invalid_json_schema")


def _checked_schema(form: Mapping[str, Any], param: str, code: str | None) -> Mapping[str, Any]:
    name, schema = form.get("name"), form.get("schema")
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        where = f"{param.removesuffix('.schema')}.name"
        text = f"Invalid '{where}': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."
        raise refused(text, where, "invalid_value")

    def wrong(at: tuple[str, ...], text: str) -> NoReturn:
        shown = "()" if not at else f"({', '.join(map(repr, at))}{',' if len(at) == 1 else ''})"
        raise refused(f"Invalid schema for response_format '{name}': In context={shown}, {text}", param, code)

    assert isinstance(schema, dict)
    if schema.get("type") != "object":
        kind = schema.get("type")
        raise refused(
            f"Invalid schema for response_format '{name}': schema must be a JSON Schema of 'type: \"object\"', got "
            f"'type: \"{kind}\"'.",
            param,
            code,
        )
    if form.get("strict"):
        _check_strict(schema, (), wrong)
    return schema


def _check_strict(schema: Any, at: tuple[str, ...], wrong: Any) -> None:
    """Check what strict schemas need: all properties required, no others, and keywords of the subset."""
    for keyword in schema:
        if keyword not in _KEYWORDS:
            wrong(at, f"'{keyword}' is not permitted.")
    if not {"type", "anyOf", "$ref", "enum", "const"} & set(schema):
        wrong(at, "schema must have a 'type' key.")
    if "format" in schema and schema["format"] not in _FORMATS:
        wrong(at, f"'{schema['format']}' is not a valid format.")
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            wrong(at, "'additionalProperties' is required to be supplied and to be false.")
        for name in properties:
            if name not in schema.get("required", ()):
                text = "'required' is required to be supplied and to be an array including every key in properties."
                wrong(at, f"{text} Missing '{name}'.")
        for name in schema.get("required", ()):
            if name not in properties:
                wrong(at, f"'required' holds '{name}', which is not a key in properties.")
    if schema.get("type") == "array" and "items" not in schema:
        wrong(at, "array schema missing items.")
    for group in ("properties", "$defs", "definitions"):
        for name, each in schema.get(group, {}).items():
            _check_strict(each, (*at, group, name), wrong)
    if isinstance(schema.get("items"), dict):
        _check_strict(schema["items"], (*at, "items"), wrong)
    for number, each in enumerate(schema.get("anyOf", ())):
        _check_strict(each, (*at, "anyOf", str(number)), wrong)


_CALL = {"call_id": "call_00000001", "name": "lookup", "arguments": '{"of":"something"}'}


def _n(answered: Answered) -> int:
    return answered.asked.body.get("n") or 1


def _chat_head(answered: Answered, kind: str) -> Mapping[str, Any]:
    return {
        "id": f"chatcmpl-{answered.number:08d}",
        "object": kind,
        "created": answered.created,
        "model": answered.served,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _message(answered: Answered) -> dict[str, Any]:
    reply = answered.reply
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
    if reply.end == "refusal":
        message |= {"content": None, "refusal": reply.text or REFUSAL}
    elif reply.end == "tool_calls":
        function = {"name": _CALL["name"], "arguments": _CALL["arguments"]}
        message |= {
            "content": reply.text or None,
            "tool_calls": [{"id": _CALL["call_id"], "type": "function", "function": function}],
        }
    return message


def _choice(answered: Answered, number: int) -> dict[str, Any]:
    finish = {"refusal": "stop"}.get(answered.reply.end, answered.reply.end)
    assert finish in ("stop", "length", "content_filter", "tool_calls"), f"chat has no end {finish}"
    return {"index": number, "message": _message(answered), "logprobs": None, "finish_reason": finish}


def _chat_usage(answered: Answered) -> Mapping[str, Any]:
    prompt, output = answered.prompt_tokens, answered.reply.output_tokens * _n(answered)
    inputs = {"cached_tokens": answered.cached, "audio_tokens": 0}
    if answered.asked.model.writes_cache:
        inputs["cache_write_tokens"] = answered.written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": inputs,
        "completion_tokens_details": {
            "reasoning_tokens": answered.reply.reasoning_tokens * _n(answered),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _responses_usage(answered: Answered) -> Mapping[str, Any]:
    prompt, output = answered.prompt_tokens, answered.reply.output_tokens
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": answered.cached, "cache_write_tokens": answered.written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": answered.reply.reasoning_tokens},
        "total_tokens": prompt + output,
    }


def _duration(seconds: float) -> str:
    """Return seconds as the provider writes them: 120ms, 1.5s, 6m0s."""
    if seconds < 1:
        return f"{ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:.3g}s" if minutes else f"{rest:.3f}s"

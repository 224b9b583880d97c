"""The endpoints of Anthropic's protocol, through its SDK."""

import json
from typing import Any

import anthropic
import pytest

from tests.runtime.server.servers import Served

TALK: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": " you"}]}]


def test_messages_are_answered_and_counted(claude: anthropic.Anthropic, server: Served):
    found = claude.messages.create(model=server.model, max_tokens=9, system="Be brief.", messages=TALK)
    counted = claude.messages.count_tokens(model=server.model, system="Be brief.", messages=TALK)
    usage = found.usage
    assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted.input_tokens
    assert usage.output_tokens <= 9
    assert found.stop_reason in ("max_tokens", "end_turn")


def test_streams_have_the_named_events(claude: anthropic.Anthropic, server: Served):
    greedy = {"temperature": 0.0}
    with claude.messages.stream(model=server.model, max_tokens=9, messages=TALK, extra_body=greedy) as stream:
        events: list[Any] = list(stream)
        final = stream.get_final_message()
    names = [event.type for event in events]
    first, last = events[0].message.usage, final.usage
    for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        assert getattr(first, name) == getattr(last, name)
    assert [name for name in names if name not in ("text", "content_block_delta")] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    counted = claude.messages.count_tokens(model=server.model, messages=TALK)
    assert final.usage.input_tokens + (final.usage.cache_read_input_tokens or 0) == counted.input_tokens
    assert final.stop_reason in ("max_tokens", "end_turn")


def test_a_final_message_of_the_assistant_goes_on(toy: Served):
    def text(messages: list[Any], most: int) -> str:
        body = {"model": "toy", "max_tokens": most, "temperature": 0, "messages": messages}
        return "".join(block["text"] for block in toy.post("/v1/messages", body).json()["content"])

    question = [{"role": "user", "content": "Name a colour."}]
    first = text(question, 4)
    assert first + text([*question, {"role": "assistant", "content": first}], 4) == text(question, 8)


def test_stops_and_forms(claude: anthropic.Anthropic, server: Served):
    found = claude.messages.create(
        model=server.model,
        max_tokens=200,
        messages=TALK,
        stop_sequences=["e"],
        extra_body={"temperature": 0.0},
    )
    assert (found.stop_reason, found.stop_sequence) == ("stop_sequence", "e")
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
    found = claude.messages.create(
        model=server.model,
        max_tokens=200,
        messages=TALK,
        output_config={"format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}},
    )
    (block,) = found.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert isinstance(json.loads(block.text)["yes"], bool)


def test_a_prompt_is_computed_before_it_is_needed(builtin: Served):
    messages = [{"role": "user", "content": "A prompt of this test alone: " + "so it goes. " * 20}]
    body = {"model": builtin.model, "messages": messages}
    first = builtin.post("/v1/messages", {**body, "max_tokens": 0}).json()
    assert first["content"] == []
    then = builtin.post("/v1/messages", {**body, "max_tokens": 1}).json()["usage"]
    tokens = first["usage"]["input_tokens"] + first["usage"]["cache_read_input_tokens"]
    assert (then["input_tokens"], then["cache_read_input_tokens"]) == (1, tokens - 1)
    for most in (0, 1, 5):
        events = builtin.post("/v1/messages", {**body, "max_tokens": most, "stream": True}).text.split("\n\n")
        start, *_, delta = (json.loads(event.partition("data: ")[2]) for event in events if '"usage":{' in event)
        for usage in (start["message"]["usage"], delta["usage"]):
            assert usage["input_tokens"] + usage["cache_read_input_tokens"] == tokens
            assert usage["cache_read_input_tokens"] >= tokens - 1


def said(block: Any) -> dict[str, Any]:
    return {"role": "user", "content": [block]}


@pytest.mark.parametrize(
    ("parameters", "kind", "word"),
    [
        ({"bad": 1}, "invalid_request_error", "bad"),
        ({"max_tokens": -1}, "invalid_request_error", "max_tokens"),
        ({"stop_sequences": [""]}, "invalid_request_error", "stop_sequences"),
        ({"model": "other"}, "not_found_error", "other"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "invalid_request_error", "thinking"),
        ({"messages": [{"role": "system", "content": "x"}]}, "invalid_request_error", "messages"),
        ({"output_config": {"effort": "high"}}, "invalid_request_error", "effort"),
        ({"messages": [said({"type": "text", "text": 5})]}, "invalid_request_error", "messages.0.content.0.text: "),
        ({"messages": [said({"type": "text"})]}, "invalid_request_error", "messages.0.content.0.text: "),
        ({"messages": [said({"text": "x"})]}, "invalid_request_error", "messages.0.content.0: a block"),
        ({"messages": [said({"type": "image"})]}, "invalid_request_error", "messages.0.content.0: a block"),
        ({"messages": [said({"type": 5})]}, "invalid_request_error", "messages.0.content.0: a block"),
        (
            {"messages": [said({"type": "tool_use", "id": "a", "name": "b", "input": []})]},
            "invalid_request_error",
            "messages.0.content.0.input: ",
        ),
        (
            {"messages": [said({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": 1}]})]},
            "invalid_request_error",
            "messages.0.content.0.content.0.text: ",
        ),
    ],
)
def test_errors_have_the_form_of_the_protocol(parameters: dict[str, Any], kind: str, word: str, toy: Served):
    body = {"model": "toy", "max_tokens": 5, "messages": TALK, **parameters}
    answer = toy.post("/v1/messages", body).json()
    assert answer["type"] == "error"
    assert answer["error"]["type"] == kind
    assert word in answer["error"]["message"]

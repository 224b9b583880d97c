"""``/v1/responses``, through OpenAI's SDK."""

import asyncio
import json
from typing import Any, Literal

import openai
import pydantic
import pytest

from tests.runtime.server.servers import SECONDS, Served, openai_client
from tests.runtime.server.test_openai import HOSTILE

TALK: list[Any] = [
    {"role": "developer", "content": "You are brief."},
    {"role": "user", "content": [{"type": "input_text", "text": HOSTILE}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "A text.", "annotations": []}],
    },
    {"type": "message", "role": "user", "content": "And now?"},
]


class City(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: Literal["Oslo", "Bern"]


def test_an_answer_is_that_of_a_chat(client: openai.OpenAI, server: Served):
    found = client.responses.create(
        model=server.model,
        input=TALK,
        max_output_tokens=12,
        temperature=0,
        include=["message.output_text.logprobs"],
        top_logprobs=2,
    )
    roles = [(each["role"], each["content"]) for each in TALK]
    messages: list[Any] = [
        {"role": role, "content": content if isinstance(content, str) else content[0]["text"]}
        for role, content in roles
    ]
    chat = client.chat.completions.create(
        model=server.model, messages=messages, max_tokens=12, temperature=0, logprobs=True, top_logprobs=2
    )
    assert found.output_text == chat.choices[0].message.content
    assert found.usage is not None
    assert chat.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (
        chat.usage.prompt_tokens,
        chat.usage.completion_tokens,
    )
    assert found.status == ("incomplete" if chat.choices[0].finish_reason == "length" else "completed")
    part: Any = found.output[0]
    assert chat.choices[0].logprobs is not None
    expected = [each.model_dump() for each in chat.choices[0].logprobs.content or ()]
    assert [each.model_dump() for each in part.content[0].logprobs] == expected


def test_an_answer_has_the_metadata_of_its_request(client: openai.OpenAI, server: Served):
    asked: dict[str, Any] = {"model": server.model, "input": "x", "max_output_tokens": 2}
    assert client.responses.create(**asked, metadata={"a": "b"}).metadata == {"a": "b"}
    with client.responses.stream(**asked, metadata={"a": "b"}) as stream:
        events: list[Any] = list(stream)
    assert events[-1].response.metadata == {"a": "b"}
    assert client.responses.create(**asked).metadata == {}


def test_instructions_are_a_message_of_the_system(client: openai.OpenAI, server: Served):
    asked: dict[str, Any] = {"model": server.model, "max_output_tokens": 8, "temperature": 0}
    one = client.responses.create(instructions="You are brief.", input="Who?", **asked)
    same: list[Any] = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Who?"}]
    other = client.responses.create(input=same, **asked)
    assert one.output_text == other.output_text
    assert one.usage is not None
    assert other.usage is not None
    assert one.usage.input_tokens == other.usage.input_tokens


def test_streams_have_the_events_of_the_protocol(client: openai.OpenAI, server: Served):
    asked: dict[str, Any] = {
        "model": server.model,
        "input": TALK,
        "max_output_tokens": 10,
        "temperature": 0,
        "include": ["message.output_text.logprobs"],
    }
    whole = client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        events: list[Any] = list(stream)
    kinds = [event.type for event in events]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert kinds[4 : 4 + len(deltas)] == ["response.output_text.delta"] * len(deltas)
    assert kinds[4 + len(deltas) :] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        f"response.{whole.status}",
    ]
    assert "".join(event.delta for event in deltas) == whole.output_text == events[-1].response.output_text
    part: Any = whole.output[0]
    entries = [entry.model_dump() for event in deltas for entry in event.logprobs]
    assert entries == [entry.model_dump() for entry in part.content[0].logprobs]
    assert events[-1].response.usage.output_tokens == (whole.usage and whole.usage.output_tokens)


def test_answers_have_the_form_that_is_asked_for(client: openai.OpenAI, server: Served):
    parsed = client.responses.parse(model=server.model, input="A city", text_format=City, max_output_tokens=60)
    assert parsed.output_parsed is not None
    assert parsed.output_parsed.name in ("Oslo", "Bern")
    with client.responses.stream(model=server.model, input="A city", text_format=City, max_output_tokens=60) as stream:
        assert stream.get_final_response().output_parsed in (City(name="Oslo"), City(name="Bern"))


def test_asynchronous_clients_are_served(server: Served):
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=SECONDS) as client:
            return (await client.responses.create(model=server.model, input="x", max_output_tokens=3)).output_text

    assert isinstance(asyncio.run(ask()), str)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"input": []}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "input.0.content.0.type",
        ),
        ({"input": [{"type": "function_call", "call_id": 1, "name": "a", "arguments": ""}]}, "input.0.call_id"),
        ({"text": {"format": {"type": "json_object", "schema": {"const": 1}}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "schema": {"const": 1}}}}, "text.format.name"),
        ({"text": {"format": {"type": "text", "name": "x"}}}, "text.format.name"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"include": ["reasoning.encrypted_content"]}, "include"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": 1}}}}, "text.format"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"strange": 1}, "strange"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_other_values_are_refused_by_name(parameters: dict[str, Any], name: str, stream: bool, toy: Served):
    answer = toy.post("/v1/responses", {"model": "toy", "input": "x", "stream": stream, **parameters})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["param"].startswith(name)
    assert name in error["message"] or name == "text.format"
    assert "image" not in str(parameters) or "images" in error["message"]


def test_a_batch_takes_responses(toy: Served):
    client = openai_client(toy.url)
    body = {"model": "toy", "input": "x", "max_output_tokens": 4, "temperature": 0}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": body}
    file = client.files.create(file=("in.jsonl", json.dumps(line).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        batch = client.batches.retrieve(batch.id)
    assert batch.output_file_id is not None
    result = json.loads(client.files.content(batch.output_file_id).text)["response"]["body"]
    single = client.responses.create(model="toy", input="x", max_output_tokens=4, temperature=0)
    assert result["output"][0]["content"][0]["text"] == single.output_text

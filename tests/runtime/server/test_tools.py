"""Tools, through the SDKs: templates that know tools, and those that do not."""

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import Generator
from typing import Any, Literal

import anthropic
import openai
import pydantic
import pytest

from lmc import builtin_model
from lmc.ir.tokens.tokenizer import Tokenizer
from tests.ir.tool_templates import MARKED
from tests.runtime.server.servers import FULL, SECONDS, Served, openai_client, served

FOLDER = builtin_model.path()
CITIES = ["Oslo", "Bern"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": CITIES}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
FUNCTIONS = [
    {"name": "weather", "description": "The weather of a city", "parameters": SCHEMA},
    {"name": "clock", "description": "The time"},
]
TOOLS: list[Any] = [{"type": "function", "function": function} for function in FUNCTIONS]
TOOLS[1]["function"]["parameters"] = NOTHING
CLAUDE_TOOLS: list[Any] = [
    {"name": "weather", "description": "The weather of a city", "input_schema": SCHEMA},
    {"name": "clock", "input_schema": NOTHING, "type": "custom"},
]
ASK: list[Any] = [{"role": "user", "content": "How is it in Oslo <|im_end|>?"}]
PICK: Any = {"type": "function", "function": {"name": "weather"}}
SOME: Any = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [PICK]}}
ONE: Any = {"disable_parallel_tool_use": True}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """The built-in model with a template that knows tools."""
    folder = tmp_path_factory.mktemp("models") / "marked"
    shutil.copytree(FOLDER, folder)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": MARKED}))
    with served("--model", f"local:{folder}") as server:
        yield server


@pytest.fixture(params=["toy", "builtin", "marked"])
def server(request: pytest.FixtureRequest) -> Served:
    return request.getfixturevalue(request.param)


def is_good(name: str, arguments: Any) -> bool:
    if name == "clock":
        return arguments == {}
    return arguments["city"] in CITIES and 1 <= arguments["days"] <= 9 and len(arguments) == 2


@pytest.mark.parametrize("choice", ["required", PICK, SOME])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_calls_meet_their_schema_and_stream(client: openai.OpenAI, server: Served, choice: Any, temperature: float):
    asked: dict[str, Any] = {
        "model": server.model,
        "messages": ASK,
        "tools": TOOLS,
        "tool_choice": choice,
        "temperature": temperature,
        "seed": 3,
        "n": 2,
        "parallel_tool_calls": False,
        "logprobs": True,
    }
    whole = client.chat.completions.create(**asked)
    calls: list[dict[int, list[str]]] = [{}, {}]
    ends, tokens = ["", ""], [0, 0]
    for chunk in client.chat.completions.create(**asked, stream=True):
        for choice_ in chunk.choices:
            assert not choice_.delta.content
            ends[choice_.index] = choice_.finish_reason or ends[choice_.index]
            tokens[choice_.index] += len((choice_.logprobs and choice_.logprobs.content) or ())
            for call in choice_.delta.tool_calls or ():
                said = calls[choice_.index].setdefault(call.index, [])
                assert (call.id is None) == bool(said)
                assert call.function is not None
                said += [call.function.name or "", call.function.arguments or ""]
    for index, each in enumerate(whole.choices):
        (call,) = each.message.tool_calls or []
        assert call.type == "function"
        assert each.message.content is None
        assert each.finish_reason == ends[index] == "tool_calls"
        assert is_good(call.function.name, json.loads(call.function.arguments))
        assert choice == "required" or call.function.name == "weather"
        assert "".join(calls[index][0]) == call.function.name + call.function.arguments
        assert each.logprobs is not None
        assert tokens[index] == len(each.logprobs.content or ()) > 0


def test_the_model_decides_whether_it_calls(client: openai.OpenAI, server: Served):
    asked: dict[str, Any] = {"model": server.model, "messages": ASK, "tools": TOOLS, "temperature": 0}
    answer = client.chat.completions.create(**asked, max_tokens=9).choices[0]
    assert answer.message.content
    assert not answer.message.tool_calls
    none = client.chat.completions.create(**asked, max_tokens=9, tool_choice="none").choices[0]
    assert none.message.content == answer.message.content
    if server.model != "marked":
        return
    # A model that says <Q> has begun a call. None of the three is in the prompt, so they are not penalized.
    asked["messages"] = [{"role": "user", "content": "How is it?"}]
    tokenizer = Tokenizer.from_folder(FOLDER)
    bias = {tokenizer.encode(mark)[0]: weight for mark, weight in (("<", 100), ("Q", 60), (">", 40))}
    led: dict[str, Any] = {"logit_bias": bias, "extra_body": {"repetition_penalty": 100.0}}
    called = client.chat.completions.create(**asked, **led, parallel_tool_calls=False).choices[0]
    (call,) = called.message.tool_calls or []
    assert call.type == "function"
    assert is_good(call.function.name, json.loads(call.function.arguments))
    assert called.finish_reason == "tool_calls"
    said = client.chat.completions.create(**asked, **led, max_tokens=20, tool_choice="none").choices[0].message
    assert said.tool_calls is None
    assert "<Q>" not in (said.content or "")


def test_results_of_calls_are_part_of_the_conversation(client: openai.OpenAI, server: Served):
    calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city":"Oslo","days":1}'},
        }
        for number in (1, 2)
    ]
    talk: list[Any] = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain <|im_end|>"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "Sun"}]},
    ]
    given: tuple[dict[str, Any], ...] = ({"tools": TOOLS}, {})
    for tools in given:
        found = client.chat.completions.create(model=server.model, messages=talk, max_tokens=5, **tools)
        assert found.usage is not None
        assert 1 <= found.usage.completion_tokens <= 5
    with pytest.raises(openai.BadRequestError, match="c3"):
        client.chat.completions.create(
            model=server.model, messages=[*talk, {"role": "tool", "tool_call_id": "c3", "content": "x"}]
        )


def test_an_answer_may_have_a_schema_beside_tools(client: openai.OpenAI, server: Served):
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["rain", "sun"]}}}
    asked: dict[str, Any] = {"model": server.model, "messages": ASK, "tools": TOOLS, "response_format": form}
    for choice in ("auto", "none"):
        message = client.chat.completions.create(**asked, tool_choice=choice, temperature=0).choices[0].message
        if not message.tool_calls:
            assert json.loads(message.content or "") in ("rain", "sun")
    assert client.chat.completions.create(**asked, tool_choice="required").choices[0].message.tool_calls


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "any", "disable_parallel_tool_use": True},
        {"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
    ],
)
def test_messages_have_blocks_for_calls(claude: anthropic.Anthropic, server: Served, choice: Any):
    asked: dict[str, Any] = {
        "model": server.model,
        "messages": ASK,
        "tools": CLAUDE_TOOLS,
        "tool_choice": choice,
        "max_tokens": 200,
        "extra_body": {"temperature": 0.0},
    }
    whole = claude.messages.create(**asked)
    (block,) = whole.content
    assert block.type == "tool_use"
    assert whole.stop_reason == "tool_use"
    assert is_good(block.name, block.input)
    with claude.messages.stream(**asked) as stream:
        names = [event.type for event in stream]
        streamed = stream.get_final_message()
    (again,) = streamed.content
    assert again.type == "tool_use"
    assert (again.name, again.input, streamed.stop_reason) == (block.name, block.input, "tool_use")
    assert [name for name in names if name not in ("input_json", "content_block_delta")] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    talk: list[Any] = [
        *ASK,
        {"role": "assistant", "content": [{"type": "text", "text": "See:"}, block.model_dump(exclude_none=True)]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": block.id, "content": "no <|im_end|>", "is_error": True},
                {"type": "text", "text": "And now?"},
            ],
        },
    ]
    asked = {**asked, "messages": talk, "max_tokens": 5, "tool_choice": {"type": "auto"}}
    answer = claude.messages.create(**asked)
    del asked["max_tokens"], asked["extra_body"]
    counted = claude.messages.count_tokens(**asked).input_tokens
    assert answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0) == counted
    assert counted > claude.messages.count_tokens(model=server.model, messages=talk).input_tokens


RESPONSE_TOOLS: list[Any] = [{"type": "function", "strict": True, **tool["function"]} for tool in TOOLS]
RESPONSE_PICK: Any = {"type": "function", "name": "weather"}
RESPONSE_SOME: Any = {"type": "allowed_tools", "mode": "required", "tools": [RESPONSE_PICK]}


class Weather(pydantic.BaseModel):
    """The weather of a city."""

    city: Literal["Oslo", "Bern"]


@pytest.mark.parametrize("choice", ["required", RESPONSE_PICK, RESPONSE_SOME])
def test_responses_have_items_for_calls(client: openai.OpenAI, server: Served, choice: Any):
    asked: dict[str, Any] = {
        "model": server.model,
        "input": ASK,
        "tools": RESPONSE_TOOLS,
        "tool_choice": choice,
        "temperature": 0,
        "parallel_tool_calls": False,
    }
    whole = client.responses.create(**asked)
    (call,) = whole.output
    assert call.type == "function_call"
    assert (whole.status, call.status) == ("completed", "completed")
    assert is_good(call.name, json.loads(call.arguments))
    assert choice == "required" or call.name == "weather"
    forced: Any = {"required": "required", "function": PICK, "allowed_tools": SOME}[
        choice if isinstance(choice, str) else choice["type"]
    ]
    chat = client.chat.completions.create(
        model=server.model, messages=ASK, tools=TOOLS, tool_choice=forced, temperature=0, parallel_tool_calls=False
    )
    (same,) = chat.choices[0].message.tool_calls or []
    assert same.type == "function"
    assert (same.function.name, same.function.arguments) == (call.name, call.arguments)
    assert whole.usage is not None
    assert chat.usage is not None
    assert whole.usage.input_tokens == chat.usage.prompt_tokens
    with client.responses.stream(**asked) as stream:
        events: list[Any] = list(stream)
    kinds = [event.type for event in events]
    deltas = [event for event in events if event.type == "response.function_call_arguments.delta"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        *["response.function_call_arguments.delta"] * len(deltas),
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    added, *_, arguments, done, completed = events[2:]
    assert (added.item.name, added.item.arguments, added.item.status) == (call.name, "", "in_progress")
    assert "".join(event.delta for event in deltas) == arguments.arguments == done.item.arguments == call.arguments
    (last,) = completed.response.output
    assert added.item.call_id == done.item.call_id == last.call_id
    assert last.parsed_arguments == json.loads(call.arguments)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain <|im_end|>"}
    answer = client.responses.create(
        model=server.model,
        input=[*ASK, *whole.output, result],
        tools=RESPONSE_TOOLS,
        max_output_tokens=5,
        temperature=0,
    )
    said: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [same.model_dump()]}
    talk: list[Any] = [*ASK, said, {"role": "tool", "tool_call_id": same.id, "content": "Rain <|im_end|>"}]
    equal = client.chat.completions.create(model=server.model, messages=talk, tools=TOOLS, max_tokens=5, temperature=0)
    assert answer.output_text == (equal.choices[0].message.content or "")
    assert answer.usage is not None
    assert equal.usage is not None
    assert answer.usage.input_tokens == equal.usage.prompt_tokens


def test_responses_with_tools_may_be_text(client: openai.OpenAI, server: Served):
    asked: dict[str, Any] = {"model": server.model, "input": ASK, "tools": RESPONSE_TOOLS, "temperature": 0}
    answer = client.responses.create(**asked, max_output_tokens=9)
    assert [item.type for item in answer.output] == ["message"]
    chat = client.chat.completions.create(model=server.model, messages=ASK, tools=TOOLS, temperature=0, max_tokens=9)
    assert answer.output_text == chat.choices[0].message.content
    with client.responses.stream(**asked, max_output_tokens=9, tool_choice="none") as stream:
        events: list[Any] = list(stream)
    assert events[-1].response.output_text == answer.output_text
    scored: dict[str, Any] = {**asked, "max_output_tokens": 9, "include": ["message.output_text.logprobs"]}
    whole: Any = client.responses.create(**scored).output[0]
    with client.responses.stream(**scored) as stream:
        events = list(stream)
    entries = whole.content[0].logprobs
    streamed = [entry for event in events if event.type == "response.output_text.delta" for entry in event.logprobs]
    assert [entry.model_dump() for entry in streamed] == [entry.model_dump() for entry in entries]
    assert "".join(entry.token for entry in entries).endswith(answer.output_text)
    scores = (
        client.chat.completions.create(
            model=server.model, messages=ASK, tools=TOOLS, temperature=0, max_tokens=9, logprobs=True
        )
        .choices[0]
        .logprobs
    )
    assert scores is not None
    same = (scores.content or [])[-len(entries) :]
    assert [(entry.token, entry.logprob) for entry in entries] == [(entry.token, entry.logprob) for entry in same]
    forced: dict[str, Any] = {**scored, "max_output_tokens": 200, "tool_choice": "required"}
    called = client.responses.create(**forced)
    assert {item.type for item in called.output} == {"function_call"}
    form: Any = {"format": {"type": "json_schema", "name": "x", "schema": {"enum": ["rain", "sun"]}}}
    formed = client.responses.create(**asked, text=form, tool_choice="none")
    assert json.loads(formed.output_text) in ("rain", "sun")


def test_items_of_a_turn_are_one_message(client: openai.OpenAI, server: Served):
    """A message and the calls behind it are a turn of the assistant, as in a chat."""
    arguments = '{"city":"Oslo","days":1}'
    talk: list[Any] = [
        *ASK,
        {"role": "assistant", "content": "I look."},
        *(
            {"type": "function_call", "call_id": f"c{number}", "name": "weather", "arguments": arguments}
            for number in (1, 2)
        ),
        {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Sun"}]},
    ]
    function = {"name": "weather", "arguments": arguments}
    calls = [{"id": f"c{number}", "type": "function", "function": function} for number in (1, 2)]
    messages: list[Any] = [
        *ASK,
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
        {"role": "tool", "tool_call_id": "c2", "content": "Sun"},
    ]
    asked: dict[str, Any] = {"model": server.model, "temperature": 0}
    one = client.responses.create(input=talk, tools=RESPONSE_TOOLS, max_output_tokens=6, **asked)
    other = client.chat.completions.create(messages=messages, tools=TOOLS, max_tokens=6, **asked)
    assert one.usage is not None
    assert other.usage is not None
    assert one.usage.input_tokens == other.usage.prompt_tokens
    assert one.output_text == (other.choices[0].message.content or "")


def test_parsed_calls_are_objects(client: openai.OpenAI, server: Served):
    tool: Any = openai.pydantic_function_tool(Weather)
    asked: dict[str, Any] = {"model": server.model, "input": ASK, "tools": [tool], "tool_choice": "required"}
    (call,) = client.responses.parse(**asked, parallel_tool_calls=False).output
    assert call.type == "function_call"
    assert isinstance(call.parsed_arguments, Weather)
    (typed,) = (
        client.chat.completions.parse(
            model=server.model, messages=ASK, tools=[tool], tool_choice="required", parallel_tool_calls=False
        )
        .choices[0]
        .message.tool_calls
        or []
    )
    assert isinstance(typed.function.parsed_arguments, Weather)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the SDK's own, of the objects that it sends
def test_typed_answers_go_back_into_their_conversation(client: openai.OpenAI, server: Served):
    """The SDK sends the objects that it has made of an answer, and the places of calls in a stream."""
    asked: dict[str, Any] = {"model": server.model, "messages": ASK, "temperature": 0}
    tool: Any = openai.pydantic_function_tool(Weather)
    called: dict[str, Any] = {**asked, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    with client.chat.completions.stream(**called) as stream:
        streamed = stream.get_final_completion()
    said = client.chat.completions.parse(**asked, response_format=Weather)
    answers: list[Any] = [said, client.chat.completions.parse(**called), streamed]
    for message in (answer.choices[0].message for answer in answers):
        calls = message.tool_calls or ()
        results = [{"role": "tool", "tool_call_id": call.id, "content": "Rain"} for call in calls]
        plain: dict[str, Any] = {"role": "assistant", "content": message.content}
        if calls:
            functions = [{"name": call.function.name, "arguments": call.function.arguments} for call in calls]
            plain["tool_calls"] = [
                {"id": call.id, "type": "function", "function": function}
                for call, function in zip(calls, functions, strict=True)
            ]
        talks: list[list[Any]] = [
            [*ASK, said, *results, {"role": "user", "content": "Again"}] for said in (message, plain)
        ]
        one, other = (
            client.chat.completions.create(model=server.model, messages=talk, tools=[tool], max_tokens=5, temperature=0)
            for talk in talks
        )
        assert one.choices == other.choices
        assert one.usage is not None
        assert other.usage is not None
        assert one.usage.prompt_tokens == other.usage.prompt_tokens
    response: dict[str, Any] = {"model": server.model, "input": ASK, "temperature": 0}
    typed = client.responses.parse(**response, text_format=Weather, max_output_tokens=60)
    called = {**response, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    for output in (typed.output, client.responses.parse(**called).output):
        items: list[Any] = [*ASK, *output, {"role": "user", "content": "Again"}]
        client.responses.create(model=server.model, input=items, max_output_tokens=2)


def test_asynchronous_streams_and_batches_have_calls(builtin: Served):
    asked: dict[str, Any] = {
        "model": builtin.model,
        "input": ASK,
        "tools": RESPONSE_TOOLS,
        "tool_choice": "required",
        "temperature": 0,
        "parallel_tool_calls": False,
    }

    async def ask() -> Any:
        client = openai.AsyncOpenAI(base_url=f"{builtin.url}/v1", api_key="none", timeout=SECONDS)
        async with client, client.responses.stream(**asked) as stream:
            return await stream.get_final_response()

    (call,) = asyncio.run(ask()).output
    client = openai_client(builtin.url)
    line = {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": asked}
    file = client.files.create(file=("in.jsonl", json.dumps(line).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    assert batch.output_file_id is not None
    (item,) = json.loads(client.files.content(batch.output_file_id).text)["response"]["body"]["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", call.name, call.arguments)


def test_the_runner_of_tools_sends_whole_conversations(claude: anthropic.Anthropic, server: Served):
    """It asks for a thread on the server first."""
    cities: list[str] = []

    @anthropic.beta_tool
    def weather(city: Literal["Oslo", "Bern"]) -> str:
        """The weather of a city."""
        cities.append(city)
        return f"sun in {city}"

    runner = claude.beta.messages.tool_runner(
        model=server.model,
        max_tokens=200,
        messages=ASK,
        tools=[weather],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        max_iterations=2,
    )
    replies = list(runner)
    assert [reply.stop_reason for reply in replies] == ["tool_use", "tool_use"]
    assert len(cities) == 2


@pytest.mark.parametrize("parallel", [False, True])
def test_a_call_that_is_cut_is_handed_out_as_it_is(
    client: openai.OpenAI, claude: anthropic.Anthropic, server: Served, parallel: bool
):
    chats: dict[str, Any] = {"model": server.model, "messages": ASK, "tools": TOOLS, "tool_choice": "required"}
    responses: dict[str, Any] = {
        "model": server.model,
        "input": ASK,
        "tools": RESPONSE_TOOLS,
        "tool_choice": "required",
    }
    messages: dict[str, Any] = {
        "model": server.model,
        "messages": ASK,
        "tools": CLAUDE_TOOLS,
        "tool_choice": {"type": "any", "disable_parallel_tool_use": not parallel},
        "extra_body": {"temperature": 0.0},
    }
    for asked in (chats, responses):
        asked.update(temperature=0, parallel_tool_calls=parallel)
    ends = set[str]()
    known = ""
    for count in (1, 3, 6, 9, 12, 14, 16, 18, 20, 22, 25, 30) if FULL else (1, 6, 12, 16, 20, 30):
        (choice,) = client.chat.completions.create(**chats, max_tokens=count).choices
        calls: list[Any] = choice.message.tool_calls or []
        said = [(call.function.name, call.function.arguments) for call in calls]
        assert not choice.message.content
        ends.add(choice.finish_reason)
        if choice.finish_reason != "length":
            break
        assert str(said)[:-3].startswith(known[:-3])  # what is cut is the beginning of what comes later
        known = str(said)
        names, texts = list[str](), list[str]()
        for chunk in client.chat.completions.create(**chats, max_tokens=count, stream=True):
            assert not chunk.choices[0].delta.content
            for call in chunk.choices[0].delta.tool_calls or ():
                assert call.function is not None
                if call.function.name:
                    names.append(call.function.name)
                    texts.append("")
                texts[-1] += call.function.arguments or ""
        assert list(zip(names, texts, strict=True)) == said
        answer = client.responses.create(**responses, max_output_tokens=count)
        assert answer.status == "incomplete"
        assert not answer.output_text
        items: list[Any] = [item for item in answer.output if item.type == "function_call"]
        assert [(item.name, item.arguments) for item in items] == said
        assert [item.status for item in items] == ["completed"] * (len(items) - 1) + ["incomplete"] * bool(items)
        events: list[Any] = list(client.responses.create(**responses, max_output_tokens=count, stream=True))
        assert events[-1].type == "response.incomplete"
        assert [item.name for item in events[-1].response.output if item.type == "function_call"] == names
        message = claude.messages.create(**messages, max_tokens=count)
        assert message.stop_reason == "max_tokens"
        blocks: list[Any] = message.content
        with claude.messages.stream(**messages, max_tokens=count) as stream:
            last: list[Any] = stream.get_final_message().content
        assert [(block.name, block.input) for block in last] == [(block.name, block.input) for block in blocks]
    assert "length" in ends
    named = {"type": "function", "function": {"name": "weather"}}
    for stop, is_cut in (("ays", True), ("}", True), ("\u2029", False)):
        asked: dict[str, Any] = {**chats, "tool_choice": named, "parallel_tool_calls": False, "stop": [stop]}
        (choice,) = client.chat.completions.create(**asked).choices
        chunks = list(client.chat.completions.create(**asked, stream=True))
        assert choice.finish_reason == chunks[-1].choices[0].finish_reason == ("stop" if is_cut else "tool_calls")
        calls = choice.message.tool_calls or []
        assert ("}" in calls[0].function.arguments) != is_cut
        messages["tool_choice"] = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
        message = claude.messages.create(**messages, max_tokens=200, stop_sequences=[stop])
        assert message.stop_reason == ("stop_sequence" if is_cut else "tool_use")


@pytest.mark.parametrize(
    ("parameters", "name", "word"),
    [
        *(
            ({"tools": [{"type": kind}]}, "tools", kind)
            for kind in ("web_search", "file_search", "code_interpreter", "mcp", "custom", "image_generation", "shell")
        ),
        ({"tools": [{"type": "function", "name": "x", "parameters": {"type": 7}}]}, "tools", "x"),
        ({"tools": [{"type": "function", "name": "x", "defer_loading": True}]}, "tools", "defer_loading"),
        ({"tools": [{"type": "function", "function": {"name": "x"}}]}, "tools", "name"),
        ({"tools": RESPONSE_TOOLS, "tool_choice": {"type": "function", "name": "x"}}, "tool_choice", "x"),
        ({"tools": RESPONSE_TOOLS, "tool_choice": {"type": "web_search"}}, "tool_choice", "web_search"),
        ({"tool_choice": "required"}, "tool_choice", "tools"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input", "c"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "x", "arguments": "[]"}]}, "input", "JSON"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input", "function_call"),
    ],
)
def test_tools_of_responses_that_can_not_be_used_are_refused(
    parameters: dict[str, Any], name: str, word: str, toy: Served
):
    for stream in (False, True):
        answer = toy.post("/v1/responses", {"model": "toy", "input": ASK, "stream": stream, **parameters})
        error = answer.json()["error"]
        assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
        assert error["param"].startswith(name)
        assert word in error["message"]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": {"type": 7}}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "answer"}}]}, "tools"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": TOOLS, "regex": "a"}, "regex"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
    ],
)
def test_tools_that_can_not_be_used_are_refused_by_name(parameters: dict[str, Any], name: str, toy: Served):
    answer = toy.post("/v1/chat/completions", {"model": "toy", "messages": ASK, **parameters})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith(name)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools"),
        ({"tools": [{**CLAUDE_TOOLS[0], "defer_loading": True}]}, "defer_loading"),
        ({"tools": CLAUDE_TOOLS, "tool_choice": {"type": "tool"}}, "tool_choice"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages"),
    ],
)
def test_anthropics_tools_that_can_not_be_used_are_refused_by_name(parameters: dict[str, Any], word: str, toy: Served):
    answer = toy.post("/v1/messages", {"model": "toy", "max_tokens": 5, "messages": ASK, **parameters})
    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]


def bombs() -> Generator[Any]:
    """Tools that are too many, or whose schemas are too large to be compiled."""
    yield [{"type": "function", "function": {"name": f"t{number}", "parameters": SCHEMA}} for number in range(10_000)]
    wide = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(50_000)}}
    yield [{"type": "function", "function": {"name": "t", "parameters": wide}}]
    for pattern in ("^(.*a.{60}|.*b.{59}c)$", "^((a{1,99}b{0,99}){1,99}c?){1,99}$"):
        deep = {"type": "object", "properties": {"p": {"type": "string", "pattern": pattern, "minLength": 70}}}
        yield [{"type": "function", "function": {"name": "t", "parameters": deep}}]
    level: Any = {"type": "object"}
    for _ in range(200):
        level = {"type": "array", "items": level}
    yield [{"type": "function", "function": {"name": "t", "parameters": {"type": "object", "not": level}}}]


def test_bombs_hold_up_no_stream(builtin: Served):
    client = openai_client(builtin.url)
    gaps: list[float] = []
    bodies = [{"model": builtin.model, "messages": ASK, "tools": tools} for tools in bombs()]
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            last = time.perf_counter()
            for _ in client.chat.completions.create(
                model=builtin.model, messages=ASK, stream=True, max_tokens=300, extra_body={"min_tokens": 300}
            ):
                now = time.perf_counter()
                gaps.append(now - last)
                last = now

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        end = time.monotonic() + SECONDS
        while len(gaps) < 300:
            assert time.monotonic() < end
            time.sleep(0.01)
        quiet = max(gaps)
        for body in bodies:
            started = time.perf_counter()
            answer = builtin.post("/v1/chat/completions", body)
            seconds = time.perf_counter() - started
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tools")
            assert seconds < _slowness(), answer.text
    finally:
        is_over.set()
        watching.join()
    assert len(gaps) > 100
    assert max(gaps) < max(0.25 * _slowness(), 3 * quiet)


def _slowness() -> float:
    """Return a factor for times on a machine that does other things too; 1 where no process waits for a core."""
    shared = os.getloadavg()[0] / (os.cpu_count() or 1)
    return 2 * shared if shared > 1 else 1.0

"""The simulator as the providers' own SDKs see it: that the tests of lmc's engines stand on true answers."""

import json
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from tests.runtime.remote.clients import anthropic_sdk, openai_sdk
from tests.runtime.remote.providers.hosted_models import MODELS, HostedModel, pieces
from tests.runtime.remote.providers.limits import Window, most_in_any
from tests.runtime.remote.providers.replies import Asked, Reply, drawn, hashed
from tests.runtime.remote.simulator import KEY, Simulator

TEXT = "amber brisk cedar delta ember fjord grove haze"


def long_text(asked: Asked) -> str:
    return TEXT


@pytest.fixture
def simulator() -> Generator[Simulator]:
    with Simulator() as simulator:
        yield simulator


def gpt(simulator: Simulator, key: str = KEY) -> openai.OpenAI:
    return openai_sdk().copy(base_url=f"{simulator.url}/v1", api_key=key)


def claude(simulator: Simulator, key: str = KEY) -> anthropic.Anthropic:
    return anthropic_sdk().copy(base_url=simulator.url, api_key=key)


def chat(client: openai.OpenAI, said: str = "Hi", model: str = "gpt-4.1", **options: Any) -> Any:
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": said}], **options)


def respond(client: openai.OpenAI, said: str = "Hi", model: str = "gpt-5.6", **options: Any) -> Any:
    return client.responses.create(model=model, input=said, **options)


def message(client: anthropic.Anthropic, said: str = "Hi", model: str = "claude-haiku-4-5", **options: Any) -> Any:
    options = {"max_tokens": 100, "messages": [{"role": "user", "content": said}], **options}
    return client.messages.create(model=model, **options)


def ask(simulator: Simulator, api: str, **options: Any) -> Any:
    """Ask one of the APIs."""
    if api == "messages":
        return message(claude(simulator), **options)
    return (chat if api == "chat" else respond)(gpt(simulator), **options)


def text_of(answer: Any) -> str:
    if answer.object == "chat.completion" if hasattr(answer, "object") else False:
        return answer.choices[0].message.content
    if hasattr(answer, "output_text"):
        return answer.output_text
    return "".join(block.text for block in answer.content if block.type == "text")


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_equal_requests_have_equal_answers_and_others_have_others(simulator: Simulator, api: str):
    texts = [text_of(ask(simulator, api, said=said)) for said in ("One", "One", "Two")]
    assert texts[0] == texts[1] != texts[2]
    assert all(texts)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_draws_differ_and_are_the_same_in_the_next_run(api: str):
    runs: list[list[str]] = []
    for _ in range(2):
        with Simulator(drawn) as simulator:
            runs.append([text_of(ask(simulator, api)) for _ in range(3)])
    assert len(set(runs[0])) == 3
    assert runs[0] == runs[1]


def test_chat_streams_what_it_answers_whole(simulator: Simulator):
    whole = chat(gpt(simulator))
    with gpt(simulator).chat.completions.stream(
        model="gpt-4.1", messages=[{"role": "user", "content": "Hi"}], stream_options={"include_usage": True}
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds.count("content.delta") > 1
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert final.usage == whole.usage
    assert final.model == whole.model == "gpt-4.1-2025-04-14"


def test_responses_stream_what_they_answer_whole(simulator: Simulator):
    whole = respond(gpt(simulator))
    with gpt(simulator).responses.stream(model="gpt-5.6", input="Hi") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.count("response.output_text.delta") > 1
    assert kinds[-1] == "response.completed"
    assert final.output_text == whole.output_text
    assert final.usage is not None
    assert final.usage.total_tokens == whole.usage.total_tokens


def test_messages_stream_what_they_answer_whole(simulator: Simulator):
    whole = message(claude(simulator))
    with claude(simulator).messages.stream(
        model="claude-haiku-4-5", max_tokens=100, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert kinds[0] == "message_start"
    assert kinds.count("content_block_delta") > 1
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert final.content[0].type == "text"
    assert final.content[0].text == whole.content[0].text
    assert final.stop_reason == whole.stop_reason == "end_turn"
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.usage.input_tokens == whole.usage.input_tokens


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_wrong_keys_are_401_at_openai(simulator: Simulator, api: str):
    ask_it = chat if api == "chat" else respond
    with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided: wro") as caught:
        ask_it(gpt(simulator, "wrong-key-of-somebody"))
    assert caught.value.code == "invalid_api_key"
    assert "wrong-key-of-somebody" not in str(caught.value)
    assert simulator.arrivals[0].key == "wrong-key-of-somebody"


def test_wrong_keys_are_401_at_anthropic(simulator: Simulator):
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        message(claude(simulator, "wrong"))


def test_an_error_can_quote_the_key():
    with Simulator(echoes_keys=True) as simulator, pytest.raises(openai.AuthenticationError, match="It was wrong-key"):
        chat(gpt(simulator, "wrong-key"))


def test_unknown_models_are_404(simulator: Simulator):
    with pytest.raises(openai.NotFoundError, match="The model `gpt-9` does not exist") as caught:
        chat(gpt(simulator), model="gpt-9")
    assert caught.value.code == "model_not_found"
    with pytest.raises(anthropic.NotFoundError, match="model: claude-9"):
        message(claude(simulator), model="claude-9")
    with pytest.raises(openai.NotFoundError, match="claude-haiku-4-5"):
        chat(gpt(simulator), model="claude-haiku-4-5")


def test_models_are_listed(simulator: Simulator):
    assert {"gpt-5.6", "gpt-4.1-2025-04-14"} <= {each.id for each in gpt(simulator).models.list()}
    assert gpt(simulator).models.retrieve("gpt-5.6").owned_by == "openai"
    assert {"claude-haiku-4-5"} <= {each.id for each in claude(simulator).models.list()}
    assert simulator.arrivals == []


def test_tokens_are_counted_as_they_are_charged(simulator: Simulator):
    messages: Any = [{"role": "user", "content": TEXT}]
    counted = claude(simulator).messages.count_tokens(model="claude-haiku-4-5", messages=messages)
    assert counted.input_tokens == message(claude(simulator), TEXT).usage.input_tokens


def test_stored_responses_can_be_fetched(simulator: Simulator):
    stored, lost = respond(gpt(simulator)), respond(gpt(simulator), store=False)
    assert gpt(simulator).responses.retrieve(stored.id).output_text == stored.output_text
    with pytest.raises(openai.NotFoundError):
        gpt(simulator).responses.retrieve(lost.id)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("chat", {"model": "gpt-5.6", "temperature": 0.0}, "'temperature' does not support 0.0"),
    ("chat", {"model": "gpt-5.6", "top_p": 0.5}, "'top_p' does not support 0.5"),
    ("chat", {"model": "gpt-5.6", "stop": ["a"]}, "Unsupported parameter: 'stop'"),
    ("chat", {"model": "gpt-5.6", "max_tokens": 5}, "Use 'max_completion_tokens' instead"),
    ("chat", {"model": "gpt-5.6", "logprobs": True}, "'logprobs' is not supported"),
    ("chat", {"model": "gpt-4o", "max_tokens": 16_385}, "max_tokens is too large: 16385"),
    ("chat", {"max_completion_tokens": 0}, "below minimum value"),
    ("chat", {"stop": list("abcde")}, "array with maximum length 4"),
    ("chat", {"extra_body": {"top_k": 5}}, "Unrecognized request argument supplied: top_k"),
    ("chat", {"messages": []}, "Invalid 'messages': empty array"),
    ("chat", {"stream_options": {"include_usage": True}}, "only allowed when 'stream'"),
    ("responses", {"temperature": 0.0}, "Unsupported parameter: 'temperature'"),
    ("responses", {"extra_body": {"stop": ["a"]}}, "Unknown parameter: 'stop'"),
    ("responses", {"extra_body": {"seed": 1}}, "Unknown parameter: 'seed'"),
    ("responses", {"extra_body": {"n": 2}}, "Unknown parameter: 'n'"),
    ("responses", {"max_output_tokens": 15}, "Expected a value >= 16, but got 15"),
    ("responses", {"max_output_tokens": 128_001}, "at most 128000"),
    (
        "responses",
        {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "Hi"}]}]},
        "Supported values are: 'output_text' and 'refusal'",
    ),
    ("messages", {"extra_body": {"temperature": 0.0}}, "temperature: Extra inputs are not permitted"),
    ("messages", {"stop_sequences": ["\n"]}, "each stop sequence must contain non-whitespace"),
    ("messages", {"max_tokens": 64_001}, "64001 > 64000, which is the maximum allowed"),
    ("messages", {"messages": []}, "at least one message is required"),
    ("messages", {"messages": [{"role": "assistant", "content": "Hi"}]}, 'first message must use the "user" role'),
    (
        "messages",
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "So "}]},
        "cannot end with trailing whitespace",
    ),
    (
        "messages",
        {
            "model": "claude-opus-4-8",
            "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "So"}],
        },
        "does not support assistant message prefill",
    ),
    ("messages", {"messages": [{"role": "system", "content": "Hi"}]}, 'Unexpected role "system"'),
    ("messages", {"messages": [{"role": "user", "content": ""}]}, "must have non-empty content"),
    (
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
        "text content blocks must be non-empty",
    ),
]


@pytest.mark.parametrize(("api", "options", "message"), REFUSED)
def test_parameters_are_checked_as_the_providers_do(
    simulator: Simulator, api: str, options: dict[str, Any], message: str
):
    request = dict(options)
    if "messages" in request and api == "chat":
        request = {"extra_body": request}
    if "input" in request:
        request = {"extra_body": request}
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match=message.replace("(", r"\(")):
        ask(simulator, api, **request)
    assert [each.status for each in simulator.arrivals] == [400]


def test_what_the_models_take_is_answered(simulator: Simulator):
    chat(gpt(simulator), model="gpt-5.6", temperature=1, max_completion_tokens=50, reasoning_effort="low")
    chat(gpt(simulator), temperature=0, top_p=0.5, stop=list("zyxw"), max_tokens=50, seed=1)
    respond(gpt(simulator), model="gpt-4.1", temperature=0, max_output_tokens=16)
    respond(gpt(simulator), instructions="Be brief.", max_output_tokens=16)
    message(claude(simulator), model="claude-opus-4-8", max_tokens=0, system="Be brief.", stop_sequences=["END"])
    assert [each.status for each in simulator.arrivals] == [200] * 5


def test_a_turn_is_continued_where_the_model_can():
    def last(asked: Asked) -> str:
        return f"{asked.turns[-1].role}: {asked.last}"

    with Simulator(last) as simulator:
        found = message(
            claude(simulator),
            messages=[
                {"role": "user", "content": "One"},
                {"role": "user", "content": "Two"},
                {"role": "assistant", "content": "Well,"},
            ],
        )
        assert text_of(found) == "assistant: Well,"
        # Two turns of one role are one.
        found = message(claude(simulator), messages=[{"role": "user", "content": each} for each in ("One", "Two")])
        assert text_of(found) == "user: OneTwo"


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["name", "count"],
    "additionalProperties": False,
}


def chat_format(schema: Mapping[str, Any], name: str = "answer") -> Any:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"additionalProperties": True}, "'additionalProperties' is required to be supplied and to be false"),
        ({"required": ["name"]}, "Missing 'count'"),
        ({"type": "array"}, "got 'type: \"array\"'"),
        ({"uniqueItems": True}, "'uniqueItems' is not permitted"),
        ({"properties": {"name": {"type": "string", "minLength": 3}}, "required": ["name"]}, "'minLength'"),
        ({"properties": {"name": {"type": "array"}}, "required": ["name"]}, "array schema missing items"),
    ],
)
def test_strict_schemas_are_checked(simulator: Simulator, change: dict[str, Any], message: str):
    schema = {**SCHEMA, **change}
    with pytest.raises(openai.BadRequestError, match=message) as caught:
        chat(gpt(simulator), response_format=chat_format(schema))
    assert caught.value.param == "response_format"
    form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
    with pytest.raises(openai.BadRequestError, match=message) as caught:
        respond(gpt(simulator), text={"format": form})
    assert (caught.value.param, caught.value.code) == ("text.format.schema", "invalid_json_schema")


def test_schemas_of_anthropic_are_checked(simulator: Simulator):
    for change, text in (
        ({"additionalProperties": True}, "'additionalProperties' must be explicitly set to false"),
        ({"properties": {"count": {"type": "integer", "minimum": 1}}}, "properties minimum are not supported"),
    ):
        form = {"type": "json_schema", "schema": {**SCHEMA, **change}}
        with pytest.raises(anthropic.BadRequestError, match=text):
            message(claude(simulator), output_config={"format": form})


def test_answers_keep_to_a_schema(simulator: Simulator):
    form = {"type": "json_schema", "schema": SCHEMA}
    texts = [
        text_of(chat(gpt(simulator), response_format=chat_format(SCHEMA))),
        text_of(respond(gpt(simulator), text={"format": {**form, "name": "answer", "strict": True}})),
        text_of(message(claude(simulator), output_config={"format": form})),
    ]
    assert all(set(json.loads(text)) == {"name", "count"} for text in texts)


ENDS: list[tuple[str, Reply, Callable[[Any], object], object]] = [
    ("chat", Reply("so", "length"), lambda got: got.choices[0].finish_reason, "length"),
    ("chat", Reply("", "content_filter"), lambda got: got.choices[0].finish_reason, "content_filter"),
    ("chat", Reply(end="refusal"), lambda got: got.choices[0].message.refusal[:9], "I'm sorry"),
    ("chat", Reply(end="tool_calls"), lambda got: got.choices[0].message.tool_calls[0].function.name, "lookup"),
    ("chat", Reply(end="no_choices"), lambda got: got.choices, []),
    ("responses", Reply("so", "length"), lambda got: got.incomplete_details.reason, "max_output_tokens"),
    ("responses", Reply("", "content_filter"), lambda got: got.incomplete_details.reason, "content_filter"),
    ("responses", Reply(end="refusal"), lambda got: got.output[0].content[0].type, "refusal"),
    ("responses", Reply(end="tool_calls"), lambda got: got.output[0].type, "function_call"),
    ("responses", Reply(end="no_choices"), lambda got: got.output, []),
    ("responses", Reply(end="failed"), lambda got: got.error.code, "server_error"),
    ("messages", Reply("so", "length"), lambda got: got.stop_reason, "max_tokens"),
    ("messages", Reply(end="refusal"), lambda got: (got.stop_reason, got.content), ("refusal", [])),
    ("messages", Reply("so", "pause_turn"), lambda got: got.stop_reason, "pause_turn"),
    ("messages", Reply(end="tool_calls"), lambda got: got.content[0].input, {"of": "something"}),
    ("messages", Reply("so", "context_window"), lambda got: got.stop_reason, "model_context_window_exceeded"),
]


@pytest.mark.parametrize(("api", "reply", "read", "expected"), ENDS)
@pytest.mark.parametrize("stream", [False, True])
def test_ends_are_those_of_the_providers(
    api: str, reply: Reply, read: Callable[[Any], object], expected: object, stream: bool
):
    with Simulator(lambda _: reply) as simulator:
        found = streamed(simulator, api) if stream else ask(simulator, api)
        assert read(found) == expected


def streamed(simulator: Simulator, api: str) -> Any:
    """Return the answer that the SDK puts together from a stream."""
    if api == "messages":
        with claude(simulator).messages.stream(
            model="claude-haiku-4-5", max_tokens=100, messages=[{"role": "user", "content": "Hi"}]
        ) as stream:
            return stream.get_final_message()
    if api == "responses":
        events: Any
        with gpt(simulator).responses.create(model="gpt-5.6", input="Hi", stream=True) as events:
            return [event.response for event in events if hasattr(event, "response")][-1]
    with gpt(simulator).chat.completions.stream(
        model="gpt-4.1", messages=[{"role": "user", "content": "Hi"}], stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        return stream._state.current_completion_snapshot  # the final one is refused where a filter or a limit cut it


def test_a_generation_that_fails_is_an_error():
    with Simulator(lambda _: Reply("so", "failed")) as simulator:
        with pytest.raises(openai.InternalServerError):
            chat(gpt(simulator))
        with pytest.raises(anthropic.OverloadedError):
            message(claude(simulator))
        with pytest.raises(openai.APIError, match="had an error"), chat(gpt(simulator), stream=True) as events:
            list(events)
        with (
            pytest.raises(anthropic.APIStatusError, match="Overloaded"),
            message(claude(simulator), stream=True) as events,
        ):
            list(events)


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_stops_end_a_text(api: str):
    with Simulator(long_text) as simulator:
        option = "stop" if api == "chat" else "stop_sequences"
        found = ask(simulator, api, **{option: ["ember", " delta"]})
        assert text_of(found) == "amber brisk cedar"
        if api == "messages":
            assert (found.stop_reason, found.stop_sequence) == ("stop_sequence", " delta")
        else:
            assert found.choices[0].finish_reason == "stop"


LIMITS = {"chat": "max_completion_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_reasoning_can_use_all_of_a_limit(api: str):
    with Simulator(lambda _: Reply(TEXT, reasoning_tokens=300)) as simulator:
        found = ask(simulator, api, **{LIMITS[api]: 50})
        if api == "chat":
            assert (found.choices[0].message.content, found.choices[0].finish_reason) == ("", "length")
            assert found.usage.completion_tokens == found.usage.completion_tokens_details.reasoning_tokens == 50
        elif api == "responses":
            assert (found.output_text, found.status) == ("", "incomplete")
            assert found.usage.output_tokens == found.usage.output_tokens_details.reasoning_tokens == 50
        else:
            assert (found.content, found.stop_reason) == ([], "max_tokens")
            assert found.usage.output_tokens == found.usage.output_tokens_details.thinking_tokens == 50


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_reasoning_leaves_the_rest_to_the_text(api: str):
    with Simulator(lambda _: Reply(TEXT, reasoning_tokens=20)) as simulator:
        found = ask(simulator, api, **{LIMITS[api]: 23})
        assert text_of(found) == "".join(pieces(TEXT)[:3])


def test_thinking_is_a_block_where_it_was_asked_for():
    with Simulator(lambda _: Reply(TEXT, reasoning_tokens=20)) as simulator:
        messages: Any = [{"role": "user", "content": "Hi"}]
        with claude(simulator).messages.stream(
            model="claude-opus-4-8", max_tokens=100, messages=messages, thinking={"type": "adaptive"}
        ) as stream:
            final = stream.get_final_message()
        assert [block.type for block in final.content] == ["thinking", "text"]
        assert final.usage.output_tokens_details is not None
        assert final.usage.output_tokens_details.thinking_tokens == 20


SMALL = [
    HostedModel("gpt-4.1", minimum_prefix=16, block=8),
    HostedModel("gpt-5.6", reasons=True, writes_cache=True, minimum_prefix=16, block=8),
    HostedModel("claude-haiku-4-5", "anthropic", minimum_prefix=16, block=8),
]


def test_cached_tokens_are_among_those_of_the_prompt_at_openai():
    shared = "word " * 40
    with Simulator(models=SMALL) as simulator:
        first, second = (chat(gpt(simulator), shared + end).usage for end in ("one", "two"))
        assert first.prompt_tokens_details.cached_tokens == 0
        assert 0 < second.prompt_tokens_details.cached_tokens <= second.prompt_tokens
        assert second.prompt_tokens_details.cache_write_tokens is None
        first, second = (respond(gpt(simulator), shared + end).usage for end in ("one", "two"))
        assert first.input_tokens_details.cache_write_tokens > 0
        assert second.input_tokens_details.cached_tokens > 0
        assert second.input_tokens == first.input_tokens
        assert second.total_tokens == second.input_tokens + second.output_tokens


def test_cached_tokens_are_beside_those_of_the_prompt_at_anthropic():
    system: Any = [{"type": "text", "text": "word " * 40, "cache_control": {"type": "ephemeral"}}]
    with Simulator(models=SMALL) as simulator:
        plain = message(claude(simulator), "one", system="word " * 40).usage
        first, second = (message(claude(simulator), text, system=system).usage for text in ("one", "two"))
    assert (plain.cache_creation_input_tokens, plain.cache_read_input_tokens) == (0, 0)
    assert first.cache_creation_input_tokens > 0
    assert (second.cache_creation_input_tokens, second.cache_read_input_tokens) == (
        0,
        first.cache_creation_input_tokens,
    )
    total = plain.input_tokens
    assert first.input_tokens + first.cache_creation_input_tokens == total
    assert second.input_tokens + second.cache_read_input_tokens == total


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_requests_in_a_minute_are_limited_at_openai():
    clock = Clock()
    with Simulator(requests_per_minute=3, clock=clock) as simulator:
        client = gpt(simulator)
        for second in (0, 10, 20):
            clock.now = 100.0 + second
            raw = client.chat.completions.with_raw_response.create(
                model="gpt-4.1", messages=[{"role": "user", "content": "Hi"}]
            )
        assert raw.headers["x-ratelimit-limit-requests"] == "3"
        assert raw.headers["x-ratelimit-remaining-requests"] == "0"
        assert raw.headers["x-ratelimit-reset-requests"] == "1m0s"
        clock.now = 130.0
        with pytest.raises(openai.RateLimitError, match=r"\(RPM\): Limit 3, Used 4, Requested 1") as caught:
            chat(client)
        assert (caught.value.code, caught.value.type) == ("rate_limit_exceeded", "requests")
        # A request that was refused counts as well.
        assert caught.value.response.headers["retry-after"] == "40"
        assert caught.value.response.headers["retry-after-ms"] == "40000"
        clock.now = 170.0
        chat(client)
        assert simulator.most_requests() == 4
    assert [each.status for each in simulator.arrivals] == [200, 200, 200, 429, 200]


def test_tokens_in_a_minute_are_limited_by_what_requests_plan():
    clock = Clock()
    with Simulator(tokens_per_minute=250, clock=clock) as simulator:
        client = gpt(simulator)
        chat(client, max_tokens=100)
        tokens = simulator.arrivals[0].tokens
        assert 100 < tokens < 125
        chat(client, max_tokens=100)
        with pytest.raises(openai.RateLimitError, match=r"\(TPM\)") as caught:
            chat(client, max_tokens=100)
        assert caught.value.type == "tokens"
        headers = caught.value.response.headers
        assert headers["x-ratelimit-remaining-tokens"] == str(250 - 2 * tokens)
        assert headers["retry-after"] == "60"
        # A request that fits is answered meanwhile.
        chat(client, max_tokens=1)


def test_limits_of_anthropic_have_their_own_headers():
    with Simulator(requests_per_minute=2, tokens_per_minute=1000, minute=2.0) as simulator:
        client = claude(simulator)
        raw = client.messages.with_raw_response.create(
            model="claude-haiku-4-5", max_tokens=100, messages=[{"role": "user", "content": "Hi"}]
        )
        assert raw.headers["anthropic-ratelimit-requests-limit"] == "2"
        assert raw.headers["anthropic-ratelimit-requests-remaining"] == "1"
        assert raw.headers["anthropic-ratelimit-tokens-limit"] == "1000"
        assert raw.headers["anthropic-ratelimit-tokens-reset"].endswith("Z")
        message(client)
        with pytest.raises(anthropic.RateLimitError, match="rate limit of 2 requests per minute") as caught:
            message(client)
        assert caught.value.response.headers["retry-after"] == "2"


def test_a_minute_can_be_short():
    with Simulator(requests_per_minute=2, minute=0.3) as simulator:
        client = gpt(simulator)
        chat(client)
        chat(client)
        with pytest.raises(openai.RateLimitError) as caught:
            chat(client)
        time.sleep(float(caught.value.response.headers["retry-after-ms"]) / 1000)
        chat(client)


def test_an_exhausted_quota_stays_exhausted():
    with Simulator(quota=1) as simulator:
        chat(gpt(simulator))
        for _ in range(2):
            with pytest.raises(openai.RateLimitError) as caught:
                chat(gpt(simulator))
            assert caught.value.code == "insufficient_quota"
            assert "retry-after" not in caught.value.response.headers
        with pytest.raises(anthropic.BadRequestError, match="credit balance is too low"):
            message(claude(simulator))


def test_arrivals_are_recorded():
    with Simulator(latency=0.2) as simulator:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: chat(gpt(simulator), f"Hi {number % 3}"), range(4)))
        assert simulator.peak == 4
        [repeated] = simulator.repeated().values()
        assert [each.body and each.body["messages"][0]["content"] for each in repeated] == ["Hi 0", "Hi 0"]
        assert simulator.finished_twice() == []
        chat(gpt(simulator), "Hi 1")
        [again] = simulator.finished_twice()
        assert [each.finished for each in again] == [True, True]
        assert [each.number for each in simulator.arrivals] == [1, 2, 3, 4, 5]
        assert {each.key for each in simulator.arrivals} == {KEY}
        assert all((each.ended_at or 0) - each.at >= 0.2 for each in simulator.arrivals)


def test_a_request_whose_client_left_is_not_finished():
    with Simulator(latency=5.0) as simulator:
        with pytest.raises(openai.APITimeoutError):
            chat(gpt(simulator), timeout=1.0)
        deadline = time.monotonic() + 5
        while simulator.arrivals[0].ended_at is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (simulator.arrivals[0].status, simulator.arrivals[0].finished) == (None, False)
        assert simulator.arrivals[0].ended_at is not None


def test_latency_can_depend_on_the_request():
    with Simulator(latency=lambda asked: 0.3 if asked.last == "slow" else 0.0) as simulator:
        chat(gpt(simulator), "slow")
        chat(gpt(simulator), "fast")
    slow, fast = ((each.ended_at or 0) - each.at for each in simulator.arrivals)
    assert fast < 0.3 <= slow


def test_a_defect_of_an_answer_fails_the_test():
    def broken(asked: Asked) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Simulator(broken) as simulator, pytest.raises(openai.APIConnectionError):
        chat(gpt(simulator))


def test_a_body_that_is_not_json_is_400(simulator: Simulator):
    import httpx2

    headers = {"authorization": f"Bearer {KEY}"}
    found = httpx2.post(f"{simulator.url}/v1/chat/completions", content=b"{", headers=headers)
    assert (found.status_code, found.json()["error"]["type"]) == (400, "invalid_request_error")
    found = httpx2.post(f"{simulator.url}/v1/nothing", json={}, headers=headers)
    assert found.status_code == 404


def test_windows():
    window = Window(10, 60.0)
    for second in range(5):
        window.add(second, 2)
    assert not window.fits(5, 1)
    assert window.seconds_until(5, 1) == 55
    assert window.seconds_until(5, 3) == 56
    assert window.seconds_until(5, 11) == 60
    assert window.fits(60, 2)
    assert window.seconds_until_full(60) == 4
    assert most_in_any(60, [(0, 1), (59.9, 1), (60, 1), (30, 5)]) == 7
    assert most_in_any(60, []) == 0


def test_pieces_are_the_text():
    for text in ("", "Hello, world", "  a\n\nb ", "日本語のテキスト", TEXT):
        assert "".join(pieces(text)) == text


def test_names_of_models_are_unique():
    names = [name for model in MODELS for name in {model.name, model.served} - {""}]
    assert len(names) == len(set(names))
    assert hashed(Asked("chat", MODELS[0], ())) != ""

"""Requests to servers and their answers, where one kind of server differs from another."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

import lmc
from lmc import builtin_model
from lmc.driver.targets.hosted import hosted_target
from lmc.grammar.compiling import Source
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.engine.protocol import Generation, Request, SamplingParams, ScoreRequest
from lmc.ir.tokens.messages import GO_ON, message_tokenizer
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.remote.engine import RemoteEngine
from tests.runtime.remote.hosted_runs import hosted, target
from tests.runtime.remote.simulator import Simulator
from tests.runtime.remote.wire import Exchange, LoopbackServer, event

PROMPT = (256, *b"user\nGo on.", 257, 256, *b"assistant\n")
STOPS = ("END", "HALT")
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


class Server:
    """A server that answers each request with one choice; ``bodies`` and ``headers`` are what it got."""

    def __init__(self, choice: dict[str, Any], *, is_chat: bool = True) -> None:
        self.choice = {
            "finish_reason": "stop",
            "text": "so",
            "message": {"role": "assistant", "content": "so"},
            **choice,
        }
        self.is_chat = is_chat
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def answer(self, exchange: Exchange) -> None:
        body: dict[str, Any] = json.loads(exchange.request.body)
        self.bodies.append(body)
        self.headers.append(dict(exchange.request.headers))
        whole = {"id": "a", "object": "chat.completion", "created": 0, "model": "m", "usage": USAGE}
        choice = {"index": 0, **self.choice}
        if not body.get("stream"):
            await exchange.respond_json(200, {}, {**whole, "choices": [choice]})
            return
        await exchange.begin(200, {"content-type": "text/event-stream"})
        ending = {**choice, "delta": choice["message"]}
        await exchange.send(event({**whole, "choices": [ending]}))
        await exchange.send(b"data: [DONE]\n\n")
        await exchange.end()


@contextmanager
def engine(answering: Server, **settings: Any) -> Generator[RemoteEngine]:
    with hosted(), LoopbackServer(answering.answer) as loopback:
        made = RemoteEngine(hosted_target(f"server:{loopback.url}#m", settings), message_tokenizer())
        try:
            yield made
        finally:
            made.close()


def asked(answering: Server, request: Request, *, streams: bool = False, **settings: Any) -> Generation:
    """Return the answer to a request."""
    on_delta: Callable[[Any], None] | None = (lambda _: None) if streams else None
    with engine(answering, **settings) as made:
        return made.submit(request, on_delta).future.result(20.0)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("told", "reason", "stop"),
    [
        ({}, "eos", None),
        ({"stop_reason": None}, "eos", None),
        ({"stop_reason": "HALT"}, "stop", "HALT"),
        ({"matched_stop": "END"}, "stop", "END"),
        ({"matched_stop": 2}, "eos", None),  # SGLang tells the token that ends a turn
        ({"stop_reason": "another"}, "eos", None),
        ({"stop_reason": "HALT", "finish_reason": "length"}, "length", None),
        ({"message": {"role": "assistant", "content": "so END"}, "text": "so END"}, "stop", "END"),
    ],
)
def test_the_server_tells_which_stop_it_met(told: dict[str, Any], reason: str, stop: str | None, streams: bool):
    server = Server(told)
    found = asked(server, Request(PROMPT, SamplingParams(max_tokens=9, stop=STOPS)), streams=streams, server="vllm")
    assert (found.finish_reason, found.matched_stop) == (reason, stop)
    assert found.text.strip() == "so"
    assert server.bodies[0]["stop"] == list(STOPS)


@pytest.mark.parametrize(
    ("kind", "told", "header", "body"),
    [
        ("lmc", {}, "7", None),
        ("sglang", {}, None, 7),
        ("vllm", {}, None, None),
        ("vllm", {"priority": "falling"}, None, -7),
        ("other", {}, None, None),
        ("other", {"priority": "rising"}, None, 7),
    ],
)
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_priority_is_sent_where_the_server_knows_it(
    api: str, kind: str, told: dict[str, Any], header: str | None, body: int | None
):
    server = Server({"token_ids": [1]})
    settings: dict[str, Any] = {"server": kind, "api": api, "capabilities": told}
    if api == "completions":
        settings["tokenizer"] = str(builtin_model.path())
    for priority in (7, 0):
        asked(server, Request(PROMPT, SamplingParams(max_tokens=9), priority=priority), **settings)
    assert [each.get("x-lmc-priority") for each in server.headers] == [header, None]
    assert [each.get("priority") for each in server.bodies] == [body, None]


def test_priorities_beyond_those_of_lmc_serve_are_its_extremes():
    server = Server({})
    for priority in (1000, -1000):
        asked(server, Request(PROMPT, SamplingParams(max_tokens=9), priority=priority), server="lmc")
    assert [each["x-lmc-priority"] for each in server.headers] == ["100", "-100"]


@pytest.mark.parametrize("name", ["authorization", "x y", "x-a: b", "x-", 3])
def test_a_session_header_is_an_own_header_of_a_router(name: Any):
    with pytest.raises(lmc.InputError, match="session_header is"):
        hosted_target("server:http://127.0.0.1:1", {"session_header": name})


@lmc.jit
def debate(s: Any, topic: str):
    s += lmc.user(f"Discuss {topic}.")
    with s.assistant():
        s.gen("first", max_tokens=9)
    views = s.fork(2)
    for view, side in zip(views, ("for", "against"), strict=True):
        view.append(lmc.user(f"Speak {side}."))
        with view.assistant():
            view.gen("view", max_tokens=9)
    return [view["view"] for view in views]


def test_the_requests_of_a_row_and_no_others_have_its_session():
    server = Server({})
    topics = ["tea", "rain", "chess"]
    with hosted(), LoopbackServer(server.answer) as loopback:
        program = debate.on(lmc.remote(f"server:{loopback.url}#m", server="vllm", session_header="X-Session-Id"))
        for _ in range(2):
            assert [row.error for row in program.batch([{"topic": topic} for topic in topics])] == [None] * 3
        program.eager(topic="go")
    assert not any(server.headers.pop().get("x-session-id") for _ in range(3)), "eager runs have no rows"
    del server.bodies[-3:]
    sessions: dict[str, list[str]] = {}
    for headers, body in zip(server.headers, server.bodies, strict=True):
        sessions.setdefault(headers["x-session-id"], []).append(body["messages"][0]["content"])
    assert len(sessions) == 6  # the rows of both batches
    assert sorted(sessions.values()) == sorted([f"Discuss {topic}."] * 3 for topic in topics * 2)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
JSON_SCHEMA = {"name": "output", "schema": SCHEMA, "strict": True}


@pytest.mark.parametrize(
    ("kind", "definition", "output", "fields"),
    [
        ("regex", "[a-c]+x?", "abx", {"regex": "[a-c]+x?"}),
        ("choices", ["so (it is).", "a|b"], "a|b", {"regex": r"(so \(it is\)\.)|(a\|b)"}),
        (
            "schema",
            SCHEMA,
            '{"a":1}',
            {"response_format": {"type": "json_schema", "json_schema": JSON_SCHEMA}},
        ),
    ],
)
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_sglang_gets_its_own_fields(api: str, kind: str, definition: Any, output: str, fields: dict[str, Any]):
    """SGLang reads these fields in chats and completions; it ignores ``structured_outputs``."""
    given: dict[str, Any] = {kind: definition}
    constraint = ConstraintCache().compiled(Source.of(**given), message_tokenizer())
    server = Server({"text": output, "message": {"role": "assistant", "content": output}, "token_ids": [1]})
    settings: dict[str, Any] = {"server": "sglang", "api": api}
    if api == "completions":
        settings |= {"capabilities": {"contexts": "text"}}
    prompt = PROMPT if api == "chat" else tuple(b"Go on.")
    found = asked(server, Request(prompt, SamplingParams(max_tokens=90), constraint=constraint), **settings)
    assert found.text == output
    [body] = server.bodies
    assert {name: body.get(name) for name in fields} == fields
    assert "structured_outputs" not in body


def test_a_grammar_on_sglang_is_an_error_of_compilation():
    @lmc.jit
    def sums(s: Any):
        s += lmc.user("A sum?")
        s.gen("sum", grammar='start: /[0-9]+/ "+" /[0-9]+/', max_tokens=9)

    remote = lmc.remote("server:http://127.0.0.1:1", server="sglang")
    with pytest.raises(lmc.ConstraintError, match="takes no grammar") as raised:
        sums.on(remote).compile()
    assert raised.value.location is not None


@lmc.jit
def letter(s: Any, name: str):
    s += lmc.user(f"A letter to {name}.")
    with s.assistant():
        s += f"Dear {name},\n"
        body = s.gen("body", max_tokens=40)
        s += " So"
        return body, s.gen("end", max_tokens=40)


@pytest.mark.parametrize("api", ["chat-reasoning", "responses"])
def test_a_turn_that_is_closed_is_quoted(api: str):
    """The whole of it, text of the program and of the model, byte for byte."""
    with hosted(), Simulator() as simulator:
        body, _ = letter.on(target(simulator.url, api, continuation="turns")).run("{text}").value
        sent = [
            each.body["messages" if "messages" in each.body else "input"] for each in simulator.arrivals if each.body
        ]
    turns = ["Dear {text},\n", f"Dear {{text}},\n{body} So"]
    assert [each[-2:] for each in sent] == [
        [{"role": "assistant", "content": turn}, {"role": "user", "content": GO_ON.replace("{text}", turn)}]
        for turn in turns
    ]


@pytest.mark.parametrize("status", [500, 504])
def test_failed_attempts_of_scores_are_counted(status: int):
    """A proxy that gave up may have been charged for."""
    server = Server({"logprobs": {"tokens": ["a", "b"], "token_logprobs": [None, -1.0]}})
    statuses = [status, status]

    async def answering(exchange: Exchange) -> None:
        if statuses:
            await exchange.respond_json(statuses.pop(), {}, {"error": {"message": "no"}})
        else:
            await server.answer(exchange)

    with hosted(), LoopbackServer(answering) as loopback:
        settings = {"api": "completions", "tokenizer": "t"}
        made = RemoteEngine(hosted_target(f"server:{loopback.url}#m", settings), message_tokenizer())
        try:
            found = made.score(ScoreRequest((65,), ((66,),))).future.result(20.0)
        finally:
            made.close()
    assert found.failed == (Attempt(Usage(calls=1), status == 500),) * 2
    assert found.usage == Usage(3, calls=3)

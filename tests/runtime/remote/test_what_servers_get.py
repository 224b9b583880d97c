"""What servers are sent and what is read of their answers, where one kind differs from another."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

import lmc
from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import Generation, Request, SamplingParams
from lmc.ir.tokens.messages import message_tokenizer
from lmc.runtime.remote.asking import GO_ON
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


def asked(server: Server, request: Request, *, streams: bool = False, **settings: Any) -> Generation:
    """Return the answer to a request."""
    on_delta: Callable[[Any], None] | None = (lambda _: None) if streams else None
    with engine(server, **{"server": "vllm", **settings}) as made:
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
    found = asked(server, Request(PROMPT, SamplingParams(max_tokens=9, stop=STOPS)), streams=streams)
    assert (found.finish_reason, found.matched_stop) == (reason, stop)
    assert found.text.strip() == "so"
    assert server.bodies[0]["stop"] == list(STOPS)


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

"""Faults of one request, and clients that ask for much: the others are served."""

import asyncio
import json
import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx2
import openai
import pytest
import torch

from lmc.ir.engine.protocol import EngineInfo, Generation, Handle, OnDelta, Request
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.local import load_local_engine
from tests.runtime.local.checkpoints import make_model, save_checkpoint
from tests.runtime.server.in_process import Inside, running
from tests.runtime.server.servers import SECONDS, anthropic_client
from tests.runtime.server.test_batches import LaterHandle

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"
PATHS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "model", "max_tokens": 60},
    "/v1/responses": {"model": "model", "max_output_tokens": 60},
    "/v1/messages": {"model": "model", "max_tokens": 60},
    "/generate": {"sampling_params": {"max_new_tokens": 60}},
}


def asked(path: str, text: str, *, stream: bool = False) -> dict[str, Any]:
    talk = [{"role": "user", "content": text}]
    name, content = {"/generate": ("text", text), "/v1/responses": ("input", talk)}.get(path, ("messages", talk))
    return {**PATHS[path], name: content, "stream": stream}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Inside]:
    """A random model in which the token of ``~`` makes NaN of all that follows it."""
    model = make_model("llama", tie_word_embeddings=False)
    folder = save_checkpoint(tmp_path_factory.mktemp("models"), model)
    (token,) = Tokenizer.from_folder(folder).encode("~")
    with torch.no_grad():
        model.model.embed_tokens.weight[token] = float("nan")
    save_checkpoint(folder, model)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": TEMPLATE}))
    with (
        load_local_engine(folder, device="cpu", kv_tokens=4096, deterministic=True) as engine,
        running(engine) as inside,
    ):
        yield inside


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_nan_is_an_error_of_its_request_alone(server: Inside, path: str, stream: bool):
    async def both() -> tuple[httpx2.Response, list[str]]:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=SECONDS)
        async with client, httpx2.AsyncClient(timeout=SECONDS) as other:
            talk: Any = [{"role": "user", "content": "Tell me a story."}]
            chunks = await client.chat.completions.create(
                model="model", messages=talk, max_tokens=80, stream=True, temperature=0, extra_body={"min_tokens": 80}
            )
            texts = [(await anext(chunks)).choices[0].delta.content or ""]
            answer = await other.post(f"{server.url}{path}", json=asked(path, "a ~ b", stream=stream))
            texts += [chunk.choices[0].delta.content or "" async for chunk in chunks]
            return answer, texts

    answer, texts = asyncio.run(both())
    assert answer.status_code == 500, answer.text
    assert "NaN" in json.dumps(answer.json()["error"]) or "finite" in json.dumps(answer.json()["error"])
    whole = httpx2.post(
        f"{server.url}/v1/chat/completions",
        json={
            **asked("/v1/chat/completions", "Tell me a story."),
            "max_tokens": 80,
            "min_tokens": 80,
            "temperature": 0,
        },
        timeout=SECONDS,
    ).json()
    assert "".join(texts) == whole["choices"][0]["message"]["content"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_handler_that_raises_is_an_error_of_its_request_alone(
    server: Inside, path: str, stream: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    submit = server.engine.submit

    def broken(request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        if request.sampling.max_tokens == 60:
            raise ZeroDivisionError("a fault of the server")
        return submit(request, on_delta)

    monkeypatch.setattr(server.engine, "submit", broken)
    with httpx2.Client(timeout=SECONDS, base_url=server.url) as client:
        answers = [client.post(path, json=asked(path, "x", stream=stream)) for _ in range(3)]
        addresses = {each.extensions["network_stream"].get_extra_info("client_addr") for each in answers}
    assert len(addresses) == 1
    answer = answers[-1]
    assert [bool(each.exc_info) for each in caplog.records if each.message.endswith("failed")] == [True] * 3
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "ZeroDivisionError" in json.dumps(answer.json()["error"])
    claude = anthropic_client(server.url)
    talk: Any = [{"role": "user", "content": "Tell me a story."}]
    said = claude.messages.create(model="model", max_tokens=5, messages=talk, extra_body={"temperature": 0.0})
    assert said.stop_reason in ("max_tokens", "end_turn")
    assert server.model.in_flight == 0


def test_a_client_that_asks_for_much_starves_no_other(server: Inside):
    """Each key is a lane: a single request of one is answered before most of the many of another."""

    async def both() -> tuple[int, float]:
        done = 0

        async def many(client: httpx2.AsyncClient) -> None:
            nonlocal done
            body = {**asked("/v1/chat/completions", "Tell me a story."), "min_tokens": 60, "temperature": 0}
            answer = await client.post(
                f"{server.url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer many"}
            )
            assert answer.status_code == 200, answer.text
            done += 1

        limits = httpx2.Limits(max_connections=400)
        async with httpx2.AsyncClient(timeout=SECONDS, limits=limits) as client:
            tasks = [asyncio.ensure_future(many(client)) for _ in range(300)]
            while server.model.in_flight < 250 and not any(task.done() for task in tasks):
                await asyncio.sleep(0.01)
            started = time.monotonic()
            body = {**asked("/v1/chat/completions", "Tell me a story."), "max_tokens": 3, "temperature": 0}
            one = await client.post(
                f"{server.url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer one"}
            )
            assert one.status_code == 200
            seconds, before = time.monotonic() - started, done
            for task in tasks:
                await task
            return before, seconds

    before, seconds = asyncio.run(both())
    print(f"answered after {seconds:.2f} s, {before} others were answered before")
    assert before < 150


def test_a_request_or_a_client_has_no_more_than_its_share(server: Inside):
    """Of the places in which requests run and wait: others find room."""
    with running(server.engine, max_waiting=8) as small:
        most = small.model.most_of_lane

        def body(prompts: int) -> dict[str, Any]:
            return {"model": "model", "prompt": ["x"] * prompts, "max_tokens": 40, "temperature": 0}

        async def all_of_them() -> list[httpx2.Response]:
            async with httpx2.AsyncClient(timeout=SECONDS, base_url=small.url) as client:

                async def ask(key: str, prompts: int) -> httpx2.Response:
                    headers = {"Authorization": f"Bearer {key}"}
                    return await client.post("/v1/completions", json=body(prompts), headers=headers)

                too_many = await ask("a", most + 1)
                first = asyncio.ensure_future(ask("a", most))
                while small.model.in_flight < most:
                    await asyncio.sleep(0.001)
                return [too_many, await ask("a", 1), await ask("b", 1), await first]

        too_many, more, other, first = asyncio.run(all_of_them())
    assert (too_many.status_code, too_many.json()["error"]["param"]) == (400, "prompt")
    assert (more.status_code, more.headers["retry-after"]) == (429, "1")
    assert other.status_code == first.status_code == 200


class HeldEngine(ToyEngine):
    """Runs two generations at once, each until the test ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[LaterHandle] = []

    @property
    def info(self) -> EngineInfo:
        return replace(super().info, max_running=2)

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        del request, on_delta
        self.held.append(LaterHandle(Future()))
        return self.held[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_prompts_of_a_list_wait_no_longer_than_they_do(stream: bool):
    """The others of the list have their places as soon as one has ended."""

    def counts() -> list[float]:
        found = httpx2.get(f"{inside.url}/metrics").text.splitlines()
        return [float(line.split()[1]) for line in found if line.startswith("lmc:num_requests_")]

    engine = HeldEngine()
    with running(engine) as inside, ThreadPoolExecutor(1) as threads:
        body = {"model": "model", "prompt": ["x"] * 5, "max_tokens": 2, "stream": stream}
        asked = threads.submit(httpx2.post, f"{inside.url}/v1/completions", json=body, timeout=SECONDS)
        while len(engine.held) < 5:
            time.sleep(0.001)
        for left in range(5, 0, -1):
            end = time.monotonic() + SECONDS
            while counts() != [min(left, 2), max(left - 2, 0)]:
                assert time.monotonic() < end, counts()
            engine.held[left - 1].future.set_result(Generation((5,), "x", "length"))
        assert asked.result().status_code == 200
        assert counts() == [0, 0]
        assert inside.model.in_flight == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": ["x"] * 2048, "n": 128}),
        ("/v1/completions", {"prompt": ["x"] * 900_000}),
        ("/v1/completions", {"prompt": [5] * 1_300_000}),
        ("/generate", {"input_ids": [5] * 1_300_000}),
        ("/generate", {"text": ["x"] * 900_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}] * 40_000}),
        ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x"}] * 40_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "日本語" * 70_000}]}),
    ],
)
def test_large_requests_hold_up_no_other(server: Inside, path: str, body: dict[str, Any]):
    model = {} if path == "/generate" else {"model": "model"}

    async def both() -> tuple[httpx2.Response, float]:
        longest = 0.0
        async with httpx2.AsyncClient(timeout=SECONDS, base_url=server.url) as client:
            content = json.dumps({**model, **body}, ensure_ascii=False, separators=(",", ":")).encode()
            headers = {"content-type": "application/json"}
            large = asyncio.ensure_future(client.post(path, content=content, headers=headers))
            while not large.done():
                asked = time.monotonic()
                await client.get("/health")
                longest = max(longest, time.monotonic() - asked)
                await asyncio.sleep(0.005)
            return await large, longest

    answer, longest = asyncio.run(both())
    print(f"the longest wait is {1000 * longest:.0f} ms")
    assert answer.status_code == 400, answer.text

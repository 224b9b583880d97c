"""Requests that nobody would write: none of them is an error of the server."""

import asyncio
import json
import time
from collections.abc import Generator
from typing import Any

import httpx2
import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error

from lmc.ir.engine.toy import ToyEngine
from tests.runtime.server.in_process import Inside, running
from tests.runtime.server.servers import FULL, Served

EXAMPLES = 200 if FULL else 8
SLOW = (hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much, hypothesis.HealthCheck.data_too_large)
BODIES: dict[str, Any] = {
    "/v1/chat/completions": {"model": "model", "messages": [{"role": "user", "content": "x"}], "max_tokens": 5},
    "/v1/completions": {"model": "model", "prompt": "x", "max_tokens": 5},
    "/v1/responses": {"model": "model", "input": "x", "max_output_tokens": 5},
    "/v1/messages": {"model": "model", "messages": [{"role": "user", "content": "x"}], "max_tokens": 5},
    "/generate": {"text": "x", "sampling_params": {"max_new_tokens": 5}},
}


@pytest.fixture(scope="module")
def server() -> Generator[Inside]:
    with running(ToyEngine(context_length=2048)) as inside:
        yield inside


def test_requests_by_the_schema_are_never_errors_of_the_server(server: Inside):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # pyright: ignore[reportAttributeAccessIssue]
    assert {operation.path for operation in operations} >= BODIES.keys()
    for operation in operations:

        @hypothesis.settings(max_examples=EXAMPLES, suppress_health_check=SLOW)
        @hypothesis.given(operation.as_strategy())
        def is_served(case: Any) -> None:
            answer = case.call()
            case.validate_response(answer, checks=[not_a_server_error])
            assert "Traceback" not in answer.text

        is_served()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(width=32) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=10 * EXAMPLES)
def test_one_strange_value_is_refused_or_harmless(server: Inside, data: st.DataObject):
    path = data.draw(st.sampled_from(sorted(BODIES)))
    names = ["n", "seed", "stop", "temperature", "top_p", "top_k", "logprobs", "logit_bias", "regex", "stream"]
    name = data.draw(st.sampled_from([*BODIES[path], *names, "response_format", "tools", "input_ids", "rid"]))
    body = {**BODIES[path], name: data.draw(values)}
    content = json.dumps(body, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass")
    answer = httpx2.post(f"{server.url}{path}", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 404), answer.text
    assert "Traceback" not in answer.text


async def exchanged(port: int, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send pieces over one connection; gives what comes back until the server closes it or says nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        while more := await asyncio.wait_for(reader.read(65536), 1):
            received += more
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return received


def head(path: str, length: int) -> bytes:
    fields = ["Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([f"POST {path} HTTP/1.1", *fields, "", ""]).encode()


@pytest.mark.parametrize("path", sorted(BODIES))
def test_truncated_slow_and_doubled_bodies(path: str, server: Inside):
    body = json.dumps(BODIES[path]).encode()

    async def all_of_them() -> tuple[bytes, ...]:
        return await asyncio.gather(
            exchanged(server.port, head(path, len(body)), body[: len(body) // 2]),
            exchanged(
                server.port, head(path, len(body)), *(body[at : at + 10] for at in range(0, len(body), 10)), pause=0.02
            ),
            exchanged(server.port, head(path, len(body)) + body + head(path, len(body)) + body),
            exchanged(server.port, head(path, 2 * len(body)) + body + body),
            exchanged(server.port, head(path, 4) + b"{{{{"),
            exchanged(server.port, b"POST " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        )

    cut, slow, twice, doubled, broken, empty = asyncio.run(all_of_them())
    assert cut == b""
    assert slow.startswith(b"HTTP/1.1 200 ")
    assert twice.count(b"HTTP/1.1 200 ") == 2
    assert doubled.startswith(b"HTTP/1.1 400 ")
    assert broken.startswith(b"HTTP/1.1 400 ")
    assert b"the body is no JSON" in broken
    assert empty.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("path", [*sorted(BODIES), "/v1/files"])
def test_a_body_that_does_not_come_is_not_waited_for(path: str):
    """One that comes slowly is."""
    body = json.dumps(BODIES.get(path, {})).encode()
    file = head(path, 1000).replace(b"application/json", b"multipart/form-data; boundary=b") + b"--b\r\n"
    with running(ToyEngine(), body_seconds=1.0) as inside:

        async def both() -> tuple[bytes, bytes]:
            return await asyncio.gather(
                exchanged(inside.port, head(path, len(body)) + body[:9] if path in BODIES else file, pause=1.5),
                exchanged(inside.port, head(path, len(body)), *(body[:-1], body[-1:]), pause=0.3),
            )

        started = time.monotonic()
        cut, slow = asyncio.run(both())
        assert time.monotonic() - started < 10
    assert cut.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in cut.lower()
    error = json.loads(cut.partition(b"\r\n\r\n")[2])["error"]
    assert "body" in error["message"]
    assert error.get("type", "invalid_request_error") == "invalid_request_error"
    assert slow.startswith(b"HTTP/1.1 200 ") or path not in BODIES


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema, "minItems": 3, "maxItems": 50}
    return schema


BOMBS: dict[str, dict[str, Any]] = {
    "nested repetition": {"regex": "((((a{1,99}b?){1,99}c?){1,99}d?){1,99}e?){1,99}"},
    "alternatives": {"regex": "(" + "|".join(f"{number}[a-z]*{number}" for number in range(20_000)) + ")"},
    "deep schema": {"json_schema": nested(300)},
    "huge enum": {"json_schema": {"enum": [f"value {number} " * 3 for number in range(60_000)]}},
    "many properties": {
        "json_schema": {
            "type": "object",
            "properties": {f"name{number}": nested(3) for number in range(5_000)},
        }
    },
    "deep braces": {"json_schema": "[" * 100_000},
    "numbers": {"json_schema": {"enum": [*range(22_000)]}},
    "lookups": {"json_schema": {"allOf": [{"type": "string", "pattern": f".*{n}.*"} for n in range(2_000)]}},
    "anything between": {"regex": "|".join(f".*{number}.*" for number in range(3_000))},
    "options": {"regex": "".join(f"(.*{number})?" for number in range(3_000))},
    "classes": {"regex": "|".join(f"[a-{chr(98 + number % 20)}]+{number}" for number in range(3_000))},
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_do_not_stop_other_requests(name: str, toy: Served):
    """Others are answered while a constraint is compiled or refused."""
    body = {**BODIES["/v1/chat/completions"], "model": "toy", **BOMBS[name]}

    async def both() -> tuple[httpx2.Response, float, float]:
        async with httpx2.AsyncClient(timeout=60) as client:
            started = time.monotonic()
            bomb = asyncio.ensure_future(client.post(f"{toy.url}/v1/chat/completions", json=body))
            gaps: list[float] = []
            while not bomb.done():
                asked = time.monotonic()
                await client.post(f"{toy.url}/generate", json=BODIES["/generate"])
                gaps.append(time.monotonic() - asked)
            return await bomb, time.monotonic() - started, max(gaps, default=0.0)

    answer, seconds, gap = asyncio.run(both())
    print(f"{name}: {answer.status_code} after {seconds:.2f} s, the longest gap is {gap * 1000:.0f} ms")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, next(iter(BOMBS[name])))

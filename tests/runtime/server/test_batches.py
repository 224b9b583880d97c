"""Files and batches, through the SDKs."""

import json
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion

from lmc.ir.engine.protocol import Generation, Handle, OnDelta, Request
from lmc.ir.engine.toy import ToyEngine
from tests.runtime.server.in_process import running
from tests.runtime.server.servers import SECONDS, Served, openai_client

ENDED = ("completed", "failed", "expired", "cancelled")


def line_of(name: str, body: Any, url: str = "/v1/chat/completions") -> str:
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body})


def chats(model: str, count: int, **parameters: Any) -> list[dict[str, Any]]:
    """Bodies in groups that share a prefix, in random order."""
    bodies = [
        {
            "model": model,
            "temperature": 0,
            "max_tokens": 6,
            "messages": [
                {"role": "system", "content": f"You are number {number % 5}. " + "Be brief. " * 9},
                {"role": "user", "content": f"Question {number}"},
            ],
            **parameters,
        }
        for number in range(count)
    ]
    random.Random(7).shuffle(bodies)
    return bodies


def upload(client: openai.OpenAI, lines: list[str]) -> str:
    return client.files.create(file=("in.jsonl", "\n".join(lines).encode()), purpose="batch").id


def ended(client: openai.OpenAI, batch_id: str) -> openai.types.Batch:
    end = time.monotonic() + SECONDS
    while (batch := client.batches.retrieve(batch_id)).status not in ENDED:
        assert time.monotonic() < end, batch
        time.sleep(0.05)
    return batch


def rows_of(client: openai.OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    return [] if file_id is None else [json.loads(line) for line in client.files.content(file_id).text.splitlines()]


def test_files_are_kept_listed_and_deleted(client: openai.OpenAI):
    content = b"".join(line_of(f"{number}", {}).encode() + b"\n" for number in range(20_000))
    assert len(content) > 1 << 20
    made = client.files.create(
        file=("rows é.jsonl", content), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert (made.filename, made.bytes, made.purpose) == ("rows é.jsonl", len(content), "batch")
    assert made.expires_at == made.created_at + 3600
    assert client.files.retrieve(made.id) == made
    assert client.files.content(made.id).read() == content
    others = [client.files.create(file=("x", b"{}"), purpose="batch").id for _ in range(4)]
    assert [file.id for file in client.files.list(limit=2)][:5] == [*others[::-1], made.id]
    newest = [file.id for file in client.files.list(order="asc", purpose="batch", after=made.id, limit=3)]
    assert newest == others
    for file_id in (made.id, *others):
        assert client.files.delete(file_id).deleted
    for ask in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            ask(made.id)
    with pytest.raises(openai.BadRequestError):  # else a client that follows pages would begin again
        client.files.list(after=made.id)
    with pytest.raises(openai.BadRequestError):
        client.batches.list(after="batch_1")


def test_a_batch_gives_what_single_requests_give(client: openai.OpenAI, server: Served):
    bodies = chats(server.model, 23)
    lines = [line_of(f"row {number}", body) for number, body in enumerate(bodies)]
    file_id = upload(client, lines)
    made = client.batches.create(
        completion_window="24h", endpoint="/v1/chat/completions", input_file_id=file_id, metadata={"a": "b"}
    )
    assert made.status in ("in_progress", "completed")
    client.files.delete(file_id)
    batch = ended(client, made.id)
    assert batch.status == "completed"
    assert (batch.metadata, batch.model, batch.error_file_id) == ({"a": "b"}, server.model, None)
    counts = batch.request_counts
    assert counts is not None
    assert (counts.total, counts.completed, counts.failed) == (23, 23, 0)
    rows = rows_of(client, batch.output_file_id)
    assert [row["custom_id"] for row in rows] == [f"row {number}" for number in range(23)]
    for row, body in zip(rows, bodies, strict=True):
        assert row["error"] is None
        assert row["response"]["status_code"] == 200
        found = ChatCompletion.model_validate(row["response"]["body"])
        single = client.chat.completions.create(**body)
        assert found.choices == single.choices
    assert batch.usage is not None
    usages = [row["response"]["body"]["usage"] for row in rows]
    assert batch.usage.input_tokens == sum(usage["prompt_tokens"] for usage in usages)
    assert batch.usage.output_tokens == sum(usage["completion_tokens"] for usage in usages)
    assert batch.output_file_id is not None
    output = client.files.retrieve(batch.output_file_id)
    assert output.bytes == len(client.files.content(output.id).read())
    assert (output.purpose, output.filename) == ("batch_output", f"{batch.id}_output.jsonl")
    listed = [each.id for each in client.batches.list(limit=1)]
    assert listed[0] == batch.id


def test_completions_run_as_a_batch(client: openai.OpenAI, server: Served):
    body: dict[str, Any] = {
        "model": server.model,
        "prompt": ["One", "Two"],
        "max_tokens": 4,
        "temperature": 0,
        "n": 2,
        "logprobs": 1,
    }
    lines = [line_of("a", body, "/v1/completions"), line_of("b", {**body, "max_tokens": 0}, "/v1/completions")]
    made = client.batches.create(
        completion_window="24h", endpoint="/v1/completions", input_file_id=upload(client, lines)
    )
    rows = rows_of(client, ended(client, made.id).output_file_id)
    single = client.completions.create(**body)
    assert rows[0]["response"]["body"]["choices"] == [choice.model_dump() for choice in single.choices]
    assert [choice["text"] for choice in rows[1]["response"]["body"]["choices"]] == [""] * 4


def test_bad_requests_go_to_the_error_file_with_their_line(client: openai.OpenAI, server: Served):
    good = chats(server.model, 1)[0]
    bodies = [
        good,
        {**good, "model": "other"},
        {**good, "temperature": -1},
        {**good, "strange": 1},
        {**good, "stream": True},
        {**good, "messages": [{"role": "user", "content": "long " * 200_000}]} if server.model != "toy" else {},
        {},
        good,
    ]
    lines = [line_of(f"row {number}", body) for number, body in enumerate(bodies)]
    lines.insert(0, " ")
    made = client.batches.create(
        completion_window="24h", endpoint="/v1/chat/completions", input_file_id=upload(client, lines)
    )
    batch = ended(client, made.id)
    assert batch.status == "completed"
    assert [row["custom_id"] for row in rows_of(client, batch.output_file_id)] == ["row 0", "row 7"]
    errors = rows_of(client, batch.error_file_id)
    assert [(row["custom_id"], row["line"]) for row in errors] == [(f"row {n}", n + 2) for n in range(1, 7)]
    statuses = [row["response"]["status_code"] for row in errors]
    assert statuses == [404, 400, 400, 400, 400, 400]
    problems = [row["response"]["body"]["error"] for row in errors]
    assert [problem["param"] for problem in problems[:4]] == ["model", "temperature", "strange", "stream"]
    assert batch.request_counts is not None
    assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 6)


@pytest.mark.parametrize(
    ("lines", "number", "word"),
    [
        (["{}", ""], 1, "custom_id"),
        ([line_of("a", {}), "{", ""], 2, "JSON"),
        ([line_of("a", {}), "", "[1]"], 3, ""),
        ([line_of("a", {}), line_of("b", {})[:-3]], 2, "JSON"),
        ([line_of("a", {}), line_of("b", {}), line_of("a", {})], 3, "line 1"),
        ([line_of("a", {}), line_of("b", {}, "/v1/completions")], 2, "/v1/completions"),
        ([line_of("a", {}), line_of("b", {}).replace("POST", "GET")], 2, "method"),
        ([line_of("a", {}), line_of("b", 3)], 2, "body"),
        ([line_of("a", {}), '{"custom_id": 1, "method": "POST", "url": "/v1/chat/completions", "body": {}}'], 2, "id"),
        ([line_of("a", {}), line_of("b\ud800", {})], 2, "JSON"),
        ([line_of("a", {}), "[" * 100_000], 2, "JSON"),
    ],
)
def test_files_that_are_no_batch_are_refused_with_the_line(
    lines: list[str], number: int, word: str, toy: Served, client: openai.OpenAI
):
    file_id = upload(client, lines)
    with pytest.raises(openai.BadRequestError) as caught:
        client.batches.create(completion_window="24h", endpoint="/v1/chat/completions", input_file_id=file_id)
    assert caught.value.param == "input_file_id"
    assert f"line {number}: " in caught.value.message
    assert word in caught.value.message


def test_batches_of_other_things_are_refused_by_name(client: openai.OpenAI):
    file_id = upload(client, [line_of("a", {})])
    asked: dict[str, Any] = {
        "completion_window": "24h",
        "endpoint": "/v1/chat/completions",
        "input_file_id": file_id,
    }
    cases: list[tuple[dict[str, Any], str]] = [
        ({"completion_window": "1h"}, "completion_window"),
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"input_file_id": "file-1"}, "input_file_id"),
        ({"metadata": {"a" * 65: "b"}}, "metadata"),
        ({"metadata": {str(number): "b" for number in range(17)}}, "metadata"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 1}}, "output_expires_after"),
    ]
    create: Any = client.batches.create
    for parameters, name in cases:
        with pytest.raises(openai.APIStatusError) as caught:
            create(**(asked | parameters))
        assert caught.value.status_code in (400, 404)
        assert (caught.value.param or "").startswith(name)
    empty = upload(client, ["", "  "])
    with pytest.raises(openai.BadRequestError):
        create(**(asked | {"input_file_id": empty}))
    for ask in (client.batches.retrieve, client.batches.cancel):
        with pytest.raises(openai.NotFoundError):
            ask("batch_1")


@pytest.mark.parametrize("purpose", ["assistants", "fine-tune", "vision", "user_data", "evals", "batch_output", ""])
def test_other_purposes_are_refused_by_name(purpose: Any, toy: Served):
    answer = httpx2.post(f"{toy.url}/v1/files", files={"file": ("x", b"x")}, data={"purpose": purpose})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, "purpose")
    assert purpose in error["message"]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", b"no boundary at all"),
        ("multipart/form-data; boundary=b", b"--b\r\nbroken\r\n\r\nx\r\n--b--"),
        ("multipart/form-data; boundary=b", b"--b\r\n" + b"X-A: " + b"a" * 300_000 + b"\r\n\r\nx\r\n--b--"),
        ("multipart/form-data; boundary=b", b"--b\r\n" + b"X-A: a\r\n" * 20_000 + b"\r\nx\r\n--b--"),
        ("multipart/form-data; boundary=" + "b" * 5000, b"--b\r\n"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n' * 50_000 + b"--b--",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n1\r\n' * 5000 + b"--b--",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n' + b"a" * (2 << 20) + b"\r\n--b--",
        ),
        ("application/x-www-form-urlencoded", b"a=1&" * 100_000),
        ("application/x-www-form-urlencoded", b"%%%=&&;=%zz"),
    ],
)
def test_forms_that_are_none_are_refused(head: str, body: bytes, toy: Served):
    started = time.monotonic()
    answer = httpx2.post(f"{toy.url}/v1/files", content=body, headers={"content-type": head})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert time.monotonic() - started < 5


def test_a_file_above_the_limit_is_refused(toy: Served):
    answer = httpx2.post(
        f"{toy.url}/v1/files", files={"file": ("x", b"x" * (33 << 20))}, data={"purpose": "batch"}, timeout=SECONDS
    )
    assert answer.status_code == 413


def test_a_batch_that_is_cancelled_keeps_what_is_finished(builtin: Served):
    client = openai_client(builtin.url)
    bodies = chats(builtin.model, 400, max_tokens=24)
    lines = [line_of(f"row {number}", body) for number, body in enumerate(bodies)]
    made = client.batches.create(
        completion_window="24h", endpoint="/v1/chat/completions", input_file_id=upload(client, lines)
    )
    end = time.monotonic() + SECONDS
    while (counts := client.batches.retrieve(made.id).request_counts) is None or not counts.completed:
        assert time.monotonic() < end
    cancelled = client.batches.cancel(made.id)
    assert (cancelled.status, cancelled.output_file_id) == ("cancelling", None)
    batch = ended(client, made.id)
    assert batch.status == "cancelled"
    done, left = rows_of(client, batch.output_file_id), rows_of(client, batch.error_file_id)
    assert done
    assert left
    assert sorted(row["custom_id"] for row in done + left) == sorted(f"row {number}" for number in range(400))
    assert {row["error"]["code"] for row in left} == {"batch_cancelled"}
    with pytest.raises(openai.BadRequestError):
        client.batches.cancel(made.id)
    assert batch.output_file_id is not None
    client.files.delete(batch.output_file_id)
    with pytest.raises(openai.NotFoundError):
        client.files.content(batch.output_file_id)
    assert rows_of(client, batch.error_file_id) == left


class CountingEngine(ToyEngine):
    """Answers a little later, the first ones when ``least`` run at once, and counts what does."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self.running = self.most = 0
        self._least = least
        self._counting = threading.Condition()
        self._pool = ThreadPoolExecutor(400)

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        with self._counting:
            self.running += 1
            self.most = max(self.most, self.running)
            self._counting.notify_all()

        def later() -> Generation:
            with self._counting:
                self._counting.wait_for(lambda: self.most >= self._least, 10)
            time.sleep(0.02)
            with self._counting:
                self.running -= 1
            return ToyEngine.submit(self, request, on_delta).future.result()

        return LaterHandle(self._pool.submit(later))


@dataclass(frozen=True)
class LaterHandle:
    future: Future[Generation]

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize(("n", "prompts"), [(1, 1), (9, 1), (3, 5), (128, 1)])
def test_generations_of_a_batch_are_bounded_not_lines(n: int, prompts: int):
    body: dict[str, Any] = {"model": "model", "prompt": ["x"] * prompts, "max_tokens": 2, "n": n}
    lines = [line_of(str(number), body, "/v1/completions") for number in range(40 if n == 128 else 100)]
    at_once = n * prompts
    with running(CountingEngine(max(at_once, 32))) as inside:
        client = openai_client(inside.url)
        made = client.batches.create(
            completion_window="24h", endpoint="/v1/completions", input_file_id=upload(client, lines)
        )
        assert ended(client, made.id).status == "completed"
        assert inside.engine.most <= max(at_once, 64)
        assert inside.engine.most >= max(at_once, 32)


def test_other_requests_are_answered_beside_a_batch(builtin: Served):
    """Few lines of the batch end while another request is answered: it does not wait for those that have not begun."""
    client = openai_client(builtin.url)
    lines = [line_of(str(number), body) for number, body in enumerate(chats(builtin.model, 1000, max_tokens=40))]
    made = client.batches.create(
        completion_window="24h", endpoint="/v1/chat/completions", input_file_id=upload(client, lines)
    )

    def done() -> int:
        counts = client.batches.retrieve(made.id).request_counts
        assert counts is not None
        assert counts.completed < 1000, "the batch is too small for this test"
        return counts.completed

    while not (before := done()):
        time.sleep(0.01)
    for _ in range(5):
        client.chat.completions.create(
            model=builtin.model, messages=[{"role": "user", "content": "And I?"}], max_tokens=4
        )
        after = done()
        assert after - before <= 3 * 64
        before = after
    client.batches.cancel(made.id)
    ended(client, made.id)

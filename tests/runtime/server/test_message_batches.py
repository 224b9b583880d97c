"""Batches of messages, through Anthropic's SDK."""

import time
from typing import Any

import anthropic
import pytest
from anthropic.types.messages import MessageBatch

from tests.runtime.server.servers import SECONDS, Served, anthropic_client


def params(model: str, number: int, **more: Any) -> Any:
    question = {"role": "user", "content": f"Question {number}"}
    return {"model": model, "max_tokens": 5, "system": f"Number {number % 3}. " * 9, "messages": [question], **more}


def items(model: str, count: int, **more: Any) -> list[Any]:
    return [{"custom_id": f"row-{number}", "params": params(model, number, **more)} for number in range(count)]


def ended(claude: anthropic.Anthropic, batch_id: str) -> MessageBatch:
    end = time.monotonic() + SECONDS
    while (batch := claude.messages.batches.retrieve(batch_id)).processing_status != "ended":
        assert time.monotonic() < end, batch
        time.sleep(0.05)
    return batch


def test_a_batch_gives_what_single_messages_give(claude: anthropic.Anthropic, server: Served):
    asked: list[Any] = [
        *items(server.model, 12, temperature=0),
        {"custom_id": "bad", "params": params(server.model, 1, strange=1)},
        {"custom_id": "other", "params": params("other", 1)},
        {"custom_id": "stream", "params": params(server.model, 1, stream=True)},
        {"custom_id": "kept", "params": params(server.model, 1, max_tokens=0)},
    ]
    made = claude.messages.batches.create(requests=asked)
    assert made.results_url is None or made.processing_status == "ended"
    assert made.request_counts.processing + made.request_counts.succeeded >= 13 or made.processing_status == "ended"
    batch = ended(claude, made.id)
    counts = batch.request_counts
    assert (counts.processing, counts.succeeded, counts.errored) == (0, 13, 3)
    assert batch.ended_at is not None
    assert (batch.expires_at - batch.created_at).days == 1
    found = {each.custom_id: each.result for each in claude.messages.batches.results(batch.id)}
    assert list(found) == [each["custom_id"] for each in asked]
    for each in asked[:12]:
        result = found[each["custom_id"]]
        assert result.type == "succeeded"
        parameters = {name: value for name, value in each["params"].items() if name != "temperature"}
        single = claude.messages.create(**parameters, extra_body={"temperature": 0})
        assert result.message.content == single.content
        assert result.message.stop_reason == single.stop_reason
    for name, kind, word in (
        ("bad", "invalid_request_error", "strange"),
        ("other", "not_found_error", "other"),
        ("stream", "invalid_request_error", "stream"),
    ):
        result = found[name]
        assert result.type == "errored"
        assert result.error.error.type == kind
        assert word in result.error.error.message
    claude.messages.batches.delete(batch.id)
    for ask in (claude.messages.batches.retrieve, claude.messages.batches.results, claude.messages.batches.delete):
        with pytest.raises(anthropic.NotFoundError):
            ask(batch.id)


def test_batches_are_listed_in_pages(claude: anthropic.Anthropic, toy: Served):
    claude = anthropic_client(toy.url)
    made = [claude.messages.batches.create(requests=items("toy", 1)).id for _ in range(5)][::-1]
    assert [batch.id for batch in claude.messages.batches.list(limit=2)][:5] == made
    page = claude.messages.batches.list(limit=2, before_id=made[4])
    assert [batch.id for batch in page.data] == made[2:4]
    assert page.has_more
    assert [batch.id for batch in claude.messages.batches.list(limit=9, before_id=made[2]).data][-2:] == made[:2]


def test_a_batch_that_is_canceled_keeps_what_is_finished(builtin: Served):
    claude = anthropic_client(builtin.url)
    made = claude.messages.batches.create(requests=items(builtin.model, 500, max_tokens=24))
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.batches.delete(made.id)
    with pytest.raises(anthropic.AnthropicError):
        claude.messages.batches.results(made.id)
    assert builtin.get(f"/v1/messages/batches/{made.id}/results").status_code == 400
    cancelled = claude.messages.batches.cancel(made.id)
    assert cancelled.processing_status == "canceling"
    batch = ended(claude, made.id)
    results = [each.result.type for each in claude.messages.batches.results(made.id)]
    assert len(results) == 500
    assert set(results) <= {"canceled", "succeeded"}
    assert batch.request_counts.canceled == results.count("canceled") > 0
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.batches.cancel(made.id)


@pytest.mark.parametrize(
    ("requests", "word"),
    [
        ([], "requests"),
        ([{"custom_id": "a b", "params": {}}], "requests.0.custom_id"),
        ([{"custom_id": "", "params": {}}], "requests.0.custom_id"),
        ([{"custom_id": "a", "params": {}}, {"custom_id": "b"}], "requests.1.params"),
        ([{"custom_id": "a", "params": {}}, {"custom_id": "a", "params": {}}], "requests.1.custom_id"),
        ([{"custom_id": "a", "params": {}, "strange": 1}], "requests.0.strange"),
    ],
)
def test_what_is_no_batch_is_refused_by_name(requests: Any, word: str, toy: Served):
    claude = anthropic_client(toy.url)
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.batches.create(requests=requests)
    assert word in caught.value.message

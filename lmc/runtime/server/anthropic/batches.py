"""``/v1/messages/batches``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from lmc.runtime.server.batches.endpoints import ENDPOINTS, MOST_LINES
from lmc.runtime.server.batches.runs import new_id, runs_of, store_of
from lmc.runtime.server.batches.store import ENDED, StateStore, StoredBatch
from lmc.runtime.server.errors import ApiError, refused
from lmc.runtime.server.gate import model_of
from lmc.runtime.server.parameters import Parameters

router = APIRouter()

_PROTOCOL = "anthropic"
_DAY = 86_400


class MessageBatchItem(BaseModel):
    """A request of a batch. Its ``params`` are looked at when it runs."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    custom_id: str = Field(pattern="^[a-zA-Z0-9_-]{1,64}$")
    params: dict[str, Any]


class MessageBatchRequest(Parameters):
    """The body of a new batch."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"user_profile_id", "workspace_id"})

    requests: list[MessageBatchItem] = Field(min_length=1, max_length=MOST_LINES[_PROTOCOL])


@router.post("/v1/messages/batches")
async def create_message_batch(request: Request, body: MessageBatchRequest) -> dict[str, Any]:
    """Begin a batch."""
    now, store = model_of(request).now, store_of(request)
    first: dict[str, int] = {}
    for number, item in enumerate(body.requests):
        if first.setdefault(item.custom_id, number) != number:
            name = f"requests.{number}.custom_id"
            raise refused(name, f"request {first[item.custom_id]} has {item.custom_id!r} too")
    batch = StoredBatch(new_id("msgbatch_"), _PROTOCOL, "/v1/messages", now, now + _DAY, len(body.requests))
    await asyncio.to_thread(_keep, store, batch, body.requests)
    runs_of(request).start(batch)
    return await _entry(request, batch)


def _keep(store: StateStore, batch: StoredBatch, items: Sequence[MessageBatchItem]) -> None:
    lines = (json.dumps({"custom_id": item.custom_id, "params": item.params}).encode() for item in items)
    store.add_batch(batch, enumerate(lines))


async def _batch_of(request: Request, batch_id: str) -> StoredBatch:
    found = await asyncio.to_thread(store_of(request).batch, batch_id, _PROTOCOL)
    if found is None:
        raise ApiError("missing", f"there is no batch {batch_id!r}")
    return found


async def _entry(request: Request, batch: StoredBatch) -> dict[str, Any]:
    """Describe a batch. As the protocol has it, lines count as processing until all have ended.

    It has no status for a batch that has failed: there, the lines without a result have.
    """
    counts = (await asyncio.to_thread(store_of(request).counts, batch.id)).lines if batch.status in ENDED else {}
    missing = batch.total - sum(counts.values())
    has_failed = batch.status == "failed"
    results = f"{request.base_url}v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if batch.status in ENDED else _STATUS[batch.status],
        "request_counts": {
            "processing": 0 if has_failed else missing,
            "succeeded": counts.get("succeeded", 0),
            "errored": counts.get("errored", 0) + (missing if has_failed else 0),
            "canceled": counts.get("cancelled", 0),
            "expired": counts.get("expired", 0),
        },
        "created_at": _time(batch.created),
        "expires_at": _time(batch.expires),
        "ended_at": _time(batch.times.get("ended")),
        "cancel_initiated_at": _time(batch.times.get("cancelling")),
        "archived_at": None,
        "results_url": results if batch.status in ENDED else None,
    }


_STATUS = {"in_progress": "in_progress", "cancelling": "canceling"}


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@router.get("/v1/messages/batches")
async def list_message_batches(
    request: Request,
    before_id: str | None = None,
    after_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> dict[str, Any]:
    """List batches, newest first."""
    found = await asyncio.to_thread(store_of(request).batches, _PROTOCOL, limit + 1, after_id, before_id)
    shown = found[:limit] if before_id is None else found[-limit:]
    return {
        "data": [await _entry(request, batch) for batch in shown],
        "first_id": shown[0].id if shown else None,
        "last_id": shown[-1].id if shown else None,
        "has_more": len(found) > limit,
    }


@router.get("/v1/messages/batches/{batch_id}")
async def retrieve_message_batch(request: Request, batch_id: str) -> dict[str, Any]:
    """Describe a batch."""
    return await _entry(request, await _batch_of(request, batch_id))


@router.post("/v1/messages/batches/{batch_id}/cancel")
async def cancel_message_batch(request: Request, batch_id: str) -> dict[str, Any]:
    """Cancel a batch. What is finished is kept."""
    batch = await _batch_of(request, batch_id)
    batch = await asyncio.to_thread(store_of(request).begin_cancelling, batch, model_of(request).now)
    if batch.status in ENDED:
        raise ApiError("invalid", "the batch can't be canceled: it has ended")
    runs_of(request).stop(batch)
    return await _entry(request, batch)


@router.delete("/v1/messages/batches/{batch_id}")
async def delete_message_batch(request: Request, batch_id: str) -> dict[str, Any]:
    """Delete a batch that has ended, and its results."""
    batch = await _batch_of(request, batch_id)
    if batch.status not in ENDED:
        raise ApiError("invalid", "the batch can't be deleted: it has not ended")
    await asyncio.to_thread(store_of(request).delete_batch, batch)
    return {"id": batch.id, "type": "message_batch_deleted"}


@router.get("/v1/messages/batches/{batch_id}/results", response_class=Response)
async def message_batch_results(request: Request, batch_id: str) -> Response:
    """Return the results of a batch that has ended, one a line."""
    batch = await _batch_of(request, batch_id)
    if batch.status not in ENDED:
        raise ApiError("invalid", "the batch has no results: it has not ended")
    return StreamingResponse(_results(store_of(request), batch), media_type="application/x-jsonl")


def _results(store: StateStore, batch: StoredBatch) -> Iterator[bytes]:
    """Yield the results of a batch; where it has failed, its error is that of the lines without one."""
    yield from store.results(batch.id)
    if batch.error is not None:
        endpoint, error = ENDPOINTS[_PROTOCOL][batch.endpoint], ApiError("failed", batch.error)
        for number in store.unfinished_lines(batch.id):
            yield endpoint.failed(batch.id, number, store.request(batch.id, number), error) + b"\n"

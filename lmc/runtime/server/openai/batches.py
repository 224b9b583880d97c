"""``/v1/batches``: files of requests that run as one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lmc.runtime.server.batches.endpoints import ENDPOINTS, MOST_LINES
from lmc.runtime.server.batches.runs import new_id, runs_of, store_of
from lmc.runtime.server.batches.store import ENDED, BatchCounts, StateStore, StoredBatch, StoredFile
from lmc.runtime.server.errors import ApiError, refused
from lmc.runtime.server.gate import model_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.files import LEAST_SECONDS, MOST_SECONDS, file_of, page_of
from lmc.runtime.server.parameters import Parameters, invalid_body

router = APIRouter()

_PROTOCOL = "openai"
_DAY = 86_400


class OutputExpiry(BaseModel):
    """The time for which files of results are kept."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    anchor: Literal["created_at"]
    seconds: int = Field(ge=LEAST_SECONDS, le=MOST_SECONDS)


class BatchRequest(Parameters):
    """The body of a new batch."""

    completion_window: Literal["24h"]
    endpoint: str
    input_file_id: str
    metadata: (
        dict[Annotated[str, StringConstraints(max_length=64)], Annotated[str, StringConstraints(max_length=512)]] | None
    ) = Field(default=None, max_length=16)
    output_expires_after: OutputExpiry | None = None


class BatchFileLine(BaseModel):
    """A line of an input file. Its body is looked at when it runs."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    custom_id: str = Field(min_length=1, max_length=512)
    method: Literal["POST"]
    url: str
    body: dict[str, Any]


@router.post("/v1/batches")
async def create_batch(request: Request, body: BatchRequest) -> dict[str, Any]:
    """Begin a batch."""
    model, store = model_of(request), store_of(request)
    if body.endpoint not in ENDPOINTS[_PROTOCOL]:
        known = ", ".join(ENDPOINTS[_PROTOCOL])
        raise refused("endpoint", f"batches of {body.endpoint!r} are not served; those of {known} are")
    file = await file_of(request, body.input_file_id, "input_file_id")
    if file.purpose != "batch":
        raise refused("input_file_id", f"the purpose of this file is {file.purpose!r}, not 'batch'")
    batch = StoredBatch(
        id=new_id("batch_"),
        protocol=_PROTOCOL,
        endpoint=body.endpoint,
        created=model.now,
        expires=model.now + _DAY,
        total=0,
        metadata=body.metadata,
        input_file=file.id,
        output_seconds=None if body.output_expires_after is None else body.output_expires_after.seconds,
        times={"in_progress": model.now},
    )
    kept = await asyncio.to_thread(_keep, store, batch, file)
    runs_of(request).start(kept)
    return await _entry(model, store, kept)


def _keep(store: StateStore, batch: StoredBatch, file: StoredFile) -> StoredBatch:
    """Keep a batch with the lines of its file. Raises ``ApiError`` that names the first line that is none."""
    lines = list(_lines(b"".join(store.content(file)), batch.endpoint))
    if not lines:
        raise refused("input_file_id", "the file has no lines")
    kept = replace(batch, total=len(lines))
    store.add_batch(kept, lines)
    return kept


def _lines(content: bytes, endpoint: str) -> Iterator[tuple[int, bytes]]:
    """Yield numbers and texts of the lines of a file, without blank ones."""
    seen: dict[str, int] = {}
    for number, text in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = BatchFileLine.model_validate_json(text)
        except ValidationError as error:
            problem = invalid_body(error.errors(include_url=False))
            message = "it is no JSON" if problem.parameter is None else problem.message
            raise _at(number, message, "invalid_json_line" if problem.parameter is None else None) from error
        if line.url != endpoint:
            raise _at(number, f"its url is {line.url!r}, and the endpoint of the batch is {endpoint!r}", "invalid_url")
        first = seen.setdefault(line.custom_id, number)
        if first != number:
            raise _at(number, f"line {first} has the custom_id {line.custom_id!r} too", "duplicate_custom_id")
        if len(seen) > MOST_LINES[_PROTOCOL]:
            raise _at(number, f"a batch has at most {MOST_LINES[_PROTOCOL]} requests", "too_many_requests")
        yield number, text.strip()


def _at(number: int, problem: str, code: str | None) -> ApiError:
    return ApiError("invalid", f"line {number}: {problem}", "input_file_id", code)


async def _batch_of(request: Request, batch_id: str) -> StoredBatch:
    found = await asyncio.to_thread(store_of(request).batch, batch_id, _PROTOCOL)
    if found is None:
        raise ApiError("missing", f"there is no batch {batch_id!r}")
    return found


async def _entry(model: Model, store: StateStore, batch: StoredBatch) -> dict[str, Any]:
    counts: BatchCounts = await asyncio.to_thread(store.counts, batch.id)
    completed = counts.lines.get("succeeded", 0)
    ended = batch.times.get("ended")
    missing = batch.total - sum(counts.lines.values())
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": model.name,
        "errors": None if batch.error is None else _errors(batch.error),
        "input_file_id": batch.input_file,
        "completion_window": "24h",
        "status": batch.status,
        "output_file_id": batch.output_file,
        "error_file_id": batch.error_file,
        "created_at": batch.created,
        "in_progress_at": batch.times.get("in_progress"),
        "expires_at": batch.expires,
        "finalizing_at": ended,
        "completed_at": ended if batch.status == "completed" else None,
        "failed_at": ended if batch.status == "failed" else None,
        "expired_at": ended if batch.status == "expired" else None,
        "cancelling_at": batch.times.get("cancelling"),
        "cancelled_at": ended if batch.status == "cancelled" else None,
        "request_counts": {
            "total": batch.total,
            "completed": completed,
            "failed": batch.total - completed - missing,
        },
        "usage": {
            "input_tokens": counts.prompt,
            "input_tokens_details": {"cached_tokens": counts.cached},
            "output_tokens": counts.generated,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": counts.prompt + counts.generated,
        },
        "metadata": batch.metadata,
    }


def _errors(message: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"code": "server_error", "message": message, "line": None, "param": None}]}


@router.get("/v1/batches")
async def list_batches(
    request: Request, after: str | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> dict[str, Any]:
    """List batches, newest first."""
    model, store = model_of(request), store_of(request)
    found = await asyncio.to_thread(store.batches, _PROTOCOL, limit + 1, after)
    return page_of([await _entry(model, store, batch) for batch in found], limit)


@router.get("/v1/batches/{batch_id}")
async def retrieve_batch(request: Request, batch_id: str) -> dict[str, Any]:
    """Describe a batch."""
    return await _entry(model_of(request), store_of(request), await _batch_of(request, batch_id))


@router.post("/v1/batches/{batch_id}/cancel")
async def cancel_batch(request: Request, batch_id: str) -> dict[str, Any]:
    """Cancel a batch. What is finished is kept."""
    model, store = model_of(request), store_of(request)
    batch = await asyncio.to_thread(store.begin_cancelling, await _batch_of(request, batch_id), model.now)
    if batch.status in ENDED:
        raise ApiError("invalid", f"the batch can't be cancelled: its status is {batch.status!r}")
    runs_of(request).stop(batch)
    return await _entry(model, store, batch)

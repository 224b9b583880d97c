"""``/v1/programs``: the programs of this server, and runs of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from lmc.ir.errors import ConstraintError
from lmc.runtime.server.errors import ApiError, error_of
from lmc.runtime.server.gate import lane_of, model_of, note_run
from lmc.runtime.server.jobs import ClientLane
from lmc.runtime.server.openai.form import form
from lmc.runtime.server.programs.hosted import HostedProgram, ProgramEnd, ProgramRun
from lmc.runtime.server.streams import EventStream, data, while_connected

router = APIRouter()

_ROW: dict[str, Any] = {
    "requestBody": {
        "content": {"application/json": {"schema": {"type": "object"}}},
        "description": "Arguments by name.",
    }
}


@router.get("/v1/programs")
async def programs(request: Request) -> JSONResponse:
    """List the programs, each with the JSON schemas of its arguments and of its value."""
    return JSONResponse({"object": "list", "data": [each.description for each in _programs(request).values()]})


@router.get("/v1/programs/{name}")
async def program(request: Request, name: str) -> JSONResponse:
    """Describe a program."""
    return JSONResponse(_program(request, name).description)


@router.post("/v1/programs/{name}", openapi_extra=_ROW)
async def run_program(request: Request, name: str, seed: int | None = None, stream: bool | None = None) -> Response:
    """Run a program. The body is a row of arguments, the answer the row of its result, or a stream that ends with it.

    ``seed`` is that of the random draws. A stream is sent where ``stream`` is true, or ``Accept`` asks for one.
    """
    hosted, body, lane = _program(request, name), await request.body(), lane_of(request)
    run = await asyncio.to_thread(hosted.run, body or b"{}", seed, lane)
    if stream is None:
        stream = request.headers.get("accept", "").startswith("text/event-stream")
    if stream:
        return await EventStream.open(request, _events(request, run, lane), _failed)

    async def ended() -> ProgramEnd:
        async with model_of(request).attending(run, lane), aclosing(run.events()) as events:
            async for event in events:
                if isinstance(event, ProgramEnd):
                    return event
        raise AssertionError("a run has an end")

    end = await while_connected(request, ended())
    _note(request, end)
    return JSONResponse(end.row)


async def _events(request: Request, run: ProgramRun, lane: ClientLane) -> AsyncIterator[bytes]:
    """Yield the events of a stream: tokens, and the result."""
    async with model_of(request).attending(run, lane), aclosing(run.events()) as events:
        async for event in events:
            if isinstance(event, ProgramEnd):
                _note(request, event)
                yield data(event.row, "result")
            else:
                token = {name: getattr(event, name) for name in ("branch", "op_id", "name", "sample", "text")}
                yield data(token, "token")


def _note(request: Request, end: ProgramEnd) -> None:
    """Note the cost of a run. Raises its error as that of the request."""
    note_run(request, end.usage)
    if end.error is None:
        return
    message = str(end.row["error"])  # with the line of the program
    if not isinstance(end.error, Exception) or isinstance(end.error, ConstraintError):
        raise ApiError("failed", message)
    found = error_of(end.error)
    raise ApiError(found.kind, message, found.parameter, found.code, found.headers)


def _failed(error: ApiError) -> bytes:
    return data(form(error), "error")


def _programs(request: Request) -> dict[str, HostedProgram]:
    return request.app.state.programs


def _program(request: Request, name: str) -> HostedProgram:
    """Return the program of a name. Raises ``ApiError`` where there is none."""
    found = _programs(request).get(name)
    if found is None:
        raise ApiError("missing", f"there is no program {name!r} (GET /v1/programs lists them)", "name")
    return found

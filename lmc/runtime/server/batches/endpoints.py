"""The endpoints that a batch can call, and the forms of requests and results of its lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import ValidationError

from lmc.runtime.server.anthropic.form import form as anthropic_form
from lmc.runtime.server.anthropic.messages import MessagesRequest
from lmc.runtime.server.batches.store import LineOutcome
from lmc.runtime.server.errors import ApiError, refused
from lmc.runtime.server.jobs import Answered, ClientLane
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.chat import ChatRequest
from lmc.runtime.server.openai.completions import CompletionRequest
from lmc.runtime.server.openai.form import form as openai_form
from lmc.runtime.server.openai.responses import ResponsesRequest
from lmc.runtime.server.parameters import Parameters, invalid_body

BatchProtocol = Literal["openai", "anthropic"]
MOST_LINES: dict[BatchProtocol, int] = {"openai": 50_000, "anthropic": 100_000}
"""As in the hosted APIs."""
_ENDINGS: dict[LineOutcome, tuple[str, str]] = {
    "cancelled": ("batch_cancelled", "the batch was cancelled before this request ran"),
    "expired": ("batch_expired", "the batch expired before this request ran"),
}


class BatchBody(Protocol):
    """The body of a request, which can be answered as a whole."""

    @property
    def most_tokens(self) -> int: ...

    @property
    def choices(self) -> int: ...

    def prompts(self, model: Model) -> list[tuple[int, ...]]: ...

    async def answer(self, model: Model, lane: ClientLane) -> Answered: ...


@dataclass(frozen=True, slots=True)
class LineResult:
    """The end of a line with its number and own id: the status and body of an answer, if it has one."""

    id: str
    number: int
    custom_id: str
    outcome: LineOutcome
    status: int = 0
    body: Any = None


@dataclass(frozen=True, slots=True)
class BatchEndpoint:
    """An endpoint: the model of its bodies, where a line has them, and the forms of its protocol.

    ``entry`` gives the line of a result. ``makes_files``: results are files when the batch has ended.
    """

    body: type[Parameters]
    body_key: str
    makes_files: bool
    form: Callable[[ApiError], dict[str, Any]]
    entry: Callable[[LineResult], dict[str, Any]]

    def parsed(self, request: bytes) -> BatchBody:
        """Return the body of a line. Raises ``ApiError``."""
        given = json.loads(request)[self.body_key]
        try:
            body: Any = self.body.model_validate(given)
        except ValidationError as error:
            raise invalid_body(error.errors()) from error
        if body.stream:
            raise refused("stream", "a batch gives whole answers")
        return body

    def answered(self, batch: str, number: int, request: bytes, content: Any) -> bytes:
        """Return the result of a line with an answer, as JSON."""
        return self._line(LineResult(*_names(batch, number, request), "succeeded", 200, content))

    def failed(self, batch: str, number: int, request: bytes, error: ApiError) -> bytes:
        """Return the result of a line that failed, as JSON."""
        return self._line(LineResult(*_names(batch, number, request), "errored", error.status, self.form(error)))

    def left_out(self, batch: str, number: int, request: bytes, outcome: LineOutcome) -> bytes:
        """Return the result of a line that did not run, as JSON."""
        return self._line(LineResult(*_names(batch, number, request), outcome))

    def _line(self, result: LineResult) -> bytes:
        return json.dumps(self.entry(result), separators=(",", ":")).encode()


def _names(batch: str, number: int, request: bytes) -> tuple[str, int, str]:
    return f"batch_req_{batch.rpartition('_')[2]}_{number}", number, json.loads(request)["custom_id"]


def _openai_entry(result: LineResult) -> dict[str, Any]:
    """Return a line of an output file, or of an error file: that says which line of the input it is."""
    entry: dict[str, Any] = {"id": result.id, "custom_id": result.custom_id, "response": None, "error": None}
    if result.outcome in _ENDINGS:
        code, message = _ENDINGS[result.outcome]
        entry["error"] = {"code": code, "message": message}
    else:
        entry["response"] = {"status_code": result.status, "request_id": result.id, "body": result.body}
    return entry if result.outcome == "succeeded" else {**entry, "line": result.number}


def _anthropic_entry(result: LineResult) -> dict[str, Any]:
    """Return a line of the results."""
    found: dict[str, Any] = {"type": result.outcome}
    if result.outcome == "succeeded":
        found["message"] = result.body
    elif result.outcome == "errored":
        found["error"] = result.body
    elif result.outcome == "cancelled":
        found["type"] = "canceled"
    return {"custom_id": result.custom_id, "result": found}


ENDPOINTS: dict[BatchProtocol, dict[str, BatchEndpoint]] = {
    "openai": {
        path: BatchEndpoint(body, "body", makes_files=True, form=openai_form, entry=_openai_entry)
        for path, body in (
            ("/v1/chat/completions", ChatRequest),
            ("/v1/completions", CompletionRequest),
            ("/v1/responses", ResponsesRequest),
        )
    },
    "anthropic": {
        "/v1/messages": BatchEndpoint(
            MessagesRequest, "params", makes_files=False, form=anthropic_form, entry=_anthropic_entry
        )
    },
}

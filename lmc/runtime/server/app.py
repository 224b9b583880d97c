"""The application: the endpoints of all protocols over one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from lmc.ir.errors import LmcError
from lmc.runtime.server.anthropic import batches as message_batches
from lmc.runtime.server.anthropic import messages
from lmc.runtime.server.anthropic.form import form as anthropic_form
from lmc.runtime.server.batches.runs import BatchRuns
from lmc.runtime.server.batches.store import StateStore
from lmc.runtime.server.errors import ApiError, error_of, refused
from lmc.runtime.server.gate import Gate
from lmc.runtime.server.metrics import Metrics
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai import batches, chat, completions, files, models, responses
from lmc.runtime.server.openai.form import form as openai_form
from lmc.runtime.server.operators import routes as operators
from lmc.runtime.server.parameters import invalid_body
from lmc.runtime.server.programs import routes as programs
from lmc.runtime.server.programs.hosted import HostedProgram
from lmc.runtime.server.settings import Settings
from lmc.runtime.server.sglang import generate, info
from lmc.runtime.server.sglang.form import form as sglang_form
from lmc.runtime.server.streams import ClientGoneError

ROUTERS = (
    chat.router,
    completions.router,
    responses.router,
    models.router,
    files.router,
    batches.router,
    messages.router,
    message_batches.router,
    generate.router,
    info.router,
    programs.router,
    operators.router,
)
Form = Callable[[ApiError], dict[str, Any]]
"""Gives an error in the form of a protocol."""
_FORMS: tuple[tuple[str, Form], ...] = (
    ("/v1/messages", anthropic_form),
    ("/v1", openai_form),
    ("", sglang_form),
)


def _form(path: str) -> Form:
    return next(form for start, form in _FORMS if path.startswith(start))


def _errors(form: Form) -> dict[int | str, dict[str, Any]]:
    """Return the description of errors for ``/openapi.json``."""
    example = form(refused("name", "what is wrong with it"))
    content = {"application/json": {"schema": _schema(example), "example": example}}
    return {
        "4XX": {"description": "The request is refused.", "content": content},
        "5XX": {"description": "The request has failed.", "content": content},
    }


def _schema(data: dict[str, Any]) -> dict[str, Any]:
    properties = {name: _schema(value) if isinstance(value, dict) else {} for name, value in data.items()}
    return {"type": "object", "properties": properties, "required": [*data]}


class ServerApp(FastAPI):
    """The application. ``gate`` is its outermost part, which is what a server runs."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        store: StateStore | None = None,
        hosted: Sequence[HostedProgram] = (),
    ) -> None:
        """Serve a model. Files and batches are those of ``store``; without one, they end with the process."""
        super().__init__(title="lmc", description=f"{model.name} over HTTP.", docs_url=None, redoc_url=None)
        self.state.metrics = Metrics(model)
        self.state.programs = {each.name: each for each in hosted}
        for router in ROUTERS:
            self.include_router(router, responses=_errors(_form(str(getattr(router.routes[0], "path", "")))))
        self.add_exception_handler(ApiError, _answer_error)
        self.add_exception_handler(LmcError, _answer_error)
        self.add_exception_handler(ClientGoneError, _answer_gone)
        self.add_exception_handler(RequestValidationError, _answer_invalid)
        self.add_exception_handler(HTTPException, _answer_http)
        self.add_exception_handler(Exception, _answer_error)
        self.gate = Gate(self, settings, model, self.state.metrics, answer)
        self.state.store = StateStore() if store is None else store
        self.state.batches = BatchRuns(model, self.state.store, self.gate)

    def resume(self) -> None:
        """Continue the batches that an earlier process has left. For the event loop that serves."""
        self.state.batches.resume()


async def _answer_error(request: Request, error: Exception) -> Response:
    return answer(request.url.path, error_of(error))


async def _answer_gone(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=499)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, ApiError):  # the body could not be read
        return answer(request.url.path, error.__cause__)
    if error.status_code == 404:
        return answer(request.url.path, ApiError("missing", f"there is no {request.method} {request.url.path}"))
    if error.status_code == 405:
        refusal = ApiError("invalid", f"{request.url.path} takes no {request.method}", headers=error.headers or {})
        return answer(request.url.path, refusal, 405)
    return answer(request.url.path, ApiError("invalid", str(error.detail)))


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [{**problem, "loc": problem["loc"][1:]} for problem in error.errors()]  # the first part says: the body
    return answer(request.url.path, invalid_body(problems))


def answer(path: str, error: ApiError, status: int | None = None) -> Response:
    """Return an error in the form of the protocol of its path."""
    return JSONResponse(_form(path)(error), error.status if status is None else status, dict(error.headers))

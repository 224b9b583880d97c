"""The application: the endpoints of all protocols over one model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from lmc.ir.errors import LmcError
from lmc.runtime.server.anthropic import messages
from lmc.runtime.server.anthropic.form import form as anthropic_form
from lmc.runtime.server.errors import ApiError, error_of
from lmc.runtime.server.gate import Gate
from lmc.runtime.server.metrics import Metrics
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai import chat, completions, models
from lmc.runtime.server.openai.form import form as openai_form
from lmc.runtime.server.operators import routes as operators
from lmc.runtime.server.parameters import UnsupportedError
from lmc.runtime.server.settings import Settings
from lmc.runtime.server.sglang import generate, info
from lmc.runtime.server.sglang.form import form as sglang_form
from lmc.runtime.server.streams import ClientGoneError

ROUTERS = (
    chat.router,
    completions.router,
    models.router,
    messages.router,
    generate.router,
    info.router,
    operators.router,
)
_FORMS: tuple[tuple[str, Callable[[ApiError], dict[str, Any]]], ...] = (
    ("/v1/messages", anthropic_form),
    ("/v1", openai_form),
    ("", sglang_form),
)


class ServerApp(FastAPI):
    """The application. ``gate`` is its outermost part, which is what a server runs."""

    def __init__(self, model: Model, settings: Settings) -> None:
        super().__init__(title="lmc", description=f"{model.name} over HTTP.", docs_url=None, redoc_url=None)
        self.state.metrics = Metrics(model)
        for router in ROUTERS:
            self.include_router(router)
        self.add_exception_handler(ApiError, _answer_error)
        self.add_exception_handler(LmcError, _answer_error)
        self.add_exception_handler(ClientGoneError, _answer_gone)
        self.add_exception_handler(RequestValidationError, _answer_invalid)
        self.add_exception_handler(HTTPException, _answer_http)
        self.add_exception_handler(Exception, _answer_error)
        self.gate = Gate(self, settings, model, self.state.metrics, answer)


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
        return answer(request.url.path, ApiError("invalid", f"{request.url.path} takes no {request.method}"), 405)
    return answer(request.url.path, ApiError("invalid", str(error.detail)))


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(request.url.path, _invalid(error))


def _invalid(error: RequestValidationError) -> ApiError:
    """Return the first problem of a body as the error of the parameter that it is about."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return ApiError("invalid", "the body is no JSON")
    inner = first.get("ctx", {}).get("error")
    path = [str(step) for step in first["loc"] if step not in ("body", "query", "path")]
    if isinstance(inner, UnsupportedError):
        path.append(inner.parameter)
    name = ".".join(step for step in path if not _is_alternative(step)) or None
    message = first["msg"].removeprefix("Value error, ")
    return ApiError("invalid", message if name is None else f"{name}: {message}", name)


def _is_alternative(step: str) -> bool:
    """Return True for the parts of a path that pydantic adds to name one of several types."""
    return "[" in step or step in ("str", "int", "float", "bool")


def answer(path: str, error: ApiError, status: int | None = None) -> Response:
    """Return an error in the form of the protocol of its path."""
    form = next(form for start, form in _FORMS if path.startswith(start))
    return JSONResponse(form(error), error.status if status is None else status, dict(error.headers))

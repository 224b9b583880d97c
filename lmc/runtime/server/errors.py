"""Errors of requests, before they take the form of a protocol."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lmc.ir.errors import (
    ConstraintError,
    ContextLengthError,
    EngineClosedError,
    InputError,
    LmcError,
    RequestCancelledError,
    RequestTimeoutError,
)

Kind = Literal[
    "invalid", "unauthorized", "forbidden", "missing", "slow", "too_large", "busy", "timeout", "unavailable", "failed"
]

STATUS: dict[Kind, int] = {
    "invalid": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "missing": 404,
    "slow": 408,
    "too_large": 413,
    "busy": 429,
    "failed": 500,
    "unavailable": 503,
    "timeout": 504,
}


@dataclass(eq=False)
class ApiError(Exception):
    """A request that is not served. ``parameter`` names the one to blame, ``code`` is the protocols' word for it."""

    kind: Kind
    message: str
    parameter: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.kind]

    def __str__(self) -> str:
        return self.message


def refused(parameter: str, problem: str) -> ApiError:
    """Return the error of a parameter that has no such value here."""
    return ApiError("invalid", f"{parameter}: {problem}", parameter)


def error_of(error: Exception, parameter: str | None = None) -> ApiError:
    """Return an error of lmc as that of a request; ``parameter`` is the one it came from."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, sqlite3.Error):
        return ApiError("failed", f"the state can't be read or written: {error}")
    if not isinstance(error, LmcError):
        return ApiError("failed", f"the server failed: {type(error).__name__}")
    message = error.cause if error.remedy is None else f"{error.cause} (remedy: {error.remedy})"
    if isinstance(error, ContextLengthError):
        return ApiError("invalid", message, parameter, "context_length_exceeded")
    if isinstance(error, ConstraintError):
        return ApiError("invalid", message, parameter)
    if isinstance(error, InputError):
        return ApiError("invalid", message, parameter or error.argument)
    if isinstance(error, RequestTimeoutError):
        return ApiError("timeout", message)
    if isinstance(error, EngineClosedError | RequestCancelledError):
        return ApiError("unavailable", message, headers={"Retry-After": "5"})
    return ApiError("failed", message)

"""The form of errors of SGLang's protocol."""

from __future__ import annotations

from typing import Any

from lmc.runtime.server.errors import ApiError
from lmc.runtime.server.streams import data


def form(error: ApiError) -> dict[str, Any]:
    """Return an error as JSON data."""
    return {"error": {"message": error.message, "param": error.parameter, "code": error.status}}


def failed(error: ApiError) -> bytes:
    """Return an error as the last event of a stream."""
    return data(form(error))

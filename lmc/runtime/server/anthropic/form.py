"""The forms of Anthropic's protocol that its endpoints share: errors and usage."""

from __future__ import annotations

from typing import Any

from lmc.ir.engine.protocol import Generation
from lmc.runtime.server.errors import ApiError, Kind
from lmc.runtime.server.streams import data

_TYPES: dict[Kind, str] = {
    "invalid": "invalid_request_error",
    "missing": "not_found_error",
    "slow": "invalid_request_error",
    "too_large": "request_too_large",
    "unauthorized": "authentication_error",
    "forbidden": "permission_error",
    "busy": "rate_limit_error",
    "unavailable": "overloaded_error",
    "timeout": "timeout_error",
    "failed": "api_error",
}


def form(error: ApiError) -> dict[str, Any]:
    """Return an error as JSON data."""
    content: dict[str, Any] = {"type": _TYPES[error.kind], "message": error.message}
    if error.parameter == "thread":  # the SDK then sends the whole conversation
        content["details"] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return {"type": "error", "error": content}


def failed(error: ApiError) -> bytes:
    """Return an error as the last event of a stream."""
    return data(form(error), "error")


def usage_of(found: Generation) -> dict[str, Any]:
    """Return the usage of a message."""
    return usage(found.prompt_tokens, found.cached_tokens, found.generated_tokens)


def usage(prompt: int, cached: int, generated: int) -> dict[str, Any]:
    """Return a usage: cached tokens are in addition to ``input_tokens``."""
    return {
        "input_tokens": prompt - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": generated,
    }

"""The forms of OpenAI's protocol that its endpoints share: errors, usage, choices of a request."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from lmc.ir.engine.protocol import FinishReason, Generation, TokenLogprob
from lmc.runtime.server.errors import ApiError, Kind
from lmc.runtime.server.model import Model
from lmc.runtime.server.streams import data
from lmc.runtime.server.tokens import TokenTexts

_TYPES: dict[Kind, str] = {
    "invalid": "invalid_request_error",
    "missing": "invalid_request_error",
    "slow": "invalid_request_error",
    "too_large": "invalid_request_error",
    "unauthorized": "authentication_error",
    "forbidden": "permission_error",
    "busy": "rate_limit_error",
    "unavailable": "server_error",
    "timeout": "server_error",
    "failed": "server_error",
}

FINISH: dict[FinishReason, str] = {"stop": "stop", "eos": "stop", "length": "length"}


def head_of(model: Model, prefix: str, kind: str) -> dict[str, Any]:
    """Return the fields that an answer begins with; ``prefix`` is that of its id, ``kind`` the type of the object."""
    return {"id": f"{prefix}-{uuid.uuid4().hex}", "object": kind, "created": model.now, "model": model.name}


def form(error: ApiError) -> dict[str, Any]:
    """Return an error as JSON data."""
    return {
        "error": {
            "message": error.message,
            "type": _TYPES[error.kind],
            "param": error.parameter,
            "code": error.code,
        }
    }


def failed(error: ApiError) -> bytes:
    """Return an error as the last event of a stream."""
    return data(form(error))


def usage_of(generations: Sequence[Generation]) -> dict[str, Any]:
    """Return the usage of a request. Its prompt counts once, cached tokens are part of it."""
    prompt = max((each.prompt_tokens for each in generations), default=0)
    cached = max((each.cached_tokens for each in generations[:1]), default=0)
    generated = sum(each.generated_tokens for each in generations)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def chat_logprobs(entries: Sequence[TokenLogprob], texts: TokenTexts) -> dict[str, Any]:
    """Return log-probabilities in the form of chat completions."""

    def entry(token_id: int, logprob: float) -> dict[str, Any]:
        known = texts.bytes(token_id)
        return {
            "token": texts.text(token_id),
            "logprob": logprob,
            "bytes": None if known is None else list(known),
        }

    content = [
        {**entry(each.token_id, each.logprob), "top_logprobs": [entry(*top) for top in each.top]} for each in entries
    ]
    return {"content": content, "refusal": None}

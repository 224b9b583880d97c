"""The client of OpenAI's SDK, and what its three APIs have in common."""

from __future__ import annotations

from typing import Any

import openai

from lmc.ir.engine.protocol import Request, ScoreRequest
from lmc.ir.usage import Usage
from lmc.runtime.remote.asking import Asked, RemoteService
from lmc.runtime.remote.failures import malformed
from lmc.runtime.remote.protocols.connections import http_options

SIGNED = 1 << 63
"""Seeds are signed in the servers' own check."""
MOST_PRIORITY = 100
"""Of ``lmc serve``."""
_STOPS = ("stop_reason", "matched_stop")


def client_of(service: RemoteService) -> openai.AsyncOpenAI:
    """Return a client. It retries nothing, and has as many connections as there may be requests."""
    return openai.AsyncOpenAI(
        api_key=service.api_key,
        base_url=service.settings.base_url,
        max_retries=0,
        timeout=service.settings.timeout,
        http_client=openai.DefaultAsyncHttpxClient(**http_options(service)),
    )


async def model_of(client: openai.AsyncOpenAI, service: RemoteService) -> str:
    """Return the name of the model; that of the first one of a server where the target names none."""
    if service.model:
        return service.model
    models = await client.models.list()
    if not models.data:
        raise malformed("the server", "no models")
    return models.data[0].id


def parameters_of(asked: Asked, service: RemoteService) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of sampling that the SDK knows, and those that only servers have."""
    sampling, capabilities = asked.request.sampling, service.capabilities
    known: dict[str, Any] = {}
    temperature = sampling.temperature
    if temperature is None and capabilities.greedy:
        temperature = 0.0
    if temperature is not None and "temperature" in capabilities.parameters:
        known["temperature"] = temperature
    for name, default in (("top_p", 1.0), ("frequency_penalty", 0.0), ("presence_penalty", 0.0)):
        if getattr(sampling, name) != default:
            known[name] = getattr(sampling, name)
    if capabilities.seed:
        seed = asked.request.seed
        known["seed"] = seed - 2 * SIGNED if seed >= SIGNED else seed
    own = {
        name: getattr(sampling, name)
        for name, default in (("top_k", 0), ("min_p", 0.0), ("min_tokens", 0), ("repetition_penalty", 1.0))
        if getattr(sampling, name) != default
    }
    if sampling.stop_token_ids:
        own["stop_token_ids"] = list(sampling.stop_token_ids)
    known |= headers_of(asked.request, service)
    sign = {"rising": 1, "falling": -1}.get(capabilities.priority)
    if sign is not None and asked.request.priority:
        own["priority"] = sign * asked.request.priority
    return known, own


def headers_of(request: Request | ScoreRequest, service: RemoteService) -> dict[str, Any]:
    """Return the parameter for the headers of a request: the priority for ``lmc serve``, its row for a router."""
    headers: dict[str, str] = {}
    if service.capabilities.priority == "header" and request.priority:
        headers["X-Lmc-Priority"] = str(max(-MOST_PRIORITY, min(request.priority, MOST_PRIORITY)))
    if service.settings.session_header is not None and request.place is not None:
        headers[service.settings.session_header] = f"{service.sessions}-{request.place.run}-{request.instance}"
    return {"extra_headers": headers} if headers else {}


def stop_of(choice: Any, asked: Asked) -> str | int | None:
    """Return the stop string or token that ended a choice; None: the model ended its turn, or the server does not tell.

    vLLM and ``lmc serve`` tell it as ``stop_reason``, SGLang as ``matched_stop``, with the token where a turn ends.
    """
    if choice.finish_reason != "stop":
        return None
    sampling = asked.request.sampling
    found = next((each for name in _STOPS if (each := getattr(choice, name, None)) is not None), None)
    is_token = type(found) is int and found in sampling.stop_token_ids
    return found if is_token or (isinstance(found, str) and found in sampling.stop) else None


def usage_of(found: Any, service: RemoteService) -> Usage:
    """Return the usage of an answer: cached, written and reasoning tokens are parts of the others here."""
    if found is None:
        raise malformed(service.model, "no usage")
    prompt, output = found.prompt_tokens_details, found.completion_tokens_details
    return Usage(
        found.prompt_tokens,
        (prompt.cached_tokens or 0) if prompt is not None else 0,
        found.completion_tokens or 0,
        1,
        (getattr(prompt, "cache_write_tokens", 0) or 0) if prompt is not None else 0,
        (output.reasoning_tokens or 0) if output is not None else 0,
    )

"""Errors of the SDKs as failures of attempts. Both SDKs have the same classes by name, and the same HTTP library."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from math import isnan
from time import time
from typing import Any

from lmc.runtime.remote.asking import RemoteService
from lmc.runtime.remote.failures import AttemptError, malformed, of_status, too_slow, unreachable
from lmc.runtime.remote.limits import UNDER_WAY


@asynccontextmanager
async def translated(sdk: Any, service: RemoteService) -> AsyncGenerator[None]:
    """Raise what the SDK raises in the block as ``AttemptError``. Errors of lmc itself are raised as they are."""
    import httpx2

    try:
        yield
    except sdk.APIStatusError as error:
        after = _retry_after(error.response.headers)
        name = service.model or "the server"
        raise of_status(error.status_code, _said(error, service), name, after=after, near=service.near) from None
    except sdk.APITimeoutError:
        raise too_slow(service.model, "answer", service.settings.timeout) from None
    except sdk.APIResponseValidationError as error:
        raise malformed(service.model, f"an answer that breaks the protocol: {error}") from None
    except sdk.APIConnectionError as error:
        if isinstance(error.__cause__, AttemptError):  # of a hook of its HTTP client
            raise error.__cause__ from None
        raise unreachable(service.model or str(service.settings.base_url), str(error.__cause__ or error)) from None
    except sdk.APIError as error:  # an error event in a stream
        raise of_status(_status_of(error), _said(error, service), service.model or "the server") from None
    except httpx2.HTTPError as error:
        raise unreachable(service.model, f"{type(error).__name__}: {error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise malformed(service.model, f"an answer that is no JSON: {error}") from None
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # The SDKs check nothing: an answer of another form shows where it is read. Before one can have come, it is an
        # error of lmc itself.
        charge = UNDER_WAY.get()
        if charge is None or charge.at is None:
            raise
        raise malformed(service.model, f"an answer that breaks the protocol: {error!r:.200}") from None


def _said(error: Any, service: RemoteService) -> str:
    """Return the provider's own message, without the SDK's words around it, and without the key."""
    body = error.body
    for _ in range(2):
        if isinstance(body, Mapping):
            inner = body.get("error", body)
            body = inner.get("message", body) if isinstance(inner, Mapping) else inner
    text = body if isinstance(body, str) else error.message
    code = getattr(error, "code", None)
    if service.needs_key:
        text = text.replace(service.api_key, "…")
    return f"{text} ({code})" if code and code not in text else text


def _status_of(error: Any) -> int:
    """Return the status that the kind of an error event stands for."""
    kinds = {
        "rate_limit_error": 429,
        "overloaded_error": 529,
        "invalid_request_error": 400,
        "authentication_error": 401,
    }
    return kinds.get(str(getattr(error, "type", None) or _kind_of(error.body)), 500)


def _kind_of(body: Any) -> Any:
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner.get("type") if isinstance(inner, Mapping) else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        with suppress(ValueError, OverflowError):
            seconds = float(text) * unit
            return None if isnan(seconds) else max(seconds, 0.0)
        with suppress(ValueError, OverflowError):
            return max(parsedate_to_datetime(text).timestamp() - time(), 0.0)
    return None

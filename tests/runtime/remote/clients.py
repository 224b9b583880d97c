"""The SDKs' clients, made once: each of them loads certificates for many milliseconds."""

from contextlib import ExitStack
from functools import cache

import anthropic
import openai

_OPEN = ExitStack()
SECONDS = 60.0


@cache
def openai_sdk() -> openai.OpenAI:
    """Return OpenAI's client, whose copies share its connections."""
    return _OPEN.enter_context(
        openai.OpenAI(base_url="http://127.0.0.1:1/v1", api_key="none", max_retries=0, timeout=SECONDS)
    )


@cache
def anthropic_sdk() -> anthropic.Anthropic:
    """Return Anthropic's client, whose copies share its connections."""
    return _OPEN.enter_context(
        anthropic.Anthropic(base_url="http://127.0.0.1:1", api_key="none", max_retries=0, timeout=SECONDS)
    )


def close_sdks() -> None:
    """Close the connections of all tests."""
    _OPEN.close()
    openai_sdk.cache_clear()
    anthropic_sdk.cache_clear()

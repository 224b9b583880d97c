"""The average length of a token of a batch, from a sample of its texts."""

from collections.abc import Callable, Sequence

from lmc.backend.schedule.trace_requests import CHARACTERS

_PART = 256
"""Characters in the sample from the beginning, and in that from the middle, of a text."""
_MOST_TEXTS = 512


def characters_of_a_token(texts: Sequence[str], tokens_of: Callable[[str], int]) -> float:
    """Characters to a token on average, as ``tokens_of`` counts; ``CHARACTERS`` where there is no text."""
    characters, tokens = 0, 0.0
    for text in list(filter(None, texts))[:_MOST_TEXTS]:
        at = len(text) // 2
        part = text[:_PART] + text[max(at, _PART) : at + _PART]
        sendable = part.encode("utf-8", "replace").decode()  # what can't be encoded fails where it runs
        characters += len(text)
        tokens += tokens_of(sendable) / len(part) * len(text)
    return characters / tokens if tokens else CHARACTERS

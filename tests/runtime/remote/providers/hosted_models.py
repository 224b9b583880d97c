"""The models of the simulated providers: what their parameters may be, and how their tokens and prefixes count."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Provider = Literal["openai", "anthropic"]
_PIECES = re.compile(r" ?[^\s]{1,4}|\s")


@dataclass(frozen=True)
class HostedModel:
    """A model. ``served`` is the name in its answers: a snapshot, where ``name`` is an alias.

    ``minimum_prefix`` and ``block`` are tokens: prefixes are cached from the first on, in whole blocks.
    """

    name: str
    provider: Provider = "openai"
    served: str = ""
    reasons: bool = False
    max_output: int = 128_000
    context: int = 400_000
    prefill: bool = False
    system_messages: bool = False
    writes_cache: bool = False
    minimum_prefix: int = 1024
    block: int = 128


MODELS = (
    HostedModel("gpt-5.6", served="gpt-5.6-2026-07-16", reasons=True, writes_cache=True),
    HostedModel("gpt-5.6-luna", reasons=True, writes_cache=True),
    HostedModel("gpt-5-mini", served="gpt-5-mini-2025-08-07", reasons=True),
    HostedModel("gpt-4.1", served="gpt-4.1-2025-04-14", max_output=32_768),
    HostedModel("gpt-4.1-mini", served="gpt-4.1-mini-2025-04-14", max_output=32_768),
    HostedModel("gpt-4o", served="gpt-4o-2024-08-06", max_output=16_384, context=128_000),
    HostedModel(
        "claude-opus-4-5",
        "anthropic",
        "claude-opus-4-5-20251101",
        max_output=64_000,
        context=200_000,
        prefill=True,
    ),
    HostedModel("claude-haiku-4-5", "anthropic", "claude-haiku-4-5-20251001", max_output=64_000, prefill=True),
    HostedModel("claude-opus-4-8", "anthropic", system_messages=True),
    HostedModel("claude-sonnet-5-5", "anthropic", system_messages=True),
)


def pieces(text: str) -> list[str]:
    """Return the tokens of a text: four characters at most, and together the text."""
    return _PIECES.findall(text)


@dataclass
class PrefixCache:
    """The prefixes of one model that were computed. Lookups are by the text of whole blocks of tokens."""

    model: HostedModel
    _known: set[str] = field(default_factory=set[str])

    def cached(self, prompt: Sequence[str]) -> int:
        """Return how many tokens at the start of a prompt are cached."""
        return max((length for length in self._lengths(prompt) if "".join(prompt[:length]) in self._known), default=0)

    def store(self, prompt: Sequence[str]) -> int:
        """Cache the whole blocks of a prompt; gives the number of their tokens."""
        lengths = self._lengths(prompt)
        self._known.update("".join(prompt[:length]) for length in lengths)
        return max(lengths, default=0)

    def _lengths(self, prompt: Sequence[str]) -> range:
        return range(self.model.minimum_prefix, len(prompt) + 1, self.model.block)

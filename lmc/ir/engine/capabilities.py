"""Capabilities of targets: what programs, passes and engines ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Continuation = Literal["exact", "trimmed", "turns", "none"]
"""May a request continue an open turn of the assistant? ``trimmed``: not one that ends in white space; ``turns``: it is
closed, and a message of the user asks the model to go on."""
Structured = Literal["exact", "schema", "none"]
"""Constraints of outputs: as in lmc, by the provider's own JSON schemas, or not at all."""

Roles = Literal["any", "chat", "merged"]
"""Messages that a target takes. ``any``: those that the chat template of a server takes. ``chat``: those of system,
user and assistant, in any order. ``merged``: messages of one role behind each other become one turn, the user begins,
none is empty, and a message of the assistant at the end would be continued."""
SystemMessages = Literal["anywhere", "behind the user", "first"]
"""The places of messages of the system: beside those at the beginning, anywhere, behind a message of the user, or
none."""
Priority = Literal["none", "header", "rising", "falling"]
"""A server takes the priority of a request not at all; in ``X-Lmc-Priority``; as a number ``priority``, where
higher ones, or lower ones, go first."""

PARAMETERS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "min_tokens",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "stop_token_ids",
)
"""Sampling parameters that a target may lack. All have ``max_tokens``, and ``stop`` is honoured for those without."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a target. The defaults are those of an engine of lmc.

    Attributes:
        contexts: ``tokens`` of the model; ``messages``, whose tokens are not known; or ``text``.
        roles: the messages that it takes.
        system: the places of messages of the system.
        continuation: whether a turn of the assistant may hold a second generation, or text before the first.
        stops: the most stop strings that the target itself honours. lmc reads the stream and cuts it for others.
        blank_stops: whether a stop may be white space alone.
        max_output_tokens: the largest ``max_tokens``; None: any.
        min_output_tokens: the least that may be asked for: a request for fewer asks for so many.
        parameters: those of ``PARAMETERS`` that have an effect. Others are errors where a program sets them.
        greedy: the same prompt gives the same tokens without a temperature. Otherwise each generation is a draw.
        seed: a seed decides the draws.
        structured: how outputs are constrained.
        dialect: whose names a server has for constraints: those of vLLM and lmc, or those of SGLang.
        priority: how requests with a priority say so.
        schema_keywords: keywords of JSON schemas that mean the same at the provider, for ``schema``.
        logprobs: the most likeliest tokens whose log-probabilities are given; -1: no log-probabilities at all.
        scores: log-probabilities of given texts, which ``select`` compares.
        reasoning: reasoning counts as output, and a reply may be cut before any of its text.
        reasoning_tokens: tokens for reasoning, added to ``max_tokens`` of each request: a setting of the target.
        cache_control: prompts may mark what the provider keeps in its cache.
        batches: the provider has an endpoint for batches.
        token_counting: the provider counts the tokens of a prompt.
    """

    contexts: Literal["tokens", "messages", "text"] = "tokens"
    roles: Roles = "any"
    system: SystemMessages = "anywhere"
    continuation: Continuation = "exact"
    stops: int = 64
    blank_stops: bool = True
    max_output_tokens: int | None = None
    min_output_tokens: int = 0
    parameters: frozenset[str] = frozenset(PARAMETERS)
    greedy: bool = True
    seed: bool = True
    structured: Structured = "exact"
    dialect: Literal["vllm", "sglang"] = "vllm"
    priority: Priority = "none"
    schema_keywords: frozenset[str] = frozenset()
    logprobs: int = 100
    scores: bool = True
    reasoning: bool = False
    reasoning_tokens: int = 0
    cache_control: bool = False
    batches: bool = False
    token_counting: bool = False


OWN = Capabilities()
"""Capabilities of the toy and of local models."""

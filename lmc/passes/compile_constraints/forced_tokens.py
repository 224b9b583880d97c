"""Checks that a generation with a single possible text has a single possible sequence of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmc.grammar.sharing import Built
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.semantics.ops import forced_generation
from lmc.ir.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Unforced:
    """The reason for a model call in spite of a single text."""

    reason: str


def forced_tokens(
    op: SamplingOp, built: Built, tokenizer: Tokenizer, *, reads_logprobs: bool
) -> tuple[int, ...] | Unforced:
    """The tokens that ``op`` says whatever the model; ``built`` allows one text."""
    text = built.facts.only
    assert text is not None
    if reads_logprobs:
        return Unforced("its log-probabilities are read")
    if any(stop in text for stop in op.stop):
        return Unforced("a stop string is in it")
    token_ids = _only_sequence(built, op.max_tokens)
    if isinstance(token_ids, Unforced):
        return token_ids
    if op.min_tokens > len(token_ids):
        return Unforced(f"min_tokens is {op.min_tokens}, more than its {len(token_ids)} tokens")
    if not set(token_ids).isdisjoint(op.stop_token_ids):
        return Unforced("a stop token is in it")
    if forced_generation(op, token_ids, tokenizer).text != text:
        return Unforced("its tokens are decoded to another text")
    return token_ids


def _only_sequence(built: Built, limit: int) -> tuple[int, ...] | Unforced:
    """The tokens, at most ``limit``, if every state up to the end allows one alone, and the last one none."""
    state = built.constraint.start()
    found: list[int] = []
    while not state.complete:
        mask = state.mask()
        words = np.flatnonzero(mask)
        if state.accepting or len(words) != 1 or int(mask[words[0]]).bit_count() != 1:
            return Unforced("it can be spelled in several ways with the tokens of this vocabulary")
        if len(found) == limit:
            return Unforced(f"it has more tokens than max_tokens ({limit})")
        found.append(32 * int(words[0]) + int(mask[words[0]]).bit_length() - 1)
        state = state.advance(found[-1])
    return tuple(found)

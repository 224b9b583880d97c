"""Tokens of a request as it is sent: its prompt in the program, and what its API and its provider add.

Budgets reserve these, and estimates sum them up: there is one bound for both.
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.cost.ranges import CostRange
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.tokens.messages import GO_ON, open_text

PROVIDER_TOKENS = 1024
"""A bound for what a provider adds to a prompt: instructions of its own, and the marks of its template.

What the template adds to a message has fewer tokens than the marks and the name of the role in a context, of a byte
each.
"""
_BYTES_PER_TOKEN = 4
"""Of English text and of JSON; for what is expected."""
Count = Callable[[tuple[int, ...]], CostRange[int]]
"""Counts the tokens of a part of a context."""


def sent_prompt(
    prompt: tuple[int, ...], count: Count, capabilities: Capabilities, schema_bytes: int = 0
) -> CostRange[int]:
    """Return the tokens of a prompt as it is sent. ``schema_bytes`` are those of the schema of a constraint."""
    tokens = count(prompt)
    if capabilities.contexts == "tokens":
        return tokens
    tokens += CostRange(0, schema_bytes // _BYTES_PER_TOKEN, schema_bytes + PROVIDER_TOKENS)
    turn = open_text(prompt) if capabilities.continuation == "turns" else ()
    if turn:  # it is closed, and quoted in a message of the user
        tokens += count(turn) + CostRange(0, len(GO_ON) // _BYTES_PER_TOKEN, len(GO_ON))
    return tokens


def sent_output(max_tokens: int, capabilities: Capabilities) -> int:
    """Return the most tokens of the output that is asked for, reasoning included."""
    return max(max_tokens + capabilities.reasoning_tokens, capabilities.min_output_tokens)

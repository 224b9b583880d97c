"""The order of the lines of a batch: that of the tree of their prompts, as of the instances of any batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmc.cache.batch_order.ranks import Layout, ranks
from lmc.cache.node import Tokens
from lmc.cache.trace import TraceRequest

_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLine:
    """A line and its prompts as token ids; a line without a prompt is invalid, and fails when it runs."""

    number: int
    prompts: tuple[Tokens, ...]


def in_order(lines: Sequence[PreparedLine]) -> list[PreparedLine]:
    """Put lines whose prompts share a prefix beside each other."""
    prompts = [(instance, each) for instance, line in enumerate(lines) for each in line.prompts or (_NONE,)]
    requests = [
        TraceRequest(number, prompt, _NONE, (), 0.0, instance, prompt.size, 0, 0, None)
        for number, (instance, prompt) in enumerate(prompts)
    ]
    first: dict[int, int] = {}
    for request, rank in zip(requests, ranks(requests, Layout()), strict=True):
        first[request.instance] = min(rank, first.get(request.instance, rank))
    return [lines[instance] for instance in sorted(first, key=lambda instance: first[instance])]

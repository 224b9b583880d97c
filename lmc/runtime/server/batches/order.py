"""The order of the lines of a batch: that of the tree of their prompts, as of the instances of any batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmc.cache.batch_order.ranks import Layout, ranks
from lmc.cache.node import Tokens
from lmc.cache.simulation.layouts import choose_layout
from lmc.cache.simulation.report import Report
from lmc.cache.simulation.simulator import coarse_trial
from lmc.cache.trace import TraceRequest, likely_length


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLine:
    """A line, its prompts as token ids, the limit of an answer, and the number of answers to each prompt.

    One without a prompt is invalid, and fails when it runs.
    """

    number: int
    prompts: tuple[Tokens, ...] = ()
    most_tokens: int = 1
    choices: int = 1


def in_order(lines: Sequence[PreparedLine], kv_tokens: int | None, at_once: int) -> list[PreparedLine]:
    """Put lines whose prompts share a prefix beside each other.

    Where the pool is known, lines that read much and lines that write much are mixed if a simulation says that this is
    faster, as in a batch of a program. Of a line with several prompts the first decides.
    """
    requests = [_request(number, line) for number, line in enumerate(lines)]

    def trial(some: Sequence[TraceRequest], layout: Layout, scale: int) -> Report:
        return coarse_trial(some, kv_tokens=kv_tokens or 1, batch=at_once, layout=layout, scale=scale)

    is_tried = kv_tokens is not None and len(lines) > 1
    layout = choose_layout(requests, trial, batch=at_once) if is_tried else Layout()
    places = ranks(requests, layout)
    return [lines[number] for number in sorted(range(len(lines)), key=places.__getitem__)]


def _request(number: int, line: PreparedLine) -> TraceRequest:
    prompt = line.prompts[0] if line.prompts else np.zeros(1, np.int32)
    answer = np.broadcast_to(np.int32(-1), likely_length(line.most_tokens))
    return TraceRequest(number, prompt, answer, (), 0.0, number, prompt.size, answer.size, 0, None)

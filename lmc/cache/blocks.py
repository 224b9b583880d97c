"""How many instances are served kind by kind: what is better depends on the pool, so it is tried out beforehand."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lmc.cache.node import Tokens
from lmc.cache.ranks import instance_order
from lmc.cache.trace import TraceRequest

SAMPLE = 48
"""Instances that are tried; of larger batches those in the middle of the order, which share as much as any."""
_WORTH = 0.995
"""Larger blocks retain more: one has to be so much faster than the best smaller one."""


def choose_block(
    requests: Sequence[TraceRequest], seconds: Callable[[Sequence[TraceRequest], int], float], *, batch: int
) -> int:
    """The size of blocks (see `ranks`) with which a batch is probably served fastest.

    `seconds` says how long requests take, in blocks of a size. It gets requests as they are foreseen: what is known of
    them, and as much more as is expected.
    """
    members: dict[int, list[int]] = {}
    for position, request in enumerate(requests):
        members.setdefault(request.instance, []).append(position)
    if len(members) == 1 or max(map(len, members.values())) == 1:
        return 1
    order = instance_order(requests, members)
    start = max((len(order) - SAMPLE) // 2, 0)
    positions = sorted(position for instance in order[start : start + SAMPLE] for position in members[instance])
    sample = foreseen([requests[position] for position in positions])
    whole = len(order) <= SAMPLE
    sizes = [size for size in (batch, 2 * batch, len(order) if whole else 0) if 1 < size <= min(len(order), SAMPLE)]
    best, least = 1, seconds(sample, 1)
    for size in sorted(set(sizes)):
        found = seconds(sample, size)
        if found < _WORTH * least:
            best, least = size, found
    return best


def foreseen(requests: Sequence[TraceRequest]) -> list[TraceRequest]:
    """Requests as they can be known before anything is answered, all of them there from the start.

    Prompts have the length they have, but behind what is known of them tokens that occur nowhere else; one that goes on
    from another and its answer goes on from what is foreseen of those. Answers are as long as expected.
    """
    unknown = _Unknown()
    given = {request.id: request for request in requests}
    made: dict[str | int, TraceRequest] = {}
    for request in requests:
        after = tuple(each for each in request.after if each in made)
        prefix, covered = request.tokens[: request.known], request.known
        for each in after:
            whole = np.concatenate([given[each].tokens, given[each].generated])
            if whole.size > covered and np.array_equal(request.tokens[: whole.size], whole):
                prefix = np.concatenate([made[each].tokens, made[each].generated])
                covered = whole.size
        made[request.id] = replace(
            request,
            tokens=np.concatenate([prefix, unknown.tokens(request.tokens.size - covered)]),
            generated=unknown.tokens(request.expected if request.generated.size else 0),
            after=after,
            arrival=0.0,
        )
    return list(made.values())


class _Unknown:
    """Tokens that occur nowhere else; negative ones are those of answers in the trace."""

    def __init__(self) -> None:
        self._next = -(2**30)

    def tokens(self, count: int) -> Tokens:
        self._next += count
        return np.arange(self._next - count, self._next, dtype=np.int32)

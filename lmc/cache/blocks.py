"""How many instances are served kind by kind: what is better depends on the pool, so it is tried out beforehand."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lmc.cache.node import Tokens
from lmc.cache.ranks import instance_order
from lmc.cache.report import Report
from lmc.cache.trace import TraceRequest

SAMPLE = 48
"""Instances that are tried at most; of larger batches those in the middle of the order, which share as much as any."""
_ROWS = 10_000
"""Rows of answers that a trial computes at most: where there are more, one stands for several tokens."""
_REUSE = 0.99
"""Sizes that find so much of what the best one finds in the cache are looked at for their time."""
_WORTH = 0.97
"""Larger blocks retain more, and lengths are guessed: one has to be so much faster than the best smaller one."""


Trial = Callable[[Sequence[TraceRequest], int, int], Report]
"""Serves requests in blocks of a size, where one token stands for so many."""


def choose_block(requests: Sequence[TraceRequest], trial: Trial, *, batch: int) -> int:
    """The size of blocks (see `ranks`) with which a batch probably finds most in the cache, and of those is fastest.

    `trial` gets requests as they are foreseen: what is known of them, and as much more as is expected.
    """
    members: dict[int, list[int]] = {}
    for position, request in enumerate(requests):
        members.setdefault(request.instance, []).append(position)
    if len(members) == 1 or max(map(len, members.values())) == 1:
        return 1
    order = instance_order(requests, members)
    tried = min(len(order), SAMPLE)
    start = (len(order) - tried) // 2
    positions = sorted(position for instance in order[start : start + tried] for position in members[instance])
    sample = foreseen([requests[position] for position in positions])
    scale = max(1, -(-sum(request.generated.size for request in sample) // _ROWS))
    sample = [_coarse(request, scale) for request in sample]
    sizes = [size for size in (batch, 2 * batch, tried) if 1 < size <= tried]
    reports = {size: trial(sample, size, scale) for size in (1, *sorted(set(sizes)))}
    most = max(report.hit_tokens for report in reports.values())
    good = [size for size, report in reports.items() if report.hit_tokens >= _REUSE * most]
    best = good[0]
    for size in good[1:]:
        if reports[size].predicted_seconds < _WORTH * reports[best].predicted_seconds:
            best = size
    return best


def _coarse(request: TraceRequest, scale: int) -> TraceRequest:
    """A request with one token for so many; what is shared stays so."""
    whole = np.concatenate([request.tokens, request.generated])[::scale]
    length = -(-request.tokens.size // scale)
    return replace(
        request,
        tokens=whole[:length],
        generated=whole[length:],
        known=-(-request.known // scale),
        expected=-(-request.expected // scale),
    )


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

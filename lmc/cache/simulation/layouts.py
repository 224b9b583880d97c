"""Layout of a batch, chosen by simulation: the best one depends on the pool and on costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmc.cache.batch_order.mixing import mixed
from lmc.cache.batch_order.ranks import InstanceOrder, Layout, Members, instance_order, members_of, work_of
from lmc.cache.node import Tokens
from lmc.cache.simulation.report import Report
from lmc.cache.trace import TraceRequest

SAMPLE = 48
"""Instances that are tried at most; of larger batches those in the middle of the order, which share as much as any."""
TRIED_TOKENS = 2**22
"""Tokens of prompts and answers that a trial serves at most; fewer instances are tried where they have more."""
_ROWS = 10_000
"""Rows of answers that a trial computes at most: where there are more, one stands for several tokens."""
_REUSE = 0.99
"""Layouts that find so much of what the best one finds in the cache are looked at for their time."""
_WORTH = 0.97
"""Larger blocks retain more, and lengths are guessed: one has to be so much faster than the best smaller one."""
_WORTH_OF_ALL = 0.99
"""The same where all instances are tried, the end of the batch too, where slots are empty."""


Trial = Callable[[Sequence[TraceRequest], Layout, int], Report]
"""Serves requests in a layout, where one token stands for so many."""


def choose_layout(
    requests: Sequence[TraceRequest],
    trial: Trial,
    *,
    batch: int,
    all_fit: bool = False,
    longest: Sequence[TraceRequest] | None = None,
) -> Layout:
    """The layout with which a batch probably finds most in the cache, and of those that which is fastest.

    `trial` gets requests as they are foreseen: what is known of them, and as much more as is expected. Where the pool
    holds all of them (`all_fit`), the size of blocks is not tried out (`roomy_block`). Where lengths of answers are
    only guessed, `longest` are the same requests with answers as long as they may be: a size of blocks then counts with
    the share of what can be found that it finds in the worse of the two cases.
    """
    members = members_of(requests)
    order = instance_order(requests, members)
    places = mixed(work_of(requests, members, order))
    by_turns = order if places is None else [order[place] for place in places]
    sizes_of = [sum(_size(requests[position]) for position in members[instance]) for instance in by_turns]
    by_turns = by_turns[affordable(sizes_of)]
    tried = len(by_turns)
    if max(map(len, members.values())) == 1:
        sizes = [1]
    elif all_fit:
        sizes = [roomy_block(len(order), batch)]
    else:
        sizes = sorted({1, *(size for size in (batch, 2 * batch, tried) if size <= tried)})
    if places is None and len(sizes) == 1:
        return Layout(block=sizes[0])
    sample, scale = _sample(requests, members, by_turns)
    reports = {size: trial(sample, Layout(block=size), scale) for size in sizes}
    found = _found(reports)
    if longest is not None and len(sizes) > 1:
        worst, coarser = _sample(longest, members, by_turns)
        also = _found({size: trial(worst, Layout(block=size), coarser) for size in sizes})
        found = {size: min(share, also[size]) for size, share in found.items()}
    good = [size for size, share in found.items() if share >= _REUSE * max(found.values())]
    best = good[0]
    for size in good[1:]:
        worth = _WORTH_OF_ALL if tried == len(order) else _WORTH
        if reports[size].predicted_seconds < worth * reports[best].predicted_seconds:
            best = size
    if places is None:
        return Layout(block=best)
    other = Layout(InstanceOrder.MIXED, best)
    report = trial(sample, other, scale)
    is_faster = report.predicted_seconds < reports[best].predicted_seconds
    return other if is_faster and report.hit_tokens >= _REUSE * reports[best].hit_tokens else Layout(block=best)


def _found(reports: Mapping[int, Report]) -> dict[int, float]:
    """By size of blocks, the share of what the best size finds that each one finds."""
    most = max(report.hit_tokens for report in reports.values())
    return {size: report.hit_tokens / most if most else 1.0 for size, report in reports.items()}


def roomy_block(instances: int, batch: int) -> int:
    """Return the number of instances in a block where the pool holds all that they retain.

    The order changes no hit then. More than run at once, so that there is always one whose next request can go: else
    slots are empty at the end of each chain. Not all, so that the first results come before the last instance begins.
    """
    return min(instances, 2 * batch)


def middle(count: int) -> slice:
    """The places of those that are tried, of so many."""
    start = max((count - SAMPLE) // 2, 0)
    return slice(start, start + SAMPLE)


def affordable(sizes: Sequence[int]) -> slice:
    """The places of those that are tried, of instances with so many tokens each: at least two, where there are two."""
    part = middle(len(sizes))
    first, end = part.start, min(part.stop, len(sizes))
    total = sum(sizes[first:end])
    while total > TRIED_TOKENS and end - first > 2:
        if (end - first) % 2:
            total -= sizes[first]
            first += 1
        else:
            end -= 1
            total -= sizes[end]
    return slice(first, end)


def _size(request: TraceRequest) -> int:
    return request.tokens.size + request.generated.size


def _sample(requests: Sequence[TraceRequest], members: Members, tried: Sequence[int]) -> tuple[list[TraceRequest], int]:
    """The requests of some instances, as they are foreseen, and for how many tokens one stands."""
    positions = sorted(position for instance in tried for position in members[instance])
    sample = foreseen([requests[position] for position in positions])
    scale = max(1, -(-sum(request.generated.size for request in sample) // _ROWS))
    return [_coarse(request, scale) for request in sample], scale


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
    from another and its answer goes on from what is foreseen of those. Answers are as long as expected on average, but
    differ by up to half of that, evenly: with equal lengths all instances would end at once, which they never do.
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
            generated=unknown.tokens(_spread(request.expected, len(made)) if request.generated.size else 0),
            after=after,
            arrival=0.0,
        )
    return list(made.values())


def _spread(expected: int, number: int) -> int:
    """Lengths around the expected one: multiples of the golden ratio are spread evenly (Weyl)."""
    return max(round(expected * (0.5 + number * 0.6180339887 % 1)), 1)


class _Unknown:
    """Tokens that occur nowhere else; negative ones are those of answers in the trace."""

    def __init__(self) -> None:
        self._next = -(2**30)

    def tokens(self, count: int) -> Tokens:
        self._next += count
        return np.arange(self._next - count, self._next, dtype=np.int32)

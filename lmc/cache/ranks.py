"""The order of a batch: depth-first over the forest of its prompts, in blocks of instances.

Over a batch known in advance, depth-first order of the tree of prompts is optimal where the cache holds the longest
request (SGLang, arXiv 2312.07104, Theorem 3.1). So instances are sorted by what is known of their prompts, and the
requests of one follow each other depth-first. But what is known does not say all: requests of one kind may share a
prefix across instances that the instance's first prompt does not begin with (the system prompt of its second agent).
Therefore instances come in blocks: within a block first all requests of the first kind, then all of the second. A block
of one is instance by instance; it retains the least between requests of one instance. A block of all shares most.

Where instances that read much and instances that write much would come one after the other, they may be mixed
(`mixing.py`).
"""

from bisect import bisect, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lmc.cache.mixing import Work, mixed
from lmc.cache.node import Tokens, common_prefix_length
from lmc.cache.trace import TraceRequest


class InstanceOrder(StrEnum):
    """By the tree of prompts, the same with reading and writing mixed, or as instances come."""

    TREE = "tree"
    MIXED = "mixed"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Layout:
    """How the instances of a batch are put in order, and how many of them make up a block."""

    order: InstanceOrder = InstanceOrder.TREE
    block: int = 1


Members = Mapping[int, Sequence[int]]
"""The positions of each instance's requests."""


def ranks(requests: Sequence[TraceRequest], layout: Layout) -> list[int]:
    """The place of each request in a layout. Requests of different instances may have the same.

    Only what is known before anything is answered decides: the first `known` tokens of prompts, who waits for whom, and
    how long answers are expected to be.
    """
    members = members_of(requests)
    stages = {instance: depth_first(requests, positions) for instance, positions in members.items()}
    longest = max(map(len, stages.values()), default=0)
    found = [0] * len(requests)
    for place, instance in enumerate(instance_order(requests, members, layout.order)):
        for stage, position in enumerate(stages[instance]):
            found[position] = rank_of(place, stage, stages=longest, block=layout.block)
    return found


def members_of(requests: Sequence[TraceRequest]) -> dict[int, list[int]]:
    """The positions of the requests of each instance."""
    members: dict[int, list[int]] = {}
    for position, request in enumerate(requests):
        members.setdefault(request.instance, []).append(position)
    return members


def rank_of(place: int, stage: int, *, stages: int, block: int) -> int:
    """The rank of a request: that of the instance at `place` of the order, at one of its `stages`, 0 the first."""
    return place // block * block * stages + stage * block + place % block


def instance_order(
    requests: Sequence[TraceRequest], members: Members, order: InstanceOrder = InstanceOrder.TREE
) -> list[int]:
    """Instances in an order.

    That of the tree sorts them by the known beginnings of their prompts: those that share more stand closer together.
    """
    if order is InstanceOrder.GIVEN:
        return list(members)
    keys = {
        instance: b"".join(_known_bytes(requests[position]) for position in positions)
        for instance, positions in members.items()
    }
    found = sorted(members, key=lambda instance: (keys[instance], members[instance][0]))
    places = None if order is InstanceOrder.TREE else mixed(work_of(requests, members, found))
    return found if places is None else [found[place] for place in places]


def work_of(requests: Sequence[TraceRequest], members: Members, order: Sequence[int]) -> list[Work]:
    """What instances add to those before them in an order, of what is known of their prompts."""
    found: list[Work] = []
    before: Tokens | None = None
    for instance in order:
        asked = [requests[position] for position in members[instance]]
        first = asked[0].tokens[: asked[0].known]
        shared = 0 if before is None else common_prefix_length(before, first)
        last, prefill = first, first.size - shared
        for request in asked[1:]:
            prefill += request.known - _shared(last, request)
            last = request.tokens[: request.known]
        found.append(Work(prefill, sum(request.expected for request in asked), first.size, shared))
        before = first
    return found


def depth_first(requests: Sequence[TraceRequest], positions: Sequence[int]) -> list[int]:
    """The requests of one instance, each after those it waits for: next is what shares most with the one before.

    That is one of the two that stand beside it in the order of their known tokens; so time is n log n.
    """
    keys = sorted((_known_bytes(requests[position]), position) for position in positions)
    inside = {requests[position].id: position for position in positions}
    missing = {position: len(inside.keys() & set(requests[position].after)) for position in positions}
    followers: dict[int, list[int]] = {}
    for position in positions:
        for each in inside.keys() & set(requests[position].after):
            followers.setdefault(inside[each], []).append(position)
    ready = [key for key in keys if not missing[key[1]]]
    order: list[int] = []
    at = min(range(len(ready)), key=lambda place: ready[place][1], default=0)
    while ready:
        _, chosen = ready.pop(at)
        order.append(chosen)
        for follower in followers.get(chosen, ()):
            missing[follower] -= 1
            if not missing[follower]:
                insort(ready, (_known_bytes(requests[follower]), follower))
        last = requests[chosen].tokens
        at = bisect(ready, (_bytes(last), -1))
        beside = [place for place in (at - 1, at) if 0 <= place < len(ready)]
        at = max(beside, key=lambda place, last=last: (_shared(last, requests[ready[place][1]]), place), default=0)
    return order


def _known_bytes(request: TraceRequest) -> bytes:
    return _bytes(request.tokens[: request.known])


def _bytes(tokens: Tokens) -> bytes:
    """Tokens in an order of bytes that is the order of their numbers."""
    return tokens.astype(">u4").tobytes()


def _shared(last: Tokens, request: TraceRequest) -> int:
    return common_prefix_length(last, request.tokens[: request.known])

"""The order of a batch: depth-first over the forest of its prompts, in blocks of instances.

Over a batch known in advance, depth-first order of the tree of prompts is optimal where the cache holds the longest
request (SGLang, arXiv 2312.07104, Theorem 3.1). So instances are sorted by what is known of their prompts, and the
requests of one follow each other depth-first. But what is known does not say all: requests of one kind may share a
prefix across instances that the instance's first prompt does not begin with (the system prompt of its second agent).
Therefore instances come in blocks: within a block first all requests of the first kind, then all of the second. A block
of one is instance by instance; it retains the least between requests of one instance. A block of all shares most.
"""

from bisect import bisect, insort
from collections.abc import Sequence

from lmc.cache.node import Tokens, common_prefix_length
from lmc.cache.trace import TraceRequest


def ranks(requests: Sequence[TraceRequest], block: int) -> list[int]:
    """The place of each request, in blocks of so many instances. Requests of different instances may have the same.

    Only what is known before anything is answered decides: the first `known` tokens of prompts, and who waits for whom.
    """
    members: dict[int, list[int]] = {}
    for position, request in enumerate(requests):
        members.setdefault(request.instance, []).append(position)
    stages = {instance: depth_first(requests, positions) for instance, positions in members.items()}
    longest = max(map(len, stages.values()), default=0)
    found = [0] * len(requests)
    for place, instance in enumerate(instance_order(requests, members)):
        for stage, position in enumerate(stages[instance]):
            found[position] = rank_of(place, stage, stages=longest, block=block)
    return found


def rank_of(place: int, stage: int, *, stages: int, block: int) -> int:
    """The rank of a request: that of the instance at `place` of the order, at one of its `stages`, 0 the first."""
    return place // block * block * stages + stage * block + place % block


def instance_order(requests: Sequence[TraceRequest], members: dict[int, list[int]]) -> list[int]:
    """Instances sorted by the known beginnings of their prompts, so that those that share more stand closer together.

    `members` are the positions of each instance's requests.
    """
    keys = {
        instance: b"".join(_known_bytes(requests[position]) for position in positions)
        for instance, positions in members.items()
    }
    return sorted(members, key=lambda instance: (keys[instance], members[instance][0]))


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

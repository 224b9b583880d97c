"""The order of a batch: depth-first over the forest of its prompts, in blocks of instances.

Over a batch known in advance, depth-first order of the tree of prompts is optimal where the cache holds the longest
request (SGLang, arXiv 2312.07104, Theorem 3.1). So instances are sorted by what is known of their prompts, and the
requests of one follow each other depth-first. But what is known does not say all: requests of one kind may share a
prefix across instances that the instance's first prompt does not begin with (the system prompt of its second agent).
Therefore instances come in blocks: within a block first all requests of the first kind, then all of the second. A block
of one is instance by instance; it retains the least between requests of one instance. A block of all shares most.
"""

from collections.abc import Iterable, Sequence

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
    keys = {instance: b"".join(_known_bytes(requests, positions)) for instance, positions in members.items()}
    return sorted(members, key=lambda instance: (keys[instance], members[instance][0]))


def depth_first(requests: Sequence[TraceRequest], positions: Sequence[int]) -> list[int]:
    """The requests of one instance, each after those it waits for: next is what shares most with the one before."""
    inside = {requests[position].id for position in positions}
    waiting = {position: inside.intersection(requests[position].after) for position in positions}
    order: list[int] = []
    last: Tokens | None = None
    while waiting:
        ready = [position for position, missing in waiting.items() if not missing]
        chosen = ready[0] if last is None else max(ready, key=lambda at, last=last: (_shared(last, requests[at]), -at))
        del waiting[chosen]
        order.append(chosen)
        last = requests[chosen].tokens
        for missing in waiting.values():
            missing.discard(requests[chosen].id)
    return order


def _known_bytes(requests: Sequence[TraceRequest], positions: Iterable[int]) -> Iterable[bytes]:
    """Known tokens in an order of bytes that is the order of their numbers."""
    for position in positions:
        request = requests[position]
        yield request.tokens[: request.known].astype(">u4").tobytes()


def _shared(last: Tokens, request: TraceRequest) -> int:
    return common_prefix_length(last, request.tokens[: request.known])

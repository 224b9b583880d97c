"""The order of a batch: depth-first over the forest of its prompts, in blocks of instances.

Over a batch known in advance, depth-first order of the tree of prompts is optimal where the cache holds the longest
request (SGLang, arXiv 2312.07104, Theorem 3.1). So instances are sorted by what is known of their prompts, first of the
request by which they share most, and the requests of one follow each other depth-first. But what is known does not say
all: requests of one kind may share a prefix across instances that the instance's first prompt does not begin with (the
system prompt of its second agent). Therefore instances come in blocks: within a block first all requests of the first
kind, then all of the second. A block of one is instance by instance; it retains the least between requests of one
instance. A block of all shares most.

Where instances that read much and instances that write much would come one after the other, they may be mixed
(`mixing.py`).
"""

from bisect import bisect, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, zip_longest
from typing import TypeVar

import numpy as np

from lmc.cache.batch_order.mixing import InstanceWork, mixed
from lmc.cache.node import Tokens, common_prefix_length
from lmc.cache.trace import TraceRequest


class InstanceOrder(StrEnum):
    """By the tree of prompts, the same with reading and writing mixed, or as instances come."""

    TREE = "tree"
    MIXED = "mixed"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of a batch's instances, and the number of them in a block."""

    order: InstanceOrder = InstanceOrder.TREE
    block: int = 1


Key = TypeVar("Key", bytes, tuple[str, ...])
"""The known part of a prompt, in a form that sorts like its text."""

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

    That of the tree sorts them by the known beginnings of their prompts, first by those of the request by which
    instances share most (`most_shared_first`).
    """
    if order is InstanceOrder.GIVEN or len(members) < 2:
        return list(members)
    keys = {instance: [_known_bytes(requests[each]) for each in positions] for instance, positions in members.items()}
    columns = _columns(keys.values())
    places_of = {number: place for place, number in enumerate(most_shared_first(columns, _shared_bytes))}
    for row in keys.values():
        row[:] = [row[number] for number in sorted(range(len(row)), key=places_of.__getitem__)]
    found = sorted(members, key=lambda instance: (keys[instance], members[instance][0]))
    places = None if order is InstanceOrder.TREE else mixed(work_of(requests, members, found))
    return found if places is None else [found[place] for place in places]


def most_shared_first(columns: Sequence[Sequence[Key]], shared: Callable[[Key, Key], int]) -> list[int]:
    """Numbers of columns, those first by which a batch is best sorted: where neighbours then share most.

    A column holds what is known of one request of each instance, `shared` says how much two of these share from their
    beginnings. What all of them share does not count. Equal columns keep their order, so it is that of the program
    where nothing speaks against it. Time is that of sorting each column.
    """
    weights: list[int] = []
    for column in columns:
        lengths = [shared(left, right) for left, right in pairwise(sorted(column))]
        weights.append(sum(lengths) - len(lengths) * min(lengths, default=0))
    return sorted(range(len(columns)), key=weights.__getitem__, reverse=True)


def work_of(requests: Sequence[TraceRequest], members: Members, order: Sequence[int]) -> list[InstanceWork]:
    """Return the work of instances beyond those before them in an order, by the known parts of their prompts."""
    known = [[requests[each].tokens[: requests[each].known] for each in members[instance]] for instance in order]
    same = [
        [common_prefix_length(left, right) for left, right in zip(before, row, strict=False)]
        for before, row in pairwise(known)
    ]
    common = [min(column) for column in zip_longest(*same, fillvalue=0)]
    found: list[InstanceWork] = []
    for instance, row, shared in zip(order, known, (common, *same), strict=True):
        prefill = 0
        for number, tokens in enumerate(row):
            inside = common_prefix_length(row[number - 1], tokens) if number else 0
            prefill += tokens.size - max(shared[number] if number < len(shared) else 0, inside)
        decode = sum(requests[each].expected for each in members[instance])
        found.append(InstanceWork(prefill, decode, sum(tokens.size for tokens in row), sum(shared)))
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
        last = requests[chosen].tokens[: requests[chosen].known]
        at = bisect(ready, (_bytes(last), -1))
        beside = [place for place in (at - 1, at) if 0 <= place < len(ready)]
        at = max(beside, key=lambda place, last=last: (_shared(last, requests[ready[place][1]]), place), default=0)
    return order


def _columns(rows: Iterable[Sequence[bytes]]) -> list[list[bytes]]:
    """Transpose rows of different lengths."""
    columns: list[list[bytes]] = []
    for row in rows:
        columns += ([] for _ in range(len(row) - len(columns)))
        for column, each in zip(columns, row, strict=False):
            column.append(each)
    return columns


def _shared_bytes(left: bytes, right: bytes) -> int:
    return common_prefix_length(np.frombuffer(left, ">u4"), np.frombuffer(right, ">u4"))


def _known_bytes(request: TraceRequest) -> bytes:
    return _bytes(request.tokens[: request.known])


def _bytes(tokens: Tokens) -> bytes:
    """Tokens in an order of bytes that is the order of their numbers."""
    return tokens.astype(">u4").tobytes()


def _shared(last: Tokens, request: TraceRequest) -> int:
    return common_prefix_length(last, request.tokens[: request.known])

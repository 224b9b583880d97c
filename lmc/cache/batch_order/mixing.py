"""Instances that mostly read beside instances that mostly write.

A step decodes one token of each running request and reads the model's weights once for all of them, so prompt tokens
that are computed in the same step cost little more than their own arithmetic. Where the order of the tree of prompts
puts all long documents side by side, steps are full of prompts first and nearly empty later. BlendServe
(arXiv 2411.16102) merges the two ends of a tree that is sorted by density; here the two kinds keep the order of the
tree, so what neighbours share is still shared. What is written at length has a lead: were it last, slots would be empty
at the end, while short answers fill them.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

LOPSIDED = 0.1
"""The tokens of prompts that may be computed out of step with answers, as a share of all tokens."""


LEAD = 2
"""Instances that write much may be ahead by one part in so many of what they write more than others."""


class InstanceWork(NamedTuple):
    """The work of an instance beyond those before it in tree order; for the first, beyond the part common to all.

    `prefill`: prompt tokens shared with none of them; `decode`: expected generated tokens. `length`: known prompt
    tokens; `shared`: how many of them equal the previous instance's.
    """

    prefill: int
    decode: int
    length: int
    shared: int


def mixed(work: Sequence[InstanceWork]) -> list[int] | None:
    """The places of instances in an order in which prompts and answers advance evenly; None where they do anyway.

    An instance stays with the one before where it shares most of its prompt with that, beside what all share. Groups
    with more to read than on average, and those with less, keep their order; at each place comes one of those that read
    if the others have their lead. Time is linear.
    """
    if len(work) < 2:
        return None
    common = min(each.shared for each in work)
    groups: list[list[int]] = []
    for place, each in enumerate(work):
        if place and 2 * (each.shared - common) > each.length - common:
            groups[-1].append(place)
        else:
            groups.append([place])
    prefill, decode = sum(each.prefill for each in work), sum(each.decode for each in work)
    # Positive where a group reads more than its share: exact, as both sides are multiplied with both sums.
    excess = [sum(work[place].prefill * decode - work[place].decode * prefill for place in group) for group in groups]
    ahead = furthest = 0
    for each in excess:
        ahead += each
        furthest = max(furthest, abs(ahead))
    if furthest <= LOPSIDED * (prefill + decode) * decode:
        return None
    reading = deque(number for number, each in enumerate(excess) if each > 0)
    writing = deque(number for number, each in enumerate(excess) if each <= 0)
    order: list[int] = []
    ahead = sum(excess[number] for number in reading) // LEAD
    while reading or writing:
        number = (reading if reading and (ahead <= 0 or not writing) else writing).popleft()
        ahead += excess[number]
        order += groups[number]
    return order

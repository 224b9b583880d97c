"""The order of a batch."""

from typing import Any

import pytest

from lmc.cache.batch_order.ranks import InstanceOrder, Layout, depth_first, instance_order, members_of, rank_of, ranks
from lmc.cache.trace import TraceRequest, read_trace


def trace(*rows: dict[str, Any]) -> list[TraceRequest]:
    return read_trace((None, {"id": number, "output": 1, **row}) for number, row in enumerate(rows))


def test_instances_that_share_a_document_stand_side_by_side() -> None:
    requests = trace(*({"tokens": [document, 7, question]} for question in range(3) for document in (5, 4)))
    assert instance_order(requests, members_of(requests)) == [1, 3, 5, 0, 2, 4]
    assert ranks(requests, Layout()) == [3, 0, 4, 1, 5, 2]
    assert ranks(requests, Layout(InstanceOrder.GIVEN)) == [0, 1, 2, 3, 4, 5]


def test_instances_stand_side_by_side_by_the_request_that_shares_most() -> None:
    """Each first asks something of its own; then all read one of two documents."""
    rows: list[dict[str, Any]] = []
    for instance in range(4):
        rows.append({"tokens": [1, 50 - instance], "instance": instance})
        document = [2, 7 + instance % 2] * 9
        rows.append({"tokens": [*document, instance], "instance": instance, "known": 18, "after": [2 * instance]})
    requests = trace(*rows)
    assert instance_order(requests, members_of(requests)) == [2, 0, 3, 1]


def test_what_all_instances_share_does_not_decide() -> None:
    """The system prompt of the second request is long, but the same for all."""
    rows: list[dict[str, Any]] = []
    for instance in range(4):
        rows.append({"tokens": [1, instance % 2, instance % 2, instance], "instance": instance})
        rows.append({"tokens": [2] * 50 + [9 - instance], "instance": instance})
    requests = trace(*rows)
    assert instance_order(requests, members_of(requests)) == [0, 2, 1, 3]


def test_an_instance_goes_down_a_branch_before_it_begins_the_next() -> None:
    requests = trace(
        {"tokens": [1, 2]},
        {"tokens": [1, 3]},
        {"tokens": [1, 2, 9, 4], "after": [0], "known": 2},
        {"tokens": [1, 3, 9, 4], "after": [1], "known": 2},
    )
    assert depth_first(requests, range(4)) == [0, 2, 1, 3]


def test_a_request_stands_behind_all_that_it_waits_for() -> None:
    requests = trace(
        {"tokens": [1, 2]}, {"tokens": [8]}, {"tokens": [1, 2, 3], "after": [0, 1], "known": 2}, {"tokens": [8, 9]}
    )
    assert depth_first(requests, range(4)) == [0, 1, 3, 2]


def test_what_is_unknown_of_prompts_plays_no_part() -> None:
    """What is behind the two known tokens of the first looks like the third, or like the second."""
    orders = [
        depth_first(
            trace({"tokens": [1, 2, *tail], "known": 2}, {"tokens": [1, 2, 5, 5]}, {"tokens": [1, 2, 9, 9]}), range(3)
        )
        for tail in ([9, 9], [5, 5], [])
    ]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize(
    ("block", "expected"),
    [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 1, 3, 4, 6]), (3, [0, 3, 1, 4, 2, 5])],
)
def test_blocks_bring_requests_of_one_kind_together(block: int, expected: list[int]) -> None:
    """Two agents with prompts of their own, three instances."""
    rows: list[dict[str, Any]] = []
    for instance in range(3):
        rows.append({"tokens": [1, 1, instance], "instance": instance})
        rows.append({"tokens": [2, 2, instance], "instance": instance, "after": [2 * instance], "known": 2})
    assert ranks(trace(*rows), Layout(block=block)) == expected


def test_ranks_rise_from_block_to_block() -> None:
    places = [[rank_of(place, stage, stages=3, block=4) for stage in range(3)] for place in range(12)]
    assert all(sorted(each) == each for each in places)
    assert max(places[3]) < min(map(min, places[4:]))
    assert len({rank for each in places for rank in each}) == 36


def test_reading_and_writing_take_turns() -> None:
    """Two long documents with three questions each, and six short texts."""
    reading = [{"tokens": [5, document] + [document] * 40 + [question]} for document in (3, 4) for question in range(3)]
    writing = [{"tokens": [6, number], "output": 30} for number in range(6)]
    requests = trace(*reading, *writing)
    members = members_of(requests)
    assert instance_order(requests, members) == [*range(12)]
    assert instance_order(requests, members, InstanceOrder.MIXED) == [6, 7, 8, 9, 0, 1, 2, 10, 11, 3, 4, 5]

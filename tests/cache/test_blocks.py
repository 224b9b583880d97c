"""How many instances are served kind by kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lmc.cache.blocks import choose_block, foreseen
from lmc.cache.report import Report
from lmc.cache.simulator import simulate
from lmc.cache.trace import TraceRequest, read_trace


def agents(instances: int, *, output: int = 4, stays: bool = False) -> list[TraceRequest]:
    """Two agents with system prompts of 40 tokens; the second hears what the first said, or goes on from it."""
    rows: list[dict[str, Any]] = []
    for instance in range(instances):
        said = [1000 + instance * 10 + number for number in range(output)]
        first = [1] * 40 + [100 + instance] * 30
        second = [*first, *said, 7] if stays else [2] * 40 + said
        known = len(first) if stays else 40
        rows.append({"id": 2 * instance, "tokens": first, "output": output, "expected": 4, "instance": instance})
        rows.append(
            {
                "id": 2 * instance + 1,
                "tokens": second,
                "known": known,
                "output": 2,
                "expected": 2,
                "after": [2 * instance],
                "instance": instance,
            }
        )
    return read_trace((None, row) for row in rows)


def hits(requests: list[TraceRequest], block: int | None, kv_tokens: int, batch: int = 1) -> int:
    return simulate(requests, policy="lmc", kv_tokens=kv_tokens, batch=batch, block=block).hit_tokens


def test_a_pool_for_one_system_prompt_makes_agents_go_kind_by_kind() -> None:
    requests = agents(12)
    assert hits(requests, 12, 80) > 1.8 * hits(requests, 1, 80)
    assert hits(requests, None, 80) == hits(requests, 12, 80)


def test_instances_that_come_back_to_their_own_context_go_one_by_one() -> None:
    requests = agents(12, stays=True)
    assert hits(requests, 1, 90) > hits(requests, 12, 90)
    assert hits(requests, None, 90) == hits(requests, 1, 90)


def test_only_what_can_be_known_decides() -> None:
    """Other answers, of other lengths: what the choice is made from is the same."""
    asked: list[list[list[int]]] = []
    for output in (4, 9):
        seen: list[list[int]] = []

        def trial(sample: Sequence[TraceRequest], size: int, _: int, seen: list[list[int]] = seen) -> Report:
            seen.append([size, *(value for each in sample for value in (each.tokens.size, each.generated.size))])
            return simulate(sample, policy="lmc", kv_tokens=1000, batch=2, block=size)

        requests = agents(4, output=output, stays=True)
        assert choose_block(requests, trial, batch=2) == 1
        asked.append(seen)
    assert asked[0] == asked[1]


def test_what_is_foreseen_goes_on_from_what_is_foreseen() -> None:
    first, second, *_ = foreseen(agents(1, output=9, stays=True))
    whole = np.concatenate([first.tokens, first.generated])
    assert first.generated.size == 4
    assert np.array_equal(second.tokens[: whole.size], whole)
    assert second.tokens.size == whole.size + 1


@pytest.mark.parametrize("instances", [1, 30])
def test_one_request_or_one_instance_needs_no_blocks(instances: int) -> None:
    requests = agents(1) if instances == 1 else [each for each in agents(instances) if not each.after]

    def trial(_: object, __: int, ___: int) -> Report:
        raise AssertionError("nothing is to be tried")

    assert choose_block(requests, trial, batch=4) == 1

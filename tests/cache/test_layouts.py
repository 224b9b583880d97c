"""How a batch is laid out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.cache.simulation.layouts import choose_layout, foreseen
from lmc.cache.simulation.report import Report
from lmc.cache.simulation.simulator import simulate
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
    layout = None if block is None else Layout(block=block)
    return simulate(requests, policy="lmc", kv_tokens=kv_tokens, batch=batch, layout=layout).hit_tokens


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
    chosen: list[Layout] = []
    for output in (4, 9):
        seen: list[list[int]] = []

        def trial(sample: Sequence[TraceRequest], layout: Layout, _: int, seen: list[list[int]] = seen) -> Report:
            seen.append(
                [layout.block, *(value for each in sample for value in (each.tokens.size, each.generated.size))]
            )
            return simulate(sample, policy="lmc", kv_tokens=1000, batch=2, layout=layout)

        requests = agents(4, output=output, stays=True)
        chosen.append(choose_layout(requests, trial, batch=2))
        asked.append(seen)
    assert asked[0] == asked[1]
    assert chosen[0] == chosen[1]


def test_what_is_foreseen_goes_on_from_what_is_foreseen() -> None:
    first, second, *_ = foreseen(agents(1, output=9, stays=True))
    whole = np.concatenate([first.tokens, first.generated])
    assert 2 <= first.generated.size <= 6  # 4 are expected
    assert np.array_equal(second.tokens[: whole.size], whole)
    assert second.tokens.size == whole.size + 1


def test_lengths_that_are_foreseen_are_spread_around_the_expected_one() -> None:
    sizes = [each.generated.size for each in foreseen(agents(200)) if each.expected == 4]
    assert set(sizes) == {2, 3, 4, 5, 6}
    assert abs(sum(sizes) / len(sizes) - 4) < 0.1


def test_more_instances_than_run_at_once_go_together_where_all_fit() -> None:
    """Chains of different lengths: one by one, slots are empty at the end."""
    requests = agents(40)
    at_once = choose_layout(requests, _no_trial, batch=8, all_fit=True)
    assert at_once == Layout(block=16)
    apart, together = (
        simulate(requests, policy="lmc", kv_tokens=100_000, batch=8, layout=layout) for layout in (Layout(), at_once)
    )
    assert together.hit_tokens == apart.hit_tokens
    assert together.steps <= apart.steps


def _no_trial(_: object, __: object, ___: object) -> Report:
    raise AssertionError("nothing is to be tried")


@pytest.mark.parametrize("instances", [1, 30])
def test_one_request_or_one_instance_needs_no_blocks(instances: int) -> None:
    requests = agents(1) if instances == 1 else [each for each in agents(instances) if not each.after]

    assert choose_layout(requests, _no_trial, batch=4) == Layout()


def readers_and_writers(count: int) -> list[TraceRequest]:
    """Texts of 2,000 tokens that are answered with 4, then texts of 20 that are answered with 60."""
    rows: list[dict[str, Any]] = []
    for number in range(2 * count):
        head, length, output = (1, 2000, 4) if number < count else (2, 20, 60)
        tokens = [head, *range(10_000 * number + 10, 10_000 * number + 10 + length)]
        rows.append({"id": number, "tokens": tokens, "output": output, "expected": output, "instance": number})
    return read_trace((None, row) for row in rows)


def test_reading_beside_writing_takes_fewer_steps() -> None:
    requests = readers_and_writers(20)

    def serve(layout: Layout | None) -> Report:
        return simulate(requests, policy="lmc", kv_tokens=100_000, batch=8, layout=layout)

    apart, together, chosen = serve(Layout()), serve(Layout(InstanceOrder.MIXED)), serve(None)
    assert together.steps < 0.9 * apart.steps
    assert together.predicted_seconds < apart.predicted_seconds
    assert together.hit_tokens == apart.hit_tokens
    assert chosen.steps == together.steps


def test_an_even_batch_is_not_mixed() -> None:
    requests = readers_and_writers(20)
    even = [requests[place] for place in range(20, 40)]

    assert choose_layout(even, _no_trial, batch=4) == Layout()

import math
import os
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine import SamplingParams
from lmc.ir.errors import EngineError
from lmc.runtime.local.sampler import Draw, Drawn, draw_tokens, token_probabilities, uniform

DRAWS = 200_000 if os.environ.get("LMC_TEST_FULL") == "1" else 20_000
GREEDY = SamplingParams()


def draw_one(logits: list[float], draw: Draw) -> Drawn:
    (drawn,) = draw_tokens(torch.tensor([logits]), [draw])
    assert isinstance(drawn, Drawn)
    return drawn


def test_greedy_ties_go_to_the_lowest_id() -> None:
    assert draw_one([0.0, 3.0, 1.0, 3.0], Draw(GREEDY, 0, 0)).token == 1


def test_forbidden_ids_are_not_drawn() -> None:
    assert draw_one([0.0, 3.0, 1.0], Draw(GREEDY, 0, 0, forbidden=(1,))).token == 2
    seeded = SamplingParams(temperature=1.0)
    drawn = {draw_one([0.0, 9.0, 1.0], Draw(seeded, seed, 0, forbidden=(1,))).token for seed in range(50)}
    assert drawn == {0, 2}


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.5),
        SamplingParams(temperature=2.0, top_k=5),
        SamplingParams(temperature=1.0, top_p=0.7),
        SamplingParams(temperature=1.0, min_p=0.2),
        SamplingParams(temperature=1.5, top_k=8, top_p=0.9, min_p=0.05),
    ],
)
def test_draws_follow_the_exact_distribution(sampling: SamplingParams) -> None:
    """Chi-square over positions of one seed: the statistic stays below its 99.99 % quantile."""
    logits = np.random.default_rng(7).standard_normal(12) * 1.5
    probabilities = token_probabilities(logits, sampling)
    row = torch.from_numpy(logits)
    rows = row.expand(1000, -1)
    counts: Counter[int] = Counter()
    for start in range(0, DRAWS, 1000):
        draws = [Draw(sampling, 12345, start + index) for index in range(1000)]
        counts.update(drawn.token for drawn in draw_tokens(rows, draws) if isinstance(drawn, Drawn))
    kept = np.flatnonzero(probabilities)
    assert set(counts) <= set(kept.tolist())
    expected = probabilities[kept] * DRAWS
    observed = np.array([counts[int(token)] for token in kept])
    statistic = float(((observed - expected) ** 2 / expected).sum())
    freedom = len(kept) - 1
    # Wilson–Hilferty approximation of the chi-square quantile; 3.72 is the normal quantile of 0.9999.
    bound = freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3
    assert statistic < bound


def test_truncations_keep_what_they_promise() -> None:
    logits = np.log(np.array([0.1, 0.4, 0.3, 0.2]))
    keep = {
        SamplingParams(temperature=1.0, top_k=2): [1, 2],
        SamplingParams(temperature=1.0, top_p=0.65): [1, 2],
        SamplingParams(temperature=1.0, top_p=0.71): [1, 2, 3],
        SamplingParams(temperature=1.0, min_p=0.6): [1, 2],
        SamplingParams(temperature=1.0, top_k=1, top_p=0.01): [1],
    }
    for sampling, tokens in keep.items():
        probabilities = token_probabilities(logits, sampling)
        assert np.flatnonzero(probabilities).tolist() == tokens
        assert probabilities.sum() == pytest.approx(1)


def test_equal_weights_are_cut_at_the_lower_ids() -> None:
    assert np.flatnonzero(token_probabilities(np.zeros(5), SamplingParams(temperature=1.0, top_k=2))).tolist() == [0, 1]


@given(seed=st.integers(-(2**64), 2**65), position=st.integers(0, 2**40))
def test_uniform_is_a_number_below_one(seed: int, position: int) -> None:
    assert 0 <= uniform(seed, position) < 1
    assert uniform(seed, position) == uniform(seed, position)
    assert uniform(seed, position) != uniform(seed, position + 1)
    assert uniform(seed, position) != uniform(seed + 1, position)


@given(seed=st.integers(0, 2**64 - 1), place=st.integers(0, 7))
def test_a_draw_is_the_same_alone_and_in_any_batch(seed: int, place: int) -> None:
    rows = torch.randn(8, 30, generator=torch.Generator().manual_seed(1))
    draw = Draw(SamplingParams(temperature=0.8, top_p=0.9, logprobs=2), seed, 3)
    (alone,) = draw_tokens(rows[place : place + 1], [draw])
    others = [Draw(SamplingParams(temperature=1.0), other, 0) for other in range(8)]
    others[place] = draw
    assert draw_tokens(rows, others)[place] == alone


def test_logprobs_are_the_models_own() -> None:
    logits = [0.0, 2.0, 1.0, -1.0]
    logprobs = torch.log_softmax(torch.tensor(logits), -1).tolist()
    drawn = draw_one(logits, Draw(SamplingParams(temperature=3.0, top_k=1, logprobs=2), 0, 0, forbidden=(2,)))
    assert drawn == Drawn(1, logprobs[1], ((1, logprobs[1]), (2, logprobs[2])))
    assert draw_one(logits, Draw(SamplingParams(logprobs=0), 0, 0)).top == ()


def test_a_row_that_cant_be_drawn_from_fails_alone() -> None:
    nan, infinite = float("nan"), float("inf")
    rows = torch.tensor([[0.0, 1.0], [nan, 1.0], [infinite, 0.0], [0.0, 1.0]])
    blocked = Draw(GREEDY, 0, 5, forbidden=(0, 1))
    good, broken, overflow, empty = draw_tokens(rows, [Draw(GREEDY, 0, 0)] * 3 + [blocked])
    assert good == Drawn(1)
    assert isinstance(broken, EngineError)
    assert "NaN logits for token 0" in str(broken)
    assert isinstance(overflow, EngineError)
    assert isinstance(empty, EngineError)
    assert "no token can be drawn at position 5" in str(empty)
    assert "min_tokens" in str(empty)

import math
import os
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import SamplingParams
from lmc.ir.errors import EngineError
from lmc.runtime.kernels import sampling as sampling_kernel
from lmc.runtime.kernels.choices import Mask
from lmc.runtime.kernels.sampling import allowed_tokens
from lmc.runtime.local.sampling.sampler import Draw, DrawnToken, adjusted, draw_tokens, token_probabilities, uniform

pytestmark = pytest.mark.slow("thousands of draws for each distribution")

DRAWS = 100_000 if os.environ.get("LMC_TEST_FULL") == "1" else 8_000
GREEDY = SamplingParams()


@pytest.fixture(params=["reference", "native"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws with and without the compiled kernel."""
    if request.param == "reference":
        monkeypatch.setattr(sampling_kernel, "why_not", lambda: "no C compiler")


def draw_one(logits: list[float], draw: Draw) -> DrawnToken:
    (drawn,) = draw_tokens(torch.tensor([logits]), [draw])
    assert isinstance(drawn, DrawnToken)
    return drawn


def test_greedy_ties_go_to_the_lowest_id() -> None:
    assert draw_one([0.0, 3.0, 1.0, 3.0], Draw(GREEDY, 0, 0)).token == 1


def test_forbidden_ids_are_not_drawn() -> None:
    assert draw_one([0.0, 3.0, 1.0], Draw(GREEDY, 0, 0, forbidden=(1,))).token == 2
    seeded = SamplingParams(temperature=1.0)
    drawn = {draw_one([0.0, 9.0, 1.0], Draw(seeded, seed, 0, forbidden=(1,))).token for seed in range(50)}
    assert drawn == {0, 2}


def plain_probabilities(logits: np.ndarray, draw: Draw) -> np.ndarray:
    """The distribution by its definition: everything in float64, everything sorted."""
    sampling, logits = draw.sampling, logits.astype(np.float64)
    for token, bias in sampling.logit_bias:
        logits[token] += bias
    for token in {*draw.prompt.tolist(), *draw.generated}:
        logits[token] *= sampling.repetition_penalty if logits[token] < 0 else 1 / sampling.repetition_penalty
    for token, count in Counter(draw.generated).items():
        logits[token] -= sampling.frequency_penalty * count + sampling.presence_penalty
    logits[list(draw.forbidden)] = -np.inf
    if draw.mask is not None:
        logits[~allowed_tokens(draw.mask, logits.size)] = -np.inf
    weights = np.exp((logits - logits.max()) / sampling.temperature)
    order = np.argsort(-weights, kind="stable")[: sampling.top_k or None]
    kept = weights[order]
    if sampling.top_p < 1:
        kept = kept[: int(np.searchsorted(np.cumsum(kept) / kept.sum(), sampling.top_p)) + 1]
    kept = kept[kept >= sampling.min_p * kept[0]]
    probabilities = np.zeros(logits.size)
    probabilities[order[: kept.size]] = kept / kept.sum()
    return probabilities


def chi_square_bound(freedom: int) -> float:
    """The 99.99 % quantile by Wilson and Hilferty's approximation; 3.72 is the normal quantile."""
    return freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.5),
        SamplingParams(temperature=2.0, top_k=5),
        SamplingParams(temperature=1.0, top_p=0.7),
        SamplingParams(temperature=1.0, min_p=0.2),
        SamplingParams(temperature=1.0, frequency_penalty=0.7),
        SamplingParams(temperature=1.0, presence_penalty=-1.2),
        SamplingParams(temperature=1.0, repetition_penalty=1.6),
        SamplingParams(temperature=1.0, logit_bias=((2, 1.5), (5, -0.75), (7, -100.0))),
        SamplingParams(temperature=1.5, top_k=8, top_p=0.9, min_p=0.05),
        SamplingParams(
            temperature=0.8,
            top_p=0.95,
            frequency_penalty=0.3,
            presence_penalty=0.4,
            repetition_penalty=1.2,
            logit_bias=((0, 1.0),),
        ),
    ],
)
def test_draws_follow_the_exact_distribution(sampling: SamplingParams, implementation: None) -> None:
    """Chi-square over positions of one seed."""
    check_distribution(sampling, np.random.default_rng(7).standard_normal(12).astype(np.float32) * 1.5)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=1.0, top_k=40, presence_penalty=0.5),
        SamplingParams(temperature=0.9, top_p=0.8),
        SamplingParams(temperature=1.0, min_p=0.01),
    ],
)
def test_draws_from_a_large_vocabulary_do_too(sampling: SamplingParams, implementation: None) -> None:
    check_distribution(sampling, np.random.default_rng(7).standard_normal(3000).astype(np.float32) * 3.5)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=1.0, top_p=0.8, logit_bias=((17, 2.0),), presence_penalty=1.0),
        SamplingParams(temperature=1.3, top_k=20, repetition_penalty=1.5),
    ],
)
@pytest.mark.parametrize("share", [0.02, 0.6])
def test_masked_draws_follow_the_exact_distribution(
    sampling: SamplingParams, share: float, implementation: None
) -> None:
    """The mask comes after bias and penalties and before temperature and truncation, for few tokens and for many."""
    generator = np.random.default_rng(3)
    allowed = generator.random(32 * 62) < share
    allowed[[2, 4, 11, 17]] = True
    mask = np.packbits(allowed, bitorder="little").view(np.uint32)  # fewer words than the row has
    check_distribution(sampling, generator.standard_normal(2000).astype(np.float32) * 2, mask)


def check_distribution(sampling: SamplingParams, logits: np.ndarray, mask: Mask | None = None) -> None:
    """Tokens of less than five expected draws count as one."""
    history = (np.array([1, 4, 9]), (4, 4, 2, 11, 4), mask)
    probabilities = plain_probabilities(logits, Draw(sampling, 0, 0, (3,), *history))
    rows = torch.from_numpy(logits).expand(1000, -1)
    counts: Counter[int] = Counter()
    for start in range(0, DRAWS, 1000):
        draws = [Draw(sampling, 12345, start + index, (3,), *history) for index in range(1000)]
        counts.update(drawn.token for drawn in draw_tokens(rows, draws) if isinstance(drawn, DrawnToken))
    assert counts.total() == DRAWS
    assert all(probabilities[token] for token in counts)
    expected = probabilities * DRAWS
    observed = np.array([counts[token] for token in range(logits.size)])
    rare = expected < 5
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    observed = np.append(observed[~rare], observed[rare].sum())
    if expected[-1] < 5:
        expected, observed = expected[:-1], observed[:-1]
    assert float(((observed - expected) ** 2 / expected).sum()) < chi_square_bound(len(expected) - 1)


@given(
    st.integers(0, 2**32),
    st.sampled_from([30, 600, 3001]),
    st.sampled_from([0.0, 0.3, 2.0, 8.0]),
    st.builds(
        SamplingParams,
        temperature=st.sampled_from([0.05, 0.7, 1.0, 1.9]),
        top_k=st.sampled_from([0, 0, 1, 7, 200, 300, 5000]),
        top_p=st.sampled_from([1.0, 1.0, 0.999, 0.83, 0.2, 1e-9]),
        min_p=st.sampled_from([0.0, 0.0, 0.013, 0.7, 1.0]),
    ),
)
def test_fast_truncation_is_the_plain_one(seed: int, size: int, spread: float, sampling: SamplingParams) -> None:
    """Also with many equal logits, as bfloat16 gives them. Where float32 rounds at a boundary, one token may differ."""
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed)).mul(spread).bfloat16().float().numpy()
    fast, plain = token_probabilities(logits, sampling), plain_probabilities(logits, Draw(sampling, 0, 0))
    differs = (fast > 1e-30) != (plain > 1e-30)
    assert differs.sum() <= 1
    assert np.abs(fast - plain).sum() < 1e-5 + 2 * np.maximum(fast, plain)[differs].sum()


def test_bias_and_penalties_act_in_their_order() -> None:
    sampling = SamplingParams(
        logit_bias=((0, 3.0), (2, -1.0)), repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25
    )
    logits = np.array([-1.0, 4.0, 0.5, 1.0, 7.0], np.float32)
    draw = Draw(sampling, 0, 0, forbidden=(4,), prompt=np.array([0, 2]), generated=(1, 2, 1))
    # 0: (-1 + 3) / 2; 1: 4 / 2 - 2·0.5 - 0.25; 2: (0.5 - 1)·2 - 0.5 - 0.25; 3 as it was; 4 forbidden.
    ids, changed = adjusted(logits, draw)
    assert logits.tolist() == [-1.0, 4.0, 0.5, 1.0, 7.0]
    logits[ids] = changed
    assert logits.tolist() == [1.0, 0.75, -1.75, 1.0, -math.inf]


def test_truncations_keep_what_they_promise() -> None:
    logits = np.log(np.array([0.1, 0.4, 0.3, 0.2], np.float32))
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
    assert np.flatnonzero(
        token_probabilities(np.zeros(5, np.float32), SamplingParams(temperature=1.0, top_k=2))
    ).tolist() == [0, 1]


@given(seed=st.integers(-(2**64), 2**65), position=st.integers(0, 2**40))
def test_uniform_is_a_number_below_one(seed: int, position: int) -> None:
    assert 0 <= uniform(seed, position) < 1
    assert uniform(seed, position) == uniform(seed, position)
    assert uniform(seed, position) != uniform(seed, position + 1)
    assert uniform(seed, position) != uniform(seed + 1, position)


@given(
    seed=st.integers(0, 2**64 - 1),
    place=st.integers(0, 7),
    size=st.sampled_from([30, 1003]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    sampling=st.sampled_from(
        [
            SamplingParams(temperature=0.8, top_p=0.9, logprobs=2),
            SamplingParams(temperature=1.3, logprobs=0),
            SamplingParams(temperature=1.3, top_k=9, frequency_penalty=1.0, logit_bias=((3, 1.0),)),
            SamplingParams(min_p=0.1, temperature=2.0, repetition_penalty=1.3, logprobs=3),
            SamplingParams(presence_penalty=2.0, logprobs=20),
            SamplingParams(logprobs=5),
        ]
    ),
)
def test_a_draw_is_the_same_alone_and_in_any_batch(
    seed: int, place: int, size: int, dtype: torch.dtype, sampling: SamplingParams
) -> None:
    """To the last bit of its log-probabilities."""
    rows = torch.randn(8, size, generator=torch.Generator().manual_seed(1)).to(dtype)
    draw = Draw(sampling, seed, 3, (5,), np.array([1, 2]), (7, 7, 8))
    (alone,) = draw_tokens(rows[place : place + 1], [draw])
    kinds = [SamplingParams(temperature=1.0), SamplingParams(), SamplingParams(logprobs=1)]
    others = [Draw(kinds[other % 3], other, 0) for other in range(8)]
    others[place] = draw
    assert draw_tokens(rows, others)[place] == alone


def test_a_mask_changes_what_is_drawn_and_not_the_log_probabilities() -> None:
    logits = [0.0, 2.0, 1.0, -1.0, 7.0]  # the mask ends before the last one
    mask = np.array([0b1001], np.uint32)
    free = draw_one(logits[:4], Draw(SamplingParams(logprobs=2), 0, 0))
    drawn = draw_one(logits[:4], Draw(SamplingParams(logprobs=2), 0, 0, mask=mask))
    assert (free.token, drawn.token) == (1, 0)
    assert drawn.top == free.top
    assert drawn.logprob == pytest.approx(torch.log_softmax(torch.tensor(logits[:4]), -1)[0].item(), abs=1e-6)
    assert draw_one(logits, Draw(GREEDY, 0, 0, forbidden=(0,), mask=mask)).token == 3


def test_logprobs_are_the_models_own() -> None:
    logits = [0.0, 2.0, 1.0, -1.0]
    logprobs = torch.log_softmax(torch.tensor(logits), -1).tolist()
    drawn = draw_one(logits, Draw(SamplingParams(temperature=3.0, top_k=1, logprobs=2), 0, 0, forbidden=(2,)))
    assert drawn.token == 1
    assert drawn.logprob == pytest.approx(logprobs[1], abs=1e-6)
    assert [token for token, _ in drawn.top] == [1, 2]
    assert [logprob for _, logprob in drawn.top] == pytest.approx([logprobs[1], logprobs[2]], abs=1e-6)
    assert draw_one(logits, Draw(SamplingParams(logprobs=0), 0, 0)).top == ()


def test_a_row_that_cant_be_drawn_from_fails_alone() -> None:
    nan, infinite = float("nan"), float("inf")
    rows = torch.tensor([[0.0, 1.0], [nan, 1.0], [infinite, 0.0], [0.0, 1.0]])
    blocked = Draw(GREEDY, 0, 5, forbidden=(0, 1))
    good, broken, overflow, empty = draw_tokens(rows, [Draw(GREEDY, 0, 0)] * 3 + [blocked])
    impossible = torch.tensor([[0.0, -infinite], [nan, 1.0]])
    masked = draw_tokens(impossible, [Draw(GREEDY, 0, 5, mask=np.array([2], np.uint32))] * 2)
    assert "some allowed one that the model and logit_bias leave possible" in str(masked[0])
    assert "NaN logits for token 5" in str(masked[1])
    assert good == DrawnToken(1)
    assert isinstance(broken, EngineError)
    assert "NaN logits for token 0" in str(broken)
    assert isinstance(overflow, EngineError)
    assert isinstance(empty, EngineError)
    assert "no token can be drawn at position 5" in str(empty)
    assert "min_tokens" in str(empty)

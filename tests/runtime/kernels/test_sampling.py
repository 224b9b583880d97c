import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from lmc.runtime.kernels import native_sampling, sampling
from lmc.runtime.kernels.choices import Choice, Chosen
from lmc.runtime.kernels.native.library import why_not
from lmc.runtime.kernels.sampling import Implementation, choose_tokens, token_weights

IMPLEMENTATIONS: list[Implementation] = ["reference", *([] if why_not() else ["native"])]
both = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
needs_compiler = pytest.mark.skipif(why_not() is not None, reason="no C compiler")
SIZES = [1, 2, 127, 128, 129, 300, 2047, 2049, 32000]


def plain_weights(logits: np.ndarray, choice: Choice) -> np.ndarray:
    """By the definition: everything in float64, everything sorted."""
    wide = logits.astype(np.float64)
    with np.errstate(over="ignore"):
        weights = np.exp((wide - wide.max()) / choice.temperature)
    order = np.argsort(-wide, kind="stable")[: choice.top_k or None]
    kept = weights[order]
    if choice.top_p < 1:
        kept = kept[: int(np.searchsorted(np.cumsum(kept), choice.top_p * kept.sum())) + 1]
    kept = kept[kept >= choice.min_p]
    result = np.zeros(logits.size)
    result[order[: kept.size]] = kept
    return result


def rows_of(size: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(size)
    flat = generator.standard_normal(size).astype(np.float32)
    holes = flat.copy()
    holes[generator.random(size) < 0.7] = -np.inf
    holes[size // 2] = 0.5
    single = np.full(size, -np.inf, np.float32)
    single[size // 3] = -2.0
    return {
        "flat": flat,
        "peaked": flat * 4,
        "ascending": np.sort(flat * 3),
        "ties": np.round(flat * 2) * np.float32(0.5),
        "constant": np.zeros(size, np.float32),
        "zeros of both signs": np.where(flat > 0, np.float32(0.0), np.float32(-0.0)),
        "holes": holes,
        "one finite": single,
        "wide": flat * np.float32(1e37),
    }


def choices_of(size: int) -> list[Choice]:
    temperatures = [1e-30, 0.05, 0.8, 1.0, 30.0]
    ks = [1, 2, 50, 255, 257, size // 2, size - 1, size, size + 5]
    return [
        *(Choice(temperature=temperature) for temperature in temperatures),
        *(Choice(temperature=0.9, top_k=k) for k in ks if k > 0),
        *(Choice(temperature=1.0, top_p=share) for share in (1e-12, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9)),
        *(Choice(temperature=temperature, top_p=0.8) for temperature in temperatures),
        *(Choice(temperature=1.0, min_p=share) for share in (1e-6, 0.01, 0.5, 1.0)),
        Choice(temperature=1.3, top_k=100, top_p=0.9, min_p=0.02),
        Choice(temperature=1e30, top_k=3),
    ]


@both
@pytest.mark.parametrize("size", SIZES)
def test_what_is_kept_is_what_the_definition_keeps(implementation: Implementation, size: int) -> None:
    """Where a boundary lies within rounding, what the two keep may differ by as much weight as rounding is."""
    for logits in rows_of(size).values():
        for choice in choices_of(size):
            weights = token_weights(logits, choice, implementation=implementation)
            plain = plain_weights(logits, choice)
            assert weights.max() == 1.0
            differs = (weights > 1e-30) != (plain > 1e-30)
            total = max(plain.sum(), 1.0)
            # One token on the boundary, and those that together weigh less than the sums are exact to.
            light = np.sort(np.maximum(weights, plain)[differs])
            assert light[:-1].sum() <= 1e-5 * total
            np.testing.assert_allclose(weights[~differs], plain[~differs], rtol=2e-4, atol=1e-9)


@both
@pytest.mark.parametrize("size", SIZES)
def test_a_draw_inverts_the_cumulative_weights(implementation: Implementation, size: int) -> None:
    logits = rows_of(size)["holes"]
    for choice in choices_of(size):
        weights = token_weights(logits, choice, implementation=implementation).astype(np.float64)
        reached = weights.cumsum() / weights.sum()
        numbers = [0.0, 1e-12, 0.1, 0.5, 0.77, 0.999, 1 - 2.0**-53]
        draws = [
            Choice(choice.temperature, choice.top_k, choice.top_p, choice.min_p, uniform=number) for number in numbers
        ]
        chosen = choose_tokens(np.tile(logits, (len(draws), 1)), draws, implementation=implementation)
        for number, each in zip(numbers, chosen, strict=True):
            assert weights[each.token] > 0
            assert reached[each.token] >= number - 1e-6
            assert reached[each.token] - weights[each.token] / weights.sum() <= number + 1e-6


@both
@pytest.mark.parametrize("size", SIZES)
def test_log_probabilities_and_the_likeliest(implementation: Implementation, size: int) -> None:
    for name, logits in rows_of(size).items():
        logprobs = torch.log_softmax(torch.from_numpy(logits).double(), -1).numpy()
        order = np.argsort(-logits, kind="stable")
        for count in (0, 1, 5, 20, 400, size + 1):
            (chosen,) = choose_tokens(logits[None], [Choice(logprobs=count)], implementation=implementation)
            assert chosen.token == order[0]
            assert chosen.highest == logits.max()
            assert chosen.logprob == pytest.approx(logprobs[order[0]], abs=1e-5), name
            assert [token for token, _ in chosen.top] == order[: min(count, size)].tolist()
            np.testing.assert_allclose([each for _, each in chosen.top], logprobs[order][:count], rtol=1e-5, atol=1e-5)


@both
def test_changes_move_the_draw_and_not_the_log_probabilities(implementation: Implementation) -> None:
    logits = np.array([[0.0, 3.0, 1.0]], np.float32)
    changes = (np.array([1, 0, 1]), np.array([-np.inf, 9.0, -np.inf], np.float32))
    (own,) = choose_tokens(logits, [Choice(logprobs=1)], implementation=implementation)
    (changed,) = choose_tokens(logits, [Choice(logprobs=1, changes=changes)], implementation=implementation)
    assert (own.token, changed.token, changed.highest) == (1, 0, 9.0)
    assert changed.top == own.top
    assert changed.logprob == pytest.approx((own.logprob or 0) - 3.0, abs=1e-6)
    weights = token_weights(logits[0], Choice(temperature=1.0, changes=changes), implementation=implementation)
    assert weights.tolist() == pytest.approx([1.0, 0.0, math.exp(-8)])
    assert logits.tolist() == [[0.0, 3.0, 1.0]]


def mask_of(ids: np.ndarray, words: int) -> np.ndarray:
    """Packed, [words]."""
    mask = np.zeros(words, np.uint32)
    np.bitwise_or.at(mask, ids // 32, np.uint32(1) << (ids % 32).astype(np.uint32))
    return mask


def masks_of(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Allowed ids and their mask: a few and many, with words to spare, and with fewer words than the row has."""
    generator, masks = np.random.default_rng(size), []
    for share in (1 / size, 0.01, 1 / 9, 1 / 7, 0.5, 1.0):
        ids = np.flatnonzero(generator.random(size) < share)
        ids = ids if ids.size else np.array([size // 2])
        masks.append((ids, mask_of(np.append(ids, [size, size + 40]), size // 32 + 3)))
    head = np.arange(min(size, 64))
    return [*masks, (head, mask_of(head, 2))]


@both
@pytest.mark.parametrize("size", SIZES)
def test_a_mask_leaves_what_a_row_of_the_others_impossible_leaves(implementation: Implementation, size: int) -> None:
    """Also with changed logits, and with log-probabilities, which stay those of the whole row."""
    generator = np.random.default_rng(2)
    for name in ("flat", "ties", "holes", "wide"):
        logits = rows_of(size)[name]
        changes = (generator.integers(0, size, 5), np.full(5, 0.25, np.float32))
        for ids, mask in masks_of(size):
            for changed in (None, changes):
                plain = logits.copy()
                if changed is not None:
                    plain[changed[0]] = changed[1]
                plain[np.setdiff1d(np.arange(size), ids)] = -np.inf
                settings = [Choice(), Choice(logprobs=2), *choices_of(size)[:14:3], Choice(1.3, 100, 0.9, 0.02)]
                given = [replace(choice, uniform=0.4, changes=changed, mask=mask) for choice in settings]
                chosen = choose_tokens(np.tile(logits, (len(given), 1)), given, implementation=implementation)
                if plain.max() == -np.inf:
                    assert {each.highest for each in chosen} == {-np.inf}
                    continue
                assert {each.highest for each in chosen} == {plain.max()}
                assert chosen[0].token == chosen[1].token == plain.argmax()
                (own,) = choose_tokens(logits[None], [Choice(logprobs=2)], implementation=implementation)
                assert chosen[1].top == own.top
                logprobs = torch.log_softmax(torch.from_numpy(logits).double(), -1)
                assert chosen[1].logprob == pytest.approx(logprobs[plain.argmax()].item(), abs=1e-5, rel=1e-6)
                for choice, each in zip(given[2:], chosen[2:], strict=True):
                    weights = token_weights(logits, choice, implementation=implementation)
                    expected = token_weights(
                        plain, replace(choice, changes=None, mask=None), implementation=implementation
                    )
                    np.testing.assert_allclose(weights, expected, rtol=1e-6)
                    assert weights[each.token] > 0


@both
def test_a_nan_is_reported_even_where_the_mask_does_not_allow_it(implementation: Implementation) -> None:
    for size in (40, 3000):
        logits = np.zeros((4, size), np.float32)
        logits[:, size - 1] = np.nan
        few, many = mask_of(np.array([3]), size // 32 + 1), mask_of(np.arange(size - 1), size // 32 + 1)
        choices = [Choice(mask=few), Choice(mask=many), Choice(1.0, mask=few, logprobs=0), Choice(1.0, mask=many)]
        assert all(math.isnan(each.highest) for each in choose_tokens(logits, choices, implementation=implementation))


@both
@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 5000])
def test_the_likeliest_is_the_first_wherever_it_is(implementation: Implementation, size: int) -> None:
    generator = np.random.default_rng(size)
    logits = np.round(generator.standard_normal((30, size)) * 2).astype(np.float32)
    logits[-1] = -np.inf
    places = generator.integers(0, size, len(logits))
    logits[np.arange(10), places[:10]] = 9.0
    found = choose_tokens(logits, [Choice()] * len(logits), implementation=implementation)
    assert [each.highest for each in found] == logits.max(axis=1).tolist()
    assert [each.token for each in found[:-1]] == logits.argmax(axis=1)[:-1].tolist()
    logits[np.arange(30), places] = np.nan
    assert all(
        math.isnan(each.highest) for each in choose_tokens(logits, [Choice()] * 30, implementation=implementation)
    )


@both
def test_a_mask_that_allows_nothing_leaves_nothing(implementation: Implementation) -> None:
    (chosen,) = choose_tokens(
        np.zeros((1, 70), np.float32), [Choice(1.0, mask=np.zeros(2, np.uint32))], implementation=implementation
    )
    assert chosen.highest == -math.inf


@both
def test_rows_without_a_finite_maximum_say_so(implementation: Implementation) -> None:
    logits = np.zeros((5, 40), np.float32)
    logits[0, 39] = np.nan
    logits[1, 0] = np.inf
    logits[2] = -np.inf
    logits[3, 7] = np.nan
    # A NaN is reported even where its token is forbidden.
    forbids = Choice(changes=(np.array([7]), np.array([-np.inf], np.float32)))
    choices = [Choice(temperature=1.0), Choice(logprobs=2), Choice(temperature=1.0, top_p=0.5), forbids, Choice()]
    chosen = choose_tokens(logits, choices, implementation=implementation)
    assert math.isnan(chosen[0].highest)
    assert chosen[1].highest == math.inf
    assert chosen[2].highest == -math.inf
    assert math.isnan(chosen[3].highest)
    assert chosen[4] == Chosen(0.0, 0)


@needs_compiler
@pytest.mark.parametrize("size", [129, 32000])
def test_a_row_is_the_same_alone_in_any_batch_and_with_any_threads(size: int) -> None:
    generator = np.random.default_rng(1)
    logits = np.tile(np.stack(list(rows_of(size).values())), (2, 1))
    choices = [
        Choice(temperature=0.8, uniform=generator.random(), logprobs=3),
        Choice(temperature=1.0, top_p=0.9, uniform=generator.random()),
        Choice(temperature=1.0, top_k=50, min_p=0.1, uniform=generator.random(), logprobs=0),
        Choice(logprobs=7),
        Choice(),
        Choice(temperature=1.0, top_p=0.9, uniform=generator.random(), mask=masks_of(size)[1][1]),
        Choice(temperature=1.0, uniform=generator.random(), mask=masks_of(size)[4][1], logprobs=2),
    ]
    own = [choices[row % len(choices)] for row in range(len(logits))]
    alone = [sampling.native(row[None], [choice])[0] for row, choice in zip(logits, own, strict=True)]
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            assert sampling.native(logits, own) == alone
            assert sampling.native(logits[::-1].copy(), own[::-1]) == alone[::-1]
    finally:
        torch.set_num_threads(threads)


def test_without_a_compiler_the_reference_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "why_not", lambda: "no C compiler")
    monkeypatch.setattr(native_sampling, "library", lambda: pytest.fail("the library was asked for"))
    logits = np.array([[0.0, 5.0, 1.0]], np.float32)
    assert choose_tokens(logits, [Choice(temperature=1.0, top_k=1, uniform=0.5)]) == [Chosen(5.0, 1)]
    assert token_weights(logits[0], Choice(temperature=1.0, top_k=1)).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor can't treat denormals as 0")
def test_rows_of_zeros_where_denormals_count_as_zero():
    code = """
import torch
torch.set_flush_denormal(True)
from lmc.ir.engine.protocol import SamplingParams
from lmc.runtime.local.sampling.sampler import Draw, draw_tokens
print([drawn.token for drawn in draw_tokens(torch.zeros(2, 300), [Draw(SamplingParams(temperature=0.0), 0, 0)] * 2)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0]\n"

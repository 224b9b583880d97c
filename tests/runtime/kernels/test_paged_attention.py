import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.runtime.kernels import paged_attention as kernel

NULL_PAGE = 400
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def make_batch(shapes: list[tuple[int, int]], rng: np.random.Generator, device: str = "cpu", dtype=torch.float32):
    """Sequences of (tokens, query rows) on random pages; sequences may share pages, as prefixes do."""
    sequences: list[kernel.SequenceRows] = []
    first_row = 0
    for length, rows in shapes:
        pages = rng.choice(NULL_PAGE, size=length, replace=False).astype(np.int64)
        sequences.append(kernel.SequenceRows(first_row, rows, pages))
        first_row += rows
    slots = np.concatenate([sequence.pages[-sequence.rows :] for sequence in sequences])
    return kernel.plan_attention(sequences, slots, null_page=NULL_PAGE, device=torch.device(device), dtype=dtype)


def make_tensors(rows: int, heads: int, key_heads: int, size: int, rng: np.random.Generator, device="cpu"):
    def tensor(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal(shape)).float().to(device)

    return tensor(rows, heads, size), tensor(NULL_PAGE + 1, key_heads, size), tensor(NULL_PAGE + 1, key_heads, size)


shapes = st.lists(
    st.tuples(st.integers(1, 90), st.one_of(st.just(1), st.integers(1, 80))).map(lambda p: (max(p), min(p))),
    min_size=1,
    max_size=9,
)


@settings(max_examples=60, deadline=None)
@given(shapes=shapes, heads=st.sampled_from([(4, 4), (6, 2), (3, 1)]), seed=st.integers(0, 2**32))
def test_grouped_agrees_with_the_reference(shapes, heads: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch = make_batch(shapes, rng)
    query, keys, values = make_tensors(sum(rows for _, rows in shapes), *heads, 8, rng)
    expected = kernel.paged_attention(query, keys, values, batch, 0.3, implementation="reference")
    torch.testing.assert_close(kernel.paged_attention(query, keys, values, batch, 0.3), expected, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_devices_and_dtypes(device: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    shapes = [(70, 1), (68, 1), (9, 1), (80, 40), (33, 7), (31, 5)]
    batch = make_batch(shapes, rng, device, dtype)
    query, keys, values = (tensor.to(dtype) for tensor in make_tensors(55, 6, 2, 16, rng, device))
    expected = kernel.paged_attention(query, keys, values, batch, 0.25, implementation="reference")
    tolerance = 2e-5 if dtype == torch.float32 else 2e-2
    result = kernel.paged_attention(query, keys, values, batch, 0.25)
    torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)


def test_groups_are_padded_little_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MAX_GROUP_TOKENS", 300)
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 150, size=40)
    sequences = [kernel.SequenceRows(row, 1, np.zeros(length, np.int64)) for row, length in enumerate(lengths)]
    groups = kernel.group_sequences(sequences)
    assert sorted(member.first_row for group in groups for member in group) == list(range(40))
    for group in groups:
        longest = max(member.length for member in group)
        assert len(group) * longest <= 300
        assert sum(member.length for member in group) >= 0.75 * len(group) * longest


def test_rows_of_a_broken_sequence_do_not_reach_others() -> None:
    rng = np.random.default_rng(2)
    batch = make_batch([(40, 1), (38, 1), (37, 1)], rng)
    query, keys, values = make_tensors(3, 4, 2, 8, rng)
    clean = kernel.paged_attention(query, keys, values, batch, 0.3)
    only_second = np.setdiff1d(
        batch.sequences[1].pages, np.concatenate([batch.sequences[0].pages, batch.sequences[2].pages])
    )
    keys[only_second], values[only_second] = float("nan"), float("nan")
    broken = kernel.paged_attention(query, keys, values, batch, 0.3)
    torch.testing.assert_close(broken[[0, 2]], clean[[0, 2]])
    assert broken[1].isnan().all()


def test_write_pages_stores_rows_in_their_slots() -> None:
    rng = np.random.default_rng(3)
    batch = make_batch([(5, 2), (4, 4)], rng)
    cache = torch.zeros(NULL_PAGE + 1, 2, 8)
    rows = torch.randn(6, 2, 8)
    kernel.write_pages(cache, rows, batch)
    assert torch.equal(cache[batch.sequences[1].pages], rows[2:])
    assert int(cache.abs().sum(dim=(1, 2)).count_nonzero()) <= 6

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.runtime.kernels import attention_plan
from lmc.runtime.kernels import paged_attention as kernel
from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.native.library import why_not

NULL_PAGE = 400
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FAST = ["grouped", pytest.param("native", marks=pytest.mark.skipif(why_not() is not None, reason="no C compiler"))]
PLAIN = AttentionForm(0.3)
forms = st.builds(AttentionForm, st.just(0.3), st.sampled_from([0, 0, 1, 5, 33]), st.sampled_from([0.0, 0.0, 2.0]))


def make_batch(shapes: list[tuple[int, int]], rng: np.random.Generator, device: str = "cpu", dtype=torch.float32):
    """Sequences of (tokens, query rows) on random pages; sequences may share pages, as prefixes do."""
    sequences: list[SequenceRows] = []
    first_row = 0
    for length, rows in shapes:
        pages = rng.choice(NULL_PAGE, size=length, replace=False).astype(np.int64)
        sequences.append(SequenceRows(first_row, rows, pages))
        first_row += rows
    slots = np.concatenate([sequence.pages[-sequence.rows :] for sequence in sequences])
    return kernel.AttentionBatch(sequences, slots, null_page=NULL_PAGE, device=torch.device(device), dtype=dtype)


def make_tensors(rows: int, heads: int, key_heads: int, size: int, rng: np.random.Generator, device="cpu"):
    def tensor(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal(shape)).float().to(device)

    return tensor(rows, heads, size), tensor(NULL_PAGE + 1, key_heads, size), tensor(NULL_PAGE + 1, key_heads, size)


shapes = st.lists(
    st.tuples(st.integers(1, 90), st.one_of(st.just(1), st.integers(1, 80))).map(lambda p: (max(p), min(p))),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("implementation", FAST)
@settings(max_examples=60, deadline=None)
@given(shapes=shapes, heads=st.sampled_from([(4, 4), (6, 2), (3, 1)]), form=forms, seed=st.integers(0, 2**32))
def test_fast_versions_agree_with_the_reference(
    implementation, shapes, heads: tuple[int, int], form: AttentionForm, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    batch = make_batch(shapes, rng)
    query, keys, values = make_tensors(sum(rows for _, rows in shapes), *heads, 8, rng)
    expected = kernel.paged_attention(query, keys, values, batch, form, implementation="reference")
    result = kernel.paged_attention(query, keys, values, batch, form, implementation=implementation)
    torch.testing.assert_close(result, expected, atol=2e-6, rtol=2e-5)


def shared_batch(rng: np.random.Generator, *, share: bool, dtype=torch.float32) -> kernel.AttentionBatch:
    """A tree: all share 20 tokens, two groups share 40 and 70 more, with rows inside of the shared parts too."""
    pages = iter(np.split(rng.permutation(NULL_PAGE), [20, 60, 130, 140, 160, 190, 191]))
    root, left, right, *own = (next(pages) for _ in range(7))
    paths = [(root, left, own[0]), (root, left, own[1]), (root, right, own[2]), (root, right), (root, left, own[3])]
    sequences: list[SequenceRows] = []
    first_row = 0
    for rows, parts in zip((1, 20, 35, 3, 1), paths, strict=True):
        sequences.append(SequenceRows(first_row, rows, np.concatenate(parts)))
        first_row += rows
    slots = np.concatenate([sequence.pages[-sequence.rows :] for sequence in sequences])
    return kernel.AttentionBatch(
        sequences, slots, null_page=NULL_PAGE, device=torch.device("cpu"), dtype=dtype, share=share
    )


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("size", [8, 20, 64, 96, 128])
@pytest.mark.parametrize("form", [PLAIN, AttentionForm(0.2, window=30), AttentionForm(0.2, softcap=3.0)])
@pytest.mark.skipif(why_not() is not None, reason="no C compiler")
def test_native_reads_shared_prefixes_once_and_gives_the_same(share: bool, size: int, form: AttentionForm) -> None:
    rng = np.random.default_rng(size)
    batch = shared_batch(rng, share=share)
    query, keys, values = make_tensors(60, 6, 2, size, rng)
    expected = kernel.paged_attention(query, keys, values, batch, form, implementation="reference")
    result = kernel.paged_attention(query, keys, values, batch, form, implementation="native")
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=2e-5)


def test_segments_cover_every_key_of_every_sequence_once() -> None:
    batch = shared_batch(np.random.default_rng(0), share=True)
    segments, alone = attention_plan.shared_segments(batch.sequences)
    segments += [
        attention_plan.Segment((index,), start, each.length)
        for index, (start, each) in enumerate(zip(alone, batch.sequences, strict=True))
        if start < each.length
    ]
    assert max(len(segment.members) for segment in segments) == 5
    for index, sequence in enumerate(batch.sequences):
        own = sorted((each.start, each.end) for each in segments if index in each.members)
        assert own[0][0] == 0
        assert own[-1][1] == sequence.length
        assert all(before[1] == after[0] for before, after in itertools.pairwise(own))
        for segment in segments:
            if index in segment.members:
                first = batch.sequences[segment.members[0]]
                part = slice(segment.start, segment.end)
                assert np.array_equal(first.pages[part], sequence.pages[part])


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("length", [8_192, 32_768, 131_072])
@pytest.mark.parametrize("threads", [2, 16])
def test_results_kept_for_merging_do_not_grow_with_the_context(
    length: int, share: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    enough = threads * attention_plan.THREAD_ITEMS
    sequences = [SequenceRows(0, 512, np.arange(length))]
    plan = attention_plan.plan_items(sequences, 4, window=0, share=share)
    assert plan.item_rows.size <= (1 + enough / 22) * 512
    assert plan.items.size >= 0.75 * enough
    branches = [SequenceRows(row, 1, np.append(np.arange(length), length + row)) for row in range(256)]
    plan = attention_plan.plan_items(branches, 4, window=0, share=True)
    assert plan.item_rows.size <= (2 + enough / 11) * 256
    assert plan.items.size >= 0.75 * enough


@pytest.mark.skipif(why_not() is not None, reason="no C compiler")
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("form", [PLAIN, AttentionForm(0.3, window=300)])
def test_items_of_many_keys_give_the_same(share: bool, form: AttentionForm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_plan, "THREAD_ITEMS", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    rng = np.random.default_rng(7)
    first, second = np.arange(900), np.concatenate([np.arange(700), np.arange(1000, 1400)])
    sequences = [SequenceRows(0, 150, first), SequenceRows(150, 70, second), SequenceRows(220, 1, first[:650])]
    query, keys, values = (
        torch.from_numpy(rng.standard_normal((n, h, 16))).float() for n, h in ((221, 4), (1400, 2), (1400, 2))
    )
    slots = np.concatenate([each.pages[-each.rows :] for each in sequences])
    batch = kernel.AttentionBatch(
        sequences, slots, null_page=0, device=torch.device("cpu"), dtype=torch.float32, share=share
    )
    assert batch.plan(2, form.window).arrays.items["keys"].max() > 2 * attention_plan.ITEM_KEYS
    expected = kernel.paged_attention(query, keys, values, batch, form, implementation="reference")
    result = kernel.paged_attention(query, keys, values, batch, form, implementation="native")
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=2e-5)


@pytest.mark.skipif(why_not() is not None, reason="no C compiler")
def test_without_sharing_a_result_is_the_same_in_any_batch() -> None:
    rng = np.random.default_rng(5)
    batch = shared_batch(rng, share=False)
    query, keys, values = make_tensors(60, 6, 2, 64, rng)
    together = kernel.paged_attention(query, keys, values, batch, PLAIN, implementation="native")
    for sequence in batch.sequences:
        rows = slice(sequence.first_row, sequence.first_row + sequence.rows)
        alone = kernel.AttentionBatch(
            [SequenceRows(0, sequence.rows, sequence.pages)],
            sequence.pages[-sequence.rows :],
            null_page=NULL_PAGE,
            device=torch.device("cpu"),
            dtype=torch.float32,
            share=False,
        )
        result = kernel.paged_attention(query[rows], keys, values, alone, PLAIN, implementation="native")
        assert torch.equal(result, together[rows])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_devices_and_dtypes(device: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    shapes = [(70, 1), (68, 1), (9, 1), (80, 40), (33, 7), (31, 5)]
    batch = make_batch(shapes, rng, device, dtype)
    query, keys, values = (tensor.to(dtype) for tensor in make_tensors(55, 6, 2, 16, rng, device))
    expected = kernel.paged_attention(query, keys, values, batch, AttentionForm(0.25), implementation="reference")
    tolerance = 2e-5 if dtype == torch.float32 else 2e-2
    result = kernel.paged_attention(query, keys, values, batch, AttentionForm(0.25))
    torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)


def mixed_magnitude(query, keys, values, batch: kernel.AttentionBatch, form: AttentionForm) -> tuple[torch.Tensor, ...]:
    """The exact result, and the sum of weights × |values| that errors are relative to, both in float64."""
    exact = kernel.reference(query.double(), keys.double(), values.double(), batch, form)
    return exact, kernel.reference(query.double(), keys.double(), values.double().abs(), batch, form)


@pytest.mark.skipif(why_not() is not None, reason="no C compiler")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("heads", [(6, 2), (2, 2), (7, 1)])
@pytest.mark.parametrize("size", [1, 5, 33, 64, 80, 96, 128, 256])
@pytest.mark.parametrize("form", [AttentionForm(0.1), AttentionForm(0.1, window=37), AttentionForm(0.1, softcap=2.0)])
def test_native_errs_by_no_more_than_rounded_weights_and_results(
    dtype: torch.dtype, heads: tuple[int, int], size: int, form: AttentionForm
) -> None:
    rng = np.random.default_rng(size)
    batch = shared_batch(rng, share=True, dtype=dtype)
    query, keys, values = (tensor.to(dtype) for tensor in make_tensors(60, *heads, size, rng))
    exact, magnitude = mixed_magnitude(query, keys, values, batch, form)
    result = kernel.paged_attention(query, keys, values, batch, form, implementation="native")
    assert result.dtype == dtype
    # bfloat16: half a unit of the 8 bits of each weight, above and below the fraction bar, and again of each result
    allowed = 3 * 2.0**-9 if dtype == torch.bfloat16 else 5e-6
    assert bool(((result.double() - exact).abs() <= allowed * magnitude + 1e-30).all())


@pytest.mark.skipif(why_not() is not None, reason="no C compiler")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("sign", [1, -1])
def test_maxima_follow_scores_that_grow_and_shrink_by_hundreds(dtype: torch.dtype, rows: int, sign: int) -> None:
    rng = np.random.default_rng(rows)
    sequences = [SequenceRows(0, rows, np.arange(390))]
    batch = kernel.AttentionBatch(
        sequences, np.arange(350, 350 + rows), null_page=NULL_PAGE, device=torch.device("cpu"), dtype=dtype
    )
    query, keys, values = make_tensors(rows, 3, 1, 64, rng)
    keys = keys * 0.02 + sign * torch.linspace(-0.3, 0.5, len(keys))[:, None, None]
    query, keys, values = (query.abs() * 8).to(dtype), keys.to(dtype), values.to(dtype)
    form = AttentionForm(1.0)
    exact, magnitude = mixed_magnitude(query, keys, values, batch, form)
    result = kernel.paged_attention(query, keys, values, batch, form, implementation="native")
    allowed = 3 * 2.0**-9 if dtype == torch.bfloat16 else 2e-4
    assert bool(((result.double() - exact).abs() <= allowed * magnitude).all())


def test_groups_are_padded_little_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MAX_GROUP_TOKENS", 300)
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 150, size=40)
    sequences = [SequenceRows(row, 1, np.zeros(length, np.int64)) for row, length in enumerate(lengths)]
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
    clean = kernel.paged_attention(query, keys, values, batch, PLAIN)
    only_second = np.setdiff1d(
        batch.sequences[1].pages, np.concatenate([batch.sequences[0].pages, batch.sequences[2].pages])
    )
    keys[only_second], values[only_second] = float("nan"), float("nan")
    broken = kernel.paged_attention(query, keys, values, batch, PLAIN)
    torch.testing.assert_close(broken[[0, 2]], clean[[0, 2]])
    assert broken[1].isnan().all()


@pytest.mark.parametrize("implementation", FAST)
@pytest.mark.parametrize("size", [20, 64])
@pytest.mark.parametrize("rows", [2, 50, 90])
@pytest.mark.parametrize("form", [PLAIN, AttentionForm(0.3, softcap=2.0), AttentionForm(0.3, window=7)])
@pytest.mark.parametrize("what", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_a_key_holds_reaches_only_the_rows_that_see_it(
    implementation, size: int, rows: int, form: AttentionForm, what: float, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(rows)
    pages = rng.permutation(NULL_PAGE)
    first, other = pages[:90], pages[90:178]
    branch = np.concatenate([first[:60], pages[180:210]])
    sequences = (
        SequenceRows(0, rows, first),
        SequenceRows(rows, rows, branch),
        SequenceRows(2 * rows, rows // 2, other),
    )
    slots = np.concatenate([each.pages[-each.rows :] for each in sequences])
    batch = kernel.AttentionBatch(sequences, slots, null_page=NULL_PAGE, device=torch.device("cpu"), dtype=dtype)
    query, keys, values = (tensor.to(dtype) for tensor in make_tensors(2 * rows + rows // 2, 6, 2, size, rng))
    clean = kernel.paged_attention(query, keys, values, batch, form, implementation=implementation)
    broken = first[89 - rows // 2]
    keys[broken], values[broken] = what, what
    result = kernel.paged_attention(query, keys, values, batch, form, implementation=implementation)
    sees = torch.zeros(len(query), dtype=torch.bool)
    for each in sequences:
        for row in range(each.rows):
            end = each.length - each.rows + row + 1
            sees[each.first_row + row] = bool((each.pages[max(0, end - (form.window or end)) : end] == broken).any())
    assert 0 < sees.sum() < len(query)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(result[~sees], clean[~sees], atol=tolerance, rtol=tolerance)
    assert not result[sees].isfinite().all(-1).any()


def test_write_pages_stores_rows_in_their_slots() -> None:
    rng = np.random.default_rng(3)
    batch = make_batch([(5, 2), (4, 4)], rng)
    cache = torch.zeros(NULL_PAGE + 1, 2, 8)
    rows = torch.randn(6, 2, 8)
    kernel.write_pages(cache, rows, batch)
    assert torch.equal(cache[batch.sequences[1].pages], rows[2:])
    assert int(cache.abs().sum(dim=(1, 2)).count_nonzero()) <= 6

"""Causal attention of packed queries over keys and values that lie scattered in pages of one token.

Shapes: T packed query rows of all sequences of a step, H query heads, KH key/value heads (H is a multiple of KH),
D head size, P pages. `query` is [T, H, D], `key_cache` and `value_cache` are [P, KH, D], the result is [T, H, D].
Query head h reads key/value head h // (H // KH).

`reference` is the definition, `grouped` the version for every torch device, `native` the one in C for the CPU,
`paged_attention` the dispatch.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels import native_attention
from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.native_attention import NativePlan, plan_native

Implementation = Literal["reference", "grouped", "native"]

MAX_GROUP_TOKENS = 65_536  # keys gathered at once: bounds the memory of a step whatever the batch
MAX_PADDED_QUERIES = 32  # sequences with more query rows are big enough to run alone
LEAST_FILL = 0.75  # a shorter sequence than this part of the group's longest one starts another group


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences computed in one call, padded to Q query rows and L keys; B sequences.

    `rows` [B*Q] are packed row numbers (a padded row repeats the sequence's last one and gives the same result again),
    `pages` [B*L] (padding: the null page), `mask` [B, 1, Q, L] is 0 where a row sees a key and -inf elsewhere.
    Keys before number `hidden` are seen by all rows, `seen` [2, B, Q] holds the first one that a row sees and the one
    after its last, both counted from `hidden`; `seen` is None where only the null page is hidden.
    """

    batch: int
    queries: int
    keys: int
    rows: torch.Tensor
    pages: torch.Tensor
    mask: torch.Tensor
    hidden: int
    seen: torch.Tensor | None


class AttentionBatch:
    """The input of the attention of every layer of one step; arranged once for all layers of the same window.

    Args:
        sequences: whose rows the step computes.
        slots: [T], the page that each packed row's key and value are written to.
        null_page: a page of finite values that fills up padded batches; nothing of it reaches a result.
        device: that of queries and pages.
        dtype: of queries and pages.
        share: read common prefixes once. Without, a sequence's result does not depend on the rest of the step.
    """

    def __init__(
        self,
        sequences: Sequence[SequenceRows],
        slots: NDArray[np.int64],
        *,
        null_page: int,
        device: torch.device,
        dtype: torch.dtype,
        share: bool = True,
    ) -> None:
        self.sequences = tuple(sequences)
        self.slots = torch.from_numpy(slots).to(device)
        self._null_page = null_page
        self._device = device
        self._dtype = dtype
        self._share = share
        self._groups: dict[int, tuple[Group, ...]] = {}
        self._plans: dict[tuple[int, int], NativePlan] = {}
        self.planning_seconds = 0.0

    def groups(self, window: int) -> tuple[Group, ...]:
        """Padded groups for `grouped`."""
        if window not in self._groups:
            start = time.perf_counter()
            self._groups[window] = tuple(
                _build_group(members, self._null_page, window, self._device, self._dtype)
                for members in group_sequences(self.sequences)
            )
            self.planning_seconds += time.perf_counter() - start
        return self._groups[window]

    def plan(self, repeats: int, window: int) -> NativePlan:
        """Items for `native`."""
        if (repeats, window) not in self._plans:
            start = time.perf_counter()
            self._plans[repeats, window] = plan_native(self.sequences, repeats, window=window, share=self._share)
            self.planning_seconds += time.perf_counter() - start
        return self._plans[repeats, window]


def write_pages(cache: torch.Tensor, rows: torch.Tensor, batch: AttentionBatch) -> None:
    """Store the keys or values [T, KH, D] of a step's packed rows in their pages."""
    cache.index_copy_(0, batch.slots, rows)


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    batch: AttentionBatch,
    form: AttentionForm,
    *,
    implementation: Implementation | None = None,
) -> torch.Tensor:
    """Attention of a step's packed rows, all of whose pages were written before. Shapes: see the module.

    Without `implementation`, `native` where there is a compiler and the tensors are on the CPU, else `grouped`.
    """
    chosen = implementation or ("native" if native_attention.supports(query) else "grouped")
    return _IMPLEMENTATIONS[chosen](query, key_cache, value_cache, batch, form)


def reference(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    batch: AttentionBatch,
    form: AttentionForm,
) -> torch.Tensor:
    """The definition: softmax(q·k × scaling)·v in float64, row by row."""
    result = torch.empty_like(query)
    repeats = query.shape[1] // key_cache.shape[1]
    for sequence in batch.sequences:
        for index in range(sequence.rows):
            end = sequence.length - sequence.rows + index + 1
            start = max(0, end - form.window) if form.window else 0
            seen = torch.from_numpy(sequence.pages[start:end]).to(query.device)
            keys = key_cache[seen].double().repeat_interleave(repeats, dim=1)
            values = value_cache[seen].double().repeat_interleave(repeats, dim=1)
            scores = torch.einsum("hd,lhd->hl", query[sequence.first_row + index].double(), keys) * form.scaling
            if form.softcap:
                scores = form.softcap * torch.tanh(scores / form.softcap)
            mixed = torch.einsum("hl,lhd->hd", torch.softmax(scores, dim=-1), values)
            result[sequence.first_row + index] = mixed.to(query.dtype)
    return result


def grouped(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    batch: AttentionBatch,
    form: AttentionForm,
) -> torch.Tensor:
    """Gather the pages of each group and run torch's fused attention on it."""
    result = torch.empty_like(query)
    for group in batch.groups(form.window):
        rows = query.index_select(0, group.rows)
        keys = _gather(key_cache, group)
        values = _gather(value_cache, group)
        broken = None if group.seen is None else _clear_broken(keys, values, group.hidden, group.seen)
        attend = _attend_alone if group.batch == 1 and group.queries > 1 and not form.softcap else _attend_padded
        mixed = attend(rows, keys, values, group, form)
        if broken is not None:
            mixed.masked_fill_(broken.view(-1, 1, 1), float("nan"))
        result.index_copy_(0, group.rows, mixed)
    return result


def native(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    batch: AttentionBatch,
    form: AttentionForm,
) -> torch.Tensor:
    """Run the C kernel; see `native_attention.py`."""
    plan = batch.plan(query.shape[1] // key_cache.shape[1], form.window)
    return native_attention.attend(query, key_cache, value_cache, plan, form)


def group_sequences(sequences: Sequence[SequenceRows]) -> list[list[SequenceRows]]:
    """Group the sequences to compute together: those with as many query rows (a power of two) and similar lengths."""
    groups: list[list[SequenceRows]] = []
    ordered = sorted(sequences, key=lambda each: (_padded_queries(each), each.length), reverse=True)
    for sequence in ordered:
        if groups and _fits(sequence, groups[-1]):
            groups[-1].append(sequence)
        else:
            groups.append([sequence])
    return groups


def _padded_queries(sequence: SequenceRows) -> int:
    return 1 << (sequence.rows - 1).bit_length()


def _fits(sequence: SequenceRows, members: list[SequenceRows]) -> bool:
    longest = members[0]
    return (
        _padded_queries(sequence) == _padded_queries(longest) <= MAX_PADDED_QUERIES
        and sequence.length >= LEAST_FILL * longest.length
        and (len(members) + 1) * longest.length <= MAX_GROUP_TOKENS
    )


def _build_group(
    members: Sequence[SequenceRows], null_page: int, window: int, device: torch.device, dtype: torch.dtype
) -> Group:
    # Keys before the window of a sequence's first row are left out.
    starts = [max(0, member.length - member.rows - window + 1) if window else 0 for member in members]
    batch, keys = len(members), max(member.length - start for member, start in zip(members, starts, strict=True))
    queries = max(member.rows for member in members)
    pages = np.full((batch, keys), null_page, dtype=np.int64)
    rows = np.empty((batch, queries), dtype=np.int64)
    last_seen = np.empty((batch, queries), dtype=np.int64)
    for index, (member, start) in enumerate(zip(members, starts, strict=True)):
        pages[index, : member.length - start] = member.pages[start:]
        offsets = np.minimum(np.arange(queries), member.rows - 1)
        rows[index] = member.first_row + offsets
        last_seen[index] = member.length - member.rows - start + offsets
    first_seen = np.maximum(last_seen - window + 1, 0) if window else np.zeros_like(last_seen)
    hidden = 0 if first_seen.any() else int(last_seen.min()) + 1
    seen = torch.from_numpy(np.stack((first_seen, last_seen + 1))).to(device)
    positions = torch.arange(keys, device=device)
    masked = (positions < seen[0].unsqueeze(-1)) | (positions >= seen[1].unsqueeze(-1))
    mask = torch.zeros(masked.shape, dtype=dtype, device=device).masked_fill_(masked, float("-inf"))
    return Group(
        batch,
        queries,
        keys,
        torch.from_numpy(rows.reshape(-1)).to(device),
        torch.from_numpy(pages.reshape(-1)).to(device),
        mask.unsqueeze(1),
        hidden,
        (seen - hidden).clamp_min_(0) if queries > 1 else None,
    )


def _gather(cache: torch.Tensor, group: Group) -> torch.Tensor:
    """[B, KH, L, D]. `index_select` on rows is several times faster on CPU than indexing with a matrix."""
    heads, size = cache.shape[1:]
    return cache.index_select(0, group.pages).view(group.batch, group.keys, heads, size).transpose(1, 2)


def _clear_broken(keys: torch.Tensor, values: torch.Tensor, hidden: int, seen: torch.Tensor) -> torch.Tensor:
    """Zero those keys and values [B, KH, L, D] from number `hidden` on that are not finite; which rows [B, Q] see one?

    torch's attention multiplies what is masked by 0, and 0 × NaN would reach rows that do not see it.
    """
    parts = [tensor.transpose(1, 2)[:, hidden:].flatten(2) for tensor in (keys, values)]
    broken = sum(part.mul(0).sum(-1) for part in parts).isnan()
    for part in parts:
        part.masked_fill_(broken.unsqueeze(-1), 0)
    before = torch.nn.functional.pad(broken.cumsum(-1), (1, 0))
    return before.gather(-1, seen[1]) > before.gather(-1, seen[0])


def _attend_padded(
    rows: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, group: Group, form: AttentionForm
) -> torch.Tensor:
    """Query heads that share a key head become further query rows of it, so that keys are never repeated."""
    key_heads, size = keys.shape[1], keys.shape[3]
    repeats = rows.shape[1] // key_heads
    folded = rows.view(group.batch, group.queries, key_heads, repeats, size).permute(0, 2, 3, 1, 4)
    folded = folded.reshape(group.batch, key_heads, repeats * group.queries, size)
    mask = group.mask if group.queries == 1 else group.mask.repeat(1, 1, repeats, 1)
    mixed = _attention(folded, keys, values, mask, form)
    mixed = mixed.reshape(group.batch, key_heads, repeats, group.queries, size).permute(0, 3, 1, 2, 4)
    return mixed.reshape(rows.shape)


def _attend_alone(
    rows: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, group: Group, form: AttentionForm
) -> torch.Tensor:
    """One sequence: key heads take the place of the batch and are broadcast to their query heads without a copy."""
    key_heads, size = keys.shape[1], keys.shape[3]
    repeats = rows.shape[1] // key_heads
    heads = rows.view(group.queries, key_heads, repeats, size).permute(1, 2, 0, 3)
    shape = (key_heads, repeats, group.keys, size)
    mixed = torch.nn.functional.scaled_dot_product_attention(
        heads,
        keys[0].unsqueeze(1).expand(shape),
        values[0].unsqueeze(1).expand(shape),
        attn_mask=group.mask,
        scale=form.scaling,
    )
    return mixed.permute(2, 0, 1, 3).reshape(rows.shape)


def _attention(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, form: AttentionForm
) -> torch.Tensor:
    if not form.softcap:
        return torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=form.scaling)
    scores = torch.matmul(query, keys.transpose(-1, -2)).float() * form.scaling
    scores = form.softcap * torch.tanh(scores / form.softcap) + mask
    return torch.matmul(scores.softmax(-1).to(values.dtype), values)


_Kernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, AttentionBatch, AttentionForm], torch.Tensor]
_IMPLEMENTATIONS: dict[Implementation, _Kernel] = {"reference": reference, "grouped": grouped, "native": native}

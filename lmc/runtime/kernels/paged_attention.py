"""Causal attention of packed queries over keys and values that lie scattered in pages of one token.

Shapes: T packed query rows of all sequences of a step, H query heads, KH key/value heads (H is a multiple of KH),
D head size, P pages. `query` is [T, H, D], `key_cache` and `value_cache` are [P, KH, D], the result is [T, H, D].
Query head h reads key/value head h // (H // KH).

`reference` is the definition, `grouped` the fast version for every torch device, `paged_attention` the dispatch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

Implementation = Literal["reference", "grouped"]

MAX_GROUP_TOKENS = 65_536  # keys gathered at once: bounds the memory of a step whatever the batch
MAX_PADDED_QUERIES = 32  # sequences with more query rows are big enough to run alone
LEAST_FILL = 0.75  # a shorter sequence than this part of the group's longest one starts another group


@dataclass(frozen=True, slots=True)
class SequenceRows:
    """The query rows of one sequence: packed rows `first_row … first_row+rows-1` are its last `rows` tokens.

    `pages` [L] holds the page of each of its L tokens, those of the query rows included.
    """

    first_row: int
    rows: int
    pages: NDArray[np.int64]

    @property
    def length(self) -> int:
        """Tokens the last row sees."""
        return int(self.pages.size)


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences computed in one call, padded to Q query rows and L keys; B sequences.

    `rows` [B*Q] are packed row numbers (a padded row repeats the sequence's last one and gives the same result again),
    `pages` [B*L] (padding: the null page), `mask` [B, 1, Q, L] is 0 where a row sees a key and -inf elsewhere.
    """

    batch: int
    queries: int
    keys: int
    rows: torch.Tensor
    pages: torch.Tensor
    mask: torch.Tensor


@dataclass(frozen=True, slots=True)
class AttentionBatch:
    """What the attention of every layer of one step needs to know. Make it with `plan_attention`.

    `slots` [T] is the page that each packed row's key and value are written to.
    """

    sequences: tuple[SequenceRows, ...]
    slots: torch.Tensor
    groups: tuple[Group, ...]


def plan_attention(
    sequences: Sequence[SequenceRows],
    slots: NDArray[np.int64],
    *,
    null_page: int,
    device: torch.device,
    dtype: torch.dtype,
) -> AttentionBatch:
    """Arrange a step's sequences into groups. `null_page` must hold finite values; nothing of it reaches a result."""
    groups = tuple(_build_group(members, null_page, device, dtype) for members in group_sequences(sequences))
    return AttentionBatch(tuple(sequences), torch.from_numpy(slots).to(device), groups)


def write_pages(cache: torch.Tensor, rows: torch.Tensor, batch: AttentionBatch) -> None:
    """Store the keys or values [T, KH, D] of a step's packed rows in their pages."""
    cache.index_copy_(0, batch.slots, rows)


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    batch: AttentionBatch,
    scaling: float,
    *,
    implementation: Implementation = "grouped",
) -> torch.Tensor:
    """Attention of a step's packed rows, all of whose pages were written before. Shapes: see the module."""
    return _IMPLEMENTATIONS[implementation](query, key_cache, value_cache, batch, scaling)


def reference(
    query: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, batch: AttentionBatch, scaling: float
) -> torch.Tensor:
    """The definition: softmax(q·k × scaling)·v in float64, row by row."""
    result = torch.empty_like(query)
    repeats = query.shape[1] // key_cache.shape[1]
    for sequence in batch.sequences:
        for index in range(sequence.rows):
            seen = torch.from_numpy(sequence.pages[: sequence.length - sequence.rows + index + 1]).to(query.device)
            keys = key_cache[seen].double().repeat_interleave(repeats, dim=1)
            values = value_cache[seen].double().repeat_interleave(repeats, dim=1)
            scores = torch.einsum("hd,lhd->hl", query[sequence.first_row + index].double(), keys) * scaling
            mixed = torch.einsum("hl,lhd->hd", torch.softmax(scores, dim=-1), values)
            result[sequence.first_row + index] = mixed.to(query.dtype)
    return result


def grouped(
    query: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, batch: AttentionBatch, scaling: float
) -> torch.Tensor:
    """Gather the pages of each group and run torch's fused attention on it."""
    result = torch.empty_like(query)
    for group in batch.groups:
        rows = query.index_select(0, group.rows)
        keys = _gather(key_cache, group)
        values = _gather(value_cache, group)
        attend = _attend_alone if group.batch == 1 and group.queries > 1 else _attend_padded
        result.index_copy_(0, group.rows, attend(rows, keys, values, group, scaling))
    return result


def group_sequences(sequences: Sequence[SequenceRows]) -> list[list[SequenceRows]]:
    """Which sequences to compute together: those with as many query rows (a power of two) and similar lengths."""
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


def _build_group(members: Sequence[SequenceRows], null_page: int, device: torch.device, dtype: torch.dtype) -> Group:
    batch, keys = len(members), max(member.length for member in members)
    queries = max(member.rows for member in members)
    pages = np.full((batch, keys), null_page, dtype=np.int64)
    rows = np.empty((batch, queries), dtype=np.int64)
    last_seen = np.empty((batch, queries), dtype=np.int64)
    for index, member in enumerate(members):
        pages[index, : member.length] = member.pages
        offsets = np.minimum(np.arange(queries), member.rows - 1)
        rows[index] = member.first_row + offsets
        last_seen[index] = member.length - member.rows + offsets
    hidden = torch.arange(keys, device=device) > torch.from_numpy(last_seen).to(device).unsqueeze(-1)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, float("-inf"))
    return Group(
        batch,
        queries,
        keys,
        torch.from_numpy(rows.reshape(-1)).to(device),
        torch.from_numpy(pages.reshape(-1)).to(device),
        mask.unsqueeze(1),
    )


def _gather(cache: torch.Tensor, group: Group) -> torch.Tensor:
    """[B, KH, L, D]. `index_select` on rows is several times faster on CPU than indexing with a matrix."""
    heads, size = cache.shape[1:]
    return cache.index_select(0, group.pages).view(group.batch, group.keys, heads, size).transpose(1, 2)


def _attend_padded(
    rows: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, group: Group, scaling: float
) -> torch.Tensor:
    """Query heads that share a key head become further query rows of it, so that keys are never repeated."""
    key_heads, size = keys.shape[1], keys.shape[3]
    repeats = rows.shape[1] // key_heads
    folded = rows.view(group.batch, group.queries, key_heads, repeats, size).permute(0, 2, 3, 1, 4)
    folded = folded.reshape(group.batch, key_heads, repeats * group.queries, size)
    mask = group.mask if group.queries == 1 else group.mask.repeat(1, 1, repeats, 1)
    mixed = torch.nn.functional.scaled_dot_product_attention(folded, keys, values, attn_mask=mask, scale=scaling)
    mixed = mixed.reshape(group.batch, key_heads, repeats, group.queries, size).permute(0, 3, 1, 2, 4)
    return mixed.reshape(rows.shape)


def _attend_alone(
    rows: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, group: Group, scaling: float
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
        scale=scaling,
    )
    return mixed.permute(2, 0, 1, 3).reshape(rows.shape)


_Kernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, AttentionBatch, float], torch.Tensor]
_IMPLEMENTATIONS: dict[Implementation, _Kernel] = {"reference": reference, "grouped": grouped}

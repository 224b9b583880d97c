"""The model on paged keys and values: transformers' modules, our attention."""

import itertools
import time
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AttentionInterface, PreTrainedModel

from lmc.cache.memory import Slice
from lmc.ir.errors import EngineError
from lmc.runtime.kernels.decoder import StepMemory
from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.paged_attention import AttentionBatch, paged_attention, write_pages
from lmc.runtime.local.modules.deterministic import BLOCK_ROWS, padded, prepare, row_by_row
from lmc.runtime.local.modules.rotary import replace_rotary

ATTENTION_NAME = "lmc_paged"


class LogitsRows(NamedTuple):
    """Rows of the step's logits that belong to a slice: from `first` on, one for each of the rows `read` of it."""

    rows: Slice
    read: Items[int]
    first: int

    @property
    def position(self) -> int:
        """The token of the sequence at which the first of them are."""
        return self.read[0]

    @property
    def last(self) -> int:
        """The first row that is not theirs."""
        return self.first + len(self.read)


@dataclass(frozen=True, slots=True)
class _Step:
    """The argument of each layer, passed through the model's keyword arguments."""

    batch: AttentionBatch
    keys: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]
    memory: StepMemory


class PagedModel:
    """A decoder whose layers keep keys and values in pages of one token, `[num_pages + 2, key heads, head size]` each.

    Two rows lie behind the pool's pages: `null_page` stays zero and fills up padded batches, `scratch_page` takes the
    keys and values of rows that are computed again only for their logits. With `deterministic` a row's results don't
    depend on what else is computed with it (see `deterministic.py`).

    Raises:
        EngineError: the pages don't fit in memory, or `deterministic` can't be kept.
    """

    def __init__(self, model: PreTrainedModel, num_pages: int, *, deterministic: bool = False) -> None:
        if deterministic:
            prepare(model)
        self._deterministic = deterministic
        self.null_page = num_pages
        self.scratch_page = num_pages + 1
        self.device = model.device
        self.dtype = model.dtype
        self._model = model
        self._rotary = replace_rotary(model)
        self._planning_seconds = 0.0
        shape = (num_pages + 2, *kv_shape(model.config))
        layers = range(model.config.num_hidden_layers)
        # A page is written before it is read, so only the null page needs a value: a pool of gigabytes starts at once,
        # and its memory is taken as it fills.
        try:
            self._keys = tuple(torch.empty(shape, dtype=self.dtype, device=self.device) for _ in layers)
            self._values = tuple(torch.empty(shape, dtype=self.dtype, device=self.device) for _ in layers)
        except RuntimeError as error:  # out of memory, on any device
            raise EngineError(
                f"a KV pool of {num_pages} tokens does not fit in memory", remedy="give less kv_tokens"
            ) from error
        for pages in (*self._keys, *self._values):
            pages[self.null_page :] = 0
        AttentionInterface.register(ATTENTION_NAME, _attention)
        model.set_attn_implementation(ATTENTION_NAME)

    @property
    def vocabulary_size(self) -> int:
        """Token ids the model can take."""
        embeddings: Any = self._model.get_input_embeddings()
        return int(embeddings.weight.shape[0])

    def rope_length(self, rows: int) -> int:
        """Return `Namespace.rope_length` of a request that computes up to `rows` rows."""
        return 0 if self._rotary is None else self._rotary.frequency_length(rows)

    def release(self) -> None:
        """Release weights and pages, even if this object is still referenced; it can't be called any more."""
        del self._model, self._keys, self._values

    def take_planning_seconds(self) -> float:
        """Return the seconds that calls have spent on planning since the last time."""
        taken, self._planning_seconds = self._planning_seconds, 0.0
        return taken

    def forward(self, slices: Items[Slice]) -> tuple[torch.Tensor, list[LogitsRows]]:
        """Compute the rows of all slices and return the wanted logits [R, vocabulary] with whose rows they are."""
        computed = [rows for rows in slices if rows.end > rows.start]
        if not computed:
            return torch.empty(0, self.vocabulary_size, device=self.device), []
        start = time.perf_counter()
        tokens = np.concatenate([rows.sequence.tokens_between(rows.start, rows.end) for rows in computed])
        counts = [rows.end - rows.start for rows in computed]
        firsts = [0, *itertools.accumulate(counts[:-1])]
        shifts = [rows.start - first for rows, first in zip(computed, firsts, strict=True)]
        positions = np.arange(tokens.size) + np.repeat(shifts, counts)
        wanted, owners = _wanted_logits(computed)
        if self._deterministic:
            return self._call_in_blocks(computed, tokens, positions, wanted), owners
        sequences = [
            SequenceRows(first, count, rows.sequence.pages[: rows.end])
            for rows, first, count in zip(computed, firsts, counts, strict=True)
        ]
        if self._rotary is not None:
            self._rotary.choose([rows.sequence.cache_key.rope_length for rows in computed], counts)
        batch = self._batch(sequences, np.concatenate([rows.slots for rows in computed]), share=True)
        self._planning_seconds += time.perf_counter() - start
        return self._call(tokens, positions, wanted, batch), owners

    def _call_in_blocks(
        self, slices: Items[Slice], tokens: np.ndarray, positions: np.ndarray, wanted: np.ndarray
    ) -> torch.Tensor:
        """Logits of the packed rows, computed in order, a fixed number in each call.

        Rows that see keys of the same step come after them: slices are in the order in which they were planned.
        """
        of_rows = [(rows.sequence, row + 1) for rows in slices for row in range(rows.start, rows.end)]
        slots = np.concatenate([rows.slots for rows in slices])
        logits = [torch.empty(0, self.vocabulary_size, dtype=self.dtype, device=self.device)]
        for first in range(0, tokens.size, BLOCK_ROWS):
            block = slice(first, first + BLOCK_ROWS)
            members = of_rows[block]
            if self._rotary is not None:
                lengths = [sequence.cache_key.rope_length for sequence, _ in members]
                self._rotary.choose([*lengths, 0], [*(1 for _ in lengths), BLOCK_ROWS - len(lengths)])
            sequences = row_by_row([sequence.pages[:seen] for sequence, seen in members], self.null_page)
            batch = self._batch(sequences, padded(slots[block], self.scratch_page), share=False)
            own = wanted[(wanted >= first) & (wanted < first + BLOCK_ROWS)] - first
            kept = np.arange(BLOCK_ROWS if own.size else 0)
            logits.append(self._call(padded(tokens[block], 0), padded(positions[block], 0), kept, batch)[own])
        return torch.cat(logits)

    def _call(
        self, tokens: np.ndarray, positions: np.ndarray, wanted: np.ndarray, batch: AttentionBatch
    ) -> torch.Tensor:
        """Logits of the wanted ones of packed rows."""
        with torch.inference_mode():
            output = self._model(
                input_ids=self._tensor(tokens).unsqueeze(0),
                position_ids=self._tensor(positions).unsqueeze(0),
                use_cache=False,
                logits_to_keep=self._tensor(wanted),
                lmc_step=_Step(batch, self._keys, self._values, StepMemory(batch.slots)),
            )
        self._planning_seconds += batch.planning_seconds
        return output.logits[0]

    def _batch(self, sequences: Items[SequenceRows], slots: np.ndarray, *, share: bool) -> AttentionBatch:
        return AttentionBatch(
            sequences, slots, null_page=self.null_page, device=self.device, dtype=self.dtype, share=share
        )

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values.astype(np.int64)).to(self.device)


def kv_shape(config: Any) -> tuple[int, int]:
    """Key/value heads and head size of a model."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return config.num_key_value_heads, size


def bytes_per_token(config: Any, dtype: torch.dtype) -> int:
    """Memory of one page over all layers, keys and values together."""
    heads, size = kv_shape(config)
    return 2 * config.num_hidden_layers * heads * size * dtype.itemsize


def _wanted_logits(slices: Items[Slice]) -> tuple[np.ndarray, list[LogitsRows]]:
    """Packed row numbers whose logits are wanted, and to whom they belong."""
    wanted: list[int] = []
    owners: list[LogitsRows] = []
    first_row = 0
    for rows in slices:
        read = rows.sequence.rows_to_read(rows.start, rows.end)
        if read:
            owners.append(LogitsRows(rows, read, len(wanted)))
            wanted += [row + first_row - rows.start for row in read]
        first_row += rows.end - rows.start
    return np.array(wanted, np.int64), owners


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    lmc_step: _Step,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The interface of transformers: heads come as [1, heads, T, size], the result goes as [1, T, heads, size]."""
    del attention_mask  # no mask function is registered for this attention, so there is none
    layer: Any = module.layer_idx
    keys, values = lmc_step.keys[layer], lmc_step.values[layer]
    write_pages(keys, key[0].transpose(0, 1), lmc_step.batch)
    write_pages(values, value[0].transpose(0, 1), lmc_step.batch)
    rows = query[0].transpose(0, 1).contiguous()
    form = AttentionForm(scaling, sliding_window or 0, softcap or 0.0)
    return paged_attention(rows, keys, values, lmc_step.batch, form).unsqueeze(0), None

"""Draws from rows of logits in C (`native/sampling.c`); see `sampling.py` for what they are."""

import ctypes
import struct
import threading
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels.choices import Choice, Chosen, Floats, bounded
from lmc.runtime.kernels.native.library import library

_ROW = np.dtype(
    [
        ("own", np.uintp),
        ("changed_ids", np.uintp),
        ("changed", np.uintp),
        ("weights", np.uintp),
        ("mask", np.uintp),
        ("mask_words", np.int64),
        ("changes", np.int64),
        ("uniform", np.float64),
        ("top_p", np.float64),
        ("temperature", np.float32),
        ("min_p", np.float32),
        ("top_k", np.int32),
        ("top", np.int32),
        ("first_top", np.int32),
        ("token", np.int32),
        ("highest", np.float32),
        ("logprob", np.float32),
    ]
)  # as `Row` in sampling.c
_pack = struct.Struct("@" + "".join(kind.char for kind, *_ in (_ROW.fields or {}).values())).pack


class _Sample(ctypes.Structure):
    """As `Sample` in sampling.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rows", "top_ids", "top_logprobs", "scratch")),
        *((name, ctypes.c_int64) for name in ("row_count", "size", "scratch_bytes")),
    )


class _Scratch(threading.local):
    """Memory that each thread keeps from one call to the next: taking it anew costs more than a draw."""

    def __init__(self) -> None:
        self._kept = np.empty(0, np.uint8)

    def of(self, size: int) -> NDArray[np.uint8]:
        """At least `size` bytes, with anything in them."""
        if self._kept.size < size:
            self._kept = np.empty(size, np.uint8)
        return self._kept


_SCRATCH = _Scratch()


def native(logits: Floats, choices: Sequence[Choice]) -> list[Chosen]:
    """In C; see the module."""
    rows, top_ids, top_logprobs = run_native(logits, choices)
    highest, tokens, logprobs = (rows[name].tolist() for name in ("highest", "token", "logprob"))
    if not top_ids.size and all(choice.logprobs is None for choice in choices):
        return list(map(Chosen, highest, tokens))
    tops = list(zip(top_ids.tolist(), top_logprobs.tolist(), strict=True))
    return [
        Chosen(highest[row], tokens[row])
        if choice.logprobs is None
        else Chosen(highest[row], tokens[row], logprobs[row], tuple(tops[first : first + count]))
        for row, (choice, first, count) in enumerate(
            zip(choices, rows["first_top"].tolist(), rows["top"].tolist(), strict=True)
        )
    ]


def run_native(
    logits: Floats, choices: Sequence[Choice], weights: Floats | None = None
) -> tuple[NDArray[np.void], NDArray[np.int32], Floats]:
    """Rows with their results; ids and log-probabilities of the likeliest. `weights` is for a single row."""
    count, size = logits.shape
    own, own_bytes = logits.ctypes.data, 4 * size
    weights_at = 0 if weights is None else weights.ctypes.data
    masks: dict[int, tuple[int, int]] = {}  # many rows have the same
    packed: list[bytes] = []
    first_top = 0
    for choice in choices:
        ids_at = values_at = changes = mask_at = words = 0
        temperature, mask = choice.temperature, choice.mask
        if choice.changes is not None:
            ids, values = choice.changes
            ids_at, values_at, changes = ids.ctypes.data, values.ctypes.data, ids.size
        if mask is not None:
            found = masks.get(id(mask))
            if found is None:
                found = masks[id(mask)] = (mask.ctypes.data, mask.size)
            mask_at, words = found
        if temperature:
            temperature = bounded(temperature)
        top = -1 if choice.logprobs is None else min(choice.logprobs, size)
        packed.append(
            _pack(
                own,
                ids_at,
                values_at,
                weights_at,
                mask_at,
                words,
                changes,
                choice.uniform,
                choice.top_p,
                temperature,
                choice.min_p,
                min(choice.top_k, size),
                top,
                first_top,
                0,
                0.0,
                0.0,
            )
        )
        own += own_bytes
        if top > 0:
            first_top += top
    if len(packed) != count:
        raise ValueError(f"{len(packed)} choices for {count} rows")
    rows = np.frombuffer(bytearray().join(packed), _ROW)
    top_ids = np.zeros(first_top, np.int32)
    top_logprobs = np.full(first_top, np.nan, np.float32)
    threads = torch.get_num_threads()
    scratch_bytes = library().lmc_sample_scratch(size)
    scratch = _SCRATCH.of(scratch_bytes * threads)
    call = _Sample(
        rows.ctypes.data,
        top_ids.ctypes.data,
        top_logprobs.ctypes.data,
        scratch.ctypes.data,
        count,
        size,
        scratch_bytes,
    )
    library().lmc_sample(ctypes.byref(call), threads)
    return rows, top_ids, top_logprobs

"""Turns documents into fixed-length token rows with a loss weight for every position."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import torch

from training.document import END_OF_TEXT, Document, Kind, Split
from training.synthetic import copying_row
from training.tasks import FAMILIES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from training.document import Segment
    from training.recipe import Stage

CHARACTERS_PER_TOKEN = 2.9
ANSWER_WEIGHT = 1.0
FRAME_WEIGHT = 0.2
SHORT_ANSWER = 3
PROMPT_WEIGHT = 0.3
PROMPT_SHARE = 0.15


@dataclass(frozen=True)
class Batch:
    """`tokens` [rows, length + 1]; `weights` [rows, length] says how much predicting the next token counts."""

    tokens: torch.Tensor
    weights: torch.Tensor


def encode_segments(tokenizer: Tokenizer, document: Document) -> list[list[int]]:
    """Return the token ids of every segment; text that looks like a special token stays text."""
    plain = [segment.text for segment in document.segments if segment.kind in (Kind.TEXT, Kind.ANSWER)]
    encoded = iter(tokenizer.encode_batch_fast(plain, add_special_tokens=False))
    return [
        next(encoded).ids if segment.kind in (Kind.TEXT, Kind.ANSWER) else [special_id(tokenizer, segment.text)]
        for segment in document.segments
    ]


def special_id(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a special token; KeyError when the vocabulary lacks it."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(token)
    return found


def value_tokens(tokenizer: Tokenizer, segment: Segment) -> list[tuple[int, int]]:
    """Return the token range `[start, stop)`, inside the segment, of each of its values."""
    offsets = tokenizer.encode(segment.text, add_special_tokens=False).offsets
    ranges: list[tuple[int, int]] = []
    for start, stop in segment.values:
        touched = [index for index, (left, right) in enumerate(offsets) if left < stop and right > start]
        ranges.append((touched[0], touched[-1] + 1))
    return ranges


def encode(tokenizer: Tokenizer, document: Document) -> tuple[list[int], list[float]]:
    """Return token ids and, for each, how much learning to write it counts: 0 for what the prompt gives.

    An answer of fewer than SHORT_ANSWER tokens counts as much as one of that many: a letter decides as much as a name.
    In an object only its values count fully: keys and punctuation repeat, and would outweigh everything else.
    """
    ids: list[int] = []
    learned: list[float] = []
    for segment, own in zip(document.segments, encode_segments(tokenizer, document), strict=True):
        ids += own
        weight = ANSWER_WEIGHT if segment.kind in (Kind.ANSWER, Kind.ANSWER_END) else 0.0
        if segment.kind is Kind.ANSWER and segment.graded:
            weight *= max(1.0, SHORT_ANSWER / max(1, len(own)))
        if not segment.values:
            learned += [weight] * len(own)
            continue
        weights = [FRAME_WEIGHT] * len(own)
        for start, stop in value_tokens(tokenizer, segment):
            weights[start:stop] = [ANSWER_WEIGHT] * (stop - start)
        learned += weights
    return ids, learned


def _row(rng: Random, tokenizer: Tokenizer, length: int, stage: Stage) -> tuple[list[int], list[float]]:
    """Fill one row: it starts with a fresh document, only its last one may be cut."""
    names = list(stage.families)
    shares = list(stage.families.values())
    ids: list[int] = []
    learned: list[float] = []
    end = special_id(tokenizer, END_OF_TEXT)
    while len(ids) < length + 1:
        room = (length + 1 - len(ids)) * CHARACTERS_PER_TOKEN
        wanted = int(min(room, length * CHARACTERS_PER_TOKEN * rng.uniform(*stage.document_share)))
        family = rng.choices(names, shares)[0]
        own_ids, own_learned = encode(tokenizer, FAMILIES[family](rng, Split.TRAIN, max(200, wanted)))
        ids += [*own_ids, end]
        learned += [*own_learned, 0.0]
    return ids[: length + 1], learned[: length + 1]


def training_batch(tokenizer: Tokenizer, seed: int, step: int, rows: int, length: int, stage: Stage) -> Batch:
    """Make the batch of one step; the same arguments always give the same batch.

    A share of the rows, `stage.copying`, holds no text but repeated random tokens.
    """
    rng = Random(f"{seed}/{step}")
    tokens: list[list[int]] = []
    weights: list[list[float]] = []
    for _ in range(rows):
        if rng.random() < stage.copying:
            own_tokens, own_weights = copying_row(rng, tokenizer.get_vocab_size(), length)
            tokens.append(own_tokens)
            weights.append(own_weights)
            continue
        ids, learned = _row(rng, tokenizer, length, stage)
        tokens.append(ids)
        weights.append([_weight(rng, own) for own in learned[1:]])
    return Batch(torch.tensor(tokens), torch.tensor(weights))


def _weight(rng: Random, learned: float) -> float:
    if learned:
        return learned
    return PROMPT_WEIGHT if rng.random() < PROMPT_SHARE else 0.0

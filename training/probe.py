"""A quick look at held-out accuracy while training runs: an answer counts when every token is the likeliest."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from training.document import Split
from training.packing import encode
from training.tasks import FAMILIES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from training.model import Llama


@torch.no_grad()
def accuracies(model: Llama, tokenizer: Tokenizer, documents: int, characters: int, split: Split) -> dict[str, float]:
    """Return the share of answers written right, per family."""
    found: dict[str, float] = {}
    for family, generate in FAMILIES.items():
        right = total = 0
        for seed in range(documents):
            ids, learned = encode(tokenizer, generate(Random(f"probe/{seed}"), split, characters))
            tokens = torch.tensor([ids[:4096]])
            logits = functional.linear(model.hidden(tokens), model.embedding.bfloat16())
            hits = (logits[0, :-1].argmax(-1) == tokens[0, 1:]).tolist()
            span_right = True
            for position, hit in enumerate(hits, start=1):
                if learned[position]:
                    span_right = span_right and hit
                if learned[position] and (position + 1 >= len(ids[:4096]) or not learned[position + 1]):
                    right += span_right
                    total += 1
                    span_right = True
        found[family] = round(right / max(1, total), 3)
    return found

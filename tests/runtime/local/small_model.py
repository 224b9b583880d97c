"""A vocabulary and a model small enough to go through all they can say: a text has many tokenizations."""

import json

import numpy as np
import torch

from lmc.ir.tokens.tokenizer import Tokenizer

SMALL_TOKENS = ("<|end|>", "a", "b", "c", "ab", "bc", "ca", "abc", "cab", "aa", "bcab")
MERGES = (("a", "b"), ("b", "c"), ("c", "a"), ("ab", "c"), ("c", "ab"), ("a", "a"), ("bc", "ab"))
END = 0


def small_tokenizer() -> Tokenizer:
    definition = {
        "version": "1.0",
        "model": {
            "type": "BPE",
            "vocab": {t: i for i, t in enumerate(SMALL_TOKENS)},
            "merges": [" ".join(m) for m in MERGES],
        },
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "added_tokens": [
            {"id": END, "content": "<|end|>", "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        ],
    }
    return Tokenizer.from_json(json.dumps(definition), eos_tokens=["<|end|>"])


def small_logits_after(prefix: tuple[int, ...]) -> torch.Tensor:
    generator = np.random.default_rng(abs(hash(prefix)))
    return torch.from_numpy(generator.standard_normal(len(SMALL_TOKENS)).astype(np.float32) * 1.5)

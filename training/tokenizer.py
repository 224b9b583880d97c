"""Builds the tokenizer: byte-level BPE learned on generated text, every digit a token of its own."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from training.document import END_OF_TEXT, SPECIAL_TOKENS, TURN_END, Kind, Split
from training.tasks import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
SAMPLE_DOCUMENTS = 2500
TOKENIZER_SEED = 20_000


def sample_texts(documents: int) -> Iterator[str]:
    """Yield training text without special tokens, all families in turn."""
    rng = Random(TOKENIZER_SEED)
    families = list(FAMILIES.values())
    for index in range(documents):
        document = families[index % len(families)](rng, Split.TRAIN, 1200)
        for segment in document.segments:
            if segment.kind in (Kind.TEXT, Kind.ANSWER):
                yield segment.text


def build(vocabulary_size: int, documents: int = SAMPLE_DOCUMENTS) -> Tokenizer:
    """Learn a tokenizer. It adds no token by itself and round-trips any bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample_texts(documents), trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path, context_length: int) -> None:
    """Write tokenizer.json and tokenizer_config.json the way transformers reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "add_bos_token": False,
        "add_eos_token": False,
        "add_prefix_space": False,
        "bos_token": END_OF_TEXT,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": TURN_END,
        "model_max_length": context_length,
        "pad_token": END_OF_TEXT,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

"""Small trained tokenizers of the kinds that models have, built here so that no test downloads anything."""

from __future__ import annotations

from functools import cache

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from lmc.ir.tokens.tokenizer import Tokenizer

# The published patterns of these models, spelled out here and not imported, so that a slip in lmc's copy is seen.
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Drops the thoughts of every assistant turn but the last, and opens the next one with a thought.
STRIPS_THOUGHTS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' and not loop.last %}{{ message.content.split('[/T]')[-1] }}"
    "{% else %}{{ message.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n[T]{% endif %}"
)
TRIMS = CHATML.replace("message.content", "message.content | trim")
_CORPUS = [
    "I'll say it's what they've done; we're here, I'd go, don't!",
    "The essay is on topic: yes or no? 1234 5678 90",
    "x = {'a': 1}\n\n\n    return x\r\n\t\tpass  # ...",
    "<|im_end|> and <think> are text here, so is é, ü, 日本語 and 😀.",
    "hello hello world world the the the and and to to of of",
] * 4


@cache
def trained(kind: str, template: str | None = CHATML, bos: bool = False) -> Tokenizer:
    """A byte-level BPE of about 400 tokens; ``kind`` is one of ``KINDS`` or ``NORMALIZING_KINDS``."""
    raw = tokenizers.Tokenizer(models.BPE())
    words, *normal_form = kind.split("+")
    raw.pre_tokenizer = _pre_tokenizer(words)
    if normal_form:
        raw.normalizer = NORMALIZERS[normal_form[0]]
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    raw.train_from_iterator(_CORPUS, trainer)
    raw.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL_TOKENS])
    return Tokenizer.from_json(
        raw.to_str(),
        bos_token="<|endoftext|>" if bos else None,
        eos_tokens=["<|endoftext|>", "<|im_end|>"],
        chat_template=template,
    )


def _pre_tokenizer(kind: str) -> pre_tokenizers.PreTokenizer:
    if kind == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if kind == "digits":
        return pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    pattern = {"llama3": LLAMA3_PATTERN, "qwen": QWEN_PATTERN, "gpt2-split": GPT2_PATTERN}[kind]
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


KINDS = ("gpt2", "gpt2-split", "llama3", "qwen", "digits")
NORMALIZERS = {
    "nfc": normalizers.NFC(),
    "nfd": normalizers.NFD(),
    "nfkc": normalizers.NFKC(),
    "nfkd": normalizers.NFKD(),
    "twice": normalizers.Sequence([normalizers.NFD(), normalizers.NFC()]),
}
# What they encode is not always the text itself, but a normal form of it. The models of the qwen family do so.
NORMALIZING_KINDS = (*(f"qwen+{form}" for form in NORMALIZERS), "gpt2+nfc", "llama3+nfkc")

"""Final token boundaries: places in a text that appended text can't change, proven for the tokenizers known here.

Two steps of a tokenizer look ahead. Its pre-tokenizer cuts the text into words; for the patterns below the boundary two
words before the end is final. Its normalizer may join a character with marks that follow it, as NFC does. No form of
Unicode normalization joins an ASCII character to preceding text, so all text before one is normalized the same whatever
follows.
"""

from __future__ import annotations

import re
from typing import Any

from tokenizers import pre_tokenizers

# Pre-tokenizer patterns for which a boundary two pre-tokens before the end of the text is final, whatever follows.
# Each alternative looks at most one character past its match, so text added at the end can only change the last
# pre-token and, through the English contractions ("'" + "l" + "l"), the one before it.
_GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_PATTERN = _LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
_STABLE_PATTERNS = frozenset({_GPT2_PATTERN, _LLAMA3_PATTERN, _QWEN_PATTERN})
UNSTABLE_WORDS = 2
_STABLE_NORMALIZERS = frozenset({"NFC", "NFD", "NFKC", "NFKD"})
_KEEPING_PRE_TOKENIZERS = frozenset({"ByteLevel", "Digits", "Metaspace"})
_JOINED_CHARACTERS = 4
"""Characters that a form of Unicode normalization makes one of at most: U+1F82 has four in its decomposition."""
_LAST_ASCII = re.compile(r"[\x00-\x7f][^\x00-\x7f]*\Z")


def has_stable_words(definition: dict[str, Any]) -> bool:
    """Return True if the tokenizer of a ``tokenizer.json`` has stable word boundaries in normalized text."""
    return _is_stable(definition.get("pre_tokenizer"))


def normalizes_stably(definition: dict[str, Any]) -> bool:
    """Return True if the normalizer, if any, leaves text before an ASCII character alone."""
    normalizer = definition.get("normalizer")
    if normalizer is None:
        return True
    if not isinstance(normalizer, dict):
        return False
    if normalizer.get("type") == "Sequence":
        return all(normalizes_stably({"normalizer": member}) for member in normalizer.get("normalizers", ()))
    return normalizer.get("type") in _STABLE_NORMALIZERS


def longest_token(definition: dict[str, Any]) -> int | None:
    """Characters of a text that one token stands for at most; None where the tokenizer may drop some, or is not known.

    Known are byte-complete BPE models: each character of the text is in some token, and none is an unknown one that
    stands for any number of characters.
    """
    model = definition.get("model")
    if not isinstance(model, dict) or model.get("type") != "BPE" or not isinstance(model.get("vocab"), dict):
        return None
    pre_tokenizer = definition.get("pre_tokenizer")
    maps_bytes = any(member.get("type") == "ByteLevel" for member in _members(pre_tokenizer, "pretokenizers") or ())
    if not maps_bytes and model.get("byte_fallback") is not True:
        return None
    bytes_of_text = pre_tokenizers.ByteLevel.alphabet() if maps_bytes else [f"<0x{byte:02X}>" for byte in range(256)]
    joined = _joined_characters(definition.get("normalizer"))
    if not model["vocab"].keys() >= set(bytes_of_text) or not _keeps_characters(pre_tokenizer) or joined is None:
        return None
    return joined * max(map(len, model["vocab"]), default=1)


def before_last_ascii(text: str) -> str:
    """``text`` up to its last ASCII character, that one excluded."""
    found = _LAST_ASCII.search(text)
    return "" if found is None else text[: found.start()]


def _is_stable(pre_tokenizer: Any) -> bool:
    """Return True if the early boundaries of the pre-tokenizer are proven final."""
    if not isinstance(pre_tokenizer, dict):
        return False
    kind = pre_tokenizer.get("type")
    if kind == "ByteLevel":
        return bool(pre_tokenizer.get("use_regex", True)) and not pre_tokenizer.get("add_prefix_space")
    if kind == "Split":
        pattern = pre_tokenizer.get("pattern", {})
        return (
            pattern.get("Regex") in _STABLE_PATTERNS
            and pre_tokenizer.get("behavior") == "Isolated"
            and not pre_tokenizer.get("invert")
        )
    if kind == "Digits":
        return bool(pre_tokenizer.get("individual_digits"))
    if kind == "Sequence":
        members = [member for member in pre_tokenizer.get("pretokenizers", ()) if isinstance(member, dict)]
        splitters = [member for member in members if not _only_maps_bytes(member)]
        cuts_words = any(member.get("type") in {"ByteLevel", "Split"} for member in splitters)
        return cuts_words and all(_is_stable(member) for member in splitters)
    return False


def _only_maps_bytes(pre_tokenizer: dict[str, Any]) -> bool:
    return (
        pre_tokenizer.get("type") == "ByteLevel"
        and pre_tokenizer.get("use_regex") is False
        and not pre_tokenizer.get("add_prefix_space")
    )


def _members(part: Any, field: str) -> list[dict[str, Any]] | None:
    """The steps of a pre-tokenizer or normalizer; None where one has an unknown form."""
    if part is None:
        return []
    if not isinstance(part, dict):
        return None
    if part.get("type") != "Sequence":
        return [part]
    found: list[dict[str, Any]] = []
    for member in part.get(field, ()):
        inner = _members(member, field)
        if inner is None:
            return None
        found += inner
    return found


def _keeps_characters(pre_tokenizer: Any) -> bool:
    """Return True if each character of the normalized text is part of some word."""
    members = _members(pre_tokenizer, "pretokenizers")
    return members is not None and all(
        member.get("type") in _KEEPING_PRE_TOKENIZERS
        or (member.get("type") in {"Split", "Punctuation"} and member.get("behavior") in {"Isolated", "Contiguous"})
        for member in members
    )


def _joined_characters(normalizer: Any) -> int | None:
    """Characters of a text that become one at most; None where any number may."""
    members = _members(normalizer, "normalizers")
    if members is None:
        return None
    joined = 1
    for member in members:
        kind = member.get("type")
        if kind in _STABLE_NORMALIZERS:
            joined *= _JOINED_CHARACTERS
        elif kind == "Replace":
            pattern, content = member.get("pattern"), member.get("content")
            text = pattern.get("String") if isinstance(pattern, dict) else None
            if not isinstance(text, str) or not isinstance(content, str) or not 0 < len(text) <= len(content):
                return None
        elif kind != "Prepend":
            return None
    return joined

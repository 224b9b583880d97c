"""Reads a vocabulary from a tokenizer or a folder: the bytes of each token, as its decoder gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers

from lmc.ir.errors import ConstraintError

_NOT_A_BYTE = 256
_BYTE_TOKEN = re.compile("<0x([0-9a-fA-F]{2})>")


def byte_level_alphabet() -> dict[str, int]:
    """The byte of each character in which byte-level BPE spells tokens (Radford et al. 2019, GPT-2).

    Printable Latin-1 characters stand for themselves, the other bytes are the characters from U+0100 on, in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in sorted(printable)} | {chr(256 + at): byte for at, byte in enumerate(others)}


def bytes_of_spellings(spellings: list[str], alphabet: Mapping[str, int]) -> list[bytes]:
    """Each token's bytes: those that its characters stand for, or its own text where one of them stands for none."""
    # All tokens at once: several times faster than one by one.
    codes = np.frombuffer("".join(spellings).encode("utf-32-le", "surrogatepass"), "<u4")
    ends = np.cumsum(np.fromiter(map(len, spellings), np.int64, len(spellings)))
    table = np.full(max(map(ord, alphabet)) + 2, _NOT_A_BYTE, np.uint16)
    for character, byte in alphabet.items():
        table[ord(character)] = byte
    found = table[np.minimum(codes, len(table) - 1)]
    data, offsets = found.astype(np.uint8).tobytes(), ends.tolist()
    tokens = [data[start:end] for start, end in zip([0, *offsets], offsets, strict=False)]
    for token_id in np.unique(np.searchsorted(ends, np.flatnonzero(found == _NOT_A_BYTE), "right")).tolist():
        tokens[token_id] = spellings[token_id].encode()
    return tokens


def token_bytes(tokenizer: tokenizers.Tokenizer) -> tuple[list[bytes], set[int]]:
    """The bytes of every token by id, and the ids of those that are no text: special ones and the unknown token.

    Raises:
        ConstraintError: the decoder is none of those that give each token bytes of its own.
    """
    steps = _decoder_steps(tokenizer)
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    spellings = [""] * (max(vocabulary.values(), default=-1) + 1)
    for spelling, token_id in vocabulary.items():
        spellings[token_id] = spelling
    special: set[int] = set()
    for token_id, token in tokenizer.get_added_tokens_decoder().items():
        if token.special:
            special.add(token_id)
    unknown = _unknown_token(tokenizer)
    if unknown in vocabulary:
        special.add(vocabulary[unknown])
    tokens = _decoded(spellings, steps)
    return [b"" if token_id in special else token for token_id, token in enumerate(tokens)], special


def plain_encoder(tokenizer: tokenizers.Tokenizer) -> Callable[[str], list[int]]:
    """Canonical tokens of a text in the middle of another: no added token is looked for, nothing is put before it."""
    parts = {"normalizer": tokenizer.normalizer, "pre_tokenizer": tokenizer.pre_tokenizer}
    definition = {key: _without_prefix(_state(part)) for key, part in parts.items()}
    definition |= {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}
    frame = tokenizers.Tokenizer.from_str(json.dumps(definition))
    plain = tokenizers.Tokenizer(tokenizer.model)  # shares the model
    if frame.normalizer is not None:
        plain.normalizer = frame.normalizer
    if frame.pre_tokenizer is not None:
        plain.pre_tokenizer = frame.pre_tokenizer
    return lambda text: plain.encode(text, add_special_tokens=False).ids


def refused(what: str) -> ConstraintError:
    """Return the error for a tokenizer whose tokens have no bytes of their own."""
    return ConstraintError(
        f"the bytes of single tokens can't be told: {what}",
        remedy="use a byte-level BPE tokenizer or one of the SentencePiece kind as a fast tokenizer, or give "
        "lmc.grammar.Vocabulary the bytes of every token",
    )


def _state(part: Any) -> Any:
    if part is None:
        return None
    try:
        return json.loads(part.__getstate__())
    except Exception as error:  # tokenizers raises bare Exception for a part that is Python code
        raise refused("a part of the tokenizer is Python code") from error


def _decoder_steps(tokenizer: tokenizers.Tokenizer) -> list[dict[str, Any]]:
    definition = _state(tokenizer.decoder)
    if definition is None:
        raise refused("the tokenizer has no decoder")
    steps = definition["decoders"] if definition["type"] == "Sequence" else [definition]
    fused = False
    for step in steps:
        _check_step(step, fused)
        fused |= step["type"] == "Fuse"
    steps = [step for step in steps if step["type"] in ("ByteLevel", "Replace", "Metaspace", "ByteFallback")]
    if len(steps) > 1 and any(step["type"] == "ByteLevel" for step in steps):
        raise refused("its decoder applies ByteLevel and something else")
    return steps


def _check_step(step: dict[str, Any], fused: bool) -> None:
    """Check that a step's effect on a token depends on nothing but the token."""
    kind = step["type"]
    if kind == "Replace":
        pattern = step["pattern"].get("String")
        if pattern is None or (fused and len(pattern) > 1):
            raise refused("its decoder replaces a pattern")
    elif kind == "Strip":
        if not fused:
            raise refused("its decoder strips every token")
    elif kind in ("ByteFallback", "ByteLevel", "Metaspace"):
        if fused:
            raise refused(f"its decoder applies {kind} to the joined text")
    elif kind != "Fuse":
        raise refused(f"its decoder is {kind}")


def _decoded(spellings: list[str], steps: list[dict[str, Any]]) -> list[bytes]:
    byte_fallback = False
    for step in steps:
        match step["type"]:
            case "ByteLevel":
                return bytes_of_spellings(spellings, byte_level_alphabet())
            case "Replace":
                old, new = step["pattern"]["String"], step["content"]
                spellings = [spelling.replace(old, new) for spelling in spellings]
            case "Metaspace":
                old = step["replacement"]
                spellings = [spelling.replace(old, " ") for spelling in spellings]
            case _:
                byte_fallback = True
    tokens = [spelling.encode() for spelling in spellings]
    if byte_fallback:
        for token_id, spelling in enumerate(spellings):
            if spelling.startswith("<0x") and (byte := _BYTE_TOKEN.fullmatch(spelling)):
                tokens[token_id] = bytes.fromhex(byte[1])
    return tokens


def _unknown_token(tokenizer: tokenizers.Tokenizer) -> str | None:
    """Return the token of the model for text that it has no tokens for."""
    unknown = getattr(tokenizer.model, "unk_token", None)
    if isinstance(unknown, str) or not isinstance(tokenizer.model, tokenizers.models.Unigram):
        return unknown
    # The whole state holds all tokens; this stands before them.
    found = re.match(rb'\{"type":"Unigram","unk_id":(\d+)', tokenizer.model.__getstate__())
    return tokenizer.model.id_to_token(int(found[1])) if found else None


def _without_prefix(definition: Any) -> Any:
    """A normalizer or pre-tokenizer that puts no space before the text."""
    if not isinstance(definition, dict) or definition.get("type") == "Prepend":
        return None
    changed: dict[str, Any] = dict(definition)
    for key in ("normalizers", "pretokenizers"):
        if key in changed:
            parts = [_without_prefix(part) for part in changed[key]]
            changed[key] = [part for part in parts if part is not None]
    if changed["type"] == "Metaspace":
        changed["prepend_scheme"] = "never"
    if changed["type"] == "ByteLevel":
        changed["add_prefix_space"] = False
    return changed


# Added special tokens that end a text in published models; asked only where nothing else says which ones do.
END_TOKENS = frozenset(
    {"</s>", "<eos>", "[EOS]", "<|eos|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>"}
    | {"<end_of_turn>", "<|end_of_turn|>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|return|>"}
)
_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "config.json")

Encoder = Callable[[str], list[int]]


class TokenizerContent(NamedTuple):
    """The bytes of every token, which of them are no text, which end a generation, and how text becomes tokens."""

    tokens: list[bytes]
    special_ids: frozenset[int]
    eos_ids: tuple[int, ...]
    encoder: Encoder | None


def read_object(tokenizer: Any) -> TokenizerContent:
    """Read a tokenizer of `transformers` (``backend_tokenizer``), `tokenizers`, or lmc (``definition``)."""
    eos_ids, special_ids = _eos_ids(tokenizer), getattr(tokenizer, "all_special_ids", ())
    backend = tokenizer
    if not isinstance(tokenizer, tokenizers.Tokenizer):
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None and isinstance(definition := getattr(tokenizer, "definition", None), str):
            backend = tokenizers.Tokenizer.from_str(definition)
    if isinstance(backend, tokenizers.Tokenizer):
        return _read_backend(backend, eos_ids, special_ids)
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return _read_slow(tokenizer, eos_ids, special_ids)
    raise ConstraintError(
        f"{type(tokenizer).__name__} is no tokenizer",
        remedy="give a tokenizer of transformers or tokenizers, a folder with tokenizer.json, or a Vocabulary",
    )


def object_stamp(tokenizer: Any) -> object:
    """Return a key that changes when tokens are added to a tokenizer or its end token is set."""
    length: object = None
    if hasattr(tokenizer, "__len__"):
        length = len(tokenizer)
    elif hasattr(tokenizer, "get_vocab_size"):
        length = tokenizer.get_vocab_size(with_added_tokens=True)
    return length, _eos_ids(tokenizer)


def read_folder(folder: Path) -> TokenizerContent:
    """Read a model folder: tokenizer.json, and the end tokens of the other files."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ConstraintError(f"{folder} has no tokenizer.json", remedy="name a folder saved by transformers")
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise ConstraintError(f"{path} can't be read: {error}", remedy="save the tokenizer again") from error
    return _read_backend(backend, _folder_eos_ids(folder, backend))


def folder_stamp(folder: Path) -> object:
    """Return a key that changes when a file that is read is rewritten."""
    stats = [path.stat() if path.is_file() else None for path in map(folder.joinpath, _FILES)]
    return tuple(stat and (stat.st_mtime_ns, stat.st_size) for stat in stats)


def _read_backend(
    backend: tokenizers.Tokenizer, eos_ids: tuple[int, ...] | None, special_ids: Iterable[int] = ()
) -> TokenizerContent:
    tokens, special = token_bytes(backend)
    if eos_ids is None:
        added = backend.get_added_tokens_decoder().items()
        eos_ids = tuple(token_id for token_id, token in added if token.special and token.content in END_TOKENS)
    return TokenizerContent(tokens, frozenset(special.union(special_ids)), eos_ids, plain_encoder(backend))


def _read_slow(tokenizer: Any, eos_ids: tuple[int, ...] | None, special_ids: Iterable[int]) -> TokenizerContent:
    """A tokenizer in Python that spells its tokens in an alphabet of bytes (``byte_decoder``)."""
    alphabet = getattr(tokenizer, "byte_decoder", None)
    if not isinstance(alphabet, dict):
        raise refused(f"{type(tokenizer).__name__} is no fast tokenizer and is not byte-level")
    spellings = [spelling or "" for spelling in tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))]
    tokens = bytes_of_spellings(spellings, alphabet)
    for token_id, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        tokens[token_id] = str(token).encode()
    return TokenizerContent(tokens, frozenset(special_ids), eos_ids or (), None)


def _eos_ids(tokenizer: Any) -> tuple[int, ...] | None:
    """Return the end tokens of a tokenizer object: ``eos_ids`` (lmc) or ``eos_token_id`` (transformers)."""
    for name in ("eos_ids", "eos_token_id"):
        found = getattr(tokenizer, name, None)
        if isinstance(found, int):
            return (found,)
        if found:
            return tuple(found)
    return None


def _folder_eos_ids(folder: Path, backend: tokenizers.Tokenizer) -> tuple[int, ...] | None:
    """The end token of tokenizer_config.json and those of generation_config.json, else of config.json."""
    named = _json(folder / "tokenizer_config.json").get("eos_token")
    named = named.get("content") if isinstance(named, dict) else named
    found: list[Any] = [backend.token_to_id(named)] if isinstance(named, str) else []
    for name in ("generation_config.json", "config.json"):
        ids = _json(folder / name).get("eos_token_id")
        if ids is not None:
            found += ids if isinstance(ids, list) else [ids]
            break
    return tuple(sorted({token_id for token_id in found if isinstance(token_id, int)})) or None


def _json(path: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise ConstraintError(f"{path} is not JSON: {error}", remedy="save the model folder again") from error
    return loaded if isinstance(loaded, dict) else {}

"""Reads the contents of a vocabulary from a tokenizer object or a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers

from lmc.grammar.vocabulary.token_bytes import bytes_of_spellings, plain_encoder, refused, token_bytes
from lmc.ir.errors import ConstraintError

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

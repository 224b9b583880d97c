"""The tokens of a model as bytes."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import json
import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.vocabulary.tokenizer_reading import (
    Encoder,
    TokenizerContent,
    folder_stamp,
    object_stamp,
    read_folder,
    read_object,
)
from lmc.grammar.vocabulary.trie import Trie
from lmc.ir.cached import cached_property
from lmc.ir.errors import ConstraintError

_KEPT_FOLDERS = 8


class Vocabulary:
    """The bytes of every token id of a model.

    Tokens of ``special_ids``, those that end a generation (``eos_id``: one, several or none; ``eos_ids``) and those
    without bytes are never text. Several tokens may have the same bytes. ``size`` is the number of token ids of the
    model, where that is more than ``tokens`` has (padded embeddings); the ids beyond are never text. ``encoder`` gives
    the canonical tokens of a text.

    ``digest`` names the content (hex): equal vocabularies have equal ones. Immutable, safe for threads.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        special_ids: Iterable[int] = (),
        eos_id: int | Iterable[int] | None = None,
        *,
        size: int | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        strange = set(map(type, tokens)) - {bytes, bytearray, memoryview}
        if strange:
            names = ", ".join(sorted(kind.__name__ for kind in strange))
            raise ConstraintError(
                f"the tokens of a vocabulary are bytes, and here are some of type {names}",
                remedy='give the bytes of every token, such as "é".encode()',
            )
        self.size = len(tokens) if size is None else size
        self.eos_ids = tuple(sorted({*(_ids(eos_id) or ())}))
        self.special_ids = frozenset(map(int, special_ids))
        if self.size < len(tokens):
            raise ConstraintError(
                f"a vocabulary of size {self.size} can't hold {len(tokens)} tokens",
                remedy="give the number of token ids of the model, padding included, or no size",
            )
        for token_id in (*self.eos_ids, *self.special_ids):
            if not 0 <= token_id < self.size:
                raise ConstraintError(
                    f"there is no token {token_id} in a vocabulary of {self.size}",
                    remedy="check special_ids and eos_id against the tokenizer, or give the size of the model",
                )
        found = list(map(bytes, tokens)) + [b""] * (self.size - len(tokens))
        for token_id in (*self.eos_ids, *self.special_ids):
            found[token_id] = b""
        self.tokens: tuple[bytes, ...] = tuple(found)
        """The bytes of every id; empty for those that are never text."""
        self._encoder = encoder
        self.is_of_model = True
        """False for the bytes of messages (``lmc.ir.tokens.messages``): the model counts other tokens."""

    @classmethod
    def of(cls, tokenizer: Any, *, eos_id: int | Iterable[int] | None = None, size: int | None = None) -> Vocabulary:
        """The vocabulary of a tokenizer, made once for each object (or folder as it is now).

        Args:
            tokenizer: one of transformers, a ``tokenizers.Tokenizer``, lmc's own, a folder with tokenizer.json, or a
                vocabulary, which is returned as it is. It has to be byte-level BPE or of the SentencePiece kind (▁ for
                a space, with or without byte tokens).
            eos_id: what ends a generation. By default what the tokenizer or the folder says, else the special tokens
                of ``END_TOKENS`` that it has.
            size: number of token ids of the model, where it has more than the tokenizer.

        Raises:
            ConstraintError: the bytes of its tokens can't be told, or it is no tokenizer.
        """
        if isinstance(tokenizer, Vocabulary):
            return tokenizer
        asked = _ids(eos_id)
        with _lock:
            if isinstance(tokenizer, str | Path):
                return _of_folder(Path(tokenizer), asked, size)
            return _of_object(tokenizer, asked, size)

    @cached_property
    def digest(self) -> str:
        """Name of the content: the bytes of all tokens and which of them end a generation."""
        digest = hashlib.sha256(json.dumps(["vocabulary", 1, self.size, self.eos_ids]).encode())
        digest.update(self.lengths.astype("<u4").tobytes())
        digest.update(b"".join(self.tokens))
        return digest.hexdigest()

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Bytes of every token, 0 for those that are never text."""
        return np.fromiter(map(len, self.tokens), np.int32, self.size)

    @property
    def words(self) -> int:
        """Number of 32-bit words of a mask."""
        return (self.size + 31) // 32

    @cached_property
    def trie(self) -> Trie:
        """The tokens that are text, as a tree of their bytes."""
        return Trie(self.tokens)

    @cached_property
    def has_all_bytes(self) -> bool:
        """True if each byte is a token, so that tokens can write every text."""
        return len({token for token in self.tokens if len(token) == 1}) == 256

    def encode(self, text: str | bytes) -> list[int]:
        """Canonical tokens of a text in the middle of another: no special tokens in it, nothing put before it.

        Those of the tokenizer, where it is known and writes the text unchanged; else the longest token at each place
        (of equal ones the lowest id).

        Raises:
            ConstraintError: no tokens of this vocabulary write the text.
        """
        data = text.encode() if isinstance(text, str) else text
        canonical = self._canonical(data)
        if canonical is not None:
            return canonical
        ids, written = self.longest_tokens(data)
        if written < len(data):
            raise ConstraintError(
                f"no token of this vocabulary goes on with {data[written : written + 1]!r} in {data!r}",
                remedy="use a vocabulary with a token for each byte",
            )
        return ids

    def encode_cut(self, data: bytes) -> list[int]:
        """Canonical tokens of bytes that may begin and end within a character, up to the last character that is whole.

        They end early where no token goes on.
        """
        within = len(data) - len(data.lstrip(bytes(range(0x80, 0xC0))))  # the rest of a character that has begun
        ids, written = self.longest_tokens(data[:within])
        if written < within:
            return ids
        try:
            return ids + self.encode(codecs.getincrementaldecoder("utf-8")().decode(data[within:]))
        except (UnicodeDecodeError, ConstraintError):  # no text, or a byte that no token has
            return ids + self.longest_tokens(data[within:])[0]

    def longest_tokens(self, data: bytes) -> tuple[list[int], int]:
        """The longest token at each place, and how many bytes that writes before there is none."""
        ids: list[int] = []
        at = 0
        while at < len(data):
            for length in range(min(self._longest, len(data) - at), 0, -1):
                token_id = self._ids.get(data[at : at + length])
                if token_id is not None:
                    ids.append(token_id)
                    at += length
                    break
            else:
                break
        return ids, at

    def text(self, ids: Iterable[int]) -> bytes:
        """The bytes of some tokens, one after the other."""
        return b"".join(self.tokens[token_id] for token_id in ids)

    def describe(self, token_id: int) -> str:
        """A token for an error message."""
        if not 0 <= token_id < self.size:
            return f"token {token_id} (not in this vocabulary)"
        if token_id in self.eos_ids:
            return f"token {token_id} (end of text)"
        token = self.tokens[token_id]
        return f"token {token_id} ({token!r})" if token else f"token {token_id} (a special token)"

    def __repr__(self) -> str:
        return f"Vocabulary({self.size} tokens, eos_ids={self.eos_ids}, digest={self.digest[:12]})"

    def _canonical(self, data: bytes) -> list[int] | None:
        if self._encoder is None:
            return None
        try:
            ids = self._encoder(data.decode())
        except UnicodeDecodeError:
            return None
        return ids if max(ids, default=0) < self.size and self.text(ids) == data else None

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        ids = {token: token_id for token_id, token in reversed(list(enumerate(self.tokens)))}
        ids.pop(b"", None)
        return ids

    @cached_property
    def _longest(self) -> int:
        return int(self.lengths.max(initial=0))


def _ids(given: int | Iterable[int] | None) -> tuple[int, ...] | None:
    """One id, several or none, whatever kind of integers they are."""
    if given is None:
        return None
    return tuple(map(int, given)) if isinstance(given, Iterable) else (int(given),)


_Key = tuple[int, tuple[int, ...] | None, int | None]
_vocabularies: dict[_Key, tuple[weakref.ref[Any], object, Vocabulary]] = {}
_folders: dict[object, Vocabulary] = {}
_lock = threading.RLock()


def _of_object(tokenizer: Any, asked: tuple[int, ...] | None, size: int | None) -> Vocabulary:
    """The vocabulary of a tokenizer object, kept as long as the object is and does not change."""
    key = (id(tokenizer), asked, size)
    stamp = object_stamp(tokenizer)
    known = _vocabularies.get(key)
    if known is not None and known[0]() is tokenizer and known[1] == stamp:
        return known[2]
    made = _vocabulary(read_object(tokenizer), asked, size)
    made.is_of_model = getattr(tokenizer, "is_of_model", True)
    with contextlib.suppress(TypeError):  # an object that can't be watched is read again each time
        _vocabularies[key] = (weakref.ref(tokenizer, lambda _: _vocabularies.pop(key, None)), stamp, made)
    return made


def _of_folder(folder: Path, asked: tuple[int, ...] | None, size: int | None) -> Vocabulary:
    key = (str(folder.resolve()), folder_stamp(folder), asked, size)
    made = _folders.pop(key, None)
    if made is None:
        made = _vocabulary(read_folder(folder), asked, size)
    _folders[key] = made  # the last one used is the last to go
    while len(_folders) > _KEPT_FOLDERS:
        del _folders[next(iter(_folders))]
    return made


def _vocabulary(content: TokenizerContent, asked: tuple[int, ...] | None, size: int | None) -> Vocabulary:
    ids = range(len(content.tokens) if size is None else size)
    return Vocabulary(
        content.tokens[: len(ids)],
        content.special_ids.intersection(ids),
        [token_id for token_id in content.eos_ids if token_id in ids] if asked is None else asked,
        size=size,
        encoder=content.encoder,
    )

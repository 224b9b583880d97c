"""Tokens as texts and bytes, for log-probabilities."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from lmc.ir.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenTexts:
    """The texts of the tokens of a vocabulary."""

    tokenizer: Tokenizer
    bytes_of_ids: tuple[bytes, ...] | None

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TokenTexts:
        """Read the bytes of a vocabulary; a tokenizer whose bytes are unknown has texts alone."""
        try:
            return cls(tokenizer, Vocabulary.of(tokenizer).tokens)
        except ConstraintError:
            return cls(tokenizer, None)

    def text(self, token_id: int) -> str:
        r"""Return the text of a token; one of incomplete UTF-8 is ``bytes:\xe2\x80``, as in OpenAI's API."""
        data = self.bytes(token_id)
        if data is None:
            return self.tokenizer.text_of(token_id)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)

    def bytes(self, token_id: int) -> bytes | None:
        """Return the bytes of a token; None for a special token, or where they are unknown."""
        if self.bytes_of_ids is None or not 0 <= token_id < len(self.bytes_of_ids):
            return None
        return self.bytes_of_ids[token_id] or None


class TextOffsets:
    """Finds where tokens begin in the text that they make, in characters. Within a character, that is its place."""

    def __init__(self, texts: TokenTexts) -> None:
        self.texts = texts
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._length = 0

    def next(self, token_id: int) -> int:
        """Return the place of the next token."""
        data = self.texts.bytes(token_id)
        if data is None:
            self._length += len(self._decoder.decode(b"", final=True))
        place = self._length
        self._length += len(self.texts.text(token_id) if data is None else self._decoder.decode(data))
        return place

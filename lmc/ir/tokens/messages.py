"""Contexts of targets that take messages: their tokens are bytes of UTF-8 and the marks of turns.

A chat API hides its tokens and its template. Here a context is token ids all the same, and so everything that holds for
contexts (forks, stable prefixes, stops, constraints, hints) holds for messages too. ``conversation_of`` reads the
messages back, byte for byte: no text can spell a mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from lmc.ir.errors import InputError
from lmc.ir.tokens.tokenizer import Tokenizer

GO_ON = (
    "Your last message ends behind this text:\n<text>\n{text}\n</text>\n"
    "Continue exactly where it ends. Do not repeat any of it, and add nothing before what follows."
)
"""The message of the user where a turn can't be continued and ``continuation`` is ``turns``; ``text`` is that turn."""
_TURN, _END = 256, 257
_NEW_LINE = 10
_MARKS = ("<|turn|>", "<|end|>")
_TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message.role }}\n{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a conversation."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class MessagePrompt:
    """A prompt of ``message_tokenizer``, read back.

    ``messages`` are the closed turns and ``open`` is the one that a generation continues. Without any role there are
    none of them, and ``raw`` is the text to complete.
    """

    messages: tuple[PromptMessage, ...]
    open: PromptMessage | None
    raw: str | None = None


@dataclass(frozen=True)
class MessageTokenizer(Tokenizer):
    """Bytes of UTF-8 as tokens 0 to 255, then the marks of turns. Faster than the tokenizers of models."""

    @property
    def is_of_model(self) -> bool:
        return False

    def encode(self, text: str) -> tuple[int, ...]:
        try:
            return tuple(text.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                "a text holds half of a surrogate pair, which no model can read",
                remedy="decode the text as UTF-8 or UTF-16 before it is given to the program",
            ) from error

    def decode(self, ids: Sequence[int]) -> str:
        pieces: list[str] = []
        start = 0
        for place, token_id in enumerate(ids):
            if token_id >= _TURN:
                pieces += (_text(ids[start:place]), _MARKS[token_id - _TURN])
                start = place + 1
        return "".join((*pieces, _text(ids[start:])))

    def stable_prefix(self, text: str) -> tuple[int, ...]:
        return self.encode(text)

    def exceeds(self, text: str, count: int) -> bool:
        return len(text) > count


@lru_cache(maxsize=1)
def message_tokenizer() -> Tokenizer:
    """Return the tokenizer of all targets that take messages."""
    # Each byte by the character that stands for it in byte-level BPE: what reads vocabularies knows these.
    alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False)
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    vocabulary = {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}
    raw = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = alphabet
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in _MARKS])
    return MessageTokenizer.from_json(raw.to_str(), eos_tokens=[_MARKS[1]], chat_template=_TEMPLATE)


def conversation_of(prompt: Sequence[int]) -> MessagePrompt:
    """Return the messages of a prompt of ``message_tokenizer``."""
    marks = _places(prompt, _TURN)
    if not marks:
        return MessagePrompt((), None, _text([token_id for token_id in prompt if token_id < _TURN]))
    messages: list[PromptMessage] = []
    open_turn: PromptMessage | None = None
    for start, end in zip(marks, [*marks[1:], len(prompt)], strict=True):
        is_closed = prompt[end - 1] == _END
        role, _, text = _text(prompt[start + 1 : end - is_closed]).partition("\n")
        if is_closed:
            messages.append(PromptMessage(role, text))
        else:
            open_turn = PromptMessage(role, text)
    return MessagePrompt(tuple(messages), open_turn)


def open_text(prompt: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tokens of the text of the open turn, or of a raw completion; none where no turn is open."""
    start = len(prompt)
    while start and prompt[start - 1] != _TURN:
        start -= 1
    turn = prompt[start:]
    if not start or _END in turn:
        return () if start else turn
    return turn[turn.index(_NEW_LINE) + 1 :] if _NEW_LINE in turn else ()


def _places(prompt: Sequence[int], mark: int) -> list[int]:
    places: list[int] = []
    with suppress(ValueError):
        while True:
            places.append(prompt.index(mark, places[-1] + 1 if places else 0))
    return places


def _text(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")

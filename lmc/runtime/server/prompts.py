"""Prompts: messages and raw text as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lmc.ir.semantics.context import Context
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.server.errors import refused

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One turn of a conversation."""

    role: str
    text: str


@dataclass(frozen=True)
class Prompts:
    """Makes the prompts of one model; ``context_length`` is in tokens."""

    tokenizer: Tokenizer
    context_length: int

    def chat(self, messages: Sequence[ChatTurn], *, goes_on: bool) -> tuple[int, ...]:
        """Return the prompt of a conversation, by the model's own template.

        An answer begins a new turn of the assistant, or, where it ``goes_on``, continues the last message. No text of a
        message becomes a special token. Raises ``InputError`` where the template refuses the turns,
        ``ContextLengthError`` where they are too long.
        """
        if not messages:
            raise refused("messages", "there is no message")
        context = Context.empty(self.tokenizer)
        for message in messages[: len(messages) - goes_on]:
            context = context.message(message.role, message.text)
        if goes_on:
            context = context.begin(messages[-1].role).text(messages[-1].text)
        return self._prompt(context)

    def raw(self, text: str) -> tuple[int, ...]:
        """Return the prompt of raw text. Special tokens in it are special: its client has rendered the template."""
        context = Context.empty(self.tokenizer).text(text)
        context.check_fits(self.context_length)
        pieces = list(self.tokenizer.split_template(text))
        start = () if self.tokenizer.bos_id is None else (self.tokenizer.bos_id,)
        ids = [
            token_id
            for piece in pieces
            for token_id in (self.tokenizer.encode(piece) if isinstance(piece, str) else (piece.id,))
        ]
        if start and ids[:1] == list(start):  # the template began with it
            start = ()
        return (*start, *ids) or self.tokenizer.start_ids

    def _prompt(self, context: Context) -> tuple[int, ...]:
        context.check_fits(self.context_length)
        return context.prompt

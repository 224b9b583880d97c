"""Prompts: messages and raw text as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from lmc.ir.cached import cached_property
from lmc.ir.errors import InputError
from lmc.ir.semantics.context import Context
from lmc.ir.tokens.template import ChatTemplate
from lmc.ir.tokens.tokenizer import SpecialToken, Tokenizer
from lmc.ir.tokens.tool_text import PLAIN_CALLS, CallSyntax, ChatCall, ToolText, describe_tools
from lmc.runtime.server.errors import refused
from lmc.runtime.server.tokens import TokenTexts

_MOST_MESSAGES = 4096


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One turn of a conversation: a text, the ``calls`` of an assistant, or the result of the call ``answered``."""

    role: str
    text: str
    calls: tuple[ChatCall, ...] = ()
    answered: ChatCall | None = None


@dataclass(frozen=True)
class Prompts:
    """Makes the prompts of one model; ``context_length`` is in tokens."""

    tokenizer: Tokenizer
    context_length: int
    texts: TokenTexts

    def chat(self, messages: Sequence[ChatTurn], *, goes_on: bool, tools: tuple[ToolText, ...] = ()) -> tuple[int, ...]:
        """Return the prompt of a conversation with a model that may call ``tools``, by the model's own template.

        An answer begins a new turn of the assistant, or, where it ``goes_on``, continues the last message. No text of a
        message or tool becomes a special token. A template without tools has them in a message of the system. Raises
        ``InputError`` where the template refuses the turns, ``ContextLengthError`` where they are too long.
        """
        if not 0 < len(messages) <= _MOST_MESSAGES:
            raise refused("messages", f"give 1 to {_MOST_MESSAGES} messages")
        if self.call_syntax.answer:
            messages, tools = self._plain(messages, tools), ()
        context = Context.empty(self.tokenizer, tools)
        for message in messages[: len(messages) - goes_on]:
            if message.calls:
                context = context.calls(message.text, message.calls)
            elif message.answered is not None:
                context = context.result(message.text, message.answered)
            else:
                context = context.message(message.role, message.text)
        if goes_on:
            context = context.begin(messages[-1].role).text(messages[-1].text)
        return self._prompt(context)

    @cached_property
    def call_syntax(self) -> CallSyntax:
        """The syntax of calls: that of the template, where it has one and the model can be held to it."""
        template = ChatTemplate.of(self.tokenizer)
        syntax = template.call_syntax
        if syntax is None:
            return PLAIN_CALLS
        marks = (syntax.before, syntax.between, syntax.after, syntax.separator or "")
        special = [part for mark in marks for part in self.tokenizer.split_template(mark)]
        if any(isinstance(part, SpecialToken) and self.texts.bytes(part.id) is None for part in special):
            return PLAIN_CALLS
        return syntax

    def _plain(self, messages: Sequence[ChatTurn], tools: tuple[ToolText, ...]) -> list[ChatTurn]:
        """Return messages in which tools, calls and results are text."""
        turns: list[ChatTurn] = []
        for is_result, group in groupby(messages, lambda each: each.answered is not None):
            for message in group:
                if message.calls:
                    said = (message.text, *map(self.call_syntax.call, message.calls))
                    turns.append(ChatTurn(message.role, "\n".join(filter(None, said))))
                elif not is_result or self._takes("user", "assistant", "tool"):
                    turns.append(ChatTurn(message.role, message.text))
                elif turns and turns[-1].role == "user":  # not all templates take two turns of a user
                    turns[-1] = ChatTurn("user", f"{turns[-1].text}\n{message.text}")
                else:
                    turns.append(ChatTurn("user", message.text))
        if tools:
            described = describe_tools(tools)
            if not self._takes("system", "user"):
                turns[0] = ChatTurn(turns[0].role, f"{described}\n\n{turns[0].text}")
            elif turns[0].role == "system":
                turns[0] = ChatTurn("system", f"{turns[0].text}\n\n{described}")
            else:
                turns.insert(0, ChatTurn("system", described))
        return turns

    def _takes(self, *roles: str) -> bool:
        """Return True if the template takes turns of these roles."""
        context = Context.empty(self.tokenizer)
        for role in roles:
            context = context.message(role, "x")
        try:
            return bool(context.begin("assistant").prompt)
        except InputError:
            return False

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

"""The meaning of a context: settled tokens + pending text, and the chat turns they belong to.

``Context`` is an immutable value; every method gives a new one, so a fork is several uses of one context. It is shared
by interpreter, eager mode and executor, which keeps the three of one mind about tokens.

Rules (DESIGN.md, "Meaning of a context"):

* A generation or a special token settles the pending text, encoded as one string.
* Generated tokens are kept as generated. What is left of a token that straddled a stop becomes pending text.
* After a role message, bare text and generations belong to an implicitly opened assistant turn.
* User text is never parsed for special tokens; only the template's own are special.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lmc.ir.analysis.open_turns import OpenTurn, TurnState
from lmc.ir.cached import cached_property
from lmc.ir.engine.protocol import Generation
from lmc.ir.errors import CaptureError, ContextLengthError, InputError
from lmc.ir.tokens.template import ChatTemplate, Turn, TurnSlot
from lmc.ir.tokens.tokenizer import SpecialToken, Tokenizer
from lmc.ir.tokens.tokens import Generated, Part, Tokens, common_length, parts_text
from lmc.ir.tokens.tool_text import ChatCall, ToolText
from lmc.ir.wording import with_article

__all__ = ["Context", "Generated", "Part", "Tokens"]


@dataclass(frozen=True)
class Context:
    """One immutable context. Start with ``Context.empty``.

    ``messages`` are the closed turns, ``turns[i]`` the parts of turn i where it holds generated tokens. ``role`` is
    the role of the open turn (None: no turn is open) and ``parts`` what it (or the raw completion) holds so far.
    ``synced`` is the last settled state, from which the prompt goes on where the template is prefix-stable.
    """

    template: ChatTemplate = field(repr=False)
    messages: tuple[Turn, ...] = ()
    turns: tuple[tuple[Part, ...] | None, ...] = ()
    role: str | None = None
    parts: tuple[Part, ...] = ()
    synced: _Synced | None = field(default=None, repr=False)

    @classmethod
    def empty(cls, tokenizer: Tokenizer, tools: tuple[ToolText, ...] = ()) -> Context:
        """A context without any text, for a model that may call ``tools``."""
        return cls(ChatTemplate.of(tokenizer, tools))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that gives text its tokens."""
        return self.template.tokenizer

    @property
    def is_chat(self) -> bool:
        """True if any role message was opened."""
        return self.role is not None or bool(self.messages)

    @property
    def open_turn(self) -> OpenTurn:
        """The turn that a generation from here continues, and the messages before it."""
        text, before = parts_text(self.parts), TurnState()
        for message, parts in zip(self.messages, self.turns, strict=True):
            is_empty = not (message.content if parts is None else parts_text(parts))
            before = before.followed_by(message.role, None, is_empty=is_empty and not message.calls)
        return OpenTurn(self.is_chat, self.role, bool(text), text[-1:].isspace(), before)

    def text(self, text: str) -> Context:
        """Append bare text: to the open turn, else to a new assistant turn, else to the raw completion."""
        if not text:
            return self
        opened = self._opened
        return replace(opened, parts=(*opened.parts, text))

    def begin(self, role: str) -> Context:
        """Close the open turn, if any, and open one of ``role``."""
        if not self.is_chat and self.parts:
            raise CaptureError(
                f"{with_article(role)} message can't follow bare text",
                remedy="put the text into a role message (lmc.system, lmc.user), or use no roles at all",
            )
        return replace(self.end(), role=role)

    def end(self) -> Context:
        """Close the open turn; nothing where none is open."""
        if self.role is None:
            return self
        if any(isinstance(part, Generated) for part in self.parts):
            message = Turn(self.role, ChatTemplate.slot(len(self.messages)))
            turn = self.parts
        else:
            content = "".join(part for part in self.parts if isinstance(part, str))
            message = Turn(self.role, self.template.escape(content))
            turn = None
        return replace(self, messages=(*self.messages, message), turns=(*self.turns, turn), role=None, parts=())

    def message(self, role: str, text: str) -> Context:
        """Append one whole message."""
        opened = self.begin(role)
        return (replace(opened, parts=(text,)) if text else opened).end()

    def calls(self, text: str, calls: tuple[ChatCall, ...]) -> Context:
        """Append one whole message of the assistant, with a text and calls of tools."""
        return self._closed_with(Turn("assistant", self.template.escape(text), calls))

    def result(self, text: str, call: ChatCall) -> Context:
        """Append the result of a call."""
        return self._closed_with(Turn("tool", self.template.escape(text), call_id=call.id, name=call.name))

    def _closed_with(self, turn: Turn) -> Context:
        closed = self.begin(turn.role)
        return replace(closed, messages=(*closed.messages, turn), turns=(*closed.turns, None), role=None)

    def generated(self, generation: Generation) -> Context:
        """Append what a generation from ``self.prompt`` gave."""
        opened = self._opened
        kept = Generated(generation.token_ids, generation.text.removesuffix(generation.remainder))
        parts = (*opened.parts, kept, generation.remainder) if generation.remainder else (*opened.parts, kept)
        tokens = Tokens(self.prompt + generation.token_ids, generation.remainder)
        synced = _Synced(opened._rendered, len(opened.messages), len(parts), tokens, opened._closed_text)
        return replace(opened, parts=parts, synced=synced)

    @cached_property
    def prompt(self) -> tuple[int, ...]:
        """Token ids a generation from here continues; never empty."""
        tokens = self.tokens
        return tokens.settled + self.tokenizer.encode(tokens.pending) or self.tokenizer.start_ids

    @cached_property
    def tokens(self) -> Tokens:
        """Settled tokens and pending text at the place where a generation would begin."""
        start, parts = self._unencoded
        return start.extend(parts, self.tokenizer)

    def check_fits(self, context_length: int) -> None:
        """Raise ``ContextLengthError`` where the prompt surely has more than ``context_length`` tokens.

        A prompt that is much longer is not encoded for that; one that is a little longer is left to the engine.
        """
        start, parts = self._unencoded
        if start.exceeds(parts, self.tokenizer, context_length):
            raise ContextLengthError(
                f"the prompt has more than {context_length} tokens, the model's context", remedy="shorten the prompt"
            )

    @cached_property
    def stable_prefix(self) -> tuple[int, ...]:
        """The leading tokens that stay the same whatever is appended to this context (DESIGN.md).

        The template renders this context with another turn after it; if that changes the text
        of the open turn, only the tokens before that turn count.
        """
        if not self.is_chat:
            tokens = self.tokens if self.parts else Tokens()
        elif self.role is None:
            tokens = self._closed_tokens if self._closes_stably else Tokens()
        elif self._is_open_stably:
            tokens = Tokens(self.tokens.settled, self.tokens.pending.rstrip())
        else:
            return replace(self, role=None, parts=(), synced=None).stable_prefix
        return tokens.settled + self.tokenizer.stable_prefix(tokens.pending)

    @property
    def computed(self) -> tuple[int, ...]:
        """The tokens that a generation has left here; none where something has been appended since."""
        synced = self.synced
        if synced is None or (synced.message_count, synced.part_count) != (len(self.messages), len(self.parts)):
            return ()
        return synced.tokens.settled

    def choices(self, choices: Sequence[str]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Prompt and continuations (token ids) that score ``choices`` appended here.

        Pending text and choice are encoded jointly; every choice is scored from the first token at which any of them
        differs from the pending text alone, so that all are scored over the same span.
        """
        tokens = self.tokens
        alone = self.tokenizer.encode(tokens.pending)
        joint = [self.tokenizer.encode(tokens.pending + choice) for choice in choices]
        start = min(common_length(alone, ids) for ids in joint)
        start = min(start, *(max(len(ids) - 1, 0) for ids in joint))
        prompt = tokens.settled + alone[:start]
        if not prompt:
            prompt = self.tokenizer.start_ids
        return prompt, tuple(ids[start:] for ids in joint)

    def transcript(self) -> str:
        """The whole context as text, the template's own marks included."""
        if not self.is_chat:
            return parts_text(self.parts)
        if self.role is None:
            return self._segments_text(self.template.closed(self.messages))
        return self._segments_text(self._rendered) + parts_text(self.parts)

    def added_since(self, before: Context) -> str:
        """Return the text appended to ``before`` to make it this context: to its open turn, or to the raw completion.

        Raises ``CaptureError`` if messages were opened or closed in between: their contents are not text alone.
        """
        opened = before._opened
        same_turn = len(self.messages) == len(before.messages) and self.role in (before.role, opened.role)
        if not same_turn or self.parts[: len(opened.parts)] != opened.parts:
            raise CaptureError(
                "messages were opened or closed where only their text can be taken",
                remedy="begin and end inside one message, or use no roles there",
            )
        return parts_text(self.parts[len(opened.parts) :])

    def message_list(self) -> list[dict[str, str]]:
        """Roles and contents, the open turn last; empty for a raw completion."""
        if not self.is_chat:
            return []
        closed = [
            {
                "role": message.role,
                "content": self.template.unescape(message.content) if turn is None else parts_text(turn),
            }
            for message, turn in zip(self.messages, self.turns, strict=True)
        ]
        return closed if self.role is None else [*closed, {"role": self.role, "content": parts_text(self.parts)}]

    @property
    def rendered_whole(self) -> bool:
        """True if the last prompt was rendered anew because the template is not prefix-stable here."""
        opened = self._opened
        return opened.is_chat and opened.synced is not None and opened._tail() is None

    @cached_property
    def _opened(self) -> Context:
        if self.is_chat and self.role is None:
            return replace(self, role="assistant")
        return self

    @cached_property
    def _rendered(self) -> str:
        """Escaped template text up to the content of the open turn ("" for a raw completion)."""
        if self.role is None:
            return ""
        closed = self._closed_text
        if closed is None:
            return self.template.open_prefix(self.messages, self.role)
        return closed + self.template.opening(self.role)

    @cached_property
    def _closed_text(self) -> str | None:
        """Escaped template text of the closed turns; None where it may change with the turns that follow.

        That of the last settled state is not rendered again: a conversation of many turns stays linear.
        """
        if not self.is_chat or not self.template.renders_by_turn:
            return None
        if self.synced is None or self.synced.closed is None:
            return self.template.closed(self.messages)
        return self.synced.closed + self.template.appended(self.messages[self.synced.message_count :])

    @cached_property
    def _closes_stably(self) -> bool:
        return self._goes_on_from(self.template.closed(self.messages), self.messages)

    @cached_property
    def _is_open_stably(self) -> bool:
        """Return True if closing the open turn keeps its text. White space at its end may go: templates trim."""
        assert self.role is not None, "a turn is open"
        slot = ChatTemplate.slot(len(self.messages))
        if any(isinstance(part, Generated) for part in self.parts):
            return self._goes_on_from(self._rendered + slot, (*self.messages, Turn(self.role, slot)))
        text = parts_text(self.parts)
        kept = self._rendered + self.template.escape(text.rstrip())
        contents = (self.template.escape(text), self.template.escape(text + "x"))
        return self._goes_on_from(self._rendered, (*self.messages, Turn(self.role, slot))) and all(
            self._goes_on_from(kept, (*self.messages, Turn(self.role, content))) for content in contents
        )

    def _goes_on_from(self, rendered: str, messages: Sequence[Turn]) -> bool:
        """Return True if ``messages`` and another turn render to something that starts with ``rendered``."""
        following = (self._next_prefix(messages, role) for role in ("assistant", "user"))
        return all(whole is None or whole.startswith(rendered) for whole in following)

    def _next_prefix(self, messages: Sequence[Turn], role: str) -> str | None:
        """Template text up to a turn of ``role`` after ``messages``; None where the template refuses one here."""
        try:
            return self.template.open_prefix(messages, role)
        except InputError:
            return None

    @cached_property
    def _closed_tokens(self) -> Tokens:
        return Tokens().extend(self._fill(self.template.closed(self.messages)), self.tokenizer)

    @cached_property
    def _unencoded(self) -> tuple[Tokens, tuple[Part | SpecialToken, ...]]:
        """The last settled state that counts here, and what follows it."""
        opened = self._opened
        return opened._chat_parts() if opened.is_chat else opened._raw_parts()

    def _raw_parts(self) -> tuple[Tokens, tuple[Part | SpecialToken, ...]]:
        if self.synced is not None:
            return self.synced.tokens, self.parts[self.synced.part_count :]
        return Tokens(() if self.tokenizer.bos_id is None else (self.tokenizer.bos_id,)), self.parts

    def _chat_parts(self) -> tuple[Tokens, tuple[Part | SpecialToken, ...]]:
        tail = self._tail()
        if tail is not None and self.synced is not None:
            rendered, parts = tail
            return self.synced.tokens, (*self._fill(rendered), *parts)
        return Tokens(), (*self._fill(self._rendered), *self.parts)

    def _tail(self) -> tuple[str, tuple[Part, ...]] | None:
        """Return template text and parts after the synced state; None if the template is not prefix-stable."""
        synced = self.synced
        if synced is None:
            return None
        if len(self.messages) == synced.message_count:
            return "", self.parts[synced.part_count :]
        before = synced.rendered + ChatTemplate.slot(synced.message_count)
        turn = self.turns[synced.message_count]
        if turn is None or not self._rendered.startswith(before):
            return None
        added = parts_text(turn[synced.part_count :])
        return self.template.escape(added) + self._rendered[len(before) :], self.parts

    def _fill(self, rendered: str) -> list[Part | SpecialToken]:
        filled: list[Part | SpecialToken] = []
        for segment in self.template.segments(rendered):
            if not isinstance(segment, TurnSlot):
                filled.append(segment)
                continue
            filled.extend(self.turns[segment.index] or ())
        return filled

    def _segments_text(self, rendered: str) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self._fill(rendered))


@dataclass(frozen=True, slots=True)
class _Synced:
    """The state right after a generation: template text up to its turn, where in it we were, and the tokens.

    ``closed`` is the text of the turns before; None where the template renders no turn by itself.
    """

    rendered: str
    message_count: int
    part_count: int
    tokens: Tokens
    closed: str | None

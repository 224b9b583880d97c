"""Chat templates: the tokenizer's own jinja template, rendered so that user text can't forge special tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

import jinja2

from lmc.ir.cached import cached_property
from lmc.ir.errors import InputError
from lmc.ir.tokens.template_sandbox import TemplateEnvironment, TemplateLimitError, budget_for, to_json
from lmc.ir.tokens.template_turns import renders_by_turn
from lmc.ir.tokens.tokenizer import SpecialToken, Tokenizer
from lmc.ir.tokens.tool_text import CallSyntax, ChatCall, ToolText

# Unicode noncharacters, never valid in interchange: they stand for special strings that occur in user text
# (ESCAPE index ESCAPE) and for the contents of assistant turns that hold generated tokens (SLOT index SLOT).
_ESCAPE = "\ufdd0"
_SLOT = "\ufdd1"
_ESCAPES = re.compile(f"{_ESCAPE}([0-9]+){_ESCAPE}")
_SLOTS = re.compile(f"{_SLOT}([0-9]+){_SLOT}")
# A template that can do without the date of today gets none, so that its prompts are the same every day.
_ASKS_FOR_A_CLOCK = re.compile(r"\bstrftime_now\s+is\b")

_SYSTEM = {"role": "system", "content": "Answer in a line"}
_TURNS = (
    {"role": "user", "content": "Where is Oslo"},
    {"role": "assistant", "content": "It is in Norway"},
    {"role": "user", "content": "And how large"},
)
_PROBES = tuple((*system, *_TURNS[:count]) for count in (1, 2, 3) for system in ((_SYSTEM,), ()))
"""Conversations that a template is tried with."""

_PROBE_TOOL = ToolText(
    "zq_look",
    "Zq looks it up",
    '{"type": "object", "properties": {"zq_key": {"type": "string", "description": "Zq says which"}}}',
)
_PROBE_CALL = ChatCall("zqcall001", "zq_look", '{"zq_key": "zq_value"}')
_PROBE_ARGUMENTS = re.compile(r'\{"zq_key": ?"zq_value"\}')
_PROBE_RESULT = "zq_result"
"""A tool, a call of it and a result, in words that no template has."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One closed turn. ``content`` is escaped text, or a slot (see ``ChatTemplate.slot``).

    ``calls`` are those of an assistant; a result of a tool has the id of its call and the ``name`` of the tool.
    """

    role: str
    content: str
    calls: tuple[ChatCall, ...] = ()
    call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TurnSlot:
    """The place in a rendered prompt where the parts of turn ``index`` belong."""

    index: int


Segment = str | SpecialToken | TurnSlot


@dataclass(frozen=True)
class ChatTemplate:
    """Renders messages with the template of ``tokenizer``, for a model that may call ``tools``."""

    tokenizer: Tokenizer = field(repr=False)
    tools: tuple[ToolText, ...] = ()

    @classmethod
    def of(cls, tokenizer: Tokenizer, tools: tuple[ToolText, ...] = ()) -> ChatTemplate:
        """Return the template of a tokenizer, which is compiled once."""
        return cls(tokenizer, tools) if tools else _template_of(tokenizer)

    def escape(self, text: str) -> str:
        """``text`` with every special string and every escape character replaced by an escape sequence."""
        for index, special in enumerate(self._escaped):
            if special in text:
                text = text.replace(special, f"{_ESCAPE}{index}{_ESCAPE}")
        return text

    @staticmethod
    def slot(index: int) -> str:
        """The content that stands for the parts of turn ``index``."""
        return f"{_SLOT}{index}{_SLOT}"

    def open_prefix(self, messages: Sequence[Turn], role: str) -> str:
        """Escaped prompt text up to where the content of a new turn of ``role`` begins."""
        if role == "assistant":
            return self._render(messages, add_generation_prompt=True)
        probe = self.slot(len(messages))
        rendered = self._render([*messages, Turn(role, probe)], add_generation_prompt=False)
        before, found, _ = rendered.partition(probe)
        if not found:
            raise InputError(
                f"the chat template drops the content of role {role!r}",
                remedy="use the roles that the model's template knows",
            )
        return before

    def closed(self, messages: Sequence[Turn]) -> str:
        """Escaped prompt text of ``messages``, every one of them closed."""
        return self._render(messages, add_generation_prompt=False)

    @cached_property
    def renders_by_turn(self) -> bool:
        """True if ``closed`` of more messages is that of fewer, and ``appended`` of the others."""
        template, variables = self._template, {name for name, _ in self.tokenizer.template_variables}
        assert self.tokenizer.chat_template is not None
        return renders_by_turn(template.environment, self.tokenizer.chat_template, variables)

    def appended(self, messages: Sequence[Turn]) -> str:
        """Escaped prompt text of ``messages`` that follow others, of a template that ``renders_by_turn``."""
        return self.closed(messages)[len(self._start) :] if messages else ""

    def opening(self, role: str) -> str:
        """Escaped text that opens a turn of ``role`` behind closed ones, of a template that ``renders_by_turn``."""
        found = self._openings.get(role)
        if found is None:
            found = self._openings[role] = self.open_prefix((), role)[len(self._start) :]
        return found

    @cached_property
    def _openings(self) -> dict[str, str]:
        return {}

    @cached_property
    def _start(self) -> str:
        return self.closed(())

    def segments(self, rendered: str) -> list[Segment]:
        """Cut escaped prompt text into plain text (unescaped), special tokens and slots, in order."""
        segments: list[Segment] = []
        for index, piece in enumerate(_SLOTS.split(rendered)):
            if index % 2:
                segments.append(TurnSlot(int(piece)))
                continue
            if _SLOT in piece:
                raise _cut_error()
            for part in self.tokenizer.split_template(piece):
                segments.append(self.unescape(part) if isinstance(part, str) else part)
        return segments

    def unescape(self, text: str) -> str:
        """The inverse of ``escape``."""
        pieces = _ESCAPES.split(text)
        if any(_ESCAPE in piece for piece in pieces[::2]):
            raise _cut_error()
        pieces[1::2] = [self._escaped[int(index)] for index in pieces[1::2]]
        return "".join(pieces)

    @cached_property
    def call_syntax(self) -> CallSyntax | None:
        """The syntax in which this template writes calls of tools; None where it does not support tools.

        It does if it shows tools, shows calls as a name followed by JSON, and shows results. Read off a conversation
        that it renders.
        """
        try:
            return self._call_syntax()
        except InputError:
            return None

    def _call_syntax(self) -> CallSyntax | None:
        template = ChatTemplate(self.tokenizer, (_PROBE_TOOL,))
        asked = Turn("user", "Where is Oslo")
        shown = template.open_prefix([asked], "assistant")
        if not all(text in shown for text in (_PROBE_TOOL.name, _PROBE_TOOL.description, "Zq says which")):
            return None
        called = Turn("assistant", "", (_PROBE_CALL,))
        result = Turn("tool", _PROBE_RESULT, call_id=_PROBE_CALL.id, name=_PROBE_CALL.name)
        if _PROBE_RESULT not in template.open_prefix([asked, called, result], "assistant"):
            return None
        start, found, end = template.closed([asked, Turn("assistant", _PROBE_RESULT)]).partition(_PROBE_RESULT)

        def calls(count: int) -> str | None:
            whole = template.closed([asked, Turn("assistant", "", (_PROBE_CALL,) * count)])
            inside = whole.startswith(start) and whole.endswith(end)
            return whole[len(start) : len(whole) - len(end)] if found and inside else None

        one = calls(1)
        arguments = None if one is None else _PROBE_ARGUMENTS.search(one)
        if one is None or arguments is None or _PROBE_CALL.id in one:
            return None
        before, found, between = one[: arguments.start()].partition(_PROBE_CALL.name)
        if not found or not before:
            return None
        try:
            two = calls(2)
        except InputError:
            two = None
        separator = None
        if two is not None and two.startswith(one) and two.endswith(one) and len(two) >= 2 * len(one):
            separator = two[len(one) : len(two) - len(one)]
        return CallSyntax(before, between, one[arguments.end() :], separator)

    def _escape_data(self, value: Any) -> Any:
        """Return JSON data with all of its texts escaped."""
        if isinstance(value, str):
            return self.escape(value)
        if isinstance(value, list):
            return [self._escape_data(each) for each in cast("list[Any]", value)]
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {self.escape(key): self._escape_data(each) for key, each in items}
        return value

    @cached_property
    def _tools(self) -> list[dict[str, Any]] | None:
        return [self._escape_data(tool.data) for tool in self.tools] or None

    def _message(self, turn: Turn) -> dict[str, Any]:
        """Return a turn in the form that templates take."""
        message: dict[str, Any] = {"role": turn.role, "content": turn.content}
        if turn.calls:
            message["tool_calls"] = [self._escape_data(call.data) for call in turn.calls]
        if turn.call_id is not None:
            message["tool_call_id"] = self.escape(turn.call_id)
        if turn.name is not None:
            message["name"] = self.escape(turn.name)
        return message

    @cached_property
    def _escaped(self) -> tuple[str, ...]:
        # The escape characters come first, so that what later replacements insert is never escaped again: their
        # sequences hold digits only, and no special string of a tokenizer is made of digits and noncharacters.
        return (_ESCAPE, _SLOT, *(token.text for token in self.tokenizer.special_tokens))

    @cached_property
    def _template(self) -> jinja2.Template:
        if self.tools:
            return _template_of(self.tokenizer)._template
        source = self.tokenizer.chat_template
        if source is None:
            raise InputError(
                "this model has no chat template, so it can't take role messages",
                remedy="write the prompt as plain text, without system/user/assistant",
            )
        environment = TemplateEnvironment(trim_blocks=True, lstrip_blocks=True)
        functions = cast("dict[str, Any]", environment.globals)
        functions["raise_exception"] = _raise_exception
        if not _ASKS_FOR_A_CLOCK.search(source):
            functions["strftime_now"] = _strftime_now
        environment.filters["tojson"] = environment.bounded(to_json, stringifies=True)
        try:
            with budget_for():
                template = environment.from_string(source)
        except TemplateLimitError as error:
            raise self._unusable(f"fails: {error}") from error
        except jinja2.TemplateSyntaxError as error:
            raise self._unusable(f"is not valid jinja: {error}") from error
        except Exception as error:  # whatever a constant expression of it raises
            raise self._unusable(f"fails: {type(error).__name__}: {error}") from error
        self._check_keeps_texts(template)
        return template

    def _check_keeps_texts(self, template: jinja2.Template) -> None:
        """Raise ``InputError`` for a template that drops the text of the user or of the assistant.

        Only the last turn has to be there whole, as templates may shorten older ones. A conversation that the template
        refuses says nothing: it may refuse a system turn, or ask for one.
        """
        for turns in _PROBES:
            last = turns[-1]
            try:
                shown = self._rendered(template, list(turns), add_generation_prompt=last["role"] == "user")
            except jinja2.TemplateError:
                continue
            if last["content"] not in shown:
                raise self._unusable(f"drops the text of the {last['role']}")

    def _render(self, messages: Sequence[Turn], *, add_generation_prompt: bool) -> str:
        turns = [self._message(each) for each in messages]
        template = self._template
        try:
            return self._rendered(template, turns, add_generation_prompt=add_generation_prompt)
        except jinja2.TemplateError as error:
            roles = ", ".join(message.role for message in messages)
            raise InputError(
                f"the chat template refuses the turns ({roles}): {error}",
                remedy="use the order of roles that the model's template allows",
            ) from error

    def _rendered(self, template: jinja2.Template, turns: list[dict[str, Any]], *, add_generation_prompt: bool) -> str:
        """Render ``turns``. Raises ``jinja2.TemplateError`` for turns that the template refuses."""
        variables = dict(self.tokenizer.template_variables)
        try:
            with budget_for([*turns, *(self._tools or ())]):
                return template.render(
                    messages=turns,
                    add_generation_prompt=add_generation_prompt,
                    tools=self._tools,
                    documents=None,
                    **variables,
                )
        except TemplateLimitError as error:
            raise self._unusable(f"fails: {error}") from error
        except jinja2.TemplateError:
            raise
        except Exception as error:  # the template is a program of unknown origin, which may raise anything
            raise self._unusable(f"fails: {type(error).__name__}: {error}") from error

    def _unusable(self, problem: str) -> InputError:
        """The error of a template that can't be used with any messages."""
        model = f" of {self.tokenizer.folder}" if self.tokenizer.folder else ""
        return InputError(
            f"the chat template{model} {problem}",
            remedy="correct chat_template.jinja or tokenizer_config.json of the model folder, or use another model",
        )


@lru_cache(maxsize=16)
def _template_of(tokenizer: Tokenizer) -> ChatTemplate:
    return ChatTemplate(tokenizer)


def _cut_error() -> InputError:
    return InputError(
        "the chat template cuts a message into pieces", remedy="use a template that puts each content in whole"
    )


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)  # noqa: DTZ005  the user's own day

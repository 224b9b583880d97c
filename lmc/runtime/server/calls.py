"""Tools of a request: what the model may call, the constraint of its output, and the calls in an output."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from lmc.grammar.calls import CallForm, Outputs
from lmc.grammar.compiling import Whitespace
from lmc.grammar.constraint import Constraint
from lmc.ir.engine.protocol import Generation
from lmc.ir.tokens.tool_text import ANSWER, CallSyntax, ChatCall, ToolText
from lmc.runtime.server.errors import refused
from lmc.runtime.server.model import MOST_CHARACTERS, Model

Choice = Literal["auto", "none", "required"]
MOST_TOOLS = 128
_MOST_DEPTH = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)


@dataclass(frozen=True)
class ToolUse:
    """The tools of a request. ``called`` are the names that may be called (None: all)."""

    tools: tuple[ToolText, ...] = ()
    choice: Choice = "auto"
    called: frozenset[str] | None = None
    is_parallel: bool = True

    @classmethod
    def of(
        cls,
        tools: Sequence[tuple[str, str | None, dict[str, Any] | None]],
        choice: Choice = "auto",
        called: Sequence[str] | None = None,
        *,
        is_parallel: bool = True,
    ) -> ToolUse:
        """Check tools: names, descriptions, schemas. Raises ``ApiError``."""
        if len(tools) > MOST_TOOLS:
            raise refused("tools", f"there are {len(tools)}, and at most {MOST_TOOLS} are taken")
        found: dict[str, ToolText] = {}
        left = MOST_CHARACTERS
        for name, description, parameters in tools:
            if not _NAME.fullmatch(name):
                raise refused("tools", f"{name[:80]!r} is no name: letters, digits, _ and - are taken, 128 at most")
            if name in found:
                raise refused("tools", f"two are called {name!r}")
            schema = {"type": "object", "properties": {}} if parameters is None else parameters
            try:
                text = json.dumps(schema, ensure_ascii=False)
            except RecursionError:
                text = ""
            left -= len(text)
            if left < 0:
                raise refused("tools", f"their schemas have more than {MOST_CHARACTERS} characters")
            if not text or _depth(schema) > _MOST_DEPTH:
                raise refused("tools", f"the schema of {name!r} is nested more than {_MOST_DEPTH} deep")
            found[name] = ToolText(name, description or "", text)
        for name in called or ():
            if name not in found:
                raise refused("tool_choice", f"there is no tool {name!r}")
        if choice == "required" and not found:
            raise refused("tool_choice", "there are no tools")
        only = None if called is None else frozenset(called)
        return cls(tuple(found.values()), choice, only, is_parallel)

    def outputs(self, syntax: CallSyntax, definition: dict[str, Any] | bool | None) -> Outputs:
        """Return the outputs that are allowed; texts are JSON that meets ``definition`` (None: any text).

        Raises ``ApiError`` where a call could be taken for such a text, or the other way round.
        """
        is_defined = definition is not None
        if syntax.answer and any(tool.name == ANSWER for tool in self.tools):
            raise refused("tools", f"{ANSWER!r} is what a model without a syntax for calls says to answer in text")
        if is_defined and syntax.trigger.startswith("{"):
            raise refused("tools", "this model writes calls as JSON, so its answer can't have a schema of its own")
        calls = [
            CallForm(
                tool.name, f"{syntax.before}{tool.name}{syntax.between}", json.loads(tool.parameters), syntax.after
            )
            for tool in self.tools
            if self.choice != "none" and (self.called is None or tool.name in self.called)
        ]
        return Outputs(
            calls,
            syntax.trigger,
            syntax.separator if self.is_parallel else None,
            syntax.is_anywhere and not is_defined,
            "none" if self.choice == "required" else "schema" if is_defined else "any",
            definition,
            syntax.answer,
        )


def _depth(data: Any) -> int:
    """Return how deep JSON data is nested, at most one more than is allowed."""
    level, depth = [data], 0
    while level and depth <= _MOST_DEPTH:
        depth += 1
        level = [
            part
            for each in level
            if isinstance(each, list | dict)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some more of the text of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """The beginning of a call: the name of the tool."""

    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsPiece:
    """Some more of the arguments of the last call, as JSON text."""

    text: str


Piece = TextPiece | CallStart | ArgumentsPiece


class CallReader:
    """Finds the calls in an output that meets ``outputs``, as it comes.

    The text is a part of the output, from ``text_start`` on. White space between it and a call belongs to neither. The
    beginning of a call that is cut before its name ends is no text where none is allowed.
    """

    def __init__(self, syntax: CallSyntax, outputs: Outputs) -> None:
        self._syntax = syntax
        self._may_call = bool(outputs.calls)
        self._may_say = outputs.text != "none"
        self._is_anywhere = outputs.is_anywhere
        self._left = ""  # what was not handed out yet
        self._at: Literal["start", "text", "answer", "between", "arguments"] = "start"
        self._depth = 0
        self._in_string = self._is_escaped = False
        self.text_start = 0

    @property
    def is_in_call(self) -> bool:
        """True between the beginning of a call and its end."""
        return self._at == "arguments"

    def read(self, text: str, *, is_last: bool = False) -> Iterator[Piece]:
        """Yield what more of the output says."""
        self._left += text
        while True:
            before = (self._at, len(self._left))
            yield from self._step(is_last=is_last)
            if (self._at, len(self._left)) == before:
                return

    def _step(self, *, is_last: bool) -> Iterator[Piece]:
        syntax = self._syntax
        match self._at:
            case "start":
                yield from self._start(is_last=is_last)
            case "answer":
                yield from self._text(len(self._left))
            case "text":
                at = self._left.find(syntax.trigger) if self._may_call else -1
                if at >= 0:
                    yield from self._text(len(self._left[:at].rstrip()))
                    self._left = self._left.lstrip()
                    self._at = "between"
                else:
                    yield from self._text(len(self._left) if is_last else _settled(self._left, syntax.trigger))
            case "between":  # calls: what comes before the name, and the name
                start = self._left.find(syntax.before)
                end = self._left.find(syntax.between, start + len(syntax.before)) if start >= 0 else -1
                if end >= 0:
                    yield CallStart(self._left[start + len(syntax.before) : end])
                    self._left = self._left[end + len(syntax.between) :]
                    self._at = "arguments"
            case "arguments":
                if not self._depth:
                    self._left = self._left.lstrip()
                end = self._end_of_arguments()
                if end:
                    yield ArgumentsPiece(self._left[:end])
                    self._left = self._left[end:]
                    if not self._depth:
                        self._at = "between"

    def _start(self, *, is_last: bool) -> Iterator[Piece]:
        syntax, left = self._syntax, self._left
        if self._is_anywhere:
            self._at = "text"
        elif syntax.answer and left.startswith(syntax.answer):
            self.text_start = len(syntax.answer)
            self._left = left[self.text_start :]
            self._at = "answer"
        elif self._may_call and left.startswith(syntax.before) and not syntax.answer.startswith(left):
            self._at = "between"
        elif is_last or not any(each.startswith(left) for each in (syntax.answer, syntax.before)):
            self._at = "answer"
        yield from ()

    def _text(self, count: int) -> Iterator[Piece]:
        if count:
            if self._may_say:
                yield TextPiece(self._left[:count])
            self._left = self._left[count:]

    def _end_of_arguments(self) -> int:
        """Return how much of what is left belongs to the JSON value that has begun."""
        for place, character in enumerate(self._left):
            if self._in_string:
                if self._is_escaped:
                    self._is_escaped = False
                elif character == "\\":
                    self._is_escaped = True
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if not self._depth:
                    return place + 1
        return len(self._left)


def _settled(text: str, trigger: str) -> int:
    """Return how much of a text can't be white space before a call, or the beginning of one."""
    for length in range(min(len(trigger) - 1, len(text)), 0, -1):
        if text.endswith(trigger[:length]):
            text = text[:-length]
            break
    return len(text.rstrip())


@dataclass(frozen=True)
class OutputFormat:
    """The form of an output: text alone, or text and calls in ``syntax``."""

    syntax: CallSyntax | None = None
    outputs: Outputs | None = None

    def reader(self) -> CallReader | TextReader:
        """Return a reader of one output."""
        if self.syntax is None or self.outputs is None:
            return TextReader()
        return CallReader(self.syntax, self.outputs)

    def read(self, output: str, ids: str) -> tuple[str, list[ChatCall]]:
        """Return text and calls of a whole output; the ids of calls begin with ``ids``."""
        text, calls = "", list[ChatCall]()
        for piece in self.reader().read(output, is_last=True):
            match piece:
                case TextPiece():
                    text += piece.text
                case CallStart():
                    calls.append(ChatCall(new_id(ids), piece.name, ""))
                case ArgumentsPiece():
                    last = calls.pop()
                    calls.append(ChatCall(last.id, last.name, last.arguments + piece.text))
        return text, calls

    def ends_with_calls(self, found: Generation) -> bool:
        """Return True if a generation ended because its calls are made: neither its length nor a stop cut them."""
        if found.finish_reason == "length":
            return False
        reader = self.reader()
        pieces = list(reader.read(found.text, is_last=True))
        return any(isinstance(piece, CallStart) for piece in pieces) and not reader.is_in_call


class TextReader:
    """Reads an output that is text alone."""

    is_in_call = False
    text_start = 0

    def read(self, text: str, *, is_last: bool = False) -> Iterator[Piece]:
        """Yield what more of the output says."""
        del is_last
        if text:
            yield TextPiece(text)


def new_id(start: str) -> str:
    """Return an id that no other object has."""
    return f"{start}{uuid.uuid4().hex}"


async def compiled(
    model: Model, use: ToolUse, definition: dict[str, Any] | bool | None, whitespace: Whitespace | None = None
) -> tuple[OutputFormat, Constraint]:
    """Return format and constraint of an output; its texts are JSON that meets ``definition`` (None: any text).

    Raises ``ApiError`` that blames the tools.
    """
    syntax = model.prompts.call_syntax
    outputs = replace(use.outputs(syntax, definition), whitespace=whitespace or "compact")
    return OutputFormat(syntax, outputs), await model.outputs("tools", outputs)

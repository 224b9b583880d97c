"""Contents of messages in Anthropic's protocol, tools among them, as turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Tag

from lmc.ir.tokens.tool_text import ChatCall
from lmc.runtime.server.calls import ToolUse
from lmc.runtime.server.errors import refused
from lmc.runtime.server.parameters import Parameters, by_type
from lmc.runtime.server.prompts import ChatTurn

_STRICT = ConfigDict(frozen=True, strict=True, extra="forbid")


class TextBlock(BaseModel):
    """A block of a content: text."""

    model_config = _STRICT

    type: Literal["text"]
    text: str
    cache_control: dict[str, Any] | None = None
    citations: None = None


class ToolUseBlock(BaseModel):
    """A block of a content: a call that the assistant has made."""

    model_config = _STRICT

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]
    cache_control: dict[str, Any] | None = None
    caller: dict[str, Any] | None = None


class ToolResultBlock(BaseModel):
    """A block of a content: the result of a call."""

    model_config = _STRICT

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[TextBlock] | None = None
    is_error: bool | None = None
    cache_control: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The result as text."""
        return f"Error: {text_of(self.content or '')}" if self.is_error else text_of(self.content or "")


Block = Annotated[
    Annotated[TextBlock, Tag("Text")]
    | Annotated[ToolUseBlock, Tag("Tool_use")]
    | Annotated[ToolResultBlock, Tag("Tool_result")],
    by_type("a block is a text, a tool_use or a tool_result: images and documents are not served"),
]


class MessageParam(BaseModel):
    """A message of the conversation."""

    model_config = _STRICT

    role: Literal["user", "assistant"]
    content: str | list[Block]


class MessageTool(Parameters):
    """A tool that the client runs. Its schema is always enforced, whatever ``strict`` says."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"cache_control", "eager_input_streaming", "strict"})
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "allowed_callers": (["direct"],),
        "defer_loading": (False,),
        "input_examples": ([],),
    }

    type: Literal["custom"] | None = None
    name: str
    description: str | None = None
    input_schema: dict[str, Any]


class ToolChoiceParam(BaseModel):
    """The tools that are called: of type tool the one with this ``name``."""

    model_config = _STRICT

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


def tool_use(tools: Sequence[MessageTool] | None, choice: ToolChoiceParam | None) -> ToolUse:
    """Return the tools of a request. Raises ``ApiError``."""
    given = [(tool.name, tool.description, tool.input_schema) for tool in tools or ()]
    if choice is None:
        return ToolUse.of(given)
    if (choice.type == "tool") != (choice.name is not None):
        raise refused("tool_choice", "a name is given with the type tool, and only there")
    is_parallel = not choice.disable_parallel_tool_use
    if choice.name is not None:
        return ToolUse.of(given, "required", [choice.name], is_parallel=is_parallel)
    kind = "required" if choice.type == "any" else "none" if choice.type == "none" else "auto"
    return ToolUse.of(given, kind, is_parallel=is_parallel)


def text_of(content: str | Sequence[TextBlock]) -> str:
    """Return the whole text of a content."""
    return content if isinstance(content, str) else "".join(block.text for block in content)


def turns_of(messages: Sequence[MessageParam]) -> list[ChatTurn]:
    """Return the turns of messages. Raises ``ApiError`` for calls and results that are out of place."""
    turns: list[ChatTurn] = []
    calls: dict[str, ChatCall] = {}
    for message in messages:
        blocks = [TextBlock(type="text", text=message.content)] if isinstance(message.content, str) else message.content
        made: list[ChatCall] = []
        texts: list[TextBlock] = []
        results = len(turns)
        for block in blocks:
            if isinstance(block, TextBlock):
                texts.append(block)
            elif isinstance(block, ToolUseBlock):
                if message.role != "assistant":
                    raise refused("messages", "a message of the user has a tool_use")
                made.append(ChatCall(block.id, block.name, json.dumps(block.input, ensure_ascii=False)))
            else:
                answered = calls.get(block.tool_use_id)
                if answered is None or message.role != "user":
                    raise refused("messages", f"there is no call {block.tool_use_id!r} before its result")
                turns.append(ChatTurn("tool", block.text, answered=answered))
        calls.update((call.id, call) for call in made)
        if texts or made or len(turns) == results:
            turns.append(ChatTurn(message.role, text_of(texts), tuple(made)))
    return turns

"""Tools in OpenAI's protocol: parameters of requests, and calls in messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.tokens.tool_text import ChatCall
from lmc.runtime.server.calls import (
    MOST_TOOLS,
    ArgumentsPiece,
    CallStart,
    Choice,
    OutputFormat,
    ToolUse,
    compiled,
    new_id,
)
from lmc.runtime.server.errors import refused
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import Restriction

_STRICT = ConfigDict(frozen=True, strict=True, extra="forbid")


class FunctionTool(BaseModel):
    """A function that the model may call. Its schema is always enforced, whatever ``strict`` says."""

    model_config = _STRICT

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatTool(BaseModel):
    """A tool of a chat."""

    model_config = _STRICT

    type: Literal["function"]
    function: FunctionTool


class NamedFunction(BaseModel):
    """The name of a function."""

    model_config = _STRICT

    name: str


class NamedTool(BaseModel):
    """A tool by its name."""

    model_config = _STRICT

    type: Literal["function"]
    function: NamedFunction


class AllowedTools(BaseModel):
    """Tools of those given that may be called."""

    model_config = _STRICT

    mode: Literal["auto", "required"]
    tools: list[NamedTool] = Field(max_length=MOST_TOOLS)


class AllowedChoice(BaseModel):
    """A choice among some of the tools."""

    model_config = _STRICT

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ChatToolChoice = Choice | NamedTool | AllowedChoice


def tool_use(tools: Sequence[ChatTool] | None, choice: ChatToolChoice | None, *, is_parallel: bool) -> ToolUse:
    """Return the tools of a chat. Raises ``ApiError``."""
    given = [(tool.function.name, tool.function.description, tool.function.parameters) for tool in tools or ()]
    match choice:
        case NamedTool():
            return ToolUse.of(given, "required", [choice.function.name], is_parallel=False)
        case AllowedChoice():
            names = [each.function.name for each in choice.allowed_tools.tools]
            return ToolUse.of(given, choice.allowed_tools.mode, names, is_parallel=is_parallel)
        case _:
            return ToolUse.of(given, choice or "auto", is_parallel=is_parallel)


async def output_format(
    model: Model, use: ToolUse, restriction: Restriction | None
) -> tuple[OutputFormat, TokenConstraint | None]:
    """Return format and constraint of an output with tools, or restricted by a parameter. Raises ``ApiError``."""
    if not use.tools:
        return OutputFormat(), await model.constraint(*restriction) if restriction else None
    if restriction is None:
        return await compiled(model, use, None)
    if restriction.kind != "schema" or isinstance(restriction.definition, str):
        raise refused(restriction.parameter, "with tools, an answer in text can have a schema only")
    return await compiled(model, use, restriction.definition, restriction.whitespace)


class CalledFunction(BaseModel):
    """Name and arguments of a call."""

    model_config = _STRICT

    name: str
    arguments: str


class CallParam(BaseModel):
    """A call in a message of the assistant."""

    model_config = _STRICT

    id: str
    type: Literal["function"]
    function: CalledFunction

    @property
    def call(self) -> ChatCall:
        """The call. Raises ``ApiError`` where its arguments are no JSON object."""
        return call_of(self.id, self.function.name, self.function.arguments)


def call_of(call_id: str, name: str, arguments: str) -> ChatCall:
    """Return a call of a conversation. Raises ``ApiError`` where its arguments are no JSON object."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise refused("messages", f"the arguments of the call {call_id!r} are no JSON object")
    return ChatCall(call_id, name, arguments or "{}")


class CallDeltas:
    """Makes the deltas of calls of one choice in a stream."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, piece: CallStart | ArgumentsPiece) -> dict[str, Any]:
        """Return a delta of the choice."""
        if isinstance(piece, CallStart):
            self.count += 1
            function = {"name": piece.name, "arguments": ""}
            head: dict[str, Any] = {"id": new_id("call_"), "type": "function"}
        else:
            function, head = {"arguments": piece.text}, {}
        return {"tool_calls": [{"index": self.count - 1, **head, "function": function}]}

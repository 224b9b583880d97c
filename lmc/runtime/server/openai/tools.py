"""Tools in OpenAI's protocol: parameters of requests, and calls in messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

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
from lmc.runtime.server.parameters import Parameters

_STRICT = ConfigDict(frozen=True, strict=True, extra="forbid")


class FunctionTool(Parameters):
    """A function that the model may call. Its schema is always enforced, whatever ``strict`` says."""

    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "allowed_callers": (["direct"],),
        "async": (False,),
        "defer_loading": (False,),
    }

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseTool(FunctionTool):
    """A tool of a response."""

    type: Literal["function"]


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
    """A tool of a chat by its name, which has to be called once."""

    model_config = _STRICT

    type: Literal["function"]
    function: NamedFunction


class AllowedTools(BaseModel):
    """Tools of those given that may be called."""

    model_config = _STRICT

    mode: Literal["auto", "required"]
    tools: list[NamedTool] = Field(max_length=MOST_TOOLS)


class AllowedChoice(BaseModel):
    """A choice among some of the tools of a chat."""

    model_config = _STRICT

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


class ResponseNamedTool(NamedFunction):
    """A tool of a response by its name, which has to be called once."""

    type: Literal["function"]


class ResponseAllowedChoice(BaseModel):
    """A choice among some of the tools of a response."""

    model_config = _STRICT

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[ResponseNamedTool] = Field(max_length=MOST_TOOLS)


ChatToolChoice = Choice | NamedTool | AllowedChoice
ResponseToolChoice = Choice | ResponseNamedTool | ResponseAllowedChoice


def tool_use(
    tools: Sequence[FunctionTool], choice: ChatToolChoice | ResponseToolChoice | None, *, is_parallel: bool
) -> ToolUse:
    """Return the tools of a request. Raises ``ApiError``."""
    given = [(tool.name, tool.description, tool.parameters) for tool in tools]
    match choice:
        case NamedTool(function=NamedFunction(name=name)) | ResponseNamedTool(name=name):
            return ToolUse.of(given, "required", [name], is_parallel=False)
        case AllowedChoice(allowed_tools=AllowedTools(mode=mode, tools=some)):
            return ToolUse.of(given, mode, [each.function.name for each in some], is_parallel=is_parallel)
        case ResponseAllowedChoice(mode=mode, tools=some):
            return ToolUse.of(given, mode, [each.name for each in some], is_parallel=is_parallel)
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


class CalledFunction(Parameters):
    """Name and arguments of a call."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"parsed_arguments"})

    name: str
    arguments: str


class CallParam(Parameters):
    """A call in a message of the assistant, whole or as a stream has made it."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"index"})

    id: str
    type: Literal["function"]
    function: CalledFunction

    @property
    def call(self) -> ChatCall:
        """The call. Raises ``ApiError`` where its arguments are no JSON object."""
        return call_of("messages", self.id, self.function.name, self.function.arguments)


def call_of(parameter: str, call_id: str, name: str, arguments: str) -> ChatCall:
    """Return a call of a conversation. Raises ``ApiError`` where its arguments are no JSON object."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise refused(parameter, f"the arguments of the call {call_id!r} are no JSON object")
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

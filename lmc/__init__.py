"""lmc, an optimizing compiler for language-model programs."""

from lmc.driver import AsyncStream, BatchInterruptedError, Compiled, Profile, Result, Stream, TokenEvent, Usage
from lmc.frontend.forms import cond, map, race, while_loop
from lmc.frontend.messages import assistant, gen, message, select, system, user
from lmc.frontend.sections import section
from lmc.frontend.state import State
from lmc.frontend.tools import tool
from lmc.ir.errors import (
    CaptureError,
    ConstraintError,
    ContextLengthError,
    EngineError,
    InputError,
    LmcError,
    LoweringError,
    RequestCancelledError,
    RequestTimeoutError,
    ToolTimeoutError,
)
from lmc.jit import Program, jit
from lmc.library import call_tools, describe_tools

__all__ = [
    "AsyncStream",
    "BatchInterruptedError",
    "CaptureError",
    "Compiled",
    "ConstraintError",
    "ContextLengthError",
    "EngineError",
    "InputError",
    "LmcError",
    "LoweringError",
    "Profile",
    "Program",
    "RequestCancelledError",
    "RequestTimeoutError",
    "Result",
    "State",
    "Stream",
    "TokenEvent",
    "ToolTimeoutError",
    "Usage",
    "assistant",
    "call_tools",
    "cond",
    "describe_tools",
    "gen",
    "jit",
    "map",
    "message",
    "race",
    "section",
    "select",
    "system",
    "tool",
    "user",
    "while_loop",
]

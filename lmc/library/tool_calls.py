"""A model that calls tools until it knows the answer (Yao et al. 2023, "ReAct: Synergizing Reasoning and Acting")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import pydantic

from lmc.frontend.language.messages import message
from lmc.frontend.language.refusals import bad, described
from lmc.frontend.language.state import State
from lmc.frontend.program.function import called_at_capture, part_of_programs
from lmc.frontend.tools.tools import Tool
from lmc.ir.tokens import tool_text
from lmc.ir.tokens.tool_text import ANSWER, ToolText
from lmc.library.tool_arguments import Errors, arguments_of, by_text

_Known = tuple[tuple[str, type[pydantic.BaseModel], Tool[[str], str]], ...]


@part_of_programs
def call_tools(
    s: State,
    tools: Sequence[Tool[..., Any]],
    *,
    max_rounds: int = 8,
    name: str | None = ANSWER,
    role: Literal["tool", "user"] | None = "tool",
    errors: Errors = "raise",
    argument_tokens: int = 256,
    **options: Any,
) -> Any:
    r"""Let the model call ``tools`` until it answers; append all of it, and return the answer.

    In each round the model chooses one of the tools, or to answer. Where it chooses a tool, it gives the arguments as
    JSON that meets the annotations of the tool, the tool is called, and a message with its result (texts as they are,
    else JSON) follows; after ``max_rounds`` rounds it must answer. The output of the model in a round is

        Action: search
        {"query":"ants"}

    and at the end ``Action: answer`` and the answer, on the next line; ``describe_tools`` is a text that explains this.
    It is a part of the program that calls it, made of ``s.select``, ``s.gen`` and calls of the tools.

    Args:
        s: the state that goes on.
        tools: declared functions (``@lmc.tool``), each with a name of its own and all parameters annotated.
        max_rounds: how many tools are called at most.
        name: the variable that the answer is set to.
        role: that of the messages with results. Not all chat templates know "tool": use "user" there. Without roles
            in the program None, which appends ``Result:`` and the result as text.
        errors: "raise" what a tool raises, or "tell" the model and go on (not lmc's own errors, but timeouts).
        argument_tokens: ``max_tokens`` of the arguments.
        options: those of ``s.gen`` for the answer (``max_tokens``, ``schema`` …).

    Raises ``CaptureError`` for tools that can't be called so, ``ConstraintError`` where the arguments do not fit in
    ``argument_tokens``, and what ``s.gen`` and the tools raise.
    """
    names, known = _known(tools, errors)
    for _ in range(max_rounds):
        s += "Action: "
        action = s.select(None, names)
        if action == ANSWER:
            break
        for tool_name, model, tool in known:
            if action == tool_name:
                s += "\n"
                result = tool(s.gen(None, schema=model, parse=False, max_tokens=argument_tokens))
                if role is None:
                    s += f"\nResult: {result}\n"
                else:
                    s += message(role, result)
    else:
        s += f"Action: {ANSWER}"
    s += "\n"
    return s.gen(name, **options)


@called_at_capture
def describe_tools(tools: Sequence[Tool[..., Any]]) -> str:
    """Return instructions for the model for ``call_tools``: each tool with its docstring, JSON schema and call format.

    A text for a message: ``s += lmc.system(lmc.describe_tools([search]))``. Raises as ``call_tools`` does.
    """
    _known(tools, "raise")
    return tool_text.describe_tools([ToolText(tool.name, _summary(tool), arguments_of(tool).schema) for tool in tools])


def _summary(tool: Tool[..., Any]) -> str:
    """Return the first paragraph of a docstring, as a line."""
    return " ".join((tool.__doc__ or "").split("\n\n")[0].split())


@called_at_capture
def _known(tools: Sequence[Tool[..., Any]], errors: Errors) -> tuple[tuple[str, ...], _Known]:
    """Return the choices of a round, and each tool with its arguments. Raises ``CaptureError``."""
    if not isinstance(tools, list | tuple) or not tools:
        raise bad(f"the tools are {described(tools)}", "give a list of functions declared with @lmc.tool")
    for tool in tools:
        if not isinstance(tool, Tool):
            raise bad(f"{described(tool)} is no tool", "declare it: @lmc.tool")
    if errors not in get_args(Errors):
        raise bad(f"errors is {described(errors)}", f"give one of {', '.join(map(repr, get_args(Errors)))}")
    names = tuple(tool.name for tool in tools)
    for name in names:
        if names.count(name) > 1:
            raise bad(f"two tools are called {name!r}", "give each a name of its own")
    if ANSWER in names:
        raise bad(f"a tool is called {ANSWER!r}, which is what a model says to end", "give it another name")
    return (*names, ANSWER), tuple((tool.name, arguments_of(tool).model, by_text(tool, errors)) for tool in tools)

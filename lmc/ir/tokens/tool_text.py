"""Tools in prompts and outputs: their description for a model, and the text of a call."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ANSWER = "answer"
"""The choice of a model that calls no tool."""


@dataclass(frozen=True, slots=True)
class ToolText:
    """A tool as a model sees it; ``parameters`` is the JSON schema of its arguments, as text."""

    name: str
    description: str
    parameters: str

    @property
    def data(self) -> dict[str, Any]:
        """The tool in the form that chat templates take."""
        function = {"name": self.name, "description": self.description, "parameters": json.loads(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call in a conversation; ``arguments`` is a JSON object, as text."""

    id: str
    name: str
    arguments: str

    @property
    def data(self) -> dict[str, Any]:
        """The call in the form that chat templates take."""
        function = {"name": self.name, "arguments": json.loads(self.arguments)}
        return {"type": "function", "id": self.id, "function": function}


_MARK = re.compile(r"[<\[]\W?\w")


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """The text of a call: ``before``, the name, ``between``, the arguments as JSON, ``after``.

    ``separator`` comes between the calls of a turn (None: a turn has one call). An answer in text may begin with
    ``answer``, which is no part of it.
    """

    before: str
    between: str
    after: str
    separator: str | None = None
    answer: str = ""

    @property
    def trigger(self) -> str:
        """The beginning of every call. A text that may hold a call anywhere does not contain it."""
        return self._mark or self.before

    @property
    def is_anywhere(self) -> bool:
        """True if a call may follow text: its beginning is a word in angle or square brackets, such as a tag."""
        return bool(self._mark)

    @property
    def _mark(self) -> str:
        mark = self.before.partition("{")[0].strip()
        return mark if _MARK.match(mark) else ""

    def call(self, call: ChatCall) -> str:
        """Return the text of a call."""
        return f"{self.before}{call.name}{self.between}{call.arguments}{self.after}"


PLAIN_CALLS = CallSyntax("Action: ", "\n", "", answer=f"Action: {ANSWER}\n")
"""The syntax that ``describe_tools`` explains to models whose template has none."""


def describe_tools(tools: Sequence[ToolText]) -> str:
    """Return instructions for a model that writes ``PLAIN_CALLS``."""
    lines = ["You can call these tools:"]
    for tool in tools:
        lines.append(f"- {tool.name}: {tool.description}" if tool.description else f"- {tool.name}")
        lines.append(f"  arguments: {tool.parameters}")
    lines.append(
        'To call one, write "Action: " and its name, and on the next line its arguments as JSON; its result follows. '
        f'To answer, write "Action: {ANSWER}", and the answer on the next line.'
    )
    return "\n".join(lines)

"""The state that all handles on one context share."""

from __future__ import annotations

from typing import Any

from lmc.frontend.language.eager import EagerSession

META = "@meta:"
"""Begins the names under which a run keeps what belongs to its variables; the rest is the variable's name."""


class Core:
    """The context, the variables and their meta data."""

    __slots__ = ("answer", "bare", "chat", "context", "metas", "role", "session", "variables")

    def __init__(self, session: EagerSession) -> None:
        self.session = session
        self.context: Any = session.new_context()
        self.variables: dict[str, Any] = {}
        self.metas: dict[str, Any] = {}
        self.answer: Any = None  # the value that the last operation generated into a turn of the assistant's
        self.role: Any = None  # the role of the turn that a block has opened
        self.chat = False  # a role message was opened
        self.bare = False  # there is bare text before any role message

    def copy(self) -> Core:
        """A new core of the same context and variables, to be changed apart from these."""
        made = object.__new__(Core)
        made.session = self.session
        made.context = self.context
        made.variables = dict(self.variables)
        made.metas = dict(self.metas)
        made.answer = self.answer
        made.role = self.role
        made.chat = self.chat
        made.bare = self.bare
        return made

"""What all handles on one context share."""

from __future__ import annotations

from typing import Any

from lmc.frontend.session import Session


class Core:
    """The context, the variables and their meta data."""

    __slots__ = ("answer", "bare", "chat", "context", "metas", "role", "session", "unsure", "variables")

    def __init__(self, session: Session) -> None:
        self.session = session
        session.born(self)
        self.context: Any = session.new_context()
        self.variables: dict[str, Any] = {}
        self.metas: dict[str, Any] = {}
        self.answer: Any = None  # the value that the last operation generated into a turn of the assistant's
        self.role: Any = None  # the role of the turn that a block has opened
        self.chat: bool | None = False  # a role message was opened; None: only a run knows
        self.bare = False  # there is bare text before any role message
        self.unsure = False  # there may be, if a text turns out not to be empty

    def copy(self) -> Core:
        """A new core of the same context and variables, to be changed apart from these."""
        made = self.like()
        self.session.born(made)
        return made

    def like(self) -> Core:
        """What this is now, to be kept or handed to ``take``."""
        made = object.__new__(Core)
        made.session = self.session
        made.context = self.context
        made.variables = dict(self.variables)
        made.metas = dict(self.metas)
        made.answer = self.answer
        made.role = self.role
        made.chat = self.chat
        made.bare = self.bare
        made.unsure = self.unsure
        return made

    def take(self, other: Core) -> None:
        """Become what ``other`` is."""
        self.context = other.context
        self.variables = dict(other.variables)
        self.metas = dict(other.metas)
        self.answer, self.role = other.answer, other.role
        self.chat, self.bare, self.unsure = other.chat, other.bare, other.unsure

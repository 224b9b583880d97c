"""What a state handle is written against: one session records ops (capture), another runs them at once (eager)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmc.frontend.misuse import RoleBlocks
from lmc.frontend.sampling import GenerationOptions

META = "@meta:"
"""Begins the names under which a run keeps what belongs to its variables; the rest is the variable's name."""
NEEDED = "its value is needed now"
UNROLLED, OPEN = -1, -1
"""In ``Session.constructs``: rounds that were captured one by one begin where they are; not at its end yet."""
_ESCAPES = {"%": "%25", "/": "%2F", "#": "%23", "@": "%40", "*": "%2A", "$": "%24"}


class Session(ABC):
    """One run of a program: hands out stable ids and does what the handle's methods ask for.

    Contexts are opaque here: IR values in a capture, ``lmc.ir.context.Context`` in an eager run.

    ``ticks`` counts the operations of transformed code; ``served`` says which of them a host call answered, ``entered``
    which were calls of plain functions that became parts of the program. A replay of the captured part takes the same
    steps, so it finds those answers again. ``constructs`` are the conditions both arms of which were captured, by their
    tick: where the second one begins, and where both have ended; the loops that were: where a round begins, and where
    they have ended; and rounds that were captured one by one, before which only a run knows whether the loop was left:
    where the loop has ended. ``rounds`` are the numbers of the rounds of captured loops that are under way. ``path`` is
    that of the program which runs now, where calls that belong to no handle get their ids. ``blocks`` are the
    role blocks still to be opened.
    """

    def __init__(self) -> None:
        self.ticks = 0
        self.served: dict[int, str] = {}
        self.entered: frozenset[int] = frozenset()
        self.constructs: dict[int, tuple[int, int]] = {}
        self.rounds: list[int] = []
        self.path = ""
        self.blocks = RoleBlocks()
        self._counts: dict[Any, Any] = {}

    def allocate(self, path: str, name: str) -> str:
        """A stable id for what comes next called ``name`` on ``path``: ``path/name``, ``path/name#1`` and so on."""
        self.blocks.check()
        return self._allocate(f"{path}/{name if name.isidentifier() else escape(name)}")

    def branch_path(self, path: str, index: int) -> str:
        """The path of one branch of the fork at ``path``."""
        return f"{path}/{index}"

    def allocate_host(self, path: str, name: str) -> str:
        """The stable id of the next host call of ``name``: ``path/@name``. No user's name begins with ``@``."""
        return self._allocate(f"{path}/@{escape(name)}")

    def _allocate(self, base: str) -> str:
        count = self._counts.get(base, 0)
        self._counts[base] = count + 1
        return base if count == 0 else f"{base}#{count}"

    def counted(self, counts: Mapping[str, int]) -> None:
        """Take over how many ids there are on each base."""
        self._counts.update(counts)

    @abstractmethod
    def new_context(self) -> Any:
        """A context without text."""

    @abstractmethod
    def extend(self, context: Any, role: str | None, text: Any) -> Any:
        """``context`` with a message of ``role`` (or bare text) appended."""

    @abstractmethod
    def extend_sections(self, context: Any, role: str | None, kinds: Sequence[str], texts: Sequence[Any]) -> Any:
        """``context`` with texts in sections appended as one; ``kinds`` are of ``lmc.ir.section_ops``."""

    @abstractmethod
    def begin(self, context: Any, role: str) -> Any:
        """``context`` with a turn of ``role`` opened."""

    @abstractmethod
    def end(self, context: Any) -> Any:
        """``context`` with its open turn closed."""

    @abstractmethod
    def extend_or_end(self, context: Any, text: Any, answer: Any) -> Any:
        """``context``, whose open turn ends with ``answer``, with an assistant message ``text``.

        Where ``text`` is the answer, white space at both ends aside, that is this turn, which is closed.
        """

    @abstractmethod
    def generate(
        self, context: Any, op_id: str, name: str | None, options: GenerationOptions
    ) -> tuple[Any, Any, Any | None]:
        """Context, value and meta data (with ``logprobs``) of one generation."""

    @abstractmethod
    def sample(
        self, context: Any, op_id: str, name: str | None, options: GenerationOptions, count: int
    ) -> tuple[Any, Any | None]:
        """``count`` values drawn from one context, and their meta data."""

    @abstractmethod
    def select(self, context: Any, op_id: str, name: str | None, choices: Any, method: str) -> tuple[Any, Any, Any]:
        """Context, choice and meta data of a choice among ``choices``."""

    @abstractmethod
    def transcript(self, context: Any) -> Any:
        """The text of the whole context."""

    @abstractmethod
    def added(self, context: Any, before: Any) -> Any:
        """Return what was appended to ``before`` to make it ``context``, all to one turn; else ``CaptureError``."""

    @abstractmethod
    def message_list(self, context: Any) -> Any:
        """Roles and contents of a chat."""

    @abstractmethod
    def derive(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(*arguments)``, for a function of lmc's own without effects."""

    def unknown_branches(self, state: Any, n: Any) -> Any | None:  # noqa: ARG002
        """The branches of ``state.fork(n)`` where only a run knows how many these are; None where it is known."""
        return None

    def check_called(self, function: Any) -> None:  # noqa: B027 - only a capture has to know
        """Note that a handle is about to call ``function``, which the program gave it."""

    def touch(self, held: Any) -> None:  # noqa: B027 - only a capture has to know
        """Note that ``held``, a list, dict, set or the core of a handle, is about to change."""

    def born(self, made: Any) -> Any:
        """Note that ``made``, a list, dict, set, iterator or the core of a handle, is new; gives it back."""
        return made

    def clear(self, value: Any, what: str) -> Any:  # noqa: ARG002
        """``value``, which is called ``what``; ends a capture where the ways through a condition differ in it."""
        return value

    def either(self, value: Any, default: Any, what: str) -> Any:  # noqa: ARG002
        """``value``, or ``default`` where a capture does not know yet whether it is there."""
        return value

    def presence(self, value: Any) -> Any:  # noqa: ARG002
        """Return whether ``value`` is there: a bool, or in a capture a symbolic one."""
        return True

    def may_raise(self) -> None:  # noqa: B027 - only a capture has to know
        """Note that what comes next may raise, depending on what texts turn out to be."""

    @abstractmethod
    def as_text(self, value: Any) -> Any:
        """``value``, which is text or will be, in the form that ``extend`` takes."""

    @abstractmethod
    def concrete(self, value: Any, use: str = NEEDED) -> Any:
        """``value`` as a plain Python value; in a capture this may specialise or break (``use`` says why it has to)."""

    @abstractmethod
    def choices(self, value: Any) -> Any:
        """The choices of a select, checked as far as they are known."""


def escape(name: str) -> str:
    """``name`` without the characters that structure an id."""
    return "".join(_ESCAPES.get(letter, letter) for letter in name)

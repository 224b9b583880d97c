"""Misuse of handles: raises at the user's line, with the remedy.

Type checkers do not see the methods here, so that they refuse the same.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lmc.frontend.language.refusals import bad
from lmc.frontend.source.locations import user_location
from lmc.frontend.source.pure_types import Harmless
from lmc.ir.errors import CaptureError, Location


@Harmless.register
class Handle:
    """Base of a state, its branches and its role blocks: what texts are appended to, and no text itself."""

    __slots__ = ()
    instead: ClassVar[str]
    """The remedy: what to append where a text was meant."""


class StateMisuse:
    """Errors for a state used as a dict of variables or as a text."""

    __slots__ = ()
    instead = "append a text: s['name'] is a variable, s.text() all there is so far"

    if not TYPE_CHECKING:

        def __setitem__(self, key: object, value: object) -> None:
            raise bad(
                f"s[{_shown(key)}] = …: only gen and select set variables of a state",
                "keep the value in a variable of Python's; a text goes in with s += …",
            )

        def __delitem__(self, key: object) -> None:
            raise bad(
                f"del s[{_shown(key)}]: variables of a state stay",
                "leave it out: the next gen or select of that name replaces the value",
            )

        def __add__(self, other: object) -> None:
            raise bad(
                "s + …: a state is no text, it grows in place",
                "write s += …; or branch = s.copy(), then branch += …, where s has to stay as it is",
            )

        def __radd__(self, other: object) -> None:
            raise bad("… + s: a state is no text", "write s += …; the text of the state so far is s.text()")


class BranchesMisuse:
    """Errors for branches used as one state or as a list."""

    __slots__ = ()
    instead = "append a text: branches['name'] are the values of a variable, branches[0].text() is all of one branch"

    if not TYPE_CHECKING:

        def __add__(self, other: object) -> None:
            raise bad(
                "branches + …: nothing is appended to several branches at once",
                "append to each: for branch in branches: branch += …",
            )

        __radd__ = __add__

        def __delitem__(self, key: object) -> None:
            raise bad("a branch can't be deleted", "leave it unused, or take some: branches[1:]")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    block: weakref.ref[object]
    role: str
    location: Location | None


class RoleBlocks:
    """The role blocks of one run that no ``with`` has opened so far."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    @property
    def waiting(self) -> tuple[object, ...]:
        """An entry for each of them."""
        return tuple(self._waiting)

    def made(self, block: object, role: str) -> None:
        """Note a block that is to be opened."""
        self._waiting.append(_Waiting(weakref.ref(block), role, user_location()))

    def opened(self, block: object) -> None:
        """Note that it is."""
        self._waiting = [entry for entry in self._waiting if entry.block() is not block]

    def check(self) -> None:
        """Raise ``CaptureError`` for a block that nothing refers to any more, so that nothing can open it."""
        for entry in self._waiting:
            if entry.block() is None:
                self._refuse(entry)

    def check_all(self) -> None:
        """The same at the end of the run, for every block."""
        for entry in self._waiting:
            self._refuse(entry)

    def _refuse(self, entry: _Waiting) -> None:
        self._waiting.remove(entry)
        raise CaptureError(
            f"s.{entry.role}() with neither a text nor `with` does nothing",
            remedy=f"write with s.{entry.role}(): and append inside the block, or s.{entry.role}(text)",
            location=entry.location,
        )


def _shown(key: Any) -> str:
    return repr(key) if type(key) in (str, int) else "…"

"""States: the content of every place, as an overlay over an older state.

A place is an address (whose content is a cell), ``(address, name)`` (a name of a frame, an attribute, a variable of a
handle: a value), or ``("count", base, holes)`` (how many ids there are on a base: a value). A state is not changed
after another one was derived from it, unless that one is dropped or absorbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmc.frontend.heap.cells import Cell
from lmc.frontend.heap.values import UNBOUND, ZERO, Abstract

Place = Any
Content = Abstract | Cell


def initial_content(place: Place) -> Content:
    """Return what a place holds that nothing was put into."""
    return ZERO if type(place) is tuple and place[0] == "count" else UNBOUND


_MISSING: Any = object()


class Journal:
    """An undo log of changes to dictionaries: restoring costs no more than the changes.

    Nothing is logged while no place is marked.
    """

    def __init__(self) -> None:
        self._changes: list[tuple[dict[Any, Any], Any, Any]] = []
        self._marks = 0

    def mark(self) -> int:
        """A place to go back to; ``release`` it in the end."""
        self._marks += 1
        return len(self._changes)

    def release(self) -> None:
        """The place that was marked last is not needed any more."""
        self._marks -= 1
        if not self._marks:
            self._changes.clear()

    def set(self, held: dict[Any, Any], key: Any, value: Any) -> None:
        """``held[key] = value``."""
        if self._marks:
            self._changes.append((held, key, held.get(key, _MISSING)))
        held[key] = value

    def update(self, held: dict[Any, Any], changes: Mapping[Any, Any]) -> None:
        """``held.update(changes)``."""
        if self._marks:
            self._changes.extend([(held, key, held.get(key, _MISSING)) for key in changes])
        held.update(changes)

    def undo(self, mark: int) -> None:
        """Take back all changes since ``mark``."""
        while len(self._changes) > mark:
            held, key, old = self._changes.pop()
            if old is _MISSING:
                held.pop(key, None)
            else:
                held[key] = old


class State:
    """Contents by place.

    ``tainted``: a call may have changed data of the user's, which is looked at in the run from here on. ``journal``
    takes what is changed here and in states that are derived from this one. ``holds_foreign``: objects of the run may
    hold what functions of the user's can change.
    """

    __slots__ = ("_journal", "_own", "_parent", "holds_foreign", "tainted")

    def __init__(self, parent: State | None = None, journal: Journal | None = None) -> None:
        self._own: dict[Place, Content] = {}
        self._parent = parent
        self._journal: Journal = journal or (Journal() if parent is None else parent._journal)
        self.tainted: bool = parent is not None and parent.tainted
        self.holds_foreign: bool = parent is not None and parent.holds_foreign

    def get(self, place: Place) -> Content:
        """Return what ``place`` holds."""
        state: State | None = self
        while state is not None:
            found = state._own.get(place)
            if found is not None:
                return found
            state = state._parent
        return initial_content(place)

    def __contains__(self, place: Place) -> bool:
        state: State | None = self
        while state is not None:
            if place in state._own:
                return True
            state = state._parent
        return False

    def put(self, place: Place, content: Content) -> None:
        """Change a place."""
        self._journal.set(self._own, place, content)

    def child(self) -> State:
        """A state that begins as this one."""
        return State(self)

    def absorb(self, child: State) -> None:
        """Become ``child``, which was derived from this state and is not used any more."""
        chain: list[State] = []
        state: State | None = child
        while state is not self:
            assert state is not None
            chain.append(state)
            state = state._parent
        for each in reversed(chain):
            self._journal.update(self._own, each._own)
        self.tainted = child.tainted
        self.holds_foreign = child.holds_foreign

    def changed_since(self, base: State) -> dict[Place, Content]:
        """The places that were changed since ``base``, an older state, and what they hold."""
        return self._flat(base)

    def all(self) -> dict[Place, Content]:
        """All places that something was put into, and what they hold."""
        return self._flat(None)

    def _flat(self, base: State | None) -> dict[Place, Content]:
        chain: list[State] = []
        state: State | None = self
        while state is not base:
            assert state is not None, "the states have no common origin"
            chain.append(state)
            state = state._parent
        found: dict[Place, Content] = {}
        for each in reversed(chain):
            found.update(each._own)
        return found

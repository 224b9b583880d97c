"""What a state gives: its branches, and the blocks that hold one message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lmc.frontend.misuse import BranchesMisuse, Handle
from lmc.frontend.refusals import bad
from lmc.ir.wording import with_count

if TYPE_CHECKING:
    from lmc.frontend.state import State


class Block(Handle, ABC):
    """What ``with`` opens on a state."""

    __slots__ = ()

    @abstractmethod
    def __enter__(self) -> Any: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None: ...


class RoleBlock(Block):
    """``with s.user():`` – what is appended inside belongs to one message."""

    __slots__ = ("__weakref__", "_role", "_state")
    instead = "open the message and append to the state inside: with s.user(): s += …"

    def __init__(self, state: State, role: str) -> None:
        self._state = state
        self._role = role

    def __enter__(self) -> State:
        self._state.core.session.blocks.opened(self)
        self._state.begin_role(self._role)
        return self._state

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._state.end_role()


class Branches(BranchesMisuse, Sequence["State"]):
    """What ``s.fork(n)`` gives: the branches in order; ``branches["name"]`` is the list of that variable's values."""

    __slots__ = ("_states",)

    def __init__(self, states: Sequence[State]) -> None:
        self._states = list(states)

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[State]:
        return iter(self._states)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return [state[key] for state in self._states]
        if type(key) is slice:
            return self._states[key]
        if type(key) is not int:
            raise bad(f"branches[{key!r}]", "index branches by number, or by the name of a variable")
        if not -len(self._states) <= key < len(self._states):
            raise IndexError(f"the fork has {with_count(len(self._states), 'branch', 'branches')}, none at {key}")
        return self._states[key]

    def __setitem__(self, key: int, state: State) -> None:
        """``branches[i] += …`` puts back the branch that it took; nothing else can be put in."""
        if self._states[key] is not state:
            raise bad("a branch can't be replaced", "change the branch itself: branches[i] += …")

    def __repr__(self) -> str:
        return f"<{with_count(len(self._states), 'branch', 'branches')}>"

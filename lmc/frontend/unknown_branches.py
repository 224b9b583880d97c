"""Branches of a fork whose number only a run decides.

They are alike but for what their own rounds of a loop have put in: what is the same in all of them stands in one
``template``, what differs in lists of the graph, one entry for each branch (``Column``, and the list of contexts). A
loop whose rounds change their own branch is one ``cf.map`` (``branch_rounds``). A loop that only reads is one like any
other, since variables are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.branches import Branches
from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.columns import Column, as_list
from lmc.frontend.core import Core
from lmc.frontend.id_values import Id, holes_of
from lmc.frontend.proxy import Grown, Proxy, symbol
from lmc.frontend.refusals import bad
from lmc.frontend.state import State
from lmc.frontend.unknown_items import HoldsUnknownItems, UnknownItems
from lmc.ir.core import Value, walk
from lmc.ir.types import ANY, CTX, INT, JsonType
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder

SHAPE = (
    "go over them in a loop each round of which touches its own branch alone (for branch, item in "
    "zip(branches, items)), or write lmc.map(f, items, on=s), where f(branch, item) returns what it finds"
)


class UnknownBranches(Branches, HoldsUnknownItems):
    """``s.fork(size)`` of ``state``, where only a run knows ``size``; ``path`` is where ids of its branches begin."""

    __slots__ = ("_home", "_recorder", "_state", "columns", "contexts", "numbers", "path", "size", "template")

    def __init__(self, recorder: Recorder, state: State, size: Proxy, path: str) -> None:
        super().__init__((), recorder)
        self._recorder = recorder
        self._state = state
        self._home = recorder.regions.innermost
        self.size = size
        self.path = path
        self.template: Core = state.core.like()
        self.contexts: Value | None = None
        self.columns: dict[tuple[str, str], Column] = {}
        self.numbers: dict[str, Any] = {}

    def __len__(self) -> int:
        raise self._stop("how many branches there are is asked")

    def __iter__(self) -> Iterator[State]:
        raise self._stop("branches are taken one by one")

    def __getitem__(self, key: Any) -> Any:
        recorder = self._recorder
        if type(key) is str or (type(key) is Proxy and recorder.is_known(key)):
            key = recorder.concrete(key)
        if type(key) is str:
            return recorder.born([Grown(self._column(key))])
        if type(key) is slice:
            raise self._stop("some of the branches are taken")
        loop = recorder.index_loops.get(recorder.value_of(key)) if type(key) is Proxy else None
        if loop is not None:
            return loop.branch_of(self)
        return self._looked_at(recorder.pure("branch_index", (self.size, key)))

    def __setitem__(self, key: Any, state: State) -> None:
        found = self[key]
        if found is not state and found.core is not state.core:
            super().__setitem__(0, state)

    def __repr__(self) -> str:
        return "<branches whose number only a run decides>"

    @property
    def handles(self) -> tuple[State, ...]:
        raise self._stop("branches are used on one way through a condition, or handed on")

    def as_items(self) -> UnknownItems:
        return BranchItems(self)

    def branch(self, index: Proxy, context: Value, entries: dict[tuple[str, str], Any]) -> State:
        """A handle on the branch at ``index``, given what is its own."""
        core = self.template.like()
        core.context = context
        for (what, name), value in entries.items():
            getattr(core, what)[name] = value
        self._recorder.born(core)
        holes = (*holes_of(self.path), self._recorder.value_of(index))
        return self._state.another(core, Id.of(f"{self.path}/$", holes))

    def read(self, index: Proxy) -> State:
        """The branch at ``index``, whose context is only a place holder."""
        entries = {key: self._entry(column, index) for key, column in self.columns.items()}
        return self.branch(index, Value(self._recorder.builder.fresh_name(), CTX), entries)

    def check_changed_here(self) -> None:
        """Break where the branches are older than the part of the program that changes them."""
        if self._recorder.regions.innermost is not self._home:
            raise self._stop("branches are changed on one way through a condition, or in a round of another loop")

    def hand_out(self, handed: Callable[[Value], Value], size: Proxy) -> None:
        """Become what is seen behind the way that made it: ``handed`` gives what each value of that way is there."""
        self.size = size
        self.path = Id.of(self.path, tuple(map(handed, holes_of(self.path))))
        self.contexts = None if self.contexts is None else handed(self.contexts)
        self.columns = {
            key: replace(column, lists=tuple(map(handed, column.lists))) for key, column in self.columns.items()
        }
        self.numbers = {
            name: handed(number) if type(number) is Value else number for name, number in self.numbers.items()
        }
        self._home = self._recorder.regions.innermost

    def _looked_at(self, index: Proxy) -> State:
        found = self.read(index)
        self._recorder.unusable[found.core.context] = (
            "one of the branches whose number only a run decides is continued by itself",
            SHAPE,
        )
        return found

    def _entry(self, column: Column, index: Proxy) -> Any:
        recorder = self._recorder
        lists = (recorder.proxy(values, "a variable of branches") for values in column.lists)
        return column.of(
            tuple(recorder.value_of(recorder.pure("getitem", (values, index), total=True)) for values in lists)
        )

    def _column(self, name: str) -> Proxy:
        """The values of the variable ``name``, as one list."""
        recorder = self._recorder
        column = self.columns.get(("variables", name))
        if column is None:
            value = self._state.another(self.template, self.path)[name]
            return recorder.pure("mul", (recorder.pure("list", (value,)), self.size), total=True)
        if len(column.lists) > 1:
            raise self._stop(f"the variable {name!r} may be missing in some branches, and is asked of all")
        return as_list(column)

    def _stop(self, what: str) -> CaptureBreak:
        return self._recorder.stop(f"{what}, and only a run decides how many branches there are", SHAPE)


class BranchItems(UnknownItems):
    """Unknown branches as what a loop goes over; ``entered`` is the branch of the round that is traced for all.

    ``places`` are the place holders for the contexts of those that were read.
    """

    def __init__(self, branches: UnknownBranches) -> None:
        self.branches = branches
        self.entered: State | None = None
        self.places: set[Value] = set()
        self._read: dict[Value, State] = {}

    def length(self) -> Any:
        return self.branches.size

    def item(self, index: Any) -> State:
        if self.entered is not None:
            return self.entered
        value = symbol(index).value
        assert value is not None
        if value not in self._read:
            self._read[value] = self.branches.read(index)
            self.places.add(self._read[value].core.context)
        return self._read[value]

    def branch_items(self) -> list[Any]:
        return [self]

    def is_changed_by(self, recorder: Recorder) -> bool:
        """Whether the innermost region continues a branch, or takes ids on its path."""
        region = recorder.regions.innermost
        assert region is not None
        bases = (f"{self.branches.path}/$/", f"{self.branches.path}/0/")
        if any(key[0].startswith(bases) and "/@" not in key[0] for key in region.counts):
            return True
        return any(not self.places.isdisjoint(op.operands) for op in walk([region.block()]))


def unknown_branches(recorder: Recorder, state: State, n: Any) -> UnknownBranches | None:
    """The branches of ``state.fork(n)`` where only a run knows ``n``; None where it is known now."""
    if type(n) is not Proxy or recorder.is_known(n):
        return None
    if symbol(n).type not in (INT, ANY) and not isinstance(symbol(n).type, JsonType):
        raise bad(
            f"fork({symbol(n).origin}): n is {with_article(symbol(n).type.name)}",
            "fork into a whole number of branches, at least 0",
        )
    count = recorder.pure("branch_count", (n,))
    return UnknownBranches(recorder, state, count, recorder.allocate(state.path, "fork"))

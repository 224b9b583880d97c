"""Loops in transformed code, whose body is traced once for all rounds where nothing says how many there are.

What ``while`` and ``for`` become (see ``rewrite_loops``) asks a ``Loop`` before each round. As long as the answer is
known, the rounds are those of plain Python. Once it is not, the body runs with symbols for what a round may change,
again and again until nothing else changes in it (``carried``); what then was recorded is the body of one ``cf.loop``,
whose next answer is worked out at its end. Of a list that is not known, items are taken by their index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lmc.frontend.branch_rounds import BranchRounds
from lmc.frontend.breaks import RAISED_CAUSE, RAISED_REMEDY, Exit
from lmc.frontend.carried import Carrying
from lmc.frontend.growing import TYPED_LIST
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.same_values import are_same
from lmc.frontend.session import OPEN, UNROLLED
from lmc.frontend.state import State
from lmc.frontend.unknown_branches import SHAPE, BranchItems, UnknownBranches
from lmc.frontend.unknown_items import REPEATABLE, UnknownItems, taken_items
from lmc.frontend.ways import value_of_name
from lmc.ir.ops import UnreachableOp
from lmc.ir.types import NONE
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

Reader = Callable[[], Any]
_INDEX = "the index of a round"


class Loop:
    """A loop while a condition is true; ``names`` are those that it may bind.

    ``traced``: a round is traced for all; ``exited``: it returned on the way that runs now; ``gone``: nothing comes
    behind the loop, because it ends by returning alone.
    """

    def __init__(self, operators: Operators, names: tuple[str, ...]) -> None:
        self._operators = operators
        self._session = operators.session
        self._recorder = operators.recorder
        self._names = names
        self._carrying: Carrying | BranchRounds | None = None
        self._known: tuple[int, int] | None = None
        self._returns = 0 if self._recorder is None else self._recorder.returns
        self.traced = False
        self.exited = False
        self.gone = False

    def again(self, value: Any, *readers: Reader) -> bool:
        """Whether there is another round, given the value of the condition; ``readers`` read the names."""
        tick = self._operators.tick()
        recorder = self._recorder
        if recorder is None:
            return self._replayed(tick, bool(self._operators.served(tick, bool, value)))
        value = self._operators.settled(value)
        if type(value) is not Proxy or symbol(value).type == NONE or recorder.is_known(value):
            flag: Any = self._operators.truth(value)
        else:
            flag = self._operators.done(tick, self._operators.as_bool(recorder, value))
        return self._goes_on(recorder, tick, flag, readers)

    def enter(self) -> tuple[Any, ...]:
        """A traced round begins: what the names are then."""
        assert self._carrying is not None
        return self._carrying.enter()[: len(self._names)]

    def leave(self) -> tuple[Any, ...]:
        """The traced loop is over: what the names are behind it."""
        assert self._carrying is not None
        return self._carrying.results[: len(self._names)]

    def left(self, end: Exit) -> None:
        """A round was left by ``end``."""
        if self.exited:
            assert self._recorder is not None
            raise self._recorder.stop(
                "a loop ends the program in its first round, whatever happens", "write an `if` instead"
            )
        raise end

    def _goes_on(self, recorder: Recorder, tick: int, flag: Any, readers: tuple[Reader, ...]) -> bool:
        if self._carrying is None:
            endless = flag is True and recorder.returns > self._returns
            if type(flag) is bool and not endless:
                return flag
            self._begin(recorder, tick, flag, readers)
            return True
        values = self._carrying.joined(self._values(readers))
        if recorder.branch is not self:
            raise recorder.stop(RAISED_CAUSE, RAISED_REMEDY)
        if recorder.blocks.waiting != self._waiting:
            raise recorder.stop(
                "a role block is made in one round of a loop and opened in another", "write with s.user(): in the round"
            )
        recorder.last_host = None
        if self.begins_anew(recorder) or not self._carrying.close(values, flag):
            recorder.retrace(self._start)
            return True
        recorder.branch = self._outer
        recorder.constructs[self._tick] = (self._start, recorder.ticks)
        if self._carrying.endless:
            recorder.emit(UnreachableOp)
            self.gone = True
        recorder.end_construct()
        return False

    def begins_anew(self, recorder: Recorder) -> bool:  # noqa: ARG002
        """Whether the rounds are to be traced in another way from the first on."""
        return False

    def _begin(self, recorder: Recorder, tick: int, flag: Any, readers: tuple[Reader, ...]) -> None:
        recorder.begin_construct()
        self._waiting = recorder.blocks.waiting
        self._outer: Any = recorder.branch
        recorder.branch = self
        self._tick = tick
        self._start = recorder.ticks
        self._entry = self._values(readers)
        self._carrying = Carrying(recorder, (*self._names, _INDEX), self._entry, flag)
        self.traced = True

    def _values(self, readers: tuple[Reader, ...]) -> tuple[Any, ...]:
        return (*map(value_of_name, readers), None)

    def _replayed(self, tick: int, taken: bool) -> bool:
        session = self._session
        known = session.constructs.get(tick)
        if known is not None and known[0] == UNROLLED:
            session.ticks = session.ticks if taken else known[1]
            return taken
        if self._known is None and known is not None:
            self._known = known
            session.rounds.append(-1)
        if self._known is not None:
            session.ticks = self._known[0 if taken else 1]
            session.rounds[-1] += 1
            if not taken:
                session.rounds.pop()
        return taken


class ItemLoop(Loop):
    """A loop over ``items``."""

    def __init__(
        self, operators: Operators, items: Any, names: tuple[str, ...], *, traceable: bool, fresh: bool = False
    ) -> None:
        super().__init__(operators, names)
        recorder = self._recorder
        plain = type(items) in REPEATABLE or (fresh and recorder is not None and recorder.plain_iterator is items)
        self._repeatable = plain
        self._over = items
        self._index: Any = 0
        self._branches: list[BranchItems] = []
        self._item: Any = None
        self._items = None if recorder is None or not traceable else taken_items(recorder, items)
        self._writes = 0 if recorder is None else recorder.user_writes
        self._live = False
        self._broken = False
        self._left_at: list[int] = []
        if self._items is not None:
            self._branches += self._items.branch_items()
        if self._items is None:
            self._iterator: Iterator[Any] = iter(operators.iterate(items))

    def more(self, on: Any, *readers: Reader) -> bool:
        """Whether there is another item, and nothing broke the loop."""
        tick = self._operators.tick()
        recorder = self._recorder
        if recorder is None or self._items is None:
            taken = self._next(on)
            if recorder is None:
                return self._replayed(tick, taken)
            self._count_unrolled(recorder, tick, taken, on)
            return taken
        if self.traced:
            self._index = recorder.next_number(self._index)
            self._check_unchanged(recorder, self._items)
        flag: Any = recorder.pure("lt", (self._index, self._items.length()), total=True)
        if type(on) is Proxy:
            both = recorder.pure("and", (on, flag), total=True)
            recorder.regions.imply(recorder.value_of(both), True, recorder.value_of(on), True)
            flag = both
        self._broken = self._broken or type(on) is Proxy or recorder.returns > self._returns
        if self._broken and self._items.is_used_up():
            raise recorder.stop(
                "a loop over what a tool gave may end early, and more of it would be taken than by Python",
                f"go over a list of it: list(items); or {TYPED_LIST}",
            )
        if self._goes_on(recorder, tick, False if on is False else flag, readers):
            return True
        if on is True:
            self._items.finish(recorder)
        return False

    def item(self) -> Any:
        """The item of this round."""
        return self._item if self._items is None else self._items.item(self._index)

    def branch_of(self, branches: UnknownBranches) -> State:
        """The one of ``branches`` that stands at the number of this round."""
        found = next((part for part in self._branches if part.branches is branches), None)
        if found is None:
            assert self._recorder is not None
            assert self._items is not None
            lengths = (self._items.length(), branches.size)
            if not are_same(self._recorder, *map(self._recorder.value_of, lengths)):
                raise self._recorder.stop("a branch is taken by a number, and there may be more numbers", SHAPE)
            found = BranchItems(branches)
            self._branches.append(found)
        return found.item(self._index)

    def begins_anew(self, recorder: Recorder) -> bool:
        carrying = self._carrying
        assert carrying is not None
        assert self._items is not None
        if not isinstance(carrying, Carrying) or not any(part.is_changed_by(recorder) for part in self._branches):
            return False
        if self._broken:
            raise recorder.stop(
                "a loop over branches, whose number only a run decides, changes them, and may be left early", SHAPE
            )
        recorder.regions.leave()
        self._index = 0
        self._carrying = BranchRounds(
            recorder,
            (*self._names, _INDEX),
            self._entry,
            items=self._branches,
            length=self._items.length(),
        )
        return True

    def _check_unchanged(self, recorder: Recorder, items: UnknownItems) -> None:
        """See to it that what is gone over is what Python would go over, where a round may change it."""
        if items.is_changed():
            raise recorder.stop("a round changes the list that the loop goes over", "go over a copy: list(items)")
        if recorder.user_writes > self._writes and not self._live:
            self._live = True
            if items.read_live():
                assert self._carrying is not None
                self._carrying.unsettled = True

    def enter(self) -> tuple[Any, ...]:
        assert self._carrying is not None
        *values, self._index = self._carrying.enter()
        if type(self._index) is Proxy and self._recorder is not None:
            self._recorder.index_loops[self._recorder.value_of(self._index)] = self
        return tuple(values)

    def _count_unrolled(self, recorder: Recorder, tick: int, taken: bool, on: Any) -> None:
        """Note at which operation a replay goes on that leaves the loop here, where a run may break it."""
        if type(on) is Proxy:
            self._left_at.append(tick)
            recorder.constructs[tick] = (UNROLLED, OPEN)
        if not taken:
            recorder.constructs.update((start, (UNROLLED, tick)) for start in self._left_at)

    def _next(self, on: Any) -> bool:
        if type(on) is Proxy:
            recorder = self._recorder
            assert recorder is not None
            if not self._repeatable:
                raise recorder.stop(
                    f"whether {with_article(self._operators.describe(self._over))} is gone over any further is "
                    "known only when the "
                    "program runs",
                    "make a list of it before the loop",
                )
        elif not on:
            return False
        for item in self._iterator:
            self._item = item
            return True
        return False

    def _values(self, readers: tuple[Reader, ...]) -> tuple[Any, ...]:
        return (*map(value_of_name, readers), self._index)

"""Ways through a condition: what an ``if`` in transformed code asks, for a plain value and for a symbolic one.

For a plain value it runs one arm. For a symbolic one it runs both, one after the other, each into a region of its own,
and merges what they leave behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.frontend.breaks import RAISED_CAUSE, RAISED_REMEDY, Exit
from lmc.frontend.choosing import emit_condition
from lmc.frontend.locations import user_location
from lmc.frontend.meeting import Way
from lmc.frontend.merging import Merger
from lmc.frontend.proxy import Proxy
from lmc.frontend.recorder import Recorder
from lmc.frontend.session import Session
from lmc.frontend.unclear import ABSENT, Maybe, Unclear
from lmc.ir.ops import UnreachableOp

EXPRESSION = "the value of an expression with a condition"


class Branch:
    """A condition whose way is known. ``known`` says where its arms begin and end among the ticks of a capture."""

    __slots__ = ("_known", "_session", "_taken", "_value")
    traced = False

    def __init__(self, taken: bool, session: Session, known: tuple[int, int] | None) -> None:
        self._taken = taken
        self._session = session
        self._known = known

    def then(self) -> bool:
        """Whether to run the first arm."""
        return self._taken

    def otherwise(self) -> bool:
        """Whether to run the second arm."""
        if not self._taken and self._known is not None:
            self._session.ticks = self._known[0]
        return not self._taken

    def done(self) -> bool:
        """Whether the arms are to be merged."""
        if self._known is not None:
            self._session.ticks = self._known[1]
        return False

    def left(self, end: Exit) -> None:
        """An arm was left by ``end``: that is another branch's."""
        raise end

    def first(self, value: Any, *_names: Callable[[], Any]) -> None:
        """What an expression is, as its first arm says."""
        self._value = value

    second = first

    @property
    def chosen(self) -> Any:
        """What the expression is."""
        self.done()
        return self._value


class Traced:
    """A condition both arms of which are traced."""

    traced = True

    def __init__(self, recorder: Recorder, flag: Proxy, tick: int) -> None:
        self._recorder = recorder
        self._flag = flag
        self._tick = tick
        self._names: tuple[str, ...] = ()
        self._entry: tuple[Any, ...] = ()
        self._ways: list[Way] = []
        self._second = 0
        self._value: Any = None
        self._merged: tuple[Any, ...] = ()
        self._location = user_location()  # of the test: Python places what follows at the end of the arms
        self.exited = False
        self.gone = False
        self.outer: Traced | None = recorder.branch

    def enter(self, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        """The first arm begins; ``names`` are those that either may bind, ``values`` what they are."""
        recorder = self._recorder
        recorder.begin_construct()
        recorder.step()
        self._names = names
        self._entry = values
        self._waiting = recorder.blocks.waiting
        self._handling = len(recorder.handling)
        recorder.branch = self
        self._open(truth=True)

    def then(self) -> bool:
        """Both arms are run."""
        return True

    def turn(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The first arm is over, and the names are ``values``: what they are when the second begins."""
        self._leave(values)
        self._recorder.last_host = None
        self._second = self._recorder.ticks
        self._open(truth=False)
        return self._entry

    def otherwise(self) -> bool:
        """Both arms are run."""
        return True

    def done(self) -> bool:
        """The arms are to be merged."""
        return True

    def join(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The second arm is over, and the names are ``values``: what they are behind the condition."""
        recorder = self._recorder
        self._leave(values)
        recorder.branch = self.outer
        recorder.constructs[self._tick] = (self._second, recorder.ticks)
        then, otherwise = self._ways
        merger = Merger(recorder, self._flag, (then, otherwise))
        merged = merger.merge(self._names) or (ABSENT,) * len(self._names)
        emit_condition(recorder, merger, self._location, statement=self._names[:1] != (EXPRESSION,))
        if then.values is None and otherwise.values is None:
            recorder.emit(UnreachableOp)
            self.gone = True
        recorder.end_construct()
        return merged

    def left(self, end: Exit) -> None:
        """An arm was left by ``end``."""
        if end.branch is not self:
            raise end

    def first(self, value: Any, *names: Callable[[], Any]) -> None:
        """What an expression is, as its first arm says, which has bound ``names``."""
        self.turn((value, *map(value_of_name, names)))

    def entered(self, index: int) -> Any:
        """What the name ``index`` was when the arms began."""
        return self._entry[index]

    def second(self, value: Any, *names: Callable[[], Any]) -> None:
        """What it is, as its second arm says."""
        self._merged = self.join((value, *map(value_of_name, names)))
        if self.gone:
            self._recorder.leave_way()
        self._value = self._merged[0]
        if type(self._value) in (Unclear, Maybe):
            raise self._recorder.unclear(EXPRESSION)

    def merged(self, index: int) -> Any:
        """What the name ``index`` is behind the expression."""
        return self._merged[index]

    @property
    def chosen(self) -> Any:
        """What the expression is."""
        return self._value

    def _open(self, *, truth: bool) -> None:
        regions = self._recorder.regions
        flag = self._recorder.value_of(self._flag)
        regions.open()
        regions.decide(flag, truth)
        recorder = self._recorder
        self._surroundings = recorder.user_writes, recorder.mutable_reads, recorder.hazard

    def _leave(self, values: tuple[Any, ...]) -> None:
        recorder = self._recorder
        if recorder.branch is not self:
            raise recorder.stop(RAISED_CAUSE, RAISED_REMEDY)
        if recorder.blocks.waiting != self._waiting:
            raise recorder.stop(
                "a role block is made or opened on one way through a condition, and not on the other",
                "write with s.user(): on the way itself",
            )
        del recorder.handling[self._handling :]
        if self.exited:  # nothing that comes is behind what was done there
            recorder.user_writes, recorder.mutable_reads, recorder.hazard = self._surroundings
        self._ways.append(Way(None if self.exited else values, recorder.regions.leave()))
        self.exited = False


def value_of_name(name: Callable[[], Any]) -> Any:
    """What ``name`` reads; ``ABSENT`` where nothing is bound."""
    try:
        return name()
    except NameError:
        return ABSENT

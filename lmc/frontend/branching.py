"""Conditions in transformed code, both ways of which are captured where nothing says which one is taken.

What ``if`` becomes (see ``rewrite_branches``) asks a ``Branch`` what to do. For a plain value it runs one arm. For a
symbolic one it runs both, one after the other, each into a region of its own, and merges what they leave behind.
"""

from __future__ import annotations

import builtins
from typing import Any

from lmc.frontend.iteration import Iteration
from lmc.frontend.merging import Merger, Way
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.regions import Ended
from lmc.frontend.session import Session
from lmc.frontend.unclear import Unclear
from lmc.ir.core import Op, Value
from lmc.ir.ops import UnreachableOp
from lmc.ir.region_ops import CondOp, YieldOp
from lmc.ir.types import NONE

CAPTURE_CONDITIONS = False
"""Whether conditions are captured whose way is not known; else they end the capture."""


class Exit(BaseException):
    """The traced arm of ``branch`` ends because the program returns there. No code of the user's ever sees it."""

    def __init__(self, branch: Traced | None) -> None:
        super().__init__()
        self.branch = branch


class Branch:
    """A condition whose way is known. ``known`` says where its arms begin and end among the ticks of a capture."""

    __slots__ = ("_known", "_session", "_taken")
    traced = False
    exited = False

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


class Traced:
    """A condition both arms of which are traced."""

    traced = True

    def __init__(self, recorder: Recorder, flag: Value, tick: int) -> None:
        self._recorder = recorder
        self._flag = flag
        self._tick = tick
        self._names: tuple[str, ...] = ()
        self._entry: tuple[Any, ...] = ()
        self._ways: list[Way | None] = []
        self._ended: list[Ended] = []
        self._second = 0
        self.exited = False
        self.outer: Traced | None = recorder.branch

    def enter(self, names: tuple[str, ...], found: dict[str, Any]) -> None:
        """The first arm begins; ``names`` are those that either may bind."""
        recorder = self._recorder
        recorder.begin_construct()
        recorder.regions.freeze(found.values())
        self._names = names
        self._entry = self._values(found)
        recorder.branch = self
        recorder.regions.open()

    def then(self) -> bool:
        """Both arms are run."""
        return True

    def turn(self, found: dict[str, Any]) -> tuple[Any, ...]:
        """The first arm is over: what the names are when the second begins."""
        self._leave(found)
        self._recorder.last_host = None
        self._recorder.regions.open()
        self._second = self._recorder.ticks
        return self._entry

    def otherwise(self) -> bool:
        """Both arms are run."""
        return True

    def done(self) -> bool:
        """The arms are to be merged."""
        return True

    def join(self, found: dict[str, Any]) -> tuple[Any, ...]:
        """The second arm is over: what the names are behind the condition."""
        recorder = self._recorder
        self._leave(found)
        recorder.regions.thaw()
        recorder.branch = self.outer
        recorder.constructs[self._tick] = (self._second, recorder.ticks)
        merger = Merger(recorder, self._ways[0], self._ways[1])
        alive = any(way is not None for way in self._ways)
        values = merger.merge(self._names) if alive else ()
        blocks = [
            ended.region.block(None if way is None else _end(values))
            for ended, way, values in zip(self._ended, self._ways, merger.yields, strict=True)
        ]
        recorder.emit_region_op(CondOp, merger.results, flag=self._flag, then=blocks[0], otherwise=blocks[1])
        if not alive:
            recorder.emit(UnreachableOp)
            recorder.end_construct()
            if self.outer is not None:
                self.outer.exited = True
            raise Exit(self.outer)
        recorder.end_construct()
        return values

    def returns(self) -> Exit:
        """The arm that runs now has ended with ``lm.return``: what takes the program out of it."""
        self.exited = True
        return Exit(self)

    def left(self, end: Exit) -> None:
        """An arm was left by ``end``."""
        if end.branch is not self:
            raise end

    def _leave(self, found: dict[str, Any]) -> None:
        values = () if self.exited else self._values(found)
        ended = self._recorder.regions.leave()
        self._ended.append(ended)
        self._ways.append(None if self.exited else Way(values, ended))
        self.exited = False

    def _values(self, found: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(found.get(name, _UNBOUND) for name in self._names)


_UNBOUND = Unclear("")


class Branching(Iteration):
    """The part of ``Operators`` that decides conditions."""

    exits = Exit
    locals = staticmethod(builtins.locals)

    def branch(self, value: Any) -> Branch | Traced:
        """What an ``if`` asks, given the value of its condition."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return Branch(bool(value), self.session, self.session.constructs.get(tick))
        if CAPTURE_CONDITIONS and type(value) is Proxy and symbol(value).type != NONE and not recorder.is_known(value):
            flag = recorder.value_of(self.as_bool(recorder, value))
            return Traced(recorder, flag, tick)
        return Branch(self.truth(value), self.session, None)

    def bound(self, value: Any, name: str) -> Any:
        """A variable that some way through a condition may have left unbound."""
        if type(value) is Unclear:
            assert self.recorder is not None
            raise self.recorder.unclear(f"{name!r}")
        return value

    def outer_store(self, value: Any, name: str) -> Any:
        """What is bound to a variable of an enclosing function, which the arms of a condition could not put back."""
        if self.recorder is not None and self.recorder.regions.depth:
            raise self.recorder.stop(
                f"{name!r} belongs to an enclosing function, and is bound on one way through a condition",
                "return the value, and bind it in the function itself",
            )
        return value

    def returning(self, value: Any, enclosing: tuple[Any, ...], *, outermost: bool) -> Any:
        """``return value``, with the conditions around it; ``outermost`` says whether it ends the program."""
        recorder = self.recorder
        traced = [branch for branch in enclosing if branch.traced]
        if recorder is None or not traced:
            return value
        if not outermost or recorder.depth or recorder.end_program is None:
            raise recorder.stop(
                "a function returns on one way through a condition, and goes on on the other",
                "let each way bind a variable, and return it at the end",
            )
        recorder.end_program(value)
        raise traced[-1].returns()


def _end(values: list[Any]) -> Op:
    make: type[Any] = YieldOp  # pyright does not see that its decorator makes it a dataclass
    end: Op = make(values=tuple(values))
    return end

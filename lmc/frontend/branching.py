"""Conditions in transformed code, both ways of which are captured where nothing says which one is taken.

What ``if`` becomes (see ``rewrite_branches``) asks a ``Branch`` what to do, and so does what a conditional expression,
``and`` and ``or`` become. For a plain value it runs one arm. For a symbolic one it runs both, one after the other, each
into a region of its own, and merges what they leave behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.frontend.choosing import emit_condition
from lmc.frontend.iteration import Iteration
from lmc.frontend.meeting import Way
from lmc.frontend.merging import Merger
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.session import Session
from lmc.frontend.unclear import ABSENT, Maybe, Unclear
from lmc.ir.ops import UnreachableOp
from lmc.ir.types import NONE

RAISED_CAUSE = "an exception is raised on one way through a condition, and caught behind it"
RAISED_REMEDY = "check the value before instead of catching the exception"
_VALUE = "the value of an expression with a condition"


class Exit(BaseException):
    """The traced arm or round of ``branch`` ends because the program returns there. No code of the user's sees it."""

    def __init__(self, branch: object) -> None:
        super().__init__()
        self.branch = branch


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
        emit_condition(recorder, merger)
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
        self._value = self._merged[0]
        if type(self._value) in (Unclear, Maybe):
            raise self._recorder.unclear(_VALUE)

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

    def _leave(self, values: tuple[Any, ...]) -> None:
        recorder = self._recorder
        if recorder.branch is not self:
            raise recorder.stop(RAISED_CAUSE, RAISED_REMEDY)
        if recorder.blocks.waiting != self._waiting:
            raise recorder.stop(
                "a role block is made or opened on one way through a condition, and not on the other",
                "write with s.user(): on the way itself",
            )
        self._ways.append(Way(None if self.exited else values, recorder.regions.leave()))
        self.exited = False


def value_of_name(name: Callable[[], Any]) -> Any:
    """What ``name`` reads; ``ABSENT`` where nothing is bound."""
    try:
        return name()
    except NameError:
        return ABSENT


class Branching(Iteration):
    """The part of ``Operators`` that decides conditions."""

    exits = Exit

    def branch(self, value: Any) -> Branch | Traced:
        """What an ``if`` asks, given the value of its condition."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            taken = bool(self.served(tick, bool, value))
            return Branch(taken, self.session, self.session.constructs.get(tick))
        value = self.settled(value)
        if type(value) is not Proxy or symbol(value).type == NONE or recorder.is_known(value):
            return Branch(self.truth(value), self.session, None)
        flag = self.done(tick, self.as_bool(recorder, value))
        known = recorder.regions.known(recorder.value_of(flag))
        return Traced(recorder, flag, tick) if known is None else Branch(known, self.session, None)

    def decide(self, value: Any, *names: Any) -> Branch | Traced:
        """What a conditional expression asks, given the value of its condition.

        ``names`` are those that an arm may bind, and then functions that read them.
        """
        branch = self.branch(value)
        if isinstance(branch, Traced):
            count = len(names) // 2
            branch.enter((_VALUE, *names[:count]), (ABSENT, *map(value_of_name, names[count:])))
        return branch

    def values(self, *names: Callable[[], Any]) -> tuple[Any, ...]:
        """What names are bound to, each given as a function that reads it."""
        return tuple(map(value_of_name, names))

    def bound(self, value: Any, what: str) -> Any:
        """A variable that some way through a condition may have left unbound."""
        if type(value) is Unclear or type(value) is Maybe:
            assert self.recorder is not None
            return self._perhaps_bound(self.recorder, value, what)
        return value

    def _perhaps_bound(self, recorder: Recorder, value: Unclear | Maybe, what: str) -> Any:
        """The value of a variable of this function; where it is not bound the run raises what Python does."""
        if type(value) is Maybe and type(value.value) is Proxy and what.startswith("'"):
            present = recorder.presence(value)
            if type(present) is Proxy:
                name = what.strip("'")
                return recorder.pure("bound", (present, value.value, name), gives=symbol(value.value).type)
        return recorder.clear(value, what)

    def checked(self, value: Any, *message: Any) -> bool:
        """What ``assert`` looks at. Where only a run knows it, the graph asserts it."""
        recorder = self.recorder
        value = self.settled(value)
        if recorder is None or type(value) is not Proxy or symbol(value).type == NONE or recorder.is_known(value):
            return self.truth(value)
        recorder.pure("assert", (self.as_bool(recorder, value), *message))
        return True

    def result(self, value: Any) -> Any:
        """What a function returns, which is bound on each way that comes to its end."""
        return self.bound(value.value if type(value) is Maybe else value, "what the function returns")

    def made(self, value: Any) -> Any:
        """A list, dict, set or generator that was written right here."""
        return value if self.recorder is None else self.recorder.born(value)

    def outer_store(self, value: Any, name: str) -> Any:
        """What is bound to a variable of an enclosing function, which the arms of a condition could not put back."""
        if self.recorder is not None and self.recorder.regions.depth:
            raise self.recorder.stop(
                f"{name!r} belongs to an enclosing function, and is bound on one way through a condition",
                "return the value, and bind it in the function itself",
            )
        return value

    def returning(self, value: Any, outermost: bool, enclosing: tuple[Any, ...], levels: int) -> bool:
        """Whether ``return value`` is to be done, which stands at the end of ``levels`` of the arms around it.

        ``enclosing`` are the conditions and loops around it, outermost first; ``outermost`` says whether it ends the
        program.
        """
        recorder = self.recorder
        if recorder is None or not any(branch.traced for branch in enclosing):
            return True
        if not outermost or recorder.depth or recorder.end_program is None:
            raise recorder.stop(
                "a function returns on one way through a condition, and goes on on the other",
                "let each way bind a variable, and return it at the end",
            )
        recorder.end_program(value)
        recorder.returns += 1
        self._end_arm(enclosing, levels)
        return False

    def gone(self, branch: Any, enclosing: tuple[Any, ...], levels: int) -> None:
        """Both arms of ``branch``, which stands at the end of ``levels`` of the arms around it, may have returned."""
        if branch.traced and branch.gone:
            self._end_arm(enclosing, levels)

    def _end_arm(self, enclosing: tuple[Any, ...], levels: int) -> None:
        """The traced arm that runs now has returned. Where it has not come to its end yet, that takes it there."""
        for inner, branch in enumerate(reversed(enclosing), 1):
            if branch.traced:
                branch.exited = True
                if inner > levels:
                    raise Exit(branch)
                return
        raise Exit(None)

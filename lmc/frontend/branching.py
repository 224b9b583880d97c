"""Conditions in transformed code: what they become, and what is known behind them.

What ``if`` becomes (see ``rewrite_branches``) asks a ``Branch`` or a ``Traced`` what to do (``ways``), and so does what
a conditional expression, ``and`` and ``or`` become.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.frontend.breaks import Exit
from lmc.frontend.iteration import Iteration
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.unclear import ABSENT, Maybe, Unclear
from lmc.frontend.ways import EXPRESSION, Branch, Traced, value_of_name
from lmc.ir.types import NONE


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
            branch.enter((EXPRESSION, *names[:count]), (ABSENT, *map(value_of_name, names[count:])))
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
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return bool(self.served(tick, bool, value))
        value = self.settled(value)
        if type(value) is not Proxy or symbol(value).type == NONE or recorder.is_known(value):
            return self.truth(value)
        flag = self.done(tick, self.as_bool(recorder, value))
        recorder.pure("assert", (flag, *message))
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

"""What transformed code makes item by item: comprehensions, and generators that a function of Python's takes whole.

``sum(f(x) for x in items)`` is handed over in parts, so that a loop of unknown length can stand for it: as a list where
the function takes every item anyway, and as a loop that may end early for ``any`` and ``all``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lmc.frontend.arithmetic import Arithmetic
from lmc.frontend.growing import is_grown
from lmc.frontend.keyed_calls import KEYED, by_key, is_one_of
from lmc.frontend.looping import ItemLoop
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.unknown_items import unknown_items
from lmc.frontend.ways import Traced
from lmc.ir.core import Op, walk
from lmc.ir.ops import AssumeOp, ConcatOp, PyCallOp
from lmc.ir.region_ops import ConditionOp, CondOp, LoopOp, YieldOp
from lmc.ir.types import NONE

_TAKE_ALL: tuple[Any, ...] = (sum, min, max, sorted, list, tuple, set, frozenset, dict)
_STOP_EARLY: tuple[Any, ...] = (any, all)


@dataclass(frozen=True, slots=True)
class Parts:
    """``make(*item) for item in items if all tests``, an item taken apart as ``spec`` says."""

    items: Any
    spec: tuple[Any, ...] | None
    make: Callable[..., Any]
    tests: tuple[Callable[..., Any], ...]


def _only_works_out(op: Op) -> bool:
    """Whether nobody could tell whether the op runs."""
    return isinstance(op, AssumeOp) or (isinstance(op, PyCallOp | ConcatOp) and not op.may_raise)


def _loops_only_work_out(ops: Sequence[Op]) -> bool:
    """Whether nobody could tell when the rounds of the loops in ``ops`` run."""
    loops = [op for op in ops if isinstance(op, LoopOp)]
    items = {id(op) for loop in loops for op in loop.body.ops if _is_item_of_round(op, loop)}
    inside = [op for op in walk([region for loop in loops for region in loop.regions]) if id(op) not in items]
    return all(isinstance(op, LoopOp | CondOp | YieldOp | ConditionOp) or _only_works_out(op) for op in inside)


def _is_item_of_round(op: Op, loop: LoopOp) -> bool:
    return isinstance(op, PyCallOp) and op.function == "getitem" and op.arguments[1] in loop.body.parameters


class Generators(Arithmetic):
    """The part of ``Operators`` that goes over items and makes something of each."""

    def listed(self, items: Any, spec: tuple[Any, ...] | None, make: Callable[..., Any], *tests: Any) -> list[Any]:
        """``[make(*item) for item in items if all tests]``, an item taken apart as ``spec`` says."""
        made: list[Any] = []
        if self.recorder is not None:
            self.recorder.born(made)
        loop = ItemLoop(cast("Any", self), items, (), traceable=True)
        while loop.more(True):
            if loop.traced:
                loop.enter()
            self._keep(made, make, tests, self._taken_apart(loop.item(), spec))
        if loop.traced:
            loop.leave()
        return made

    def set_of(self, items: Any, spec: tuple[Any, ...] | None, make: Callable[..., Any], *tests: Any) -> Any:
        """``{make(*item) for item in items if all tests}``."""
        return self._put_together("set_from", set, Parts(items, spec, make, tests))

    def dict_of(self, items: Any, spec: tuple[Any, ...] | None, make: Callable[..., Any], *tests: Any) -> Any:
        """``{key: value for item in items if all tests}``, where ``make(*item)`` is the pair of both."""
        return self._put_together("dict_from", dict, Parts(items, spec, make, tests))

    def consumed(self, function: Any, parts: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``function(make(*item) for item in items if all tests, **kwargs)``."""
        tick = self.tick()
        recorder = self.recorder
        items_of, spec, make, *tests = parts
        given = Parts(items_of, spec, make, tuple(tests))
        if recorder is None:
            return self._consumed_again(tick, function, given, kwargs)
        unknown = unknown_items(recorder, given.items) is not None
        if unknown and is_one_of(function, _STOP_EARLY) and not kwargs:
            found = self._searched(recorder, given, wanted=function is any)
            recorder.constructs[tick] = (recorder.ticks, recorder.ticks)
            return found
        if is_one_of(function, _STOP_EARLY) and not kwargs:
            found = self._asked_in_order(recorder, given, function)
            recorder.constructs[tick] = (recorder.ticks, recorder.ticks)
            return found
        keyed = is_one_of(function, KEYED) and kwargs.get("key") is not None
        if keyed and unknown and function is not sorted:
            items: Any = self._listed_before_keys(recorder, function, given)
            recorder.constructs[tick] = (recorder.ticks, recorder.ticks)
        elif (keyed and function is sorted) or (unknown and is_one_of(function, _TAKE_ALL)):
            items = self.listed(given.items, given.spec, given.make, *given.tests)
        else:
            items = recorder.born(self._one_by_one(given))
        if keyed:
            return by_key(cast("Any", self), function, items, kwargs)
        return self.done(tick, self._captured(recorder, function, (items,), kwargs, ()))

    def _listed_before_keys(self, recorder: Recorder, function: Any, parts: Parts) -> list[Any]:
        """All items for ``min`` or ``max``, which make the key of each before the next: where that is no difference."""
        with recorder.held_construct():
            first = len(recorder.builder.ops)
            made = self.listed(parts.items, parts.spec, parts.make, *parts.tests)
            if not _loops_only_work_out(recorder.builder.ops[first:]):
                raise recorder.stop(
                    f"{function.__name__}() makes the key of an item before the next item, and only a run decides how "
                    "many items there are",
                    f"make a list of the items first: {function.__name__}([...], key=…)",
                )
        return made

    def _consumed_again(self, tick: int, function: Any, parts: Parts, kwargs: dict[str, Any]) -> Any:
        """The same in a replay, in which no value is symbolic."""
        session = self.session
        if tick in session.served:
            return self.served(tick, function)
        if is_one_of(function, KEYED) and kwargs.get("key") is not None:
            listed = function is sorted or tick in session.constructs
            made: Any = self.listed(parts.items, parts.spec, parts.make, *parts.tests) if listed else None
            return by_key(cast("Any", self), function, made if listed else self._one_by_one(parts), kwargs)
        items = self._one_by_one(parts)
        if not is_one_of(function, _STOP_EARLY):
            return self._replayed(tick, function, (items,), kwargs)
        rounds = len(session.rounds)
        found = function(items, **kwargs)
        items.close()
        del session.rounds[rounds:]
        session.ticks = session.constructs.get(tick, (0, session.ticks))[1]
        return found

    def _one_by_one(self, parts: Parts) -> Generator[Any]:
        """The generator itself."""
        loop = ItemLoop(cast("Any", self), parts.items, (), traceable=False)
        while loop.more(True):
            item = self._taken_apart(loop.item(), parts.spec)
            passed: list[Any] = []
            value: list[Any] = []
            for test in parts.tests:
                flag = test(*item)
                if self.recorder is not None:
                    self.tick()
                    if not self.truth(flag):
                        break
                    continue
                passed.append(self.branch(flag))
                if not passed[-1].then():
                    break
            else:
                value.append(parts.make(*item))
            for branch in reversed(passed):
                branch.otherwise()
                branch.done()
            yield from value

    def _asked_in_order(self, recorder: Recorder, parts: Parts, function: Any) -> Any:
        """``any`` or ``all`` of items whose number is known.

        Behind the first condition that only a run knows the others are worked out in any case, where that does nothing.
        """
        name = function.__name__
        flags: list[Any] = []
        before = 0
        with recorder.held_construct():
            for made in self._one_by_one(parts):
                flag = self.settled(made)
                known = type(flag) is not Proxy or symbol(flag).type == NONE or recorder.is_known(flag)
                value: Any = self.truth(flag) if known else self.as_bool(recorder, flag)
                done = recorder.builder.ops
                if flags and not all(map(_only_works_out, done[before:])):
                    raise recorder.stop(
                        f"{name}() stops at the first item that decides, which is known only when the program runs",
                        f"make a list of the conditions first: {name}([...])",
                    )
                if not known or value is (function is any):
                    flags.append(value)
                if known and value is (function is any):
                    break
                before = before if flags[1:] else len(done)
        if not any(type(flag) is Proxy for flag in flags):
            return function(flags)
        return recorder.pure(name, (flags,), total=True)

    def _searched(self, recorder: Recorder, parts: Parts, *, wanted: bool) -> Any:
        """Whether there is an item whose condition is ``wanted``: then nothing is asked about those behind it."""
        held: list[Any] = [not wanted]
        loop = ItemLoop(cast("Any", self), parts.items, ("whether there is such an item",), traceable=True)
        while loop.more(self._goes_on(recorder, held[0], wanted=wanted), lambda: held[0]):
            if loop.traced:
                held[:] = loop.enter()
            held[0] = self._looked_at(held[0], parts, parts.tests, self._taken_apart(loop.item(), parts.spec))
        if loop.traced:
            held[:] = loop.leave()
        return held[0]

    def _goes_on(self, recorder: Recorder, found: Any, *, wanted: bool) -> Any:
        if type(found) is not Proxy:
            return found is not wanted
        return recorder.pure("not", (found,), total=True) if wanted else found

    def _looked_at(self, found: Any, parts: Parts, tests: tuple[Any, ...], item: tuple[Any, ...]) -> Any:
        """What is found once ``item`` was looked at."""
        if not tests:
            flag = self.settled(parts.make(*item))
            recorder = self.recorder
            known = recorder is None or type(flag) is not Proxy
            return self.truth(flag) if known else self.as_bool(cast("Recorder", recorder), flag)
        branch = self.branch(tests[0](*item))
        name = ("whether there is such an item",)
        value = found
        if isinstance(branch, Traced):
            branch.enter(name, (found,))
        if branch.then():
            value = self._looked_at(found, parts, tests[1:], item)
        if isinstance(branch, Traced):
            branch.turn((value,))
        branch.otherwise()
        if branch.done() and isinstance(branch, Traced):
            (value,) = branch.join((found,))
        return value

    def _put_together(self, name: str, kind: Any, parts: Parts) -> Any:
        """A set or dict of what is made, as a value of the graph where what is in it is known only to a run."""
        recorder = self.recorder
        if recorder is None:
            return kind(self._one_by_one(parts))
        made = self.listed(parts.items, parts.spec, parts.make, *parts.tests)
        keys = made if kind is set or is_grown(made) else [pair[0] for pair in made]
        if is_grown(made) or any(type(key) is Proxy for key in keys):
            return recorder.pure(name, (made,))
        for key in keys:
            self.hashed(key)
        return recorder.born(kind(made))

    def _taken_apart(self, item: Any, spec: tuple[Any, ...] | None) -> tuple[Any, ...]:
        return (item,) if spec is None else tuple(self.unpack(item, spec))

    def _keep(self, made: list[Any], make: Callable[..., Any], tests: tuple[Any, ...], item: tuple[Any, ...]) -> None:
        if not tests:
            value = make(*item)
            if self.recorder is not None:
                self.recorder.touch(made)
            made.append(value)
            return
        branch = self.branch(tests[0](*item))
        if isinstance(branch, Traced):
            branch.enter((), ())
        if branch.then():
            self._keep(made, make, tests[1:], item)
        if isinstance(branch, Traced):
            branch.turn(())
        branch.otherwise()
        if branch.done() and isinstance(branch, Traced):
            branch.join(())

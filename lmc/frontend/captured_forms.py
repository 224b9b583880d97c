"""What ``lmc.cond``, ``lmc.while_loop``, ``lmc.map`` and ``lmc.race`` are in transformed code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lmc.frontend.arguments import fits
from lmc.frontend.breaks import CaptureBreak, Exit
from lmc.frontend.forms import FORMS, check_branching, checked_state
from lmc.frontend.growing import as_value, copied, grown, is_value_list
from lmc.frontend.id_values import Id, holes_of
from lmc.frontend.looping import Loop
from lmc.frontend.proxy import Grown, Proxy, Symbol, items_of, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.regions import Ended
from lmc.frontend.state import State
from lmc.frontend.ways import Branch, Traced
from lmc.ir.control_flow import no_elements
from lmc.ir.core import Block, Value
from lmc.ir.region_ops import MapOp, RaceOp, YieldOp
from lmc.ir.types import ANY, BOOL, INT, TEXT, ListType, type_of

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators


def run_form(ops: Operators, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one of ``FORMS``, in a capture or in a replay."""
    name = FORMS[id(function)]
    if not fits(inspect.signature(function), args, kwargs):
        return function(*args, **kwargs)  # raises what Python does
    try:
        match name:
            case "cond":
                return _cond(ops, *args, **kwargs)
            case "while_loop":
                return _while_loop(ops, *args, **kwargs)
            case _:
                return Elements(ops, name, *args, **kwargs).run()
    except CaptureBreak:
        assert ops.recorder is not None
        ops.recorder.refused_form = ops.recorder.refused_form or f"lmc.{name}"
        raise


def _cond(ops: Operators, flag: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    branch = ops.decide(flag)
    if branch.then():
        branch.first(_arm(ops, branch, then))
    if branch.otherwise():
        branch.second(_arm(ops, branch, otherwise))
    return branch.chosen


def _arm(ops: Operators, branch: Branch | Traced, function: Callable[[], Any]) -> Any:
    """What an arm gives; nothing where it raises."""
    try:
        return ops.call(function)
    except Exit as end:
        branch.left(end)


def _while_loop(ops: Operators, test: Any, body: Any, *state: Any) -> tuple[Any, ...]:
    loop = Loop(ops, tuple(f"value {index} of the state" for index in range(len(state))))

    def reader(index: int) -> Callable[[], Any]:
        return lambda: state[index]

    readers = [reader(index) for index in range(len(state))]
    while loop.again(ops.call(test, *state), *readers):
        if loop.traced:
            state = loop.enter()
        try:
            state = checked_state(ops.call(body, *state), len(state))
        except Exit as end:
            loop.left(end)
    if loop.traced:
        state = loop.leave()
    return tuple(ops.bound(value, "a value of the state") for value in state)


class Elements:
    """``lmc.map`` or ``lmc.race``."""

    def __init__(
        self,
        ops: Operators,
        name: str,
        function: Any,
        *lists: Any,
        on: State | None = None,
        good: Any = None,
        default: Any = None,
    ) -> None:
        check_branching(name, on)
        self._ops = ops
        self._session = ops.session
        self._race = name == "race"
        self._function = function
        self._lists = tuple(map(self._as_called, lists))
        self._on = on
        self._good = good
        self._default = default
        self._tick = ops.tick()
        self._base = self._session.allocate(ops.path if on is None else on.path, name)
        self.exited = False

    def run(self) -> Any:
        """What it gives."""
        recorder = self._ops.recorder
        if recorder is None:
            return self._one_by_one(self._session.constructs.get(self._tick))
        if self._race or any(type(items) is Proxy for items in self._lists):
            return self._at_once(recorder)
        return recorder.born(self._one_by_one(None))

    def _as_called(self, items: Any) -> Any:
        """``items`` as they are now: what an element changes of them, or what comes later, changes nothing here."""
        tick = self._ops.tick()
        recorder = self._ops.recorder
        if recorder is None:
            items = self._ops.served(tick, _itself, items)
            return items.copy() if type(items) is list else items
        items = self._ops.settled(items)
        if type(items) is list and id(items) not in recorder.foreign:
            return items.copy()
        if type(items) is Proxy and symbol(items).volatile and isinstance(symbol(items).type, ListType):
            return self._ops.done(tick, copied(recorder, items))
        return items

    def _one_by_one(self, known: tuple[int, int] | None) -> Any:
        """As plain Python does; ``known`` says where an element began in the capture, and where all had ended."""
        session = self._session
        results: list[Any] = []
        found = False
        if known is not None:
            session.rounds.append(0)
        rows: Iterable[Sequence[Any]] = zip(*map(self._ops.iterate, self._lists), strict=False)
        for index, items in enumerate(rows):
            if known is not None:
                session.ticks = known[0]
                session.rounds[-1] = index
            results.append(self._element(session.branch_path(self._base, index), items))
            found = self._race and bool(self._ops.truth(self._ops.call(self._good, results[-1])))
            if found:
                break
        if known is not None:
            session.rounds.pop()
            session.ticks = known[1]
        if not self._race:
            return results
        if not results:
            raise no_elements()
        return results[-1] if found else self._default

    def _element(self, place: str, items: Sequence[Any]) -> Any:
        on = self._on
        branch = () if on is None else (on.another(on.core.copy(), place),)
        with self._at(place):
            try:
                return self._ops.call(self._function, *branch, *items)
            except Exit as end:
                if end.branch is not self or self._ops.recorder is None:
                    raise
                raise self._ops.recorder.stop("an element raises, whatever happens", "raise it under an `if`") from None

    @contextmanager
    def _at(self, place: str) -> Generator[None]:
        """What is called meanwhile gets its ids from ``place``."""
        before = self._ops.path, self._session.path
        self._ops.path = self._session.path = place
        try:
            yield
        finally:
            self._ops.path, self._session.path = before

    def _at_once(self, recorder: Recorder) -> Any:
        """One op, in which one element stands for all."""
        lists = [self._list(recorder, items) for items in self._lists]
        if not lists:
            raise recorder.stop("there is no list to go over", "give at least one list")
        recorder.begin_construct()
        outer, recorder.branch = recorder.branch, self
        start, writes, reads = recorder.ticks, recorder.user_writes, recorder.mutable_reads
        ended, yields = self._traced(recorder, lists)
        if recorder.user_writes > writes or recorder.mutable_reads > reads:
            recorder.retrace(start)
            ended, yields = self._traced(recorder, lists)
        if recorder.branch is not self:
            raise recorder.stop(
                "an exception is raised on one way through an element", "check the value before instead"
            )
        recorder.branch = outer
        if self._race and recorder.user_writes > writes:
            raise recorder.stop(
                "an element of a race calls a function that may write, and it may be cancelled",
                'declare what it does (@lmc.tool(effect="reads") or "pure"), or write after the race',
            )
        recorder.constructs[self._tick] = (start, recorder.ticks)
        result = self._emit(recorder, lists, ended.region.block(_yield(yields)), yields)
        recorder.end_construct()
        return result

    def _list(self, recorder: Recorder, items: Any) -> Proxy:
        if type(items) is Proxy and symbol(items).type == TEXT:
            return items_of(grown(recorder, items))
        if type(items) is Proxy and isinstance(symbol(items).type, ListType):
            return items
        plain = list(self._ops.taken(items))
        if not is_value_list(plain):
            raise recorder.stop(
                "a list whose elements run at the same time holds states, functions or objects",
                "go over the values that the elements need",
            )
        return as_value(recorder, plain)

    def _traced(self, recorder: Recorder, lists: Sequence[Proxy]) -> tuple[Ended, list[Any]]:
        recorder.step()
        fresh = recorder.builder.fresh_name
        kinds = [symbol(items).type for items in lists]
        elements = [Value(fresh(), kind.element if isinstance(kind, ListType) else ANY) for kind in kinds]
        index = Value(fresh(), INT)
        recorder.regions.open([index, *elements])
        place = Id.of(f"{self._base}/$", (*holes_of(self._base), index))
        items = [
            Proxy(Symbol(recorder, value.type, value, symbol(given).origin, volatile=symbol(given).volatile))
            for value, given in zip(elements, lists, strict=True)
        ]
        waiting = recorder.blocks.waiting
        result = self._element(place, items)
        yields: list[Any] = [self._good_of(recorder, result)] if self._race else []
        yields.append(self._ir(recorder, result))
        if recorder.blocks.waiting != waiting:
            raise recorder.stop("a role block is made in an element, and not opened", "write with s.user():")
        ended = recorder.regions.leave()
        self._check_apart(recorder, ended)
        return ended, yields

    def _good_of(self, recorder: Recorder, result: Any) -> Any:
        found = self._ops.settled(self._ops.call(self._good, result))
        return self._ir(recorder, self._ops.as_bool(recorder, found) if type(found) is Proxy else bool(found))

    def _ir(self, recorder: Recorder, value: Any) -> Any:
        ir = recorder.operand(value).ir
        if type(ir) is Value:
            recorder.check_seen(ir)
        return ir

    def _check_apart(self, recorder: Recorder, ended: Ended) -> None:
        """Break where an element changes what others could see."""
        shared = [base for base in ended.counts if all(map(recorder.regions.sees, base[1]))]
        calls = {base: ended.counts[base] for base in shared if "/@" in base[0]}
        if ended.objects or len(calls) < len(shared):
            raise recorder.stop(
                "an element changes a state or a list of the program around, which the other elements see",
                "give each element a branch of its own (on=s), and return what it finds",
            )
        for base, count in calls.items():
            recorder.regions.touch_count(base)
            recorder.counts[base] = count

    def _emit(self, recorder: Recorder, lists: Sequence[Proxy], body: Block, yields: Sequence[Any]) -> Any:
        kinds = [part.type if type(part) is Value else type_of(part) for part in yields]
        fresh = recorder.builder.fresh_name
        given = tuple(map(recorder.value_of, lists))
        if not self._race:
            result = Value(fresh(), ListType("list", kinds[0]))
            recorder.emit_region_op(MapOp, [result], lists=given, strict=False, body=body)
            recorder.grows = True
            return recorder.born([Grown(recorder.proxy(result, "the results of lmc.map"))])
        found, result = Value(fresh(), BOOL), Value(fresh(), kinds[1])
        recorder.emit_region_op(RaceOp, [found, result], lists=given, body=body)
        winner = [recorder.proxy(found, "whether there is a winner"), recorder.proxy(result, "the winner of lmc.race")]
        return recorder.pure("choose", (*winner, self._default), total=True)


def _itself(value: Any) -> Any:
    return value


def _yield(values: Sequence[Any]) -> Any:
    make: Any = YieldOp
    return make(values=tuple(values))

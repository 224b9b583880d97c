"""Both arms of a condition that only a run decides, and pieces of the program with several exits.

A piece is interpreted in a *scope*. Where an operation in it may end in several ways (an ``if`` with a ``break``, an
inlined function that may raise), the interpreter continues the normal one in an arm of its own (``narrow``), and the
scope closes the arms that were opened in it: that arm holds the code that runs only if no other exit was taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.join import Join, NotInRunError, Path, Phis
from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import Operand, merged_domain, operand, pure, united
from lmc.frontend.heap.state import State
from lmc.frontend.heap.values import FALSE, SCALARS, TRUE, Abstract, Const, Domain, Raised, Ref, Symbol
from lmc.frontend.machine.exits import NORMAL, RAISE, Exit, Left, Narrowing, Outcome, Way
from lmc.frontend.machine.raises import Classes
from lmc.ir.builder import Builder
from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import ContextOp
from lmc.ir.dialects.region_ops import CondOp, MapOp, TryOp, YieldOp
from lmc.ir.ids import without_holes
from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, NONE, TEXT, ListType, Type, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

# What a side yields for a value that nothing asks for where that side was taken.
UNUSED: dict[Type, Any] = {TEXT: "", INT: 0, FLOAT: 0.0, BOOL: False, NONE: None, ANY: None}

Settle = Callable[[Exit, Way], tuple[Exit, Abstract | None]]
"""Maps an exit at the end of its scope to another exit, with another payload."""


@dataclass(slots=True, eq=False)
class Arm:
    """One side of a condition: its block, which has no terminator unless every run leaves in it, and its exits."""

    builder: Builder
    outcome: Outcome

    @property
    def leaves(self) -> bool:
        """Return whether no run gets to its end."""
        return not self.outcome.ways


def common(left: Type, right: Type) -> Type:
    """The type of a place that takes values of both."""
    if left == right:
        return left
    if isinstance(left, ListType) and isinstance(right, ListType):
        return list_of(common(left.element, right.element))
    return ANY


def unused(machine: Machine, kind: Type) -> tuple[Any, Type]:
    """Return a placeholder for a value of ``kind`` that is never read, and the type of a place that takes both.

    May append to the innermost block.
    """
    if kind in UNUSED:
        return UNUSED[kind], kind
    if kind == CTX:
        return machine.emit(ContextOp, (CTX,))[0], CTX
    if kind == list_of(CTX):
        return _no_contexts(machine), kind
    if isinstance(kind, ListType):
        return pure(machine, "list", (), gives=kind, raises=False).ir, kind
    return pure(machine, "unused", (), gives=kind, raises=False).ir, kind


def _no_contexts(machine: Machine) -> Value:
    """An empty list of contexts, which no builtin makes."""
    graph = machine.graph
    numbers = pure(machine, "list", (), gives=list_of(INT), raises=False).ir
    with graph.nested((graph.value(INT), graph.value(INT))) as body:
        (context,) = graph.emit(ContextOp, (CTX,))
        body.emit(YieldOp, values=(context,))
    made = graph.value(list_of(CTX))
    name = f"{without_holes(machine.path)}/@cf.map"
    graph.append(MapOp, (made,), lists=(numbers,), strict=False, body=body.block(), id=name)
    return made


class CondPhis:
    """Phis of a ``cf.cond``: results, and what each arm yields for them. ``states`` are those at the arms' ends."""

    def __init__(self, machine: Machine, flag: Symbol, arms: tuple[Arm, Arm]) -> None:
        self.machine = machine
        self.flag: Symbol | None = flag
        self.arms = arms
        self.states: tuple[State, State] | None = None
        self.yields: tuple[list[Any], list[Any]] = ([], [])
        self.results: list[Value] = []
        self._known: dict[tuple[Any, ...], Symbol] = {}
        self._inside = tuple(
            {value for op in arm.builder.ops for value in op.results} | set(arm.builder.parameters) for arm in arms
        )

    def sees(self, value: Value) -> bool:
        """Return whether neither arm made it."""
        return not any(value in inside for inside in self._inside)

    def fixed(self, path: Path) -> bool:  # noqa: ARG002
        """Return what is the same on both sides needs no phi."""
        return True

    def selected(self, path: Path, left: Abstract, right: Abstract) -> Abstract | None:  # noqa: ARG002
        """Objects that differ are a union on the flag."""
        return None

    def address(self, path: Path) -> int:  # noqa: ARG002
        """A new object."""
        return self.machine.allocate()

    def domain(self, path: Path, left: Domain, right: Domain) -> Domain:  # noqa: ARG002
        """All of these texts."""
        return united(left, right)

    @contextmanager
    def at(self, side: int) -> Generator[None]:
        """Append to an arm."""
        assert self.states is not None
        with self.machine.appending(self.arms[side].builder, self.states[side]):
            yield

    def merge(self, path: Path, left: Abstract, right: Abstract) -> Symbol:  # noqa: ARG002
        """A result of the condition."""
        assert self.flag is not None
        if isinstance(left, Const) and left.value is True and isinstance(right, Const) and right.value is False:
            return self.flag
        irs: list[Any] = []
        kinds: list[Type] = []
        foreign = local = False
        for side, value in enumerate((left, right)):
            found = operand_at(self, side, value)
            irs.append(found.ir)
            kinds.append(found.type)
            foreign = foreign or found.foreign
            local = local or found.local
        domain = merged_domain(left, right)
        classes = {class_of_phi(value) for value in (left, right)}
        return self._result(
            (irs[0], irs[1]),
            common(*kinds),
            origin_of(left, right),
            domain=domain,
            foreign=foreign,
            local=local,
            kind=classes.pop() if len(classes) == 1 else None,
        )

    def alone(self, path: Path, side: int, value: Symbol) -> Symbol:  # noqa: ARG002
        """A result that the other arm yields nothing for."""
        kind = value.type
        other: Any = None
        if not self.arms[1 - side].leaves:
            with self.at(1 - side):
                other, kind = unused(self.machine, kind)
        irs = (value.ir, other) if side == 0 else (other, value.ir)
        made = self._result(irs, kind, value.origin)
        return dataclasses.replace(value, ir=made.ir, expression=None)

    def mark(self) -> tuple[int, int, int]:
        """Return how many results and ops at the ends of the arms there are."""
        return len(self.results), len(self.arms[0].builder.ops), len(self.arms[1].builder.ops)

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Take back the results and ops that were made since."""
        gone = {*self.results[mark[0] :]}
        del self.results[mark[0] :], self.yields[0][mark[0] :], self.yields[1][mark[0] :]
        self._known = {key: held for key, held in self._known.items() if held.ir not in gone}
        for arm, ops in zip(self.arms, mark[1:], strict=True):
            self.machine.drop_ops(arm.builder, ops)

    def escape(self, side: int, addresses: Sequence[int]) -> None:
        """Make objects of the run of these at the end of an arm."""
        builder = self.arms[side].builder
        mark = len(builder.ops)
        with self.at(side):
            for address in addresses:
                objects.escape(self.machine, Ref(address))
        self._inside[side].update(value for op in builder.ops[mark:] for value in op.results)

    def _result(self, irs: tuple[Any, Any], place: Type, origin: str, **more: Any) -> Symbol:
        key = (*(ir if isinstance(ir, Value) else (type(ir), repr(ir)) for ir in irs), place)
        if key not in self._known:
            for held, ir in zip(self.yields, irs, strict=True):
                held.append(ir)
            self.results.append(self.machine.graph.value(place))
            self._known[key] = Symbol(self.results[-1], origin, **more)
        return self._known[key]


def operand_at(phis: Phis, side: int, value: Abstract) -> Operand:
    """``value`` as an operand at the end of a side."""
    if isinstance(value, Symbol) or (isinstance(value, Const) and value.is_literal):
        return operand(phis.machine, value)  # which takes no op
    with phis.at(side):
        return operand(phis.machine, value)


def class_of_phi(value: Abstract) -> type | None:
    """The class that a phi of type ``!any`` keeps of a value."""
    if isinstance(value, Const):
        return None if type(value.value) in SCALARS else type(value.value)
    return value.kind if isinstance(value, Symbol) else None


def origin_of(*values: Abstract) -> str:
    """Return what messages call a phi of these."""
    return next((value.origin for value in values if isinstance(value, Symbol)), "what a condition decides")


def interpret_arm(machine: Machine, run: Callable[[], Abstract | None]) -> Arm:
    """Interpret one side of a condition, from the state that the machine is in, which stays."""
    base = machine.state
    machine.state = base.child()
    with machine.graph.nested() as builder:
        outcome = scope(machine, run)
    machine.state = base
    return Arm(builder, outcome)


def scope(machine: Machine, run: Callable[[], Abstract | None], settle: Settle | None = None) -> Outcome:
    """Interpret a piece of the program, and close the arms that were opened in it."""
    mark, base, watermark = len(machine.narrowings), machine.state, machine.watermark()
    machine.state = base.child()
    try:
        payload = run()
        outcome = Outcome({NORMAL: Way(machine.state, payload)}, base, watermark)
    except Left as left:
        outcome = Outcome(left.outcome.ways, base, watermark, left.outcome.flags)
    outcome = settled(machine, outcome, settle)
    while len(machine.narrowings) > mark:
        outcome = _closed(machine, outcome, settle)
    if not outcome.ways:
        machine.graph.end_unreachable()
    machine.state = base
    return Outcome(outcome.ways, base, watermark, outcome.flags)


def settled(machine: Machine, outcome: Outcome, settle: Settle | None) -> Outcome:
    """``outcome`` with its exits renamed; what two of them become the same is joined in the innermost block."""
    if settle is None:
        return outcome
    found = {exit: settle(exit, way) for exit, way in outcome.ways.items()}
    if len({renamed for renamed, _ in found.values()}) < len(found):
        exit = next(iter(outcome.flags))
        way, (renamed, payload) = outcome.ways[exit], found[exit]
        one = Outcome({renamed: Way(way.state, payload)}, outcome.base, outcome.watermark)
        arms = Arm(machine.graph.builder.nested(), one), Arm(machine.graph.builder.nested(), outcome.without(exit))
        with machine.graph.at_end_of(arms[1].builder):
            arms[1].outcome = settled(machine, arms[1].outcome, settle)
        return join_arms(machine, outcome.flags[exit], arms, base=outcome.base, watermark=outcome.watermark)
    ways = {renamed: Way(outcome.ways[exit].state, payload) for exit, (renamed, payload) in found.items()}
    flags = {found[exit][0]: flag for exit, flag in outcome.flags.items()}
    return Outcome(ways, outcome.base, outcome.watermark, flags)


def narrow(machine: Machine, outcome: Outcome, other: Builder | None = None) -> Abstract | None:
    """Go on where ``outcome`` ends normally; gives its payload. The other exits wait for the end of the scope.

    ``other`` is what runs where they are taken. Raises ``Left`` where it never ends normally.
    """
    if NORMAL not in outcome.ways:
        raise Left(outcome)
    way = outcome.ways[NORMAL]
    if len(outcome.ways) > 1:
        flag, negated = _flag_of(outcome, NORMAL)
        graph = machine.graph
        inner = graph.builder.nested()
        machine.narrowings.append(
            Narrowing(
                graph.builder,
                inner,
                outcome.without(NORMAL),
                flag,
                negated,
                graph.location,
                graph.builder.nested() if other is None else other,
            )
        )
        graph.open(inner)
    machine.state = way.state.child() if len(outcome.ways) > 1 else way.state
    return way.payload


def adopt(machine: Machine, outcome: Outcome) -> Abstract | None:
    """The same for a construct that began in the machine's state."""
    base = machine.state
    payload = narrow(machine, outcome)
    if len(outcome.ways) == 1 and base is outcome.base:
        base.absorb(machine.state)
        machine.state = base
    return payload


def _flag_of(outcome: Outcome, exit: Exit) -> tuple[Symbol, bool]:
    """Return what tells whether a run takes ``exit``, and whether it says the opposite."""
    if exit in outcome.flags:
        return outcome.flags[exit], False
    (other,) = [each for each in outcome.ways if each != exit]
    return outcome.flags[other], True


def _closed(machine: Machine, outcome: Outcome, settle: Settle | None) -> Outcome:
    narrowing = machine.narrowings.pop()
    graph = machine.graph
    assert graph.builder is narrowing.inner
    graph.close()
    with graph.at_end_of(narrowing.other):
        others = settled(machine, narrowing.others, settle)
    arms = (Arm(narrowing.inner, outcome), Arm(narrowing.other, others))
    around, graph.location = graph.location, narrowing.location
    try:
        return join_arms(
            machine,
            narrowing.flag,
            (arms[1], arms[0]) if narrowing.negated else arms,
            base=narrowing.others.base,
            watermark=narrowing.others.watermark,
        )
    finally:
        graph.location = around


def divided(
    machine: Machine,
    outcome: Outcome,
    exit: Exit,
    handle: Callable[[Abstract], Abstract | None],
    otherwise: Callable[[], Abstract | None],
) -> Outcome:
    """Run ``handle(payload)`` where ``outcome`` took ``exit``, with ``otherwise`` where it ended normally."""
    way, rest = outcome.ways[exit], outcome.without(exit)
    base, watermark = outcome.base, outcome.watermark

    def handled() -> Abstract | None:
        machine.state = way.state.child()
        assert way.payload is not None
        return handle(way.payload)

    def went_on() -> Abstract | None:
        narrow(machine, rest)
        return otherwise()

    if not rest.ways:
        machine.state = base
        found = scope(machine, handled)
        return Outcome(found.ways, base, watermark, found.flags)
    flag, negated = _flag_of(outcome, exit)
    location = machine.graph.location
    machine.state = base
    arms = [interpret_arm(machine, piece) for piece in (handled, went_on)]
    machine.graph.location = location
    if negated:
        arms.reverse()
    return join_arms(machine, flag, (arms[0], arms[1]), base=base, watermark=watermark)


def branch(
    machine: Machine,
    flag: Symbol,
    then: Callable[[], Abstract | None],
    otherwise: Callable[[], Abstract | None],
    name: str = "cf.cond",
) -> Outcome:
    """Interpret both arms of a condition; ``name`` is what the id of the op begins with."""
    base, watermark = machine.state, machine.watermark()
    location = machine.graph.location
    counts = dict(machine.host_counts)
    first = interpret_arm(machine, then)
    after, machine.host_counts = machine.host_counts, counts
    arms = (first, interpret_arm(machine, otherwise))
    for base_id, count in after.items():  # the arms exclude each other, so they may use the same ids
        machine.host_counts[base_id] = max(count, machine.host_counts.get(base_id, 0))
    machine.graph.location = location
    return join_arms(machine, flag, arms, base=base, watermark=watermark, name=name)


def join_arms(
    machine: Machine,
    flag: Symbol,
    arms: tuple[Arm, Arm],
    *,
    base: State,
    watermark: int,
    name: str = "cf.cond",
) -> Outcome:
    """Append the condition whose arms these are; gives the exits behind it."""
    phis = CondPhis(machine, flag, arms)
    is_empty = not (arms[0].builder.ops or arms[1].builder.ops)
    outcomes = tuple(arm.outcome for arm in arms)
    ways: dict[Exit, Way] = {}
    for exit in dict.fromkeys((*outcomes[0].ways, *outcomes[1].ways)):
        ways[exit] = _met(machine, phis, exit, base, watermark)
    flags = _flags(machine, phis, list(ways))
    machine.state = base
    if is_empty and not phis.results:
        return Outcome(ways, base, watermark, flags)
    for arm, yields in zip(arms, phis.yields, strict=True):
        with machine.graph.at_end_of(arm.builder):
            if arm.leaves:
                machine.graph.end_unreachable()
            else:
                arm.builder.emit(YieldOp, location=None, values=tuple(yields))
    machine.graph.append(
        CondOp,
        phis.results,
        flag=flag.ir,
        then=arms[0].builder.block(),
        otherwise=arms[1].builder.block(),
        id=f"{without_holes(machine.path)}/@{name}",
    )
    return Outcome(ways, base, watermark, flags)


def _met(machine: Machine, phis: CondPhis, exit: Exit, base: State, watermark: int) -> Way:
    found = [arm.outcome.ways.get(exit) for arm in phis.arms]
    if found[0] is not None and found[1] is not None:
        phis.states = (found[0].state, found[1].state)
        left, right = found[0].payload, found[1].payload
        while True:
            mark = phis.mark()
            join = Join(machine, phis, phis.states, base, watermark)
            try:
                state = join.run()
                if left is None or right is None:
                    return Way(state, left or right)
                return Way(state, join.value(("payload",), left, right))
            except NotInRunError as reason:
                phis.undo(mark)
                phis.escape(reason.side, reason.addresses)
    side = 0 if found[0] is not None else 1
    way = found[side]
    assert way is not None
    other = next(iter(phis.arms[1 - side].outcome.ways.values()), None)
    states = (way.state, base if other is None else other.state)
    phis.states = states if side == 0 else (states[1], states[0])
    join = Join(machine, phis, phis.states, base, watermark)
    state = join.run_alone(side)
    return Way(state, None if way.payload is None else join.exported(("payload",), side, way.payload))


def _flags(machine: Machine, phis: CondPhis, exits: list[Exit]) -> dict[Exit, Symbol]:
    """Return what tells the exits apart behind the condition."""
    if len(exits) < 2:
        return {}
    if phis.arms[0].leaves or phis.arms[1].leaves:
        side = 1 if phis.arms[0].leaves else 0
        given = phis.arms[side].outcome.flags
        return {
            exit: flag if phis.sees(flag.ir) else phis.alone(("flag", exit), side, flag) for exit, flag in given.items()
        }
    if len(exits) == 2:
        sides = [[exit in arm.outcome.ways for exit in exits] for arm in phis.arms]
        if sides == [[True, False], [False, True]]:
            assert phis.flag is not None
            return {exits[0]: phis.flag}
        if sides == [[False, True], [True, False]]:
            assert phis.flag is not None
            return {exits[1]: phis.flag}
        exits = exits[:1]
    return {exit: _joined_flag(machine, phis, exit) for exit in exits}


def _joined_flag(machine: Machine, phis: CondPhis, exit: Exit) -> Symbol:
    flags: list[Abstract] = []
    for side, arm in enumerate(phis.arms):
        phis.states = (phis.arms[0].outcome.base, phis.arms[1].outcome.base)
        if exit not in arm.outcome.ways:
            flags.append(FALSE)
        elif len(arm.outcome.ways) == 1:
            flags.append(TRUE)
        else:
            flag, negated = _flag_of(arm.outcome, exit)
            with phis.at(side):
                flags.append(pure(machine, "not", (flag,), raises=False) if negated else flag)
    return phis.merge(("flag", exit), flags[0], flags[1])


def choose(machine: Machine, flag: Symbol, then: Callable[[], Abstract], otherwise: Callable[[], Abstract]) -> Abstract:
    """Return the value of one of two expressions, by a flag."""
    found = adopt(machine, branch(machine, flag, then, otherwise, "cf.cond.value"))
    assert found is not None
    return found


def tried(machine: Machine, op: Op, kinds: Classes | None) -> tuple[Value, ...]:
    """``op`` in a block that looks at exceptions: goes on where it raises none."""
    graph = machine.graph
    fillers = [unused(machine, value.type) for value in op.results]
    body = graph.builder.nested()
    body.ops.append(op)
    body.emit(YieldOp, values=op.results)
    ok, error, *results = graph.emit(
        TryOp,
        (BOOL, ANY, *(kind for _, kind in fillers)),
        names=(None, None, *(value.name for value in op.results)),
        fallback=tuple(ir for ir, _ in fillers),
        base=machine.catches_base > 0,
        body=body.block(),
        id=f"{without_holes(machine.path)}/@cf.try",
    )
    state = machine.state
    other = graph.builder.nested()
    with graph.at_end_of(other):
        machine.state = state.child()
        machine.close_turns(machine.try_marks[-1])
        handled = machine.handled[-1] if machine.handled else None
        symbol = Symbol(error, "an exception")
        raised = Way(machine.state, Raised(None, symbol=symbol, context=handled, kinds=kinds))
    machine.state = state
    exits = {NORMAL: Way(state.child()), RAISE: raised}
    narrow(machine, Outcome(exits, state, machine.watermark(), {NORMAL: Symbol(ok, "whether it was done")}), other)
    return tuple(results)

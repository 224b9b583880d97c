"""The state of an interpretation: graph, heap, and the calls under way."""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from lmc.frontend.breaks import Break, CaptureBreak
from lmc.frontend.heap.cells import (
    BranchArrayCell,
    BranchesCell,
    Cell,
    CollectedCell,
    CoreCell,
    DictCell,
    FrameCell,
    GeneratorCell,
    GrownCell,
    HandleCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    ObjectCell,
    PoisonCell,
    SetCell,
)
from lmc.frontend.heap.reach import current, is_reached
from lmc.frontend.heap.state import Journal, Place, State
from lmc.frontend.heap.values import (
    Abstract,
    Concat,
    Const,
    Poison,
    Raised,
    Ref,
    RoleTurn,
    Slice,
    Symbol,
    Tuple,
    Union,
    View,
    alternatives,
    is_literal,
)
from lmc.frontend.machine.budget import MAX_INLINED_OPS, MAX_INLINED_STEPS, MAX_STEPS
from lmc.frontend.machine.exits import Exit, Left, Narrowing, Outcome, Way
from lmc.frontend.machine.graph import Graph
from lmc.frontend.machine.raises import Classes, may_take, raised_by
from lmc.frontend.program.guards import MUTABLE_CONTAINERS, mutable_parts
from lmc.frontend.source.functions import Definition
from lmc.frontend.source.liveness import names_in
from lmc.frontend.source.pure_types import is_deeply_harmless
from lmc.ir.builder import Builder
from lmc.ir.core import Op, Value
from lmc.ir.errors import LmcError, Location
from lmc.ir.ids import escape, without_holes
from lmc.ir.types import Type
from lmc.ir.wording import with_article

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Within:
    """A construct under way: its node, the block that runs, and what a continuation needs besides names."""

    node: Any
    block: str
    given: Sequence[tuple[str, Abstract]] = ()


@dataclass(slots=True)
class Depths:
    """From how many blocks on in each other the rounds of a loop can't be interpreted one by one, nor by a run's index.

    It is kept where the interpretation begins again: a loop in rounds of another one tries each way once. ``reason`` is
    why a run's index does not do.
    """

    rounds: int = sys.maxsize
    counted: int = sys.maxsize
    reason: Break | None = None


@dataclass(eq=False)
class Ends:
    """The data that the ends of a capture need.

    ``root`` is the program's own handle.
    ``origins`` are what the caller holds as well, tuples and addresses: a parameter, and the way from there. ``copied``
    are the addresses of containers of which the run may hold a copy inside another object, ``lent`` those of
    containers that a tool was given whose result may be or hold them. ``borrowed`` are values of the run that may be
    such a container, or hold one, though they do not follow its changes. ``refused`` are errors that the program raises
    whatever the run gives where it comes to an op, by a value that the op gives or names, or to a break.
    ``forms`` are the spelt-out forms of control flow in which it can't be captured, by the reason. ``stop_before`` says
    where the caller of the capture wants a break. ``in_rounds`` is the number of loops under way that can begin again
    as loops of the run: ``TooDeepBreak`` goes out to them. ``depths`` is what is known of those, by node and length,
    ``not_counted`` the reason of the innermost one that has to be interpreted round by round.
    """

    root: Ref = field(default_factory=lambda: Ref(0))
    origins: dict[int | Abstract, list[Any]] = field(default_factory=dict[int | Abstract, list[Any]])
    copied: set[int] = field(default_factory=set[int])
    lent: set[int] = field(default_factory=set[int])
    borrowed: set[Value] = field(default_factory=set[Value])
    refused: dict[Value | Break, BaseException] = field(default_factory=dict["Value | Break", BaseException])
    forms: dict[Break, str] = field(default_factory=dict[Break, str])
    stop_before: Callable[[ast.stmt | None], bool] | None = None
    in_rounds: int = 0
    depths: defaultdict[Any, Depths] = field(default_factory=lambda: defaultdict(Depths))
    not_counted: Break | None = None


@dataclass(eq=False)
class Activation:
    """One call of a function that is interpreted.

    ``number`` is what its ``return`` leaves for, ``frames`` are the addresses of its names and of those around it,
    innermost first. ``decides``: conditions on arguments are decided now. ``call`` is the expression that it is the
    value of, where the value is used for nothing else; ``within`` are the constructs under way that hold something.
    ``statement`` is the one under way, which began in ``block``.
    """

    number: int
    definition: Definition
    frames: tuple[int, ...]
    decides: bool = False
    loops: list[int] = field(default_factory=list[int])
    call: ast.expr | None = None
    within: list[Within] = field(default_factory=list[Within])
    first_argument: str | None = None
    on_yield: Callable[[Abstract], None] | None = None
    statement: Any = None
    block: Builder | None = None


@dataclass(frozen=True)
class Rules:
    """The functions that interpret the parts of a program; every rule calls the others through these.

    ``finish`` ends the program with a value.
    """

    execute: Callable[[Sequence[Any]], None]
    assign: Callable[[Any, Abstract], None]
    evaluate: Callable[[Any], Abstract]
    test: Callable[[Any], Abstract]
    call: Callable[[Abstract, Sequence[Abstract], Mapping[str, Abstract]], Abstract]
    finish: Callable[[Abstract], None]
    append_together: Callable[[Abstract, Abstract], Abstract | None]
    special: Callable[[str, Abstract, Sequence[Abstract]], Abstract | None]
    has_special: Callable[[str, Abstract], bool]
    truth_of_object: Callable[[Const], Abstract]
    contains_of: Callable[[Abstract, Abstract], Abstract | None]
    size_of: Callable[[Abstract], Abstract | None]
    item_of: Callable[[Abstract, Abstract], Abstract | None]
    set_item_of: Callable[[Abstract, Abstract, Abstract], bool]
    attribute_of: Callable[[Abstract, str], Abstract | None]
    object_call: Callable[[str, Callable[..., Any], Sequence[Abstract]], Abstract]
    outside: Callable[[Any, str], Abstract]
    is_changed: Callable[[Any], bool]
    check_kept: Callable[[str, Sequence[Abstract]], None]
    leave_with: Callable[[Exit, Abstract], None]
    end_turn: Callable[[RoleTurn], None]
    run_generator: Callable[..., None]
    collected: Callable[[Ref], Abstract]
    consume: Callable[[Ref, Callable[[Abstract], None]], None]
    next_item: Callable[[Ref], Abstract | None]
    for_each: Callable[[Abstract, Callable[[Abstract], None]], None]
    choose: Callable[[Symbol, Callable[[], Abstract], Callable[[], Abstract]], Abstract]
    tried: Callable[[Op, Classes | None], tuple[Value, ...]]
    inline: Callable[[FunctionType, Sequence[Abstract], Mapping[str, Abstract]], Abstract]
    stored: Callable[[Abstract], Abstract]


@dataclass(slots=True)
class Saved:
    """A place of the interpretation to which it can go back."""

    mark: int
    stack: tuple[Builder, ...]
    ops: tuple[int, int]
    narrowings: int
    activations: int
    state: State
    tainted: bool
    host_counts: dict[str, int]
    location: Location | None
    protected: tuple[int, ...]
    guarded_returns: int
    guards: tuple[int, int]


@dataclass(slots=True)
class RunObjects:
    """Observations about objects of the run. Nothing here is taken back where the interpretation begins again.

    ``changes`` counts the ops that may have changed one. ``defaults``: one may be a ``defaultdict``, which reading an
    item changes. ``inner`` are the addresses of those that may be in another one. ``copies`` are lists of what
    iterators give, made when those were: they do not follow what the iterators go over; ``fixed`` are those that are
    of lists that only the program changes. ``escaping`` are the places of what is just becoming objects of the run,
    outermost first. ``changed_unseen``: one was changed that may have an address, but was reached through a value.
    ``gone_over`` are the addresses of lists and iterators that loops under way read in each round, ``provisional``
    those of iterators of loops that begin again where a list changes that was taken apart: ``ItemsChangedError``.
    ``apart``: on which side of a flag alone anything leads to an object, one of those that another one is; ``levels``:
    on how many flags it depends which of those it is, by their addresses.
    """

    changes: int = 0
    changed_unseen: bool = False
    defaults: bool = False
    inner: set[int] = field(default_factory=set[int])
    copies: set[Value] = field(default_factory=set[Value])
    fixed: set[Value] = field(default_factory=set[Value])
    escaping: list[Place] = field(default_factory=list[Place])
    gone_over: list[int] = field(default_factory=list[int])
    provisional: list[int] = field(default_factory=list[int])
    apart: dict[tuple[Place, Value], int] = field(default_factory=dict[tuple[Place, Value], int])
    levels: dict[Place, int] = field(default_factory=dict[Place, int])


@dataclass(slots=True, eq=False)
class Evaluated:
    """The last evaluation of a loop: the target of its exits, the places its header changes, its slots, inner loops."""

    target: int
    places: tuple[Place, ...]
    slots: dict[tuple[Any, ...], Symbol]
    inner: dict[Any, Evaluated]


@dataclass(slots=True, eq=False)
class Loops:
    """Loops inside one attempt of the loop around: as the attempt before left them, and those met so far.

    An attempt evaluates the loops inside anew. They begin with the header that they ended with the last time, so that
    they are stable at once, and the evaluations of nested loops add up instead of multiplying.
    """

    known: dict[Any, Evaluated] = field(default_factory=dict[Any, Evaluated])
    met: dict[Any, Evaluated] = field(default_factory=dict[Any, Evaluated])
    count: Counter[Any] = field(default_factory=Counter[Any])


class Machine:
    """The state of an interpretation.

    ``path`` is where ids begin that belong to no handle: that of the program which runs now, with ``holes``.
    """

    def __init__(self, graph: Graph, path: str, written: dict[Any, Any] | None = None) -> None:
        self.graph = graph
        self.written: dict[Any, Any] = {} if written is None else written
        """Places outside the program that it writes, with what keeps their ids: they are read in the run alone."""
        self.reads_answers = False
        """True if ops that passes may move read fields of answers: nothing else holds the objects."""
        self.makers: dict[Any, Any] = {}
        """Makers of objects of the user's classes, as host functions."""
        self.variables: dict[tuple[int, str], Any] = {}
        """Variables outside the program, as host functions."""
        self.journal = Journal()
        self.state = State(None, self.journal)
        self.path = path
        self.holes: tuple[Value, ...] = ()
        self.narrowings: list[Narrowing] = []
        self.host_counts: dict[str, int] = {}
        self.activations: list[Activation] = []
        self.attempts = 0
        """The number of pieces under way that can be captured in another way too."""
        self.writes = 0
        """The number of calls so far that may have changed data of the user."""
        self.protected = 0
        """The number of open constructs that handle exceptions."""
        self.catches_base = 0
        """The number of those that handle every exception, ``KeyboardInterrupt`` included."""
        self.taken: list[Classes | None] = []
        """The classes of exceptions that each of them handles; None: all."""
        self.try_marks: list[int] = []
        """The number of role blocks that were open where each of them began."""
        self.handled: list[Raised] = []
        """The exceptions whose handlers have begun, outermost first."""
        self.guarded_returns = 0
        """The number of open constructs that handle returns (``finally``, ``with``)."""
        self.turns: list[RoleTurn] = []
        """The role blocks that are open, innermost last."""
        self.turn_marks: dict[int, int] = {}
        """The number of them that were open where a loop, a call or a ``try`` began, by the target of its exits."""
        self.watched: list[tuple[int, Ref]] = []
        """Addresses of lists and dicts of which an iterator holds the items as they are now, and the iterator."""
        self.objects = RunObjects()
        self.read_only: set[int] = set()
        """Addresses of containers that the caller holds as well: an argument, data of the user's."""
        self.functions: dict[Any, Callable[..., Abstract]] = {}
        """Functions of the languages of the programs that are interpreted (``lmc.frontend.handles.language``)."""
        self.has_arrays = False
        """True if there are branches that only a run counts."""
        self.array_loops: list[Any] = []
        """The loops under way that may go over them, outermost first (``lmc.frontend.handles.rows.Over``)."""
        self.loops = Loops()
        self.direct: ast.expr | None = None
        """The call that is about to begin, where its value is that of the function called."""
        self.ends = Ends()
        self.rules: Rules = _NO_RULES
        self.rows: dict[Value, Callable[[Abstract], Abstract]] = {}
        """Lists of tuples that a loop reads part by part: what reads the tuple at a position."""
        self._next, self._steps = 1, 0
        self._most_steps = self._most_ops = sys.maxsize
        self._made: dict[int | str, tuple[Abstract | None, Symbol, Builder]] = {}
        self.lengths: dict[Value, tuple[Symbol, Builder]] = {}
        self.specialised: dict[Value, Any] = {}
        self._copies: dict[int, tuple[Any, Abstract]] = {}

    # Addresses and contents

    def allocate(self, cell: Cell | None = None) -> int:
        """A new address, with ``cell`` at it."""
        address = self._next
        self._next += 1
        if cell is not None:
            self.state.put(address, cell)
        return address

    def new(self, cell: Cell) -> Ref:
        """A new object."""
        return Ref(self.allocate(cell))

    def watermark(self) -> int:
        """The address that comes next."""
        return self._next

    def cell(self, value: Abstract) -> Cell | None:
        """Return what a reference names; None for other values."""
        if not isinstance(value, Ref):
            return None
        found = self.state.get(value.address)
        assert isinstance(found, Cell), "a reference names no cell"
        if isinstance(found, PoisonCell):
            name = self._name_of(value)
            cause = found.poison.cause if name is None else found.poison.cause_of(name)
            raise self.stop(cause, found.poison.remedy)
        return found

    def _name_of(self, value: Ref) -> str | None:
        """A name of the call that runs, or around it, of an object or of several one of which it is."""
        for frame in self.activation.frames if self.activations else ():
            for name in sorted(self._names(frame)):
                held = self.state.get((frame, name))
                if isinstance(held, Abstract) and value in alternatives(current(self.state, held)):
                    return name
        return None

    def describe_cell(self, value: Ref) -> str:
        """Return what messages call an object."""
        cell = self.cell(value)
        if isinstance(cell, HandleCell | CoreCell):
            return "a state"
        if isinstance(cell, BranchesCell | BranchArrayCell):
            return "the branches of a state"
        if isinstance(cell, InstanceCell):
            return f"{with_article(cell.kind.__name__)} that the program makes"
        kind = self.class_of_cell(value)
        return "an object of the program" if kind is None else with_article(kind.__name__)

    def class_of_cell(self, value: Ref) -> type | None:
        """The class of an object, where that is known."""
        cell = self.cell(value)
        if isinstance(cell, ListCell | GrownCell | CollectedCell):
            return list
        if isinstance(cell, DictCell):
            return dict
        if isinstance(cell, SetCell):
            return set
        return cell.kind if isinstance(cell, InstanceCell | ObjectCell) else None

    def roots(self) -> list[Any]:
        """The places of names that may still be read, of all calls that are under way."""
        found: list[Any] = []
        for activation in self.activations:
            own = activation.frames[0]
            for frame in activation.frames:
                cell = self.state.get(frame)
                assert isinstance(cell, FrameCell)
                live = self._live(activation) if frame == own else None
                found += [(frame, name) for name in cell.names if live is None or name in live]
        return [*found, *self.objects.gone_over, *(turn.handle.address for turn in self.turns)]

    @contextmanager
    def going_over(self, value: Ref | None) -> Generator[None]:
        """A loop that reads a list or an iterator in each round: it stays the same object, whatever names hold."""
        held = self.objects.gone_over
        mark = len(held)
        held += [] if value is None else [value.address]
        try:
            yield
        finally:
            del held[mark:]

    @contextmanager
    def giving(self, own: Collection[Place]) -> Generator[None]:
        """Turn objects that are reached through ``own`` alone into objects of the run."""
        escaping = self.objects.escaping
        mark = len(escaping)
        escaping += own
        try:
            yield
        finally:
            del escaping[mark:]

    @staticmethod
    def _live(activation: Activation) -> frozenset[str] | None:
        """The names of a call that are read behind the statement that is under way, or by that; None: all of them."""
        node = activation.statement
        behind = activation.definition.live[1].get(id(node))
        if behind is None:
            return None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _takes_names(node.value):
            return behind
        return behind | {part.id for part in names_in(node)}

    def watch(self, iterator: Ref, *values: Abstract) -> None:
        """As long as ``iterator`` is there ``values`` may not change: it has taken their items."""
        for value in values:
            held = value.owner if isinstance(value, View) else value
            if isinstance(held, Ref) and not isinstance(self.cell(held), IteratorCell | GeneratorCell):
                self.watched.append((held.address, iterator))

    def unwatch(self, mark: int) -> None:
        """Forget the iterators since ``mark`` that nothing can ask for an item any more."""
        if len(self.watched) > mark:
            self.watched[mark:] = [pair for pair in self.watched[mark:] if self.is_held(pair[1])]

    def is_watched(self, address: int) -> bool:
        """Return whether an iterator holds the items of a container as they are now."""
        return any(address == each for each, _ in self.watched)

    def check_change(self, value: Ref) -> None:
        """End the capture where a container may not change."""
        if value.address in self.read_only:
            raise self.stop(
                "the program changes a list or dict that it was given, which its caller would see",
                "make a copy first: list(x), dict(x)",
            )
        if value.address in self.ends.lent and value.address not in self.objects.escaping:
            raise self.stop(
                "a list or dict is changed that a tool was given, whose result may be or hold it",
                "pass a copy of it to the tool: list(x), dict(x)",
            )
        iterators = {iterator.address for each, iterator in self.watched if each == value.address}
        if not iterators.isdisjoint(self.objects.provisional):
            raise ItemsChangedError
        if iterators:
            raise self.stop(
                "a list or dict is changed while an iterator goes over it (enumerate, zip, map and the like)",
                "go over a copy: list(x)",
            )

    def check_own(self, values: Sequence[Abstract]) -> None:
        """End the capture where what is changed, or asked for its identity, may be a container that the run copied."""
        for value in values:
            if isinstance(value, Symbol) and value.ir in self.ends.borrowed:
                raise self.stop(
                    f"{value.origin} may be a list or dict that the program or its caller holds, and is changed or "
                    "compared with `is`",
                    "take what is needed out of it, or change a copy: list(x), dict(x)",
                )

    def may_be_kept(self, value: Abstract) -> bool:
        """Return whether a function may keep or change an object of the run: nothing still in use is in it."""
        if isinstance(value, Tuple):
            return all(map(self.may_be_kept, value.items))
        cell = self.cell(value)
        if isinstance(value, Symbol):
            return not (value.local and self.objects.inner)
        if not isinstance(value, Ref) or not isinstance(cell, ObjectCell):
            return cell is None or all(map(self.may_be_kept, cell.inner()))
        held = {value.address, *self.objects.inner}
        return value.address not in self.objects.inner and not any(self.is_held(Ref(address)) for address in held)

    def is_held(self, value: Ref, state: State | None = None, skip: Collection[Any] = ()) -> bool:
        """Return whether an object can be reached under a name that may still be read, but not through ``skip``."""
        roots = self.roots()
        unread = {(one, name) for one in (each.frames[0] for each in self.activations) for name in self._names(one)}
        return is_reached(
            self.state if state is None else state, value.address, roots, {*skip, *unread.difference(roots)}
        )

    def _names(self, frame: int) -> frozenset[str]:
        cell = self.state.get(frame)
        return cell.names if isinstance(cell, FrameCell) else frozenset()

    def can_be_stored(self, value: Abstract, skip: Collection[Any], state: State | None = None) -> bool:
        """Return whether a list of the run may hold ``value`` as it is now: nothing but ``skip`` can change it."""
        state = self.state if state is None else state
        if isinstance(value, Tuple):
            return all(self.can_be_stored(item, skip, state) for item in value.items)
        if isinstance(value, Const | Symbol | Concat):
            return True
        cell = state.get(value.address) if isinstance(value, Ref) else None
        if isinstance(cell, ObjectCell):
            return cell.ordered
        if isinstance(cell, PoisonCell):
            return isinstance(cell.value, Symbol)
        if not isinstance(value, Ref) or not isinstance(cell, ListCell | GrownCell | DictCell | SetCell | InstanceCell):
            return False
        if value.address in skip or self.is_held(value, state, skip):
            return False
        held: list[Any] = cell.inner()
        if isinstance(cell, InstanceCell):
            polyfill = cell.kind.__module__.partition(".")[0] == "lmc"
            if polyfill or value.address in self.read_only:
                return False
            held = [state.get((value.address, name)) for name in cell.names]
        return all(self.can_be_stored(item, {*skip, value.address}, state) for item in held)

    # Ops

    def emit(
        self,
        kind: type[Op],
        types: Sequence[Type] = (),
        *,
        may_raise: bool | None = None,
        raises: Classes | None = None,
        names: Sequence[str | None] = (),
        **fields: Any,
    ) -> tuple[Value, ...]:
        """Append an op. ``may_raise`` says whether it can here, ``raises`` what; None: what its class says."""
        results = self.graph.emit(kind, types, names=names, **fields)
        op = self.graph.builder.ops[-1]
        if self.protected and (op.may_raise if may_raise is None else may_raise):
            raised = raised_by(op) if raises is None else raises
            if self._may_be_taken(raised):
                self.graph.builder.ops.pop()
                return self.rules.tried(op, raised)
        return results

    @contextmanager
    def appending(self, builder: Builder, state: State) -> Generator[None]:
        """Append to the end of a block, in ``state``, ops that put values together: none of them raises."""
        around = self.state, self.protected
        depth = len(self.graph.stack)
        self.graph.open(builder)
        self.state, self.protected = state, 0
        try:
            yield
        finally:
            self.state, self.protected = around
            del self.graph.stack[depth:]

    def _may_be_taken(self, raised: Classes | None) -> bool:
        """Return whether a block around looks at exceptions of these classes; None: of any."""
        return raised is None or any(classes is None or may_take(classes, raised) for classes in self.taken)

    def step(self) -> None:
        """Count one statement or call."""
        self._copies.clear()
        self._steps += 1
        if self._steps > self._most_steps or self.graph.op_count > self._most_ops:
            raise self.stop("a function that the program calls takes many operations", "nothing has to change")
        if self._steps > MAX_STEPS:
            raise self.stop(
                f"the capture takes more than {MAX_STEPS:,} steps", "bound the loops of the program, or split it"
            )

    def stop(self, cause: str, remedy: str) -> CaptureBreak:
        """Return what ends the capture before the statement that is interpreted."""
        return self.graph.stop(cause, remedy)

    def check_stop(self, node: ast.stmt | None) -> None:
        """Stop before ``node`` (None: the program's end) where the caller of the capture wants it."""
        stop_before = self.ends.stop_before
        if stop_before is not None and stop_before(node):
            raise self.stop("the caller of the capture stops it here", "nothing has to change")

    def note_write(self, place: Any, held: Any, *, was_read: bool) -> None:
        """The program writes a place outside of it; where that was read before, the capture begins again."""
        if place in self.written:
            return
        self.written[place] = held
        if was_read:
            raise Restart

    def unsupported(self, what: str) -> CaptureBreak:
        """The same for what no rule is there for."""
        return self.stop(
            f"{what} can't be captured yet", "nothing has to change: it runs eagerly from here; please report it"
        )

    # Ids

    def allocate_host(self, name: str) -> str:
        """The id of the next call of ``name``: told apart by where it stands."""
        base = f"{without_holes(self.path)}/@{escape(name)}"
        count = self.host_counts.get(base, 0)
        self.journal.set(self.host_counts, base, count + 1)
        return base if count == 0 else f"{base}#{count}"

    # Values that an op of an open block has already

    def made(self, key: int | str) -> Symbol | None:
        """The symbol of a text (by its id) or of a constant (by its host symbol), if an op in an open block made it."""
        found = self._made.get(key)
        return found[1] if found is not None and self.is_open(found[2]) else None

    def note_made(self, key: int | str, symbol: Symbol, held: Abstract | None = None) -> None:
        """Remember it; ``held`` keeps the id of a text from being given again."""
        self._made[key] = (held, symbol, self.graph.builder)

    def drop_ops(self, builder: Builder, mark: int) -> None:
        """Drop the ops of ``builder`` from ``mark`` on, and what was remembered of any op."""
        del builder.ops[mark:]
        self._made.clear()
        self.lengths.clear()
        self.specialised.clear()

    def is_open(self, builder: Builder) -> bool:
        return any(each is builder for each in self.graph.stack)

    # Breaks

    def take_direct(self) -> ast.expr | None:
        """The call that is about to begin; whoever does not hand it on drops it."""
        found, self.direct = self.direct, None
        return found

    @contextmanager
    def within(self, node: Any, block: str, given: Sequence[tuple[str, Abstract]] = ()) -> Generator[None]:
        """A block of a construct, with what a continuation in it needs besides names."""
        activation = self.activation
        activation.within.append(Within(node, block, given))
        try:
            yield
        finally:
            activation.within.pop()

    # Going back

    def attempt(self, first: Callable[[], T], otherwise: Callable[[], T], *signals: type[BaseException]) -> T:
        """``first()``; where that raises one of ``signals``, ``otherwise()`` from the same state.

        ``CaptureBreak`` may be one of them: while ``attempts`` is above 0, what can't be captured is raised as it is.
        """
        saved = self.save()
        self.attempts += CaptureBreak in signals
        try:
            return first()
        except signals:
            self.restore(saved)
        finally:
            self.release(saved)
            self.attempts -= CaptureBreak in signals
        return otherwise()

    def attempt_small(self, first: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """The same where ``first`` may take so many steps and ops alone, and is given up if it reaches a break."""
        around = self._most_steps, self._most_ops
        self._most_steps = min(self._most_steps, self._steps + MAX_INLINED_STEPS)
        self._most_ops = min(self._most_ops, self.graph.op_count + MAX_INLINED_OPS)

        def limited() -> T:
            try:
                return first()
            finally:
                self._most_steps, self._most_ops = around

        return self.attempt(limited, otherwise, CaptureBreak, RecursionError)

    def save(self) -> Saved:
        """Return where the interpretation is, so that it can begin here again; ``release`` it in the end."""
        return Saved(
            self.journal.mark(),
            tuple(self.graph.stack),
            (len(self.graph.builder.ops), self.graph.op_count),
            len(self.narrowings),
            len(self.activations),
            self.state,
            self.state.tainted,
            self.host_counts,
            self.graph.location,
            (self.protected, self.catches_base, len(self.try_marks), len(self.handled), len(self.turns)),
            self.guarded_returns,
            (len(self.graph.value_guards), len(self.graph.reads)),
        )

    def release(self, _saved: Saved) -> None:
        """Nothing goes back to the place that was saved last any more."""
        self.journal.release()

    def restore(self, saved: Saved) -> None:
        """Begin there again: what was interpreted since is dropped."""
        self.journal.undo(saved.mark)
        self.graph.stack[:] = saved.stack
        ops, self.graph.op_count = saved.ops
        self.drop_ops(self.graph.builder, ops)
        del self.narrowings[saved.narrowings :]
        del self.activations[saved.activations :]
        self.state = saved.state
        self.state.tainted = saved.tainted
        self.host_counts = saved.host_counts
        self.graph.location = saved.location
        self.protected, self.catches_base, marks, handled, turns = saved.protected
        del self.try_marks[marks:], self.taken[marks:], self.handled[handled:], self.turns[turns:]
        self.guarded_returns = saved.guarded_returns
        self.direct = None
        del self.graph.value_guards[saved.guards[0] :]
        self.graph.reads.forget(saved.guards[1])

    # Values

    def plain(self, value: Abstract) -> tuple[Any] | None:
        """The Python value of what is known now and runs no code of the user's, alone in a tuple; else None.

        Containers of the program's own are copied.
        """
        if isinstance(value, Const):
            known = is_deeply_harmless(value.value) and not self.rules.is_changed(value.value)
            return (value.value,) if known else None
        if isinstance(value, Slice):
            parts = self._plain_items((value.start, value.stop, value.step))
            return None if parts is None else (slice(*parts),)
        if isinstance(value, Tuple):
            if value.kind is not tuple:
                return None
            parts = self._plain_items(value.items)
            return None if parts is None else (tuple(parts),)
        cell = self.cell(value)
        copy: Any = None
        if isinstance(cell, ListCell):
            copy = self._plain_items(cell.items)
        elif isinstance(cell, DictCell):
            parts = self._plain_items(cell.values)
            copy = None if parts is None else dict(zip(cell.keys, parts, strict=True))
        elif isinstance(cell, SetCell):
            copy = set(cell.items)
        if copy is None:
            return None
        self._copies[id(copy)] = (copy, value)
        return (copy,)

    def _plain_items(self, items: Sequence[Abstract]) -> list[Any] | None:
        found = [self.plain(item) for item in items]
        return None if any(each is None for each in found) else [each[0] for each in found if each is not None]

    def set_items(self, value: Abstract) -> list[Any] | None:
        """The items of a known set of literals, in an order that is the same in every process; None of other values."""
        plain = self.plain(value)
        if plain is None or type(plain[0]) not in (set, frozenset) or not all(map(is_literal, plain[0])):
            return None
        return sorted(plain[0], key=repr)

    def lifted(self, value: Any, given: Sequence[Any] = ()) -> Abstract:
        """Return what CPython made of known values: containers become the program's own.

        Containers that are in ``given``, the arguments, stay the objects that they are.
        """
        parts: dict[int, Any] = {}
        if type(value) in (list, tuple, dict, set):
            for each in given:
                mutable_parts(each, parts)
        return self._lifted(value, parts)

    def _lifted(self, value: Any, given: Mapping[int, Any]) -> Abstract:
        kind = type(value)
        if given.get(id(value)) is value and kind in MUTABLE_CONTAINERS:
            copied = self._copies.get(id(value))
            return Const(value) if copied is None or copied[0] is not value else copied[1]
        if kind is list:
            return self.new(ListCell(tuple(self._lifted(each, given) for each in value)))
        if kind is tuple:
            return Tuple(tuple(self._lifted(each, given) for each in value))
        if kind is dict and all(map(is_literal, value)):
            return self.new(DictCell(tuple(value), tuple(self._lifted(each, given) for each in value.values())))
        if kind is set and all(map(is_literal, value)):
            return self.new(SetCell(frozenset(value)))
        return Const(value)

    def list_of(self, value: Symbol) -> Ref:
        """A list of the program's own, whose items are those of a value that nothing else holds."""
        return self.new(GrownCell(value))

    # What only some kinds of objects have; the rules of handles and classes fill these in

    def append_together(self, left: Abstract, right: Abstract) -> Abstract | None:
        """``+`` of what a program appends to a state."""
        return self.rules.append_together(left, right)

    def special(self, name: str, owner: Abstract, *args: Abstract) -> Abstract | None:
        """A special method that the class of ``owner`` defines in Python; None where there is none."""
        return self.rules.special(name, owner, args)

    def has_special(self, name: str, owner: Abstract) -> bool:
        """Return whether the class of ``owner`` defines a special method in Python."""
        return self.rules.has_special(name, owner)

    def truth_of_object(self, value: Const) -> Abstract:
        """Return whether an object of the user's is true, as it says in the run."""
        return self.rules.truth_of_object(value)

    def contains_of(self, container: Abstract, item: Abstract) -> Abstract | None:
        """``in`` of a handle."""
        return self.rules.contains_of(container, item)

    def size_of(self, value: Abstract) -> Abstract | None:
        """``len`` of an object of lmc's own; None where it has none."""
        return self.rules.size_of(value)

    # Exceptions

    def made_error(self, error: LmcError) -> MadeError:
        """Return what ends the capture before the statement under way, for which the program raises ``error``."""
        return MadeError(error, self.graph.location)

    def note_refused(self, value: Value, error: BaseException) -> None:
        """The op that gives ``value`` raises ``error`` or one like it; so does compiling, if no condition guards it."""
        if not self.protected and self.activation.block is self.graph.builder:
            self.ends.refused[value] = error

    def leave_for(self, exit: Exit, payload: Abstract | None = None) -> NoReturn:
        """Take an exit; role blocks that it leaves are closed on the way."""
        self.close_turns(self.turn_marks.get(exit.target, 0))
        raise Left(Outcome({exit: Way(self.state, payload)}, self.state, self._next))

    def close_turns(self, mark: int) -> None:
        """Close the role blocks that were opened since there were ``mark`` of them."""
        for turn in reversed(self.turns[mark:]):
            self.rules.end_turn(turn)

    def begin_target(self) -> int:
        """Return what the exits of a loop or a call leave for, which begins here."""
        number = self.allocate()
        self.turn_marks[number] = len(self.turns)
        return number

    def leave(self) -> NoReturn:
        """No run gets further in this block."""
        self.graph.end_unreachable()
        raise Left(Outcome({}, self.state, self._next))

    # Choices

    def note_apart(self, value: Abstract) -> None:
        """Note for each object of a union, to which nothing else leads, on which side of its flags that is."""
        if isinstance(value, Union):
            for side, way in enumerate((value.first, value.second)):
                for each in alternatives(way):
                    if isinstance(each, Ref):
                        self.objects.apart[each.address, value.flag.ir] = side
                self.note_apart(way)

    def cases(self, value: Abstract, then: Callable[[Abstract], Abstract]) -> Abstract:
        """``then(value)``; of a union for each of the values that it may be."""
        if isinstance(value, Poison):
            raise self.stop(value.cause, value.remedy)
        value = current(self.state, value)
        if not isinstance(value, Union):
            return then(value)
        first, second = value.first, value.second
        return self.choose(value.flag, lambda: self.cases(first, then), lambda: self.cases(second, then))

    def choose(self, flag: Symbol, then: Callable[[], Abstract], otherwise: Callable[[], Abstract]) -> Abstract:
        """The value of one of two expressions, by a flag."""
        return self.rules.choose(flag, then, otherwise)

    @property
    def activation(self) -> Activation:
        """The call that runs now."""
        return self.activations[-1]

    def at(self, node: Any) -> Location:
        """The place of a node, which ops get from here on: of a statement or a call, else of what it is a part of.

        A part on a line of its own has its own place.
        """
        definition, location = self.activations[-1].definition, self.graph.location
        if location is not None and (
            definition.is_own
            or (location.line == node.lineno and location.file == definition.file and not isinstance(node, _PLACED))
        ):
            return location
        location = self.graph.location = definition.location(node)
        return location


class Restart(Exception):  # noqa: N818 - no error: the capture begins again
    """A place outside the program is written that was read before."""


class ItemsChangedError(Exception):
    """A loop changes a list whose items its iterator has taken already: it begins again and takes them one by one."""


class MadeError(Exception):
    """The program raises an error of lmc's at this line, for these arguments."""

    def __init__(self, error: BaseException, location: Location | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.location = location


_PLACED = (ast.stmt, ast.Call)


def _takes_names(call: ast.Call) -> bool:
    """Return whether a call reads each name once at most, before it does anything."""
    names = [part.id for part in ast.walk(call) if isinstance(part, ast.Name)]
    calls = [part for part in ast.walk(call) if isinstance(part, ast.Call)]
    return len(calls) == 1 and len(set(names)) == len(names)


def _unset(*_arguments: Any) -> Any:
    raise AssertionError("the machine has no rules yet")


_NO_RULES = Rules(*[_unset] * len(fields(Rules)))

"""What every capture session starts with: the block it builds, how it ends, and what it can hand on."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lmc.frontend.breaks import Break, CaptureBreak
from lmc.frontend.catching import Classes, may_be_caught
from lmc.frontend.conversions import JsonTypes
from lmc.frontend.failures import TOO_DEEP
from lmc.frontend.guards import ReadGuards, ValueGuard
from lmc.frontend.hosts import HostTable
from lmc.frontend.id_values import Id, holes_of
from lmc.frontend.locations import user_location
from lmc.frontend.outside import Outside
from lmc.frontend.proxy import Expression, Proxy
from lmc.frontend.regions import Regions
from lmc.frontend.session import OPEN, Session, escape
from lmc.frontend.sites import SiteTable
from lmc.frontend.transform import Transformed
from lmc.ir.builder import Builder
from lmc.ir.core import Constraint, Op, Value
from lmc.ir.errors import LmcError, Location
from lmc.ir.ids import count_holes, without_holes
from lmc.ir.regions import RegionOp
from lmc.ir.types import Type

SCALARS = frozenset({type(None), bool, int, float, str})
_MAX_OPS = 500_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a capture was: ops of the program's own block, results recorded, operations counted."""

    ops: int
    recorded: int
    ticks: int


class Emitter(Session):
    """The part of ``Recorder`` that appends ops. ``inputs`` are the arguments that are given, by name."""

    def __init__(
        self,
        parameters: Sequence[Value],
        inputs: Mapping[str, Any],
        *,
        start: Location | None = None,
        careful: bool = False,
        outside: Outside | None = None,
    ) -> None:
        super().__init__()
        self.start = start
        self.regions = Regions(parameters, self._counts)
        self.inputs = inputs
        self.careful = careful
        self.outside = outside or Outside()
        self.hosts = HostTable(self.outside.receiver)
        self.constraints: dict[tuple[str, ...], Constraint] = {}
        self.json_types = JsonTypes()
        self.value_guards: list[ValueGuard] = []
        self.reads = ReadGuards(self.outside.receiver, self.outside.containers)
        self.broken: Break | None = None
        self.break_tick = 0
        self.too_deep = False  # the capture ended because of the depth of a recursion, see ``_Attempt``
        self.catching: list[Classes | None] = []  # what is caught around this place; what that may take is not captured
        self.instances: dict[Value, type] = {}  # classes of the instances that the program makes
        self.error_kinds: dict[Value, type[BaseException]] = {}  # of exceptions that classes of the user's make
        self.inlined: list[Any] = []  # programs that run as parts of this one, outermost first
        self.codes: dict[int, CodeType] = {}  # of transformed functions: what they do is captured
        self.sites = SiteTable()  # where the control flow of those functions stands
        self.foreign: dict[int, Any] = {}  # containers and iterators made outside the capture, by id: read only here
        self.argument_parts: set[int] = set()  # those of them that stand for arguments
        self.frozen: set[int] = set()  # those of them that the capture made itself, and has copied since
        self.mutable_reads = 0  # reads so far of data that the user's functions could change
        self.user_writes = 0  # host calls so far that may have changed the user's own data
        self.writers: list[Any] = []  # functions that may change data, and what they are given
        self.hazard = False  # such a call came after a read of data that it may have changed
        self.last_host: tuple[int, str, Value] | None = None  # tick, id and result of the last host call
        self._recorded: list[tuple[str, tuple[Value, ...]]] = []
        self.plain_iterator: Any = None  # the one made last by enumerate or zip, over what does not change by that
        self.refused_form: str | None = None  # the form of control flow in which the capture ended
        self.branch: Any = None  # the innermost condition both ways of which are traced
        self.end_program: Callable[[Any], None] | None = None  # records what the program returns
        self._changes: dict[int, int] = {}  # of each container and handle so far, by id
        self.grows = False  # whether the length of some list of the capture's is not known
        self.returns = 0  # how often the program was seen to return so far
        self.own_errors: dict[int, BaseException] = {}  # exceptions of Python's own classes that were made here
        self.handling: list[Any] = []  # the attempts whose handlers have begun, outermost first
        self.handled_before = sys.exc_info()[1]  # what is handled by whoever captures
        self._entry: Checkpoint | None = None  # where the outermost open construct begins
        self._held_entry: Checkpoint | None = None  # the same, of one that is made of several
        self._op_count = 0
        self._steps = 0  # decisions since the outermost open construct began
        self._lengths: dict[Value, Proxy] = {}
        self._specialised: dict[Value, Any] = {}
        self._evaluated: dict[Expression, Any] = {}
        self.unusable: dict[Value, tuple[str, str]] = {}  # contexts that no op may continue: cause and remedy
        self.index_loops: dict[Value, Any] = {}  # the loops over unknown items by the number of their round
        self._rooted: dict[Expression, Value] = {}  # values of the program's own block that were worked out for regions

    def goes_through(self, transformed: Transformed) -> None:
        """What a function does is captured from here on."""
        self.codes.update(transformed.codes)
        self.sites.add(transformed.sites)

    def stop(self, cause: str, remedy: str, location: Location | None = None) -> CaptureBreak:
        """The exception that ends this capture here. Once ended, it stays so for the first reason."""
        if self.broken is None:
            if self.outside.parts:  # called whole, the function would not end the capture
                self.outside.want("whole", self.outside.parts[-1].code)
            self.broken = Break(location or user_location(), cause, remedy)
            if self._entry is not None:
                self._cut_back(self._entry)
            self.break_tick = self.ticks
            self.constructs = {
                tick: (start, self.ticks if end == OPEN else end)
                for tick, (start, end) in self.constructs.items()
                if tick <= self.ticks
            }
        return CaptureBreak(self.broken)

    @property
    def op_count(self) -> int:
        """How many ops were recorded."""
        return self._op_count

    @property
    def builder(self) -> Builder:
        """Where ops go: the innermost open region, or the program's own block."""
        return self.regions.builder

    def touch(self, held: Any) -> None:
        if type(held) is set and self.regions.is_older(held):
            raise self.stop(
                "a set is changed on one way through a condition, and what it goes over first may depend on it",
                "use a list, or change the set before the condition or after it",
            )
        self._changes[id(held)] = self.changes_of(held) + 1
        self.regions.touch(held)

    def changes_of(self, held: Any) -> int:
        """A number that grows with each change of ``held``."""
        return self._changes.get(id(held), 0)

    def born(self, made: Any) -> Any:
        self.regions.born(made)
        return made

    def allocate(self, path: str, name: str) -> str:
        self.blocks.check()
        return self._numbered(f"{path}/{name if name.isidentifier() else escape(name)}", holes_of(path))

    def allocate_host(self, path: str, name: str) -> str:
        # Which call it is follows from where it stands, so that numbers which are not known yet are not needed.
        return self._numbered(f"{without_holes(path)}/@{escape(name)}", ())

    def branch_path(self, path: str, index: int) -> str:
        return Id.of(super().branch_path(path, index), holes_of(path))

    def _numbered(self, base: str, holes: tuple[Value, ...]) -> str:
        key = (base, holes)
        count = self._counts.get(key, 0)
        self.regions.touch_count(key)
        if type(count) is not Proxy:
            self._counts[key] = count + 1
            return Id.of(base if count == 0 else f"{base}#{count}", holes)
        self._counts[key] = self.next_number(count)
        return Id.of(f"{base}*", (*holes, self.value_of(count)))

    @abstractmethod
    def next_number(self, count: Proxy) -> Proxy:
        """``count + 1``."""

    @abstractmethod
    def value_of(self, proxy: Proxy) -> Value:
        """The IR value of ``proxy``."""

    def own_error(self, made: BaseException) -> BaseException:
        """``made``, an exception that the program makes."""
        self.own_errors[id(made)] = made
        return made

    def _cut_back(self, entry: Checkpoint) -> None:
        self.regions.abandon()
        del self.regions.root.ops[entry.ops :]
        del self._recorded[entry.recorded :]
        self.ticks = entry.ticks
        self.served = {tick: op_id for tick, op_id in self.served.items() if tick <= entry.ticks}
        self._entry = None

    def record(self, op_id: str, results: tuple[Value, ...]) -> None:
        """Note the results of an op with an id; those of regions, and of ids with holes, are known to runs alone."""
        if self.regions.depth == 0 and not count_holes(op_id):
            self._recorded.append((op_id, results))

    def emit(
        self,
        kind: type[Op],
        types: Sequence[Type] = (),
        *,
        names: Sequence[str | None] = (),
        location: Location | None = None,
        total: bool = False,
        raises: Classes | None = None,
        **fields: Any,
    ) -> tuple[Value, ...]:
        """Append an op. ``total`` says that it can't raise here, though its kind can, ``raises`` what alone it can.

        Raises ``CaptureBreak`` where it could raise inside a ``try`` of the user's.
        """
        if self.broken is not None:
            raise CaptureBreak(self.broken)
        self._op_count += 1
        if self.outside.parts and self._op_count > self.outside.parts[-1].most_ops:
            raise self.stop("a function that the program calls comes to many operations", "nothing has to change")
        if self._op_count > _MAX_OPS:
            raise self.stop(f"the program is longer than {_MAX_OPS} operations", "bound its loops")
        builder = self.regions.builder
        results = builder.emit(kind, types, names=names, location=location or user_location(), **fields)
        made = builder.ops[-1]
        if not total and may_be_caught(made, raises, self.catching):
            builder.ops.pop()
            raise self.stop_protected()
        for value in made.operands:
            if value in self.unusable:
                builder.ops.pop()
                raise self.stop(*self.unusable[value])
            self.check_seen(value)
        self.regions.defined(results)
        return results

    def check_seen(self, value: Value) -> None:
        """Break where ``value`` belongs to a way through a condition that may not have been taken."""
        if not self.regions.sees(value):
            raise self.stop(
                "a value that was made on one way through the program is used where that way may not have been taken",
                "bind it to a variable on every way",
            )

    def unclear(self, what: str) -> BaseException:
        return self.stop(
            f"{what} is not bound on every way through a condition, or to things that can't become one value",
            "bind it to a text or a number before the condition and on every way",
        )

    @property
    def depth(self) -> int:
        """How many programs, each called by the one before, run as parts of this one."""
        return len(self.inlined)

    @property
    def counts(self) -> dict[Any, Any]:
        """How many ids there are on each base: numbers, symbolic ones behind a condition."""
        return self._counts

    def emit_region_op(
        self,
        kind: type[RegionOp],
        results: Sequence[Value],
        *,
        location: Location | None = None,
        name: str | None = None,
        **fields: Any,
    ) -> None:
        """Append an op with regions, whose results have their names already. Raises as ``emit`` does.

        ``name`` is what its id is to say that it is.
        """
        begun = f"{without_holes(self.path)}/@{name or kind.NAME}"  # the rest of the id comes last (``region_ids``)
        made = kind(results=tuple(results), location=location or user_location(), id=begun, **fields)
        if made.raises_itself and may_be_caught(made, (LmcError,), self.catching):
            raise self.stop_protected()
        self.regions.builder.ops.append(made)
        self.regions.defined(results)

    def stop_too_deep(self, location: Location | None) -> CaptureBreak:
        """The break for a recursion that goes deeper than a capture can, which needs more of Python's stack."""
        self.too_deep = True
        return self.stop(
            f"{TOO_DEEP} to be captured",
            "nothing has to change: it runs eagerly; to have it compiled, write a loop",
            location,
        )

    def stop_protected(self) -> CaptureBreak:
        """The break for what could raise inside a ``try`` of the user's."""
        return self.stop(
            "this may raise inside a `try` or `with` block, and which way the block then takes is not known yet",
            "move it out of the block, or check the value before instead of catching the exception",
        )

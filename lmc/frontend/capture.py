"""Capture: run the transformed function on symbolic arguments, and give the module that it recorded."""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

from lmc.frontend.arguments import Bound, shape_of, shape_of_annotations
from lmc.frontend.binding import Owner
from lmc.frontend.breaks import RAISED_CAUSE, RAISED_REMEDY, Break, CaptureBreak, Exit
from lmc.frontend.function import JittedFunction
from lmc.frontend.guards import mutable_parts
from lmc.frontend.locations import raised_at, recurs_at
from lmc.frontend.operators import Operators
from lmc.frontend.outside import Outside
from lmc.frontend.proxy import holds_proxy, parameter
from lmc.frontend.reaching import changeable
from lmc.frontend.recorder import Recorder
from lmc.frontend.region_ids import with_region_ids
from lmc.frontend.specs import Arguments, Record
from lmc.frontend.transform import Transformed
from lmc.frontend.variants import Captured, Replay
from lmc.ir.core import Function, Module, Value, walk
from lmc.ir.errors import CaptureError, InputError, LmcError, Location
from lmc.ir.ops import HostCallOp, PyCallOp
from lmc.ir.regions import RegionOp
from lmc.ir.types import ANY, JsonType, Type

# How often a capture begins anew because of what it found out about the user's objects.
_MOST_ATTEMPTS = 64


def capture(function: JittedFunction, arguments: Bound | None) -> Captured:
    """Capture ``function`` for ``arguments`` (None: for what its annotations promise).

    Runs no effect of the user's and never fails because of what the function does: what can't be captured is a break.
    Raises ``CaptureError`` only for a function that can't run at all.
    """
    function.refuse_async()
    shape = shape_of_annotations(function) if arguments is None else shape_of(function, arguments)
    inputs: dict[str, Any] = {}
    given = function.defaults if arguments is None else arguments.values
    for name, value in given.items():
        shape.specs[name].extract(value, inputs)
    first = Outside(function.receiver, changeable=frozenset(changeable(given)))
    found = _attempted(function, shape, inputs, first)
    if found.recorder.broken is not None:
        # What functions that became parts of it gave may have been of less use than an opaque value, and items that
        # are looked at when the graph runs of less use than those of now.
        outside = found.recorder.outside
        others = [dataclasses.replace(first, plain=True)] if outside.entered else []
        others += [dataclasses.replace(first, steady=True)] if outside.containers else []
        attempts = [_attempted(function, shape, inputs, other) for other in others]
        found = max(found, *attempts, key=_Attempt.reach) if attempts else found
    return found.captured() if not found.recorder.too_deep else found.nothing()


def _attempted(function: JittedFunction, shape: Arguments, inputs: dict[str, Any], outside: Outside) -> _Attempt:
    """The attempt at a capture that nothing was missing in."""
    attempt = _Attempt(function, shape, inputs, outside, careful=False)
    for left in reversed(range(_MOST_ATTEMPTS)):
        recorder = attempt.recorder
        if not recorder.outside.wanted and (recorder.broken is None or not recorder.hazard or recorder.careful):
            break
        # Its eager continuation would read again what a call in the graph may have changed: end before that call.
        careful = recorder.careful or not recorder.outside.wanted
        outside = recorder.outside.next(final=left == 0)
        attempt = _Attempt(function, shape, inputs, outside, careful=careful)
    return attempt


# What runs no code of the user's, and ``list``, after which a capture that breaks ends anyway (``listed_now``).
_REPEATABLE = frozenset({"text", "choice", "choices", "is", "is_not", "list_from"})


# What makes a container that the program can change.
_CONTAINERS = frozenset({"set", "set_from", "dict", "dict_from"})


def _may_be_an_object(value: Value) -> bool:
    """Whether ``value`` may be of a class of the user's."""
    return value.type == ANY or isinstance(value.type, JsonType)


class _Attempt:
    def __init__(
        self, function: JittedFunction, shape: Arguments, inputs: dict[str, Any], outside: Outside, *, careful: bool
    ) -> None:
        self.function = function
        self.shape = shape
        parameters: list[Value] = []

        def leaf(name: str, kind: Type) -> Value:
            parameters.append(Value(name, kind))
            return parameters[-1]

        shape.build(leaf, _no_break)
        self.recorder = Recorder(parameters, inputs, start=function.location, careful=careful, outside=outside)
        self.recorder.path = function.name
        self.refused: LmcError | None = None
        plain = function.definition
        if isinstance(plain, FunctionType):
            self.recorder.reads.add_attribute(plain, "__code__", plain.__code__)
        self._run()

    def nothing(self) -> Captured:
        """For a recursion that is too deep: a graph of nothing but a break.

        How deep Python can go depends on the functions between, and a program may catch that it can't. So the
        untransformed function runs from its beginning, and not the transformed one, which has more of them.
        """
        recorder = self.recorder
        kept = Recorder(
            recorder.regions.root.parameters, recorder.inputs, start=recorder.start, outside=recorder.outside
        )
        kept.broken, kept.value_guards, kept.reads = recorder.broken, recorder.value_guards, recorder.reads
        kept.finish_broken()
        self.recorder = kept
        return dataclasses.replace(self.captured(), replay=Replay({}, 0, nothing=True))

    def reach(self) -> tuple[bool, int]:
        """How far it came: to the end, else how many calls of models are in it."""
        ops = walk([self.recorder.regions.root.block()])
        return self.recorder.broken is None, sum(op.billable for op in ops if not isinstance(op, RegionOp))

    def captured(self) -> Captured:
        recorder = self.recorder
        module = Module(
            self.function.name,
            (Function(self.function.name, with_region_ids(recorder.regions.root.block(), recorder.sites)),),
            tuple(recorder.constraints.values()),
            tuple(recorder.hosts.symbols.values()),
        )
        return Captured(
            self.function.template or self.function,
            module,
            recorder.hosts.callables,
            () if recorder.broken is None else (recorder.broken,),
            self.shape,
            tuple(recorder.value_guards),
            recorder.reads,
            Replay(
                dict(recorder.served),
                recorder.break_tick,
                constructs=dict(recorder.constructs),
                entered=frozenset(recorder.outside.entered),
            ),
            self._owner(),
            recorder.json_types.readers,
            self.refused,
            tuple(recorder.writers),
        )

    def _owner(self) -> Owner | None:
        """The object whose method this is a capture of, and whether it holds for that alone."""
        receiver = self.function.receiver
        if not receiver:
            return None
        recorder = self.recorder
        used = recorder.outside.escaped or recorder.hosts.exclusive or recorder.reads.exclusive
        return Owner(receiver[0], exclusive=used or self.function.attributes is None)

    def _run(self) -> None:
        recorder = self.recorder
        transformed = self.function.transformed
        if isinstance(transformed, Break):
            recorder.broken = transformed
        else:
            try:
                self._record(transformed)
            except CaptureBreak:
                assert recorder.broken is not None
            except RecursionError as error:
                recorder.stop_too_deep(recurs_at(error.__traceback__))
            except Exception as error:
                at = error.location if isinstance(error, LmcError) else None
                if at is not None and isinstance(error, (CaptureError, InputError)) and recorder.broken is None:
                    self.refused = error.with_traceback(None)
                # It raises for these arguments as plain Python does: the eager continuation does it at the right time.
                recorder.stop(
                    f"this raises {type(error).__name__}: {_first_line(error)}",
                    (error.remedy if isinstance(error, LmcError) else None)
                    or "nothing has to change: the program raises this when it runs",
                    at or raised_at(error.__traceback__),
                )
        if recorder.broken is not None and recorder.refused_form is not None and not recorder.outside.wanted:
            broken = recorder.broken
            raise CaptureError(
                f"{recorder.refused_form} can't be captured: {broken.cause}",
                remedy=broken.remedy,
                location=broken.location,
            )
        if recorder.broken is not None:
            self._check_answered()
            recorder.finish_broken()

    def _check_answered(self) -> None:
        """Let another attempt end before the first host call that a replay would get wrong.

        A replay answers an operation by the last host call that the operation made; it makes the others again, which
        may run the user's code. Sets and dicts it makes anew too, without what a method of one did in the graph.
        """
        recorder = self.recorder
        answers = set(recorder.served.values())
        containers: set[Value] = set()
        for op in walk([recorder.regions.root.block()]):
            if isinstance(op, PyCallOp) and op.function in _CONTAINERS:
                containers.update(op.results)
            if not isinstance(op, HostCallOp):
                continue
            if recorder.hosts.builtin_of(op.host) is None and not containers.isdisjoint(op.operands):
                recorder.outside.want("unanswered", op.id)
                return
            if op.id in answers:
                continue
            name = recorder.hosts.builtin_of(op.host)
            if name is not None and name not in _REPEATABLE and any(map(_may_be_an_object, op.operands)):
                recorder.outside.want("unanswered", op.id)
                return

    def _record(self, transformed: Transformed) -> None:
        recorder = self.recorder
        recorder.goes_through(transformed)

        def leaf(name: str, kind: Type) -> Any:
            return recorder.proxy(Value(name, kind), f"the argument {name!r}", expression=parameter(name))

        values = self.shape.build(leaf, recorder.stop)
        for value in values.values():
            _take_in(value, recorder, self.function.location)
        recorder.argument_parts.update(recorder.foreign)
        operators = Operators(recorder, self.function, self.function.name)
        args, kwargs = self._arranged(values)
        state = self.function.new_state(recorder, self.function.name)

        def end(value: Any) -> None:
            recorder.blocks.check_all()
            recorder.finish(state.core.context, self.function.outputs(state), value)

        recorder.end_program = end
        try:
            value = transformed.function(operators, state, *args, **kwargs)
        except Exit as left:
            if left.branch is not None:
                raise recorder.stop(
                    "an exception is raised on one way through an expression, by a function that it calls",
                    "call the function in a statement, under an `if`",
                    raised_at(left.__traceback__),
                ) from None
            return  # on each way it ends with a return or an exception of its own
        if recorder.branch is not None:
            raise recorder.stop(RAISED_CAUSE, RAISED_REMEDY)
        if recorder.broken is None:  # else a `finally` of the user's swallowed the break
            end(value)

    def _arranged(self, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments as the function takes them."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, found in self.function.signature.parameters.items():
            if name not in values:
                continue
            if found.kind is found.VAR_POSITIONAL:
                args.extend(values[name])
            elif found.kind is found.VAR_KEYWORD:
                kwargs.update(values[name])
            elif found.kind is found.KEYWORD_ONLY:
                kwargs[name] = values[name]
            else:
                args.append(values[name])
        return args, kwargs


def _take_in(value: Any, recorder: Recorder, location: Location | None) -> None:
    """Note every container in an argument, those in the fields of its records too."""
    if type(value) is Record:
        parts: Any = value.fields.values()
    elif type(value) in (list, tuple):
        parts = value
    elif type(value) is dict:
        parts = value.values()
    else:
        parts = ()
        recorder.check_guarded(value, location)
    mutable_parts(value, recorder.foreign)
    for part in parts:
        _take_in(part, recorder, location)


def _no_break(cause: str, _remedy: str) -> BaseException:
    """For arguments that no program sees."""
    return AssertionError(cause)


def _first_line(error: BaseException) -> str:
    """The start of an error's message; nothing where it holds symbolic values."""
    if isinstance(error, LmcError):
        return error.cause
    return "" if holds_proxy(error.args) else str(error).partition("\n")[0]

"""The continuation of a run that came to ``lm.break``: the rest of each function under way, on live objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any

from lmc.frontend.continuation.objects import UNBOUND, RecordObjects, iterator_at
from lmc.frontend.continuation.residuals import CALL, ENTER, Entered, Residual, Rounds, residual_of
from lmc.frontend.continuation.stopping import digest_of
from lmc.frontend.failures import name_line, too_deep
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.language.running import activate
from lmc.frontend.program.arguments import Bound
from lmc.frontend.program.eager_runs import EagerFrame, eager_outcome, run_eager
from lmc.frontend.program.variants import Captured
from lmc.frontend.source.functions import Definition
from lmc.frontend.source.places import Place
from lmc.ir.builtins.live import Live
from lmc.ir.errors import LmcError, PlanMismatchError
from lmc.ir.ids import fill_holes
from lmc.ir.semantics.interpreter import Outcome

Node = Mapping[str, Any]
Call = Callable[[], Any]


def go_on(captured: Captured, bound: Bound, live: Live, session: EagerSession) -> Outcome:
    """Run the rest of ``captured``, which broke.

    ``session`` is fresh; its profile then counts what ran after the break. Raises what the user's function raises, and
    ``PlanMismatchError`` where its source is not the one that was captured.
    """
    function = bound.program
    record: Node = _read(live.record)
    if record["frames"][0].get("begin"):
        return run_eager(function, bound, session)
    objects = RecordObjects(record, live.values, captured.hosts, bound, session)
    session.path = function.name
    session.counted(
        {fill_holes(base, objects.values(holes)): objects.value(count) for base, holes, count in record["counts"]}
    )
    state = objects.value(record["root"])
    codes: set[int] = set(function.codes)
    rest: Call | None = None
    for frame in reversed(record["frames"]):
        rest = _frame(objects, frame, rest, codes)
    assert rest is not None
    try:
        with activate(EagerFrame(session, function.name)):
            value = rest()
    except RecursionError as error:
        raise too_deep(error) from None
    except LmcError as error:
        name_line(error, codes)
        raise
    return eager_outcome(function, state, value, session)


@lru_cache(maxsize=256)
def _read(record: str) -> Node:
    return json.loads(record)


def _frame(objects: RecordObjects, node: Node, inner: Call | None, codes: set[int]) -> Call:
    """The rest of one function. ``inner`` is what gives the result of the call that it waits for."""
    definition = objects.definition(node["function"])
    if digest_of(definition.node) != node["digest"]:
        raise PlanMismatchError(
            f"the source of {definition.name}() is not the one that was captured",
            remedy="run the program itself, which captures it again",
        )
    values = objects.pairs(node["names"])
    variables = objects.variables(definition, node["variables"])
    given = {} if inner is None else {CALL: inner}
    for depth, handed in node["given"]:
        held = {name: objects.value(part) for name, part in handed}
        given.update({f"@{name}{depth}": value for name, value in _handed(held).items()})
    rest = _compiled(definition, tuple(node["place"]), tuple(values), tuple(sorted(variables)), tuple(given))
    codes.add(id(rest.code))
    closure = tuple(variables[name] for name in rest.code.co_freevars)
    made = FunctionType(rest.code, definition.globals, rest.code.co_name, None, closure)
    arguments = [*values.values(), *given.values()]
    return lambda: made(*arguments)


@lru_cache(maxsize=256)
def _compiled(
    definition: Definition, place: Place, names: Sequence[str], variables: Sequence[str], given: Sequence[str]
) -> Residual:
    return residual_of(definition, place, names, variables, given)


def _handed(held: dict[str, Any]) -> dict[str, Any]:
    """Return what the rule of a construct names, from what the record holds for it."""
    found: dict[str, Any] = {}
    for name, value in held.items():
        rule = _GIVEN.get(name)
        found.update({name: value} if rule is None else rule(held, value))
    return {name: None if value is UNBOUND else value for name, value in found.items()}


def _iterator(_held: Mapping[str, Any], value: Any) -> dict[str, Any]:
    return {"rounds": Rounds(value), "enter": ENTER}


def _items(held: Mapping[str, Any], value: Any) -> dict[str, Any]:
    return {"rounds": Rounds(iterator_at(value, held["index"] + 1)), "enter": ENTER}


def _error(_held: Mapping[str, Any], value: BaseException) -> dict[str, Any]:
    return {"error": value, "every": BaseException}


def _managers(_held: Mapping[str, Any], value: Sequence[Any]) -> dict[str, Any]:
    return {f"manager{index}_": Entered(each) for index, each in enumerate(value)}


def _left(held: Mapping[str, Any], value: int) -> dict[str, Any]:
    """Return how a block was left whose ``finally`` runs."""
    kinds: Sequence[str] = held["exits"]
    more = {kind: None for kind in kinds if kind in ("break", "continue")}
    return {"left": kinds[value], "return": held["returned"], "raise": held["raised"], **more}


_GIVEN: dict[str, Callable[[Mapping[str, Any], Any], dict[str, Any]]] = {
    "iterator": _iterator,
    "items": _items,
    "index": lambda _held, _value: {},
    "error": _error,
    "managers": _managers,
    "left": _left,
    "exits": lambda _held, _value: {},
    "returned": lambda _held, _value: {},
    "raised": lambda _held, _value: {},
}

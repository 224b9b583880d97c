"""Places of breaks, and the ``lm.break`` there with its record.

A continuation needs the whole path to the statement: every call under way has to be the value of a statement, and every
construct around has to have declared what it holds (``Machine.within``). A construct that has not can't hold a break.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import Break, CaptureBreak
from lmc.frontend.continuation.pictures import Picture, Pictures, captured_variable
from lmc.frontend.heap.cells import FrameCell
from lmc.frontend.heap.values import Abstract, Symbol, Unbound
from lmc.frontend.source.files import Unsupported, inner_codes
from lmc.frontend.source.functions import Definition
from lmc.frontend.source.places import Place, statements_around
from lmc.ir.core import Value, walk
from lmc.ir.dialects.core_ops import BreakOp

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Activation, Machine

BEGIN = json.dumps({"cells": [], "frames": [{"begin": True}]}, separators=(",", ":"))
"""The record of a break before everything: the program runs as plain Python."""
_EMPTY = {"variable": {"unbound": True}}
_SEES_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})
_HOLDING = (ast.For, ast.While, ast.Try, ast.With)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A call under way and the place of the statement that it is at."""

    activation: Activation
    statement: ast.stmt
    place: Place


def ways_to(machine: Machine, node: ast.stmt) -> list[_Held] | None:
    """The calls under way, outermost first, where a break can stand before ``node``; None where none can."""
    found: list[_Held] = []
    caller: ast.stmt | None = None
    last = len(machine.activations) - 1
    for index, activation in enumerate(machine.activations):
        statement = node if index == last else activation.statement
        place = activation.definition.places.get(id(statement))
        if place is None or activation.on_yield is not None:
            return None
        if index and (caller is None or called_in(caller) is not activation.call or activation.call is None):
            return None
        if not _is_known(activation, place):
            return None
        found.append(_Held(activation, statement, place))
        caller = statement
    return found


def called_in(statement: ast.stmt) -> ast.expr | None:
    """The call whose value a statement is about; a continuation can put something else in its place."""
    if isinstance(statement, ast.Expr | ast.Assign | ast.Return) and isinstance(statement.value, ast.Call):
        return statement.value
    return None


def _is_known(activation: Activation, place: Place) -> bool:
    """Return True if all constructs around a place declared what they hold."""
    around = statements_around(activation.definition.body, place)
    holding = [(node, rest) for node, rest in around if isinstance(node, _HOLDING)]
    known = isinstance(activation.definition.node, ast.FunctionDef) and all(
        isinstance(node, (*_HOLDING, ast.If, ast.Match)) for node, _ in around
    )
    said = activation.within
    return (
        known
        and len(said) == len(holding)
        and all(
            within.node is node and within.block == rest[0] for within, (node, rest) in zip(said, holding, strict=True)
        )
    )


def stop_before(machine: Machine, ways: Sequence[_Held], reason: Break) -> None:
    """Append ``lm.break``. Raises ``CaptureBreak`` where something live has no picture."""
    machine.protected = 0  # what puts values together here is in no block of the program's
    machine.graph.location = reason.location
    pictures = Pictures(machine, machine.ends.origins)
    try:
        frames = [_frame(machine, pictures, each) for each in ways]
    except Unsupported as unknown:
        raise CaptureBreak(Break(reason.location, unknown.what, "define it in a file")) from None
    record = {
        "cells": pictures.cells,
        "frames": frames,
        "counts": _counts(machine, pictures),
        "root": pictures.value(machine.ends.root),
    }
    pictures.check_identities()
    _own_variables(record, [each.activation.definition for each in ways])
    machine.graph.emit(
        BreakOp,
        values=tuple(pictures.leaves),
        cause=reason.cause,
        remedy=reason.remedy,
        record=json.dumps(record, ensure_ascii=False, separators=(",", ":")),
    )


def _own_variables(record: Picture, definitions: Sequence[Definition]) -> None:
    """Make a variable that no other function shares yet a name of its frame: unbound, it is no free variable."""
    uses = Counter(_cells_in(record))
    for frame, definition in zip(record["frames"], definitions, strict=True):
        own = definition.scope.local
        for pair in [pair for pair in frame["variables"] if pair[0] in own and uses[pair[1].get("cell")] == 1]:
            frame["variables"].remove(pair)
            number = pair[1]["cell"]
            held = record["cells"][number]["variable"]
            record["cells"][number] = _EMPTY
            if held != _EMPTY["variable"]:
                frame["names"].append([pair[0], held])


def _cells_in(picture: Any) -> Iterator[int]:
    if isinstance(picture, Mapping):
        found = picture.get("cell")
        if isinstance(found, int):
            yield found
    for part in picture.values() if isinstance(picture, Mapping) else picture if isinstance(picture, list) else ():
        yield from _cells_in(part)


def _frame(machine: Machine, pictures: Pictures, held: _Held) -> Picture:
    activation = held.activation
    definition = activation.definition
    frame = activation.frames[0]
    cell = machine.state.get(frame)
    assert isinstance(cell, FrameCell)
    live = _live(activation, held.statement) & cell.names
    code = definition.code
    shared = {name for name in cell.names if definition.mangled(name) in code.co_cellvars}
    names: list[Any] = []
    for name in sorted(live - shared):
        value = machine.state.get((frame, name))
        assert isinstance(value, Abstract)
        if not isinstance(value, Unbound):
            names.append([name, pictures.value(value)])
    variables = [
        [
            definition.mangled(name),
            pictures.variable(frame, name) if name in live else pictures.cell((frame, name, "dead"), lambda: _EMPTY),
        ]
        for name in sorted(shared)
    ]
    variables += [
        [name, captured_variable(pictures, definition, activation.frames[1:], name)] for name in code.co_freevars
    ]
    given = [
        [depth, [[name, pictures.value(value)] for name, value in within.given]]
        for depth, within in enumerate(activation.within)
    ]
    return {
        "function": pictures.definition(definition),
        "digest": digest_of(definition.node),
        "place": list(held.place),
        "names": names,
        "variables": variables,
        "given": given,
    }


def digest_of(node: ast.AST) -> str:
    """The SHA-256 of a function's source, without its layout."""
    return hashlib.sha256(ast.dump(node).encode(errors="surrogatepass")).hexdigest()


def _live(activation: Activation, statement: ast.stmt) -> frozenset[str]:
    definition = activation.definition
    before = definition.live[2].get(id(statement))
    if before is None or _sees_names(definition):
        return frozenset(definition.scope.local)
    arguments = (*definition.arguments.posonlyargs, *definition.arguments.args)
    return before | {arguments[0].arg} if arguments and "super" in definition.code.co_names else before


def _sees_names(definition: Definition) -> bool:
    """Return whether a function may ask for its names, by whatever name it calls what tells them."""
    codes = [definition.code, *inner_codes(definition.code)]
    for name in {name for code in codes for name in (*code.co_names, *code.co_freevars)}:
        held = definition.globals.get(name)
        if name in _SEES_NAMES or (isinstance(held, BuiltinFunctionType) and held.__name__ in _SEES_NAMES):
            return True
    return False


def _counts(machine: Machine, pictures: Pictures) -> list[Any]:
    """Return how many ids there are on each base whose numbers are visible here."""
    hidden: set[Value] | None = None
    found: list[Any] = []
    for place, held in machine.state.all().items():
        if type(place) is not tuple or place[0] != "count":
            continue
        _, base, holes = place
        if holes:
            hidden = _hidden(machine) if hidden is None else hidden
            if not hidden.isdisjoint(holes) or (isinstance(held, Symbol) and held.ir in hidden):
                continue
        assert isinstance(held, Abstract)
        found.append([base, [pictures.leaf(hole) for hole in holes], pictures.value(held)])
    return found


def _hidden(machine: Machine) -> set[Value]:
    """Return the values of regions that are closed; the parameters of an open loop are not known to its block yet."""
    closed = [region for block in machine.graph.stack for op in block.ops for region in op.regions]
    hidden = {value for op in walk(closed) for region in op.regions for value in region.parameters}
    hidden.update(value for region in closed for value in region.parameters)
    hidden.update(value for op in walk(closed) for value in op.results)
    return hidden

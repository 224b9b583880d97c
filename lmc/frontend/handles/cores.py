"""The cells of a handle: its context, its variables, its ids."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.maps import SHAPE
from lmc.frontend.emit.known import known_value
from lmc.frontend.emit.operands import pure, text_symbol
from lmc.frontend.emit.raising import throw
from lmc.frontend.heap.cells import BranchArrayCell, BranchesCell, CoreCell, HandleCell
from lmc.frontend.heap.values import (
    NONE,
    UNBOUND,
    Abstract,
    Concat,
    Const,
    Lent,
    Poison,
    Raised,
    Ref,
    Symbol,
    Unbound,
    Union,
)
from lmc.frontend.language.core import META
from lmc.frontend.language.refusals import bad
from lmc.frontend.machine.graph import UNKNOWN
from lmc.frontend.program.function import fits
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import ContextOp
from lmc.ir.ids import escape
from lmc.ir.types import CTX, TEXT

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def is_handle(machine: Machine, value: Abstract) -> bool:
    """Return whether ``value`` is a handle, or the branches of one."""
    return isinstance(machine.cell(value), HandleCell | BranchesCell | BranchArrayCell)


def new_handle(machine: Machine, path: str, holes: tuple[Value, ...] = (), language: Any = None) -> Ref:
    """A handle on a context without text."""
    (context,) = machine.emit(ContextOp, (CTX,))
    core = machine.allocate(CoreCell(Symbol(context, "a state")))
    return machine.new(HandleCell(core, path, holes, language))


def another(machine: Machine, handle: Abstract, path: str, holes: tuple[Value, ...]) -> Ref:
    """A handle like ``handle`` on a copy of its context."""
    core = copy_core(machine, handle)
    return machine.new(HandleCell(core, path, holes, language_of(machine, handle)))


def language_of(machine: Machine, handle: Abstract) -> Any:
    """The language of a handle; None for lmc's own."""
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    return cell.language


def core_of(machine: Machine, handle: Abstract) -> tuple[int, CoreCell]:
    """Return what handles of one context share, and where it is."""
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    core = machine.state.get(cell.core)
    assert isinstance(core, CoreCell)
    return cell.core, core


def context_of(machine: Machine, handle: Abstract) -> Symbol:
    """The context of a handle, to be used."""
    return _usable(machine, core_of(machine, handle)[1])


def _usable(machine: Machine, core: CoreCell) -> Symbol:
    context = core.context
    if isinstance(context, Lent):
        if context.signal is not None:
            raise context.signal(context.array)
        raise machine.stop("one of the branches whose number only a run decides is continued by itself", SHAPE)
    return context


def change(machine: Machine, handle: Abstract, **fields: Any) -> None:
    """Put other fields into a core."""
    address, core = core_of(machine, handle)
    _usable(machine, core)
    machine.state.put(address, dataclasses.replace(core, **fields))


def copy_core(machine: Machine, handle: Abstract) -> int:
    """A core of the same context and variables."""
    address, core = core_of(machine, handle)
    _usable(machine, core)
    made = machine.allocate(core)
    for name in (*core.names, *(f"@meta:{name}" for name in core.metas)):
        machine.state.put((made, name), machine.state.get((address, name)))
    return made


def allocate(machine: Machine, handle: Abstract, name: str) -> tuple[str, tuple[Value, ...]]:
    """The id of what comes next on the handle's path."""
    context_of(machine, handle)
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    return allocate_id(machine, cell.path, cell.holes, name)


def variables(machine: Machine, handle: Abstract) -> dict[str, Abstract]:
    """The variables of a handle, those that it may have among them (``Union`` with ``UNBOUND``)."""
    address, core = core_of(machine, handle)
    found: dict[str, Abstract] = {}
    for name in core.names:
        value = machine.state.get((address, name))
        assert isinstance(value, Abstract)
        if not isinstance(value, Unbound):
            found[name] = value
    return found


def by_name(machine: Machine, name: Abstract, then: Callable[[Abstract], Abstract]) -> Abstract:
    """``then(name)``; of a name that is one of a few texts, which only a run knows, for each of them."""
    if isinstance(name, Union | Poison | Unbound):
        return machine.cases(name, lambda one: by_name(machine, one, then))
    if isinstance(name, Concat):
        name = text_symbol(machine, name)
    if (
        not isinstance(name, Symbol)
        or name.type != TEXT
        or not name.domain
        or known_value(machine, name) is not UNKNOWN
    ):
        return then(name)
    first, *rest = name.domain
    if not rest:
        return then(Const(first))
    others = dataclasses.replace(name, domain=tuple(rest))
    flag = pure(machine, "eq", (name, Const(first)), raises=False)
    return machine.choose(flag, lambda: then(Const(first)), lambda: by_name(machine, others, then))


@functools.lru_cache(maxsize=512)
def signature_of(rule: Callable[..., Abstract]) -> inspect.Signature:
    """Return the parameters of a rule, a function of lmc's own."""
    return inspect.signature(rule)


@functools.lru_cache(maxsize=1024)
def takes(rule: Callable[..., Abstract], count: int, keywords: tuple[str, ...]) -> bool:
    """Return whether a rule takes so many arguments, and arguments of these names."""
    return fits(signature_of(rule), (None,) * count, dict.fromkeys(keywords))


def named(rule: Callable[..., Abstract]) -> Callable[..., Abstract]:
    """``rule``, whose argument behind the handle is a name, for names that only a run knows as well."""

    @functools.wraps(rule)
    def split(
        machine: Machine, handle: Abstract, name: Abstract = NONE, *args: Abstract, **given: Abstract
    ) -> Abstract:
        return by_name(machine, name, lambda one: rule(machine, handle, one, *args, **given))

    return split


def metas(machine: Machine, handle: Abstract) -> dict[str, Abstract]:
    """The meta data of variables, as a run keeps them."""
    address, core = core_of(machine, handle)
    held = {f"{META}{name}": machine.state.get((address, f"{META}{name}")) for name in core.metas}
    return {name: value for name, value in held.items() if isinstance(value, Abstract) and value is not UNBOUND}


def assign(machine: Machine, handle: Abstract, name: str | None, value: Abstract, meta: Abstract | None) -> None:
    """Set a variable."""
    if name is None:
        return
    context_of(machine, handle)
    address, core = core_of(machine, handle)
    names = core.names if name in core.names else (*core.names, name)
    metas = core.metas
    if meta is not None and name not in metas:
        metas = (*metas, name)
    machine.state.put(address, dataclasses.replace(core, names=names, metas=metas))
    machine.state.put((address, name), value)
    if name in metas:
        machine.state.put((address, f"@meta:{name}"), UNBOUND if meta is None else meta)


def refuse(machine: Machine, cause: str, remedy: str, kind: Any = None) -> None:
    """Raise a ``CaptureError`` of lmc's own at this line of the program."""
    error = bad(cause, remedy)
    if kind is not None:
        error = kind(error.cause, remedy=error.remedy)
    error.location = machine.graph.location
    throw(machine, Raised(type(error), made=error))


def allocate_id(machine: Machine, path: str, holes: tuple[Value, ...], name: str) -> tuple[str, tuple[Value, ...]]:
    """A stable id for what comes next called ``name`` on ``path``, and the numbers in its holes."""
    base = f"{path}/{name if name.isidentifier() else escape(name)}"
    place = ("count", base, holes)
    count = machine.state.get(place)
    if isinstance(count, Const):
        machine.state.put(place, Const(count.value + 1))
        return (base if count.value == 0 else f"{base}#{count.value}"), holes
    assert isinstance(count, Symbol)
    machine.state.put(place, pure(machine, "add", (count, Const(1)), raises=False))
    return f"{base}*", (*holes, count.ir)

"""Methods of sglang's handles during capture: the tables that a program brings with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.conditions import adopt, branch
from lmc.frontend.emit.known import concrete
from lmc.frontend.emit.operands import class_name, host_call
from lmc.frontend.emit.raising import checked
from lmc.frontend.handles import branches as own_branches
from lmc.frontend.handles import roles
from lmc.frontend.handles.appending import append, is_appendable_text, wrapped
from lmc.frontend.handles.cores import assign, context_of, copy_core, core_of, refuse, variables
from lmc.frontend.handles.generating import checked_name, generate, known_parts
from lmc.frontend.handles.generating import select as own_select
from lmc.frontend.handles.handles import METHODS, role_turn
from lmc.frontend.handles.language import Language
from lmc.frontend.handles.reading import messages, meta, variable
from lmc.frontend.heap.cells import BranchesCell, GrownCell, HandleCell, ListCell
from lmc.frontend.heap.values import (
    NONE,
    ONE,
    TRUE,
    UNBOUND,
    Abstract,
    Appended,
    Block,
    BoundMethod,
    Const,
    Function,
    Partial,
    Poison,
    Ref,
    RoleTurn,
    Symbol,
    Tuple,
    Unbound,
    Union,
)
from lmc.frontend.language.core import META
from lmc.frontend.language.messages import Several
from lmc.frontend.language.refusals import described
from lmc.frontend.python.iteration import known_items
from lmc.frontend.python.methods import call_method
from lmc.ir.core import Effect
from lmc.ir.dialects.core_ops import TranscriptOp
from lmc.ir.types import ANY, TEXT
from lmc.ir.wording import with_article, with_count
from lmc.sglang import expressions
from lmc.sglang.expressions import Gen, Image, RoleBegin, RoleEnd, Select, Video
from lmc.sglang.meta import TEXTS, meta_info
from lmc.sglang.options import SAMPLING, Sampling, resolve
from lmc.sglang.state import JOIN_MODES, ProgramStateGroup, SglState

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine
    from lmc.frontend.program.function import JittedFunction


def language_with(sampling: Sampling) -> Language:
    """The tables, for programs under ``sampling``."""
    return replace(_LANGUAGE, sampling=sampling)


def _sampling(machine: Machine, handle: Abstract) -> Sampling:
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    return cell.language.sampling


# Appending


def _generate(machine: Machine, handle: Abstract, content: Gen) -> None:
    given = {
        key: known_parts(machine, wrapped(value), f"{key} of gen has to be known now")
        for key, value in content.options.items()
    }
    resolved = checked(machine, resolve, _sampling(machine, handle), given)
    name = _name(machine, wrapped(content.name))
    value = generate(machine, handle, name, resolved.options)
    _forget_texts(machine, handle, name)
    if resolved.count is not None:  # lmc appends none of several; sglang the first
        drawn = machine.cell(value)
        assert isinstance(drawn, ListCell)
        append(machine, handle, drawn.items[0])
    if name is not None and resolved.texts:
        address, core = core_of(machine, handle)
        machine.state.put(address, replace(core, metas=tuple(dict.fromkeys((*core.metas, TEXTS + name)))))
        machine.state.put((address, f"{META}{TEXTS}{name}"), TRUE)


def _forget_texts(machine: Machine, handle: Abstract, name: str | None) -> None:
    address, core = core_of(machine, handle)
    if name is not None and TEXTS + name in core.metas:
        machine.state.put((address, f"{META}{TEXTS}{name}"), UNBOUND)


def _choose(machine: Machine, handle: Abstract, content: Select) -> None:
    temperature = concrete(machine, wrapped(content.temperature))
    if type(temperature) not in (int, float) or temperature != 0:
        refuse(
            machine,
            f"the temperature of select is {described(temperature)}",
            "leave it out: choices are scored, not drawn",
        )
    name = _name(machine, wrapped(content.name))
    own_select(machine, handle, Const(name), wrapped(content.choices), wrapped(content.method))
    _forget_texts(machine, handle, name)


def _name(machine: Machine, given: Abstract) -> str | None:
    found = checked_name(machine, given)
    if found is not None and found.startswith(META):
        refuse(machine, f"the variable {found!r}: names that begin with {META!r} are lmc's own", "take another name")
    return found


def _begin(machine: Machine, handle: Abstract, content: RoleBegin) -> None:
    assert isinstance(handle, Ref)
    roles.begin_role(machine, RoleTurn(handle, content.role))


def _end(machine: Machine, handle: Abstract, content: RoleEnd) -> None:
    assert isinstance(handle, Ref)
    roles.end_role(machine, RoleTurn(handle, content.role))


def _no_media(machine: Machine, handle: Abstract, content: Image | Video) -> None:
    del handle
    what = type(content).__name__.lower()
    source = concrete(machine, wrapped(content.source))
    if isinstance(content, Video):
        frames = concrete(machine, wrapped(content.num_frames))
        if type(frames) is not int or frames < 1:
            refuse(machine, f"num_frames is {described(frames)}", "give a whole number, at least 1")
    refuse(
        machine,
        f"the program appends the {what} {described(source)}, and lmc's targets take text only",
        f"describe the {what} in text, or leave it out",
    )


# Methods of a handle


def _role(role: str) -> Callable[..., Abstract]:
    def method(machine: Machine, handle: Abstract, expr: Abstract = NONE) -> Abstract:
        assert isinstance(handle, Ref)
        if expr is NONE or (isinstance(expr, Const) and expr.value is None):
            return role_turn(machine, handle, role)
        turn = RoleTurn(handle, role)
        roles.begin_role(machine, turn)
        machine.turns.append(turn)
        try:
            append(machine, handle, expr)
        finally:
            machine.turns.pop()
        roles.end_role(machine, turn)
        return NONE

    return method


def _set_variable(machine: Machine, handle: Abstract, name: Abstract, value: Abstract) -> Abstract:
    key = _name(machine, name)
    if key is None:
        refuse(machine, "a variable has no name", 'give one: s.set_var("name", value)')
    assign(machine, handle, key, value, None)
    _forget_texts(machine, handle, key)
    return NONE


def _meta_info(machine: Machine, handle: Abstract, name: Abstract) -> Abstract:
    key = concrete(machine, name)
    address, core = core_of(machine, handle)
    if key in variables(machine, handle) and key not in core.metas:
        refuse(
            machine,
            f"{key!r} has no meta info inside the program",
            "ask for it, sgl.gen(name, return_logprob=True); what was used, the state that run gives knows",
        )
    texts = machine.state.get((address, f"{META}{TEXTS}{key}")) is TRUE
    given = (meta(machine, handle, name), Const(texts))
    return host_call(machine, meta_info, given, effect=Effect.PURE, result_type=ANY)


def _added(machine: Machine, context: Symbol, before: Symbol) -> Symbol:
    (text,) = machine.emit(TranscriptOp, (TEXT,), context=context.ir, since=(before.ir,))
    return Symbol(text, "the text that was appended")


def _scope(machine: Machine, handle: Abstract, name: Abstract) -> Abstract:
    assert isinstance(handle, Ref)
    _check_opened(machine, "var_scope")
    return Block(handle, _enter_scope, _leave_scope, name)


def _check_opened(machine: Machine, name: str) -> None:
    role_turn(machine, Ref(0), name)


def _enter_scope(machine: Machine, block: Block) -> tuple[Abstract, Symbol]:
    return NONE, context_of(machine, block.handle)


def _leave_scope(machine: Machine, block: Block, before: Symbol) -> None:
    _set_variable(machine, block.handle, block.given, _added(machine, context_of(machine, block.handle), before))


def _fork(machine: Machine, handle: Abstract, size: Abstract = ONE, position_ids_offset: Abstract = NONE) -> Abstract:
    _check_offset(machine, position_ids_offset)
    made = own_branches.fork(machine, handle, size)
    cell = machine.cell(made)
    assert isinstance(cell, BranchesCell)
    assert isinstance(made, Ref)
    own = machine.cell(handle)
    assert isinstance(own, HandleCell)
    base = machine.new(replace(own, core=copy_core(machine, handle)))
    machine.state.put(made.address, BranchesCell(cell.handles, handle, base))
    return made


def _check_offset(machine: Machine, offset: Abstract) -> None:
    plain = concrete(machine, offset)
    if plain is not None:
        refuse(
            machine,
            f"position_ids_offset is {described(plain)}",
            "leave it out: positions follow from the text of each branch",
        )


def _copy(machine: Machine, handle: Abstract, position_ids_offset: Abstract = NONE) -> Abstract:
    _check_offset(machine, position_ids_offset)
    _check_opened(machine, "copy")
    assert isinstance(handle, Ref)
    return Block(handle, _enter_copy, _leave_copy, NONE)


def _enter_copy(machine: Machine, block: Block) -> tuple[Abstract, Abstract]:
    group = _fork(machine, block.handle)
    cell = machine.cell(group)
    assert isinstance(cell, BranchesCell)
    return cell.handles[0], group


def _leave_copy(machine: Machine, block: Block, group: Abstract) -> None:
    del block
    _join(machine, group)


def _nothing(machine: Machine, handle: Abstract) -> Abstract:
    del machine, handle
    return NONE


def _returned(machine: Machine, handle: Abstract) -> Abstract:
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    return cell.result


# Branches


def _append_to_all(machine: Machine, group: Abstract, content: Abstract) -> None:
    cell = machine.cell(group)
    assert isinstance(cell, BranchesCell)
    count = len(cell.handles)
    held = machine.cell(content)
    items = held.items if isinstance(held, ListCell) else content.items if isinstance(content, Tuple) else None
    if isinstance(held, GrownCell):
        items = tuple(known_items(machine, content, "it is appended to branches, an item to each"))
    if items is not None:
        if len(items) != count:
            refuse(
                machine,
                f"{with_count(len(items), 'item is', 'items are')} appended to "
                f"{with_count(count, 'branch', 'branches')}",
                "give one item for each branch",
            )
    elif isinstance(content, Function | BoundMethod | Partial) or (
        isinstance(content, Const) and callable(content.value)
    ):
        for index, handle in enumerate(cell.handles):
            append(machine, handle, machine.rules.call(content, [Const(index)], {}))
        return
    elif isinstance(content, Appended) or is_appendable_text(machine, content):
        items = (content,) * count
    elif isinstance(content, Union | Poison | Unbound):
        raise machine.unsupported("`+=` of branches and what differs between the ways before")
    else:
        refuse(
            machine,
            f"{with_article(class_name(machine, content))} is appended to branches",
            "append a text, an expression, a list of those, or a function of the branch's number",
        )
    for handle, item in zip(cell.handles, items or (), strict=True):
        append(machine, handle, item)


def _join(machine: Machine, group: Abstract, mode: Abstract = Const("gather_variable")) -> Abstract:  # noqa: B008
    cell = machine.cell(group)
    assert isinstance(cell, BranchesCell)
    asked = concrete(machine, mode)
    if asked == "gather_variable":
        _gather(machine, cell)
    elif asked == "concate_and_append":
        base = context_of(machine, cell.base)
        for text in [_added(machine, context_of(machine, handle), base) for handle in cell.handles]:
            append(machine, cell.source, text)
    else:
        refuse(
            machine,
            f"the mode of join is {described(asked)}",
            f"give one of {', '.join(map(repr, JOIN_MODES))}",
        )
    return NONE


def _gather(machine: Machine, cell: BranchesCell) -> None:
    known = variables(machine, cell.source)
    if any(isinstance(value, Union) for value in known.values()):
        raise machine.unsupported("joining branches of a state whose variables depend on a condition")
    gathered: dict[str, list[Abstract]] = {}
    for handle in cell.handles:
        for name, value in variables(machine, handle).items():
            if name not in known:
                gathered.setdefault(name, []).append(value)
    for name, values in gathered.items():
        made = machine.new(ListCell(()))
        for value in values:
            _gather_one(machine, cell.source, name, made, value)


def _gather_one(machine: Machine, source: Abstract, name: str, made: Abstract, value: Abstract) -> None:
    """Put a variable of a branch into the list of the state; it may be there on some ways only."""
    if isinstance(value, Union):
        first, second = value.first, value.second

        def one(held: Abstract) -> None:
            _gather_one(machine, source, name, made, held)

        adopt(machine, branch(machine, value.flag, lambda: one(first), lambda: one(second)))
    elif isinstance(value, Poison):
        raise machine.stop(value.cause, value.remedy)
    elif not isinstance(value, Unbound):
        call_method(machine, made, "append", [value], {})
        _set_variable(machine, source, Const(name), made)


# Functions and programs


def _making(function: Callable[..., Any]) -> Callable[..., Abstract]:
    """``function``, which keeps its arguments, of abstract ones."""

    def make(machine: Machine, *args: Abstract, **kwargs: Abstract) -> Abstract:
        if len(args) == 1 and isinstance(args[0], Union | Poison | Unbound):
            return machine.cases(args[0], lambda one: make(machine, one, **kwargs))
        given = [_kept(arg) for arg in args]
        return Appended(checked(machine, function, *given, **{name: _kept(value) for name, value in kwargs.items()}))

    return make


def _kept(value: Abstract) -> Any:
    if isinstance(value, Appended):
        return value.made if not isinstance(value.made, Several) else Several(tuple(map(_part, value.made.parts)))
    return None if isinstance(value, Const) and value.value is None else value


def _part(value: Any) -> Any:
    return value.made if isinstance(value, Appended) else value


def _called(
    machine: Machine, held: JittedFunction, kwargs: Mapping[str, Abstract]
) -> tuple[JittedFunction, Mapping[str, Abstract]]:
    asked = [name for name in SAMPLING if name in kwargs]
    plain = {name: known_parts(machine, kwargs[name], f"{name} has to be known now") for name in asked}
    found, _rest = checked(machine, held.called_with, {**kwargs, **plain})
    return found, {name: value for name, value in kwargs.items() if name not in plain}


def _result(machine: Machine, handle: Abstract, value: Abstract) -> Abstract:
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    assert isinstance(handle, Ref)
    machine.state.put(handle.address, replace(cell, result=value))
    return handle


_MAKERS = (
    "gen",
    "gen_int",
    "gen_string",
    "select",
    "system",
    "user",
    "assistant",
    "system_begin",
    "system_end",
    "user_begin",
    "user_end",
    "assistant_begin",
    "assistant_end",
    "image",
    "video",
    "separate_reasoning",
)
_FUNCTIONS = {getattr(expressions, name): _making(getattr(expressions, name)) for name in _MAKERS}
_LANGUAGE = Language(
    handle=SglState,
    branches=ProgramStateGroup,
    methods=MappingProxyType(
        {
            "text": METHODS["text"],
            "append": METHODS["append"],
            "get": METHODS["get"],
            "meta": METHODS["meta"],
            "get_var": variable,
            "set_var": _set_variable,
            "get_meta_info": _meta_info,
            "var_scope": _scope,
            "fork": _fork,
            "copy": _copy,
            "messages": messages,
            "sync": _nothing,
            "error": _nothing,
            **{role: _role(role) for role in ("system", "user", "assistant")},
        }
    ),
    attributes=MappingProxyType({"ret_value": _returned}),
    branch_methods=MappingProxyType({"join": _join}),
    appended=MappingProxyType(
        {Gen: _generate, Select: _choose, RoleBegin: _begin, RoleEnd: _end, Image: _no_media, Video: _no_media}
    ),
    functions=MappingProxyType(_FUNCTIONS),
    set_item=_set_variable,
    add_to_branches=_append_to_all,
    called=_called,
    result=_result,
)

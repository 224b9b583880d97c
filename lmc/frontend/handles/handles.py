"""What a handle does: its methods, items and attributes, and the functions of lmc's own that make what is appended."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmc.frontend import messages, sampling
from lmc.frontend.control.conditions import adopt, branch
from lmc.frontend.control.join import UNSURE
from lmc.frontend.emit.operands import (
    class_of,
    describe,
    host_call,
    is_scalar,
    is_text,
    operand,
    pure,
    text_parts,
    type_of_value,
)
from lmc.frontend.handles import programs
from lmc.frontend.heap.cells import ROLE_UNKNOWN, BranchesCell, CoreCell, GrownCell, HandleCell, ListCell
from lmc.frontend.heap.values import (
    NONE,
    ONE,
    UNBOUND,
    Abstract,
    Appended,
    BoundMethod,
    Concat,
    Const,
    Poison,
    Raised,
    Ref,
    RoleTurn,
    Symbol,
    Unbound,
    Union,
    same,
)
from lmc.frontend.messages import Generation, Message, Section, Selection, Several
from lmc.frontend.refusals import bad, described, near
from lmc.frontend.sections import Sections, sections_of, with_sections
from lmc.frontend.state import UnknownVariableError
from lmc.ir.choices import checked_branch_count, checked_choice, checked_choices
from lmc.ir.core import Effect, Value
from lmc.ir.ops import SELECT_METHODS, BeginOp, ContextOp, EndOp, ExtendOp, GenOp, SampleOp, SelectOp, TranscriptOp
from lmc.ir.section_ops import SectionsOp
from lmc.ir.types import ANY, CTX, TEXT, JsonType, Type, json_of, list_of
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine

DEFAULT_METHOD = Const("token_length_normalized")
Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]


# The cells of a handle


def is_handle(machine: Machine, value: Abstract) -> bool:
    """Whether ``value`` is a handle, or the branches of one."""
    return isinstance(machine.cell(value), HandleCell | BranchesCell)


def new_handle(machine: Machine, path: str, holes: tuple[Value, ...] = ()) -> Ref:
    """A handle on a context without text."""
    (context,) = machine.emit(ContextOp, (CTX,))
    core = machine.allocate(CoreCell(Symbol(context, "a state")))
    return machine.new(HandleCell(core, path, holes))


def core_of(machine: Machine, handle: Abstract) -> tuple[int, CoreCell]:
    """What handles of one context share, and where it is."""
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    core = machine.state.get(cell.core)
    assert isinstance(core, CoreCell)
    return cell.core, core


def change(machine: Machine, handle: Abstract, **fields: Any) -> None:
    """Put other fields into a core."""
    address, core = core_of(machine, handle)
    machine.state.put(address, dataclasses.replace(core, **fields))


def copy_core(machine: Machine, handle: Abstract) -> int:
    """A core of the same context and variables."""
    address, core = core_of(machine, handle)
    made = machine.allocate(core)
    for name in (*core.names, *(f"@meta:{name}" for name in core.metas)):
        machine.state.put((made, name), machine.state.get((address, name)))
    return made


def allocate(machine: Machine, handle: Abstract, name: str) -> tuple[str, tuple[Value, ...]]:
    """The id of what comes next on the handle's path."""
    cell = machine.cell(handle)
    assert isinstance(cell, HandleCell)
    return machine.allocate_id(cell.path, cell.holes, name)


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


def assign(machine: Machine, handle: Abstract, name: str | None, value: Abstract, meta: Abstract | None) -> None:
    """Set a variable."""
    if name is None:
        return
    address, core = core_of(machine, handle)
    names = core.names if name in core.names else (*core.names, name)
    metas = core.metas
    if meta is not None and name not in metas:
        metas = (*metas, name)
    machine.state.put(address, dataclasses.replace(core, names=names, metas=metas))
    machine.state.put((address, name), value)
    if name in metas:
        machine.state.put((address, f"@meta:{name}"), UNBOUND if meta is None else meta)


# Appending


def append(machine: Machine, handle: Abstract, content: Abstract) -> None:
    """``s += content``."""
    if isinstance(machine.cell(handle), BranchesCell):
        raise machine.unsupported("`+=` of branches")
    if isinstance(content, Union | Poison | Unbound):

        def one_of(one: Abstract) -> Abstract:
            append(machine, handle, one)
            return NONE

        machine.cases(content, one_of)
        return
    if isinstance(content, Appended):
        _append_made(machine, handle, content.made)
        return
    if isinstance(content, Const) and isinstance(content.value, messages.Appendable):
        _append_made(machine, handle, content.value)
        return
    _append_text(machine, handle, content)


def _append_made(machine: Machine, handle: Abstract, made: Any) -> None:
    kind = type(made)
    if kind is Several:
        for part in with_sections(made.parts):
            append(machine, handle, _wrapped(part))
    elif kind is Section:
        append(machine, handle, _wrapped(made.text))
    elif kind is Sections:
        _append_sections(machine, handle, None, made)
    elif kind is Message:
        _append_message(machine, handle, made)
    elif kind is Generation:
        name = None if made.name is None else _wrapped(made.name)
        given = {key: _wrapped(value) for key, value in made.options.items()}
        _gen(machine, handle, *(() if name is None else (name,)), **given)
    elif kind is Selection:
        name = NONE if made.name is None else _wrapped(made.name)
        _select(machine, handle, name, _wrapped(made.choices), _wrapped(made.method))
    else:
        raise machine.unsupported(f"appending {with_article(kind.__name__)}")


def _wrapped(value: Any) -> Abstract:
    if isinstance(value, Abstract):
        return value
    return Appended(value) if isinstance(value, messages.Appendable) else Const(value)


def is_appendable_text(machine: Machine, value: Abstract) -> bool:
    """Whether ``value`` is text, or may turn out to be."""
    kind = class_of(machine, value)
    if kind is not None:
        return issubclass(kind, str)
    if isinstance(value, Symbol) and isinstance(value.type, JsonType):
        schema = machine.graph.json_types.schema(value.type.schema)
        return schema is None or schema.may_be_text
    return isinstance(value, Symbol) and value.type == ANY


def as_text(machine: Machine, value: Abstract) -> Abstract:
    """A value that may be text as text."""
    return value if is_text(machine, value) else pure(machine, "text", (value,))


def _no_text(machine: Machine, content: Abstract, where: str) -> None:
    kind = class_of(machine, content)
    if is_handle(machine, content):
        name, remedy = "State", "append a text: s.text(), or the value of a generation"
    elif kind is type(None):
        name = "NoneType"
        remedy = "append what the call returns only if it returns a text; s.gen() and s.user() append by themselves"
    else:
        name = "value" if kind is None else kind.__name__
        remedy = "make it a text: f'{value}' or str(value)"
    refuse(machine, f"{where} {with_article(name)}, text is needed", remedy)


def refuse(machine: Machine, cause: str, remedy: str, kind: Any = None) -> None:
    """Raise a ``CaptureError`` of lmc's own at this line of the program."""
    error = bad(cause, remedy)
    if kind is not None:
        error = kind(error.cause, remedy=error.remedy)
    error.location = machine.graph.location
    machine.throw(Raised(type(error), made=error))


def _append_text(machine: Machine, handle: Abstract, content: Abstract) -> None:
    if not is_appendable_text(machine, content):
        _no_text(machine, content, "the program appends")
    if isinstance(content, Const) and content.value == "":
        return
    text = as_text(machine, content)
    _address, core = core_of(machine, handle)
    (context,) = machine.emit(ExtendOp, (CTX,), context=core.context.ir, role=None, text=text_parts(machine, text))
    change(machine, handle, context=Symbol(context, "a state"))
    _appended(machine, handle, [content])


def _append_sections(machine: Machine, handle: Abstract, role: str | None, sections: Sections) -> None:
    _address, core = core_of(machine, handle)
    if role is not None:
        open_role(machine, handle, role)
        _address, core = core_of(machine, handle)
    texts = [as_text(machine, _wrapped(text)) for text in sections.texts]
    found = [text_parts(machine, text) for text in texts]
    (context,) = machine.emit(
        SectionsOp,
        (CTX,),
        context=core.context.ir,
        role=role,
        text=tuple(part for parts in found for part in parts),
        lengths=tuple(map(len, found)),
        kinds=tuple(sections.kinds),
    )
    change(machine, handle, context=Symbol(context, "a state"))
    if role is None:
        _appended(machine, handle, texts)


def _appended(machine: Machine, handle: Abstract, texts: Sequence[Abstract]) -> None:
    """Note that bare text was appended. Text that only a run knows may be empty, so only known text counts."""
    _address, core = core_of(machine, handle)
    known = any(_is_certainly_filled(text) for text in texts)
    fields: dict[str, Any] = {}
    if known:
        fields["answer"] = None
    elif core.answer is not None:
        fields["answer"] = UNSURE
    if not core.chat:
        fields["bare"] = core.bare or (known and core.chat is False)
        fields["unsure"] = True
    change(machine, handle, **fields)


def _is_certainly_filled(text: Abstract) -> bool:
    if isinstance(text, Const):
        return bool(text.value)
    return isinstance(text, Concat) and any(isinstance(part, str) and part for part in text.parts)


def _append_message(machine: Machine, handle: Abstract, message: Message) -> None:
    content = message.content
    inner = content.made if isinstance(content, Appended) else content
    sections = sections_of(inner)
    if sections is not None:
        _append_sections(machine, handle, message.role, sections)
        return
    if type(inner) in (Several, Generation, Selection):
        assert isinstance(handle, Ref)
        turn = RoleTurn(handle, message.role)
        begin_role(machine, turn)
        append(machine, handle, _wrapped(inner))
        end_role(machine, turn)
        return
    value = _wrapped(content)
    if isinstance(value, Union | Poison | Unbound):

        def one_of(one: Abstract) -> Abstract:
            _append_message(machine, handle, Message(message.role, one))
            return NONE

        machine.cases(value, one_of)
        return
    if not is_appendable_text(machine, value):
        _no_text(machine, value, f"{with_article(message.role)} message holds")
    text = as_text(machine, value)
    _address, core = core_of(machine, handle)
    answer = core.answer
    open_role(machine, handle, message.role)
    _address, core = core_of(machine, handle)
    if message.role == "assistant" and answer is not None:
        _extend_or_end(machine, handle, text, answer)
        return
    _extend(machine, handle, message.role, text)


def _extend(machine: Machine, handle: Abstract, role: str, text: Abstract) -> None:
    _address, core = core_of(machine, handle)
    (context,) = machine.emit(ExtendOp, (CTX,), context=core.context.ir, role=role, text=text_parts(machine, text))
    change(machine, handle, context=Symbol(context, "a state"))


def _end(machine: Machine, handle: Abstract) -> None:
    _address, core = core_of(machine, handle)
    (context,) = machine.emit(EndOp, (CTX,), context=core.context.ir)
    change(machine, handle, context=Symbol(context, "a state"))


def _extend_or_end(machine: Machine, handle: Abstract, text: Abstract, answer: Abstract) -> None:
    """An assistant message behind an answer: the turn of that answer, where it repeats it."""
    if same(text, answer):
        _end(machine, handle)
        return
    if not is_scalar(answer):
        raise machine.stop(
            "an assistant message follows an answer, and only a run knows whether it repeats that answer",
            "write the generation into the message: s += lmc.assistant(lmc.gen(…))",
        )
    said = pure(machine, "str", (answer,))
    flag = pure(machine, "eq", tuple(pure(machine, "str.strip", (part,)) for part in (text, said)))
    adopt(
        machine,
        branch(machine, flag, lambda: _end(machine, handle), lambda: _extend(machine, handle, "assistant", text)),
    )


def open_role(machine: Machine, handle: Abstract, role: str) -> None:
    """A turn of ``role`` begins; refused behind bare text."""
    _address, core = core_of(machine, handle)
    if core.bare:
        refuse(
            machine,
            f"{with_article(role)} message can't follow bare text",
            "put the text into a role message (lmc.system, lmc.user), or use no roles at all",
        )
    if core.unsure and not core.chat and machine.protected:
        raise machine.unsupported("a role message in a `try` behind text that may be empty")
    change(machine, handle, chat=True, answer=None, role=None)


def begin_role(machine: Machine, turn: RoleTurn) -> None:
    """``with s.user():`` opens."""
    open_role(machine, turn.handle, turn.role)
    _address, core = core_of(machine, turn.handle)
    (context,) = machine.emit(BeginOp, (CTX,), context=core.context.ir, role=turn.role)
    change(machine, turn.handle, context=Symbol(context, "a state"), role=turn.role)


def end_role(machine: Machine, turn: RoleTurn) -> None:
    """The turn closes."""
    change(machine, turn.handle, answer=None, role=None)
    _end(machine, turn.handle)


# Generating


def _name(machine: Machine, given: Abstract) -> str | None:
    plain = machine.concrete(given, "the name of a variable is needed now")
    if plain is not None and (type(plain) is not str or not plain):
        refuse(
            machine,
            f"the name {described(plain)}",
            "name a variable with a text that is not empty, or leave the name out",
        )
    return plain


def _concrete_deep(machine: Machine, value: Abstract, use: str) -> Any:
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return [machine.concrete(item, use) for item in cell.items]
    if isinstance(cell, GrownCell):
        count = machine.concrete(machine.length(cell.value), use)
        return [
            machine.concrete(pure(machine, "getitem", (cell.value, Const(index)), raises=False), use)
            for index in range(count)
        ]
    plain = machine.plain(value)
    return plain[0] if plain is not None else machine.concrete(value, use)


def _gen(machine: Machine, handle: Abstract, name: Abstract = NONE, **given: Abstract) -> Abstract:
    checked_name = _name(machine, name)
    plain = {key: _concrete_deep(machine, value, f"{key} of gen has to be known now") for key, value in given.items()}
    options, count = machine.checked(sampling.options, plain, lambda value, _use: value)
    op_id, occurrences = allocate(machine, handle, checked_name or "gen")
    spec = options.constraint
    kind: Type = options.type
    if spec is not None and spec.schema is not None and isinstance(spec.type, JsonType):
        kind = json_of(machine.graph.json_types.name(spec.schema))
    _address, core = core_of(machine, handle)
    fields: dict[str, Any] = {
        "context": core.context.ir,
        "id": op_id,
        "occurrences": occurrences,
        "name": checked_name,
        "constraint": machine.graph.constraint(spec),
        **options.attributes,
    }
    more = (ANY,) if options.logprobs is not None else ()
    origin = "a generation" if checked_name is None else f"the generation {checked_name!r}"
    wish = checked_name if checked_name is not None and checked_name.isidentifier() and checked_name.isascii() else None
    if count is not None:
        results = machine.emit(SampleOp, (list_of(kind), *more), names=(wish,), n=count, **fields)
        drawn = _converted(machine, Symbol(results[0], origin), op_id, occurrences, options)
        items = [pure(machine, "getitem", (drawn, Const(index)), raises=False) for index in range(count)]
        value: Abstract = machine.new(ListCell(tuple(items)))
        meta = Symbol(results[1], origin) if more else None
    else:
        results = machine.emit(GenOp, (CTX, kind, *more), names=(None, wish), **fields)
        change(machine, handle, context=Symbol(results[0], "a state"))
        domain = tuple(spec.schema.choices) if False else None
        value = _converted(machine, Symbol(results[1], origin, domain=domain), op_id, occurrences, options)
        meta = Symbol(results[2], origin) if more else None
        answered(machine, handle, value)
    assign(machine, handle, checked_name, value, meta)
    return value


def _converted(
    machine: Machine, value: Symbol, op_id: str, occurrences: tuple[Value, ...], options: sampling.GenerationOptions
) -> Symbol:
    """What the class of a schema makes of the text, where that runs code of the user's."""
    schema = None if options.constraint is None else options.constraint.schema
    if schema is None or not schema.runs_code:
        return value
    if occurrences:
        raise machine.stop(
            f"{schema.name} is made of a generation whose number depends on a condition",
            "give each way's generations names of their own",
        )
    conversion = machine.graph.json_types.conversion(schema)
    return host_call(machine, conversion, (value, Const(op_id)), effect=Effect.WRITES, result_type=ANY)


def answered(machine: Machine, handle: Abstract, value: Abstract) -> None:
    """Note that ``value`` was generated into this context."""
    _address, core = core_of(machine, handle)
    if core.chat is None or core.role == ROLE_UNKNOWN:
        answer: Abstract | None = UNSURE
    else:
        answer = value if core.chat and core.role in (None, "assistant") else None
    change(machine, handle, bare=core.bare or core.chat is False, answer=answer)


def _select(
    machine: Machine,
    handle: Abstract,
    name: Abstract,
    choices: Abstract,
    method: Abstract = DEFAULT_METHOD,
) -> Abstract:
    checked_name = _name(machine, name)
    plain_method = machine.concrete(method, "the method of select has to be known now")
    if plain_method not in SELECT_METHODS:
        refuse(machine, f"unknown select method {described(plain_method)}", near(str(plain_method), SELECT_METHODS))
    found, domain = _choices(machine, choices)
    op_id, occurrences = allocate(machine, handle, checked_name or "select")
    _address, core = core_of(machine, handle)
    wish = checked_name if checked_name is not None and checked_name.isidentifier() and checked_name.isascii() else None
    results = machine.emit(
        SelectOp,
        (CTX, TEXT, ANY),
        names=(None, wish),
        context=core.context.ir,
        choices=found,
        id=op_id,
        occurrences=occurrences,
        name=checked_name,
        method=plain_method,
    )
    origin = "a choice" if checked_name is None else f"the choice {checked_name!r}"
    value = Symbol(results[1], origin, domain=domain)
    change(machine, handle, context=Symbol(results[0], "a state"))
    answered(machine, handle, value)
    assign(machine, handle, checked_name, value, Symbol(results[2], origin))
    return value


def _choices(machine: Machine, given: Abstract) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """The choices of a select as an op takes them, and which texts they are where that is known."""
    plain = machine.plain(given)
    if plain is not None:
        if type(plain[0]) not in (list, tuple):
            refuse(machine, f"choices is {described(plain[0])}", "give a list of texts")
        found = machine.checked(checked_choices, plain[0], None)
        return tuple(found), tuple(found)
    cell = machine.cell(given)
    items = cell.items if isinstance(cell, ListCell) else getattr(given, "items", None)
    if items is not None:
        return tuple(_choice(machine, item) for item in items), None
    if type_of_value(machine, given) == list_of(TEXT):
        return (operand(machine, given).ir,), None
    if isinstance(given, Symbol | Ref):
        return (pure(machine, "choices", (given,)).ir,), None
    refuse(machine, f"choices is {describe(machine, given)}", "give a list of texts")
    return (), None


def _choice(machine: Machine, item: Abstract) -> Any:
    if isinstance(item, Const):
        return machine.checked(checked_choice, item.value, None)
    if is_text(machine, item):
        return operand(machine, item).ir
    return pure(machine, "choice", (item,)).ir


# Branches


def _fork(machine: Machine, handle: Abstract, n: Abstract = ONE) -> Abstract:
    count = machine.concrete(n, "how many branches a fork has must be known now")
    checked = machine.checked(checked_branch_count, count, None)
    path, holes = allocate(machine, handle, "fork")
    branches = [
        machine.new(HandleCell(copy_core(machine, handle), f"{path}/{index}", holes)) for index in range(checked)
    ]
    return machine.new(BranchesCell(tuple(branches)))


def _copy(machine: Machine, handle: Abstract) -> Abstract:
    path, holes = allocate(machine, handle, "copy")
    return machine.new(HandleCell(copy_core(machine, handle), path, holes))


# Reading


def variable(machine: Machine, handle: Abstract, key: Abstract) -> Abstract:
    """``s["name"]``."""
    name = machine.concrete(key, "the name of a variable is needed now")
    address, core = core_of(machine, handle)
    value = machine.state.get((address, name)) if type(name) is str and name in core.names else UNBOUND
    if isinstance(value, Unbound):
        _unknown_variable(machine, handle, name)
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        there = value.first

        def missing() -> Abstract:
            _unknown_variable(machine, handle, name)
            return NONE

        return machine.choose(value.flag, lambda: there, missing)
    assert isinstance(value, Abstract)
    if isinstance(value, Poison):
        raise machine.stop(value.cause, value.remedy)
    return value


def _unknown_variable(machine: Machine, handle: Abstract, name: Any) -> None:
    refuse(
        machine,
        f"the state has no variable {name!r}",
        near(str(name), list(variables(machine, handle))),
        UnknownVariableError,
    )


def holds(machine: Machine, handle: Abstract, key: Abstract) -> Abstract:
    """``"name" in s``."""
    name = machine.concrete(key, "the name of a variable is needed now")
    value = variables(machine, handle).get(name, UNBOUND)
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        return value.flag
    return Const(not isinstance(value, Unbound))


def _get(machine: Machine, handle: Abstract, key: Abstract, default: Abstract = NONE) -> Abstract:
    name = machine.concrete(key, "the name of a variable is needed now")
    value = variables(machine, handle).get(name, UNBOUND)
    if isinstance(value, Unbound):
        return default
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        there = value.first
        return machine.choose(value.flag, lambda: there, lambda: default)
    return value


def _meta(machine: Machine, handle: Abstract, key: Abstract) -> Abstract:
    name = machine.concrete(key, "the name of a variable is needed now")
    address, core = core_of(machine, handle)
    if name not in variables(machine, handle):
        _unknown_variable(machine, handle, name)
    value = machine.state.get((address, f"@meta:{name}")) if name in core.metas else UNBOUND
    if isinstance(value, Unbound):
        refuse(machine, f"{name!r} has no meta data", "ask for it: s.gen(name, logprobs=…)")
    if not isinstance(value, Symbol):
        raise machine.unsupported("meta data that only some ways have")
    return value


def _text(machine: Machine, handle: Abstract) -> Abstract:
    _address, core = core_of(machine, handle)
    (result,) = machine.emit(TranscriptOp, (TEXT,), context=core.context.ir)
    return Symbol(result, "the text of the state")


def _role(role: str) -> Callable[..., Abstract]:
    def method(machine: Machine, handle: Abstract, *content: Abstract) -> Abstract:
        if not content:
            assert isinstance(handle, Ref)
            return RoleTurn(handle, role)
        append(machine, handle, Appended(Message(role, content[0])))
        return NONE

    return method


def _append_method(machine: Machine, handle: Abstract, content: Abstract) -> Abstract:
    append(machine, handle, content)
    return NONE


_METHODS: Mapping[str, Callable[..., Abstract]] = {
    "gen": _gen,
    "select": _select,
    "fork": _fork,
    "copy": _copy,
    "get": _get,
    "meta": _meta,
    "text": _text,
    "append": _append_method,
    **{role: _role(role) for role in ("system", "user", "assistant")},
}


def call_method(machine: Machine, receiver: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract | None:
    """A method of a handle; None for other receivers."""
    cell = machine.cell(receiver)
    if isinstance(cell, HandleCell):
        handler = _METHODS.get(name)
        if handler is None:
            raise machine.unsupported(f"s.{name}()")
        return handler(machine, receiver, *args, **kwargs)
    if isinstance(cell, BranchesCell):
        raise machine.unsupported(f"{name}() of branches")
    return None


def attribute_of(machine: Machine, owner: Abstract, name: str) -> Abstract | None:
    """An attribute of a handle; None for other owners."""
    cell = machine.cell(owner)
    if isinstance(cell, HandleCell):
        if name in _METHODS:
            return BoundMethod(name, owner)
        raise machine.unsupported(f"s.{name}")
    return None


def item_of(machine: Machine, owner: Abstract, key: Abstract) -> Abstract | None:
    """``s["name"]``, ``branches[0]``, ``branches["name"]``; None for other owners."""
    cell = machine.cell(owner)
    if isinstance(cell, HandleCell):
        return variable(machine, owner, key)
    if isinstance(cell, BranchesCell):
        plain = machine.plain(key)
        found = plain[0] if plain is not None else machine.concrete(key, "which branch this is must be known now")
        if type(found) is str:
            return machine.new(ListCell(tuple(variable(machine, each, Const(found)) for each in cell.handles)))
        if type(found) is slice:
            return machine.new(ListCell(cell.handles[found]))
        if type(found) is not int:
            refuse(machine, f"branches[{found!r}]", "index branches by number, or by the name of a variable")
        if not -len(cell.handles) <= found < len(cell.handles):
            machine.raise_new(IndexError, f"there are {len(cell.handles)} branches, none at {found}")
        return cell.handles[found]
    return None


def set_item_of(machine: Machine, owner: Abstract, key: Abstract, value: Abstract) -> bool:
    """``branches[i] += …`` puts back the branch that it took. Whether ``owner`` are branches."""
    cell = machine.cell(owner)
    if isinstance(cell, HandleCell):
        raise machine.unsupported("setting a variable of a state")
    if not isinstance(cell, BranchesCell):
        return False
    index = machine.concrete(key, "which branch this is must be known now")
    if not same(cell.handles[index], value):
        refuse(machine, "a branch can't be replaced", "change the branch itself: branches[i] += …")
    return True


def contains_of(machine: Machine, container: Abstract, item: Abstract) -> Abstract | None:
    """``"name" in s``; None for other containers."""
    return holds(machine, container, item) if isinstance(machine.cell(container), HandleCell) else None


# Functions of lmc's own


def _message(role: str) -> Callable[..., Abstract]:
    def make(machine: Machine, *content: Abstract) -> Abstract:
        if not content:
            machine.checked(getattr(messages, role))
        return _new_message(machine, role, content[0])

    return make


def _new_message(machine: Machine, role: str, content: Abstract) -> Abstract:
    if isinstance(content, Union | Poison | Unbound):
        return machine.cases(content, lambda one: _new_message(machine, role, one))
    inner = content.made if isinstance(content, Appended) else None
    for part in inner.parts if isinstance(inner, Several) else (content,):
        made = part.made if isinstance(part, Appended) else part
        if type(made) is Message:
            refuse(machine, f"{with_article(role)} message holds another message", "append them one after the other")
        if type(made) in (Generation, Selection, Section):
            continue
        if not is_appendable_text(machine, _wrapped(part)):
            _no_text(machine, _wrapped(part), f"{with_article(role)} message holds")
    return Appended(Message(role, content))


def _any_message(machine: Machine, role: Abstract, content: Abstract) -> Abstract:
    plain = machine.concrete(role, "the role of a message has to be known now")
    machine.checked(messages.message, plain, "x")
    return _new_message(machine, plain, content)


def _new_gen(machine: Machine, name: Abstract = NONE, **options: Abstract) -> Abstract:
    return Appended(Generation(_name(machine, name), options))


def _new_select(machine: Machine, name: Abstract, choices: Abstract, method: Abstract = DEFAULT_METHOD) -> Abstract:
    return Appended(Selection(_name(machine, name), choices, method))  # type: ignore[arg-type] - values are abstract


_FUNCTIONS: Mapping[Any, Callable[..., Abstract]] = {
    messages.system: _message("system"),
    messages.user: _message("user"),
    messages.assistant: _message("assistant"),
    messages.message: _any_message,
    messages.gen: _new_gen,
    messages.select: _new_select,
}


def call_function(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> Abstract | None:
    """A program, or a function of lmc's own; None for others."""
    handler = _FUNCTIONS.get(held) if type(held).__hash__ is not None and callable(held) else None
    if handler is not None:
        return handler(machine, *args, **kwargs)
    return programs.call(machine, held, args, kwargs)


def append_together(machine: Machine, left: Abstract, right: Abstract) -> Abstract | None:
    """``+`` of what is appended; None where neither is anything of the kind."""
    if not isinstance(left, Appended) and not isinstance(right, Appended):
        return None
    parts: list[Any] = []
    for value in (left, right):
        made = value.made if isinstance(value, Appended) else value
        parts += made.parts if isinstance(made, Several) else (value,)
    del machine
    return Appended(Several(tuple(parts)))

"""``s.gen`` and ``s.select``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.control.join import UNSURE
from lmc.frontend.emit.known import concrete, length_of
from lmc.frontend.emit.operands import class_of, describe, host_call, is_text, operand, pure, type_of_value
from lmc.frontend.emit.raising import checked
from lmc.frontend.handles.cores import allocate, assign, change, context_of, core_of, named, refuse
from lmc.frontend.heap.cells import ROLE_UNKNOWN, GrownCell, ListCell
from lmc.frontend.heap.values import NONE, Abstract, Const, Ref, Symbol
from lmc.frontend.language import sampling
from lmc.frontend.language.refusals import described, near
from lmc.ir.builtins.checks import CHOICE_REMEDY, checked_choice, checked_choices
from lmc.ir.core import Effect, Value
from lmc.ir.dialects.core_ops import SELECT_METHODS, GenOp, SampleOp, SelectOp
from lmc.ir.errors import CaptureError
from lmc.ir.types import ANY, CTX, TEXT, JsonType, Type, json_of, list_of
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def checked_name(machine: Machine, given: Abstract) -> str | None:
    """The name of a variable, or None. Raises what a wrong one raises."""
    plain = concrete(machine, given, "the name of a variable is needed now")
    if plain is not None and (type(plain) is not str or not plain):
        refuse(
            machine,
            f"the name {described(plain)}",
            "name a variable with a text that is not empty, or leave the name out",
        )
    return plain


def known_parts(machine: Machine, value: Abstract, use: str) -> Any:
    """``value``, and what is in it where it is a list, as plain values. Ends the capture where they are not known."""
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return [concrete(machine, item, use) for item in cell.items]
    if isinstance(cell, GrownCell):
        count = concrete(machine, length_of(machine, cell.value), use)
        return [
            concrete(machine, pure(machine, "getitem", (cell.value, Const(index)), raises=False), use)
            for index in range(count)
        ]
    plain = machine.plain(value)
    return plain[0] if plain is not None else concrete(machine, value, use)


@named
def gen(machine: Machine, handle: Abstract, name: Abstract = NONE, **given: Abstract) -> Abstract:
    """``s.gen("name", …)``."""
    plain_name = checked_name(machine, name)
    plain: dict[str, Any] = {}
    definition: tuple[Symbol, str] | None = None
    for key, value in given.items():
        found = _option(machine, key, value)
        if isinstance(found, Symbol):
            definition, found = (found, key), EXAMPLES[key]
        plain[key] = found
    return generate(machine, handle, plain_name, plain, definition)


EXAMPLES: Mapping[str, Any] = {"choices": ["a"], "regex": "a", "grammar": 'start: "a"'}
"""Options that only a run may know, with what stands for them in the checks of all options."""


def _option(machine: Machine, key: str, value: Abstract) -> Any:
    """An option as a plain value; the definition of a constraint as a text of the run where it is not known."""

    def known() -> Any:
        return known_parts(machine, value, f"{key} of gen has to be known now")

    if key not in EXAMPLES:
        return known()
    return machine.attempt(known, lambda: pure(machine, "definition", (Const(key), value), gives=TEXT), CaptureBreak)


def generate(
    machine: Machine,
    handle: Abstract,
    plain_name: str | None,
    plain: Mapping[str, Any],
    definition: tuple[Symbol, str] | None = None,
) -> Abstract:
    """A generation whose options are known, except the ``definition`` of a constraint of a kind."""
    options, count = checked(machine, sampling.options, plain)
    op_id, occurrences = allocate(machine, handle, plain_name or "gen")
    spec = options.constraint
    kind: Type = options.type
    if spec is not None and spec.schema is not None and isinstance(spec.type, JsonType):
        kind = json_of(machine.graph.json_types.name(spec.schema))
    fields: dict[str, Any] = {
        "context": context_of(machine, handle).ir,
        "id": op_id,
        "occurrences": occurrences,
        "name": plain_name,
        **({"constraint": machine.graph.constraint(spec)} if definition is None else _defined(*definition)),
        **options.attributes,
    }
    more = (ANY,) if options.logprobs is not None else ()
    origin = "a generation" if plain_name is None else f"the generation {plain_name!r}"
    wish = plain_name if plain_name is not None and plain_name.isidentifier() and plain_name.isascii() else None
    if count is not None:
        results = machine.emit(SampleOp, (list_of(kind), *more), names=(wish,), n=count, **fields)
        drawn = _converted(machine, Symbol(results[0], origin), op_id, occurrences, options)
        items = [pure(machine, "getitem", (drawn, Const(index)), raises=False) for index in range(count)]
        value: Abstract = machine.new(ListCell(tuple(items)))
        meta = Symbol(results[1], origin) if more else None
    else:
        results = machine.emit(GenOp, (CTX, kind, *more), names=(None, wish), **fields)
        value = _converted(machine, Symbol(results[1], origin), op_id, occurrences, options)
        meta = Symbol(results[2], origin) if more else None
        answered(machine, handle, value, results[0])
    assign(machine, handle, plain_name, value, meta)
    return value


def _defined(text: Symbol, kind: str) -> dict[str, Any]:
    return {"definition": (text.ir,), "definition_kind": kind}


def _converted(
    machine: Machine, value: Symbol, op_id: str, occurrences: tuple[Value, ...], options: sampling.GenerationOptions
) -> Symbol:
    """Return what the class of a schema makes of the text, where that runs code of the user's."""
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


def answered(machine: Machine, handle: Abstract, value: Abstract, context: Value) -> None:
    """Note that ``value`` was generated into a handle, whose context is ``context`` from here on."""
    _address, core = core_of(machine, handle)
    if core.chat is None or core.role == ROLE_UNKNOWN:
        answer: Abstract | None = UNSURE
    else:
        answer = value if core.chat and core.role in (None, "assistant") else None
    bare, unsure = core.bare or core.chat is False, core.unsure or core.chat is None
    change(machine, handle, context=Symbol(context, "a state"), bare=bare, unsure=unsure, answer=answer)


@named
def select(
    machine: Machine,
    handle: Abstract,
    name: Abstract,
    choices: Abstract,
    method: Abstract = NONE,
) -> Abstract:
    """``s.select("name", choices)``."""
    plain_name = checked_name(machine, name)
    plain_method = concrete(machine, method, "the method of select has to be known now")
    if plain_method is not None and plain_method not in SELECT_METHODS:
        refuse(machine, f"unknown select method {described(plain_method)}", near(str(plain_method), SELECT_METHODS))
    found, domain = _choices(machine, choices)
    op_id, occurrences = allocate(machine, handle, plain_name or "select")
    wish = plain_name if plain_name is not None and plain_name.isidentifier() and plain_name.isascii() else None
    results = machine.emit(
        SelectOp,
        (CTX, TEXT, ANY),
        names=(None, wish),
        context=context_of(machine, handle).ir,
        choices=found,
        id=op_id,
        occurrences=occurrences,
        name=plain_name,
        method=plain_method,
    )
    origin = "a choice" if plain_name is None else f"the choice {plain_name!r}"
    value = Symbol(results[1], origin, domain=domain)
    answered(machine, handle, value, results[0])
    assign(machine, handle, plain_name, value, Symbol(results[2], origin))
    return value


def _choices(machine: Machine, given: Abstract) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """The choices of a select as an op takes them, and which texts they are where that is known."""
    plain = machine.plain(given)
    if plain is not None:
        if type(plain[0]) not in (list, tuple):
            refuse(machine, f"choices is {described(plain[0])}", "give a list of texts")
        found = checked(machine, checked_choices, plain[0], None)
        return tuple(found), tuple(found)
    cell = machine.cell(given)
    items = cell.items if isinstance(cell, ListCell) else getattr(given, "items", None)
    if items is not None:
        return tuple(_choice(machine, item) for item in items), None
    if type_of_value(machine, given) == list_of(TEXT):
        return (operand(machine, given).ir,), None
    if isinstance(given, Symbol | Ref):
        texts = pure(machine, "choices", (given,)).ir
        kind = class_of(machine, given)
        if kind is not None and kind not in (list, tuple):
            _surely_refused(machine, texts, f"choices is {with_article(kind.__name__)}", "give a list of texts")
        return (texts,), None
    refuse(machine, f"choices is {describe(machine, given)}", "give a list of texts")
    return (), None


def _choice(machine: Machine, item: Abstract) -> Any:
    if isinstance(item, Const):
        return checked(machine, checked_choice, item.value, None)
    if is_text(machine, item):
        return operand(machine, item).ir
    text = pure(machine, "choice", (item,)).ir
    kind = class_of(machine, item)
    if kind is not None and not issubclass(kind, str):
        _surely_refused(machine, text, f"a choice is no text: {with_article(kind.__name__)}", CHOICE_REMEDY)
    return text


def _surely_refused(machine: Machine, value: Value, cause: str, remedy: str) -> None:
    """The op that gives ``value`` raises in every run; what it is about, only that knows."""
    machine.note_refused(value, CaptureError(cause, remedy=remedy, location=machine.graph.location))

"""Abstract values as operands of ops, and ops as abstract values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lmc.frontend.heap.cells import (
    Cell,
    DictCell,
    GrownCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    ObjectCell,
    PoisonCell,
    SetCell,
)
from lmc.frontend.heap.expressions import Expression
from lmc.frontend.heap.sizes import CAUSE as SIZE_CAUSE
from lmc.frontend.heap.sizes import REMEDY as SIZE_REMEDY
from lmc.frontend.heap.sizes import is_too_large
from lmc.frontend.heap.values import (
    SCALARS,
    Abstract,
    Appended,
    Concat,
    Const,
    Domain,
    NumberRange,
    Poison,
    Raised,
    Ref,
    Slice,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
    alternatives,
    is_literal,
)
from lmc.frontend.machine.budget import MAX_DOMAIN, MAX_TEXT_PARTS
from lmc.frontend.machine.raises import Classes
from lmc.frontend.schemas.schemas import JsonSchema
from lmc.frontend.source.nondeterminism import CAUSE, REMEDY, is_disordered
from lmc.frontend.source.pure_types import is_fixed, is_harmless_type, is_standard_module
from lmc.frontend.tools.tools import Tool
from lmc.ir.builtins import builtins
from lmc.ir.builtins.builtins import PureBuiltin
from lmc.ir.core import Effect, Value
from lmc.ir.dialects.core_ops import ConcatOp, HostCallOp, PyCallOp
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, JsonType, ListType, Type, list_of, type_of
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

PLAIN_TYPES = frozenset({TEXT, INT, FLOAT, BOOL, NONE})
_BUILDERS = frozenset({"list", "tuple", "dict"})
"""Builtins that hold their arguments: of a container of the program's own that is a copy."""
_NOT_LOOKING = frozenset({"is", "is_not", "tuple", "list", "dict", "bound", "choose", "list.replaced", "list.with"})
"""Builtins that call no method of their arguments."""
_LOOKING_AT_CONTAINERS = frozenset(
    {
        "len",
        "bool",
        "getitem",
        "slice",
        "list_from",
        "starred_from",
        "tuple_from",
        "enumerate",
        "zip",
        "reversed",
        "iter",
        "unpack_starred",
    }
    | {name for name in builtins.names() if name.startswith(("unpack", "list.deleted", "list.popped"))}
)
"""Builtins that call methods of a container, and none of its items."""
_PYTHON = {TEXT: str, INT: int, FLOAT: float, BOOL: bool, NONE: type(None)}


@dataclass(slots=True)
class Operand:
    """An argument of an op: a literal or an IR value, its type, and how it follows from the arguments.

    ``expression`` is an ``Expression`` or a literal; ``follows`` says whether there is one. ``foreign`` is that of
    ``Symbol``.
    """

    ir: Any
    type: Type
    follows: bool
    expression: Any = None
    foreign: bool = False
    origin: str | None = None
    local: bool = False
    kind: type | None = None

    @property
    def is_list(self) -> bool:
        """Return whether it is certainly a container of Python's own."""
        return isinstance(self.type, ListType) or self.kind in (list, tuple, dict)

    @property
    def holds_scalars(self) -> bool:
        """Return whether it is certainly a text, a number or a list of them."""
        kind = self.type.element if isinstance(self.type, ListType) else self.type
        return kind in PLAIN_TYPES or (self.kind is not None and is_harmless_type(self.kind))


def operand(machine: Machine, value: Abstract) -> Operand:
    """``value`` as an argument of a call, by value. Ends the capture for a value that can't be in the graph."""
    if isinstance(value, Symbol):
        return Operand(
            value.ir,
            value.type,
            value.expression is not None,
            value.expression,
            value.foreign,
            value.origin,
            value.local,
            value.kind,
        )
    if isinstance(value, Const):
        return _constant(machine, value.value)
    if isinstance(value, Concat):
        return operand(machine, text_symbol(machine, value))
    if isinstance(value, Tuple):
        if value.kind is not tuple:
            return operand(machine, construct(machine, value))
        return operand(machine, pure(machine, "tuple", value.items))
    if isinstance(value, Ref):
        return _cell(machine, value)
    if isinstance(value, Raised):
        return operand(machine, exception(machine, value))
    if isinstance(value, Union) and all(isinstance(each, Ref) or is_value(each) for each in alternatives(value)):
        return operand(machine, machine.cases(value, lambda one: _phi_input(machine, one)))
    if isinstance(value, Slice):
        raise machine.stop("a slice object is handed on", "slice the text or the list itself: x[a:b]")
    if isinstance(value, NumberRange):
        raise machine.stop(f"{describe(machine, value)} is used as a value", "make a list of it: list(range(n))")
    if isinstance(value, Poison):
        raise machine.stop(value.cause, value.remedy)
    raise machine.stop(f"{describe(machine, value)} can't be part of the graph", "take what is needed out of it before")


def is_value(value: Abstract) -> bool:
    """Return whether ``value`` can be one value of the run: nothing that the program could change is in it."""
    if isinstance(value, Const):
        return value.is_literal
    if isinstance(value, Tuple):
        return value.kind is tuple and all(map(is_value, value.items))
    if isinstance(value, Union):
        return is_value(value.first) and is_value(value.second)
    return isinstance(value, Symbol | Concat)


def _phi_input(machine: Machine, value: Abstract) -> Abstract:
    if isinstance(value, Const):
        return value
    found = operand(machine, value)
    origin = found.origin or "what a condition decides"
    return Symbol(found.ir, origin, foreign=found.foreign, local=found.local)


def _constant(machine: Machine, value: Any) -> Operand:
    if is_literal(value):
        if is_too_large(value):
            raise machine.stop(SIZE_CAUSE, SIZE_REMEDY)
        return Operand(value, type_of(value), True, value)
    if is_disordered(value):
        raise machine.stop(CAUSE, REMEDY)
    return operand(machine, constant(machine, value))


def constant(machine: Machine, value: Any) -> Symbol:
    """An object of the user's program that has no literal."""
    graph = machine.graph
    if not is_fixed(value):
        graph.check_apart(value)
        if not isinstance(value, Tool):
            graph.check_thread(value)
        if not isinstance(value, type):
            graph.note_hooks(value)
    host = graph.constant(value)
    known = machine.made(host)
    if known is not None:
        return known
    origin = f"{with_article(type(value).__name__)} of the program"
    found = host_op(machine, host, "constant", effect=Effect.PURE, result_type=ANY, origin=origin)
    found = Symbol(found.ir, found.origin, kind=type(value), foreign=not is_fixed(value))
    machine.note_made(host, found)
    return found


def _cell(machine: Machine, value: Ref) -> Operand:
    cell = machine.state.get(value.address)
    if isinstance(cell, PoisonCell) and cell.value is not None:
        return operand(machine, cell.value)
    if isinstance(cell, ListCell):
        return operand(machine, pure(machine, "list", cell.items))
    if isinstance(cell, GrownCell):
        return operand(machine, cell.value)
    if isinstance(cell, DictCell):
        parts = [part for key, held in zip(cell.keys, cell.values, strict=True) for part in (Const(key), held)]
        return operand(machine, pure(machine, "dict", parts))
    if isinstance(cell, SetCell):
        items = list(cell.items)
        if len(items) > 1:
            raise machine.stop(CAUSE, REMEDY)
        return operand(machine, pure(machine, "set", [Const(item) for item in items]))
    if isinstance(cell, ObjectCell):
        if not cell.ordered:
            raise machine.stop(CAUSE, REMEDY)
        return Operand(
            cell.value.ir, ANY, False, None, machine.state.holds_foreign, cell.value.origin, local=True, kind=cell.kind
        )
    if isinstance(cell, IteratorCell) and isinstance(cell.source, Symbol) and not cell.index:
        machine.state.put(value.address, replace(cell, index=-1))
        return operand(machine, cell.source)
    raise machine.stop(f"{describe(machine, value)} can't be part of the graph", "take what is needed out of it before")


def describe(machine: Machine, value: Abstract) -> str:
    """Return what messages call ``value``."""
    if isinstance(value, Const):
        return with_article(type(value.value).__name__)
    if isinstance(value, Ref):
        return machine.describe_cell(value)
    if isinstance(value, Poison):
        return value.cause
    if isinstance(value, Unbound):
        return "a name that is not bound"
    if isinstance(value, Appended):
        return "a message or a generation"
    if isinstance(value, Union):
        return "what differs between the ways through a condition"
    if isinstance(value, Tuple):
        return "a tuple"
    if isinstance(value, Symbol):
        return value.origin
    if isinstance(value, Concat):
        return "a text"
    if isinstance(value, NumberRange):
        return "a range of numbers that only a run knows"
    if isinstance(value, View):
        return f"the {value.what} of {describe(machine, value.owner)}"
    return "a function that is made in the program"


_TAKING_ITEMS = frozenset(
    {
        "list_from",
        "starred_from",
        "tuple_from",
        "set_from",
        "sum",
        "min",
        "max",
        "any",
        "all",
        "sorted",
        "reversed",
        "zip",
        "enumerate",
    }
)
"""Builtins that ask each argument that is a container for its items alone."""


def pure(
    machine: Machine,
    name: str,
    arguments: Sequence[Abstract],
    keywords: Mapping[str, Abstract] | None = None,
    *,
    gives: Type | None = None,
    origin: str | None = None,
    raises: bool | None = None,
) -> Symbol:
    """Call the pure builtin ``name`` of ``lmc.ir.builtins.builtins`` in the run.

    ``gives`` is the type of its result where more is known than follows from those of the arguments; ``raises`` whether
    it may raise, where that is known.
    """
    builtin = builtins.lookup(name)
    assert builtin is not None, name
    named = dict(keywords or {})
    if name in _TAKING_ITEMS and (name not in ("min", "max") or len(arguments) == 1):
        arguments = [value.items if isinstance(value, NumberRange) else value for value in arguments]
    if name in _BUILDERS:
        machine.ends.copied.update(value.address for value in arguments if isinstance(value, Ref))
    borrows = False
    if name not in _BUILDERS and any(_holds_changeable(machine, value) for value in arguments):
        borrows = _hand_on(machine, builtin, arguments, gives)
    operands = _in_order(machine, name, [operand(machine, value) for value in (*arguments, *named.values())])
    types = [each.type for each in operands]
    result_type = gives or builtin.result_type(types[: len(arguments)])
    if origin is None:
        unnamed = with_article(name) if name in _BUILDERS else f"the result of {name}"
        origin = next((each.origin for each in operands if each.origin is not None), unnamed)
    ir = tuple(each.ir for each in operands)
    if any(each.foreign for each in operands):
        effect = Effect.READS
        if may_run_code(machine, name, operands):
            machine.rules.check_kept(f"a special method of {origin}", [each for each in arguments if _is_cell(each)])
            effect = Effect.WRITES
        host = machine.graph.hosts.builtin(builtin, effect)
        found = host_op(
            machine,
            host,
            name,
            ir=ir,
            keywords=tuple(named),
            effect=effect,
            result_type=result_type,
            origin=origin,
        )
        _note_borrowed(machine, found.ir, operands, borrows=borrows)
        return found
    may_raise = builtin.may_raise(types, tuple(named)) if raises is None else raises
    (result,) = machine.emit(
        PyCallOp, (result_type,), may_raise=may_raise, function=name, arguments=ir, keywords=tuple(named)
    )
    _note_borrowed(machine, result, operands, borrows=borrows)
    domain = _domain_of(machine, builtin, arguments, named, result_type)
    if not all(each.follows for each in operands):
        is_local = result_type not in PLAIN_TYPES and any(each.local for each in operands)
        return Symbol(result, origin, domain=domain, local=is_local)
    expression = Expression(name, tuple(each.expression for each in operands), tuple(named))
    return Symbol(result, origin, expression, domain)


def _note_borrowed(machine: Machine, result: Value, operands: Sequence[Operand], *, borrows: bool) -> None:
    borrowed = machine.ends.borrowed
    if result.type not in PLAIN_TYPES and (borrows or (borrowed and any(each.ir in borrowed for each in operands))):
        borrowed.add(result)


_CHOOSING = frozenset({"choose", "bound", "min", "max"})
"""Builtins that give one of their arguments, not only of the items in them."""


def _holds_changeable(machine: Machine, value: Abstract) -> bool:
    """Return whether ``value`` is, or holds, a container of the program's that is no object of the run yet."""
    if isinstance(value, Tuple):
        return any(_holds_changeable(machine, each) for each in value.items)
    cell = machine.cell(value)
    return isinstance(cell, ListCell | GrownCell | DictCell | SetCell | InstanceCell)


def _hand_on(machine: Machine, builtin: PureBuiltin, arguments: Sequence[Abstract], gives: Type | None) -> bool:
    """Make objects of the run of what the result of a builtin may be or hold, so that it is no copy of these.

    Return whether some of it is the caller's, and is copied all the same.
    """
    borrows = False
    kind = gives or builtin.result_type([type_of_value(machine, each) for each in arguments])
    if kind in PLAIN_TYPES:
        return False
    chooses = builtin.name in _CHOOSING and len(arguments) > 1
    for each in arguments:
        cell = machine.cell(each)
        parts = [each] if chooses else each.items if isinstance(each, Tuple) else ()
        if isinstance(cell, ListCell):
            parts = [*parts, *cell.items]
        elif isinstance(cell, DictCell):
            parts = [*parts, *cell.values]
        for part in parts:
            if isinstance(part, Ref) and part.address in machine.read_only:
                borrows = True
            elif _holds_changeable(machine, part):
                machine.rules.stored(part)
    return borrows


_SAME_ITEMS = frozenset({"sorted", "reversed", "slice", "list_from", "starred_from"}).union(
    {"list.without", "list.without_first", "list.deleted"}
)
_OF_TEXTS = frozenset(
    {"add", "getitem", "slice", "str.strip", "str.lstrip", "str.rstrip", "str.removeprefix", "str.removesuffix"}
).union({"str.lower", "str.upper", "str.title", "str.capitalize", "str.casefold", "str.swapcase", "str.replace"})
"""Builtins that give a text of a text, and that are computed for each text of a domain."""


def united(*domains: Domain) -> Domain:
    """The texts of all of these domains."""
    found: dict[str, None] = {}
    for domain in domains:
        if domain is None:
            return None
        found.update(dict.fromkeys(domain))
    return tuple(found) if len(found) <= MAX_DOMAIN else None


def merged_domain(*values: Abstract) -> Domain:
    """The texts that a phi of these may be, or that a list of these may hold."""
    return united(*map(_domain, values))


def _domain(value: Abstract) -> Domain:
    if isinstance(value, Const):
        return (value.value,) if type(value.value) is str else None
    return value.domain if isinstance(value, Symbol) else None


def domain_of_items(machine: Machine, value: Abstract) -> Domain:
    """The texts among which all items of a container are, or its keys."""
    if isinstance(value, Symbol):
        return value.domain if isinstance(value.type, ListType) else None
    if isinstance(value, Tuple):
        return merged_domain(*value.items)
    if isinstance(value, View):
        return domain_of_items(machine, value.owner) if value.what == "keys" else None
    cell = machine.cell(value)
    if isinstance(cell, ObjectCell):
        return None if machine.objects.changed_unseen else cell.domain
    return None if cell is None else domain_of_cell(cell)


def domain_of_cell(cell: Cell) -> Domain:
    """The same of a container whose items are known, or that is a value of the run."""
    if isinstance(cell, GrownCell):
        return cell.value.domain
    if isinstance(cell, ListCell):
        return merged_domain(*cell.items)
    if isinstance(cell, DictCell | SetCell):
        items = cell.keys if isinstance(cell, DictCell) else sorted(cell.items, key=repr)
        return merged_domain(*map(Const, items))
    return None


def _domain_of(
    machine: Machine,
    builtin: builtins.PureBuiltin,
    arguments: Sequence[Abstract],
    named: Mapping[str, Abstract],
    gives: Type,
) -> Domain:
    """The texts that a call gives, or that are in the list that it gives, where its arguments tell."""
    first = arguments[0] if arguments else None
    if builtin.name == "list":
        return merged_domain(*arguments)
    if isinstance(gives, ListType) and (builtin.name in _SAME_ITEMS or builtin.name == "add"):
        lists = arguments if builtin.name == "add" else arguments[:1]
        return united(*(domain_of_items(machine, each) for each in lists))
    if not isinstance(first, Symbol) or first.domain is None:
        return None
    if isinstance(first.type, ListType):
        return first.domain if builtin.name == "getitem" and gives == first.type.element else None
    if (
        gives != TEXT
        or builtin.name not in _OF_TEXTS
        or named
        or not all(isinstance(each, Const) and each.is_literal for each in arguments[1:])
    ):
        return None
    try:
        found = [
            builtin.run(each, *(part.value for part in arguments[1:] if isinstance(part, Const)))
            for each in first.domain
        ]
    except Exception:
        return None
    return merged_domain(*map(Const, found))


def may_run_code(machine: Machine, name: str, operands: Sequence[Operand]) -> bool:
    """Return whether a builtin may call special methods of the user's: it looks at objects from outside."""
    if not machine.graph.hooked or name in _NOT_LOOKING:
        return False
    looked_at = [each for each in operands if each.foreign and not each.holds_scalars]
    if name in _LOOKING_AT_CONTAINERS:
        looked_at = [each for each in looked_at if not each.is_list]
    return bool(looked_at)


def _is_cell(value: Abstract) -> bool:
    return isinstance(value, Ref | Tuple)


def host_call(
    machine: Machine,
    function: Any,
    arguments: Sequence[Abstract],
    keywords: Mapping[str, Abstract] | None = None,
    *,
    effect: Effect,
    result_type: Type = ANY,
    origin: str | None = None,
    raises: Classes | None = None,
    taints: bool = True,
) -> Symbol:
    """Call ``function``, of the user's or of lmc's own, in the run: once per instance, in order.

    ``raises`` are the classes of all that it may raise, where that is known. ``taints``: where its effect is to write,
    it may change data of the user's.
    """
    named = dict(keywords or {})
    machine.ends.copied.update(value.address for value in (*arguments, *named.values()) if isinstance(value, Ref))
    values = (*arguments, *named.values())
    if effect is Effect.WRITES:
        machine.check_own(values)
    operands = [operand(machine, value) for value in values]
    if (effect is Effect.WRITES or not _is_known(function)) and any(map(_hands_on, values, operands)):
        machine.note_write(ANSWERS_ARE_SHARED, None, was_read=machine.reads_answers)
    if effect is Effect.PURE and any(each.foreign for each in _in_order(machine, "", operands)):
        effect = Effect.WRITES if may_run_code(machine, "", operands) else Effect.READS
    if result_type not in PLAIN_TYPES:
        machine.graph.note_hooks(function)
    if not isinstance(function, Tool):
        machine.graph.check_thread(function)
    taints = taints and not (_is_known(function) and not any(each.foreign for each in operands))  # an answer alone
    if effect is Effect.WRITES and taints:
        machine.graph.check_apart(function)
    host, name = machine.graph.hosts.function(function, effect)
    return host_op(
        machine,
        host,
        name,
        ir=tuple(each.ir for each in operands),
        keywords=tuple(named),
        effect=effect,
        result_type=result_type,
        origin=origin or f"the result of {name}()",
        raises=raises,
        taints=taints,
    )


ANSWERS_ARE_SHARED = ("answers are shared",)
"""Among the places that the program writes: answers that a function of the user's was given. It may change them or hand
them on, so that they are read in order from the beginning on."""


def _hands_on(value: Abstract, each: Operand) -> bool:
    """Return whether a function that gets ``value`` may get an answer or a part of one that can change.

    A list of texts may be one, but the program's own.
    """
    if isinstance(each.type, ListType) and not isinstance(value, Ref):
        return not each.foreign and not each.follows
    return _may_hold_answers(each)


def _may_hold_answers(each: Operand) -> bool:
    """Return whether ``each`` may be or hold an object that a generation gave and that can change."""
    return (each.local or not each.foreign) and not each.follows and not each.holds_scalars


def _is_known(function: Any) -> bool:
    """Return whether ``function`` is Python's or lmc's own: what it is declared to do is all that it does."""
    if isinstance(function, Tool):
        return False
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", function)  # of a method in C
    kind = owner if isinstance(owner, type) else type(owner)
    module = getattr(function, "__module__", None) or kind.__module__
    return is_standard_module(module) or module.partition(".")[0] == "lmc"


def _in_order(machine: Machine, name: str, operands: list[Operand]) -> list[Operand]:
    """The operands of a builtin; answers that others may change are objects from outside.

    Of objects of the run it is known whether they hold any.
    """
    if name in _NOT_LOOKING or not any(_may_hold_answers(each) and not each.local for each in operands):
        return operands
    if ANSWERS_ARE_SHARED not in machine.written:
        machine.reads_answers = True
        return operands
    return [replace(each, foreign=True) if _may_hold_answers(each) else each for each in operands]


def host_op(
    machine: Machine,
    host: str,
    name: str,
    *,
    ir: tuple[Any, ...] = (),
    keywords: tuple[str, ...] = (),
    effect: Effect,
    result_type: Type,
    origin: str,
    raises: Classes | None = None,
    taints: bool = True,
) -> Symbol:
    """Append a call of a host symbol; ``name`` is what it goes by in ids."""
    op_id = machine.allocate_host(name)
    (result,) = machine.emit(
        HostCallOp,
        (result_type,),
        may_raise=(effect is not Effect.PURE or bool(ir)) if raises is None else bool(raises),
        raises=raises,
        host=host,
        id=op_id,
        arguments=ir,
        keywords=keywords,
        declared=effect.value,
    )
    if effect is Effect.WRITES and taints:
        machine.state.tainted = True
        machine.writes += 1
    return Symbol(result, origin, foreign=result_type not in PLAIN_TYPES)


# Texts


def concat(machine: Machine, pieces: Sequence[Abstract]) -> Abstract:
    """Texts (literals and symbols of type ``!text``) one after the other, put together where an op needs them."""
    parts: list[str | Symbol] = []
    for piece in pieces:
        for held in _short_parts(machine, piece):
            part = str.__getitem__(held.value, slice(None)) if isinstance(held, Const) else held
            assert isinstance(part, str | Symbol)
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            elif not isinstance(part, str) or part:
                parts.append(part)
    if not parts:
        return Const("")
    if len(parts) == 1:
        return Const(parts[0]) if isinstance(parts[0], str) else parts[0]
    return Concat(tuple(parts))


def _short_parts(machine: Machine, piece: Abstract) -> Sequence[Abstract | str]:
    """The parts of a text that is not put together yet; of a long one, which an op puts together, that alone."""
    if not isinstance(piece, Concat):
        return (piece,)
    return piece.parts if len(piece.parts) <= MAX_TEXT_PARTS else (text_symbol(machine, piece),)


def text_symbol(machine: Machine, text: Concat) -> Symbol:
    """The op that puts a text together; one for each text in a block that sees it."""
    known = machine.made(id(text))
    if known is not None:
        return known
    (result,) = machine.emit(ConcatOp, (TEXT,), text=text_parts(machine, text))
    symbols = [part for part in text.parts if isinstance(part, Symbol)]
    expressions = [part if isinstance(part, str) else part.expression for part in text.parts]
    follows = all(each is not None for each in expressions)
    expression = Expression("str.join", ("", Expression("tuple", tuple(expressions)))) if follows else None
    made = Symbol(result, symbols[0].origin, expression, _joined_domain(text))
    machine.note_made(id(text), made, text)
    return made


def _joined_domain(text: Concat) -> Domain:
    """The texts that a text may be whose parts are each one of a few."""
    found: list[str] = [""]
    for part in text.parts:
        domain = (part,) if isinstance(part, str) else part.domain
        if domain is None or len(found) * len(domain) > MAX_DOMAIN:
            return None
        found = [before + each for before in found for each in domain]
    return tuple(dict.fromkeys(found))


def text_parts(machine: Machine, text: Abstract) -> tuple[str | Value, ...]:
    """A text as parts of an op."""
    parts = text.parts if isinstance(text, Concat) else (text,)
    found: list[str | Value] = []
    for held in parts:
        part = held.value if isinstance(held, Const) else held
        if isinstance(part, str):
            if is_too_large(part):
                raise machine.stop(SIZE_CAUSE, SIZE_REMEDY)
            found.append(part)
        else:
            assert isinstance(part, Symbol), part
            found.append(part.ir)
    return tuple(found)


def concat_expression(text: Concat) -> Expression | None:
    """Return how a text that is put together follows from the arguments."""
    parts = [part if isinstance(part, str) else part.expression for part in text.parts]
    if any(part is None for part in parts):
        return None
    return Expression("str.join", ("", Expression("tuple", tuple(parts))))


# What is known of a value


def type_of_value(machine: Machine, value: Abstract) -> Type:
    """The IR type that ``value`` has, or would have as an operand."""
    if isinstance(value, Symbol):
        return value.type
    if isinstance(value, Concat):
        return TEXT
    if isinstance(value, Const):
        return type_of(value.value) if is_literal(value.value) else ANY
    if isinstance(value, Tuple):
        return list_of(element_type(machine, value.items))
    if isinstance(value, Ref):
        cell = machine.state.get(value.address)
        if isinstance(cell, GrownCell):
            return cell.value.type
        if isinstance(cell, ListCell):
            return list_of(element_type(machine, cell.items))
    return ANY


def element_type(machine: Machine, items: Sequence[Abstract]) -> Type:
    """The type that all of ``items`` have."""
    kinds = {type_of_value(machine, item) for item in items}
    return kinds.pop() if len(kinds) == 1 else ANY


def class_of(machine: Machine, value: Abstract) -> type | None:
    """The Python class of ``value``; None where that is not known."""
    if isinstance(value, Const):
        return type(value.value)
    if isinstance(value, Symbol):
        return value.kind or _PYTHON.get(value.type) or (list if isinstance(value.type, ListType) else None)
    if isinstance(value, Concat):
        return str
    if isinstance(value, Tuple):
        return value.kind
    if isinstance(value, Slice):
        return slice
    if isinstance(value, NumberRange):
        return range
    if isinstance(value, Raised):
        return value.kind
    if isinstance(value, Ref):
        return machine.class_of_cell(value)
    return None


def schema_of_value(machine: Machine, value: Abstract) -> JsonSchema | None:
    """The schema of an answer, or of a part of one; None for other values."""
    if isinstance(value, Symbol) and isinstance(value.type, JsonType):
        return machine.graph.json_types.schema(value.type.schema)
    return None


def is_text(machine: Machine, value: Abstract) -> bool:
    """Return whether ``value`` is certainly a text."""
    return class_of(machine, value) is str


def is_scalar(value: Abstract) -> bool:
    """Return whether ``value`` is a text, a number, a bool or None."""
    if isinstance(value, Const):
        return type(value.value) in SCALARS
    return isinstance(value, Concat) or (isinstance(value, Symbol) and value.type in PLAIN_TYPES)


def class_name(machine: Machine, value: Abstract) -> str:
    """The name of the class of a value; "object" if the class is not known."""
    found = class_of(machine, value)
    return "object" if found is None else found.__name__


def exception(machine: Machine, error: Raised) -> Symbol:
    """An exception of the run."""
    made = _made(machine, error)
    if error.context is not None:
        context = machine.cases(error.context, partial(_context, machine))
        made = _same_kind(made, pure(machine, "in_context", (made, context), raises=False))
    return made


def exception_parts(machine: Machine, error: Raised) -> list[Abstract]:
    """Return an exception of the run, behind the one in whose handler it is raised, before its cause."""
    found: list[Abstract] = [_made(machine, error)]
    if error.context is not None:
        found.insert(0, machine.cases(error.context, partial(_context, machine)))
    if error.cause is not None:
        found.append(found[0] if error.cause is error.context else error.cause)
    return found


def _same_kind(made: Symbol, changed: Symbol) -> Symbol:
    return Symbol(changed.ir, made.origin, kind=made.kind)


def _context(machine: Machine, error: Abstract) -> Abstract:
    assert isinstance(error, Raised)
    return exception(machine, error)


def _made(machine: Machine, error: Raised) -> Symbol:
    if isinstance(error.symbol, Symbol):
        return error.symbol
    if error.made is not None:
        return constant(machine, error.made)
    kind = error.kind
    assert kind is not None
    if kind.__module__ == "builtins":
        made = pure(machine, "exception", (Const(kind.__name__), *error.args), error.keywords, gives=ANY)
        return Symbol(made.ir, with_article(kind.__name__), kind=kind)
    return construct_error(machine, kind, error.args)


def construct_error(machine: Machine, kind: type[BaseException], args: tuple[Abstract, ...]) -> Symbol:
    """An exception of a class of the user's that has no code of its own in its making."""
    made = host_call(machine, kind, args, effect=Effect.PURE, result_type=ANY)
    return Symbol(made.ir, with_article(kind.__name__), kind=kind)


def construct(machine: Machine, value: Tuple) -> Symbol:
    """A named tuple as an object of the run."""
    made = host_call(machine, value.kind, value.items, effect=Effect.PURE, result_type=ANY)
    return Symbol(made.ir, with_article(value.kind.__name__), kind=value.kind)

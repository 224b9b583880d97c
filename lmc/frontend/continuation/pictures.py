"""Live values and objects of a capture as data: a record and its leaves.

A value is an object with one key that names its kind; ``lmc.frontend.continuation.objects`` reads all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.join import UNSURE
from lmc.frontend.emit.operands import exception, operand, text_symbol
from lmc.frontend.heap.cells import (
    ROLE_UNKNOWN,
    BranchesCell,
    Cell,
    CoreCell,
    DequeCell,
    DictCell,
    FrameCell,
    GrownCell,
    HandleCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    ObjectCell,
    SetCell,
)
from lmc.frontend.heap.reach import current
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    Appended,
    BoundMethod,
    Concat,
    Const,
    Function,
    NumberRange,
    Partial,
    Poison,
    Raised,
    Ref,
    RoleTurn,
    Slice,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
)
from lmc.frontend.language.messages import Generation, Message, Section, Selection, Several
from lmc.frontend.language.sections import Sections
from lmc.frontend.program.guards import mutable_parts
from lmc.frontend.python.iteration import has_other_keys
from lmc.frontend.source.files import Unsupported
from lmc.frontend.source.functions import Definition
from lmc.frontend.source.nondeterminism import CAUSE, REMEDY, has_fixed_hash, is_disordered
from lmc.ir.core import Value
from lmc.ir.types import ANY, SCALARS, JsonType, ListType
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Picture = dict[str, Any]
APPENDABLE: dict[str, type] = {
    kind.__name__: kind for kind in (Generation, Message, Section, Sections, Selection, Several)
}
"""The things that a program appends besides text, by name."""


class Pictures:
    """Collects the leaves and cells of one record. May append ops to the innermost block.

    Raises ``CaptureBreak`` for what has no picture.
    """

    def __init__(self, machine: Machine, arguments: Mapping[int | Abstract, list[Any]]) -> None:
        self.machine = machine
        self.leaves: list[Value] = []
        self.cells: list[Picture] = []
        self._arguments = arguments
        self._numbers: dict[Any, int] = {}
        self._held: list[Any] = []  # keeps what ids stand for alive
        self._addresses: set[int] = set()
        self._may_be_copies = False

    def value(self, value: Abstract) -> Picture:
        """The picture of a value."""
        argument = self.argument(value)
        if argument is not None:
            return argument
        rule = _VALUES.get(type(value))
        if rule is None:
            raise self._none(value)
        return rule(self, value)

    def variable(self, frame: int, name: str) -> Picture:
        """A name of a frame that functions of the program share."""
        held = self.machine.state.get((frame, name))
        assert isinstance(held, Abstract)
        return self.cell((frame, name), lambda: {"variable": self.value(held)})

    def definition(self, definition: Definition) -> Picture:
        """A function of the user's, by the one around it that exists outside the program."""
        outermost = definition.outermost
        if outermost.function is None:
            raise self.machine.stop(f"{definition.name}() has no function of its own", "define it in a file")
        symbol = self.machine.graph.hosts.constant(outermost.function)
        return {"host": symbol, "number": definition.number}

    def leaf(self, value: Value) -> Picture:
        """An operand of the op."""
        key = ("leaf", value.name)
        if key not in self._numbers:
            self._numbers[key] = len(self.leaves)
            self.leaves.append(value)
        return {"leaf": self._numbers[key]}

    def host(self, value: Any) -> Picture:
        """An object from outside the program."""
        return {"host": self.machine.graph.constant(value)}

    def check_identities(self) -> None:
        """Raise ``CaptureBreak`` where a live object of the run may be a copy of another live one."""
        if self._may_be_copies and not self.machine.ends.copied.isdisjoint(self._addresses):
            raise self.machine.stop(
                "a list or dict was taken out of another one by an index that only a run knows, and both are used "
                "where the program goes on eagerly",
                "nothing has to change: the rest runs eagerly; what should be compiled, do before it",
            )

    def symbol(self, value: Symbol) -> Picture:
        """A value of the run."""
        if value.ir in self.machine.ends.borrowed:
            raise self.machine.stop(
                f"{value.origin} may be a list or dict that the program or its caller holds, and is used where the "
                "program goes on eagerly",
                "take what is needed out of it before, or make a copy: list(x), dict(x)",
            )
        self._may_be_copies = self._may_be_copies or value.type == ANY or isinstance(value.type, ListType | JsonType)
        return self.leaf(value.ir)

    def _none(self, value: Any) -> BaseException:
        if isinstance(value, Poison):
            return self.machine.stop(value.cause, value.remedy)
        return self.machine.unsupported(f"{type(value).__name__} where the program goes on eagerly")

    def cell(self, key: Any, make: Callable[[], Picture]) -> Picture:
        """The object that ``key`` stands for."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.cells)
            self.cells.append({})
            self.cells[number] = make()
        return {"cell": number}

    def by_identity(self, value: Abstract, make: Callable[[], Picture]) -> Picture:
        """The cell of a value whose identity Python can see."""
        self._held.append(value)
        return self.cell(("value", id(value)), make)

    def reference(self, value: Ref) -> Picture:
        """An object of the program's."""
        held = current(self.machine.state, value)
        if held is not value:
            return self.value(held)
        address = value.address
        self._addresses.add(address)
        argument = self.argument(value)
        if argument is not None:
            return argument
        if address in self.machine.read_only:
            raise self.machine.stop(
                "a list was taken out of an argument by a key that only a run knows, and is used where the program "
                "goes on eagerly",
                "make a copy of it: list(x)",
            )
        cell = self.machine.cell(value)
        rule = None if cell is None else _CELLS.get(type(cell))
        if rule is None:
            raise self._none(cell)
        return self.cell(address, lambda: rule(self, address, cell))

    def argument(self, value: Abstract) -> Picture | None:
        """The picture of what the caller holds as well; None for other values."""
        way = self._arguments.get(value.address if isinstance(value, Ref) else value)
        return None if way is None else {"argument": way}

    def pairs(self, address: int, names: tuple[str, ...]) -> list[Any]:
        """Names that belong to an object, with what they hold where they are bound."""
        found: list[Any] = []
        for name in names:
            held = self.machine.state.get((address, name))
            assert isinstance(held, Abstract)
            if not isinstance(held, Unbound):
                found.append([name, self.value(held)])
        return found


# Values


def _constant(pictures: Pictures, value: Const) -> Picture:
    held = value.value
    if type(held) in SCALARS:
        return {"literal": held}
    if any(held is each for each in pictures.machine.graph.receiver):
        return {"receiver": True}
    found: dict[int, Any] = {}
    mutable_parts(held, found)
    if found:  # guards compare what it holds, so another run may have another one
        raise pictures.machine.stop(
            f"{with_article(type(held).__name__)} from outside has a name of the program's where it goes on eagerly",
            "read it where it is used, or make a copy of it",
        )
    return pictures.host(held)


def _concat(pictures: Pictures, value: Concat) -> Picture:
    return pictures.leaf(text_symbol(pictures.machine, value).ir)


def _tuple(pictures: Pictures, value: Tuple) -> Picture:
    return pictures.by_identity(value, lambda: _items(pictures, value))


def _items(pictures: Pictures, value: Tuple) -> Picture:
    items = [pictures.value(item) for item in value.items]
    return {"tuple": items} if value.kind is tuple else {"named_tuple": items, "class": pictures.host(value.kind)}


def _slice(pictures: Pictures, value: Slice) -> Picture:
    return {"slice": [pictures.value(part) for part in (value.start, value.stop, value.step)]}


def _numbers(pictures: Pictures, value: NumberRange) -> Picture:
    return {"range": [pictures.value(part) for part in value.bounds.items]}


def _view(pictures: Pictures, value: View) -> Picture:
    return {"method": [{"literal": value.what}, pictures.value(value.owner)], "called": True}


def _function(pictures: Pictures, value: Function) -> Picture:
    return pictures.by_identity(value, lambda: _closure(pictures, value))


def _closure(pictures: Pictures, value: Function) -> Picture:
    try:
        free = value.definition.code.co_freevars
    except Unsupported as reason:
        raise pictures.machine.stop(f"{value.definition.name}(): {reason.what}", "define it outside") from None
    defaults = [[name, pictures.value(held)] for name, held in value.defaults.items()]
    variables = [[name, captured_variable(pictures, value.definition, value.frames, name)] for name in free]
    return {"function": pictures.definition(value.definition), "variables": variables, "defaults": defaults}


def captured_variable(pictures: Pictures, definition: Definition, frames: tuple[int, ...], name: str) -> Picture:
    """A free name of a function: a variable of the program's, or one that exists outside of it."""
    for frame in frames:
        cell = pictures.machine.state.get(frame)
        assert isinstance(cell, FrameCell)
        found = next((each for each in (name, *_unmangled(definition, name)) if each in cell.names), None)
        if found is not None:
            return pictures.variable(frame, found)
    return {"outer": name}


def _unmangled(definition: Definition, name: str) -> tuple[str, ...]:
    prefix = "" if definition.class_name is None else f"_{definition.class_name.lstrip('_')}"
    return (name.removeprefix(prefix),) if prefix and name.startswith(f"{prefix}__") else ()


def _method(pictures: Pictures, value: BoundMethod) -> Picture:
    function = value.function
    named = {"literal": function} if isinstance(function, str) else pictures.value(function)
    return {"method": [named, pictures.value(value.receiver)], "called": False}


def _partial(pictures: Pictures, value: Partial) -> Picture:
    args = [pictures.value(part) for part in value.args]
    kwargs = [[name, pictures.value(part)] for name, part in value.kwargs.items()]
    return {"partial": pictures.value(value.function), "args": args, "kwargs": kwargs}


def _appended(pictures: Pictures, value: Appended) -> Picture:
    return _made(pictures, value.made)


def _made(pictures: Pictures, held: Any) -> Picture:
    if isinstance(held, Abstract):
        return pictures.value(held)
    kind = type(held)
    if kind in (list, tuple):
        return {f"plain_{kind.__name__}": [_made(pictures, part) for part in held]}
    if kind is dict:
        return {"plain_dict": [[name, _made(pictures, part)] for name, part in held.items()]}
    if APPENDABLE.get(kind.__name__) is kind:
        fields = [[field.name, _made(pictures, getattr(held, field.name))] for field in dataclasses.fields(held)]
        return {"appended": kind.__name__, "fields": fields}
    root = pictures.machine.cell(pictures.machine.ends.root)
    if isinstance(root, HandleCell) and root.language is not None and kind in root.language.appended:
        raise pictures.machine.unsupported(f"{kind.__name__} with a name where the program goes on eagerly")
    return pictures.value(Const(held))


def _turn(pictures: Pictures, value: RoleTurn) -> Picture:
    return pictures.by_identity(value, lambda: {"turn": pictures.value(value.handle), "role": value.role})


def _raised(pictures: Pictures, value: Raised) -> Picture:
    machine = pictures.machine
    if isinstance(value.cause, Raised | Ref | Union) or (value.cause is not None and value.symbol is None):
        raise machine.unsupported("an exception with a cause where the program goes on eagerly")

    def make() -> Picture:
        return {"error": pictures.leaf(operand(machine, value).ir)}

    if isinstance(value.symbol, Symbol):
        return pictures.cell(("error", value.symbol.ir.name), make)
    return pictures.by_identity(value, make)


def _union(pictures: Pictures, value: Union) -> Picture:
    machine, flag = pictures.machine, value.flag
    first, second = value.first, value.second
    if _holds_errors(pictures, first):
        first = machine.choose(flag, lambda: _error_of(machine, value.first), lambda: NONE)
    if _holds_errors(pictures, second):
        second = machine.choose(flag, lambda: NONE, lambda: _error_of(machine, value.second))
    return {"either": [pictures.value(part) for part in (flag, first, second)]}


def _holds_errors(pictures: Pictures, value: Abstract) -> bool:
    """Return whether one way of a union is an exception, which is made where that way is taken alone."""
    if not isinstance(value, Union):
        return isinstance(value, Raised)
    found = {_holds_errors(pictures, part) for part in (value.first, value.second)}
    if len(found) > 1:
        raise pictures.machine.unsupported("an exception that only some ways have where the program goes on eagerly")
    return found.pop()


def _error_of(machine: Machine, value: Abstract) -> Abstract:
    if isinstance(value, Union):
        return machine.choose(
            value.flag, lambda: _error_of(machine, value.first), lambda: _error_of(machine, value.second)
        )
    assert isinstance(value, Raised)
    return exception(machine, value)


def _unbound(_pictures: Pictures, _value: Unbound) -> Picture:
    return {"unbound": True}


_VALUES: dict[type[Abstract], Callable[[Pictures, Any], Picture]] = {
    Const: _constant,
    Symbol: Pictures.symbol,
    Concat: _concat,
    Tuple: _tuple,
    Slice: _slice,
    NumberRange: _numbers,
    View: _view,
    Ref: Pictures.reference,
    Function: _function,
    BoundMethod: _method,
    Partial: _partial,
    Appended: _appended,
    RoleTurn: _turn,
    Raised: _raised,
    Union: _union,
    Unbound: _unbound,
}


# Cells


def _list(pictures: Pictures, _address: int, cell: ListCell) -> Picture:
    return {"list": [pictures.value(item) for item in cell.items]}


def _grown(pictures: Pictures, _address: int, cell: GrownCell) -> Picture:
    return {"grown": pictures.leaf(cell.value.ir)}


def _deque(pictures: Pictures, _address: int, cell: DequeCell) -> Picture:
    return {"deque": [pictures.value(item) for item in cell.items], "longest": cell.maxlen}


def _dict(pictures: Pictures, _address: int, cell: DictCell) -> Picture:
    pairs = [
        [pictures.value(Const(key)), pictures.value(held)] for key, held in zip(cell.keys, cell.values, strict=True)
    ]
    more = {} if cell.kind is dict else {"class": pictures.host(cell.kind), "factory": pictures.value(cell.factory)}
    return {"dict": pairs, **more}


def _set(pictures: Pictures, _address: int, cell: SetCell) -> Picture:
    if is_disordered({*cell.items}) and all(map(has_fixed_hash, cell.items)):
        raise pictures.machine.stop(CAUSE, REMEDY)  # plain Python goes on in an order that one made anew may not have
    return {"set": [pictures.value(Const(item)) for item in sorted(cell.items, key=repr)]}


def _instance(pictures: Pictures, address: int, cell: InstanceCell) -> Picture:
    return {"instance": pictures.host(cell.kind), "attributes": pictures.pairs(address, cell.names)}


def _iterator(pictures: Pictures, _address: int, cell: IteratorCell) -> Picture:
    if cell.exhausted:
        return {"iterator": {"tuple": []}, "index": 0}
    if cell.index < 0:
        raise pictures.machine.stop(
            "the program goes on eagerly where only a run knows how far an iterator is", "make a list of it: list(x)"
        )
    if has_other_keys(pictures.machine, cell):
        raise pictures.machine.stop("a dict gets other keys while the program goes over it", "go over a copy: list(x)")
    if cell.made is None:
        return {"iterator": pictures.value(cell.source), "index": cell.index}
    return {"iterator": pictures.value(cell.made), "index": cell.index, "called": True}


def _object(pictures: Pictures, _address: int, cell: ObjectCell) -> Picture:
    return {"same": pictures.value(cell.value)}


def _branches(pictures: Pictures, _address: int, cell: BranchesCell) -> Picture:
    if cell.source is not NONE:
        raise pictures.machine.unsupported("branches of another language where the program goes on eagerly")
    return {"branches": [pictures.value(each) for each in cell.handles]}


def _handle(pictures: Pictures, _address: int, cell: HandleCell) -> Picture:
    root = pictures.machine.cell(pictures.machine.ends.root)
    assert isinstance(root, HandleCell)
    if cell.language is not root.language or cell.result is not NONE:
        raise pictures.machine.unsupported("a state of another program where this one goes on eagerly")
    holes = [pictures.leaf(hole) for hole in cell.holes]
    return {"handle": pictures.reference(Ref(cell.core)), "path": cell.path, "holes": holes}


def _core(pictures: Pictures, address: int, cell: CoreCell) -> Picture:
    if cell.answer is UNSURE:
        raise pictures.machine.stop(
            "only a run knows whether the open turn ends with an answer, and the program goes on eagerly here",
            "end the turn before: append a message of another role",
        )
    answer = cell.answer
    if isinstance(answer, Union):
        answer = dataclasses.replace(answer, second=NONE)
    return {
        "core": pictures.value(cell.context),
        "names": pictures.pairs(address, cell.names),
        "metas": [[name[6:], held] for name, held in pictures.pairs(address, tuple(f"@meta:{x}" for x in cell.metas))],
        "answer": answer and pictures.value(answer),
        "role": "unsure" if cell.role == ROLE_UNKNOWN else cell.role and {"literal": cell.role},
    }


_CELLS: dict[type[Cell], Callable[[Pictures, int, Any], Picture]] = {
    ListCell: _list,
    GrownCell: _grown,
    DequeCell: _deque,
    DictCell: _dict,
    SetCell: _set,
    InstanceCell: _instance,
    IteratorCell: _iterator,
    ObjectCell: _object,
    BranchesCell: _branches,
    HandleCell: _handle,
    CoreCell: _core,
}

"""Python objects of a record: made first and filled then, so that aliases and cycles stay.

Each table has one line for each kind of value or object that ``pictures.py`` writes.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import CellType, FunctionType, MethodType
from typing import Any

from lmc.frontend.continuation.pictures import APPENDABLE
from lmc.frontend.language.core import Core
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.language.state import Branches, RoleBlock
from lmc.frontend.program.arguments import Bound
from lmc.frontend.source.functions import Definition, definition_of
from lmc.ir.ids import fill_holes
from lmc.ir.semantics.context import Context

UNBOUND: Any = object()
"""Stands for a name that is not bound."""
Node = Mapping[str, Any]


class RecordObjects:
    """The objects of one record in one run."""

    def __init__(
        self,
        record: Node,
        leaves: Sequence[Any],
        hosts: Mapping[str, Callable[..., Any]],
        bound: Bound,
        session: EagerSession,
    ) -> None:
        self.record = record
        self.leaves = leaves
        self.hosts = hosts
        self.bound = bound
        self.session = session
        self._nodes: list[Node] = record["cells"]
        self._made: dict[int, Any] = {}
        for number, node in enumerate(self._nodes):
            shell = _SHELLS.get(next(iter(node)))
            if shell is not None:
                self._made[number] = shell(self, node)
        self._waiting = set(self._made)
        for number in range(len(self._nodes)):
            self.filled(number)

    def value(self, node: Node) -> Any:
        """The value of a picture."""
        return _VALUES[next(iter(node))](self, node)

    def values(self, nodes: Sequence[Node]) -> list[Any]:
        """The values of several."""
        return [self.value(node) for node in nodes]

    def pairs(self, nodes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Values by name, without names that are not bound."""
        found = {name: self.value(node) for name, node in nodes}
        return {name: value for name, value in found.items() if value is not UNBOUND}

    def cell(self, number: int) -> Any:
        """An object, which may not be filled yet."""
        if number not in self._made:
            node = self._nodes[number]
            self._made[number] = _MAKERS[next(iter(node))](self, node)
        return self._made[number]

    def filled(self, number: int) -> Any:
        """An object with its content."""
        made = self.cell(number)
        if number in self._waiting:
            self._waiting.discard(number)
            node = self._nodes[number]
            _FILLERS[next(iter(node))](self, made, node)
        return made

    def definition(self, node: Node) -> Definition:
        """A function of the user's, and the code that it is now."""
        return definition_of(self.hosts[node["host"]]()).numbered(node["number"])

    def variables(self, definition: Definition, nodes: Sequence[Sequence[Any]]) -> dict[str, CellType]:
        """The variables that a function shares with others."""
        function = definition.outermost.function
        assert function is not None
        outside = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return {name: outside[node["outer"]] if "outer" in node else self.cell(node["cell"]) for name, node in nodes}


def iterator_at(source: Any, index: int) -> Iterator[Any]:
    """An iterator over ``source`` that has given ``index`` items."""
    found = iter(source)
    if type(source) in (list, tuple) and hasattr(found, "__setstate__"):
        found.__setstate__(index)
        return found
    for _ in islice(found, index):
        pass
    return found


# Values


def _leaf(objects: RecordObjects, node: Node) -> Any:
    return objects.leaves[node["leaf"]]


def _literal(_objects: RecordObjects, node: Node) -> Any:
    return node["literal"]


def _host(objects: RecordObjects, node: Node) -> Any:
    return objects.hosts[node["host"]]()


def _cell(objects: RecordObjects, node: Node) -> Any:
    return objects.cell(node["cell"])


def _argument(objects: RecordObjects, node: Node) -> Any:
    name, *keys = node["argument"]
    found = objects.bound.values[name]
    for kind, key in keys:
        found = getattr(found, key) if kind == "field" else found[key]
    return found


def _receiver(objects: RecordObjects, _node: Node) -> Any:
    return objects.bound.program.receiver[0]


def _tuple(objects: RecordObjects, node: Node) -> Any:
    return tuple(objects.values(node["tuple"]))


def _named_tuple(objects: RecordObjects, node: Node) -> Any:
    kind = objects.value(node["class"])
    return tuple.__new__(kind, objects.values(node["named_tuple"]))


def _slice(objects: RecordObjects, node: Node) -> Any:
    return slice(*objects.values(node["slice"]))


def _range(objects: RecordObjects, node: Node) -> Any:
    return range(*objects.values(node["range"]))


def _method(objects: RecordObjects, node: Node) -> Any:
    function, receiver = objects.values(node["method"])
    if not isinstance(function, str):
        return MethodType(function, receiver)
    found = getattr(receiver, function)
    return found() if node["called"] else found


def _partial(objects: RecordObjects, node: Node) -> Any:
    return functools.partial(
        objects.value(node["partial"]), *objects.values(node["args"]), **objects.pairs(node["kwargs"])
    )


def _plain_list(objects: RecordObjects, node: Node) -> Any:
    return objects.values(node["plain_list"])


def _plain_tuple(objects: RecordObjects, node: Node) -> Any:
    return tuple(objects.values(node["plain_tuple"]))


def _plain_dict(objects: RecordObjects, node: Node) -> Any:
    return objects.pairs(node["plain_dict"])


def _appended(objects: RecordObjects, node: Node) -> Any:
    return APPENDABLE[node["appended"]](**objects.pairs(node["fields"]))


def _either(objects: RecordObjects, node: Node) -> Any:
    flag, first, second = node["either"]
    return objects.value(first if objects.value(flag) else second)


def _unbound(_objects: RecordObjects, _node: Node) -> Any:
    return UNBOUND


_VALUES: dict[str, Callable[[RecordObjects, Node], Any]] = {
    "leaf": _leaf,
    "literal": _literal,
    "host": _host,
    "cell": _cell,
    "argument": _argument,
    "receiver": _receiver,
    "tuple": _tuple,
    "named_tuple": _named_tuple,
    "slice": _slice,
    "range": _range,
    "method": _method,
    "partial": _partial,
    "plain_list": _plain_list,
    "plain_tuple": _plain_tuple,
    "plain_dict": _plain_dict,
    "appended": _appended,
    "either": _either,
    "unbound": _unbound,
}

# Objects that are made empty


def _new_dict(objects: RecordObjects, node: Node) -> Any:
    return objects.value(node["class"])() if "class" in node else {}


def _new_instance(objects: RecordObjects, node: Node) -> Any:
    return object.__new__(objects.value(node["instance"]))


def _new_core(objects: RecordObjects, _node: Node) -> Any:
    made = object.__new__(Core)
    made.session = objects.session
    return made


_SHELLS: dict[str, Callable[[RecordObjects, Node], Any]] = {
    "variable": lambda _objects, _node: CellType(),
    "list": lambda _objects, _node: [],
    "grown": lambda _objects, _node: [],
    "deque": lambda _objects, node: deque(maxlen=node["longest"]),
    "dict": _new_dict,
    "set": lambda _objects, _node: set[Any](),
    "instance": _new_instance,
    "core": _new_core,
}

# Their content


def _fill_variable(objects: RecordObjects, made: CellType, node: Node) -> None:
    value = objects.value(node["variable"])
    if value is not UNBOUND:
        made.cell_contents = value


def _fill_list(objects: RecordObjects, made: list[Any], node: Node) -> None:
    made += objects.values(node["list"])


def _fill_grown(objects: RecordObjects, made: list[Any], node: Node) -> None:
    made += objects.value(node["grown"])


def _fill_deque(objects: RecordObjects, made: deque[Any], node: Node) -> None:
    made.extend(objects.values(node["deque"]))


def _fill_dict(objects: RecordObjects, made: dict[Any, Any], node: Node) -> None:
    if "factory" in node and hasattr(made, "default_factory"):
        made.default_factory = objects.value(node["factory"])  # type: ignore[attr-defined]
    put = OrderedDict.__setitem__ if isinstance(made, OrderedDict) else dict.__setitem__
    for key, value in node["dict"]:
        put(made, objects.value(key), objects.value(value))  # type: ignore[arg-type]


def _fill_set(objects: RecordObjects, made: set[Any], node: Node) -> None:
    made.update(objects.values(node["set"]))


def _fill_instance(objects: RecordObjects, made: Any, node: Node) -> None:
    for name, value in objects.pairs(node["attributes"]).items():
        object.__setattr__(made, name, value)


def _fill_core(objects: RecordObjects, made: Core, node: Node) -> None:
    context: Context = objects.value(node["core"])
    made.context = context
    made.variables = objects.pairs(node["names"])
    made.metas = objects.pairs(node["metas"])
    made.chat = context.is_chat
    made.bare = not context.is_chat and bool(context.parts)
    role, answer = node["role"], node["answer"]
    made.role = context.role if role == "unsure" else None if role is None else objects.value(role)
    made.answer = None if answer is None else objects.value(answer)


_FILLERS: dict[str, Callable[[RecordObjects, Any, Node], None]] = {
    "variable": _fill_variable,
    "list": _fill_list,
    "grown": _fill_grown,
    "deque": _fill_deque,
    "dict": _fill_dict,
    "set": _fill_set,
    "instance": _fill_instance,
    "core": _fill_core,
}

# Objects that are made of others


def _function(objects: RecordObjects, node: Node) -> Any:
    definition = objects.definition(node["function"])
    code = definition.code
    variables = objects.variables(definition, node["variables"])
    made = FunctionType(
        code, definition.globals, code.co_name, None, tuple(variables[name] for name in code.co_freevars)
    )
    defaults = objects.pairs(node["defaults"])
    positional = code.co_varnames[: code.co_argcount]
    made.__defaults__ = tuple(defaults[name] for name in positional if name in defaults) or None
    made.__kwdefaults__ = {name: value for name, value in defaults.items() if name not in positional} or None
    made.__qualname__ = code.co_qualname
    return made


def _iterator(objects: RecordObjects, node: Node) -> Any:
    source = node["iterator"]
    _fill_all(objects, source)
    found = objects.value(source)
    return iterator_at(found() if "called" in node else found, node["index"])


def _fill_all(objects: RecordObjects, node: Any) -> None:
    """Fill the objects that a picture names itself."""
    if isinstance(node, dict) and "cell" in node:
        objects.filled(node["cell"])
    else:
        for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            _fill_all(objects, part)


def _branches(objects: RecordObjects, node: Node) -> Any:
    return Branches(objects.values(node["branches"]))


def _handle(objects: RecordObjects, node: Node) -> Any:
    path = fill_holes(node["path"], objects.values(node["holes"]))
    return objects.bound.program.new_state(objects.value(node["handle"]), path)


def _turn(objects: RecordObjects, node: Node) -> Any:
    return RoleBlock(objects.value(node["turn"]), node["role"])


_MAKERS: dict[str, Callable[[RecordObjects, Node], Any]] = {
    "tuple": _tuple,
    "named_tuple": _named_tuple,
    "function": _function,
    "iterator": _iterator,
    "same": lambda objects, node: objects.value(node["same"]),
    "branches": _branches,
    "handle": _handle,
    "turn": _turn,
    "error": lambda objects, node: objects.value(node["error"]),
}

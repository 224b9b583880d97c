"""Python's own functions and text methods: run at once on plain values, ops on symbolic ones.

To let another builtin be captured, add it to ``lmc/ir/builtins.py`` and to ``_PURE`` here.
"""

from __future__ import annotations

import builtins as python
from abc import ABCMeta
from collections.abc import Callable, Iterator
from enum import EnumMeta
from types import UnionType
from typing import TYPE_CHECKING, Any

import pydantic

from lmc.frontend.branches import Branches
from lmc.frontend.harmless import is_deeply_harmless, is_harmless, is_standard_module
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.specs import Record
from lmc.frontend.state import State
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT, ListType, type_of

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

Handler = Callable[..., Any]

PURE_TYPES = frozenset({str, bytes, int, float, bool, complex, list, tuple, dict, set, frozenset, range})
MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "__setitem__",
        "__delitem__",
        "__iadd__",
    ]
)
_PLAIN_CLASSES = (type, ABCMeta, EnumMeta, type(pydantic.BaseModel))
_PYTHON_TYPES: dict[Any, type] = {TEXT: str, INT: int, FLOAT: float, BOOL: bool, NONE: type(None)}
_PURE = ("int", "float", "bool", "repr", "ascii", "abs", "round", "ord", "chr", "len")
_OVER_ITEMS = ("min", "max", "sum")
_AT_CAPTURE = [
    "bytes",
    "bytearray",
    "complex",
    "frozenset",
    "set",
    "tuple",
    "dict",
    "slice",
    "divmod",
    "pow",
    "hash",
    "hex",
    "oct",
    "bin",
    "next",
    "object",
]


def _symbolic(value: Any) -> bool:
    return type(value) is Proxy or type(value) is ProxyMethod or holds_proxy(value)


def _pure(name: str) -> Handler:
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
        if name == "len" and len(args) == 1 and type(args[0]) is Proxy and not kwargs:
            return recorder.length(args[0])
        if len(args) == 1 and name == "bool" and type(args[0]) is Proxy and symbol(args[0]).type == BOOL:
            return args[0]
        shallow = name in ("len", "bool")  # these never look at the items
        if any(type(value) is Proxy or (not shallow and _symbolic(value)) for value in (*args, *kwargs.values())):
            return recorder.pure(name, args, kwargs)
        if len(args) == 1 and not kwargs and _is_foreign(args[0], shallow=shallow):
            return ops.foreign(recorder, name, args)
        return ops.at_capture(recorder, function, args, kwargs)

    return handle


def _is_foreign(value: Any, *, shallow: bool) -> bool:
    """Whether a builtin would run the user's code on ``value``, or read what may change."""
    if type(value) in (State, Branches):
        return False
    return not (is_harmless(value) if shallow else is_deeply_harmless(value))


class _SymbolicItem(BaseException):
    """Ends a builtin that goes over plain items when a symbolic one comes; private to ``_over_items``."""


def _over_items(name: str) -> Handler:
    """``sum``, ``min`` and ``max``: they look at each item before they take the next one."""
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
        several = name != "sum" and len(args) > 1
        if not args or "key" in kwargs or several or type(args[0]) in (list, tuple, Proxy):
            if "key" not in kwargs and _symbolic(args):
                return recorder.pure(name, args, kwargs)
            return ops.at_capture(recorder, function, args, kwargs)
        items = iter(ops.iterate(args[0]))
        taken: list[Any] = []

        def plain() -> Iterator[Any]:
            for item in items:
                taken.append(item)
                if type(item) is Proxy:
                    raise _SymbolicItem
                yield item

        try:
            return ops.at_capture(recorder, function, (plain(), *args[1:]), kwargs)
        except _SymbolicItem:
            pass
        # From here on the items are looked at when the program runs, after all of them are made: the same only where
        # looking at them can't raise.
        for _ in _until_unlike(taken, name):
            try:
                taken.append(next(items))
            except StopIteration:
                return recorder.pure(name, (taken, *args[1:]), kwargs)
        raise recorder.stop(
            f"{name}() looks at each item before it takes the next, and some are known only when the program runs",
            f"make a list of them first: {name}([...])",
        )

    return handle


def _until_unlike(items: list[Any], name: str) -> Iterator[None]:
    """Go on as long as all ``items``, which grow meanwhile, are numbers, or for ``min`` and ``max`` all texts."""
    texts = [TEXT] if name != "sum" else []
    while True:
        kinds = {symbol(item).type if type(item) is Proxy else type_of(item) for item in items}
        if not (kinds <= {INT, FLOAT, BOOL} or list(kinds) == texts):
            return
        yield


def _at_capture(name: str) -> Handler:
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
        if name in ("tuple", "set", "frozenset") and len(args) == 1:
            args = (ops.iterate(args[0]),)
        return ops.at_capture(recorder, function, args, kwargs)

    return handle


def _str(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs and (_symbolic(args[0])):
        return ops.text_of(recorder, args[0])
    if len(args) == 1 and not kwargs and _is_foreign(args[0], shallow=False):
        return ops.foreign(recorder, "str", args)
    return ops.at_capture(recorder, str, args, kwargs)


def _format(ops: Operators, recorder: Recorder, value: Any, spec: Any = "", /) -> Any:
    if _symbolic(value) or _symbolic(spec):
        return ops.symbolic_format(recorder, value, "", spec)
    return ops.at_capture(recorder, format, (value, spec), {})


def _sorted(ops: Operators, recorder: Recorder, items: Any, /, **kwargs: Any) -> Any:
    if type(items) is Proxy and "key" not in kwargs:
        return recorder.pure("sorted", (items,), kwargs)
    found = list(ops.iterate(items))
    if "key" in kwargs or not _symbolic(found):
        return ops.at_capture(recorder, sorted, (found,), kwargs)
    # Only the order is not known: the result is a list of as many items, made here.
    whole = recorder.pure("sorted", (found,), kwargs)
    if symbol(whole).volatile:
        raise recorder.stop(
            "sorted() looks at values that the user's functions may still change", "annotate what the tool returns"
        )
    return [recorder.pure("getitem", (whole, index), total=True) for index in range(len(found))]


def _quantifier(name: str) -> Handler:
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, items: Any, /) -> Any:
        if type(items) is Proxy or (type(items) in (list, tuple) and holds_proxy(items)):
            return recorder.pure(name, (items,))

        def plain() -> Any:
            for item in ops.iterate(items):
                if type(item) is Proxy:
                    raise recorder.stop(
                        f"{name}() stops at the first item that decides, which is known only when the program runs",
                        f"make a list of the conditions first: {name}([...])",
                    )
                yield item

        return function(plain())

    return handle


def _list(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs:
        return list(ops.iterate(args[0]))
    return ops.at_capture(recorder, list, args, kwargs)


def _range(ops: Operators, recorder: Recorder, /, *args: Any) -> Any:
    return ops.at_capture(recorder, range, tuple(recorder.concrete(value) for value in args), {})


def _zip(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
    return ops.at_capture(recorder, zip, tuple(iter(ops.iterate(value)) for value in args), kwargs)


def _enumerate(ops: Operators, recorder: Recorder, items: Any, start: Any = 0) -> Any:
    return enumerate(ops.iterate(items), recorder.concrete(start))


def _reversed(ops: Operators, recorder: Recorder, items: Any, /) -> Any:
    if type(items) is Proxy:
        items = list(ops.iterate(items))
    if type(items) is Branches:
        return reversed(items)
    return ops.watched(recorder, items, ops.at_capture(recorder, reversed, (items,), {}))


def _iter(ops: Operators, recorder: Recorder, /, *args: Any) -> Any:
    if len(args) == 1:
        return iter(ops.iterate(args[0]))
    raise recorder.stop("iter() with a sentinel calls a function again and again", "write a loop")


def _map(ops: Operators, _recorder: Recorder, function: Any, /, *iterables: Any) -> Any:
    return ops.mapped(function, *(ops.iterate(items) for items in iterables))


def _filter(ops: Operators, _recorder: Recorder, function: Any, items: Any, /) -> Any:
    return ops.filtered(function, ops.iterate(items))


def _isinstance(_ops: Operators, recorder: Recorder, value: Any, kinds: Any, /) -> Any:
    _check_classes(recorder, kinds)
    if any("__class__" in vars(base) for base in type(value).__mro__[:-1]):
        raise recorder.stop("the class of this object is said by its own code", "do it in a tool")
    if type(value) is Record:
        return issubclass(value.kind, kinds)
    if type(value) is Proxy:
        return issubclass(_type_of(recorder, value), kinds)
    return isinstance(value, kinds)


def _issubclass(_ops: Operators, recorder: Recorder, kind: Any, kinds: Any, /) -> Any:
    if not isinstance(kind, type):
        raise recorder.stop("issubclass() takes what is no plain class", "do it in a tool")
    _check_classes(recorder, kinds)
    return issubclass(kind, kinds)


def _check_classes(recorder: Recorder, kinds: Any) -> None:
    """Break where a class, or one of several, may run the user's code to say what belongs to it."""
    if type(kinds) is tuple:
        for kind in kinds:
            _check_classes(recorder, kind)
    elif type(kinds) is UnionType:
        _check_classes(recorder, kinds.__args__)
    elif not is_plain_class(kinds):
        raise recorder.stop(
            "what belongs to this class may be said by its own code (`__instancecheck__`, a protocol)",
            "ask for a plain class, or do it in a tool",
        )


def is_plain_class(kind: Any) -> bool:
    """Whether what belongs to ``kind`` follows from its bases alone, or is said by Python's own code."""
    if type(kind) not in _PLAIN_CLASSES or getattr(kind, "_is_protocol", False):
        return False
    if type(kind) in (type, EnumMeta):
        return True
    hooks = [vars(base).get("__subclasshook__") for base in kind.__mro__]
    return all(hook is None or is_standard_module(getattr(hook, "__module__", "") or "builtins") for hook in hooks)


def _type(_ops: Operators, recorder: Recorder, /, *args: Any) -> Any:
    if len(args) != 1:
        raise recorder.stop("type() makes a class", "define the class outside of the program")
    if type(args[0]) is Record:
        return args[0].kind
    return _type_of(recorder, args[0]) if type(args[0]) is Proxy else type(args[0])


def _type_of(recorder: Recorder, value: Proxy) -> type:
    kind = symbol(value).type
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    what = "a list or a tuple" if isinstance(kind, ListType) else "anything"
    raise recorder.stop(
        f"{symbol(value).origin} may be {what}; its class is known only when the program runs",
        "annotate what the tool returns",
    )


def _callable(_ops: Operators, recorder: Recorder, value: Any, /) -> bool:
    if type(value) is Record:
        return any("__call__" in vars(base) for base in value.kind.__mro__)
    return callable(_type_of(recorder, value)()) if type(value) is Proxy else callable(value)


_NO_DEFAULT: Any = object()


def _getattr(ops: Operators, recorder: Recorder, owner: Any, name: Any, default: Any = _NO_DEFAULT, /) -> Any:
    key = recorder.concrete(name)
    if default is _NO_DEFAULT:
        return ops.read_attribute(recorder, owner, key)
    if type(owner) is Proxy:
        raise recorder.stop("whether a value has an attribute is known only when the program runs", "do it in a tool")
    try:
        return ops.read_attribute(recorder, owner, key)
    except AttributeError:
        return default


def _hasattr(ops: Operators, recorder: Recorder, owner: Any, name: Any, /) -> bool:
    if type(owner) is Proxy:
        return hasattr(_type_of(recorder, owner), recorder.concrete(name))
    return _getattr(ops, recorder, owner, name, _MISSING) is not _MISSING


_MISSING: Any = object()

_SPECIAL: dict[str, Handler] = {
    "str": _str,
    "format": _format,
    "sorted": _sorted,
    "any": _quantifier("any"),
    "all": _quantifier("all"),
    "list": _list,
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "iter": _iter,
    "map": _map,
    "filter": _filter,
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "type": _type,
    "callable": _callable,
    "getattr": _getattr,
    "hasattr": _hasattr,
}
HANDLERS: dict[int, Handler] = {
    id(getattr(python, name)): handler
    for name, handler in (
        *((name, _pure(name)) for name in _PURE),
        *((name, _over_items(name)) for name in _OVER_ITEMS),
        *((name, _at_capture(name)) for name in _AT_CAPTURE),
        *_SPECIAL.items(),
    )
}

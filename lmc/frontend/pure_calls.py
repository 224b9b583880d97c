"""Python's own functions and text methods: run at once on plain values, ops on symbolic ones.

To let another builtin be captured, add it to ``lmc/ir/builtins.py`` and to ``_PURE`` here.
"""

from __future__ import annotations

import builtins as python
from typing import TYPE_CHECKING, Any

from lmc.frontend.class_calls import CLASS_HANDLERS
from lmc.frontend.disorder import has_fixed_hash, is_disordered
from lmc.frontend.growing import is_grown
from lmc.frontend.harmless import is_deeply_harmless, is_harmless
from lmc.frontend.item_calls import ITEM_HANDLERS, Handler, is_symbolic
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.unknown_items import HoldsUnknownItems
from lmc.ir.types import BOOL

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

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
_PURE = ("int", "float", "bool", "repr", "ascii", "abs", "round", "ord", "chr", "len")
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


def _pure(name: str) -> Handler:
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(ops.settled, args))
        if name == "len" and len(args) == 1 and type(args[0]) is Proxy and not kwargs:
            return recorder.length(args[0])
        if name == "len" and len(args) == 1 and issubclass(type(args[0]), HoldsUnknownItems):
            return args[0].as_items().length()
        if len(args) == 1 and name == "bool" and type(args[0]) is Proxy and symbol(args[0]).type == BOOL:
            return args[0]
        shallow = name in ("len", "bool")  # these never look at the items
        if any(type(value) is Proxy or (not shallow and is_symbolic(value)) for value in (*args, *kwargs.values())):
            return recorder.pure(name, args, kwargs)
        if len(args) == 1 and not kwargs and _is_foreign(args[0], shallow=shallow):
            return ops.foreign(recorder, name, args)
        if name in ("repr", "ascii"):
            ops.check_text(recorder, args)
        return ops.at_capture(recorder, function, args, kwargs)

    return handle


def _is_foreign(value: Any, *, shallow: bool) -> bool:
    """Whether a builtin would run the user's code on ``value``, or read what may change."""
    if issubclass(type(value), Handle):
        return False
    return not (is_harmless(value) if shallow else is_deeply_harmless(value))


def _at_capture(name: str) -> Handler:
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
        if name == "hash" and len(args) == 1 and not has_fixed_hash(args[0]):
            raise recorder.stop(
                "the hash of anything but a number differs from one run of Python to the next", "use the value itself"
            )
        if name == "set" and len(args) == 1 and not kwargs:
            items = ops.settled(args[0])
            if type(items) is Proxy or (type(items) in (list, tuple) and holds_proxy(items)):
                return recorder.pure("set_from", (items,))
        if name in ("tuple", "dict") and len(args) == 1 and is_grown(args[0]):
            return recorder.pure(f"{name}_from", (args[0],))
        if name in ("tuple", "set", "frozenset") and len(args) == 1 and not is_disordered(args[0]):
            args = (ops.taken(args[0]),)
        made = ops.at_capture(recorder, function, args, kwargs)
        return recorder.born(made) if name in ("dict", "set") else made

    return handle


def _str(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs and (is_symbolic(args[0])):
        return ops.text_of(recorder, args[0])
    if len(args) == 1 and not kwargs and _is_foreign(args[0], shallow=False):
        return ops.foreign(recorder, "str", args)
    ops.check_text(recorder, args)
    return ops.at_capture(recorder, str, args, kwargs)


def _format(ops: Operators, recorder: Recorder, value: Any, spec: Any = "", /) -> Any:
    if is_symbolic(value) or is_symbolic(spec):
        return ops.symbolic_format(recorder, value, "", spec)
    ops.check_text(recorder, value)
    return ops.at_capture(recorder, format, (value, spec), {})


_SPECIAL: dict[str, Handler] = {"str": _str, "format": _format, **ITEM_HANDLERS, **CLASS_HANDLERS}
HANDLERS: dict[int, Handler] = {
    id(getattr(python, name)): handler
    for name, handler in (
        *((name, _pure(name)) for name in _PURE),
        *((name, _at_capture(name)) for name in _AT_CAPTURE),
        *_SPECIAL.items(),
    )
}

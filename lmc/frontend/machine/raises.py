"""The exceptions that an op may raise, and whether a handler may catch them."""

from __future__ import annotations

from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.errors import LmcError
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, JsonType, ListType, type_of

Classes = tuple[type[BaseException], ...]
OF_MODELS: Classes = (LmcError, OSError, RuntimeError)
"""Exceptions that calls of a model may raise: lmc's own, or those of the system and the network."""
# What those never are.
_OF_VALUES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, NameError)
_NUMBERS = frozenset({INT, FLOAT, BOOL})
_ARITHMETIC = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod"})
# What raises nothing where the separator is not empty.
_SEPARATING = frozenset({"str.split", "str.rsplit", "str.partition", "str.rpartition"})


def raised_by(op: Op) -> Classes | None:
    """The classes of all that ``op`` may raise; None where that is not known."""
    if op.billable:
        return OF_MODELS
    if not isinstance(op, PyCallOp) or op.keywords:
        return None
    types = [part.type if isinstance(part, Value) else type_of(part) for part in op.arguments]
    if op.function in ("int", "float") and types == [TEXT]:
        return (ValueError,)
    if op.function == "getitem" and types[1] in (INT, BOOL) and (types[0] == TEXT or isinstance(types[0], ListType)):
        return (IndexError,)
    if op.function == "field" and isinstance(types[0], JsonType):
        return (KeyError, AttributeError)
    if op.function in _SEPARATING and len(types) == 2 and types[0] == TEXT:
        separator = op.arguments[1]
        return () if type(separator) is str and separator else None
    if op.function in _ARITHMETIC and _NUMBERS.issuperset(types):
        return (ZeroDivisionError, OverflowError)
    return None


def may_take(handler: Classes, raised: Classes) -> bool:
    """Return whether a handler of these classes may take an exception of one of those, or of a class under it."""
    if set(OF_MODELS) <= set(raised):
        raised = tuple(kind for kind in raised if kind not in OF_MODELS)
        others = any(issubclass(kind, handler) or issubclass(each, kind) for kind in raised for each in handler)
        return others or not all(issubclass(kind, _OF_VALUES) and not issubclass(kind, LmcError) for kind in handler)
    return any(issubclass(kind, handler) or issubclass(each, kind) for kind in raised for each in handler)


def takes_all(handler: Classes, raised: Classes) -> bool:
    """Return whether a handler of these classes takes whatever is of one of those."""
    return LmcError not in raised and all(issubclass(kind, handler) for kind in raised)

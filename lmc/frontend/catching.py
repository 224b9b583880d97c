"""What a ``try`` of the user's may catch: which classes it names, and what an op may raise, as far as that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import RAISED_CAUSE, RAISED_REMEDY, CaptureBreak
from lmc.ir.core import Op, Value
from lmc.ir.errors import LmcError
from lmc.ir.ops import PyCallOp
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, JsonType, ListType, type_of

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder

Kinds = Callable[[], tuple[Any, ...]]
"""Reads the classes, or tuples of classes, that handlers name, in order."""
Classes = tuple[type[BaseException], ...]
# What engines never raise: their errors are LmcErrors, or those of the system and the network.
_OF_VALUES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, NameError)
_NUMBERS = frozenset({INT, FLOAT, BOOL})
_ARITHMETIC = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod"})

# What raises nothing where the separator is not empty.
_SEPARATING = frozenset({"str.split", "str.rsplit", "str.partition", "str.rpartition"})


class Protected:
    """A block in which exceptions of ``kinds`` are caught; where that is None, any may be caught or seen."""

    def __init__(self, recorder: Recorder, kinds: Kinds | None) -> None:
        self._recorder = recorder
        self._classes = None if kinds is None else _classes(kinds)
        self._branch = recorder.branch

    def __enter__(self) -> None:
        self._recorder.catching.append(self._classes)

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        recorder = self._recorder
        recorder.catching.pop()
        if kind is not None and kind is not CaptureBreak and recorder.branch is not self._branch:
            raise recorder.stop(RAISED_CAUSE, RAISED_REMEDY)


def may_be_caught(op: Op, raises: Classes | None, catching: list[Classes | None]) -> bool:
    """Whether what ``op`` may raise (``raises``, where more is known than its kind says) may be caught around it."""
    if not catching or not op.may_raise:
        return False
    if op.billable:
        return not all(map(_catches_values_alone, catching))
    found = _raised_by(op) if raises is None else raises
    return found is None or any(classes is None or _take(classes, found) for classes in catching)


def _take(classes: Classes, raised: Classes) -> bool:
    """Whether an exception of a class of ``raised`` may belong to one of ``classes``."""
    return any(issubclass(kind, classes) for kind in raised)


def _raised_by(op: Op) -> Classes | None:
    """The classes of all that ``op`` may raise; None where that is not known."""
    if not isinstance(op, PyCallOp) or op.keywords:
        return None
    types = [part.type if isinstance(part, Value) else type_of(part) for part in op.arguments]
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


def _classes(kinds: Kinds) -> Classes | None:
    """The classes that ``kinds`` names; None where there is something else among them."""
    try:
        found = kinds()
    except NameError:
        return None
    classes = [part for kind in found for part in (kind if type(kind) is tuple else (kind,))]
    return tuple(classes) if all(type(part) is type and issubclass(part, BaseException) for part in classes) else None


def _catches_values_alone(classes: Classes | None) -> bool:
    """Whether nothing that a call of a model raises is among ``classes``."""
    return bool(classes) and all(issubclass(kind, _OF_VALUES) and not issubclass(kind, LmcError) for kind in classes)

"""Reads of the exception that is being handled, as by ``sys.exc_info``."""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType
from typing import Any

_LOOKS_AT_IT = frozenset(["exc_info", "exception", "format_exc", "print_exc"])
_MAX_FUNCTIONS = 1000


def looks_at_exceptions(value: Any) -> bool:
    """Return True for a function that, itself or by those it calls, may read the exception being handled."""
    waiting = [value]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        while isinstance(found, MethodType):
            found = found.__func__
        if id(found) in seen:
            continue
        seen.add(id(found))
        if type(found).__module__.startswith("lmc."):  # a tool or a program
            waiting.append(getattr(found, "function", None))
        if isinstance(found, FunctionType):
            names = {name for code in _codes(found.__code__) for name in code.co_names}
            if names & _LOOKS_AT_IT or len(seen) > _MAX_FUNCTIONS:
                return True
            waiting += [found.__globals__.get(name) for name in names]
    return False


def _codes(code: CodeType) -> list[CodeType]:
    inner = [entry for entry in code.co_consts if isinstance(entry, CodeType)]
    return [code, *(deeper for entry in inner for deeper in _codes(entry))]

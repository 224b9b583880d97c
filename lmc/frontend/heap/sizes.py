"""Limits for values that a capture computes at once, and for literals in the graph."""

from __future__ import annotations

from typing import Any

MAX_CHARACTERS = 1 << 20
MAX_BITS = 4096  # of a whole number in the graph; Python writes out 4300 digits at most
_MAX_ITEMS = 1 << 22
_MAX_WORKING_BITS = 1 << 20
_SEQUENCES = (str, bytes, list, tuple)
_WIDTHS = frozenset({"zfill", "ljust", "rjust", "center"})

CAUSE = "what this makes is too large to be a part of the graph"
REMEDY = "nothing has to change: it runs eagerly from here; to have the rest compiled, make it before and pass it in"


def is_too_large(value: Any) -> bool:
    """Return True if a literal is too large for a graph."""
    if type(value) is str:
        return len(value) > MAX_CHARACTERS
    if type(value) is int:
        return value.bit_length() > MAX_BITS
    return type(value) is tuple and any(map(is_too_large, value))


def grows(name: str, operands: tuple[Any, ...]) -> bool:
    """Return True if the operator or method ``name`` would have a far larger result than its operands."""
    name = name.removeprefix("str.")
    if len(operands) < 2:
        return False
    left, right = operands[0], operands[1]
    if name in ("mul", "imul"):
        count, items = (left, right) if isinstance(left, int) else (right, left)
        return isinstance(count, int) and type(items) in _SEQUENCES and len(items) * count > _MAX_ITEMS
    if name in _WIDTHS:
        return isinstance(right, int) and right > _MAX_ITEMS
    if not isinstance(left, int) or not isinstance(right, int) or right <= 0:
        return False
    if name in ("pow", "ipow"):
        return len(operands) == 2 and abs(left) > 1 and left.bit_length() * right > _MAX_WORKING_BITS
    return name in ("lshift", "ilshift") and left != 0 and left.bit_length() + right > _MAX_WORKING_BITS

"""What statements of Python's do with values that only a run knows, with the errors that Python raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def bound(present: bool, value: Any, name: str) -> Any:
    """A variable of a function, which may not be bound."""
    if not present:
        raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
    return value


def asserted(holds: object, *message: object) -> None:
    """``assert holds, message``."""
    if not holds:
        raise AssertionError(*message)


def _unpack_two(items: Any) -> list[Any]:
    first, second = items
    return [first, second]


def _unpack_three(items: Any) -> list[Any]:
    first, second, third = items
    return [first, second, third]


def _unpack_four(items: Any) -> list[Any]:
    first, second, third, fourth = items
    return [first, second, third, fourth]


# ``a, b = items`` by how many names there are; what does not fit raises what Python says then.
UNPACKING: dict[int, Callable[[Any], list[Any]]] = {2: _unpack_two, 3: _unpack_three, 4: _unpack_four}

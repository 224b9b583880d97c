"""Values of regions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmc.ir.core import Value


class Scope(dict[Value, Any]):
    """The values of a region; those of the blocks around it are looked up there."""

    __slots__ = ("_outer",)

    def __init__(self, outer: Mapping[Value, Any], values: Iterable[tuple[Value, Any]]) -> None:
        super().__init__(values)
        self._outer = outer

    def __missing__(self, value: Value) -> Any:
        found = self[value] = self._outer[value]
        return found

    def knows(self, value: Value) -> bool:
        """Return True if it is defined here, or in the blocks around."""
        try:
            self[value]
        except KeyError:
            return False
        return True

"""Stable ids in a capture: text, with the values that say which use it is (``lmc.ir.ids``)."""

from __future__ import annotations

from lmc.ir.core import Value


class Id(str):
    """A stable id with the values in its holes."""

    __slots__ = ("holes",)
    holes: tuple[Value, ...]

    @staticmethod
    def of(text: str, holes: tuple[Value, ...]) -> str:
        """``text`` as an id; a plain one where it has no holes."""
        if not holes:
            return text
        made = Id(text)
        made.holes = holes
        return made


def holes_of(name: str) -> tuple[Value, ...]:
    """The values in the holes of an id or a path; most have none."""
    return name.holes if type(name) is Id else ()

"""JSON objects as text, with the places of their values: compact, or over several lines with one key each."""

from __future__ import annotations

import json
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value]"


class _Writer:
    """Text written so far and the character ranges of the values in it."""

    def __init__(self, indent: int | None) -> None:
        self.indent = indent
        self.text = ""
        self.ranges: list[tuple[int, int]] = []

    def value(self, value: Value, depth: int) -> None:
        if isinstance(value, dict):
            self._object(value, depth)
        elif isinstance(value, list):
            self.text += "["
            for index, item in enumerate(value):
                self.text += ("," if self.indent is None else ", ") if index else ""
                self.value(item, depth)
            self.text += "]"
        else:
            start = len(self.text)
            self.text += json.dumps(value, ensure_ascii=False)
            self.ranges.append((start, len(self.text)))

    def _object(self, fields: dict[str, Value], depth: int) -> None:
        self.text += "{"
        for index, (key, value) in enumerate(fields.items()):
            self.text += "," if index else ""
            self.text += self._line(depth + 1) + json.dumps(key, ensure_ascii=False)
            self.text += ":" if self.indent is None else ": "
            self.value(value, depth + 1)
        self.text += self._line(depth) + "}"

    def _line(self, depth: int) -> str:
        return "" if self.indent is None else "\n" + " " * (self.indent * depth)


def render(fields: dict[str, Value], indent: int | None = None) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the object as JSON text and the character ranges of its values, strings with their quotes.

    Without `indent` it is compact; with it every key starts a line and lists stay on theirs. An empty list or object
    has no value and so no range.
    """
    writer = _Writer(indent)
    writer.value(fields, 0)
    return writer.text, tuple(writer.ranges)

"""Appends ops to a block and names their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmc.ir.core import Block, Op, Value
from lmc.ir.errors import Location
from lmc.ir.types import Type


class Builder:
    """Builds one block. Results are called ``%0``, ``%1`` … unless a free name is asked for."""

    def __init__(self, parameters: Sequence[Value] = ()) -> None:
        self.parameters = tuple(parameters)
        self.ops: list[Op] = []
        self._names = {parameter.name for parameter in parameters}
        self._suffixes: dict[str, int] = {}
        self._next = 0

    def emit(
        self,
        kind: type[Op],
        types: Sequence[Type] = (),
        *,
        names: Sequence[str | None] = (),
        location: Location | None = None,
        **fields: Any,
    ) -> tuple[Value, ...]:
        """Append an op of class ``kind`` with results of ``types``; gives the results. ``names`` are wishes."""
        wishes = [*names, *[None] * (len(types) - len(names))]
        results = tuple(
            Value(self.fresh_name(wish), result_type) for wish, result_type in zip(wishes, types, strict=True)
        )
        self.ops.append(kind(results=results, location=location, **fields))
        return results

    def fresh_name(self, wish: str | None = None) -> str:
        """``wish`` if it is free, ``wish_1`` … if not; the next number without a wish."""
        if wish is None:
            while str(self._next) in self._names:
                self._next += 1
            name = str(self._next)
        else:
            name = wish
            while name in self._names:
                self._suffixes[wish] = self._suffixes.get(wish, 0) + 1
                name = f"{wish}_{self._suffixes[wish]}"
        self._names.add(name)
        return name

    def block(self) -> Block:
        """The block as it stands."""
        return Block(self.parameters, tuple(self.ops))

"""Appends ops to a block and names their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lmc.ir.core import Block, Op, Value
from lmc.ir.errors import Location
from lmc.ir.types import Type


class Names:
    """Hands out names, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._suffixes: dict[str, int] = {}
        self._next = 0

    def take(self, names: Iterable[str]) -> None:
        """From now on ``names`` are taken."""
        self._taken.update(names)

    def fresh(self, wish: str | None = None) -> str:
        """``wish`` if it is free, ``wish_1`` … if not; the next number without a wish."""
        if wish is None:
            while str(self._next) in self._taken:
                self._next += 1
            name = str(self._next)
        else:
            name = wish
            while name in self._taken:
                self._suffixes[wish] = self._suffixes.get(wish, 0) + 1
                name = f"{wish}_{self._suffixes[wish]}"
        self._taken.add(name)
        return name


class Builder:
    """Builds one block. Results are called ``%0``, ``%1`` … unless a free name is asked for."""

    def __init__(self, parameters: Sequence[Value] = (), *, names: Names | None = None) -> None:
        self.parameters = tuple(parameters)
        self.ops: list[Op] = []
        self._names = names or Names()
        self._names.take(parameter.name for parameter in parameters)

    def nested(self, parameters: Sequence[Value] = ()) -> Builder:
        """A builder of a region: its names and those of this one differ."""
        return Builder(parameters, names=self._names)

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
        fresh = self._names.fresh
        wishes = [*names, *[None] * (len(types) - len(names))]
        results = tuple([Value(fresh(wish), each) for wish, each in zip(wishes, types, strict=True)])
        self.ops.append(kind(results=results, location=location, **fields))
        return results

    def fresh_name(self, wish: str | None = None) -> str:
        """``wish`` if it is free, ``wish_1`` … if not; the next number without a wish."""
        return self._names.fresh(wish)

    def block(self) -> Block:
        """The block as it stands."""
        return Block(self.parameters, tuple(self.ops))

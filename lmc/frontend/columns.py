"""Values of the elements of a ``cf.map`` as lists of the graph, one entry for each element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.emitting import SCALARS
from lmc.frontend.growing import is_value_list
from lmc.frontend.meeting import is_scalar
from lmc.frontend.proxy import Proxy, Symbol, symbol
from lmc.frontend.unclear import ABSENT, Maybe, Unclear
from lmc.ir.core import Value
from lmc.ir.types import Type, list_of, type_of

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


@dataclass(frozen=True)
class Column:
    """What differs from one element to the next: ``lists`` hold one entry for each.

    ``like`` are the symbols of one element: of the value, and before it, where there may be none, of whether there is.
    """

    lists: tuple[Value, ...]
    like: tuple[Symbol, ...]

    def of(self, values: tuple[Value, ...]) -> Any:
        """What it is in the element whose entries are ``values``."""
        entries = [Proxy(replace(found, value=value)) for found, value in zip(self.like, values, strict=True)]
        return entries[0] if len(entries) == 1 else Maybe(*entries)


def as_list(column: Column) -> Proxy:
    """The list of its values, all of which are there."""
    (values,) = column.lists
    return Proxy(replace(column.like[0], type=values.type, value=values, scalar=False))


class Columns:
    """What the body of a map that is being built yields, and the lists that become of it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.yields: list[Any] = []
        self.lists: list[Value] = []

    def of(self, *values: Any) -> Column:
        """The column of what is ``values`` in one element."""
        like: list[Symbol] = []
        lists: list[Value] = []
        for value in values:
            ir = self.ir(value)
            kind = ir.type if type(ir) is Value else type_of(ir)
            plain = Symbol(self._recorder, kind, None, "what a branch has", scalar=type(value) in SCALARS)
            known = symbol(value) if type(value) is Proxy else plain
            like.append(replace(known, value=None, expression=None, parts=(), type=kind))
            lists.append(self.listed(ir, kind))
        return Column(tuple(lists), tuple(like))

    def variable(self, value: Any, name: str) -> Any:
        """The column of a variable of a state; where there can be none, what stands for that in all elements."""
        if value is ABSENT or type(value) is Unclear:
            return value
        if type(value) is Maybe:
            return self.of(value.present, value.value)
        return self.of(value) if is_scalar(value) or is_value_list(value) else Unclear(name)

    def listed(self, value: Any, kind: Type) -> Value:
        """The list of what the IR value or literal ``value``, of type ``kind``, is in each element."""
        self.yields.append(value)
        self.lists.append(Value(self._recorder.builder.fresh_name(), list_of(kind)))
        return self.lists[-1]

    def ir(self, value: Any) -> Any:
        """``value`` as an IR value or literal of the element."""
        found = self._recorder.operand(value).ir
        if type(found) is Value:
            self._recorder.check_seen(found)
        return found

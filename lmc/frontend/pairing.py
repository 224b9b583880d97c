"""Values of the two ways through a condition that become one: scalars, tuples, and what each way made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.frontend.branches import Branches
from lmc.frontend.core import Core
from lmc.frontend.emitting import SCALARS
from lmc.frontend.growing import containers_in, element_type, is_value_list, is_volatile
from lmc.frontend.id_values import holes_of
from lmc.frontend.meeting import Meeting, Way, is_scalar
from lmc.frontend.proxy import Grown, Proxy, Symbol
from lmc.frontend.regions import put_back
from lmc.frontend.state import State
from lmc.frontend.unclear import Unclear
from lmc.frontend.unknown_items import HoldsUnknownItems
from lmc.frontend.values import is_literal
from lmc.ir.core import Value
from lmc.ir.types import ANY, list_of

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


class Pairs(Meeting):
    """The part of ``Merger`` that makes one value of two.

    Lists, dicts and handles that each way made anew become one, that of the first way, where each of the two always
    meets the same other: then which names are one object is the same on both ways.
    """

    def __init__(self, recorder: Recorder, flag: Proxy, ways: tuple[Way, Way]) -> None:
        super().__init__(recorder, flag, ways)
        self._partners: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self._paired: dict[int, bool] = {}

    def core(self, left: Core, right: Core) -> Core | None:  # noqa: ARG002
        """A core that is ``left`` on one way and ``right`` on the other; None where no contexts meet, as for values."""
        return None

    def value(self, left: Any, right: Any, name: str) -> Any:
        """What is ``left`` on one way and ``right`` on the other; ``Unclear`` where that is no one value."""
        kind = type(left)
        if left is right or (kind is type(right) and kind in SCALARS and repr(left) == repr(right)):
            return left
        if is_scalar(left) and is_scalar(right):
            return self.chosen(left, right, name)
        if kind is not type(right):
            return Unclear(name)
        if kind is tuple and len(left) == len(right):
            parts = tuple(self.value(one, other, name) for one, other in zip(left, right, strict=True))
            return Unclear(name) if any(type(part) is Unclear for part in parts) else parts
        if issubclass(kind, State):
            alike = left.is_like(right) and holes_of(left.path) == holes_of(right.path)
            return left if alike and self._are_one(left.core, right.core, name) else Unclear(name)
        if issubclass(kind, HoldsUnknownItems):
            return Unclear(name)
        if issubclass(kind, Branches):
            return left if self._are_one_group(left, right, name) else Unclear(name)
        if kind in (list, dict) and self._are_one(left, right, name):
            return left
        if kind is list and self.become_one(0, left) is None and self.become_one(1, right) is None:
            return self._copy_of_lists(left, right) or Unclear(name)
        return Unclear(name)

    def become_one(self, side: int, value: Any) -> Any:
        """What ``value`` of one way has become together with a value of the other; None where it has not."""
        if id(value) not in self._partners[side]:
            return None
        left = self._partners[1][id(value)] if side else value
        return left if self._paired.get(id(left)) else None

    def _are_one_group(self, left: Branches, right: Branches, name: str) -> bool:
        pairs = list(zip(left.handles, right.handles, strict=False))
        return len(left.handles) == len(right.handles) and all(
            type(self.value(one, other, name)) is not Unclear for one, other in pairs
        )

    def _are_one(self, left: Any, right: Any, name: str) -> bool:
        """Whether two objects can become one; then ``left`` is what that is."""
        if left is right:
            return True
        first, second = self._partners
        if first.setdefault(id(left), right) is not right or second.setdefault(id(right), left) is not left:
            return False
        if id(left) not in self._paired:
            self._paired[id(left)] = False  # while its parts are looked at, which may be itself
            new = self._is_new(0, left) and self._is_new(1, right)
            self._paired[id(left)] = new and self._made_one(left, right, name)
        return self._paired[id(left)]

    def _is_new(self, side: int, value: Any) -> bool:
        return id(value) in self.ways[side].ended.region.born

    def _made_one(self, left: Any, right: Any, name: str) -> bool:
        if type(left) is Core:
            content: Any = self.core(left, right)
            if content is None:
                return False
        elif type(left) is dict:
            if not same_keys(left, right):
                return False
            content = {key: self.value(left[key], right[key], name) for key in left}
        else:
            if not alike(left, right):
                content = self.lists(left, right)
                if content is None:
                    return False
                self._recorder.touch(left)
                put_back(left, content)
                return True
            content = [self.value(one, other, name) for one, other in zip(left, right, strict=True)]
        parts = () if type(content) is Core else content.values() if type(content) is dict else content
        if any(type(part) is Unclear for part in parts):
            return False
        put_back(left, content)
        return True

    def _copy_of_lists(self, left: list[Any], right: list[Any]) -> list[Any] | None:
        """A new list that is as one or the other, neither of which may change any more: which it is, is not known."""
        if any(id(held) in way.ended.objects for held in (left, right) for way in self.ways):
            return None  # an older list that has changed, of which it is open here what it was on each way
        copy = self.lists(left, right)
        if copy is not None:
            self._recorder.freeze(left)
            self._recorder.freeze(right)
            self._recorder.freeze(copy)
        return copy

    def _hold_changed(self, *lists: list[Any]) -> bool:
        """Whether a list or dict in these was changed on its way: by now it is what it was before."""
        return any(
            id(held) in way.ended.objects
            for way, items in zip(self.ways, lists, strict=True)
            for part in items
            for held in containers_in(part)
        )

    def lists(self, left: list[Any], right: list[Any]) -> list[Any] | None:
        """A list that is ``left`` on one way and ``right`` on the other, as one value; None where it can't be that."""
        if not (is_value_list(left) and is_value_list(right)) or self._hold_changed(left, right):
            return None
        types = {kind for kind in map(element_type, (left, right)) if kind is not None}
        element = types.pop() if len(types) == 1 else ANY
        irs = (self.ir(0, left, element), self.ir(1, right, element))
        # A list that is there on one way alone has come out of its condition as any value.
        kind = ANY if any(isinstance(ir, Value) and ir.type == ANY for ir in irs) else list_of(element)
        made = Proxy(
            Symbol(
                self._recorder,
                kind,
                self._result(irs, kind),
                "a list that grows under a condition",
                volatile=is_volatile([*left, *right]),
            )
        )
        self._recorder.grows = True
        return [Grown(made)]  # nobody else has it, so there is no need to copy it, which could only be done later


def alike(left: list[Any], right: list[Any]) -> bool:
    """Whether two lists are as long as each other, and what is known of their lengths is the same."""
    return len(left) == len(right) and all(
        one is other or Grown not in (type(one), type(other)) for one, other in zip(left, right, strict=True)
    )


def same_keys(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    """Whether both have the same keys, of the same types, in the same order."""
    return len(left) == len(right) and all(
        one is other or (type(one) is type(other) and is_literal(one) and repr(one) == repr(other))
        for one, other in zip(left, right, strict=True)
    )

"""Where the two ways of a condition meet: what each left behind becomes one state.

What is the same on both ways stays. Values that differ become results of the condition. Objects older than the
condition are merged part by part with themselves, those that each way made anew with each other. What can't be merged
is no longer known under its name (``Unclear``): to read it ends the capture there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.frontend.core import Core
from lmc.frontend.exporting import Exporter
from lmc.frontend.meeting import NotOneError, Way
from lmc.frontend.pairing import alike, same_keys
from lmc.frontend.proxy import Proxy
from lmc.frontend.regions import put_back
from lmc.frontend.unclear import ABSENT, Maybe, Unclear, one_or_unsure
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


class Merger(Exporter):
    """Merges two ways through a condition."""

    def __init__(self, recorder: Recorder, flag: Proxy, ways: tuple[Way, Way]) -> None:
        super().__init__(recorder, flag, ways)
        self._one_sided: list[tuple[Maybe, int, str]] = []

    def merge(self, names: tuple[str, ...]) -> tuple[Any, ...]:
        """The values of ``names`` behind the condition; handles, containers and counts are changed to what they are."""
        self._merge_counts()
        going_on = [side for side in (0, 1) if not self.leaves(side)]
        for way in self.ways:
            self._recorder.regions.hand_out(way.ended.region)
        if not going_on:
            return ()
        for held, contents in self._objects():
            self._recorder.touch(held)
            put_back(held, self._content(held, *contents))
        if len(going_on) == 1:
            return tuple(self.handed_out(going_on[0], value) for value in self._values_of(going_on[0]))
        triples = zip(names, self._values_of(0), self._values_of(1), strict=True)
        merged = tuple(self._variable(left, right, name) for name, left, right in triples)
        for maybe, side, name in self._one_sided:  # last, because it may be a part of what has become one
            try:
                maybe.value = self.handed_out(side, maybe.value)
            except NotOneError:
                maybe.value = Unclear(name)
        return merged

    def _values_of(self, side: int) -> tuple[Any, ...]:
        values = self.ways[side].values
        assert values is not None
        return values

    # What both ways changed

    def _objects(self) -> list[tuple[Any, tuple[Any, Any]]]:
        found: dict[int, Any] = {}
        for way in self.ways:
            if way.values is not None:
                found.update((key, held) for key, (held, _) in way.ended.objects.items())
        return [(held, (self._end_of(0, held), self._end_of(1, held))) for held in found.values()]

    def _end_of(self, side: int, held: Any) -> Any:
        """What ``held`` is at the end of one way; None where that way left."""
        way = self.ways[side]
        return None if way.values is None else way.ended.objects.get(id(held), (held, held))[1]

    def _content(self, held: Any, left: Any, right: Any) -> Any:
        if left is None or right is None:
            side = 1 if left is None else 0
            content: Any = right if left is None else left
            before = self.ways[side].ended.region.touched[id(held)][1]
            if type(held) is Core:
                return self.core_handed_out(side, content, before)
            return self.parts_handed_out(side, content, before)
        if type(held) is Core:
            return self.core(left, right)
        if type(held) is list and not alike(left, right):
            grown = self.lists(left, right)
            if grown is not None:
                return grown
        elif type(held) is list:
            return [
                one if one is other else self._certain(one, other, "an item of a list")
                for one, other in zip(left, right, strict=True)
            ]
        if type(held) is dict and same_keys(left, right):
            return {
                key: one if one is right[key] else self._certain(one, right[key], f"the entry {key!r}")
                for key, one in left.items()
            }
        raise self._recorder.stop(
            f"{with_article(type(held).__name__)} has another length or other keys on one way through this "
            "condition than on the "
            "other",
            "put in a text on both ways, or bind a new one",
        )

    def _certain(self, left: Any, right: Any, name: str) -> Any:
        """One value of what nothing would ask for by its name. Raises ``CaptureBreak`` where there is none."""
        merged = self.value(left, right, name)
        if type(merged) is Unclear:
            raise self._recorder.unclear(name)
        return merged

    def core(self, left: Core, right: Core) -> Core:
        """A core that is ``left`` on one way and ``right`` on the other."""
        made = left.like()
        made.context = self.context(left.context, right.context)
        if (left.chat, left.bare) != (right.chat, right.bare):
            # What is not known here is checked when the program runs.
            made.chat, made.bare, made.unsure = None, False, True
        made.unsure = made.unsure or right.unsure
        made.answer, made.role = one_or_unsure(left.answer, right.answer), one_or_unsure(left.role, right.role)
        made.variables = self._entries(left.variables, right.variables, "the variable")
        made.metas = self._entries(left.metas, right.metas, "the meta data of")
        return made

    def _entries(self, left: dict[str, Any], right: dict[str, Any], what: str) -> dict[str, Any]:
        merged = dict(left)
        for name in [name for name, value in left.items() if right.get(name, ABSENT) is not value]:
            merged[name] = self._variable(left[name], right.get(name, ABSENT), f"{what} {name!r}")
        merged.update(
            (name, self._variable(ABSENT, value, f"{what} {name!r}"))
            for name, value in right.items()
            if name not in left
        )
        return merged

    def _variable(self, left: Any, right: Any, name: str) -> Any:
        """What may be there on one way only."""
        if left is right:
            return left
        if not any(value is ABSENT or type(value) is Maybe for value in (left, right)):
            return self.value(left, right, name)
        present = self.value(_presence(left), _presence(right), name)
        if left is not ABSENT and right is not ABSENT:
            return Maybe(present, self.value(_content(left), _content(right), name))
        side = 0 if right is ABSENT else 1
        self._one_sided.append((Maybe(present, _content(right if side else left)), side, name))
        return self._one_sided[-1][0]

    def _merge_counts(self) -> None:
        """How many ids there are behind the condition. A way that left has taken some too, which stay its own."""
        counts = self._recorder.counts
        left, right = (way.ended.counts for way in self.ways)
        gone = [self.leaves(side) for side in (0, 1)]
        for base in dict.fromkeys((*left, *right)):
            before = counts.get(base, 0)
            ends = (left.get(base, before), right.get(base, before))
            self._recorder.regions.touch_count(base)
            if "/@" in base[0]:  # calls of host functions are told apart by where they stand
                counts[base] = max(ends)
            elif all(gone):
                counts[base] = max(ends) if type(ends[0]) is type(ends[1]) is int else _symbolic(ends)
            elif any(gone):
                side = 1 if gone[0] else 0
                counts[base] = self._count_handed_out(
                    side, ends[side], ends[1 - side], taken=base in (left, right)[1 - side]
                )
            else:
                counts[base] = self.value(*ends, base[0])

    def _count_handed_out(self, side: int, count: Any, other: Any, *, taken: bool) -> Any:
        """The count of the way that goes on: no literal where the other way may have taken the ids that follow."""
        if type(count) is int and taken and (type(other) is not int or other > count):
            return self.number_handed_out(side, count)
        return self.handed_out(side, count)


def _symbolic(counts: tuple[Any, Any]) -> Any:
    return next(count for count in counts if type(count) is not int)


def _presence(value: Any) -> Any:
    return value.present if type(value) is Maybe else value is not ABSENT


def _content(value: Any) -> Any:
    return value.value if type(value) is Maybe else value

"""The body of a loop, traced until nothing changes in it that was not known to: then it is one op.

A round begins with a symbol in each slot (``slots``) that an earlier round was seen to change. Once a round leaves no
other slot changed, and nothing of another type, what it recorded holds for every round, by induction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmc.frontend.core import Core
from lmc.frontend.growing import as_value, freeze, is_value_list
from lmc.frontend.pairing import alike, same_keys
from lmc.frontend.proxy import Proxy
from lmc.frontend.regions import Ended, put_back
from lmc.frontend.slots import ContextSlot, Items, ListSlot, Slot
from lmc.frontend.unclear import ABSENT, Unclear, one_or_unsure
from lmc.ir.core import Block, Op, Value
from lmc.ir.region_ops import ConditionOp, LoopOp, YieldOp
from lmc.ir.types import BOOL
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder

_MAX_ROUNDS = 12
Key = tuple[Any, ...]


class Carrying:
    """A loop under construction, with ``flag`` as the answer to whether there is a first round.

    ``entry`` are the values of ``names`` before it. ``results`` are those behind it, once it is closed; ``endless``
    says that then it never comes to its end. ``unsettled`` asks for one more
    round, because something outside of it is done in another way from now on.
    """

    def __init__(self, recorder: Recorder, names: tuple[str, ...], entry: tuple[Any, ...], flag: Any) -> None:
        self._recorder = recorder
        self._flag = flag
        self._slots: dict[Key, Slot] = {
            ("name", index): Slot(repr(name), value)
            for index, (name, value) in enumerate(zip(names, entry, strict=True))
        }
        self._names = tuple(self._slots)
        self._held: dict[int, Any] = {}
        if entry and entry[-1] == 0 and type(entry[-1]) is int:
            self._slots[self._names[-1]].numbers()
        self._sure: dict[int, tuple[bool | None, bool, bool]] = {}
        self._answers: dict[int, tuple[Any, ...]] = {}
        self._calls: dict[Any, int] = {}
        self._inside: dict[Key, Any] = {}
        self._assumed: set[Key] = set()
        self._refuted: set[Key] = set()
        self._rounds = 0
        self.unsettled = False
        self.results: tuple[Any, ...] = ()
        self.endless = False

    def enter(self) -> tuple[Any, ...]:
        """A round begins: what the names are then."""
        recorder = self._recorder
        recorder.step()
        carried = self._fresh()
        recorder.regions.open([value for values in carried.values() for value in values])
        self._inside = self._put(carried)
        self._assumed = {key for key in self._slots if key not in self._refuted and self._begins_true(key)}
        for key in self._assumed:
            recorder.regions.decide(carried[key][0], truth=True)
        return tuple(self._inside[key] for key in self._names)

    def joined(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of the names at the end of a round, which are ``values``."""
        return values

    def close(self, values: tuple[Any, ...], flag: Any) -> bool:
        """A round is over, with ``values`` of the names, and ``flag`` says whether there is another.

        Gives whether the loop is done: it is an op then. Else another round is to be traced.
        """
        recorder = self._recorder
        ended = recorder.regions.leave()
        left: dict[Key, Any] = dict(zip(self._names, values, strict=True))
        changed = self._take_objects(ended, left)
        self._take_counts(ended, left)
        for key, value in left.items():
            changed |= self._slots[key].take(value, self._inside.get(key, self._slots[key].entry))
        refuted = {key for key in self._assumed if not self._is_true(left[key], flag)}
        self._refuted |= refuted
        self._rounds += 1
        if self._rounds == 1 or changed or refuted or self.unsettled:
            self.unsettled = False
            if self._rounds >= _MAX_ROUNDS:
                raise recorder.stop(
                    "what a loop changes from round to round was not found out", "bind fewer variables in its rounds"
                )
            return False
        self._emit(ended, left, flag)
        return True

    # What a round has left

    def _take_objects(self, ended: Ended, left: dict[Key, Any]) -> bool:
        changed = False
        for number, (held, content) in ended.objects.items():
            before = ended.region.touched[number][1]
            if number not in self._held:
                self._held[number] = held
                changed = True
            if type(held) is Core:
                changed |= self._take_core(number, before, content, left)
            elif type(held) is list and ((number, "list") in self._slots or not alike(before, content)):
                changed |= self._take_list(number, before, content, left)
            elif type(held) is list or same_keys(before, content):
                self._take_items(number, before, content, left)
            else:
                raise self._recorder.stop(
                    "a dict has other keys after a round of this loop",
                    "put every key in before the loop, or collect in a list",
                )
        return changed

    def _take_list(self, number: int, before: list[Any], content: list[Any], left: dict[Key, Any]) -> bool:
        if not (is_value_list(before) and is_value_list(content)):
            raise self._recorder.stop(
                "a list that grows in this loop holds states, functions or objects",
                "put in texts, numbers, or lists and dicts of them",
            )
        freeze(self._recorder, [*before, *content])
        key = (number, "list")
        left[key] = content
        if key in self._slots:
            return False
        for index in range(len(before)):
            self._slots.pop((number, "item", index), None)
        self._slots[key] = ListSlot("a list", before)
        return True

    def _take_items(self, number: int, before: Any, content: Any, left: dict[Key, Any]) -> None:
        for index in content if type(content) is dict else range(len(content)):
            self._slot((number, "item", index), "an item", before[index])
            left[(number, "item", index)] = content[index]

    def _take_core(self, number: int, before: Core, content: Core, left: dict[Key, Any]) -> bool:
        key = (number, "context")
        if key not in self._slots:
            self._slots[key] = ContextSlot(before.context)
        left[key] = content.context
        for what, old, new in (
            ("variable", before.variables, content.variables),
            ("meta", before.metas, content.metas),
        ):
            for name in dict.fromkeys((*old, *new)):
                self._slot((number, what, name), f"the {what} {name!r}", old.get(name, ABSENT))
                left[(number, what, name)] = new.get(name, ABSENT)
        flags = [(core.chat, core.bare, core.unsure) for core in (before, content)]
        known = self._sure.get(number, flags[0])
        self._sure[number] = known if flags[1] in (known, flags[0]) else (None, False, True)
        noted = self._answers.get(number, (before.answer, before.role))
        found = tuple(map(one_or_unsure, noted, (content.answer, content.role)))
        self._answers[number] = found
        return self._sure[number] != known or any(new is not old for new, old in zip(found, noted, strict=True))

    def _take_counts(self, ended: Ended, left: dict[Key, Any]) -> None:
        counts = self._recorder.counts
        for base, count in ended.counts.items():
            if not all(map(self._recorder.regions.sees, base[1])):
                continue  # the ids of this round alone
            key = ("count", base)
            if "/@" in base[0]:  # calls of host functions are told apart by where they stand
                self._calls[base] = count
            else:
                self._slot(key, base[0], counts.get(base, 0))
                left[key] = count

    def _slot(self, key: Key, name: str, entry: Any) -> None:
        if key not in self._slots:
            self._slots[key] = Slot(name, entry)

    # What holds in a round because it was begun

    def _begins_true(self, key: Key) -> bool:
        slot = self._slots[key]
        return slot.types == (BOOL,) and self._is_true(slot.entry, self._flag)

    def _is_true(self, value: Any, flag: Any) -> bool:
        """Whether ``value`` is true where ``flag`` is."""
        if type(value) is not Proxy or type(flag) is not Proxy:
            return value is True
        recorder = self._recorder
        return recorder.regions.implies(recorder.value_of(flag), recorder.value_of(value))

    # The op

    def _fresh(self) -> dict[Key, tuple[Value, ...]]:
        name = self._recorder.builder.fresh_name
        return {key: tuple(Value(name(), kind) for kind in slot.types) for key, slot in self._slots.items()}

    def _put(self, carried: Mapping[Key, tuple[Value, ...]]) -> dict[Key, Any]:
        """Let everything that rounds change be what is carried for it."""
        recorder = self._recorder
        inside = {key: slot.value(recorder, carried[key]) for key, slot in self._slots.items()}
        for number, held in self._held.items():
            recorder.touch(held)
            put_back(held, self._content(number, held, inside))
        for key, value in inside.items():
            if key[0] == "count" and self._slots[key].types:
                recorder.regions.touch_count(key[1])
                recorder.counts[key[1]] = value
        return inside

    def _content(self, number: int, held: Any, inside: Mapping[Key, Any]) -> Any:
        if (number, "list") in inside:
            return inside[(number, "list")]
        if type(held) is not Core:
            keys = list(held) if type(held) is dict else range(len(held))
            found = {key: inside[(number, "item", key)] for key in keys}
            if any(type(value) is Unclear for value in found.values()):
                raise self._recorder.unclear(f"an item of {with_article(type(held).__name__)}")
            return found if type(held) is dict else list(found.values())
        made = held.like()
        made.context = inside[(number, "context")]
        made.chat, made.bare, made.unsure = self._sure[number]
        made.answer, made.role = self._answers[number]
        for what, entries in (("variable", made.variables), ("meta", made.metas)):
            found = {key[2]: value for key, value in inside.items() if key[:2] == (number, what)}
            entries.update((name, value) for name, value in found.items() if value is not ABSENT)
        return made

    def _emit(self, ended: Ended, left: Mapping[Key, Any], flag: Any) -> None:
        recorder = self._recorder
        for base, count in self._calls.items():
            recorder.regions.touch_count(base)
            recorder.counts[base] = count
        initial = [self._ir(self._flag)]
        for slot in self._slots.values():
            initial.extend(map(self._ir, slot.given(slot.entry)))
        recorder.regions.reopen(ended.region)
        ends = [self._ir(flag)]
        for key, slot in self._slots.items():
            # What the round did not touch is what it began with.
            ends.extend(map(self._ir, slot.given(left.get(key, self._inside[key]))))
        recorder.regions.close()
        results = self._fresh()
        asked = [
            value
            for values in ([Value(recorder.builder.fresh_name(), BOOL)], *self._fresh().values())
            for value in values
        ]
        recorder.emit_region_op(
            LoopOp,
            [value for values in results.values() for value in values],
            initial=tuple(initial),
            limit=None,
            condition=Block(tuple(asked), (_made(ConditionOp, flag=asked[0], values=tuple(asked[1:])),)),
            body=ended.region.block(_made(YieldOp, values=tuple(ends))),
        )
        self.endless = self._flag is True and flag is True
        inside = self._put(results)
        self.results = tuple(inside[key] for key in self._names)

    def _ir(self, value: Any) -> Any:
        if type(value) is Items:
            value = as_value(self._recorder, value.items, value.element)
        ir = value if type(value) is Value else self._recorder.operand(value).ir
        if type(ir) is Value:
            self._recorder.check_seen(ir)
        return ir


def _made(kind: type[Any], **fields: Any) -> Op:
    made: Op = kind(**fields)
    return made

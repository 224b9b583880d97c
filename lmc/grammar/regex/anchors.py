"""Placement of a pattern's anchors: the pattern without them, once every anchor is proven to be at an end.

An item that has anchors lies between two sides (``Side``). The sides of the whole pattern are those of the match; a
sequence passes its left side to its first part that may consume characters and its right side to the last one, after
applying the anchors before and behind these; an alternation passes both to every arm. An anchor whose side is
``INSIDE`` is refused, so accepted patterns mean the same as in `re`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmc.grammar.regex.syntax import (
    EMPTY,
    Alternation,
    Anchor,
    Composite,
    Concatenation,
    Item,
    Pattern,
    Repeat,
    Side,
    Text,
    refusal,
)
from lmc.ir.errors import ConstraintError

Sides = tuple[Side, Side]
"""The sides to the left and to the right of an item."""

Placed = list[tuple[Item, Sides]]
"""Parts, each with its sides."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The facts about an item that placement needs."""

    consumes: bool = True  # it matches some text that is not empty
    start: Anchor | None = None  # an anchor in it for either side
    end: Anchor | None = None
    left: Side = Side.OPEN  # what it says of its sides whichever way it matches; for items that consume nothing
    right: Side = Side.OPEN


_CONSUMING = Summary()
_NOTHING = Summary(consumes=False)


class Placement:
    """Puts every part of a pattern between its sides. Raises ``ConstraintError`` where an anchor may not stand.

    ``parts[item]``, of a composite that has anchors and may consume text, are the parts that its language is made of:
    of a sequence those that may consume text, of an alternation its arms; a repeat with anchors is an alternation of
    its item and nothing.
    """

    def __init__(self, pattern: Pattern, sides: Sides) -> None:
        self.parts: dict[Composite, Placed] = {}
        self._pattern = pattern
        self._summaries: dict[Item, Summary] = {anchor: _of_anchor(anchor) for anchor in pattern.anchors}
        for item in pattern.composites:
            self._summaries[item] = self._of_repeat(item) if isinstance(item, Repeat) else self._joined(item)
        sides_of: dict[Item, Sides] = {pattern.root: sides}
        self._check(pattern.root, *sides)
        for item in reversed(pattern.composites):
            if item in sides_of and self.is_anchored(item) and self.summary(item).consumes:
                self.parts[item] = self._parts(item, *sides_of[item])
                sides_of.update(self.parts[item])

    def is_anchored(self, item: Item) -> bool:
        """Return True if there is an anchor in it."""
        summary = self.summary(item)
        return summary.start is not None or summary.end is not None

    def summary(self, item: Item) -> Summary:
        """Return the summary of an item."""
        if isinstance(item, Text) and not item.text:
            return _NOTHING
        return self._summaries.get(item, _CONSUMING)

    def _joined(self, item: Concatenation | Alternation) -> Summary:
        # All items of a sequence have their say, so the strongest counts; of the arms of an alternation the weakest.
        is_sequence = isinstance(item, Concatenation)
        parts = [self.summary(part) for part in (item.items if is_sequence else item.arms)]
        strength = max if is_sequence else min
        return Summary(
            consumes=any(part.consumes for part in parts),
            start=next((part.start for part in parts if part.start), None),
            end=next((part.end for part in parts if part.end), None),
            left=strength(part.left for part in parts),
            right=strength(part.right for part in parts),
        )

    def _of_repeat(self, item: Repeat) -> Summary:
        inner = self.summary(item.item)
        anchor = inner.start or inner.end
        if anchor is not None and inner.consumes and (item.low, item.high) != (0, 1):
            remedy = "put it before or behind the group that is repeated"
            raise self._refusal(anchor, "an anchor in what is repeated", remedy)
        if item.low > 0:
            return inner
        return Summary(inner.consumes, inner.start, inner.end)

    def _parts(self, item: Composite, left: Side, right: Side) -> Placed:
        if isinstance(item, Concatenation):
            parts = self._of_sequence(item.items, left, right)
        else:
            arms = item.arms if isinstance(item, Alternation) else (item.item, EMPTY)
            parts: Placed = [(arm, (left, right)) for arm in arms]
        for part, sides in parts:
            self._check(part, *sides)
        return parts

    def _of_sequence(self, items: tuple[Item, ...], left: Side, right: Side) -> Placed:
        summaries = [self.summary(item) for item in items]
        consuming = [at for at, summary in enumerate(summaries) if summary.consumes]
        first, last = consuming[0], consuming[-1]
        for at, item in enumerate(items):
            if not summaries[at].consumes:
                self._check(item, left if at < first else Side.INSIDE, right if at > last else Side.INSIDE)
        left = max(left, *(summary.left for summary in summaries[:first]), Side.OPEN)
        right = max(right, *(summary.right for summary in summaries[last + 1 :]), Side.OPEN)
        return [
            (items[at], (left if at == first else Side.INSIDE, right if at == last else Side.INSIDE))
            for at in consuming
        ]

    def _check(self, item: Item, left: Side, right: Side) -> None:
        summary = self.summary(item)
        wrong = (summary.start if left is Side.INSIDE else None) or (summary.end if right is Side.INSIDE else None)
        if wrong is None:
            return
        remedy = f"put it {'first' if wrong.is_start else 'last'}"
        if len(wrong.spelling) == 1:
            remedy += rf", or write \{wrong.spelling} for the character"
        raise self._refusal(wrong, "an anchor that may stand inside of the text", remedy)

    def _refusal(self, anchor: Anchor, problem: str, remedy: str) -> ConstraintError:
        return refusal(self._pattern.text, anchor.position, len(anchor.spelling), problem, remedy)


def _of_anchor(anchor: Anchor) -> Summary:
    if anchor.is_start:
        return Summary(consumes=False, start=anchor, left=anchor.side)
    return Summary(consumes=False, end=anchor, right=anchor.side)

"""Decimal numbers between bounds, digit by digit.

A number is written as in ``-12.50``: an integer part without leading zeros, and a fraction of up to ``places`` digits,
which may end in zeros. Bounds of any size are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.strings.alphabet import DIGIT

_ZERO = ord("0")


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that is not negative: its digits before and after the point. ``is_open``: the bound itself is out."""

    whole: str
    fraction: str
    is_open: bool

    @classmethod
    def of(cls, value: Fraction, *, is_open: bool) -> Limit:
        """From a number whose decimal expansion ends."""
        whole, fraction = decimal_digits(value)
        return cls(whole, fraction, is_open)

    def admits_end(self, place: int) -> bool:
        """Return True if the number with the bound's digits up to this place, and zeros after it, is in range."""
        return not self.is_open and not self.fraction[place:].strip("0")

    def digit(self, place: int) -> int:
        """A digit of the fraction."""
        return int(self.fraction[place]) if place < len(self.fraction) else 0


def decimal_digits(value: Fraction) -> tuple[str, str]:
    """The digits before and after the point of a number that is not negative and whose decimal expansion ends."""
    places = 0
    denominator = value.denominator
    while denominator > 1:
        places += 1
        denominator //= 10 if denominator % 10 == 0 else 5 if denominator % 5 == 0 else 2
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    return (digits[:-places], digits[-places:]) if places else (digits, "")


class Decimals:
    """Numbers with up to ``places`` digits of a fraction; with 0, integers."""

    def __init__(self, arena: Arena, places: int) -> None:
        self._arena = arena
        self._places = places
        self._digit = arena.byte_set(DIGIT)
        self._point = arena.literal(b".")
        self._free = (
            arena.repeat(arena.concat(self._point, arena.repeat(self._digit, 1, places)), 0, 1)
            if places
            else arena.epsilon
        )

    def between(self, low: Limit | None, high: Limit | None) -> Node:
        """Numbers that are not negative, from ``low`` (None: 0) to ``high`` (None: without end)."""
        arena = self._arena
        if low is None:
            low = Limit("0", "", is_open=False)
        width, top = len(low.whole), None if high is None else len(high.whole)
        if top is not None and (top < width or (high is not None and top == width and low.whole > high.whole)):
            return arena.empty
        if high is not None and top == width:
            return self._same_width(low, high)
        parts = [self._from(low)]
        if top is None or top > width + 1:
            more = arena.repeat(self._digit, width, None if top is None else top - 2)
            parts.append(arena.concat(self._digits(1, 9), more, self._free))
        if high is not None:
            parts.append(self._up_to(high))
        return arena.union(parts)

    def _same_width(self, low: Limit, high: Limit) -> Node:
        """Both bounds have as many digits before the point."""
        arena = self._arena
        same = next((at for at, pair in enumerate(zip(low.whole, high.whole, strict=True)) if len(set(pair)) > 1), None)
        if same is None:
            return arena.concat(arena.literal(low.whole.encode()), self._fraction(low, high))
        rest = len(low.whole) - same - 1
        first, last = int(low.whole[same]), int(high.whole[same])
        return arena.concat(
            arena.literal(low.whole[:same].encode()),
            arena.union(
                [
                    arena.concat(self._digits(first, first), self._tail(low, same + 1, is_low=True)),
                    arena.concat(self._digits(first + 1, last - 1), self._any(rest)),
                    arena.concat(self._digits(last, last), self._tail(high, same + 1, is_low=False)),
                ]
            ),
        )

    def _from(self, low: Limit) -> Node:
        """Numbers from ``low`` on with as many digits before the point."""
        return self._tail(low, 0, is_low=True)

    def _up_to(self, high: Limit) -> Node:
        """Numbers up to ``high`` with as many digits before the point; the first is not 0 where there are several."""
        return self._tail(high, 0, is_low=False)

    def _tail(self, limit: Limit, start: int, *, is_low: bool) -> Node:
        """Return the texts after the first ``start`` digits of the limit, on its inner side."""
        arena, whole = self._arena, limit.whole
        node = self._fraction(limit, None) if is_low else self._fraction(None, limit)
        for at in range(len(whole) - 1, start - 1, -1):
            own = int(whole[at])
            lowest = 1 if at == 0 and len(whole) > 1 else 0
            inner = self._digits(own + 1, 9) if is_low else self._digits(lowest, own - 1)
            node = arena.union(
                [arena.concat(self._digits(own, own), node), arena.concat(inner, self._any(len(whole) - at - 1))]
            )
        return node

    def _any(self, digits: int) -> Node:
        return self._arena.concat(self._arena.repeat(self._digit, digits, digits), self._free)

    def _digits(self, first: int, last: int) -> Node:
        if first > last:
            return self._arena.empty
        return self._arena.byte_set(((1 << (last + 1)) - (1 << first)) << _ZERO)

    def _fraction(self, low: Limit | None, high: Limit | None) -> Node:
        """The rest of a number that has the integer part of the limits given."""
        places = self._after(0, low, high, may_end=False)
        rest = self._arena.concat(self._point, places)
        return self._arena.optional(rest) if _ends(0, low, high) else rest

    def _after(self, place: int, low: Limit | None, high: Limit | None, *, may_end: bool = True) -> Node:
        """Return the texts after ``place`` digits of the fraction that are those of the limits given."""
        arena = self._arena
        if low is not None and low.admits_end(place):
            low = None
        if low is None and (high is None or high.admits_end(place)):
            last = 9 if high is None else 0
            left = self._places - place
            if left:
                return arena.repeat(self._digits(0, last), 0 if may_end else 1, left)
            return arena.epsilon if may_end else arena.empty
        found = [arena.epsilon] if may_end and _ends(place, low, high) else []
        if place < self._places:
            first = low.digit(place) if low is not None else 0
            last = high.digit(place) if high is not None else 9
            if low is not None and high is not None and first == last:
                found.append(arena.concat(self._digits(first, first), self._after(place + 1, low, high)))
            else:
                if low is not None:
                    found.append(arena.concat(self._digits(first, first), self._after(place + 1, low, None)))
                    first += 1
                if high is not None:
                    found.append(arena.concat(self._digits(last, last), self._after(place + 1, None, high)))
                    last -= 1
                found.append(arena.concat(self._digits(first, last), self._after(place + 1, None, None)))
        return arena.union(found)


def _ends(place: int, low: Limit | None, high: Limit | None) -> bool:
    """Return True if a number may end after ``place`` digits of its fraction."""
    if low is not None and not low.admits_end(place):
        return False
    return high is None or bool(high.fraction[place:].strip("0")) or not high.is_open

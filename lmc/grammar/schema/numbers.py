"""Numbers of a shape: whole ones, others, or both, within bounds, as multiples, without some values.

Which spellings are produced: whole numbers without fraction and exponent, zero without a sign. Other numbers with any
fraction and an exponent of one or two digits where nothing is asked of them; else without an exponent and with up to
``PLACES`` digits more behind the point than the bounds have, where they meet the bounds as floats as well.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import Any

from lmc.grammar import regex
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.alphabet import DIGIT, byte_mask, shared
from lmc.grammar.schema.errors import refusal
from lmc.grammar.schema.shapes.shapes import NumberBound, Shape
from lmc.grammar.schema.values import EXACT_FLOATS, FRACTIONAL, NUMBER, WHOLE, class_of, exact

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
    """Numbers with up to ``places`` digits of a fraction, between bounds, digit by digit; with 0, integers.

    A number is written as in ``-12.50``: an integer part without leading zeros, and a fraction, which may end in zeros.
    Bounds of any size are compared exactly.
    """

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


MAX_DIVIDED = 2_000  # remainders times digits
MAX_ENDINGS = 1_000


def multiples_among(first: int, last: int, step: int) -> Iterator[int]:
    """The multiples of ``step`` from ``first`` to ``last``, both included."""
    start = -(-first // step) * step
    return iter(range(start, last + 1, step))


def multiples_of(step: int, arena: Arena, digits: int, places: int = 0) -> Node | str:
    """Unsigned texts of the multiples of ``step / 10**places``, or why they need too many nodes.

    A text is digits, or digits, a point and up to ``places`` digits; whether it is a number as JSON writes them is not
    looked at (``007``, ``0.50``). Where the last digits decide, there may be any number of digits before the point;
    else there are at most ``digits`` in all.

    A number with ``places`` digits behind the point is a multiple of a step when its digits, the point left out, are
    one of the step's. A step is a product of a factor of 2s and 5s, about which the last digits decide, and one
    without, for which long division has to keep a remainder.
    """
    ending, length, rest = 1, 0, step
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            ending *= prime
            power += 1
        length = max(length, power)
    parts: list[Node] = []
    if ending == 1:
        parts.append(_by_ending(1, 0, arena, places))
    elif 10**length // ending <= MAX_ENDINGS:
        parts.append(_by_ending(ending, length, arena, places))
    else:
        rest = step
    if rest > 1:
        if rest * digits > MAX_DIVIDED:
            return f"dividing by {rest} leaves {rest} remainders after each of {digits} digits"
        parts.append(_by_remainder(rest, arena, digits, places))
    return arena.intersection(parts)


def _by_ending(step: int, length: int, arena: Arena, places: int) -> Node:
    """The last ``length`` digits are a multiple. Digits that are not written are 0, at either end."""
    digit = arena.byte_set(DIGIT)
    whole = arena.repeat(digit, 1, None)
    point = arena.literal(b".")
    free = places - length
    if free >= 0:
        found = [whole]
        if free:
            found.append(arena.concat(whole, point, arena.repeat(digit, 1, free)))
        behind = arena.concat(whole, point, arena.repeat(digit, free, free))
        for ending in _endings(step, length):
            found += [arena.concat(behind, arena.literal(cut.encode())) for cut in _shortened(ending) if cut]
        return arena.union(found)
    fractions: dict[str, list[Node]] = {}
    for ending in _endings(step, length):
        own = fractions.setdefault(ending[:-places] if places else ending, [])
        for cut in _shortened(ending[-places:] if places else ""):
            own.append(arena.concat(point, arena.literal(cut.encode())) if cut else arena.epsilon)
    found: list[Node] = []
    for before, own in fractions.items():
        texts = {before[start:] for start in range(len(before)) if not before[:start].strip("0")}
        heads = [arena.literal(text.encode()) for text in texts]
        heads.append(arena.concat(whole, arena.literal(before.encode())))
        found.append(arena.concat(arena.union(heads), arena.union(own)))
    return arena.union(found)


def _endings(step: int, length: int) -> list[str]:
    return [f"{value:0{length}}" if length else "" for value in range(0, 10**length, step)]


def _shortened(digits: str) -> list[str]:
    """The digits without some zeros at their end."""
    return [digits[:count] for count in range(len(digits.rstrip("0")), len(digits) + 1)]


def _by_remainder(step: int, arena: Arena, digits: int, places: int) -> Node:
    """Long division: what may follow a remainder, for one more digit at a time."""

    def ended(missing: int) -> list[Node]:
        """With so many zeros to come that are not written."""
        return [arena.empty if remainder * 10**missing % step else arena.epsilon for remainder in range(step)]

    def longer(following: list[Node], ends: list[Node]) -> list[Node]:
        return [arena.union([end, *_by_digit(arena, following, at)]) for at, end in enumerate(ends)]

    ends = ended(places)
    if places:
        following = ended(0)
        for missing in range(1, places):
            following = longer(following, ended(missing))
        point = arena.literal(b".")
        behind = [arena.concat(point, arena.union(_by_digit(arena, following, at))) for at in range(step)]
        ends = [arena.union(pair) for pair in zip(ends, behind, strict=True)]
    following = ends
    for _ in range(digits - places - 1):
        following = longer(following, ends)
    return arena.union(_by_digit(arena, following, 0))


def _by_digit(arena: Arena, following: list[Node], remainder: int) -> list[Node]:
    masks: dict[Node, int] = {}
    for digit in range(10):
        target = following[(remainder * 10 + digit) % len(following)]
        masks[target] = masks.get(target, 0) | 1 << (_ZERO + digit)
    return [arena.concat(arena.byte_set(mask), target) for target, mask in masks.items()]


EXACT_DIGITS = 15  # decimal numbers of so many digits stay different as floats
MAX_LISTED = 512  # numbers between two bounds that are written out one by one
MAX_PLACES = 10
PLACES = 20  # behind the point, beyond those of the bounds; `repr` of a float from 0.001 on has no more
MAX_FRACTION = 120
_WHOLE_NUMBER = "0|-?[1-9][0-9]*"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?"


class Numbers:
    """Makes the nodes of one arena."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._minus = arena.literal(b"-")
        self._zero = arena.literal(b"0")
        self._digit = arena.byte_set(DIGIT)

    def node(self, shape: Shape) -> Node:
        """The numbers that meet a shape, of the classes that are left in it.

        Raises ``ConstraintError`` for multiples that can't be enforced.
        """
        classes = shape.meant & NUMBER
        excluded = [exact(value) for value in shape.excluded if class_of(value) & NUMBER]
        low, high = shape.low, shape.high
        if classes == WHOLE and not shape.multiples and not excluded and low is None and high is None:
            return _numbers_like(_WHOLE_NUMBER)
        if classes == NUMBER and not shape.multiples and not excluded and low is None and high is None:
            return _numbers_like(_NUMBER)
        if low is not None and high is not None and _cross(low, high):
            return self._arena.empty
        multiple = _common(shape.multiples)
        if classes == WHOLE:
            node = self._whole_numbers(low, high, multiple, shape)
        elif multiple is None:
            if classes & WHOLE:
                return self._decimals(low, high, excluded, shape)
            return self._fractions(low, high, excluded, shape)
        elif multiple.denominator == 1:
            node = self._whole_numbers(low, high, multiple, shape) if classes & WHOLE else self._arena.empty
        else:
            node = self._parts(low, high, multiple, classes, shape)
        return self._without(node, excluded)

    def listed(self, shape: Shape) -> list[int] | None:
        """The whole numbers that meet a shape, where bounds leave few; else None."""
        low, high = shape.low, shape.high
        if low is None or high is None or high.value - low.value > MAX_LISTED:
            return None
        steps = [step for step, _ in shape.multiples]
        excluded = [exact(value) for value in shape.excluded if class_of(value) & NUMBER]
        return [
            number
            for number in range(math.ceil(low.value), math.floor(high.value) + 1)
            if is_within(Fraction(number), low, high)
            and all((number / step).denominator == 1 for step in steps)
            and number not in excluded
        ]

    def between(self, low: int | None, high: int | None) -> Node:
        """Whole numbers from ``low`` to ``high``, both included."""
        return self._signed(
            None if low is None else NumberBound(Fraction(low), False, None),
            None if high is None else NumberBound(Fraction(high), False, None),
            0,
        )

    def _whole_numbers(
        self, low: NumberBound | None, high: NumberBound | None, multiple: Fraction | None, shape: Shape
    ) -> Node:
        if multiple is not None and multiple.denominator > 1:  # validators divide by a float
            low, high = _within(low, high, Fraction(10**EXACT_DIGITS))
        first = None if low is None else math.floor(low.value) + 1 if low.is_open else math.ceil(low.value)
        last = None if high is None else math.ceil(high.value) - 1 if high.is_open else math.floor(high.value)
        if first is not None and last is not None and first > last:
            return self._arena.empty
        step = 1 if multiple is None else multiple.numerator
        if step == 1:
            return self.between(first, last)
        if first is not None and last is not None and (last - first) // step < MAX_LISTED:
            return self._arena.union(
                self._arena.literal(str(number).encode()) for number in multiples_among(first, last, step)
            )
        digits = max(len(str(abs(bound))) for bound in (first or 0, last or 0))
        if first is None or last is None:
            digits = max(digits, EXACT_DIGITS)
        node = multiples_of(step, self._arena, digits)
        if isinstance(node, str):
            raise _too_large(Fraction(step), node, shape)
        signed = self._arena.concat(self._arena.optional(self._minus), node)
        return self._arena.intersection([signed, self.between(first, last)])

    def _decimals(
        self, low: NumberBound | None, high: NumberBound | None, excluded: list[Fraction], shape: Shape
    ) -> Node:
        """Numbers with a fraction or without: what is left between the bounds and the values that are out."""
        opened = [NumberBound(value, True, None) for value in sorted({*excluded}) if is_within(value, low, high)]
        parts = map(self._interval, [low, *opened], [*opened, high], repeat(shape))
        return self._arena.union(parts)

    def _fractions(
        self, low: NumberBound | None, high: NumberBound | None, excluded: list[Fraction], shape: Shape
    ) -> Node:
        """Numbers that are not whole: near zero of any precision, else of ``EXACT_DIGITS`` digits."""
        parts: list[Node] = []
        small_low, small_high = _within(low, high, Fraction(1))
        if not _cross(small_low, small_high):
            parts.append(self._decimals(small_low, small_high, excluded, shape))
        exact: list[Node] = []
        for width in range(1, EXACT_DIGITS):
            near_low, near_high = _within(low, high, Fraction(10**width))
            if not _cross(near_low, near_high):
                exact.append(self._signed(near_low, near_high, EXACT_DIGITS - width))
        parts.append(self._without(self._arena.union(exact), excluded))
        return self._arena.intersection([self._arena.union(parts), self._with_fraction()])

    def _interval(self, low: NumberBound | None, high: NumberBound | None, shape: Shape) -> Node:
        """Numbers between two bounds, read as decimals and as floats."""
        if low is not None and high is not None and _cross(low, high):
            return self._arena.empty
        bounds = [bound for bound in (low, high) if bound is not None]
        parts = [self._spelled(bound.value) for bound in bounds if not bound.is_open]
        least = None if low is None else _as_float(low, math.inf)
        most = None if high is None else _as_float(high, -math.inf)
        if least is None or most is None or not _cross(least, most):
            digits = max(len(decimal_digits(bound.value)[1]) for bound in bounds)
            parts.append(self._signed(least, most, min(digits + PLACES, MAX_FRACTION)))
            if digits > MAX_FRACTION and parts[-1] is self._arena.empty:
                cause = f"all numbers between these bounds have more than {MAX_FRACTION} digits behind the point"
                raise refusal(shape.pointer, cause, "write bounds that are further from 0 or from each other")
        if any(abs(bound.value) >= EXACT_FLOATS for bound in bounds):
            parts.append(self._signed(low, high, 0))
        return self._arena.union(parts)

    def _spelled(self, value: Fraction) -> Node:
        """A number in the shortest way without an exponent, where that is short."""
        whole, fraction = decimal_digits(abs(value))
        if len(fraction) > 2 * EXACT_DIGITS:
            return self._arena.empty
        text = f"{'-' if value < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"
        return self._arena.literal(text.encode())

    def _parts(
        self, low: NumberBound | None, high: NumberBound | None, step: Fraction, classes: int, shape: Shape
    ) -> Node:
        """Multiples of a fraction, as decimals with no more places than it has."""
        arena = self._arena
        places = len(decimal_digits(step)[1])
        low, high = _within(low, high, Fraction(10 ** max(EXACT_DIGITS - places, 0)))
        node = None if places > MAX_PLACES else multiples_of(int(step * 10**places), arena, EXACT_DIGITS, places)
        if isinstance(node, Node):
            signed = arena.concat(arena.optional(self._minus), node)
            whole = [] if classes & WHOLE else [self._with_fraction()]
            return arena.intersection([signed, self._signed(low, high, places), *whole])
        first, last = math.ceil(low.value / step), math.floor(high.value / step)
        if last - first >= MAX_LISTED:
            raise _too_large(step, node or f"they have more than {MAX_PLACES} digits behind the point", shape)
        found = [step * factor for factor in range(first, last + 1) if is_within(step * factor, low, high)]
        return arena.union(
            self._spelled(value) for value in found if classes & (WHOLE if value.denominator == 1 else FRACTIONAL)
        )

    def _with_fraction(self) -> Node:
        """Numbers that are not whole, whether read as decimals or as floats: one digit after the point is not 0."""
        arena = self._arena
        digits = arena.repeat(self._digit, 0, None)
        fraction = arena.concat(arena.literal(b"."), digits, arena.byte_set(byte_mask("123456789")), digits)
        return arena.concat(arena.optional(self._minus), arena.repeat(self._digit, 1, None), fraction)

    def _signed(self, low: NumberBound | None, high: NumberBound | None, places: int) -> Node:
        """Numbers between two bounds with up to so many digits of a fraction."""
        decimals = Decimals(self._arena, places)
        parts: list[Node] = []
        if high is None or high.value > 0 or (high.value == 0 and not high.is_open):
            least = None if low is None or low.value < 0 else Limit.of(low.value, is_open=low.is_open)
            most = None if high is None else Limit.of(high.value, is_open=high.is_open)
            parts.append(decimals.between(least, most))
        if low is None or low.value < 0:
            least = Limit("0", "", is_open=True)
            if high is not None and high.value < 0:
                least = Limit.of(-high.value, is_open=high.is_open)
            most = None if low is None else Limit.of(-low.value, is_open=low.is_open)
            parts.append(self._arena.concat(self._minus, decimals.between(least, most)))
        return self._arena.union(parts)

    def _without(self, node: Node, excluded: list[Fraction]) -> Node:
        if not excluded:
            return node
        arena = self._arena
        spellings: list[Node] = []
        for value in excluded:
            whole, fraction = decimal_digits(abs(value))
            zeros = arena.repeat(self._zero, 0, None)
            if fraction:
                ending = arena.concat(arena.literal(f".{fraction}".encode()), zeros)
            else:
                ending = arena.optional(arena.concat(arena.literal(b"."), zeros))
            spellings.append(arena.concat(arena.literal(f"{'-' if value < 0 else ''}{whole}".encode()), ending))
        return arena.intersection([node, arena.complement(arena.union(spellings))])


@cache
def _numbers_like(pattern: str) -> Node:
    """Numbers of any size; made once for all constraints."""
    arena = Arena()
    return shared(arena, regex.to_node(pattern, arena))


def _common(multiples: tuple[tuple[Fraction, Any], ...]) -> Fraction | None:
    """The least number that is a multiple of all."""
    found: Fraction | None = None
    for value, _ in multiples:
        if found is None:
            found = value
        else:
            found = Fraction(math.lcm(found.numerator, value.numerator), math.gcd(found.denominator, value.denominator))
    return found


def _cross(low: NumberBound, high: NumberBound) -> bool:
    return low.value > high.value or (low.value == high.value and (low.is_open or high.is_open))


def _within(low: NumberBound | None, high: NumberBound | None, limit: Fraction) -> tuple[NumberBound, NumberBound]:
    """The bounds, but so that numbers are smaller than a limit."""
    return (
        low if low is not None and low.value > -limit else NumberBound(-limit, True, None),
        high if high is not None and high.value < limit else NumberBound(limit, True, None),
    )


def _as_float(bound: NumberBound, inside: float) -> NumberBound:
    """A bound that decimals keep to only if they also keep to the given one when both are read as floats.

    Rounding to a float keeps the order. So what is no more than a number that has the value of a float reads as no more
    than that float. ``inside`` is infinite and on the side of the bound where numbers are allowed.
    """
    value = bound.value
    if not bound.is_open and abs(value) < EXACT_FLOATS:
        return bound
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.copysign(sys.float_info.max, value)
    if bound.is_open or (Fraction(nearest) < value if inside > 0 else Fraction(nearest) > value):
        nearest = math.nextafter(nearest, inside)
    if not math.isfinite(nearest):  # read as infinite, they keep to it as well
        return bound
    return NumberBound(Fraction(nearest) if abs(value) >= EXACT_FLOATS else exact(nearest), False, bound.pointer)


def is_within(value: Fraction, low: NumberBound | None, high: NumberBound | None) -> bool:
    """Return True if a number is within the bounds."""
    if low is not None and (value < low.value or (value == low.value and low.is_open)):
        return False
    return high is None or value < high.value or (value == high.value and not high.is_open)


def _too_large(step: Fraction, cause: str, shape: Shape) -> Exception:
    remedy = "give bounds with fewer multiples between them, or a step with smaller factors"
    return refusal(shape.multiples[0][1], f"multiples of {float(step):g} need too large an automaton: {cause}", remedy)

"""Numbers of a shape: whole ones, others, or both, within bounds, as multiples, without some values.

Which spellings are produced: whole numbers without fraction and exponent, zero without a sign. Other numbers with any
fraction and an exponent of one or two digits where nothing is asked of them; else without an exponent and with up to
``PLACES`` digits more behind the point than the bounds have, where they meet the bounds as floats as well.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import Any

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.documents.errors import refusal
from lmc.grammar.schema.notation import Notation
from lmc.grammar.schema.numbers.decimals import Decimals, Limit, decimal_digits
from lmc.grammar.schema.numbers.multiples import multiples_among, multiples_of
from lmc.grammar.schema.shapes.shapes import NumberBound, Shape
from lmc.grammar.schema.strings.alphabet import DIGIT, byte_mask, shared
from lmc.grammar.schema.values import FRACTIONAL, NUMBER, WHOLE, class_of, exact

EXACT_DIGITS = 15  # decimal numbers of so many digits stay different as floats
MAX_LISTED = 512  # numbers between two bounds that are written out one by one
MAX_PLACES = 10
PLACES = 20  # behind the point, beyond those of the bounds; `repr` of a float from 0.001 on has no more
MAX_FRACTION = 120
EXACT_FLOATS = 2**53  # whole numbers below it are floats


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
            return _any_whole()
        if classes == NUMBER and not shape.multiples and not excluded and low is None and high is None:
            return _any_number()
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
def _any_whole() -> Node:
    """Whole numbers of any size; made once for all constraints."""
    n = Notation(Arena())
    return shared(n.arena, n.either(n.text("0"), n.sequence(n.maybe(n.text("-")), n.some("1-9"), n.digits(0, None))))


@cache
def _any_number() -> Node:
    """Numbers of any size and precision; made once for all constraints."""
    n = Notation(Arena())
    whole = n.either(n.text("0"), n.sequence(n.some("1-9"), n.digits(0, None)))
    fraction = n.maybe(n.sequence(n.text("."), n.digits(1, None)))
    exponent = n.maybe(n.sequence(n.some("eE"), n.maybe(n.some("+-")), n.digits(1, 2)))
    return shared(n.arena, n.sequence(n.maybe(n.text("-")), whole, fraction, exponent))


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

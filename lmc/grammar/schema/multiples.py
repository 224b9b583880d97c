"""Multiples of a whole number in decimal digits."""

from __future__ import annotations

from collections.abc import Iterator

from lmc.grammar.building import Arena
from lmc.grammar.nodes import Node
from lmc.grammar.schema.alphabet import DIGIT

MAX_DIVIDED = 2_000  # remainders times digits
_ZERO = ord("0")


def multiples_among(first: int, last: int, step: int) -> Iterator[int]:
    """The multiples of ``step`` from ``first`` to ``last``, both included."""
    start = -(-first // step) * step
    return iter(range(start, last + 1, step))


def multiples_of(step: int, arena: Arena, digits: int) -> Node | None:
    """The multiples above 0, without sign; None where that needs too many nodes.

    Those of a divisor of 1000, which the last digits decide, have any size; others up to ``digits`` digits.
    """
    for places in range(1, 4):
        if 10**places % step == 0:
            return _by_ending(step, arena, places)
    return _by_remainder(step, arena, digits) if step * digits <= MAX_DIVIDED else None


def _by_ending(step: int, arena: Arena, places: int) -> Node:
    """The last ``places`` digits are a multiple; so are numbers that have no more."""
    endings = arena.union(arena.literal(f"{value:0{places}}".encode()) for value in range(0, 10**places, step))
    short = [arena.literal(str(value).encode()) for value in range(step, 10**places, step)]
    leading = arena.concat(_digits(arena, 1, 9), arena.repeat(arena.byte_set(DIGIT), 0, None))
    return arena.union([*short, arena.concat(leading, endings)])


def _by_remainder(step: int, arena: Arena, digits: int) -> Node:
    """Long division: what may follow a remainder, for one more digit at a time."""
    following = [arena.epsilon if remainder == 0 else arena.empty for remainder in range(step)]
    for _ in range(digits - 1):
        longer: list[Node] = []
        for remainder in range(step):
            parts = _by_digit(arena, following, remainder, step, 0)
            longer.append(arena.union([arena.epsilon, *parts] if remainder == 0 else parts))
        following = longer
    return arena.union(_by_digit(arena, following, 0, step, 1))


def _by_digit(arena: Arena, following: list[Node], remainder: int, step: int, first: int) -> list[Node]:
    masks: dict[Node, int] = {}
    for digit in range(first, 10):
        target = following[(remainder * 10 + digit) % step]
        masks[target] = masks.get(target, 0) | 1 << (_ZERO + digit)
    return [arena.concat(arena.byte_set(mask), target) for target, mask in masks.items()]


def _digits(arena: Arena, first: int, last: int) -> Node:
    return arena.byte_set(((1 << (last + 1)) - (1 << first)) << _ZERO)

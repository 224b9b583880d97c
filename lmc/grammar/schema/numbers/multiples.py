"""Multiples of a decimal number, digit by digit.

A number with ``places`` digits behind the point is a multiple of a step when its digits, the point left out, are one of
the step's. A step is a product of a factor of 2s and 5s, about which the last digits decide, and one without, for which
long division has to keep a remainder.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.strings.alphabet import DIGIT

MAX_DIVIDED = 2_000  # remainders times digits
MAX_ENDINGS = 1_000
_ZERO = ord("0")


def multiples_among(first: int, last: int, step: int) -> Iterator[int]:
    """The multiples of ``step`` from ``first`` to ``last``, both included."""
    start = -(-first // step) * step
    return iter(range(start, last + 1, step))


def multiples_of(step: int, arena: Arena, digits: int, places: int = 0) -> Node | str:
    """Unsigned texts of the multiples of ``step / 10**places``, or why they need too many nodes.

    A text is digits, or digits, a point and up to ``places`` digits; whether it is a number as JSON writes them is not
    looked at (``007``, ``0.50``). Where the last digits decide, there may be any number of digits before the point;
    else there are at most ``digits`` in all.
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

"""An output of an automaton that shows what outputs look like: a random walk that prefers what people read."""

from __future__ import annotations

import random
import string

from lmc.grammar.automata.automaton import Automaton
from lmc.ir.errors import ConstraintError

_STEPS = 400
_MAX_STATES = 20_000
MAX_WORK = 40_000  # see `Arena.work`; of the states on the way


def _mask(characters: str) -> int:
    return sum(1 << ord(character) for character in characters)


_PREFERRED = tuple(map(_mask, (string.ascii_lowercase, string.digits, string.ascii_uppercase, " ", string.punctuation)))
"""Byte sets in the order in which a byte is looked for."""


# A backslash begins what is escaped, and so is none of them.
_READABLE = _mask(string.ascii_letters + string.digits + string.punctuation.replace("\\", "") + " \n")


class Sampler:
    """Walks an automaton by ``chance``; makes the states that it comes to."""

    def __init__(self, automaton: Automaton, chance: random.Random) -> None:
        self._automaton = automaton
        self._chance = chance

    def sample(self) -> bytes | None:
        """An output, at some length of its own; None where none was found within bounds."""
        automaton, chance = self._automaton, self._chance
        written = bytearray()
        visits: dict[int, int] = {}
        state, worked = 0, automaton.work
        for _ in range(_STEPS):
            if automaton.work - worked > MAX_WORK:
                return None
            arcs = automaton.arcs(state)
            visits[state] = visits.get(state, 0) + 1
            if automaton.accepting(state) and (not arcs or chance.random() < _stopping(len(written))):
                return bytes(written)
            # Wide sets rather than signs, and what was not taken yet: loops are left, and options come up.
            weights = [
                (0.01 + (mask & _READABLE).bit_count() ** 0.5) / (1 + visits.get(target, 0)) ** 2
                for mask, target in arcs
            ]
            mask, state = chance.choices(arcs, weights)[0]
            written.append(self._byte(mask))
        try:
            rest = automaton.shortest(state) if len(automaton) < _MAX_STATES else None
        except ConstraintError:
            return None
        return None if rest is None else bytes(written) + rest

    def _byte(self, mask: int) -> int:
        for preferred in _PREFERRED:
            if mask & preferred:
                mask &= preferred
                break
        return self._chance.choice([byte for byte in range(256) if mask >> byte & 1])


def _stopping(length: int) -> float:
    """Return the probability that an output ends where it may, by its length so far."""
    return 0.0 if length < 2 else min(0.15 + length / 100, 0.8)

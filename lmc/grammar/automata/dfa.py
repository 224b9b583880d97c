"""Automata with all states in arrays: their products, complements, and which lengths their states can still reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def ranges(starts: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.intp]:
    """The numbers ``start`` to ``start + count`` of each pair, one after the other."""
    total = int(counts.sum())
    return np.repeat(starts - (np.cumsum(counts) - counts), counts).astype(np.intp) + np.arange(total)


_MAX_STEPS_TO_MINIMISE = 300_000
_ROUND = 2_000  # steps that a round of array operations takes at least
_KEY = 30  # steps that looking up one number takes
_MAX_KEY = 1 << 62

Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]
Spend = Callable[[int], None]
"""Counts steps: entries of arrays that are looked at. Raises ``ConstraintError`` where they are too many."""


@dataclass(frozen=True, eq=False)
class Dfa:
    """States 0 (the start) to S - 1, each of which can be reached and can still reach an accepting one.

    ``rows`` [S, C] is the state after a byte of a class, or -1; ``class_of_byte`` [256] the class of each byte, or -1
    for bytes that lead nowhere. There is at least one state: what has no string is None in place of an automaton.
    """

    rows: Ints
    class_of_byte: Ints
    accepting: Bools

    def __len__(self) -> int:
        """Number of states."""
        return len(self.rows)

    def arcs(self, state: int) -> list[tuple[int, int]]:
        """Byte sets (bit b: byte b), each with the state it leads to."""
        masks: dict[int, int] = {}
        for each, target in zip(self._class_masks(), self.rows[state].tolist(), strict=True):
            if target >= 0:
                masks[target] = masks.get(target, 0) | each
        return [(mask, target) for target, mask in masks.items()]

    def _class_masks(self) -> list[int]:
        masks = self.__dict__.get("_masks")
        if masks is None:
            masks = [0] * self.rows.shape[1]
            for byte, number in enumerate(self.class_of_byte.tolist()):
                if number >= 0:
                    masks[number] |= 1 << byte
            self.__dict__["_masks"] = masks
        return masks

    def complement(self, spend: Spend) -> Dfa | None:
        """All other byte strings."""
        spend(_ROUND + self.rows.size)
        sink, width = len(self.rows), self.rows.shape[1]
        rows = np.full((sink + 1, width + 1), sink, np.int32)
        rows[:sink, :width] = np.where(self.rows < 0, sink, self.rows)
        class_of_byte = np.where(self.class_of_byte < 0, width, self.class_of_byte)
        return _trimmed(rows, class_of_byte, np.append(~self.accepting, True))[0]

    def minimised(self) -> Dfa:
        """The same with equal states as one; itself where that would take long."""
        steps = 0
        numbers: Ints = self.accepting.astype(np.int64)
        count = len(np.unique(numbers))
        while True:
            steps += _ROUND + self.rows.size
            if steps > _MAX_STEPS_TO_MINIMISE:
                return self
            signatures = np.column_stack([numbers, np.where(self.rows < 0, -1, numbers[self.rows])])
            _, numbers = _unique_rows(signatures)
            if (found := int(numbers.max()) + 1) == count:
                break
            count = found
        if count == len(self.rows):
            return self
        rows = np.full((count, self.rows.shape[1]), -1, np.int32)
        rows[numbers] = np.where(self.rows < 0, -1, numbers[self.rows])
        accepting = np.zeros(count, np.bool_)
        accepting[numbers] = self.accepting
        # The start comes first.
        order = np.arange(count)
        order[[0, numbers[0]]] = order[[numbers[0], 0]]
        return Dfa(np.where(rows < 0, -1, order[rows])[order].astype(np.int32), self.class_of_byte, accepting[order])


def of_arcs(arcs: Sequence[Sequence[tuple[int, int]]], accepting: Sequence[bool]) -> Dfa:
    """The automaton of arcs (byte set, target) of every state, all of which are live."""
    numbers: dict[int, int] = {}
    for each in arcs:
        for mask, _ in each:
            numbers.setdefault(mask, len(numbers))
    class_of_byte, classes = _classes(numbers)
    width = int(class_of_byte.max(initial=-1)) + 1
    rows = np.full((len(arcs), width), -1, np.int32)
    for state, each in enumerate(arcs):
        for mask, target in each:
            rows[state, classes[numbers[mask]]] = target
    return Dfa(rows, class_of_byte, np.array(accepting, np.bool_))


def _classes(masks: Iterable[int]) -> tuple[Ints, list[Ints]]:
    """The class of each byte where sets tell bytes apart, -1 for bytes of none; the classes inside of each set."""
    data = b"".join(mask.to_bytes(32, "little") for mask in masks)
    bits = np.unpackbits(np.frombuffer(data, np.uint8).reshape(-1, 32), axis=1, bitorder="little")
    class_of_byte = _class_numbers(bits, ~np.logical_or.reduce(bits, axis=0))
    return class_of_byte, [np.unique(class_of_byte[np.flatnonzero(row)]) for row in bits]


def _class_numbers(columns: NDArray[np.generic], dead: Bools) -> Ints:
    """Numbers of the columns [k, 256] that differ; -1 where ``dead``."""
    numbers = np.full(256, -1, np.int64)
    if not dead.all():
        _, numbers[~dead] = _unique_rows(np.ascontiguousarray(columns.T[~dead]))
    return numbers


def _unique_rows(rows: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """The first of each row that differs, and the number of each row among them."""
    if not rows.shape[1]:
        return np.zeros(min(len(rows), 1), np.int64), np.zeros(len(rows), np.int64)
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, firsts, numbers = np.unique(packed, return_index=True, return_inverse=True)
    return firsts, numbers.reshape(-1)


class Product:
    """The intersection of several automata: ``dfa``, None where it is empty.

    ``places(which)`` is the state of one of them at every state of the product.
    """

    def __init__(self, parts: Sequence[Dfa], spend: Spend) -> None:
        columns = np.stack([part.class_of_byte for part in parts])
        class_of_byte = _class_numbers(columns, np.logical_or.reduce(columns < 0, axis=0))
        width = int(class_of_byte.max()) + 1
        bytes_of = np.zeros(width, np.intp)
        bytes_of[class_of_byte[class_of_byte >= 0]] = np.flatnonzero(class_of_byte >= 0)
        rows = [part.rows[:, part.class_of_byte[bytes_of]].astype(np.int64) for part in parts]
        self._weights = _weights(parts)
        self._sizes = [len(part) for part in parts]
        numbers = {0: 0}
        keys = level = np.zeros(1, np.int64)
        levels: list[Ints] = []
        while level.size:
            spend(_ROUND + level.size * width * (len(parts) + 4))
            following = np.zeros((len(level), width), np.int64)
            dead = np.zeros(following.shape, np.bool_)
            for table, weight, size in zip(rows, self._weights, self._sizes, strict=True):
                targets = table[level // weight % size]
                dead |= targets < 0
                following += targets * weight
            following[dead] = -1
            found, inverse = np.unique(following, return_inverse=True)
            spend(_KEY * len(found))
            known = len(numbers)
            given = [numbers.setdefault(key, len(numbers)) if key >= 0 else -1 for key in found.tolist()]
            levels.append(np.array(given, np.int32)[inverse].reshape(following.shape))
            level = found[np.array(given) >= known]
            keys = np.concatenate([keys, level])
        accepting = np.ones(len(keys), np.bool_)
        for which, part in enumerate(parts):
            accepting &= part.accepting[keys // self._weights[which] % self._sizes[which]]
        self.dfa, kept = _trimmed(np.concatenate(levels), class_of_byte, accepting)
        self._keys = keys[kept]

    def places(self, which: int) -> Ints:
        """The state of one of the automata at every state of the product."""
        return self._keys // self._weights[which] % self._sizes[which]


def _weights(parts: Sequence[Dfa]) -> list[int]:
    weights, total = [], 1
    for part in parts:
        weights.append(total)
        total *= len(part)
    assert total < _MAX_KEY
    return weights


def intersection(parts: Sequence[Dfa], spend: Spend) -> Dfa | None:
    """The strings of all of them."""
    smallest = min(parts, key=len)
    # What the smallest one rules out is left out of each of the others before these are combined.
    others = [part for part in parts if part is not smallest]
    together: list[Dfa] = []
    for part in others:
        restricted = Product((smallest, part), spend).dfa
        if restricted is None:
            return None
        together.append(restricted)
    while len(together) > 1:
        group, size = [], 1
        while together and size * len(together[-1]) < _MAX_KEY:
            size *= len(together[-1])
            group.append(together.pop())
        combined = Product(group, spend).dfa
        if combined is None:
            return None
        together.append(combined)
    return together[0] if together else smallest


def _trimmed(rows: Ints, class_of_byte: Ints, accepting: Bools) -> tuple[Dfa | None, Ints]:
    """The automaton of the states that can reach an accepting one, all of which can be reached; and these states."""
    live = _reaching(rows, accepting)
    if not live[0]:
        return None, np.zeros(0, np.intp)
    if live.all():
        return Dfa(rows.astype(np.int32, copy=False), class_of_byte, accepting), np.arange(len(rows))
    numbers = np.where(live, np.cumsum(live) - 1, -1)
    made = np.where(rows[live] < 0, -1, numbers[rows[live]]).astype(np.int32)
    return Dfa(made, class_of_byte, accepting[live]), np.flatnonzero(live)


def _reaching(rows: Ints, accepting: Bools) -> Bools:
    """The states from which an accepting one can be reached."""
    states, classes = np.nonzero(rows >= 0)
    backward = _Backward(states, rows[states, classes], len(rows))
    live = accepting.copy()
    frontier = np.flatnonzero(live)
    while frontier.size:
        before = backward.before(frontier)
        frontier = np.unique(before[~live[before]])
        live[frontier] = True
    return live


class _Backward:
    """The edges of an automaton by what they lead to."""

    def __init__(self, sources: Ints, targets: Ints, states: int) -> None:
        pairs = np.unique(targets.astype(np.int64) * states + sources)
        self._sources = pairs % states
        self._starts = np.searchsorted(pairs // states, np.arange(states + 1))

    def __len__(self) -> int:
        return len(self._sources)

    def before(self, states: Ints) -> Ints:
        """The states from which an edge leads to one of these, possibly several times."""
        starts = self._starts[states]
        return self._sources[ranges(starts, self._starts[states + 1] - starts)]


class Lengths:
    """In how many more characters each state of an automaton can come to an end.

    ``ends`` [S] says at which states a character has just ended; only such states accept. A character under way counts
    as one that is still to come. Bounds that are asked about later are at most ``low`` and ``high``.
    """

    def __init__(self, dfa: Dfa, ends: Bools, low: int, high: int | None, spend: Spend) -> None:
        self.ends = ends
        sources, classes = np.nonzero(dfa.rows >= 0)
        targets = dfa.rows[sources, classes]
        last = ends[targets]
        self._last = _Backward(sources[last], targets[last], len(dfa))
        self._inside = _Backward(sources[~last], targets[~last], len(dfa))
        self._accepting = dfa.accepting
        self.shortest = self._distances(spend)
        self.farthest = int(self.shortest.max())
        """From every state an end can be reached in so many characters."""
        self._levels: list[bytes] = []
        self.period = 0
        """After how many characters the states that can end in exactly so many repeat; 0: not known."""
        if low:
            self._find_levels(high, spend)

    @property
    def settled(self) -> int | None:
        """From so many characters on, a lower bound makes no difference where the upper one is a period farther off."""
        return len(self._levels) - self.period if self.period else None

    def reaches(self, state: int, low: int, high: int | None) -> bool:
        """Return True if a state can come to an end in ``low`` to ``high`` more characters."""
        if not low:
            return high is None or int(self.shortest[state]) <= high
        known = len(self._levels)
        stop = max(low, known) + max(self.period, 1)
        if high is not None:
            stop = min(stop, high + 1)
        for count in range(low, stop):
            if count >= known and not self.period:
                return False
            at = count if count < known else known - self.period + (count - known) % self.period
            if self._levels[at][state >> 3] >> (7 - (state & 7)) & 1:
                return True
        return False

    def _distances(self, spend: Spend) -> Ints:
        distances = np.full(len(self._accepting), np.iinfo(np.int32).max, np.int64)
        frontier, count = np.flatnonzero(self._accepting), 0
        while frontier.size:
            spend(_ROUND + len(distances))
            distances[frontier] = count
            frontier = self._step(frontier, distances == np.iinfo(np.int32).max)
            count += 1
        return distances

    def _step(self, states: Ints, wanted: Bools) -> Ints:
        """The states, of those wanted, that come to one of these at the end of a character."""
        found = np.zeros(len(wanted), np.bool_)
        frontier = np.unique(self._last.before(states))
        while frontier.size:
            frontier = frontier[wanted[frontier] & ~found[frontier]]
            found[frontier] = True
            frontier = np.unique(self._inside.before(frontier))
        return np.flatnonzero(found)

    def _find_levels(self, high: int | None, spend: Spend) -> None:
        """The states that can end in exactly 0, 1, 2 … characters, until they repeat or there are enough."""
        seen: dict[bytes, int] = {}
        everything = np.ones(len(self._accepting), np.bool_)
        states = np.flatnonzero(self._accepting)
        while high is None or len(self._levels) <= high:
            bits = np.zeros(len(everything), np.bool_)
            bits[states] = True
            level = np.packbits(bits).tobytes()
            if level in seen:
                self.period = len(self._levels) - seen[level]
                return
            seen[level] = len(self._levels)
            self._levels.append(level)
            spend(_ROUND + len(self._last) + len(self._inside))
            states = self._step(states, everything)

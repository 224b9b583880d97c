"""A constraint over the tokens of one vocabulary as a table: all states, all classes of tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.composition import END, NEVER

DEAD = -1

Ints = NDArray[np.integer]
Words = NDArray[np.uint32]


class DeviceTables(NamedTuple):
    """An index as plain arrays for a device: V tokens, C classes, S states, M masks, W = ceil(C / 32) words.

    Token t is allowed in state s where bit ``c % 32`` of ``masks[m, c // 32]`` is set, c being ``class_of_token[t]``,
    m ``mask_of_state[s]``. EOS tokens are class 1 and allowed where the output may end, class 0 is never allowed.
    After an allowed token the state is ``s + next[first_next[s] + n]``, n being the number of allowed classes below c;
    EOS leads back to s. A generation begins in state 0, and no state but the S is ever reached.
    """

    class_of_token: NDArray[np.int32]  # [V]
    masks: Words  # [M, W]
    mask_of_state: NDArray[np.int32]  # [S]
    first_next: NDArray[np.int32]  # [S]
    next: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TokenIndex:
    """What every state allows and where it leads. Immutable, safe for threads.

    States are numbered breadth first, in the order of the bytes that lead to them; 0 is the start. Tokens that no state
    tells apart are a class: ``NEVER``, ``END``, then by their first token in the order of bytes. State s has the row
    ``r = row_of_state[s]``, which has the mask ``m = mask_of_row[r]``: the classes ``classes[mask_starts[m] :
    mask_starts[m + 1]]`` are allowed, ascending, and lead to s plus each of ``deltas[row_starts[r] :
    row_starts[r + 1]]``. Equal rows are one, and so are equal masks. The output may end where ``END`` is allowed.
    ``forced_byte[s]`` is the only byte that may follow where the output may not end, or -1, and ``forced_delta[s]``
    leads to the state after it.
    """

    class_of_token: Ints  # [V]
    row_of_state: Ints  # [S]
    mask_of_row: Ints  # [R]
    row_starts: Ints  # [R + 1]
    deltas: Ints
    mask_starts: Ints  # [M + 1]
    classes: Ints
    forced_byte: Ints  # [S]
    forced_delta: Ints  # [S]

    def __len__(self) -> int:
        """Number of states."""
        return len(self.row_of_state)

    @property
    def mask_count(self) -> int:
        """Number of masks that differ."""
        return len(self.mask_starts) - 1

    @property
    def row_count(self) -> int:
        """Number of rows that differ."""
        return len(self.mask_of_row)

    @cached_property
    def class_count(self) -> int:
        """Number of classes of tokens, ``NEVER`` and ``END`` included, whether there are such tokens or not."""
        return 1 + max(END, int(self.class_of_token.max(initial=0)), int(self.classes.max(initial=0)))

    @property
    def nbytes(self) -> int:
        """Size of the table in bytes."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Ints]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def mask_of(self, state: int) -> int:
        """The number of a state's mask."""
        return int(self.mask_of_row[self.row_of_state[state]])

    def allowed_classes(self, mask: int) -> Ints:
        """The classes that a mask allows, ascending."""
        return self.classes[self.mask_starts[mask] : self.mask_starts[mask + 1]]

    def accepting(self, state: int) -> bool:
        """Whether the output may end here."""
        allowed = self.allowed_classes(self.mask_of(state))
        return bool(allowed.size and allowed[0] == END)

    def complete(self, state: int) -> bool:
        """Whether the output has to end here: it may, and no token may follow."""
        allowed = self.allowed_classes(self.mask_of(state))
        return allowed.size == 1 and allowed[0] == END

    def step(self, state: int, token_id: int) -> int:
        """The state after a token that is not EOS, or ``DEAD`` where it is not allowed."""
        token_class = int(self.class_of_token[token_id])
        row = int(self.row_of_state[state])
        allowed = self.allowed_classes(int(self.mask_of_row[row]))
        at = int(allowed.searchsorted(token_class))
        if token_class == END or at == allowed.size or allowed[at] != token_class:
            return DEAD
        return state + int(self.deltas[self.row_starts[row] + at])

    def words(self, mask: int) -> Words:
        """A mask as packed words over the vocabulary: bit ``i % 32`` of word ``i // 32`` is token i."""
        allowed = np.zeros(self.class_count, np.bool_)
        allowed[self.allowed_classes(mask)] = True
        size = len(self.class_of_token)
        packed = np.zeros((size + 31) // 32 * 4, np.uint8)
        packed[: (size + 7) // 8] = np.packbits(allowed[self.class_of_token], bitorder="little")
        return packed.view("<u4").astype(np.uint32, copy=False)

    def forced_bytes(self, state: int, limit: int = 4096) -> bytes:
        """What has to follow: up to where the output may end, there is a choice, or ``limit`` bytes are found."""
        forced = bytearray()
        while len(forced) < limit and (byte := int(self.forced_byte[state])) >= 0:
            forced.append(byte)
            state += int(self.forced_delta[state])
        return bytes(forced)

    def device_tables(self) -> DeviceTables:
        """The same as plain arrays for a device, where the place in a row is found by rank and not by search."""
        width = (self.class_count + 31) // 32
        bits = np.zeros((self.mask_count, width * 32), np.bool_)
        counts = np.diff(self.mask_starts.astype(np.int64))
        bits[np.repeat(np.arange(self.mask_count), counts), self.classes] = True
        return DeviceTables(
            self.class_of_token.astype(np.int32),
            np.packbits(bits, axis=1, bitorder="little").view("<u4").astype(np.uint32, copy=False),
            self.mask_of_row[self.row_of_state].astype(np.int32),
            self.row_starts[:-1][self.row_of_state].astype(np.int32),
            self.deltas.astype(np.int32),
        )

    def check(self, eos_ids: tuple[int, ...]) -> None:
        """Raise ``ValueError`` unless every number in the arrays is one that may stand there.

        What has passed can be asked anything without leaving the arrays, whoever wrote it.
        """
        shapes = [array.ndim == 1 and array.dtype.kind in "iu" for array in self.arrays().values()]
        _require(all(shapes), "arrays of integers")
        _require(len(self.row_of_state) > 0, "no state")
        for starts, of in ((self.row_starts, self.deltas), (self.mask_starts, self.classes)):
            _require(len(starts) > 0 and starts[0] == 0 and starts[-1] == len(of), "bounds")
            _require(bool((np.diff(starts.astype(np.int64)) >= 0).all()), "bounds that fall")
        _require(len(self.row_starts) == len(self.mask_of_row) + 1, "rows")
        _require(_all_below(self.row_of_state, self.row_count), "a row that is not there")
        _require(_all_below(self.mask_of_row, self.mask_count), "a mask that is not there")
        lengths = np.diff(self.row_starts.astype(np.int64))
        _require(bool((lengths == np.diff(self.mask_starts.astype(np.int64))[self.mask_of_row]).all()), "row lengths")
        self._check_classes(eos_ids)
        self._check_targets()

    def _check_classes(self, eos_ids: tuple[int, ...]) -> None:
        _require(_all_below(self.class_of_token, len(self.class_of_token) + 2), "a class that is not there")
        _require(_all_below(self.classes, len(self.class_of_token) + 2), "a class that is not there")
        _require(self.classes.min(initial=END) > NEVER, "the class of tokens that are never allowed")
        falls = np.flatnonzero(self.classes[1:] <= self.classes[:-1]) + 1
        _require(bool(np.isin(falls, self.mask_starts).all()), "classes that are not ascending")
        _require(np.array_equal(np.flatnonzero(self.class_of_token == END), eos_ids), "other EOS tokens")

    def _check_targets(self) -> None:
        count = len(self)
        states = np.arange(count, dtype=np.int64)
        filled = np.flatnonzero(np.diff(self.row_starts.astype(np.int64)))
        lowest, highest = (np.zeros(self.row_count, np.int64) for _ in range(2))
        if filled.size:
            starts = self.row_starts[filled].astype(np.intp)
            lowest[filled] = np.minimum.reduceat(self.deltas, starts)
            highest[filled] = np.maximum.reduceat(self.deltas, starts)
        _require(bool((states + lowest[self.row_of_state] >= 0).all()), "a state below 0")
        _require(bool((states + highest[self.row_of_state] < count).all()), "a state that is not there")
        _require(len(self.forced_byte) == len(self.forced_delta) == count, "forced bytes")
        _require(bool(((self.forced_byte >= -1) & (self.forced_byte < 256)).all()), "a byte that is none")
        forced = states + self.forced_delta
        _require(bool(((forced >= 0) & (forced < count)).all()), "a state that is not there")


def smallest(array: Ints) -> Ints:
    """The same numbers in the smallest type that holds them."""
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    types = (np.uint8, np.uint16, np.uint32) if low >= 0 else (np.int8, np.int16, np.int32)
    for each in types:
        if np.iinfo(each).min <= low and high <= np.iinfo(each).max:
            return array.astype(each)
    raise OverflowError("a number of more than 32 bits in a token index")


def _all_below(array: Ints, bound: int) -> bool:
    return not array.size or (int(array.min()) >= 0 and int(array.max()) < bound)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"not a token index: {what}")

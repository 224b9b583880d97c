"""A constraint over the tokens of one vocabulary as a table: all states, all classes of tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.dfa import ranges
from lmc.ir.cached import cached_property

DEAD = -1
NEVER = 0  # the class of tokens that no state allows
END = 1  # the class of EOS tokens, allowed where the output may end
COLUMN = 32  # classes that are kept together, as in native/table.c
_BIT_COUNTS = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)

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
    """The allowed tokens and the transitions of every state. Immutable, safe for threads.

    States are numbered breadth first, in the order of the bytes that lead to them; 0 is the start. Tokens that are
    equivalent in all states are a class: ``NEVER``, ``END``, then by their first token in the order of bytes. State s
    has the row ``r = row_of_state[s]``, which has a shape and targets. The shape ``h = shape_of_row[r]`` consists of
    the blocks ``blocks[block_starts[h] : block_starts[h + 1]]``, by column. Block b allows class ``32 *
    column_of_block[b] + i`` for every bit i of ``bits_of_block[b]``, and for these, ascending, ``places`` holds which
    of the targets it leads to (one block's behind the other's): ``s + deltas[target_starts[r] + place]``. Deltas of a
    row ascend. The output may end where ``END`` is allowed, which leads to s. Equal rows are one; so are shapes and
    blocks, and shapes that allow the same classes have one mask, ``mask_of_shape[h]``. ``forced_byte[s]`` is the only
    byte that may follow where the output may not end, or -1, and ``forced_delta[s]`` leads to the state after it.
    """

    class_of_token: Ints  # [V]
    row_of_state: Ints  # [S]
    shape_of_row: Ints  # [R]
    target_starts: Ints  # [R + 1]
    deltas: Ints
    mask_of_shape: Ints  # [H]
    block_starts: Ints  # [H + 1]
    blocks: Ints
    column_of_block: Ints  # [K]
    bits_of_block: Ints  # [K], words of 32 bits
    places: Ints
    forced_byte: Ints  # [S]
    forced_delta: Ints  # [S]

    def __len__(self) -> int:
        """Number of states."""
        return len(self.row_of_state)

    @property
    def mask_count(self) -> int:
        """Number of masks that differ."""
        return int(self.mask_of_shape.max()) + 1

    @property
    def row_count(self) -> int:
        """Number of rows that differ."""
        return len(self.shape_of_row)

    @cached_property
    def class_count(self) -> int:
        """Number of classes of tokens, ``NEVER`` and ``END`` included, whether there are such tokens or not."""
        return 1 + max(END, int(self.class_of_token.max(initial=0)), self.highest_class)

    @property
    def nbytes(self) -> int:
        """Size of the table in bytes."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Ints]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def mask_of(self, state: int) -> int:
        """The number of a state's mask."""
        return int(self.mask_of_shape[self._shape(state)])

    def targets(self, row: int) -> Ints:
        """Return the targets of a row, less the state's own number, ascending."""
        return self.deltas[int(self.target_starts[row]) : int(self.target_starts[row + 1])]

    def accepting(self, state: int) -> bool:
        """Return True if the output may end here."""
        return bool(self.is_end[self._shape(state)])

    @cached_property
    def is_end(self) -> NDArray[np.bool_]:
        """True for each shape where the output may end."""
        found = np.zeros(len(self.mask_of_shape), np.bool_)
        (filled,) = np.nonzero(np.diff(self.block_starts.astype(np.int64)))
        firsts = self.blocks[self.block_starts[filled].astype(np.intp)]
        found[filled] = (self.column_of_block[firsts] == 0) & ((self.bits_of_block[firsts] >> END & 1) == 1)
        return found

    def complete(self, state: int) -> bool:
        """Return True if the output has to end here: it may, and no token may follow."""
        blocks = self._blocks(self._shape(state))
        return self.accepting(state) and blocks.size == 1 and int(self.bits_of_block[blocks[0]]) == 1 << END

    def step(self, state: int, token_id: int) -> int:
        """The state after a token that is not EOS, or ``DEAD`` where it is not allowed."""
        column, bit = divmod(int(self.class_of_token[token_id]), COLUMN)
        row = int(self.row_of_state[state])
        blocks = self._blocks(int(self.shape_of_row[row]))
        at = int(self.column_of_block[blocks].searchsorted(column))
        if at == blocks.size or self.column_of_block[blocks[at]] != column or (column, bit) == (0, END):
            return DEAD
        block = int(blocks[at])
        bits = int(self.bits_of_block[block])
        if not bits >> bit & 1:
            return DEAD
        place = int(self.place_starts[block]) + (bits & (1 << bit) - 1).bit_count()
        return state + int(self.deltas[int(self.target_starts[row]) + int(self.places[place])])

    def words(self, mask: int) -> Words:
        """A mask as packed words over the vocabulary: bit ``i % 32`` of word ``i // 32`` is token i."""
        size = len(self.class_of_token)
        allowed = np.unpackbits(self._class_words(mask).view(np.uint8), bitorder="little")
        packed = np.zeros((size + 31) // 32 * 4, np.uint8)
        packed[: (size + 7) // 8] = np.packbits(allowed.take(self.class_of_token), bitorder="little")
        return packed.view("<u4").astype(np.uint32, copy=False)

    def forced_bytes(self, state: int, limit: int = 4096) -> bytes:
        """Return the forced bytes, up to a possible end or a choice, at most ``limit`` of them."""
        forced = bytearray()
        while len(forced) < limit and (byte := int(self.forced_byte[state])) >= 0:
            forced.append(byte)
            state += int(self.forced_delta[state])
        return bytes(forced)

    def device_tables(self) -> DeviceTables:
        """The same as plain arrays for a device, where the place in a row is found by rank."""
        shape_places = ranges(self.place_starts[self.blocks], self.place_counts[self.blocks])
        ends = np.zeros(len(self.blocks) + 1, np.int64)
        np.cumsum(self.place_counts[self.blocks], out=ends[1:])
        shape_starts = ends[self.block_starts.astype(np.intp)]  # in shape_places
        counts = np.diff(shape_starts)[self.shape_of_row]
        first_next = np.cumsum(counts) - counts
        targets = np.repeat(self.target_starts[:-1].astype(np.int64), counts)
        targets += self.places[shape_places[ranges(shape_starts[self.shape_of_row], counts)]]
        return DeviceTables(
            self.class_of_token.astype(np.int32),
            np.stack([self._class_words(mask) for mask in range(self.mask_count)]),
            self.mask_of_shape[self.shape_of_row[self.row_of_state]].astype(np.int32),
            first_next[self.row_of_state].astype(np.int32),
            self.deltas[targets].astype(np.int32),
        )

    @cached_property
    def highest_class(self) -> int:
        """The highest class that a block allows."""
        if not len(self.column_of_block):
            return NEVER
        column = int(self.column_of_block.max())
        bits = np.bitwise_or.reduce(self.bits_of_block[self.column_of_block == column])
        return column * COLUMN + int(bits).bit_length() - 1

    @cached_property
    def place_counts(self) -> NDArray[np.int64]:
        """The number of classes that each block allows."""
        halves = _BIT_COUNTS[self.bits_of_block & 0xFFFF], _BIT_COUNTS[self.bits_of_block >> 16]
        return np.add(*halves, dtype=np.int64)

    @cached_property
    def place_starts(self) -> NDArray[np.int64]:
        """The offset of each block's places, and at last their number."""
        starts = np.zeros(len(self.bits_of_block) + 1, np.int64)
        np.cumsum(self.place_counts, out=starts[1:])
        return starts

    def _shape(self, state: int) -> int:
        return int(self.shape_of_row[self.row_of_state[state]])

    def _blocks(self, shape: int) -> Ints:
        return self.blocks[int(self.block_starts[shape]) : int(self.block_starts[shape + 1])]

    def _class_words(self, mask: int) -> Words:
        """A mask as packed words over the classes."""
        words = np.zeros((self.class_count + COLUMN - 1) // COLUMN, np.uint32)
        blocks = self._blocks(int(self._shape_of_mask[mask]))
        words[self.column_of_block[blocks]] = self.bits_of_block[blocks]
        return words

    @cached_property
    def _shape_of_mask(self) -> NDArray[np.intp]:
        """A shape that has the mask."""
        shapes = np.zeros(self.mask_count, np.intp)
        shapes[self.mask_of_shape] = np.arange(len(self.mask_of_shape))
        return shapes


def smallest(array: Ints) -> Ints:
    """The same numbers in the smallest type that holds them."""
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    types = (np.uint8, np.uint16, np.uint32) if low >= 0 else (np.int8, np.int16, np.int32)
    for each in types:
        if np.iinfo(each).min <= low and high <= np.iinfo(each).max:
            return array.astype(each)
    raise OverflowError("a number of more than 32 bits in a token index")

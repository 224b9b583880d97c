"""The tokens of a vocabulary as a tree of their bytes, and the walk of it together with an automaton."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.dfa import ranges
from lmc.grammar.automata.runs import group_bits
from lmc.grammar.native.library import library
from lmc.ir.cached import cached_property

# As in native/trie.h and native/walk.c.
_NODE = np.dtype([("end", np.int32), ("token", np.int32), ("label", np.uint32)])
_SUBTREE = np.dtype([("groups", np.uint64), ("first", np.int32), ("height", np.int32)])
_PLACE_SIZE, _FRAME_SIZE = 24, 32
_GROUP_BITS = group_bits()
_MORE_TOKENS = 1 << 8
_DEPTH_SHIFT = 9

Ints = NDArray[np.int32]
_Value = TypeVar("_Value", bound=np.generic)


class AllowedTokens(NamedTuple):
    """The tokens that may follow a state.

    ``words`` has a bit for each token; ``tokens`` are the same ones and ``nexts`` their targets, in no particular order
    (empty where they were not asked for).
    """

    words: NDArray[np.uint32]
    tokens: Ints
    nexts: Ints


class Trie:
    """The tokens that have bytes, in depth-first order of their nodes; the root is node 0.

    ``nodes`` has of each node the first node after its subtree (``end``), the lowest token that ends there or -1
    (``token``) and ``label``: the byte that leads to it, whether more tokens end there (bit 8), its depth (bits 9 up).
    ``same[token]`` is the next token with the same bytes, or -1, and ``sorted_ids`` are the tokens by their bytes.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.size = len(tokens)
        ids = [token_id for token_id, token in enumerate(tokens) if token]
        ids.sort(key=tokens.__getitem__)  # stable: equal ones stay by id
        self.sorted_ids: Ints = np.array(ids, np.int32)
        chosen = [tokens[token_id] for token_id in ids]
        self.longest = max(map(len, chosen), default=0)
        self.same: Ints = np.full(self.size, -1, np.int32)
        self._rooms: list[_Room] = []  # as many as walks were under way at once
        native = library()
        if native is None:
            self.nodes = _built(chosen, ids, self.same)
            return
        data = np.frombuffer(b"".join(chosen), np.uint8)
        starts = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, chosen), np.int64, len(chosen)), out=starts[1:])
        nodes = np.empty(len(data) + 1, _NODE)
        path = np.empty(self.longest + 1, np.int32)
        made: int = native.lmc_trie_build(
            *(array.ctypes.data for array in (data, starts, self.sorted_ids)),
            *(len(ids), nodes.ctypes.data, self.same.ctypes.data, path.ctypes.data),
        )
        self.nodes = nodes[:made].copy()

    def __len__(self) -> int:
        """Nodes, the root included."""
        return len(self.nodes)

    def walk(self, automaton: Automaton, state: int, *, with_nexts: bool = False) -> AllowedTokens:
        """Return the tokens that may follow a state of an automaton, whose rows are computed on demand.

        ``nexts`` are states of the automaton, asked for by ``with_nexts``. The caller holds the automaton's lock.
        """
        if library() is None:
            return self._walk_by_levels(automaton, state)
        return self._walk_natively(automaton, state, with_nexts)

    def _walk_natively(self, automaton: Automaton, state: int, with_nexts: bool) -> AllowedTokens:
        native = library()
        assert native is not None
        words = np.zeros((self.size + 31) // 32, np.uint32)
        tokens, nexts = (np.empty(self.size if with_nexts else 0, np.int32) for _ in range(2))
        try:
            room = self._rooms.pop()
        except IndexError:
            room = _Room(self)
        call = room.call
        call.mask = words.ctypes.data
        call.tokens, call.nexts = (tokens.ctypes.data, nexts.ctypes.data) if with_nexts else (None, None)
        start, rows, missing = state, None, [state]
        while missing:
            for each in sorted(set(missing)):
                automaton.expand(each)
                if not with_nexts:
                    automaton.note_run(each)
            if rows is not automaton.rows:  # other arrays once states were added
                rows = automaton.rows
                call.rows, call.runs = rows.ctypes.data, None if with_nexts else automaton.runs.ctypes.data
            count: int = native.lmc_trie_walk(room.address, start)
            missing = room.unknown[:count].tolist()
            start = -1
        pairs = call.pairs
        self._rooms.append(room)
        return AllowedTokens(words, tokens[:pairs], nexts[:pairs])

    def _walk_by_levels(self, automaton: Automaton, state: int) -> AllowedTokens:
        """Compute ``walk`` in numpy: all nodes of one depth at a time."""
        nodes, states = np.zeros(1, np.int32), np.full(1, state, np.int32)
        ended: list[tuple[Ints, Ints]] = []
        while nodes.size:
            for each in np.unique(states).tolist():
                automaton.expand(each)
            counts, children = self.children(nodes)
            nexts = automaton.rows[np.repeat(states, counts), self.bytes[children]]
            children, nexts = children[nexts >= 0], nexts[nexts >= 0]
            ended += self.ending(children, nexts)
            inner = self._child_counts[children] > 0
            nodes, states = children[inner], nexts[inner]
        tokens, nexts = (np.concatenate([np.empty(0, np.int32), *parts]) for parts in _transposed(ended))
        return AllowedTokens(packed(tokens, self.size), tokens, nexts)

    def children(self, nodes: Ints) -> tuple[NDArray[np.intp], Ints]:
        """Return the number of children of each of some nodes, and the children, one node's after the other's."""
        counts = self._child_counts[nodes]
        return counts, self._by_depth[ranges(self._first_children[nodes], counts)]

    def ending(self, nodes: Ints, values: NDArray[_Value]) -> Iterator[tuple[Ints, NDArray[_Value]]]:
        """Tokens that end at some nodes with the value of each, several at one node in several parts."""
        tokens = self.nodes["token"][nodes]
        while (has_token := tokens >= 0).any():
            tokens, values = tokens[has_token], values[has_token]
            yield tokens, values
            tokens = self.same[tokens]

    @cached_property
    def subtrees(self) -> NDArray[np.void]:
        """The subtree of each node, as in native/trie.h; one more for the end. Only with a compiler."""
        native = library()
        assert native is not None
        found = np.empty(len(self.nodes) + 1, _SUBTREE)
        native.lmc_trie_subtrees(
            *(self.nodes.ctypes.data, len(self.nodes), self.same.ctypes.data),
            *(_GROUP_BITS.ctypes.data, found.ctypes.data),
        )
        return found

    @cached_property
    def bytes(self) -> NDArray[np.uint8]:
        """The byte that leads to each node."""
        return self.nodes["label"].astype(np.uint8)

    @cached_property
    def _by_depth(self) -> Ints:
        """Nodes by depth, those of a depth in order: children of one node lie together."""
        return np.argsort(self.nodes["label"] >> _DEPTH_SHIFT, kind="stable").astype(np.int32)

    @cached_property
    def _child_counts(self) -> NDArray[np.intp]:
        return np.bincount(self._parents[1:], minlength=len(self.nodes))

    @cached_property
    def _first_children(self) -> NDArray[np.intp]:
        """The offset of each node's children in ``_by_depth``: after the root come those of the nodes in that order."""
        firsts = np.empty(len(self.nodes), np.intp)
        counts = self._child_counts[self._by_depth]
        firsts[self._by_depth] = 1 + np.cumsum(counts) - counts
        return firsts

    @cached_property
    def _parents(self) -> NDArray[np.intp]:
        parents = np.zeros(len(self.nodes), np.intp)
        depths = self.nodes["label"] >> _DEPTH_SHIFT
        bounds = np.searchsorted(depths[self._by_depth], np.arange(self.longest + 2))
        above = self._by_depth[:1]
        for first, last in pairwise(bounds[1:]):
            level = self._by_depth[first:last]
            parents[level] = above[np.searchsorted(above, level) - 1]
            above = level
        return parents


class _WalkCall(ctypes.Structure):
    """``walk_call`` of native/walk.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("nodes", "subtrees", "sorted", "same", "group_bits")),
        *((name, ctypes.c_void_p) for name in ("rows", "runs", "path", "mask", "tokens", "nexts", "unknown")),
        *((name, ctypes.c_void_p) for name in ("begun", "later")),
        *((name, ctypes.c_int64) for name in ("count", "pairs")),
    )


class _Room:
    """The scratch memory of a walk; used by one walk after the other."""

    def __init__(self, trie: Trie) -> None:
        nodes = len(trie.nodes)
        self.unknown = np.empty(nodes, np.int32)
        self._arrays = (
            np.empty((trie.longest + 1) * _FRAME_SIZE, np.uint8),
            *np.empty((2, nodes * _PLACE_SIZE), np.uint8),
        )
        path, begun, later = (array.ctypes.data for array in self._arrays)
        fixed = (trie.nodes, trie.subtrees, trie.sorted_ids, trie.same, _GROUP_BITS)
        self.call = _WalkCall(
            *(array.ctypes.data for array in fixed),
            **{"path": path, "begun": begun, "later": later, "unknown": self.unknown.ctypes.data},
        )
        self.address = ctypes.byref(self.call)


def packed(tokens: Ints, size: int) -> NDArray[np.uint32]:
    """A mask of ``size`` tokens with the bits of some."""
    allowed = np.zeros((size + 31) // 32 * 32, np.bool_)
    allowed[tokens] = True
    return np.packbits(allowed, bitorder="little").view("<u4").astype(np.uint32, copy=False)


def _transposed(pairs: list[tuple[Ints, Ints]]) -> tuple[list[Ints], list[Ints]]:
    return [tokens for tokens, _ in pairs], [nexts for _, nexts in pairs]


def _built(tokens: list[bytes], ids: list[int], same: Ints) -> NDArray[np.void]:
    """The nodes of sorted tokens, as native/trie.c builds them."""
    ends, last, labels = [0], [-1], [0]
    path, before = [0], b""
    latest = -1
    for token_id, token in zip(ids, tokens, strict=True):
        common = 0
        while common < min(len(before), len(token)) and before[common] == token[common]:
            common += 1
        if common == len(token) == len(before):
            labels[path[-1]] |= _MORE_TOKENS
            same[latest] = token_id
        else:
            for node in path[common + 1 :]:
                ends[node] = len(ends)
            del path[common + 1 :]
            for depth in range(common, len(token)):
                path.append(len(ends))
                ends.append(0)
                last.append(-1)
                labels.append((depth + 1) << _DEPTH_SHIFT | token[depth])
            last[path[-1]] = token_id
        before, latest = token, token_id
    for node in path:
        ends[node] = len(ends)
    nodes = np.empty(len(ends), _NODE)
    nodes["end"], nodes["token"], nodes["label"] = ends, last, labels
    return nodes

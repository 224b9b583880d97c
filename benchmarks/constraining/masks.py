"""Other libraries' masks behind lmc's protocol, so that one engine is driven by any of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.constraining.cases import Case
from benchmarks.constraining.peers import Compiled, LLGuidanceWalk, Peer, Walk
from lmc.ir.errors import ConstraintError

Words = NDArray[np.uint32]


class PeerConstraint:
    """A compiled constraint of a peer. States follow one output: `advance` moves the only one there is."""

    def __init__(self, peer: Peer, pattern: str, end_ids: tuple[int, ...]) -> None:
        self._peer = peer
        self._compiled: Compiled = peer.compile(Case("generated", pattern, (), regex=pattern))
        self._ends = end_ids
        self.digest = ""

    def start(self) -> Any:
        """A new output, beside others that are not finished."""
        walk = self._compiled.start()
        if isinstance(walk, LLGuidanceWalk):  # there is one of it, for one output after the other
            walk = walk.copy()
        return PeerState(self._peer, walk, self._ends)

    def matches(self, output: str | bytes) -> bool:
        """Outputs are compared with lmc's own instead."""
        del output
        return True


class PeerState:
    """Where one output stands. A mask is made when it is asked for, once a position."""

    def __init__(self, peer: Peer, walk: Walk, end_ids: tuple[int, ...]) -> None:
        self._peer, self._walk, self._ends = peer, walk, end_ids
        self._mask: Words | None = None

    def mask(self) -> Words:
        if self._mask is None:
            self._walk.fill()
            self._mask = self._peer.words.copy()
        return self._mask

    @property
    def accepting(self) -> bool:
        """Whether an end is allowed."""
        words = self.mask()
        return any(int(words[end // 32]) >> end % 32 & 1 for end in self._ends)

    @property
    def complete(self) -> bool:
        """Whether nothing but an end is: no step is computed for it, as with lmc's own."""
        return self.accepting and int(np.bitwise_count(self.mask()).sum()) <= len(self._ends)

    def advance(self, token_id: int) -> PeerState:
        if not self._walk.accept(token_id):
            raise ConstraintError(f"token {token_id} was refused", remedy="compare the masks")
        self._mask = None
        return self

    def forced(self) -> list[int]:
        return []

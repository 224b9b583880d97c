"""Live states for a vocabulary that can't write every byte: those from which tokens can lead to an end.

The automaton has no dead ends in bytes; where a byte is no token, there may be some in tokens. A state from which no
end is found within a budget counts as one. All states on the path to an end that was found are live, so that every
generation can continue.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.index.composition import unwritable
from lmc.grammar.index.trie import AllowedTokens, Trie, packed
from lmc.ir.errors import ConstraintError

MAX_SEARCHED = 2_000  # states looked at to find out about one
MAX_WORK = 200_000  # see `Arena.work`; what their rows may cost


class TokenPaths:
    """Finds out which states are live: from which some tokens lead to an end. The caller holds the automaton's lock."""

    def __init__(self, automaton: Automaton, trie: Trie) -> None:
        self._automaton = automaton
        self._trie = trie
        self._live: dict[int, bool] = {}
        self._nearer: dict[int, int] = {}  # of live states that do not accept: one that tokens lead to, towards an end
        self._nexts: dict[int, list[int]] = {}

    def check_start(self) -> None:
        """Raise ``ConstraintError`` where tokens can't write any output, or that is not found out within a budget."""
        searched = self._search(0)
        if searched is not None:
            raise ConstraintError(
                f"whether this vocabulary can write an output can't be said by looking at {searched} states",
                remedy="use a vocabulary with a token for each byte",
            )
        if not self._live[0]:
            raise unwritable()

    def walk(self, state: int) -> AllowedTokens:
        """The tokens that lead from a live state to live ones."""
        found = self._trie.walk(self._automaton, state, with_nexts=True)
        nexts, inverse = np.unique(found.nexts, return_inverse=True)
        live: NDArray[np.bool_] = np.array([self.is_live(each) for each in nexts.tolist()], np.bool_)
        kept = live[inverse] if len(nexts) else np.zeros(0, np.bool_)
        return AllowedTokens(packed(found.tokens[kept], self._trie.size), found.tokens[kept], found.nexts[kept])

    def way_out(self, state: int) -> list[int]:
        """A live state and those on a way from it to an end; each has tokens that lead to the next one."""
        found = [state]
        while found[-1] in self._nearer:
            found.append(self._nearer[found[-1]])
        return found

    def keep(self, way: list[int]) -> None:
        """Take over that these states are on a way to an end: the last one accepts, or is live."""
        for state, following in pairwise(way):
            if not self._live.get(state, False):
                self._live[state] = True
                self._nearer[state] = following
        self._live[way[-1]] = True

    def is_live(self, state: int) -> bool:
        """Return whether tokens lead from a state to an end that is found within a budget."""
        if state not in self._live and self._search(state) is not None:
            self._live[state] = False
        return self._live[state]

    def _search(self, start: int) -> int | None:
        """Find out about a state: None, or how many states were looked at where the budget does not suffice.

        By turns breadth and depth first, up to a state that is known to be live, or all that there are.

        So an end that is near is found, and one that is far along a way that does not branch much.
        """
        if self._is_end(start):
            self._live[start] = True
            return None
        before: dict[int, int | None] = {start: None}
        # What each of the two came to, so that the one that goes deep is not called back by the other.
        fronts = deque([start]), deque[int]()
        searched, worked = 0, self._automaton.work
        while any(fronts):
            front = fronts[searched % 2] or fronts[1 - searched % 2]
            is_deep = searched % 2 == 1
            state = front.pop() if is_deep else front.popleft()
            if state in self._live:
                continue
            searched += 1
            if searched > MAX_SEARCHED or self._automaton.work - worked > MAX_WORK:
                return searched - 1
            for each in self._following(state):
                if each in before:
                    continue
                before[each] = state
                if self._is_end(each):
                    way = [each]
                    while (passed := before[way[-1]]) is not None:
                        way.append(passed)
                    self.keep(way[::-1])
                    return None
                fronts[is_deep].append(each)
        self._live.update(dict.fromkeys(before, False))
        return None

    def _is_end(self, state: int) -> bool:
        return self._live.get(state, False) or self._automaton.accepting(state)

    def _following(self, state: int) -> list[int]:
        known = self._nexts.get(state)
        if known is None:
            walk = self._trie.walk(self._automaton, state, with_nexts=True)
            known = self._nexts[state] = np.unique(walk.nexts).tolist()
        return known

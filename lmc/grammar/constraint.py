"""Constraints over the tokens of one vocabulary: their common interface, and those that an automaton follows."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from lmc.grammar.automata.automaton import MAX_STATES, Automaton
from lmc.grammar.facts import Facts, regular_facts, short_output
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.indexing import build_index
from lmc.grammar.index.states import MAX_MASK_BYTES, State, StateTable, TokenState
from lmc.grammar.index.store import IndexStore
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError


class Constraint(ABC):
    """The allowed outputs of a generation, for one vocabulary. ``digest`` identifies them; safe for threads.

    ``narrowed`` are the keywords of a schema that are enforced by fewer values than they allow, by JSON pointer, each
    with the values produced. ``source`` is the ``Source`` that it was compiled from, if a cache did.
    """

    def __init__(self, vocabulary: Vocabulary, digest: str, narrowed: Mapping[str, str] | None = None) -> None:
        self.vocabulary = vocabulary
        self.digest = digest
        self.narrowed: Mapping[str, str] = narrowed or {}
        self.source: Any = None

    @abstractmethod
    def start(self) -> TokenState:
        """The state of a generation that has said nothing yet."""

    @abstractmethod
    def matches(self, output: str | bytes) -> bool:
        """Return whether a whole output is allowed."""

    @abstractmethod
    def facts(self) -> Facts:
        """Return what there is to say of it; more once it is built."""

    def build(self, *, max_states: int = MAX_STATES) -> TokenIndex | None:
        """Make all states ahead of time, where there are finitely many; None where there are not."""
        del max_states
        return None

    def shortest_beyond(self, limit: int) -> int | None:
        """Tokens of a shortest output where that is known to be more than ``limit``; else None."""
        del limit
        return None


_PIECE = 1 << 6  # bytes of an output that are checked at once


class RegularConstraint(Constraint):
    """A constraint with an automaton over bytes: states, masks and steps come into being when they are asked for.

    ``build`` makes all of them at once, where the automaton is not recursive; ``index`` is then the table of them.
    Until then generations share one table of states; when its automaton has taken half of its room, all go on in
    another, and what the old one holds goes with the last that leaves it. So a generation never fails for the number of
    its states, but where the arena of the automaton has a budget for each token.

    Args:
        automaton: over bytes, not empty. It belongs to the constraint from here on.
        vocabulary: the tokens.
        digest: names what the constraint says.
        narrowed: see ``Constraint``.
        store: where indexes are looked for and kept.
        max_mask_bytes: how much memory the masks of a table that were handed out may take.

    Raises:
        ConstraintError: no output can be written in these tokens.
    """

    def __init__(
        self,
        automaton: Automaton,
        vocabulary: Vocabulary,
        digest: str,
        *,
        narrowed: Mapping[str, str] | None = None,
        store: IndexStore | None = None,
        max_mask_bytes: int = MAX_MASK_BYTES,
    ) -> None:
        super().__init__(vocabulary, digest, narrowed)
        self._store = store
        self._lock = threading.RLock()
        self._building = threading.Lock()
        self._enough: int | None = None  # tokens: there is an output of so many
        self._max_mask_bytes = max_mask_bytes
        self._table = self._table_of(automaton)
        self._late: StateTable | None = None  # for generations that began before there was an index

    @property
    def automaton(self) -> Automaton:
        """Over bytes; another one when that of a table has taken half of its room."""
        return self._table.automaton

    @property
    def index(self) -> TokenIndex | None:
        """All states and tokens, once they were built."""
        return self._table.index

    def start(self) -> State:
        return self._roomy().start

    def matches(self, output: str | bytes) -> bool:
        data = output.encode("utf-8", "surrogatepass") if isinstance(output, str) else output
        with self._lock:
            automaton, state = self._roomy().automaton, 0
            for at in range(0, len(data), _PIECE):
                if automaton.is_half_full:
                    automaton, state = automaton.renewed(state), 0
                with automaton.one_token():
                    state = automaton.run(data[at : at + _PIECE], state)
                if state < 0:
                    return False
            return automaton.accepting(state)

    def build(self, *, max_states: int = MAX_STATES) -> TokenIndex | None:
        """Make the index of all states and tokens, or load it from the folder given; at once where there is one.

        None where the automaton is recursive: there is no end of states.

        States that were handed out before stay what they are. Raises ``ConstraintError`` where that would be too much;
        the constraint can be used as before.
        """
        if self.automaton.is_recursive:
            return None
        with self._building:
            if self.index is not None:
                return self.index
            if self._store is not None:
                loaded = self._store.load(self.digest, self.vocabulary)
                if loaded is not None and len(loaded) <= max_states and self._adopted(loaded):
                    return loaded
            with self._lock:
                automaton = self.automaton
                automaton.expand_all(max_states)
            # Nothing changes a complete automaton: generations go on meanwhile.
            made = build_index(automaton, self.vocabulary, max_states=max_states)
            if not self._adopted(made):
                raise AssertionError("the index says something else than the automaton")
            if self._store is not None:
                self._store.save(self.digest, self.vocabulary, made)
            return made

    def facts(self) -> Facts:
        with self._lock:
            return regular_facts(self.automaton, self.index, self.vocabulary, self.digest, self.start())

    def shortest_beyond(self, limit: int) -> int | None:
        if not self.vocabulary.is_of_model:
            return None
        with self._lock:
            if self._enough is None:
                self._enough = short_output(self.automaton, self.vocabulary)
        if limit >= self._enough:
            return None
        with contextlib.suppress(ConstraintError):
            self.build()
        shortest = self.facts().shortest_tokens
        return shortest if shortest is not None and shortest > limit else None

    def _roomy(self) -> StateTable:
        """The table in which generations begin."""
        table = self._table
        if table.index is not None or not table.automaton.is_half_full:
            return table
        with self._lock:
            if self._table is table:
                self._table = self._table_of(table.automaton.renewed(), table)
            return self._table

    def _next_table(self) -> StateTable:
        """The table into which generations move. It has no index: states are numbered otherwise there."""
        if self._table.index is None:
            return self._roomy()
        if self._late is None or self._late.automaton.is_half_full:
            self._late = self._table_of(self._table.automaton.renewed(), self._table)
        return self._late

    def _table_of(self, automaton: Automaton, before: StateTable | None = None) -> StateTable:
        limit, following = self._max_mask_bytes, self._next_table
        return StateTable(automaton, self.vocabulary, self._lock, limit, following, before=before)

    def _adopted(self, index: TokenIndex) -> bool:
        """Return True if it agrees with the present start states; then generations use it from here on."""
        with self._lock:
            if self._table.has_moved_in:
                self._table = self._table_of(self._table.automaton.renewed(), self._table)
            return self._table.adopt(index)

"""States of generations in an automaton over the tokens of one vocabulary, each state once, and their masks."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.automaton import DEAD, Automaton
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.indexing import unwritable
from lmc.grammar.vocabulary.trie import AllowedTokens, Trie, packed
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

Words = NDArray[np.uint32]
MAX_MASK_BYTES = 1 << 27


class TokenState(Protocol):
    """The state of a generation in any constraint: see ``State``."""

    @property
    def accepting(self) -> bool: ...

    @property
    def complete(self) -> bool: ...

    def mask(self) -> Words: ...

    def advance(self, token_id: int) -> TokenState: ...

    def forced(self) -> list[int]: ...


class Holder(Protocol):
    """Hands out its mask while it has one."""

    words: Words | None


class Masks:
    """Masks by content. The caller holds a lock around every method.

    Where they take more than ``limit`` bytes, those kept longest are taken from their holders; a holder that asks again
    gets the same array as long as anything else still has it.
    """

    def __init__(self, limit: int = MAX_MASK_BYTES) -> None:
        self.nbytes = 0
        self._limit = limit
        self._kept: dict[int, list[Holder]] = {}
        self._arrays: weakref.WeakValueDictionary[int, Words] = weakref.WeakValueDictionary()

    def give(self, words: Words, holder: Holder) -> Words:
        """The read-only array equal to ``words``, which the holder now has."""
        key = hash(words.tobytes())
        while (shared := self._arrays.get(key)) is not None and not np.array_equal(shared, words):
            key += 1
        if shared is None:
            shared = words
            shared.flags.writeable = False
            self._arrays[key] = shared
        if key not in self._kept:
            self._kept[key] = []
            self.nbytes += shared.nbytes
        self._kept[key].append(holder)
        holder.words = shared
        while self.nbytes > self._limit and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            for each in self._kept.pop(oldest):
                each.words = None
            self.nbytes -= shared.nbytes
        return shared


MAX_SEARCHED = 2_000  # states looked at to find out about one
MAX_WORK = 200_000  # see `Arena.work`; what their rows may cost


class TokenPaths:
    """Finds out which states are live: from which some tokens lead to an end. The caller holds the automaton's lock.

    For a vocabulary that can't write every byte: the automaton has no dead ends in bytes, but there may be some in
    tokens. A state from which no end is found within a budget counts as one. All states on the path to an end that was
    found are live, so that every generation can continue.
    """

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


_FOLLOWING_KEPT = 1 << 20  # steps between states that are remembered, all states together


class State:
    """The state of a generation in a ``RegularConstraint``. Immutable to its users and shared by all generations.

    There is one object for each state, so states of one table are equal where they are identical. Computed on demand:
    ``words`` (its mask), ``following`` (states by token), ``ends``, ``draft``.
    """

    __slots__ = ("__weakref__", "accepting", "draft", "ends", "following", "number", "origin", "table", "words")

    def __init__(self, table: StateTable, number: int, accepting: bool, origin: tuple[State, int] | None) -> None:
        self.table = table
        self.number = number  # of the automaton, or of the index once there is one
        self.accepting = accepting
        self.origin = origin  # the state and token by which it was first reached
        self.words: Words | None = None
        self.following: dict[int, State] = {}
        self.ends: bool | None = None
        self.draft: tuple[int, ...] | None = None

    @property
    def complete(self) -> bool:
        """Return whether the output has to end here: it may, and no token may follow."""
        ends = self.ends
        return self.table.is_complete(self) if ends is None else ends

    def mask(self) -> Words:
        """Tokens allowed next: bit ``i % 32`` of word ``i // 32`` is token i; EOS ids where ``accepting``.

        Read-only, and the same array each time.
        """
        words = self.words
        return self.table.mask_of(self) if words is None else words

    def advance(self, token_id: int) -> State:
        """The state after an allowed token that is not EOS. Raises ``ConstraintError`` for any other."""
        following = self.following.get(token_id)
        return self.table.state_after(self, token_id) if following is None else following

    def forced(self) -> list[int]:
        """Canonical tokens of the text that has to follow, empty where there is a choice or the output may end."""
        draft = self.draft
        return list(self.table.draft_of(self) if draft is None else draft)

    def __repr__(self) -> str:
        return f"State({self.number}, accepting={self.accepting})"


class StateTable:
    """The states that generations share, made when they are asked for: those of ``index`` once there is one.

    ``lock`` is the constraint's. Masks that were handed out are kept up to ``max_mask_bytes``. ``next_table`` returns
    the table into which generations move when the automaton of this one has taken half of its room; ``before`` has the
    same start, with tokens that lead to an end. Raises ``ConstraintError`` where no output can be written in the tokens
    of the vocabulary.
    """

    def __init__(
        self,
        automaton: Automaton,
        vocabulary: Vocabulary,
        lock: threading.RLock,
        max_mask_bytes: int,
        next_table: Callable[[], StateTable],
        *,
        before: StateTable | None = None,
    ) -> None:
        self.automaton = automaton
        self.vocabulary = vocabulary
        self.index: TokenIndex | None = None
        self._lock = lock
        self._masks = Masks(max_mask_bytes)
        self._mask_arrays: weakref.WeakValueDictionary[int, Words] = weakref.WeakValueDictionary()
        self._followed = 0
        self._next_table = next_table
        self.has_moved_in = False
        """True if it has states of generations that began in another table."""
        # A vocabulary that can't write each byte may leave dead ends.
        self._paths: TokenPaths | None = None if vocabulary.has_all_bytes else TokenPaths(automaton, vocabulary.trie)
        if self._paths is not None:
            if before is None:
                self._paths.check_start()
            else:
                self._take_way_out(before, 0)
        self.start = State(self, 0, automaton.accepting(0), None)
        self._states: dict[int, State] = {0: self.start}
        self._unbounded: dict[int, State] = {}  # by their behaviour within the length of a token

    def mask_of(self, state: State) -> Words:
        """The mask of a state that has none yet."""
        with self._lock, self.automaton.one_token():
            if state.words is not None:
                return state.words
            if self.index is None:
                return self._masks.give(self._lazy_mask(state), state)
            mask = self.index.mask_of(state.number)
            words = self._mask_arrays.get(mask)
            shared = self._masks.give(self.index.words(mask) if words is None else words, state)
            self._mask_arrays[mask] = shared
            return shared

    def _lazy_mask(self, state: State) -> Words:
        if self._paths is not None:
            return self._walked(state)
        number = self.automaton.unbounded(state.number, self.vocabulary.trie.longest)
        if number == state.number:
            return self._walked(state)
        alike = self._unbounded.get(number)
        if alike is None:
            alike = self._unbounded[number] = State(self, number, state.accepting, None)
        return self._masks.give(self._walked(alike), alike) if alike.words is None else alike.words

    def is_complete(self, state: State) -> bool:
        """Return whether an output that has come to this state has to end."""
        with self._lock, self.automaton.one_token():
            if state.ends is None:
                if self.index is not None:
                    state.ends = self.index.complete(state.number)
                elif self._paths is not None:
                    state.ends = state.accepting and not len(self._paths.walk(state.number).tokens)
                else:
                    state.ends = state.accepting and not self.automaton.arcs(state.number)
            return state.ends

    def state_after(self, state: State, token_id: int) -> State:
        """The state after a token, remembered. Raises ``ConstraintError`` where it is not allowed."""
        with self._lock, self.automaton.one_token():
            number = self._step(state.number, token_id)
            if number == DEAD:
                raise ConstraintError(
                    f"{self.vocabulary.describe(token_id)} may not follow here",
                    remedy="take a token that the mask of the state allows",
                )
            if self._followed >= _FOLLOWING_KEPT:
                for each in self._states.values():
                    each.following = {}
                self._followed = 0
            table = self
            if self.index is None and self.automaton.is_half_full:
                table = self._next_table()
            following = self._numbered(number, (state, token_id)) if table is self else table._moved(self, number)
            state.following[token_id] = following
            self._followed += 1
            return following

    def _numbered(self, number: int, origin: tuple[State, int] | None) -> State:
        state = self._states.get(number)
        if state is None:
            accepting = self._known.accepting(number)
            state = self._states[number] = State(self, number, accepting, origin)
        return state

    def _moved(self, table: StateTable, number: int) -> State:
        """The state here for one of another table."""
        self.has_moved_in = True
        self._take_way_out(table, number)
        return self._numbered(self.automaton.state_of(table.automaton, number), None)

    def _take_way_out(self, table: StateTable, number: int) -> None:
        """Take over that a state of another table has an end: what is found out anew may need another budget."""
        if self._paths is not None and table._paths is not None:
            way = table._paths.way_out(number)
            self._paths.keep([self.automaton.state_of(table.automaton, each) for each in way])

    def draft_of(self, state: State) -> tuple[int, ...]:
        """The tokens of the text that has to follow a state, found once."""
        with self._lock, self.automaton.one_token():
            if state.draft is None:
                data = self._known.forced_bytes(state.number)
                state.draft = self._allowed_prefix(state.number, self.vocabulary.encode_cut(data))
            return state.draft

    @property
    def _known(self) -> TokenIndex | Automaton:
        return self.automaton if self.index is None else self.index

    def _walked(self, state: State) -> Words:
        if self._paths is None:
            words = self.vocabulary.trie.walk(self.automaton, state.number).words
        else:
            words = self._paths.walk(state.number).words
        if state.accepting:
            for token_id in self.vocabulary.eos_ids:
                words[token_id // 32] |= np.uint32(1 << token_id % 32)
        return words

    def _step(self, number: int, token_id: int) -> int:
        vocabulary = self.vocabulary
        if not 0 <= token_id < vocabulary.size or not vocabulary.tokens[token_id]:
            return DEAD
        if self.index is not None:
            return self.index.step(number, token_id)
        following = self.automaton.run(vocabulary.tokens[token_id], number)
        return DEAD if following >= 0 and self._paths is not None and not self._paths.is_live(following) else following

    def _allowed_prefix(self, number: int, ids: list[int]) -> tuple[int, ...]:
        """Tokens up to the first that is not allowed; only a vocabulary that lacks bytes has such."""
        if self._paths is None:
            return tuple(ids)
        for at, token_id in enumerate(ids):
            number = self._step(number, token_id)
            if number == DEAD:
                return tuple(ids[:at])
        return tuple(ids)

    def adopt(self, index: TokenIndex) -> bool:
        """Return whether every state so far has one in the index; then it is used from here on.

        Not for a table that generations have moved into.
        """
        with self._lock:
            numbers: dict[State, int] = {}
            for state in self._states.values():  # in the order in which they came into being
                number = 0 if state.origin is None else index.step(numbers[state.origin[0]], state.origin[1])
                if number == DEAD or index.accepting(number) != state.accepting:
                    return False
                numbers[state] = number
            if len(set(numbers.values())) < len(numbers):
                return False
            for state, number in numbers.items():
                state.number = number
            self._states = {number: state for state, number in numbers.items()}
            self._unbounded = {}
            self.index = index
            return True

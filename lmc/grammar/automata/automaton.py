"""The byte automaton of a constraint: a DFA whose states are nodes, made as they are reached, or the tree of a set."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Kind, Node, longest_length, references
from lmc.grammar.automata.runs import Run, Runs, beginnings, counted, groups_inside, may_run, no_runs, run_of
from lmc.grammar.automata.shortest import ShortestStrings, shortest_path
from lmc.ir.errors import ConstraintError

MAX_STATES_OF_TREE = 500_000  # of 1 kB each
MAX_LENGTH = 20_000  # bytes of a string


def prefix_tree(strings: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Rows [S, 256] (next state, -1 for none) and acceptance [S] of the tree of sorted, distinct strings.

    States are numbered breadth first, in the order of the bytes that lead to them. Raises ``ConstraintError`` where
    they would be too many.
    """
    lengths = np.array([len(each) for each in strings], np.int64)
    depth = int(lengths.max(initial=0))
    common = np.array([0, *map(_common_length, strings, strings[1:])], np.int64)[: len(strings)]
    states_at_most = 1 + int((lengths - common).sum())
    _check_size(states_at_most, depth)
    rows = np.full((states_at_most, 256), -1, np.int32)
    accepting = np.zeros(len(rows), np.bool_)
    flat = np.frombuffer(b"".join(strings), np.uint8)
    firsts = np.cumsum(lengths) - lengths  # where each begins in `flat`
    alive = np.arange(len(strings))  # strings that reach this level
    states = np.zeros(len(strings), np.int64)  # and their states on it
    made = 1
    for level in range(depth + 1):
        ends = lengths[alive] == level
        accepting[states[ends]] = True
        alive, parents = alive[~ends], states[~ends]
        if not alive.size:
            break
        begins = common[alive] <= level  # differs from the one before in this byte or earlier
        begins[0] = True
        states = made - 1 + np.cumsum(begins)
        rows[parents, flat[firsts[alive] + level]] = states
        made = int(states[-1]) + 1
    return rows[:made], accepting[:made]


def _check_size(states: int, depth: int) -> None:
    if states > MAX_STATES_OF_TREE:
        raise ConstraintError(
            f"the choices have {states} different beginnings, more than {MAX_STATES_OF_TREE}",
            remedy="give fewer or shorter ones, or a regex for what they have in common",
        )
    if depth > MAX_LENGTH:
        raise ConstraintError(
            f"a choice of {depth} bytes, more than {MAX_LENGTH}", remedy="let the model choose a short name for it"
        )


def _common_length(left: bytes, right: bytes) -> int:
    shared = min(len(left), len(right))
    difference = int.from_bytes(left[:shared]) ^ int.from_bytes(right[:shared])
    return shared - (difference.bit_length() + 7) // 8


Rows = NDArray[np.int32]

DEAD = -1
UNKNOWN = -2
MAX_STATES = 200_000
MAX_STATES_AHEAD = 40_000  # made by `expand_all`
MAX_WORK = 80_000  # see `Arena.work`; of `expand_all`
MAX_WORK_OF_SHORTEST = 200_000
_SMALLER = "give smaller bounds, ASCII classes, or fewer alternatives that begin alike"


class Automaton:
    """States 0 (the start) to ``len(self) - 1``; every one of them can still reach acceptance.

    ``rows`` [capacity, 256] holds the state after each byte, ``DEAD`` where that byte can't come; a row that is not
    made yet is all ``UNKNOWN``. ``runs`` are those that were noted. Both are other arrays after states were added. Not
    safe for several threads at once; whoever shares an automaton holds a lock around ``expand`` and what calls it (all
    but ``rows``, ``accepting`` and ``is_expanded``).

    Raises ``ConstraintError`` where intersections and complements are too large to compute; rows do so only beyond the
    budget of a token, once ``lift_limits`` was called. ``max_states`` bounds the memory of what is kept: see
    ``is_half_full``.
    """

    def __init__(self, root: Node, arena: Arena, *, max_states: int = MAX_STATES) -> None:
        self._derivatives = Derivatives(arena)
        self._nodes: list[Node] = []
        self._states: dict[Node, int] = {}
        self._max_states = max_states
        self._columns: dict[int, NDArray[np.intp]] = {}
        self._accepting = bytearray()
        self._expanded = 0  # the rows of all states below are made
        self.rows: Rows = np.full((16, 256), UNKNOWN, np.int32)
        self.runs: Runs = no_runs(16)
        self._root: Node | None = root
        self._longest: int | None = None
        resolved = self._derivatives.resolved(root)
        self.is_empty = resolved.kind is Kind.EMPTY
        """True if there is no output at all; then state 0 neither accepts nor leads anywhere."""
        if self.is_empty:
            self._root = arena.empty
        self.is_recursive = any(references(resolved))
        """True if values nest without bound, so that there is no end of states."""
        self._shortest = ShortestStrings()
        self._runs_of_parts: dict[Node, Run] = {}
        self._state(resolved)
        self._half_full = (max_states // 2, (len(arena) + arena.budget.nodes) // 2)

    @classmethod
    def of_strings(cls, strings: Sequence[bytes]) -> Automaton:
        """The automaton of a finite set, all of whose rows are made at once."""
        arena = Arena()
        made = cls(arena.epsilon, arena)
        made.rows, accepting = prefix_tree(sorted(set(strings)))
        made.runs = no_runs(len(made.rows))
        made._expanded = len(made.rows)
        made._accepting = bytearray(accepting.tobytes())
        made._root, made._longest = None, max(map(len, strings), default=0)
        made.is_empty = not strings
        made._states.clear()
        made._nodes.clear()
        return made

    def __len__(self) -> int:
        """States so far."""
        return len(self._accepting)

    @property
    def longest(self) -> int | None:
        """No output has more bytes than this; None: there is no bound that is known without a search."""
        if self._root is not None:
            self._root, self._longest = None, longest_length(self._root)
        return self._longest

    @property
    def work(self) -> int:
        """Return what its rows have cost so far: see `Arena.work`."""
        return self._derivatives.arena.work

    def lift_limits(self) -> None:
        """From here on rows are made for generations, which have the budget of their tokens alone."""
        self._derivatives.arena.lift_limits()

    def one_token(self) -> AbstractContextManager[None]:
        """Hold the rows made inside to the budget of a token: see `Arena.one_token`."""
        return self._derivatives.arena.one_token()

    def renewed(self, state: int = 0) -> Automaton:
        """The automaton of what may follow a state, none of whose rows is made yet. Not for one of ``of_strings``."""
        old = self._derivatives.arena
        arena = Arena(old.budget)
        arena.lift_limits()
        return Automaton(arena.copy(self._nodes[state]), arena, max_states=self._max_states)

    def state_of(self, other: Automaton, state: int) -> int:
        """The state with what may follow one of another automaton."""
        return self._state(self._derivatives.arena.copy(other._nodes[state]))

    @property
    def is_half_full(self) -> bool:
        """Return whether what came into being since the start has taken half of what it should: time for a renewed one.

        False for an automaton all of whose rows were made at once.
        """
        states, nodes = self._half_full
        return len(self._nodes) > states or len(self._derivatives.arena) > nodes

    def accepting(self, state: int) -> bool:
        """Return whether an output may end here."""
        return bool(self._accepting[state])

    def is_expanded(self, state: int) -> bool:
        """Return whether the row is made."""
        return bool(self.rows[state, 0] != UNKNOWN)

    def expand(self, state: int) -> None:
        """Make the row of a state, and states for what it leads to."""
        if self.is_expanded(state):
            return
        found = [(mask, self._state(target)) for mask, target in self._derivatives.arcs(self._nodes[state])]
        row = self.rows[state]
        row.fill(DEAD)
        for mask, target in found:
            row[self._bytes(mask) if mask & (mask - 1) else mask.bit_length() - 1] = target

    def unbounded(self, state: int, reach: int) -> int:
        """A state that allows the same tokens of up to ``reach`` bytes: one for many from which a limit is far off."""
        if state >= len(self._nodes):
            return state
        return self._state(self._derivatives.unbounded(self._nodes[state], reach))

    def note_run(self, state: int) -> None:
        """Record in ``runs`` the run of a state, whose row is made."""
        if state >= len(self._nodes) or not may_run(self._nodes[state]):
            return
        node, row, counting = self._nodes[state], self.rows[state], DEAD
        mask, length = counted(node)
        if length:
            following = int(row[mask.bit_length() - 1])
            if np.count_nonzero(row == following) == mask.bit_count():
                counting = following
        if counting == DEAD:
            mask, length = self._run_of(node)
        self.runs[state] = groups_inside(mask), length, counting

    def _run_of(self, node: Node) -> Run:
        """The longest run of the parts that a node can begin with, which are known from other places."""
        found: Run = (0, 0)
        for part in beginnings(node):
            if part is not None:
                run = self._runs_of_parts.get(part)
                if run is None:
                    run = self._runs_of_parts[part] = run_of(part)
                if run[1] > found[1]:
                    found = run
        return found

    def expand_all(self, max_states: int = MAX_STATES_AHEAD) -> None:
        """Make every row, breadth first. Raises ``ConstraintError`` where that is too much; what was made stays."""
        if len(self) > max_states:
            raise too_many_states(max_states)
        worked = self.work
        while self._expanded < len(self):
            if len(self) > max_states:
                raise too_many_states(max_states)
            if self.work - worked > MAX_WORK:
                raise _too_much_work("all states of the constraint", MAX_WORK)
            self.expand(self._expanded)
            self._expanded += 1

    def arcs(self, state: int) -> list[tuple[int, int]]:
        """Byte sets (bit b: byte b), by their lowest byte, each with the state it leads to."""
        self.expand(state)
        masks: dict[int, int] = {}
        row = self.rows[state]
        for byte in np.flatnonzero(row >= 0).tolist():
            target = int(row[byte])
            masks[target] = masks.get(target, 0) | (1 << byte)
        return [(mask, target) for target, mask in masks.items()]

    def step(self, state: int, byte: int) -> int:
        """The state after one byte, or ``DEAD``."""
        if self.rows[state, 0] == UNKNOWN:
            self.expand(state)
        return int(self.rows[state, byte])

    def run(self, data: bytes, state: int = 0) -> int:
        """The state after ``data``, or ``DEAD``."""
        for byte in data:
            state = self.step(state, byte)
            if state < 0:
                return DEAD
        return state

    def matches(self, data: bytes) -> bool:
        """Return whether ``data`` is a whole output."""
        state = self.run(data)
        return state >= 0 and self.accepting(state)

    def forced_bytes(self, state: int, limit: int = 4096) -> bytes:
        """Return what has to follow: up to where the output may end, or has a choice, or ``limit`` bytes are found.

        It is less where more would be beyond the budget of a token.
        """
        forced = bytearray()
        while len(forced) < limit and not self._accepting[state]:
            try:
                self.expand(state)
            except ConstraintError:
                break
            (found,) = np.nonzero(self.rows[state] >= 0)
            if len(found) != 1:
                break
            forced.append(int(found[0]))
            state = int(self.rows[state, found[0]])
        return bytes(forced)

    def shortest(self, state: int = 0) -> bytes | None:
        """A shortest rest of an output from a state on; None where there is no output.

        It is the first by its bytes where the automaton is not recursive. Raises ``ConstraintError`` where that would
        take too long.
        """
        if self.is_recursive:
            return self._shortest.of(self._nodes[state])
        worked = self.work

        def arcs(at: int) -> list[tuple[int, int]]:
            if self.work - worked > MAX_WORK_OF_SHORTEST:
                raise _too_much_work("a shortest output", MAX_WORK_OF_SHORTEST)
            return self.arcs(at)

        return shortest_path(state, arcs, self.accepting)

    def _state(self, node: Node) -> int:
        state = self._states.get(node)
        if state is None:
            state = self._states[node] = len(self)
            if state == len(self.rows):
                more = np.full((len(self.rows), 256), UNKNOWN, np.int32)
                self.rows = np.concatenate((self.rows, more))
                self.runs = np.concatenate((self.runs, no_runs(len(more))))
            self._nodes.append(node)
            self._accepting.append(node.nullable)
        return state

    def _bytes(self, mask: int) -> NDArray[np.intp]:
        found = self._columns.get(mask)
        if found is None:
            bits = np.frombuffer(mask.to_bytes(32, "little"), np.uint8)
            found = self._columns[mask] = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        return found


def _too_much_work(what: str, limit: int) -> ConstraintError:
    return ConstraintError(f"{what} can't be worked out in {limit} steps", remedy=_SMALLER)


def too_many_states(limit: int) -> ConstraintError:
    """Return what is said of an automaton that grows beyond a budget."""
    return ConstraintError(
        f"the constraint needs more than {limit} states",
        remedy=_SMALLER,
    )

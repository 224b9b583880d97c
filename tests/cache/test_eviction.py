"""Evictions against their rules written out over single tokens."""

import math
import os
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from lmc.cache import PagePool, RadixCache
from lmc.cache.eviction import LeastFrequentlyUsed, NextUse
from lmc.cache.expected import Expectation, ExpectedUses
from lmc.cache.node import RadixNode

NUM_PAGES = 40
EXAMPLES = 3000 if os.environ.get("LMC_TEST_FULL") == "1" else 100
sequences = st.lists(st.integers(0, 2), min_size=1, max_size=10).map(tuple)
runs = st.sampled_from([None, "a", "b"])

Prefix = tuple[int, ...]


@dataclass
class Known:
    """What is known of one cached token: who used it and when."""

    episode: int | None = None
    used_at: int = 0
    others_at: int | None = None
    last_access: int = 0


@dataclass
class Rules:
    """The rules of `NextUse`, token by token."""

    tokens: dict[Prefix, Known] = field(default_factory=dict[Prefix, Known])
    expected: list[tuple[Prefix, int, str | None]] = field(default_factory=list[tuple[Prefix, int, str | None]])
    episodes: dict[str | None, int] = field(default_factory=dict[str | None, int])
    episode_count: int = 0
    starts: dict[str | None, int] = field(default_factory=dict[str | None, int])
    admissions: int = 0
    now: int = 0

    def begin(self, run: str | None) -> None:
        if run is not None and run not in self.episodes:
            self.episode_count += 1
            self.episodes[run] = self.episode_count
            self.starts[run] = self.now

    def start(self, run: str | None) -> int:
        return self.starts[run] if run in self.episodes else self.now

    def withdraw(self, row: tuple[Prefix, int, str | None]) -> None:
        self.expected.remove(row)
        if all(run != row[2] for _, _, run in self.expected):
            self.episodes.pop(row[2], None)

    def use(self, sequence: Prefix, run: str | None, clock: int) -> None:
        for length in range(1, len(sequence) + 1):
            known = self.tokens.get(sequence[:length])
            if known is None:
                return
            episode = self.episodes.get(run)
            if episode is None:
                known.others_at = self.admissions
            elif known.episode is not None and known.episode != episode:
                known.others_at = known.used_at
            known.episode, known.used_at, known.last_access = episode or 0, self.admissions, clock

    def victims(self) -> set[Prefix]:
        """The tokens of which any may go next."""
        leaves = [each for each in self.tokens if not any((*each, token) in self.tokens for token in range(3))]
        places = {each: self.place(each) for each in leaves}
        farthest = max(places.values(), default=(0.0, 0.0))
        return {each for each, place in places.items() if place == farthest}

    def place(self, prefix: Prefix) -> tuple[float, float]:
        known = self.tokens[prefix]
        distance = min((rank for tokens, rank, _ in self.expected if tokens[: len(prefix)] == prefix), default=math.inf)
        since = known.others_at if known.episode in self.episodes.values() else known.used_at
        age = math.inf if since is None else self.admissions - since
        nearest = min(distance - self.now, age)
        return (math.inf, -known.last_access) if nearest == math.inf else (nearest, 0.0)


class NextUseMachine(RuleBasedStateMachine):
    expectations = Bundle("expectations")

    @initialize()
    def start(self) -> None:
        self.eviction = NextUse()
        self.cache = RadixCache(PagePool(NUM_PAGES), self.eviction)
        self.model = Rules()

    @rule(target=expectations, tokens=sequences, ahead=st.integers(-3, 12), run=runs)
    def expect(self, tokens: Prefix, ahead: int, run: str | None) -> tuple[Expectation, tuple[Prefix, int, str | None]]:
        self.model.begin(run)
        rank = self.model.start(run) + ahead
        made = self.eviction.expect(tokens, run, ahead, None)
        self.model.expected.append((tokens, rank, run))
        return made, (tokens, rank, run)

    @rule(found=consumes(expectations))
    def withdraw(self, found: tuple[Expectation, tuple[Prefix, int, str | None]]) -> None:
        expectation, row = found
        self.eviction.withdraw(expectation)
        self.cache.reconsider(expectation.tokens)
        self.model.withdraw(row)

    @rule(run=runs, rank=st.integers(0, 40))
    def admit(self, run: str | None, rank: int) -> None:
        self.eviction.admitted(run, rank)
        self.model.admissions += 1
        if run is not None:
            self.model.now = max(self.model.now, self.model.start(run) + rank)

    @rule(tokens=sequences, run=runs)
    def match(self, tokens: Prefix, run: str | None) -> None:
        self.cache.match_prefix(tokens, run=run)
        self.model.use(tokens, run, self.cache._clock)

    @rule(tokens=sequences, run=runs)
    def insert(self, tokens: Prefix, run: str | None) -> None:
        if self.cache.pool.free_count < len(tokens):
            self.evict(len(tokens) - self.cache.pool.free_count)
        self.cache.insert(tokens, self.cache.pool.allocate(len(tokens)), run=run)
        for length in range(1, len(tokens) + 1):
            self.model.tokens.setdefault(tokens[:length], Known())
        self.model.use(tokens, run, self.cache._clock)

    @rule(count=st.integers(1, 6))
    def evict(self, count: int) -> None:
        """One by one, any of the farthest; many at once, as many as by one and one."""
        for _ in range(count):
            may_go = self.model.victims()
            before = self.cached()
            assert self.cache.evict(1) == min(1, len(before))
            gone = before - self.cached()
            assert len(gone) == min(1, len(before))
            assert gone <= may_go
            for each in gone:
                del self.model.tokens[each]

    def cached(self) -> set[Prefix]:
        found: set[Prefix] = set()
        for node in self.cache.nodes():
            above: Prefix = ()
            step = node.parent
            while step is not None:
                above = (*step.tokens.tolist(), *above)
                step = step.parent
            tokens = node.tokens.tolist()
            found.update((*above, *tokens[: length + 1]) for length in range(len(tokens)))
        return found

    @invariant()
    def holds(self) -> None:
        self.cache.check_invariants()
        self.eviction.expected.check_invariants()
        assert self.cached() == set(self.model.tokens)


TestNextUse = NextUseMachine.TestCase
TestNextUse.settings = settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)


class ExpectedMachine(RuleBasedStateMachine):
    """`tail` is the minimum over all expectations that begin with the tokens, and where it changes."""

    expectations = Bundle("expectations")

    @initialize()
    def start(self) -> None:
        self.uses = ExpectedUses()
        self.rows: list[tuple[str | None, Prefix, int]] = []

    @rule(target=expectations, tokens=sequences, rank=st.integers(0, 9), key=st.sampled_from([None, "k"]))
    def expect(self, tokens: Prefix, rank: int, key: str | None) -> tuple[Expectation, tuple[str | None, Prefix, int]]:
        self.rows.append((key, tokens, rank))
        return self.uses.expect(tokens, rank, key), (key, tokens, rank)

    @rule(found=consumes(expectations))
    def withdraw(self, found: tuple[Expectation, tuple[str | None, Prefix, int]]) -> None:
        self.uses.withdraw(found[0])
        self.uses.withdraw(found[0])
        self.rows.remove(found[1])

    @rule(tokens=sequences, key=st.sampled_from([None, "k"]))
    def tail(self, tokens: Prefix, key: str | None) -> None:
        ranks = [
            min((rank for k, each, rank in self.rows if k == key and each[:length] == tokens[:length]), default=None)
            for length in range(1, len(tokens) + 1)
        ]
        rank, count = self.uses.tail(np.array(tokens, np.int32), key)
        assert rank == ranks[-1]
        assert 1 <= count <= len(tokens)
        assert set(ranks[len(ranks) - count :]) == {rank}
        if rank is None:
            assert count == ranks.count(None)

    @invariant()
    def holds(self) -> None:
        self.uses.check_invariants()
        assert len(self.uses) == len(self.rows)


TestExpected = ExpectedMachine.TestCase
TestExpected.settings = settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)


def put(cache: RadixCache, sequence: list[int]) -> None:
    cache.insert(sequence, cache.pool.allocate(len(sequence)))


_RUNS = st.sampled_from([None, "a", "b"])
_HISTORY = st.lists(st.tuples(st.sampled_from(["use", "begin", "end", "admit"]), _RUNS), max_size=12)


@settings(max_examples=400)
@given(_HISTORY, _RUNS)
def test_a_leaf_that_grows_has_the_uses_of_its_new_tokens(
    history: list[tuple[str, str | None]], run: str | None
) -> None:
    """Whatever the history of a leaf: where it may grow, the notes of old and new tokens are equal after the use."""
    eviction = NextUse()
    root = RadixNode.root(None)
    leaf, new = (RadixNode(np.array([token], np.int32), np.array([token]), root, 0) for token in (1, 2))
    open_runs: list[str | None] = []
    for event, each in history:
        if event == "use":
            eviction.used([leaf], each)
        elif event == "admit":
            eviction.admitted(each, 0)
        elif event == "begin":
            eviction.begin(each)
            open_runs.append(each)
        elif each in open_runs:
            eviction.end(each)
            open_runs.remove(each)
    if eviction.has_uses_of_new(leaf, run):
        eviction.used([leaf, new], run)
        assert _notes(leaf) == _notes(new)


def _notes(node: RadixNode) -> tuple[int | None, int, int | None]:
    return node.episode, node.used_at, node.used_by_others_at


def test_least_frequently_used_goes_first_and_of_those_the_oldest() -> None:
    cache = RadixCache(PagePool(20), LeastFrequentlyUsed())
    for sequence in ([1, 2], [3, 4], [5, 6]):
        put(cache, sequence)
    for _ in range(3):
        cache.match_prefix([1, 2])
    cache.match_prefix([5, 6])
    cache.evict(2)
    assert [cache.match_prefix(each).length for each in ([1, 2], [3, 4], [5, 6])] == [2, 0, 2]


def test_only_the_end_of_an_edge_that_goes_with_the_farthest_use_is_cut() -> None:
    eviction = NextUse()
    cache = RadixCache(PagePool(20), eviction)
    eviction.begin("run")
    eviction.expected.expect([1, 2, 3], 5, run="run")
    eviction.expected.expect([9], 7, run="run")
    cache.insert([1, 2, 3, 4, 5], cache.pool.allocate(5), run="run")
    cache.insert([9, 8], cache.pool.allocate(2), run="run")
    assert cache.evict(4) == 4  # 4 and 5 are dead, as is 8; then 9, which is used after 1 2 3
    assert [cache.match_prefix(each, run="run").length for each in ([1, 2, 3, 4], [9])] == [3, 0]


def test_what_a_run_left_is_kept_by_age_once_it_has_ended() -> None:
    eviction = NextUse()
    cache = RadixCache(PagePool(20), eviction)
    eviction.begin("call")
    cache.insert([1, 2], cache.pool.allocate(2), run="call")
    put(cache, [3, 4])
    eviction.end("call")
    for _ in range(5):
        eviction.admitted(None, 0)
    cache.match_prefix([1, 2])
    cache.evict(2)
    assert [cache.match_prefix(each).length for each in ([1, 2], [3, 4])] == [2, 0]


def test_the_age_of_what_others_and_an_ended_run_used_is_that_of_the_last_use() -> None:
    eviction = NextUse()
    cache = RadixCache(PagePool(20), eviction)
    for token in (1, 2, 3):
        put(cache, [token])
        eviction.admitted(None, 0)
    eviction.begin("call")
    cache.match_prefix([1], run="call")
    cache.reconsider([1])  # while the run is under way, the age is that of the use before
    eviction.end("call")
    eviction.admitted(None, 0)
    cache.evict(1)
    assert [cache.match_prefix([token]).length for token in (1, 2, 3)] == [1, 0, 1]


def test_many_expectations_of_one_prompt_stay_cheap() -> None:
    uses = ExpectedUses()
    prompt = list(range(50))
    standing = [uses.expect(prompt, rank) for rank in range(2000)]
    for each in standing[1:]:
        uses.withdraw(each)
    root = uses._roots[None]
    assert len(root.entries) <= 2 + 64
    assert uses.tail(np.array(prompt, np.int32)) == (0, 50)

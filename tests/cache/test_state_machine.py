"""Radix cache and pool together against a model that keeps every cached prefix as a row of a dict."""

import os
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from lmc.cache import InvariantError, PagePool, PoolExhaustedError, RadixCache, RadixNode

NUM_PAGES = 40
Prefix = tuple[str | None, tuple[int, ...]]

extra_keys = st.sampled_from([None, "adapter"])
sequences = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


@dataclass
class NaiveCache:
    """Every cached prefix with its page and the time of its last use; LRU one token at a time."""

    pages: dict[Prefix, int] = field(default_factory=dict)
    used: dict[Prefix, int] = field(default_factory=dict)
    pinned: list[Prefix] = field(default_factory=list)
    clock: int = 0

    def match(self, key: str | None, tokens: tuple[int, ...]) -> list[int]:
        self.clock += 1
        found: list[int] = []
        for length in range(1, len(tokens) + 1):
            prefix = key, tokens[:length]
            if prefix not in self.pages:
                break
            found.append(self.pages[prefix])
            self.used[prefix] = self.clock
        return found

    def insert(self, key: str | None, tokens: tuple[int, ...], pages: list[int]) -> list[int]:
        for length in range(1, len(tokens) + 1):
            self.pages.setdefault((key, tokens[:length]), pages[length - 1])
        return self.match(key, tokens)

    def is_pinned(self, prefix: Prefix) -> bool:
        key, tokens = prefix
        return any(key == other and tokens == pinned[: len(tokens)] for other, pinned in self.pinned)

    def remove(self, key: str | None, tokens: tuple[int, ...]) -> None:
        for prefix in list(self.pages):
            if prefix[0] == key and prefix[1][: len(tokens)] == tokens:
                del self.pages[prefix]

    def evict(self, count: int) -> int:
        for freed in range(count):
            leaves = [
                (self.used[key, tokens], key, tokens)
                for key, tokens in self.pages
                if not self.is_pinned((key, tokens))
                and not any((key, (*tokens, token)) in self.pages for token in range(3))
            ]
            if not leaves:
                return freed
            _, key, tokens = min(leaves, key=lambda leaf: leaf[0])
            del self.pages[key, tokens]
        return count


@dataclass(eq=False)
class Running:
    """A request as the engine runs it: `pages` for all its tokens, of which the first `shared` belong to the tree."""

    key: str | None
    tokens: tuple[int, ...]
    pages: np.ndarray
    shared: int
    node: RadixNode


class CacheMachine(RuleBasedStateMachine):
    requests = Bundle("requests")
    plan_pins = Bundle("plan_pins")

    @initialize()
    def start(self) -> None:
        self.cache = RadixCache(PagePool(NUM_PAGES))
        self.model = NaiveCache()
        self.running: list[Running] = []

    @rule(key=extra_keys, tokens=sequences)
    def match(self, key: str | None, tokens: tuple[int, ...]) -> None:
        match = self.cache.match_prefix(tokens, key)
        assert match.pages.tolist() == self.model.match(key, tokens)

    @rule(target=requests, key=extra_keys, tokens=sequences)
    def admit(self, key: str | None, tokens: tuple[int, ...]) -> Running | None:
        match = self.cache.match_prefix(tokens, key)
        self.model.match(key, tokens)
        self.cache.pin(match.node)
        self.model.pinned.append((key, tokens[: match.length]))
        need = len(tokens) - match.length
        shortage = need - self.cache.pool.free_count
        if shortage > 0:
            assert self.cache.evict(shortage) == self.model.evict(shortage)
        try:
            own = self.cache.pool.allocate(need)
        except PoolExhaustedError:
            assert self.cache.evictable_tokens == 0
            self.cache.unpin(match.node)
            self.model.pinned.remove((key, tokens[: match.length]))
            return None
        request = Running(key, tokens, np.concatenate([match.pages, own]), match.length, match.node)
        self.running.append(request)
        return request

    def insert(self, request: Running, length: int) -> None:
        """Hand the first `length` tokens of a request over to the tree and move its pin there."""
        inserted = self.cache.insert(request.tokens[:length], request.pages[:length], request.key)
        self.cache.pin(inserted.node)
        self.cache.unpin(request.node)
        self.note_inserted(request, length, inserted.node, inserted.pages)

    def extend(self, request: Running, length: int) -> None:
        """The same by one verb."""
        tokens = np.array(request.tokens[request.shared : length], np.int32)
        inserted = self.cache.extend(request.node, tokens, request.pages[request.shared : length])
        pages = np.concatenate([request.pages[: request.shared], inserted.pages])
        self.note_inserted(request, length, inserted.node, pages)

    def note_inserted(self, request: Running, length: int, node: RadixNode, pages: np.ndarray) -> None:
        expected = self.model.insert(request.key, request.tokens[:length], request.pages[:length].tolist())
        assert pages.tolist() == expected
        self.model.pinned.append((request.key, request.tokens[:length]))
        self.model.pinned.remove((request.key, request.tokens[: request.shared]))
        request.pages = np.concatenate([pages, request.pages[length:]])
        request.shared, request.node = length, node

    @rule(request=requests, fraction=st.floats(0, 1))
    def prefill_chunk(self, request: Running | None, fraction: float) -> None:
        if request in self.running:
            self.extend(request, request.shared + round(fraction * (len(request.tokens) - request.shared)))

    @rule(request=consumes(requests))
    def finish(self, request: Running | None) -> None:
        if request in self.running:
            self.insert(request, len(request.tokens))
            self.drop(request)

    @rule(request=consumes(requests))
    def cancel(self, request: Running | None) -> None:
        if request in self.running:
            self.cache.pool.free(request.pages[request.shared :])
            self.drop(request)

    def drop(self, request: Running) -> None:
        self.running.remove(request)
        self.cache.unpin(request.node)
        self.model.pinned.remove((request.key, request.tokens[: request.shared]))

    @rule(target=plan_pins, key=extra_keys, tokens=sequences)
    def pin(self, key: str | None, tokens: tuple[int, ...]) -> tuple[RadixNode, Prefix]:
        match = self.cache.pin_prefix(tokens, key)
        assert match.pages.tolist() == self.model.match(key, tokens)
        prefix = key, tokens[: match.length]
        self.model.pinned.append(prefix)
        return match.node, prefix

    @rule(pin=consumes(plan_pins))
    def unpin(self, pin: tuple[RadixNode, Prefix]) -> None:
        self.cache.unpin(pin[0])
        self.model.pinned.remove(pin[1])

    @rule(count=st.integers(0, NUM_PAGES))
    def evict(self, count: int) -> None:
        assert self.cache.evict(count) == self.model.evict(count)

    @rule(key=extra_keys, tokens=sequences, length=st.integers(0, 12))
    def remove(self, key: str | None, tokens: tuple[int, ...], length: int) -> None:
        branch = self.cache.branch_after(length, tokens, key)
        beginning = key, tokens[: length + 1]
        assert (branch is not None) == (length < len(tokens) and beginning in self.model.pages)
        if branch is None:
            return
        if self.model.is_pinned(beginning):
            with pytest.raises(InvariantError, match="pinned"):
                self.cache.remove(branch)
        else:
            self.cache.remove(branch)
            self.model.remove(*beginning)

    @rule(key=extra_keys)
    def remove_tree(self, key: str | None) -> None:
        if not any(key == pinned for pinned, _ in self.model.pinned):
            self.cache.remove_tree(key)
            self.model.remove(key, ())

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.cache.check_invariants(request.pages[request.shared :] for request in self.running)
        assert self.cache.total_tokens == len(self.model.pages)
        assert self.cache.pinned_tokens == sum(self.model.is_pinned(prefix) for prefix in self.model.pages)


TestCache = CacheMachine.TestCase
TestCache.settings = settings(
    max_examples=3000 if os.environ.get("LMC_TEST_FULL") == "1" else 100, stateful_step_count=40, deadline=None
)

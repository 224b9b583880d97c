"""lmc's radix cache and SGLang's behind the same verbs: requests start, hold pages, and leave their tokens at the end.

A request starts with its prompt matched but for the last token, locks what it found, and evicts what it needs beyond
the free pages; at its end it inserts all its tokens. Pages are counted; SGLang's are token ids, as its own tests do it.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from lmc.cache import PagePool, RadixCache
from lmc.cache.sequence import Namespace

Tokens = list[int]


@dataclass(frozen=True)
class Started:
    """A request under way: what it found, and what was evicted for it."""

    tokens: Tokens
    hits: int
    evicted: int
    node: Any
    pages: Any


class Cache(ABC):
    @abstractmethod
    def start(self, tokens: Tokens, prompt_length: int, evict: int | None = None) -> Started:
        """Start a request; `evict` so many tokens (None: as many as it needs)."""

    @abstractmethod
    def end(self, started: Started) -> None:
        """End a request."""

    @abstractmethod
    def leaves(self) -> set[tuple[int, ...]]:
        """What is cached: the paths to the leaves."""


class Ours(Cache):
    """lmc's."""

    def __init__(self, pages: int) -> None:
        self.radix = RadixCache(PagePool(pages))

    def start(self, tokens: Tokens, prompt_length: int, evict: int | None = None) -> Started:
        match = self.radix.match_prefix(tokens[: prompt_length - 1], Namespace())
        self.radix.pin(match.node)
        needed = len(tokens) - match.length
        lacking = max(0, needed - self.radix.pool.free_count)
        evicted = self.radix.evict(lacking if evict is None else evict)
        return Started(tokens, match.length, evicted, match, self.radix.pool.allocate(needed))

    def end(self, started: Started) -> None:
        self.radix.insert(started.tokens, np.concatenate([started.node.pages, started.pages]), Namespace())
        self.radix.unpin(started.node.node)

    def leaves(self) -> set[tuple[int, ...]]:
        found: set[tuple[int, ...]] = set()
        for node in self.radix.nodes():
            if not node.children:
                path: Tokens = []
                step = node
                while step.parent is not None:
                    path[:0] = step.tokens.tolist()
                    step = step.parent
                found.add(tuple(path))
        return found


class SGLang(Cache):
    """SGLang's. Where it is told `split_keeps_age`, what a match leaves of an edge that it splits keeps its age."""

    def __init__(self, module: ModuleType, pages: int, *, split_keeps_age: bool = False) -> None:
        self._module: Any = module
        self._pages = pages
        self._held = 0
        made = _keeping_age(self._module) if split_keeps_age else self._module.RadixCache
        allocator = SimpleNamespace(device="cpu", free_segment=lambda *_, **__: None)
        params = self._module.CacheInitParams(
            disable=False, req_to_token_pool=None, token_to_kv_pool_allocator=allocator, page_size=1
        )
        self.tree = made(params)

    def start(self, tokens: Tokens, prompt_length: int, evict: int | None = None) -> Started:
        match = self.tree.match_prefix(self._module.MatchPrefixParams(key=self._key(tokens[: prompt_length - 1])))
        node, hits = match.last_device_node, match.device_prefix_len
        self.tree.inc_lock_ref(node)
        needed = len(tokens) - hits
        lacking = max(0, needed - (self._pages - self.tree.total_size() - self._held))
        wanted = lacking if evict is None else evict
        evicted = self.tree.evict(self._module.EvictParams(num_tokens=wanted)).num_tokens_evicted if wanted else 0
        self._held += needed
        return Started(tokens, hits, evicted, node, needed)

    def end(self, started: Started) -> None:
        self.tree.insert(self._module.InsertParams(key=self._key(started.tokens)))
        self.tree.dec_lock_ref(started.node)
        self._held -= started.pages

    def leaves(self) -> set[tuple[int, ...]]:
        found: set[tuple[int, ...]] = set()
        pending: list[tuple[Any, Tokens]] = [(self.tree.root_node, [])]
        while pending:
            node, path = pending.pop()
            path = path + list(node.key.token_ids)
            pending += [(child, path) for child in node.children.values()]
            if not node.children and path:
                found.add(tuple(path))
        return found

    def _key(self, tokens: Tokens) -> Any:
        return self._module.RadixKey(array("q", tokens))


def _keeping_age(module: Any) -> Any:
    """SGLang's cache, but a match that ends within an edge is no use of the rest of this edge."""

    class KeepingAge(module.RadixCache):
        def _match_prefix_helper(self, node: Any, key: Any) -> Any:
            return self._aged(super()._match_prefix_helper, node, key)

        def _insert_helper(self, node: Any, key: Any, *rest: Any) -> Any:
            return self._aged(super()._insert_helper, node, key, *rest)

        def _aged(self, walk: Any, *arguments: Any) -> Any:
            self.rests: list[Any] = []
            ages = {node.id: node.last_access_time for node in _nodes(self.root_node)}
            found = walk(*arguments)
            for rest in self.rests:
                rest.parent.last_access_time, rest.last_access_time = rest.last_access_time, ages[rest.id]
            return found

        def _split_node(self, key: Any, child: Any, split_len: int) -> Any:
            self.rests.append(child)
            return super()._split_node(key, child, split_len)

    return KeepingAge


def _nodes(root: Any) -> Iterable[Any]:
    pending = [root]
    while pending:
        node = pending.pop()
        pending += node.children.values()
        yield node

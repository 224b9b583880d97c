"""Prompts that are known to come, and when: a trie that says for each cached token when it is used next."""

import heapq
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from lmc.cache.node import Tokens, as_tokens, common_prefix_length

_SLACK = 64  # entries of withdrawn expectations that a node tolerates before it drops them


class Expectation:
    """One prompt that will be asked for, at a place in the order of requests. Made by ``ExpectedUses.expect``."""

    __slots__ = ("extra_key", "rank", "run", "tokens", "withdrawn")

    def __init__(self, tokens: Tokens, rank: int, extra_key: Hashable, run: Hashable) -> None:
        self.tokens = tokens
        self.rank = rank
        self.extra_key = extra_key
        self.run = run
        self.withdrawn = False


class _Node:
    """An edge of the trie. All its tokens are expected by the same ``count`` expectations, first at ``lowest``."""

    __slots__ = ("children", "count", "entries", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.children: dict[int, _Node] = {}
        self.count = 0
        self.entries: list[tuple[int, int, Expectation]] = []

    @property
    def lowest(self) -> int:
        """The rank of the first expectation that goes through here."""
        return self.entries[0][0]

    def add(self, expectation: Expectation, serial: int) -> None:
        self.count += 1
        heapq.heappush(self.entries, (expectation.rank, serial, expectation))

    def drop(self) -> None:
        """One of the expectations was withdrawn: forget it, at the latest when it would come first."""
        self.count -= 1
        if len(self.entries) > 2 * self.count + _SLACK:
            self.entries = [entry for entry in self.entries if not entry[2].withdrawn]
            heapq.heapify(self.entries)
        while self.entries and self.entries[0][2].withdrawn:
            heapq.heappop(self.entries)

    def split(self, length: int) -> "_Node":
        """The first ``length`` tokens as a node above this one, which keeps the rest."""
        upper = _Node(self.tokens[:length])
        upper.count, upper.entries = self.count, list(self.entries)
        self.tokens = self.tokens[length:]
        upper.children[int(self.tokens[0])] = self
        return upper


class ExpectedUses:
    """The expected prompts. ``version`` changes with every one that is added or withdrawn.

    Ranks are places in one order of all requests; what they count from is the caller's choice. Adding and withdrawing
    cost time linear in the prompt, whatever else is expected.
    """

    def __init__(self) -> None:
        self.version = 0
        self._roots: dict[Hashable, _Node] = {}
        self._serial = 0

    def __len__(self) -> int:
        """Expectations that stand."""
        return sum(root.count for root in self._roots.values())

    def expect(
        self, tokens: Sequence[int] | Tokens, rank: int, extra_key: Hashable = None, run: Hashable = None
    ) -> Expectation:
        """Note that ``tokens`` will be asked for at ``rank``, by ``run``. An array is kept, not copied."""
        expectation = Expectation(as_tokens(tokens), rank, extra_key, run)
        self.version += 1
        self._serial += 1
        node = self._roots.setdefault(extra_key, _Node(np.empty(0, np.int32)))
        node.add(expectation, self._serial)
        rest = expectation.tokens
        while rest.size:
            child = node.children.get(int(rest[0]))
            if child is None:
                child = _Node(rest)
            else:
                common = common_prefix_length(child.tokens, rest)
                if common < child.tokens.size:
                    child = child.split(common)
            node.children[int(rest[0])] = child
            child.add(expectation, self._serial)
            node, rest = child, rest[child.tokens.size :]
        return expectation

    def withdraw(self, expectation: Expectation) -> None:
        """Take an expectation back: its request has started, or will not come. Once more changes nothing."""
        if expectation.withdrawn:
            return
        expectation.withdrawn = True
        self.version += 1
        node, rest = self._roots[expectation.extra_key], expectation.tokens
        node.drop()
        if not node.count:
            del self._roots[expectation.extra_key]
            return
        while rest.size:
            child = node.children[int(rest[0])]
            child.drop()
            if not child.count:
                del node.children[int(rest[0])]
                return
            node, rest = child, rest[child.tokens.size :]

    def tail(self, tokens: Tokens, extra_key: Hashable = None) -> tuple[int | None, int]:
        """Return the next use of the last of ``tokens``, and the number of last tokens with the same use.

        The rank is None if no expected prompt reaches it.
        """
        matched, rank, start = 0, None, 0
        for node, common in self._walk(tokens, extra_key):
            matched, rank, start = matched + common, node.lowest, matched
        if matched < tokens.size:
            return None, int(tokens.size) - matched
        return rank, matched - start

    def check_invariants(self) -> None:
        """Check counts, ranks and edges. Raises ``AssertionError`` where they contradict each other."""
        for root in self._roots.values():
            assert root.count > 0, "a root without expectations is kept"
            pending = [root]
            while pending:
                node = pending.pop()
                live = {id(entry[2]) for entry in node.entries if not entry[2].withdrawn}
                assert len(live) == node.count > 0, "a node has no expectations, or another number than counted"
                assert not node.entries[0][2].withdrawn, "what comes first was withdrawn"
                below: set[int] = set()
                for token, child in node.children.items():
                    assert int(child.tokens[0]) == token, "a child is filed under another token than its first"
                    members = {id(entry[2]) for entry in child.entries if not entry[2].withdrawn}
                    assert members <= live, "a child is expected by others than its parent"
                    assert not members & below, "an expectation goes through two children"
                    below |= members
                    pending.append(child)

    def _walk(self, tokens: Tokens, extra_key: Hashable) -> Iterator[tuple[_Node, int]]:
        """The nodes that ``tokens`` go through, each with how many of its tokens."""
        node, rest = self._roots.get(extra_key), tokens
        while node is not None and rest.size:
            node = node.children.get(int(rest[0]))
            if node is None:
                return
            common = common_prefix_length(node.tokens, rest)
            yield node, common
            if common < node.tokens.size:
                return
            rest = rest[common:]

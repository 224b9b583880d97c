"""Pages of running sequences: admission, growth, sharing through the radix tree, release."""

from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Items
from typing import NamedTuple

from lmc.cache.eviction import Eviction, NextUse
from lmc.cache.expected import Expectation
from lmc.cache.node import RadixNode, Tokens
from lmc.cache.pool import InvariantError, PagePool, Pages
from lmc.cache.radix import RadixCache
from lmc.cache.sequence import Namespace, Sequence


class Slice(NamedTuple):
    """Rows `start … end-1` of a sequence, to be computed in one step.

    `slots` is where each row's key and value go: a page that has none yet, or the scratch page where the row's page is
    computed already (a cached row is computed again only for its logits; pages of the tree are never written twice).
    """

    sequence: Sequence
    start: int
    end: int
    slots: Pages


class SequenceMemory:
    """Gives sequences their pages. `scratch_page` is a page outside the pool that is never read.

    `eviction` is the policy (None: least recently used). With `NextUse` it gets the waiting prompts.
    """

    def __init__(self, num_pages: int, *, scratch_page: int, eviction: Eviction | None = None) -> None:
        self.pool = PagePool(num_pages)
        self.radix = RadixCache(self.pool, eviction)
        self._planned = eviction if isinstance(eviction, NextUse) else None
        self._scratch_page = scratch_page
        self._held: dict[int, RadixNode] = {}
        self._hold_count = 0
        self._refusal: tuple[Sequence, int, int] | None = None

    @property
    def available(self) -> int:
        """Pages that are free or could be evicted."""
        return self.pool.free_count + self.radix.evictable_tokens

    @property
    def held_pages(self) -> int:
        """Pages of sequences that run and of held prefixes, each counted once."""
        return self.pool.num_pages - self.available

    def expect(
        self, tokens: Items[int] | Tokens, cache_key: Namespace, run: Hashable = None, rank: int = 0
    ) -> Expectation | None:
        """Note that tokens will be asked for at a rank of a run; None where the eviction does not look ahead."""
        return None if self._planned is None else self._planned.expect(tokens, run, rank, cache_key)

    def withdraw(self, expectation: Expectation | None) -> None:
        """Take back what `expect` gave. Once more changes nothing."""
        if self._planned is not None and expectation is not None and not expectation.withdrawn:
            self._planned.withdraw(expectation)
            self.radix.reconsider(expectation.tokens, expectation.extra_key)

    def try_admit(self, sequence: Sequence, *, headroom: int) -> bool:
        """Match a sequence against the tree and give it pages for the rest of its tokens.

        Refused, without any effect but on recency, where fewer than `headroom` pages would stay available. Whoever is
        refused asks again at every step, so that answer is remembered until a new one is possible.
        """
        if self._is_still_refused(sequence, headroom):
            return False
        match = self.radix.pin_prefix(sequence.settled_tokens, sequence.cache_key, run=sequence.run)
        needed = sequence.length - match.length
        if needed + headroom > self.available:
            self.radix.unpin(match.node)
            self._refusal = (sequence, self.available - headroom, self.radix.newly_pinned_tokens)
            return False
        sequence.node = match.node
        sequence.pages[: match.length] = match.pages
        sequence.shared = sequence.page_count = match.length
        sequence.computed = min(match.length, sequence.first_wanted_row)
        if sequence.cached_tokens is None:
            sequence.cached_tokens = sequence.computed
        sequence.found = match.length if sequence.found is None else min(sequence.found, match.length)
        sequence.admitted = sequence.settled
        self.radix.eviction.admitted(sequence.run, sequence.rank)
        if self._planned is not None:
            self._planned.begin(sequence.run)
        self.grow(sequence, sequence.length)
        return True

    def grow(self, sequence: Sequence, length: int) -> None:
        """Give each of the first `length` tokens of the sequence a page, evicting if need be.

        Raises:
            PoolExhaustedError: not even eviction frees enough; check `available` first.
        """
        sequence.pages[sequence.page_count : length] = self._take_pages(length - sequence.page_count)
        sequence.page_count = length

    def try_grow(self, sequences: Items[Sequence]) -> bool:
        """Give each settled token of all these sequences a page, or, where there are too few, none of them any."""
        needed = sum(sequence.settled - sequence.page_count for sequence in sequences)
        if needed > self.available:
            return False
        pages = self._take_pages(needed)
        for sequence in sequences:
            count = sequence.settled - sequence.page_count
            sequence.pages[sequence.page_count : sequence.settled] = pages[:count]
            sequence.page_count, pages = sequence.settled, pages[count:]
        return True

    def fit(self, sequence: Sequence) -> None:
        """Release pages of tokens that the sequence lost: those of a refused draft, or rewritten ones."""
        kept, sequence.unchanged = min(sequence.unchanged, sequence.length), sequence.capacity
        sequence.computed = min(sequence.computed, kept)
        if kept < sequence.shared:
            self._unshare(sequence, kept)
        unused = sequence.pages[sequence.length : sequence.page_count]
        if unused.size:
            self.pool.free(unused)
            sequence.page_count = sequence.length

    def take_rows(self, sequence: Sequence, count: int) -> Slice:
        """The next `count` rows of a sequence, which the caller computes in the coming step."""
        start, end = sequence.computed, sequence.computed + count
        sequence.planned = end
        slots = sequence.pages[start:end].copy()
        if start < sequence.shared:
            slots[: sequence.shared - start] = self._scratch_page
        return Slice(sequence, start, end, slots)

    def take_shared_rows(self, sequence: Sequence, count: int) -> Slice:
        """Like `take_rows`, and put the rows into the tree at once, but for those of a draft.

        Every layer writes the keys of all rows of a step before any attention reads them; so a sequence scheduled after
        this one, even in the same step, can already use these pages instead of computing the same prefix again.
        """
        rows = self.take_rows(sequence, count)
        own = sequence.pages[rows.start : rows.end].copy()
        self._share(sequence, min(rows.end, sequence.settled))
        in_tree_before = sequence.pages[rows.start : rows.end] != own
        rows.slots[in_tree_before] = self._scratch_page
        return rows

    def retire(self, sequence: Sequence) -> None:
        """Take a sequence's pages back and keep what it computed in the tree."""
        self._share(sequence, sequence.valid_rows)
        self.discard(sequence)

    def discard(self, sequence: Sequence) -> None:
        """Free the pages that a sequence has outside the tree, and release those in it."""
        if sequence.node is None:
            return
        self.pool.free(sequence.own_pages)
        self.radix.unpin(sequence.node)
        if self._planned is not None:
            self._planned.end(sequence.run)
        sequence.node = None
        sequence.computed = sequence.shared = sequence.page_count = 0

    def branch_of(self, sequence: Sequence) -> RadixNode | None:
        """Return the computed part of a sequence in the tree, with all that extends it; None if nothing is left."""
        if sequence.found is None:
            return None
        return self.radix.branch_after(sequence.found, sequence.settled_tokens, sequence.cache_key)

    def forget_owner(self, namespace: Namespace) -> None:
        """Free what is cached for one request alone, once none of its sequences runs."""
        self.radix.remove_tree(namespace)

    def uses(self, sequence: Sequence, branch: RadixNode) -> bool:
        """Return True if a running sequence has pages of a branch, its own or found."""
        return sequence.node is not None and sequence.node.begins_with(branch)

    def forget(self, branch: RadixNode) -> None:
        """Remove a branch that no running sequence uses; prefixes held in it are released."""
        for key in [key for key, node in self._held.items() if node.begins_with(branch)]:
            self.release_held(key)
        self.radix.remove(branch)

    def hold(self, sequence: Sequence) -> int:
        """Keep a finished sequence's prefix in the tree until `release_held`; the key to release it by is returned."""
        self._share(sequence, sequence.computed)
        if sequence.node is None:
            raise InvariantError("holding a sequence that has no pages")
        self.radix.pin(sequence.node)
        self._hold_count += 1
        self._held[self._hold_count] = sequence.node
        self.discard(sequence)
        return self._hold_count

    def release_held(self, key: int) -> None:
        """Release a held prefix; nothing if `release_oldest_held` or `forget` was faster."""
        node = self._held.pop(key, None)
        if node is not None:
            self.radix.unpin(node)

    def release_oldest_held(self) -> bool:
        """Release the prefix held for longest, so that a request need not fail; False if none is held."""
        if not self._held:
            return False
        self.release_held(next(iter(self._held)))
        return True

    def check_invariants(self, running: Iterable[Sequence]) -> None:
        """Check tree, pool and the pages of the running sequences against each other.

        Raises:
            InvariantError: naming what is wrong.
        """
        self.radix.check_invariants(sequence.own_pages for sequence in running)

    def _take_pages(self, count: int) -> Pages:
        if count > self.pool.free_count:
            self.radix.evict(count - self.pool.free_count)
        return self.pool.allocate(count)

    def _is_still_refused(self, sequence: Sequence, headroom: int) -> bool:
        """Return True if the last answer was no, and nothing has changed that could make it yes.

        A cached token saves a page only where others hold it already: an evictable one is available either way. So a
        sequence fits only after more became available, or after somebody pinned more.
        """
        if self._refusal is None or self._refusal[0] is not sequence:
            return False
        _, room, newly_pinned = self._refusal
        return self.available - headroom <= room and self.radix.newly_pinned_tokens == newly_pinned

    def _share(self, sequence: Sequence, length: int) -> None:
        """Hand the first `length` tokens and pages of a sequence over to the tree and move its pin to their end."""
        if sequence.node is None or length <= sequence.shared:
            return
        start = sequence.shared
        tokens, pages = sequence.tokens[start:length], sequence.pages[start:length]
        inserted = self.radix.extend(sequence.node, tokens, pages, run=sequence.run)
        sequence.node = inserted.node
        sequence.pages[start:length] = inserted.pages
        sequence.shared = length

    def _unshare(self, sequence: Sequence, length: int) -> None:
        """Keep only the first `length` of a sequence's pages, which are all in the tree, and pin no more than that."""
        if sequence.node is None:
            return
        match = self.radix.pin_prefix(sequence.tokens[:length], sequence.cache_key, run=sequence.run)
        self.radix.unpin(sequence.node)
        self.pool.free(sequence.own_pages)
        sequence.node = match.node
        sequence.shared = sequence.page_count = length
        sequence.found = length if sequence.found is None else min(sequence.found, length)

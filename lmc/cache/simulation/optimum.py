"""Upper bounds on cache hits: over all orders, over all evictions, and over both.

A token stands for itself and all before it, so tokens are the positions of a trie over all that was computed. A use
hits those of its prompt that are cached when it starts, but for the last, whose row is computed for its logits. Nothing
here goes token by token: tokens of a trie's edge that have the same uses are one run, counted by its length.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lmc.cache.node import Tokens, common_prefix_length
from lmc.cache.simulation.recording import Timeline
from lmc.cache.trace import TraceRequest


class Run:
    """An edge of a trie: tokens that were used by the same requests, and what is known of these uses.

    `asked` prompts could hit the tokens; a request `made` them, whether they were cached or not; the last use to end
    did so at event `end` (-1 before the first).
    """

    __slots__ = ("asked", "children", "end", "made", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.children: dict[int, Run] = {}
        self.asked = 0
        self.made = False
        self.end = -1

    def split(self, length: int) -> None:
        """Keep `length` tokens; the rest goes to a child."""
        rest = Run(self.tokens[length:])
        rest.children, rest.asked, rest.made, rest.end = self.children, self.asked, self.made, self.end
        self.tokens = self.tokens[:length]
        self.children = {int(rest.tokens[0]): rest}

    def matched(self, tokens: Tokens) -> Iterator[tuple["Run", int]]:
        """The runs below that `tokens` go through, each with how many of its tokens are theirs."""
        run, depth = self, 0
        while depth < tokens.size and (below := run.children.get(int(tokens[depth]))) is not None:
            run = below
            common = common_prefix_length(run.tokens, tokens[depth:])
            yield run, common
            if common < run.tokens.size:
                return
            depth += common

    def inserted(self, tokens: Tokens) -> list["Run"]:
        """The runs below that `tokens` go through and that hold nothing else, made where they are missing."""
        path: list[Run] = []
        depth = 0
        for run, common in self.matched(tokens):
            if common < run.tokens.size:
                run.split(common)
            path.append(run)
            depth += common
        if depth < tokens.size:
            leaf = Run(tokens[depth:])
            (path[-1] if path else self).children[int(leaf.tokens[0])] = leaf
            path.append(leaf)
        return path

    def below(self) -> Iterator["Run"]:
        """All runs below."""
        pending = [*self.children.values()]
        while pending:
            run = pending.pop()
            pending += run.children.values()
            yield run


class _Room:
    """Pages that are left for tokens kept between uses, by slot of time.

    A token that a use leaves at one event and another use asks for at a later one is a hit if it is kept in between:
    one page over an interval. Which intervals fit the pages of each slot is interval scheduling on many machines, here
    with a number of machines that varies and intervals of equal worth. Intervals in the order of their ends, each taken
    where it fits, are then as many as possible (Carlisle and Lloyd, Discrete Applied Mathematics 59, 1995, for a
    constant number; with other words Belady's MIN, IBM Systems Journal 5, 1966: what is not taken is used last).

    Proof for a varying number: let `I` be the first interval that is taken here and not in some best choice, which is
    equal in all that ended before. If `I` fits there too, it was not best. Else let `t` be the first slot where it does
    not fit. Here it fits beside all that ended before, so the best choice has an interval over `t` that ends no earlier
    than `I`; it covers every later slot of `I`, and so all where `I` lacks room. With `I` in its place the choice is as
    large, and equal up to `I`; so by induction, what is taken here is as many.

    That a token is of no use without those before it takes nothing away: each prompt that asks for it asks for them, so
    their intervals are parts of its own and end no later, and where one of them is refused it is refused too. (Only a
    prompt that ends with one of them does not ask for that one, so a tree can miss one token for each such prompt.)
    """

    def __init__(self, pages: NDArray[np.int64]) -> None:
        self._pages = pages

    def keep(self, start: int, end: int, count: int) -> int:
        """Keep up to `count` tokens over slots `start … end-1`; how many have room there."""
        slots = self._pages[start:end]
        kept = min(count, int(slots.min(initial=count)))
        slots -= kept
        return kept


def computed_tokens(request: TraceRequest) -> Tokens:
    """The prompt and what was generated but for the last token, whose keys and values are never computed."""
    return np.concatenate([request.tokens, request.generated[:-1]])


def order_free_hits(requests: Sequence[TraceRequest]) -> int:
    """Return the largest possible number of hits in prompts, for any order and any size of the pool.

    Every token that any request computes before is a hit, up to the last but one of a prompt. So each token of a trie
    over prompts and answers is computed for one prompt that could have hit it, or for none where a request computes it
    anyway: as a part of its answer, or as the last of its prompt.
    """
    trie = Run(np.empty(0, np.int32))
    for request in requests:
        asked = trie.inserted(request.tokens[:-1])
        for run in asked:
            run.asked += 1
        for run in trie.inserted(computed_tokens(request))[len(asked) :]:
            run.made = True
    return sum(run.tokens.size * (run.asked - (not run.made)) for run in trie.below() if run.asked)


def distinct_tokens(requests: Sequence[TraceRequest]) -> int:
    """Pages that a cache needs to keep all that the requests compute, their answers too."""
    trie = Run(np.empty(0, np.int32))
    for request in requests:
        trie.inserted(computed_tokens(request))
    return sum(run.tokens.size for run in trie.below())


def optimal_hits(timeline: Timeline, pool: int) -> int:
    """The most tokens that any eviction can let the uses of a timeline find, with a pool of so many pages.

    Who runs when is as it was; so are the pages that running requests hold. All others may keep any token. The uses
    that follow a preemption count like others; compare with `found_hits`.

    Raises:
        ValueError: running requests held more pages than the pool has.
    """
    free = pool - timeline.pages_in_use
    if free.min(initial=0) < 0:
        raise ValueError(f"requests that ran at once held {pool - int(free.min())} pages, of a pool of {pool}")
    room = _Room(free)
    trie = Run(np.empty(0, np.int32))
    uses = {use.start: use for use in timeline.uses}
    ends = {use.end: use for use in timeline.uses}
    hits = 0
    for event in range(free.size):
        if (use := uses.get(event)) is not None:
            hits += _hits_of(trie, use.tokens[: use.prompt_length - 1], event, room, use.shared)
        else:
            for run in trie.inserted(ends[event].tokens):
                run.end = event
    return hits


def found_hits(timeline: Timeline) -> int:
    """Return the number of hits of the uses of a timeline; `optimal_hits` is its limit."""
    return sum(min(use.cached, use.prompt_length - 1) for use in timeline.uses)


def _hits_of(trie: Run, asked: Tokens, event: int, room: _Room, shared: int) -> int:
    """Hits of a use that asks for tokens at an event; the first `shared` of them are there anyway."""
    hits = min(shared, asked.size)
    depth = 0
    for run, common in trie.matched(asked):
        depth += common
        count = min(common, depth - hits)
        if count > 0:
            hits += (kept := room.keep(run.end, event, count))
            if kept < count:
                break
    return hits

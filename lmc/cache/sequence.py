"""One token sequence that the engine computes: its tokens, its pages, how far it is."""

from collections.abc import Hashable
from collections.abc import Sequence as Tokens
from typing import Literal, NamedTuple

import numpy as np

from lmc.cache.node import RadixNode
from lmc.cache.pool import Pages

Obstacle = Literal["batch", "memory", "budget"]
"""The reason for which a sequence waits: the most sequences run; there are no pages for it; the prompt tokens of the
step are those of others."""


class Namespace(NamedTuple):
    """The namespace of a sequence's cached pages: it shares them only with sequences of an equal namespace.

    `rope_length` names the rotary frequencies of its keys (0 where a model has but one set). The model rotates by the
    namespace, so pages found in it always fit. `owner` keeps the sequences of one request to themselves: its pages are
    free when the request ends. `flushes` counts how often the cache had been flushed when it began.
    """

    rope_length: int = 0
    owner: int | None = None
    flushes: int = 0


class Sequence:
    """The tokens of a running or waiting computation.

    Rows `0 … computed-1` have keys and values in `pages`. The first `shared` pages belong to the radix tree, where
    `node` (pinned) marks the end of that part; pages `shared … page_count-1` are this sequence's own. The step under
    way computes rows `computed … planned-1`. Logits are wanted for rows `first_wanted_row … length-1`; a row before
    that may come from the cache. `cached_tokens` says how many did when the sequence was admitted for the first time;
    all but the first `found` tokens were computed for this sequence at some time (None: it was never admitted). At its
    last admission it had `admitted` tokens; what it computes of these is no generation: `prefilled` counts it over all
    admissions. It `queued` after so many steps of the scheduler; `obstacle` held it up in the last step before it was
    admitted for the first time (None: there was no such step).
    It is admitted on the turn of its `lane`, before others of lower `priority`. `rank` is its place in the order of a
    `run` of a plan (None: it belongs to none), `expected_length` how many tokens it probably gets. Sequences with
    different `cache_key`s share nothing.

    The last `drafted` tokens are a guess at what will be drawn, computed together with the tokens before them; the
    others are `settled`. None of them ever gets into the tree. Logits are wanted at each drafted
    one too, but not at rows that are `unread`: there the drafted token that follows is all that may. Tokens from
    `unchanged` on became others since the pages were last fitted to them (`SequenceMemory.fit`).
    """

    def __init__(self, tokens: Tokens[int], *, capacity: int, first_wanted_row: int) -> None:
        self._tokens = np.empty(capacity, dtype=np.int32)
        self._tokens[: len(tokens)] = tokens
        self.pages: Pages = np.empty(capacity, dtype=np.int64)
        self.length = self.prompt_length = len(tokens)
        self.first_wanted_row = first_wanted_row
        self.cache_key = Namespace()
        self.lane: Hashable = None
        self.run: Hashable = None
        self.rank = 0
        self.priority = 0
        self.expected_length: int | None = None
        self.computed = self.planned = 0
        self.page_count = 0
        self.shared = 0
        self.node: RadixNode | None = None
        self.drafted = 0
        self.unread: frozenset[int] = frozenset()
        self.unchanged = capacity
        self.admitted = 0
        self.cached_tokens: int | None = None
        self.found: int | None = None
        self.prefilled = 0
        self.queued = 0
        self.obstacle: Obstacle | None = None

    @property
    def tokens(self) -> np.ndarray:
        """Token ids so far, the draft too, int32 (a view)."""
        return self._tokens[: self.length]

    def tokens_between(self, start: int, end: int) -> np.ndarray:
        """Token ids `start … end-1`, int32 (a view)."""
        return self._tokens[start:end]

    @property
    def settled(self) -> int:
        """The number of tokens that are no draft."""
        return self.length - self.drafted

    @property
    def settled_tokens(self) -> np.ndarray:
        """Token ids without the draft, int32 (a view)."""
        return self._tokens[: self.settled]

    @property
    def valid_rows(self) -> int:
        """The number of computed rows of tokens that stay."""
        return min(self.computed, self.settled, self.unchanged)

    @property
    def draft(self) -> list[int]:
        """The tokens that are guessed to be drawn next."""
        return self._tokens[self.length - self.drafted : self.length].tolist() if self.drafted else []

    @property
    def capacity(self) -> int:
        """Tokens it may grow to."""
        return int(self._tokens.size)

    @property
    def first_logits_row(self) -> int:
        """Row from which on the step under way gives logits.

        Where none are wanted of it, those of its last row, which show whether the rows that it sees are numbers.
        """
        return min(self.first_wanted_row, self.planned - 1)

    def rows_to_read(self, start: int, end: int) -> Tokens[int]:
        """Rows of `start … end-1`, which the step under way computes, that give logits, ascending.

        The last one always does where any does: it sees all the others, and shows whether they are numbers.
        """
        rows = range(max(start, self.first_logits_row), end)
        return [row for row in rows if row not in self.unread or row == end - 1] if self.unread else rows

    @property
    def pending(self) -> int:
        """Rows that are not computed yet."""
        return self.length - self.computed

    @property
    def is_decoding(self) -> bool:
        """True if only the last generated token, and a draft, are left to compute."""
        settled = self.length - self.drafted
        return settled - self.computed == 1 and settled > self.prompt_length

    @property
    def own_pages(self) -> Pages:
        """Pages that belong to this sequence and not to the tree."""
        return self.pages[self.shared : self.page_count]

    @property
    def remaining_capacity(self) -> int:
        """Tokens that may still be appended."""
        return self.capacity - self.length

    def append(self, token: int) -> None:
        """Add a generated token where there is no draft; the next logits wanted are those after it."""
        self._tokens[self.length] = token
        self.length += 1
        self.first_wanted_row = self.length - 1

    def propose(self, tokens: Tokens[int], unread: frozenset[int] = frozenset()) -> None:
        """Add a draft where there is none, and say which rows need not be read for it."""
        self._tokens[self.length : self.length + len(tokens)] = tokens
        self.length += len(tokens)
        self.drafted = len(tokens)
        self.unread = unread

    def accept(self, count: int = 1) -> None:
        """Settle the first tokens of the draft."""
        self.drafted -= count
        self.first_wanted_row = self.settled - 1

    def drop_draft(self) -> None:
        """Take back what is left of a draft."""
        self.length -= self.drafted
        self.drafted = 0
        self.unread = frozenset()
        self.unchanged = min(self.unchanged, self.length)

    def rewrite(self, kept: int, tokens: Tokens[int]) -> None:
        """Let other tokens follow the first `kept` ones; there is no draft then."""
        self.drafted = 0
        self.unread = frozenset()
        self.unchanged = min(self.unchanged, kept)
        self.length = kept + len(tokens)
        self._tokens[kept : self.length] = tokens
        self.first_wanted_row = self.length - 1

    def want_from(self, row: int) -> None:
        """Ask for the logits from a row on, also where that means to compute rows again."""
        self.first_wanted_row = row
        self.computed = min(self.computed, row)

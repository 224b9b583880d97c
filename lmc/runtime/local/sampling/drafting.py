"""Drafts of forced tokens, and their lengths.

A drafted row is wasted if another token is drawn before it. The length of a generation's next draft depends on the
success of its earlier ones alone. Its text does not depend on it.
"""

from typing import NamedTuple

import numpy as np

from lmc.grammar.index.states import State
from lmc.ir.engine.constraint_protocol import TokenState
from lmc.ir.engine.token_masks import Mask, allows

_FIRST = 32
_LONGEST_PAUSE = 64
_PATHS_KEPT = 256


class Path(NamedTuple):
    """Text that has to follow a state: its tokens with the states after them, which are allowed one after the other.

    At the places `certain`, ascending, no other token is.
    """

    tokens: tuple[int, ...]
    states: tuple[TokenState, ...]
    certain: tuple[int, ...]


class Paths:
    """Forced paths after states; `most` is the longest draft.

    All generations under a regular constraint share its states: paths are kept for the `_PATHS_KEPT` states that were
    asked for last. Only the worker's thread uses it.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: dict[State, tuple[int, Path]] = {}

    def after(self, state: TokenState, wanted: int) -> Path:
        """Return the forced path after a state, at least up to `wanted` tokens of it.

        Raises:
            Exception: the constraint does.
        """
        if not isinstance(state, State):
            return _path(state, wanted)
        looked, path = self._kept.pop(state, (-1, None))
        if path is None or looked == len(path.tokens) < wanted:
            looked = max(wanted, self.most)
            path = _path(state, looked)
        self._kept[state] = looked, path
        if len(self._kept) > _PATHS_KEPT:
            del self._kept[next(iter(self._kept))]
        return path


def _path(state: TokenState, most: int) -> Path:
    tokens: list[int] = []
    states: list[TokenState] = []
    certain: list[int] = []
    for place, token in enumerate(state.forced()[:most]):
        mask = state.mask()
        if not allows(mask, token):
            break
        if is_only(mask, token):
            certain.append(place)
        state = state.advance(token)
        tokens.append(token)
        states.append(state)
    return Path(tuple(tokens), tuple(states), tuple(certain))


def is_only(mask: Mask, token: int) -> bool:
    """Return True if a mask allows this token and no other."""
    word = token // 32
    return word < mask.size and int(mask[word]) == 1 << token % 32 and np.count_nonzero(mask) == 1


class DraftLength:
    """The longest draft worth trying, of at most `most` tokens."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = min(_FIRST, most)
        self._misses = 0
        self._pause = 0

    def limit(self) -> int:
        """Tokens to draft where text has to follow; counts as a place where a draft was possible."""
        if self._pause:
            self._pause -= 1
            return 0
        return self._limit

    def took(self, drafted: int, accepted: int) -> None:
        """Learn how many tokens of a draft were what was drawn.

        The last one often is not, where the model writes it in one token with what comes next: no failure. After drafts
        that failed from the start others are tried after longer and longer pauses.
        """
        if drafted == 1:
            return
        if accepted >= drafted - 1:
            self._limit = min(2 * self._limit, self._most)
        elif accepted:
            self._limit = min(2 * accepted, self._most)
        if accepted:
            self._misses = 0
        else:
            self._misses += 1
            self._pause = min(2**self._misses - 1, _LONGEST_PAUSE)

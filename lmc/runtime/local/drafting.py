"""How long a draft to try.

A drafted row is computed for nothing where another token is drawn before it. What a generation drafts next follows from
how its drafts fared so far, and from nothing else. What it says does not depend on it.
"""

_FIRST = 32
_LONGEST_PAUSE = 64


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

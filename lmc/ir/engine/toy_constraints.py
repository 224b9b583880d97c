"""Tokens of the toy engine under a constraint: letters where they are allowed, and an early end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmc.ir.engine.constraint_protocol import TokenState
from lmc.ir.engine.token_masks import allowed_ids

_END_IN = 4  # one draw in this many ends a text that may end
_LEAVE_IN = 4  # one in this many looks for the mark that leads on: out of a string, an object, a list
_STRAY_IN = 8  # one in this many is any allowed token, so that each path to the end has a chance
_LONG = 48  # after so many tokens it only wants to come to an end
_FREE = 40  # where more tokens than this are allowed, it is within a string, and brackets close nothing
# Marks of ASCII, which are bytes of their own in UTF-8. A backslash leads nowhere.
_MARKS = frozenset(b"!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")
_CLOSING = frozenset(b")]}")


@dataclass(frozen=True, slots=True)
class Speaker:
    """The tokens of the toy: ``alphabet`` is preferred, ``byte_of`` is the byte of each token that is text."""

    alphabet: Sequence[int]
    byte_of: Mapping[int, int]
    eos_ids: Sequence[int]

    def candidates(self, position: TokenState, allowed: Sequence[int], said: int, draw: int) -> list[int]:
        """Return the candidates among ``allowed`` tokens (ascending, at least one); one may occur several times.

        ``said`` is how many tokens there are, ``draw`` a number of 64 bits that decides what is looked for.
        """
        draw, end = divmod(draw, _END_IN)
        draw, leave = divmod(draw, _LEAVE_IN)
        stray = draw % _STRAY_IN == 0
        ends = [token_id for token_id in allowed if token_id in self.eos_ids]
        others = [token_id for token_id in allowed if token_id not in self.eos_ids]
        if ends and (end == 0 or said >= _LONG or not others):
            return ends[:1]
        marks = [token_id for token_id in others if self.byte_of.get(token_id) in _MARKS]
        if marks and (leave == 0 if said < _LONG else not stray):
            ranks = [self._rank(position, token_id, len(others)) for token_id in marks]
            return [token_id for token_id, rank in zip(marks, ranks, strict=True) if rank == min(ranks)]
        known = set(others)
        letters = [token_id for token_id in self.alphabet if token_id in known]
        return letters if letters and not stray and said < _LONG else others

    def _rank(self, position: TokenState, token_id: int, choices: int) -> tuple[bool, bool, int]:
        """Less for a token that leads on: to an end, out of what brackets hold, else to where little may be said."""
        following = position.advance(token_id)
        closes = choices <= _FREE and self.byte_of[token_id] in _CLOSING
        return not following.accepting, not closes, len(allowed_ids(following.mask()))

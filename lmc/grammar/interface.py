"""The common interface of constraints over the tokens of one vocabulary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from lmc.grammar.automata.automaton import MAX_STATES
from lmc.grammar.facts import Facts
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.states import Words
from lmc.grammar.vocabulary.vocabulary import Vocabulary


class TokenState(Protocol):
    """The state of a generation in a constraint: see ``State`` (`constraint.py`)."""

    @property
    def accepting(self) -> bool: ...

    @property
    def complete(self) -> bool: ...

    def mask(self) -> Words: ...

    def advance(self, token_id: int) -> TokenState: ...

    def forced(self) -> list[int]: ...


class Constraint(ABC):
    """The allowed outputs of a generation, for one vocabulary. ``digest`` identifies them; safe for threads.

    ``narrowed`` are the keywords of a schema that are enforced by fewer values than they allow, by JSON pointer, each
    with the values produced.
    """

    def __init__(self, vocabulary: Vocabulary, digest: str, narrowed: Mapping[str, str] | None = None) -> None:
        self.vocabulary = vocabulary
        self.digest = digest
        self.narrowed: Mapping[str, str] = narrowed or {}

    @abstractmethod
    def start(self) -> TokenState:
        """The state of a generation that has said nothing yet."""

    @abstractmethod
    def matches(self, output: str | bytes) -> bool:
        """Return whether a whole output is allowed."""

    @abstractmethod
    def facts(self) -> Facts:
        """Return what there is to say of it; more once it is built."""

    def build(self, *, max_states: int = MAX_STATES) -> TokenIndex | None:
        """Make all states ahead of time, where there are finitely many; None where there are not."""
        del max_states
        return None

    def shortest_beyond(self, limit: int) -> int | None:
        """Tokens of a shortest output where that is known to be more than ``limit``; else None."""
        del limit
        return None

"""Constraints by their definition, slow and plain: sets of places in a template, masks by trying every token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

LETTERS = b"abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Run:
    """From `low` to `high` bytes of a set (`high` None: any number)."""

    among: bytes
    low: int = 1
    high: int | None = None


# What follows one another: a text, one of several texts, or a run.
Piece = bytes | tuple[bytes, ...] | Run
Place = tuple[int, int, int]  # piece, of its texts which one, bytes of it that are there


class TemplateConstraint:
    """A sequence of pieces over the tokens of one vocabulary, as a `TokenConstraint`."""

    def __init__(self, tokenizer: Any, *pieces: Piece | str) -> None:
        self.vocabulary = Vocabulary.of(tokenizer)
        self.pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
        self._states: dict[frozenset[Place], TemplateState] = {}

    @property
    def digest(self) -> str:
        return f"{self.pieces}"

    def start(self) -> TemplateState:
        return self.state(self.entering(0))

    def matches(self, output: str | bytes) -> bool:
        places = self.entering(0)
        for byte in output.encode() if isinstance(output, str) else output:
            places = self.step(places, byte)
        return self.ends(places)

    def state(self, places: frozenset[Place]) -> TemplateState:
        return self._states.setdefault(places, TemplateState(self, places))

    def entering(self, piece: int) -> frozenset[Place]:
        """The places at the start of a piece, and of those after it where it may be empty."""
        if piece == len(self.pieces):
            return frozenset({(piece, 0, 0)})
        here = self.pieces[piece]
        texts = len(here) if isinstance(here, tuple) else 1
        return frozenset().union(*(self.closed((piece, text, 0)) for text in range(texts)))

    def closed(self, place: Place) -> frozenset[Place]:
        piece, text, count = place
        here = self.pieces[piece]
        if isinstance(here, Run):
            found = frozenset({place}) if here.high is None or count < here.high else frozenset[Place]()
            return found | self.entering(piece + 1) if count >= here.low else found
        whole = here[text] if isinstance(here, tuple) else here
        return self.entering(piece + 1) if count == len(whole) else frozenset({place})

    def step(self, places: frozenset[Place], byte: int) -> frozenset[Place]:
        found: frozenset[Place] = frozenset()
        for piece, text, count in places:
            if piece == len(self.pieces):
                continue
            here = self.pieces[piece]
            if not isinstance(here, Run):
                fits, following = (here[text] if isinstance(here, tuple) else here)[count] == byte, count + 1
            else:
                fits, following = byte in here.among, count + 1
                if here.high is None:
                    following = min(following, here.low)
            if fits:
                found |= self.closed((piece, text, following))
        return found

    def ends(self, places: frozenset[Place]) -> bool:
        return any(piece == len(self.pieces) for piece, _, _ in places)


@dataclass(frozen=True, eq=False)
class TemplateState:
    """Fits `lmc.ir.engine.constraint_protocol.TokenState`."""

    owner: TemplateConstraint
    places: frozenset[Place]

    @property
    def accepting(self) -> bool:
        return self.owner.ends(self.places)

    @property
    def complete(self) -> bool:
        return self.accepting and not self.next_bytes

    @cached_property
    def next_bytes(self) -> list[int]:
        return [byte for byte in range(256) if self.owner.step(self.places, byte)]

    @cached_property
    def allowed(self) -> list[int]:
        vocabulary = self.owner.vocabulary
        ids = [token_id for token_id, token in enumerate(vocabulary.tokens) if token and self._after(token)]
        return sorted((*ids, *(vocabulary.eos_ids if self.accepting else ())))

    @cached_property
    def _mask(self) -> NDArray[np.uint32]:
        mask = np.zeros(self.owner.vocabulary.words, np.uint32)
        for token_id in self.allowed:
            mask[token_id // 32] |= np.uint32(1 << token_id % 32)
        return mask

    def mask(self) -> NDArray[np.uint32]:
        return self._mask

    def advance(self, token_id: int) -> TemplateState:
        token = self.owner.vocabulary.tokens[token_id]
        places = self._after(token) if token else None
        if not places:
            raise ConstraintError(f"token {token_id} is not allowed here", remedy="draw with the mask")
        return self.owner.state(places)

    @cached_property
    def _forced(self) -> list[int]:
        forced, state = b"", self
        while not state.accepting and len(state.next_bytes) == 1:
            forced += bytes(state.next_bytes)
            state = self.owner.state(self.owner.step(state.places, state.next_bytes[0]))
        return self.owner.vocabulary.encode(forced.decode(errors="ignore"))

    def forced(self) -> list[int]:
        return self._forced

    def _after(self, data: bytes) -> frozenset[Place]:
        places = self.places
        for byte in data:
            places = self.owner.step(places, byte)
        return places

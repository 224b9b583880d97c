"""Whether masks are right, before anything is timed: along outputs, beside the definition and the peers' masks."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from benchmarks.constraining.cases import Case
from benchmarks.constraining.meaning import Meaning, unpack
from benchmarks.constraining.peers import Compiled, Peer
from lmc.grammar import Vocabulary, compile
from lmc.ir.errors import ConstraintError

Words = npt.NDArray[np.uint32]
POSITIONS = 14  # of each output, at which the definition is asked


class WrongError(SystemExit):
    """A mask is not what it must be: the case, the place and the tokens."""


@dataclass(frozen=True)
class Output:
    """An output as its tokens, and the bytes before each of them and after the last."""

    tokens: tuple[int, ...]
    before: tuple[bytes, ...]


@dataclass(frozen=True)
class Agreement:
    """At how many positions a peer's mask is ours; how many tokens it has more and less where not."""

    positions: int
    equal: int
    more: int = 0
    less: int = 0
    refused: bool = False

    @property
    def complete(self) -> bool:
        return not self.refused and self.equal == self.positions


def outputs(case: Case, tokenizer: Tokenizer, tokens: Sequence[bytes]) -> list[Output]:
    """The examples of a case, in the tokens that the tokenizer makes of them."""
    found: list[Output] = []
    for example in case.examples:
        encoded = tokenizer.encode(example).ids
        before = tuple(accumulate((tokens[token] for token in encoded), initial=b""))
        assert before[-1] == example.encode(), f"{case.name}: the tokenizer does not keep {example!r}"
        found.append(Output(tuple(encoded), before))
    return found


def our_masks(case: Case, constraint: Any, found: Sequence[Output]) -> list[list[Words]]:
    """Of each output, the mask at every position. Raises ``WrongError`` where an output is not accepted."""
    made: list[list[Words]] = []
    for output in found:
        state = constraint.start()
        masks = [np.array(state.mask())]
        for at, token in enumerate(output.tokens):
            if not _allows(masks[-1], token):
                raise WrongError(f"{case.name}: token {token} is not allowed after {output.before[at]!r}")
            state = state.advance(token)
            masks.append(np.array(state.mask()))
        if not state.accepting:
            raise WrongError(f"{case.name}: {output.before[-1]!r} is not accepted")
        made.append(masks)
    return made


def check_definition(
    case: Case, meaning: Meaning, found: Sequence[Output], masks: Sequence[Sequence[Words]], tokens: Sequence[bytes]
) -> int:
    """At how many positions the masks were compared with the definition. Raises ``WrongError`` where one differs."""
    positions = 0
    for output, made in zip(found, masks, strict=True):
        for at in sorted({round(place) for place in np.linspace(0, len(output.tokens), POSITIONS)}):
            check_position(case, meaning, output.before[at], made[at], tokens)
            positions += 1
    return positions


def check_index(case: Case, vocabulary: Vocabulary, found: Sequence[Output], masks: Sequence[Sequence[Words]]) -> None:
    """The masks of the complete index, as it is built and as it comes from the cache, are those made one by one.

    Raises ``WrongError`` where they differ. An index that is refused has none.
    """
    with tempfile.TemporaryDirectory() as folder:
        for how in ("built", "loaded"):
            constraint = compile(**case.given(), tokenizer=vocabulary, cache=folder)
            try:
                constraint.build()
            except ConstraintError:
                return
            for output, one, other in zip(found, our_masks(case, constraint, found), masks, strict=True):
                differ = [at for at, pair in enumerate(zip(one, other, strict=True)) if not np.array_equal(*pair)]
                if differ:
                    raise WrongError(f"{case.name}: {how}, the mask after {output.before[differ[0]]!r} is another one")


def check_position(case: Case, meaning: Meaning, before: bytes, mask: Words, tokens: Sequence[bytes]) -> None:
    """Raises ``WrongError`` where ``mask`` is not what may follow ``before``."""
    more, less = _more_and_less(mask, meaning.mask(before))
    if len(more) + len(less):
        wrongly = ", ".join(repr(tokens[token]) for token in more[:8])
        lacking = ", ".join(repr(tokens[token]) for token in less[:8])
        raise WrongError(
            f"{case.name}: after {before!r} the mask allows {len(more)} tokens that it must not ({wrongly}) "
            f"and lacks {len(less)} ({lacking})"
        )


def compare(
    case: Case,
    peer: Peer,
    compiled: Compiled | None,
    found: Sequence[Output],
    masks: Sequence[Sequence[Words]],
    meaning: Meaning,
    tokens: Sequence[bytes],
) -> Agreement:
    """A peer's masks beside ours. Where they part first, ours is held against the definition there too.

    A peer that refuses a token of an output is not asked about the rest of it, which counts as unequal; ``compiled``
    is None of one that refuses the case.
    """
    positions = equal = 0
    if compiled is None:
        return Agreement(sum(map(len, masks)), 0, refused=True)
    first: tuple[int, int] | None = None
    for output, made in zip(found, masks, strict=True):
        walk = compiled.start()
        positions += len(made)
        for at, mask in enumerate(made):
            walk.fill()
            more, less = _more_and_less(peer.words, mask)
            equal += len(more) + len(less) == 0
            if first is None and len(more) + len(less):
                check_position(case, meaning, output.before[at], mask, tokens)
                first = len(more), len(less)
            if at < len(output.tokens) and not walk.accept(output.tokens[at]):
                break
    return Agreement(positions, equal, *(first or (0, 0)))


def _allows(mask: Words, token: int) -> bool:
    return bool(int(mask[token // 32]) >> (token % 32) & 1)


def _more_and_less(one: Words, other: Words) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Tokens that the first mask has and the other lacks, and the other way."""
    if np.array_equal(one, other):
        none = np.zeros(0, dtype=np.int64)
        return none, none
    return np.flatnonzero(unpack(one & ~other)), np.flatnonzero(unpack(other & ~one))

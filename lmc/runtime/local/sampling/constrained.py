"""The state of a generation in its constraint: allowed and forced tokens."""

from types import TracebackType

import numpy as np

from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.engine.constraint_protocol import TokenConstraint, TokenState
from lmc.ir.engine.protocol import Generation, Request
from lmc.ir.engine.stopping import Stopper
from lmc.ir.engine.token_masks import Mask, mask_without, violation
from lmc.ir.errors import ConstraintError, LmcError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.local.failures import constraint_failed
from lmc.runtime.local.sampling.drafting import Path, Paths


class ConstraintWalk:
    """A generation's way through its constraint, and how it would go on along a draft.

    All its methods raise `LmcError`, whatever the constraint raises.
    """

    def __init__(self, constraint: TokenConstraint, paths: Paths) -> None:
        self._paths = paths
        with _ERRORS:
            self._states: list[TokenState] = [constraint.start()]  # after what is settled, and after each drafted token

    @property
    def complete(self) -> bool:
        """True if nothing may follow the settled tokens."""
        with _ERRORS:
            return self._states[0].complete

    def mask(self, drafted: int, forbidden: frozenset[int]) -> Mask:
        """Return the mask after so many tokens of the draft, less `forbidden`, unless nothing else is allowed."""
        with _ERRORS:
            mask = np.ascontiguousarray(self._states[drafted].mask(), np.uint32)
        return mask_without(mask, forbidden) if forbidden else mask

    def state(self, drafted: int) -> TokenState:
        """Return the state after so many tokens of the draft."""
        return self._states[drafted]

    def step(self, token: int) -> None:
        """Settle a drawn token that is not the draft's; there is no draft then."""
        with _ERRORS:
            self._states = [self._states[0].advance(token)]

    def accept(self, count: int) -> None:
        """Settle the draft's first tokens."""
        del self._states[:count]

    def is_forced(self) -> bool:
        """Return True if there is forced text."""
        with _ERRORS:
            return bool(self._states[0].forced())

    def draft(self, most: int, ends: frozenset[int]) -> tuple[list[int], list[int], bool]:
        """Up to `most` tokens of the text that has to follow, as a new draft; none would end the generation (`ends`).

        Returns:
            The tokens, the places of those that are all that may be drawn there, and whether nothing may follow them.
        """
        with _ERRORS:
            path, count = self._along(most, ends)
            self._states[1:] = path.states[:count]
            certain = [place for place in path.certain if place < count]
            return [*path.tokens[:count]], certain, count > 0 and self._states[-1].complete

    def shorten(self) -> None:
        """Take the last token off the draft."""
        del self._states[-1]

    def take_forced(self, most: int, ends: frozenset[int]) -> list[int]:
        """Settle up to `most` tokens of the forced text, up to the first that is not allowed or ends the generation."""
        with _ERRORS:
            path, count = self._along(most, ends)
        if count:
            self._states = [path.states[count - 1]]
        return [*path.tokens[:count]]

    def _along(self, most: int, ends: frozenset[int]) -> tuple[Path, int]:
        """Return the forced path, and the number of its tokens to take."""
        path = self._paths.after(self._states[0], most)
        count = min(most, len(path.tokens))
        if not ends.isdisjoint(path.tokens):
            count = next((place for place, token in enumerate(path.tokens[:count]) if token in ends), count)
        return path, count


def check_output(
    request: Request, generation: Generation, stopper: Stopper, tokenizer: Tokenizer
) -> ConstraintError | None:
    """The error of a finished generation that its constraint does not allow as a whole; None where it does.

    The constraint is asked about the text, or about the bytes of the kept tokens where the text is not all of them: a
    code point that was cut off, bytes that are none. Raises `LmcError`, whatever the constraint raises.
    """
    output: str | bytes = generation.text
    if not stopper.text_is_exact:
        output = Vocabulary.of(tokenizer).text(generation.token_ids) + generation.remainder.encode()
    with _ERRORS:
        return violation(request, generation, output)


def only(token: int) -> Mask:
    """The mask that allows one token."""
    mask = np.zeros(token // 32 + 1, np.uint32)
    mask[-1] = 1 << token % 32
    return mask


class _Errors:
    """Turns what a constraint raises and should not into the error of one request.

    Entered a few times for each token: a function with `contextmanager` would take as long as what it guards.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, LmcError):
            raise constraint_failed(error) from error


_ERRORS = _Errors()

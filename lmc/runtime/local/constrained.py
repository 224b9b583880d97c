"""Where a generation stands in its constraint: what may come next, and what has to."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import numpy as np

from lmc.grammar.vocabulary import Vocabulary
from lmc.ir.constraining import Mask, allows, mask_without, violation
from lmc.ir.engine import Generation, Request, TokenConstraint, TokenState
from lmc.ir.errors import ConstraintError, LmcError
from lmc.ir.stopping import Stopper
from lmc.ir.tokenizer import Tokenizer
from lmc.runtime.local.failures import constraint_failed


class Walk:
    """A generation's way through its constraint, and how it would go on along a draft.

    All its methods raise `LmcError`, whatever the constraint raises.
    """

    def __init__(self, constraint: TokenConstraint) -> None:
        with _errors():
            self._states: list[TokenState] = [constraint.start()]  # after what is settled, and after each drafted token

    @property
    def complete(self) -> bool:
        """Whether nothing may follow what is settled."""
        with _errors():
            return self._states[0].complete

    def mask(self, drafted: int, forbidden: frozenset[int]) -> Mask:
        """What may follow so many tokens of the draft, less what is forbidden, unless nothing else is allowed."""
        with _errors():
            mask = np.ascontiguousarray(self._states[drafted].mask(), np.uint32)
        return mask_without(mask, forbidden) if forbidden else mask

    def state(self, drafted: int) -> TokenState:
        """Where it is after so many tokens of the draft."""
        return self._states[drafted]

    def step(self, token: int) -> None:
        """Settle a drawn token that is not the draft's; there is no draft then."""
        with _errors():
            self._states = [self._states[0].advance(token)]

    def accept(self) -> None:
        """Settle the draft's first token."""
        del self._states[0]

    def is_forced(self) -> bool:
        """Whether there is text that has to follow."""
        with _errors():
            return bool(self._states[0].forced())

    def draft(self, most: int, ends: frozenset[int]) -> list[int]:
        """Up to `most` tokens of the text that has to follow, as a new draft.

        It has neither tokens that are not allowed or would end the generation (`ends`), nor the last one before a state
        that is complete: no row need be computed for what is drawn after that.
        """
        with _errors():
            along = [each for each in self._along(most, ends) if not each[1].complete]
        self._states[1:] = [state for _, state in along]
        return [token for token, _ in along]

    def take_forced(self, most: int, ends: frozenset[int]) -> list[int]:
        """Settle up to `most` tokens of the text that has to follow, as far as they are allowed and end nothing."""
        with _errors():
            along = list(self._along(most, ends))
        if along:
            self._states = [along[-1][1]]
        return [token for token, _ in along]

    def _along(self, most: int, ends: frozenset[int]) -> Iterator[tuple[int, TokenState]]:
        state = self._states[0]
        for token in state.forced()[:most]:
            if token in ends or not allows(state.mask(), token):
                return
            state = state.advance(token)
            yield token, state


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
    with _errors():
        return violation(request, generation, output)


def only(token: int) -> Mask:
    """The mask that allows one token."""
    mask = np.zeros(token // 32 + 1, np.uint32)
    mask[-1] = 1 << token % 32
    return mask


@contextmanager
def _errors() -> Generator[None]:
    """Turns what a constraint raises and should not into the error of one request."""
    try:
        yield
    except LmcError:
        raise
    except Exception as error:
        raise constraint_failed(error) from error

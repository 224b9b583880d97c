"""The interface between engines and compiled constraints: allowed outputs, token by token."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class TokenState(Protocol):
    """The state of a generation in its constraint. Immutable and shared: many generations may hold one."""

    @property
    def accepting(self) -> bool:
        """True if the output may end here."""
        ...

    @property
    def complete(self) -> bool:
        """True if the output has to end here: it is accepted, and no token may follow."""
        ...

    def mask(self) -> NDArray[np.uint32]:
        """Tokens allowed next: bit ``i % 32`` of word ``i // 32`` is token ``i``; EOS ids where ``accepting``.

        Read-only, and the same array each time.
        """
        ...

    def advance(self, token_id: int) -> TokenState:
        """The state after an allowed token that is not EOS. Raises ``ConstraintError`` for any other."""
        ...

    def forced(self) -> list[int]:
        """Canonical tokens of the text that has to follow (empty where there is a choice): a draft, not a promise."""
        ...


class TokenConstraint(Protocol):
    """The allowed outputs of a generation, for one vocabulary. ``digest`` names its content."""

    @property
    def digest(self) -> str: ...

    def start(self) -> TokenState: ...

    def matches(self, output: str | bytes) -> bool:
        """Return True if a whole output is allowed."""
        ...

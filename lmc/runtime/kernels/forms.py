"""Parameters of all attention kernels: the rows of a step, and the form of attention of a layer."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SequenceRows(NamedTuple):
    """The query rows of one sequence: packed rows `first_row … first_row+rows-1` are its last `rows` tokens.

    `pages` [L] holds the page of each of its L tokens, those of the query rows included.
    """

    first_row: int
    rows: int
    pages: NDArray[np.int64]

    @property
    def length(self) -> int:
        """Tokens the last row sees."""
        return int(self.pages.size)


@dataclass(frozen=True, slots=True)
class AttentionForm:
    """The attention of one layer.

    Scores are q·k × `scaling`; with a `softcap` c they become c·tanh(score / c) (Gemma 2). With a `window` w a row sees
    the last w positions, its own included (Mistral). 0 stands for none.
    """

    scaling: float
    window: int = 0
    softcap: float = 0.0

"""Rows without text that teach the skill everything else needs: copying.

They are drawn from random tokens, so that only the context can tell what follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


def copying_row(rng: Random, vocabulary_size: int, length: int) -> tuple[list[int], list[float]]:
    """Repeat a block of random tokens; every token after the first block and one more can be told.

    Returns `length` + 1 tokens and `length` weights of predicting the next one.
    """
    period = rng.randrange(8, max(9, length // 2))
    block = [rng.randrange(vocabulary_size) for _ in range(period)]
    repeats = (length + 1) // period + 1
    return (block * repeats)[: length + 1], [float(position > period) for position in range(1, length + 1)]

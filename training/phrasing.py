"""Phrasings of the same request, cut into a training and a held-out part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from training.document import Split

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True)
class Phrasings:
    """Ways to say one thing: `train` for training, `held_out` for evaluation only."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]

    def pick(self, rng: Random, split: Split) -> str:
        """Draw one phrasing of the wanted side."""
        options = self.train if split is Split.TRAIN else self.held_out
        return options[int(rng.random() * len(options))]

"""The recipe: network shape, stages of row lengths, learning rates. Everything that fixes the result, with the seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from training.model import Shape

ALL_FAMILIES = {
    "arithmetic": 0.06,
    "conversation": 0.07,
    "extraction": 0.15,
    "joining": 0.14,
    "judgement": 0.11,
    "lookup": 0.08,
    "multiple_choice": 0.28,
    "recall": 0.11,
}
EARLY_FAMILIES = {**ALL_FAMILIES, "recall": 0.40}
FINDING_FAMILIES = {**ALL_FAMILIES, "recall": 0.25, "multiple_choice": 0.30}

CONTINUED_FAMILIES = {
    "arithmetic": 0.04,
    "conversation": 0.06,
    "extraction": 0.14,
    "fields": 0.12,
    "joining": 0.08,
    "judgement": 0.07,
    "lookup": 0.06,
    "multiple_choice": 0.20,
    "recall": 0.08,
    "structured": 0.15,
}


@dataclass(frozen=True)
class Stage:
    """Some steps whose rows have one of several lengths, drawn by weight; every step holds about `tokens` tokens.

    `families` weighs the task families; a share `copying` of the rows repeats random tokens instead. Documents are
    about `document_share` of a row long: short ones hold few facts, so that finding one is learned first. `rate` scales
    the learning rates.
    """

    steps: int
    lengths: dict[int, float]
    tokens: int
    families: dict[str, float] = field(default_factory=lambda: dict(ALL_FAMILIES))
    copying: float = 0.0
    document_share: tuple[float, float] = (0.25, 1.0)
    rate: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """Shape, stages and rates of one training run."""

    shape: Shape
    stages: tuple[Stage, ...]
    tokenizer_documents: int
    matrix_rate: float = 0.02
    other_rate: float = 0.0015
    matrix_decay: float = 0.3
    warmup_steps: int = 40
    decay_share: float = 0.8
    seed: int = 1

    @property
    def total_steps(self) -> int:
        """Steps of all stages."""
        return sum(stage.steps for stage in self.stages)

    def at(self, step: int) -> tuple[Stage, int, int]:
        """Return the stage of a step, and the rows and row length of its batch."""
        stage = self.stages[-1]
        left = step
        for candidate in self.stages:
            if left < candidate.steps:
                stage = candidate
                break
            left -= candidate.steps
        rng = Random(f"length/{self.seed}/{step}")
        length = rng.choices(list(stage.lengths), list(stage.lengths.values()))[0]
        return stage, max(1, stage.tokens // length), length

    def rate_factor(self, step: int) -> float:
        """Warm up linearly, hold, then fall linearly to zero over the last `decay_share` of the run."""
        falling = (self.total_steps - step) / max(1.0, self.decay_share * self.total_steps)
        return self.at(step)[0].rate * min(1.0, (step + 1) / self.warmup_steps, max(falling, 0.01))


FULL = Recipe(
    shape=Shape(),
    stages=(
        Stage(200, {128: 1.0}, 1536, EARLY_FAMILIES, copying=1.0),
        Stage(300, {256: 1.0}, 4096, FINDING_FAMILIES, copying=0.02, document_share=(0.15, 0.8)),
        Stage(800, {256: 1.0}, 4096, FINDING_FAMILIES, copying=0.02, document_share=(0.15, 0.8), rate=0.35),
        Stage(5600, {512: 1.0}, 8192, copying=0.02, document_share=(0.1, 0.7), rate=0.35),
        Stage(350, {512: 0.3, 1024: 0.5, 2048: 0.2}, 8192, document_share=(0.15, 1.0), rate=0.35),
        Stage(350, {512: 0.3, 1024: 0.2, 2048: 0.25, 4096: 0.25}, 8192, document_share=(0.15, 1.0), rate=0.35),
    ),
    tokenizer_documents=2500,
)
CONTINUED = Recipe(
    shape=Shape(),
    stages=(
        Stage(1650, {512: 0.75, 1024: 0.25}, 8192, CONTINUED_FAMILIES, document_share=(0.1, 0.8), rate=0.14),
        Stage(550, {512: 0.35, 1024: 0.25, 2048: 0.25, 4096: 0.15}, 8192, CONTINUED_FAMILIES, rate=0.14),
    ),
    tokenizer_documents=2500,
    decay_share=0.95,
    seed=2,
)
SMOKE = Recipe(
    shape=Shape(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2),
    stages=(Stage(60, {128: 1.0}, 1024), Stage(20, {128: 0.5, 256: 0.5}, 1024)),
    tokenizer_documents=120,
    warmup_steps=10,
)

"""Constraints and draws at random for masked draws, and which tokens rounding may choose between."""

import numpy as np
import torch

from lmc.runtime.kernels.masked_draw import ConstraintTables, Drawn, Draws, Tables, draw_masked

NEARBY = 2e-6  # of a share or a number, relative: what sums in another order differ by


def some_tables(rng: np.random.Generator, size: int, *, states: int = 7, most_classes: int = 70) -> Tables:
    """An automaton at random over `size` tokens in which each state allows something."""
    classes = int(rng.integers(2, min(most_classes, size)))
    class_of_token = rng.integers(0, classes, size)
    class_of_token[:classes] = np.arange(classes)
    kinds = int(rng.integers(1, states + 1))
    bits = rng.random((kinds, classes)) < rng.choice([0.05, 0.5, 0.95])
    bits[np.arange(kinds), rng.integers(0, classes, kinds)] = True
    padded = np.zeros((kinds, -(-classes // 32) * 32), np.uint8)
    padded[:, :classes] = bits
    mask_of_state = rng.integers(0, kinds, states)
    counts = bits.sum(axis=1)[mask_of_state]
    targets = [rng.integers(0, states, count) - state for state, count in enumerate(counts)]
    return Tables(
        class_of_token,
        np.packbits(padded, axis=1, bitorder="little").view(np.uint32),
        mask_of_state,
        np.cumsum(counts) - counts,
        np.concatenate(targets),
    )


def some_draws(rng: np.random.Generator, rows: int, states: list[int], size: int) -> Draws:
    """All kinds of sampling, mixed."""

    def pick(values: list[float], dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(rng.choice(values, rows), dtype=dtype)

    return Draws(
        torch.tensor(states, dtype=torch.int32),
        pick([0.0, 0.4, 1.0, 2.5], torch.float32),
        pick([0, 0, 1, 3, 50, size], torch.int32),
        pick([1.0, 1.0, 0.2, 0.9], torch.float32),
        pick([0.0, 0.0, 0.05, 0.5], torch.float32),
        torch.tensor(rng.random(rows)),
    )


def moved(draws: Draws, device: torch.device | str) -> Draws:
    """The same draws on a device."""
    return Draws(*(each.to(device) for each in draws))


def differences(logits: torch.Tensor, draws: Draws, tables: ConstraintTables, drawn: Drawn) -> tuple[int, list[int]]:
    """How many rows have another token than the reference where rounding decides, and the rows that are wrong.

    Rounding decides where the reference gives that token for a number or shares that are `NEARBY`.
    """
    expected = draw_masked(logits, draws, tables, implementation="reference")
    wrong: list[int] = []
    close = 0
    for row in range(len(logits)):
        found, highest = (int(drawn.tokens[row]), int(drawn.states[row])), drawn.highest[row]
        same = torch.equal(highest, expected.highest[row]) or bool(highest.isnan() & expected.highest[row].isnan())
        if same and not bool(torch.isfinite(highest)):
            continue  # nothing is drawn there
        if same and found == (int(expected.tokens[row]), int(expected.states[row])):
            continue
        if same and found in _nearby(logits[row : row + 1], Draws(*(each[row : row + 1] for each in draws)), tables):
            close += 1
        else:
            wrong.append(row)
    return close, wrong


def _nearby(logits: torch.Tensor, draws: Draws, tables: ConstraintTables) -> set[tuple[int, int]]:
    """Tokens with the states after them."""
    found: set[tuple[int, int]] = set()
    for number in (1 - NEARBY, 1 + NEARBY):
        for share in (1 - NEARBY, 1, 1 + NEARBY):
            moved_draws = draws._replace(
                uniform=(draws.uniform * number).clamp(max=1 - 1e-12),
                top_p=(draws.top_p * share).clamp(max=1.0),
                min_p=(draws.min_p * share).clamp(max=1.0),
            )
            drawn = draw_masked(logits, moved_draws, tables, implementation="reference")
            found.add((int(drawn.tokens[0]), int(drawn.states[0])))
    return found

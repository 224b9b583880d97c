"""One gradient from two halves of a batch, each computed by its own thread on its own core.

On few cores this beats threads inside every operation: no waiting at every small one, above all when other
programs run. The sum has a fixed order, so a run gives the same weights whatever the timing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from training.model import Llama
    from training.packing import Batch

WORKERS = 2


@dataclass(frozen=True)
class Losses:
    """Weighted mean loss over counted positions and plain mean loss over answer tokens."""

    weighted: float
    answer: float


def backward(model: Llama, batch: Batch, pool: ThreadPoolExecutor) -> Losses:
    """Set the gradients of `model` for the whole batch; return its losses."""
    parameters = list(model.parameters())
    total = batch.weights.sum()
    pieces = [
        (tokens, weights)
        for tokens, weights in zip(batch.tokens.chunk(WORKERS), batch.weights.chunk(WORKERS), strict=True)
        if bool((weights > 0).any())
    ]

    def piece_gradients(piece: tuple[torch.Tensor, torch.Tensor]) -> tuple[list[torch.Tensor], float, float, int]:
        loss, answer_sum, answers = model.loss(*piece)
        loss = loss / total
        return list(torch.autograd.grad(loss, parameters)), loss.item(), answer_sum, answers

    results = list(pool.map(piece_gradients, pieces))
    for index, parameter in enumerate(parameters):
        gradient = results[0][0][index]
        for other in results[1:]:
            gradient = gradient + other[0][index]
        parameter.grad = gradient
    answers = sum(result[3] for result in results)
    return Losses(sum(result[1] for result in results), sum(result[2] for result in results) / max(1, answers))


def pool() -> ThreadPoolExecutor:
    """Start the worker threads; their operations run on one thread each."""
    torch.set_num_threads(1)
    return ThreadPoolExecutor(WORKERS, initializer=torch.set_num_threads, initargs=(1,))

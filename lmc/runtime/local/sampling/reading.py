"""Reads a step's logits for the tasks that own them."""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Any

import torch

from lmc.cache.sequence import Sequence
from lmc.ir.errors import EngineError
from lmc.runtime.local.failures import not_numbers
from lmc.runtime.local.model import LogitsRows
from lmc.runtime.local.sampling.generation import GenerationTask
from lmc.runtime.local.sampling.sampler import DrawnToken, OnDevice, draw_tokens
from lmc.runtime.local.tasks import ScoreTask, Task

# Tokens or errors of a generation, one for each row; an error of anything else, where its logits are no numbers.
Reading = list[DrawnToken | EngineError] | EngineError | None


def read_logits(
    logits: torch.Tensor,
    owners: Items[LogitsRows],
    tasks: Mapping[Sequence, Task[Any]],
    on_device: OnDevice | None = None,
) -> list[Reading]:
    """Read what is said to each owner of rows of `logits` [R, vocabulary]. All tokens are drawn in one call."""
    read: list[Reading] = [None] * len(owners)
    draws: dict[int, GenerationTask] = {}
    checks: list[int] = []
    for index, owner in enumerate(owners):
        task = tasks[owner.rows.sequence]
        if owner.position < owner.rows.sequence.first_wanted_row:
            checks.append(index)
        elif isinstance(task, GenerationTask):
            draws[index] = task
        elif isinstance(task, ScoreTask):
            read[index] = task.take_logits(owner.rows.sequence, owner.position, logits[owner.first : owner.last])
    if checks:
        bad = logits[[owners[index].first for index in checks]].isnan().any(dim=-1).tolist()
        for index, is_bad in zip(checks, bad, strict=True):
            read[index] = not_numbers(owners[index].position) if is_bad else None
    if draws:
        _draw(logits, owners, draws, read, on_device)
    return read


def _draw(
    logits: torch.Tensor,
    owners: Items[LogitsRows],
    tasks: Mapping[int, GenerationTask],
    read: list[Reading],
    on_device: OnDevice | None,
) -> None:
    wanted = [draw for index, task in tasks.items() for draw in task.draws(owners[index].read)]
    if len(wanted) < len(logits):
        logits = logits[[row for index in tasks for row in range(owners[index].first, owners[index].last)]]
    drawn = draw_tokens(logits, wanted, on_device)
    first = 0
    for index in tasks:
        count = len(owners[index].read)
        read[index] = drawn[first : first + count]
        first += count

"""Reads a step's logits for the tasks that own them."""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Any

import torch

from lmc.cache.sequence import Sequence
from lmc.ir.errors import EngineError, LmcError
from lmc.runtime.local.failures import not_numbers
from lmc.runtime.local.model import LogitsRows
from lmc.runtime.local.sampling.generation import GenerationTask
from lmc.runtime.local.sampling.sampler import Draw, DrawnToken, OnDevice, draw_tokens
from lmc.runtime.local.tasks import ScoreTask, Task

# Tokens or errors of a generation, one for each row; an error of anything else, where its logits are no numbers.
Reading = list[DrawnToken | LmcError] | EngineError | None


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
    asked = {index: task.draws(owners[index].read) for index, task in tasks.items()}
    wanted: list[Draw] = []
    rows: list[int] = []
    for index, draws in asked.items():
        for row, draw in enumerate(draws, owners[index].first):
            if isinstance(draw, Draw):
                wanted.append(draw)
                rows.append(row)
    drawn = iter(draw_tokens(logits if len(rows) == len(logits) else logits[rows], wanted, on_device))
    for index, draws in asked.items():
        read[index] = [next(drawn) if isinstance(draw, Draw) else draw for draw in draws]

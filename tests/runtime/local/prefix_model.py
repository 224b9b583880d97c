"""A stand-in for a model: its pages hold the prefix that they were computed for, its logits are a function of that."""

from collections.abc import Callable
from typing import Any

import torch

from lmc.cache.memory import Slice
from lmc.runtime.local.model import _wanted_logits


class PrefixModel:
    """Stands for `PagedModel`. Reading a page of another prefix is an error.

    All rows of a slice are spoiled, those before the poison too, where the poison or a spoiled page is among what they
    are computed of; their logits are NaN.
    """

    def __init__(
        self,
        logits_after: Callable[[tuple[int, ...]], torch.Tensor],
        *,
        kv_tokens: int,
        vocabulary_size: int,
        poison: int = -1,
        rope_rows: int = 1 << 20,
    ) -> None:
        self.null_page = kv_tokens
        self.scratch_page = kv_tokens + 1
        self.vocabulary_size = vocabulary_size
        self.device = torch.device("cpu")
        self.pages: dict[int, tuple[int, ...]] = {}
        self.spoiled: set[int] = set()
        self._logits_after = logits_after
        self._poison = poison
        self._rope_rows = rope_rows

    def take_planning_seconds(self) -> float:
        return 0.0

    def rope_length(self, rows: int) -> int:
        return rows // self._rope_rows

    def release(self) -> None:
        pass

    def forward(self, slices: list[Slice]) -> tuple[torch.Tensor, Any]:
        computed = [rows for rows in slices if rows.end > rows.start]
        for rows in computed:
            tokens = tuple(rows.sequence.tokens.tolist())
            for position, slot in zip(range(rows.start, rows.end), rows.slots.tolist(), strict=True):
                if slot != self.scratch_page:
                    self.pages[slot] = tokens[: position + 1]
                    self.spoiled.discard(slot)
        for rows in computed:
            tokens = tuple(rows.sequence.tokens.tolist())
            for position, page in enumerate(rows.sequence.pages[: rows.end].tolist()):
                assert self.pages[page] == tokens[: position + 1], "a page of another prefix is read"
                assert page not in self.spoiled, "a request is served what failed"
        bad = self.spoil(computed)
        _, owners = _wanted_logits(computed)
        wanted = [
            torch.full((self.vocabulary_size,), float("nan"))
            if owner.rows in bad
            else self._logits_after(tuple(owner.rows.sequence.tokens[: row + 1].tolist()))
            for owner in owners
            for row in owner.read
        ]
        return torch.stack(wanted) if wanted else torch.empty(0, self.vocabulary_size), owners

    def spoil(self, computed: list[Slice]) -> list[Slice]:
        """Mark what is spoiled in this step; gives the slices that are."""
        bad: list[Slice] = []
        for rows in computed:
            found = not self.spoiled.isdisjoint(rows.sequence.pages[: rows.end].tolist())
            if found or self._poison in rows.sequence.tokens[rows.start : rows.end]:
                bad.append(rows)
                self.spoiled |= set(rows.slots.tolist()) - {self.scratch_page}
        return bad

"""Draws on the device of the logits, with masks from tables that lie there, where nothing else is asked for."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import torch

from lmc.grammar.index.states import State, StateTable
from lmc.runtime.kernels.choices import Chosen
from lmc.runtime.kernels.masked_draw import UNCONSTRAINED, ConstraintTables, Draws, Implementation, Tables, draw_masked
from lmc.runtime.local.sampling.sampler import Draw, uniform

MAX_CONSTRAINTS = 64


def draws_on(device: torch.device) -> "DeviceDraws | None":
    """Return the sampler of a device; None on a CPU, where the sampler's own kernel draws."""
    return None if device.type == "cpu" else DeviceDraws(device)


class DeviceDraws:
    """The tables of the constraints drawn under most recently, on one device.

    A constraint's tables come to the device when its first token is drawn there; beyond `MAX_CONSTRAINTS` the ones not
    used for longest make room. Only the worker's thread uses it.
    """

    def __init__(self, device: torch.device, implementation: Implementation | None = None) -> None:
        self._device = device
        self._implementation: Implementation | None = implementation
        self._held: OrderedDict[StateTable, int] = OrderedDict()  # each with its place in `_tables`
        self._tables: ConstraintTables | None = None

    def choose(self, logits: torch.Tensor, draws: Sequence[Draw]) -> list[Chosen] | None:
        """A token for each row of `logits` [R, vocabulary]; None where one of them can't be drawn on the device.

        That is the case with penalties, biases, forbidden tokens and log-probabilities, and under a constraint that
        has no complete index.
        """
        if not all(_is_drawable(draw, logits.shape[1]) for draw in draws):
            return None
        self._hold({state.table: None for draw in draws if (state := _state(draw)) is not None}, logits.shape[1])
        if self._tables is None:
            return None  # there was no constraint yet
        drawn = draw_masked(logits, self._draws(draws), self._tables, implementation=self._implementation)
        return list(map(Chosen, drawn.highest.tolist(), drawn.tokens.tolist()))

    def _hold(self, wanted: dict[StateTable, None], size: int) -> None:
        """Have the tables of all of these on the device."""
        missing = [constraint for constraint in wanted if constraint not in self._held]
        for constraint in wanted:
            if constraint in self._held:
                self._held.move_to_end(constraint)
        if not missing:
            return
        kept = [constraint for constraint in self._held if constraint in wanted]
        room = max(MAX_CONSTRAINTS - len(wanted), 0)
        others = [constraint for constraint in self._held if constraint not in wanted]
        chosen = [*others[max(len(others) - room, 0) :], *kept, *missing]
        self._held = OrderedDict((constraint, place) for place, constraint in enumerate(chosen))
        self._tables = ConstraintTables.of([_tables(constraint, size) for constraint in chosen], self._device)

    def _draws(self, draws: Sequence[Draw]) -> Draws:
        assert self._tables is not None

        def column(values: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype).to(self._device, non_blocking=True)

        numbers: list[int] = []
        for draw in draws:
            state = _state(draw)
            first = 0 if state is None else self._tables.first_state[self._held[state.table]]
            numbers.append(UNCONSTRAINED if state is None else first + state.number)
        sampling = [draw.sampling for draw in draws]
        return Draws(
            column(numbers, torch.int32),
            column([each.temperature or 0.0 for each in sampling], torch.float32),
            column([each.top_k for each in sampling], torch.int32),
            column([each.top_p for each in sampling], torch.float32),
            column([each.min_p for each in sampling], torch.float32),
            column(
                [0.0 if draw.sampling.greedy else uniform(draw.seed, draw.position) for draw in draws], torch.float64
            ),
        )


def _state(draw: Draw) -> State | None:
    """Return the state of a constrained draw, if it is of a kind the engine knows."""
    return draw.state if isinstance(draw.state, State) else None


def _is_drawable(draw: Draw, size: int) -> bool:
    if draw.adjusts or draw.sampling.logprobs is not None:
        return False
    if draw.mask is None:
        return True
    state = _state(draw)
    return state is not None and state.table.index is not None and state.table.vocabulary.size <= size


def _tables(constraint: StateTable, size: int) -> Tables:
    """Tables over `size` tokens; those beyond the constraint's vocabulary are of the class that is never allowed."""
    assert constraint.index is not None
    tables = Tables(*constraint.index.device_tables())
    return tables._replace(class_of_token=np.pad(tables.class_of_token, (0, size - len(tables.class_of_token))))

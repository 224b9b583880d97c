"""A body of a plan with what every run of it needs: who waits for whom, ranks, prefixes, calls that may start early."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.ir.cached import cached_property
from lmc.ir.core import Op, Value
from lmc.ir.semantics.speculation import EarlyStart


@dataclass(frozen=True)
class Stage:
    """Some instructions of a body, to be run together: ``waits[i]`` others of the stage come before instruction i.

    ``early_waits`` counts the same for calls that may start early, by their place in ``Early.starts``.
    """

    instructions: tuple[int, ...]
    waits: dict[int, int]
    early_waits: dict[int, int]

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The instructions that wait for none, ascending."""
        return tuple(index for index in self.instructions if not self.waits[index])


@dataclass(frozen=True)
class Early:
    """The calls in the regions of a body's ops that may start before those do.

    ``dependents[i]`` wait for instruction i, ``of_holders[i]`` are in its regions.
    """

    starts: tuple[EarlyStart, ...]
    dependents: dict[int, list[int]]
    of_holders: dict[int, list[int]]


@dataclass(frozen=True)
class PreparedBody:
    """A body with what every run of it needs.

    ``dependents[i]`` wait for instruction i, ``bodies[i]`` are its regions. Of calls that wait for room in the engine,
    the one with the lowest of ``ranks`` is first: by wave, then group, then order. ``stages`` number the instructions
    of the program that ask the engine in that order, those of regions with those around them. ``whole`` are all.
    ``prefills_of`` and ``prefill_users``: see ``lmc.runtime.hints.pinned_prefixes``; ``prefills`` are prefills by what
    they give. ``keeps[i]`` is the ``lm.keep`` of what instruction i leaves in the cache, ``kept_stages`` are the stages
    of the uses that those foresee.
    """

    parameters: tuple[Value, ...]
    ops: tuple[Op, ...]
    whole: Stage
    dependents: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...]
    stages: dict[int, int]
    bodies: dict[int, tuple[PreparedBody, ...]]
    prefills_of: dict[int, tuple[int, ...]]
    prefill_users: dict[int, int]
    prefill_ids: dict[int, str]
    prefills: dict[Value, int]
    keeps: dict[int, int]
    kept_stages: dict[int, int]
    early: Early

    @property
    def terminator(self) -> Op:
        """The last op."""
        return self.ops[-1]

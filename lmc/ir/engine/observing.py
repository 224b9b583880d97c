"""Observers of runs: requests, calls of the user's functions, and steps of an engine.

No run has one unless it is requested. Observers are called from any thread, must return at once and never raise. Times
are in seconds of ``time.perf_counter``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from lmc.ir.core import Op

RequestKind = Literal["generate", "score", "prefill"]


class AskedRequest(NamedTuple):
    """A request that is submitted now, as its run knows it.

    ``op`` is that of the plan; None after a graph break. ``op_id`` is its id in this run, ``row`` the number of the
    instance (None: all instances of a batch share it), ``number`` that of ``Request``. It was ``ready`` to run at that
    time; ``held``: the run then had as many requests in flight as it may have.
    """

    kind: RequestKind
    op: Op | None
    op_id: str
    row: int | None
    number: int
    ready: float
    held: bool = False


class BegunCall(NamedTuple):
    """A call of a user's function that starts now: its ``name``, op, id, row (as of requests) and line in the program.

    ``early``: it is speculative.
    """

    name: str
    op: Op | None
    op_id: str | None
    row: int | None
    line: int | None
    early: bool = False


@dataclass(frozen=True, slots=True)
class ObservedStep:
    """A step of an engine: ``rows`` were computed, ``prefilled`` of them for prompts; ``drawn`` had their logits read.

    Row i of a sequence attends to i + 1 keys: ``attended`` is their sum. ``held`` pages belonged to running sequences,
    those of shared prefixes counted once.

    ``running`` and ``waiting`` count sequences after the step. Since the step before, requests that were admitted
    ``found`` tokens of their prompts in the cache, tokens were ``evicted``, and sequences were ``preempted``.
    """

    start: float
    end: float
    rows: int
    prefilled: int
    drawn: int
    attended: int
    held: int
    running: int
    waiting: int
    found: int
    evicted: int
    preempted: int


OnStep = Callable[[ObservedStep | None], object]
"""Takes a step of an engine; None: no more of them will come."""
RequestEnded = Callable[[Any], object]
"""Takes the answer of a request that is done, or its error."""
CallEnded = Callable[[BaseException | None], object]
"""Takes the error of a call that ended; None: it returned."""


class Observer(Protocol):
    """Takes the requests, calls and steps of a run."""

    def begin_plan(self, plan: Any) -> None:
        """Instances of a ``Plan`` are about to run."""
        ...

    def begin_request(self, asked: AskedRequest) -> RequestEnded:
        """Take a request just before it is submitted. Gives the callback for its end."""
        ...

    def begin_call(self, begun: BegunCall) -> CallEnded:
        """Take a call just before it starts, in its thread. Gives the callback for its end."""
        ...

    def begin_steps(self) -> OnStep:
        """Return the callback for the steps of an engine that is observed from now on."""
        ...


@runtime_checkable
class Observable(Protocol):
    """Optional capability: engines whose steps can be observed."""

    def observe(self, on_step: OnStep) -> Callable[[], None]:
        """Call ``on_step`` after each step, and with None at the end: after the function that is returned was called.

        The step under way is still reported.
        """
        ...

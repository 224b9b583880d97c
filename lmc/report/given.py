"""The data that the driver hands over: ``lmc.report`` does not import the stages that make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from lmc.backend.plan import Plan
from lmc.cache.simulation.report import Report
from lmc.cache.trace import TraceRequest
from lmc.ir.core import Op
from lmc.ir.errors import Location
from lmc.ir.module import Module
from lmc.ir.profile import OpProfile
from lmc.report.timeline import RunTimeline

Length = tuple[int, int]
"""Tokens of literal text, and the number of texts beside them that only a run knows."""


class RemarkLike(Protocol):
    """A remark of a pass (``lmc.passes.base.Remark``); its text is the line that ``--remarks`` prints."""

    @property
    def kind(self) -> Literal["applied", "missed"]:
        """Return ``applied`` or ``missed``."""
        ...

    @property
    def message(self) -> str:
        """Return the message alone."""
        ...

    @property
    def location(self) -> Location | None:
        """Return the user's line."""
        ...

    @property
    def op(self) -> str | None:
        """Return the id of the op that it is about."""
        ...

    @property
    def saved_tokens(self) -> int:
        """Return the tokens that one instance saves."""
        ...

    @property
    def saved_calls(self) -> int:
        """Return the calls that one instance saves."""
        ...

    @property
    def saved_steps(self) -> int:
        """Return the rounds of calls that one instance saves."""
        ...


class BreakLike(Protocol):
    """A graph break (``lmc.frontend.breaks.Break``)."""

    @property
    def location(self) -> Location | None:
        """Return the user's line."""
        ...

    @property
    def cause(self) -> str:
        """Return the reason."""
        ...

    @property
    def remedy(self) -> str:
        """Return a way to avoid it."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """The module after the pass ``name`` (``capture``: before all passes), and the remarks of that pass."""

    name: str
    module: Module
    remarks: Sequence[RemarkLike] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a prompt: so many ``tokens`` of a ``text`` of the program, or of one that is only named.

    ``is_open``: only a run knows its length, as of an answer.
    """

    text: str
    tokens: int
    is_literal: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class ScheduledCall:
    """A request of a row in a schedule. ``inputs`` are numbers of requests before it, with the kind of dependence.

    ``text`` is the part of its prompt after the request that it continues, ``prompt`` the length of the whole prompt.
    """

    id: str
    inputs: Sequence[tuple[int, Literal["context", "value", "order"]]]
    text: str
    prompt: Length


@dataclass(frozen=True, slots=True)
class Batch:
    """The requests of a schedule and their simulation.

    ``requests`` are called ``row/number``; ``ops`` are the calls of the last module that make the requests of a row, by
    that number; none for a schedule alone. ``rows`` holds each row in the order of the schedule, with the characters
    that it shares with the one before. ``spans`` gives the parts of the prompt of a request, by its place in
    ``requests``. ``kv_tokens`` is None for a pool that holds all. ``note`` says whose seconds these are, where they are
    not those of the target.
    """

    requests: Sequence[TraceRequest]
    ops: Sequence[Op]
    report: Report
    rows: Sequence[tuple[int, int]]
    order: str
    block: int
    characters: float
    kv_tokens: int | None
    prefill_tokens: int
    spans: Callable[[int], Sequence[Span]]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """All that a view shows.

    ``steps`` are the modules, the last one the final one, and ``plan`` its lowered form. ``lengths`` has for calls and
    prefills of the final module the length of their prompts, and that of the part that is computed ahead. ``files`` are
    the names to show of the files of locations, ``texts`` the text of those that could be read. ``hints`` are warnings
    of the compilation. ``examples`` are texts that constraints allow, ``measured`` the costs of calls that ran.
    ``old``: the steps are two modules that are compared, and these are the data of the first. ``timeline`` is that of a
    run, with the digest of ``plan`` in it; then ``medians`` are the seconds of a request of calls.
    """

    steps: Sequence[Step]
    plan: Plan
    lengths: Mapping[Op, tuple[Length, Length]]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    breaks: Sequence[BreakLike] = ()
    hints: Sequence[tuple[str, Location | None]] = ()
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    measured: Mapping[Op, OpProfile] = field(default_factory=dict[Op, OpProfile])
    medians: Mapping[Op, float] = field(default_factory=dict[Op, float])
    batch: Batch | None = None
    timeline: tuple[RunTimeline, str] | None = None
    target: str | None = None
    level: str | None = None
    old: Given | None = None
    redact: bool = False

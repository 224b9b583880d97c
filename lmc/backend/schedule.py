"""The order in which the instances of a batch run: depth-first over the tree of their prompts, in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.backend.foreseen import CHARACTERS, Length, requests_of
from lmc.backend.known_text import KnownText
from lmc.backend.plan import Plan
from lmc.backend.stages import Known, Stage, Unknown, stages_of
from lmc.cache.blocks import SAMPLE, choose_block
from lmc.cache.report import Report
from lmc.cache.simulator import coarse_trial
from lmc.cache.trace import TraceRequest
from lmc.ir.core import Value
from lmc.ir.engine import EngineInfo
from lmc.ir.tokens import common_length


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the order. ``shared_characters`` leading characters of prompt text are those of the entry before.

    ``values`` are the texts that inputs say, in the order in which contexts take them: the characters of each, and how
    many of these are those of the entry before.
    """

    instance: int
    shared_characters: int
    values: tuple[Length, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of a batch; every instance stands in it once.

    ``stages`` are the requests of an instance. In blocks of ``block`` instances those of one stage are served
    together.
    """

    plan: str
    entries: tuple[Entry, ...]
    stages: tuple[Stage, ...] = ()
    block: int = 1

    @property
    def order(self) -> tuple[int, ...]:
        """The instances in the order in which they start."""
        return tuple(entry.instance for entry in self.entries)

    def requests(self) -> list[TraceRequest]:
        """What the simulator would serve: about so many tokens, shared as the texts are."""
        return requests_of(self.stages, [(entry.instance, entry.values) for entry in self.entries])


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine has: tokens of its KV pool, requests that run at once, and prompt tokens that a step computes."""

    kv_tokens: int
    batch: int = 256
    prefill_tokens: int = 512

    @classmethod
    def of(cls, info: EngineInfo, requests: int) -> Room | None:
        """That of an engine which gets up to ``requests`` at once; None where it does not say how large its pool is."""
        if info.kv_tokens is None:
            return None
        return cls(info.kv_tokens, requests if info.max_running is None else min(requests, info.max_running))


def schedule_batch(plan: Plan, inputs: Sequence[Mapping[str, Any]], room: Room | None = None) -> Schedule:
    """Put instances that share long prefixes side by side. ``inputs`` holds each instance's values by parameter name.

    The text known before the run (literals, inputs, and what is computed from those alone) is compared exactly, in the
    order in which the plan appends it to contexts; what comes after a model's answer plays no part. Of loops it is the
    first round, of maps the first element, of conditions both arms. Time is that of sorting the texts. An instance
    whose inputs don't fit comes first and fails when it runs.

    Where the batch could not stay in the KV pool of ``room`` as a whole, the size of blocks is tried out on a part of
    it (``lmc.cache.blocks``); else, or without ``room``, instances go one by one. Outputs are taken to be as long as
    the plan expects (``expected_tokens``, from a profile), else as ``max_tokens`` suggests.
    """
    reader = KnownText.of(plan)
    texts = [reader.read(values) for values in inputs]
    order = sorted(range(len(inputs)), key=lambda index: (texts[index], index))
    stages = stages_of(plan, _numbers(reader))
    entries: list[Entry] = []
    before: tuple[str, ...] = ()
    for position, index in enumerate(order):
        shared = reader.shared(before, texts[index]) if position else 0
        entries.append(Entry(index, shared, tuple(_lengths(before, texts[index]))))
        before = texts[index]
    block = 1 if room is None else _block(stages, entries, room)
    return Schedule(plan.name, tuple(entries), stages, block)


def _numbers(reader: KnownText) -> dict[Value, int]:
    """The number of each value that inputs say, by its first place among the pieces."""
    numbers: dict[Value, int] = {}
    for number, value in enumerate(piece for piece in reader.pieces if isinstance(piece, Value)):
        numbers.setdefault(value, number)
    return numbers


def _lengths(before: Sequence[str], texts: Sequence[str]) -> list[Length]:
    return [
        (len(text), common_length(before[number], text) if number < len(before) else 0)
        for number, text in enumerate(texts)
    ]


def _block(stages: Sequence[Stage], entries: Sequence[Entry], room: Room) -> int:
    """The size of blocks with which a part of the batch, as it is foreseen, finds most in the cache."""
    if len(entries) < 2 or len(stages) < 2 or _tokens(stages, entries) <= room.kv_tokens:
        return 1
    start = max((len(entries) - SAMPLE) // 2, 0)
    sample = requests_of(stages, [(entry.instance, entry.values) for entry in entries[start : start + SAMPLE]])

    def trial(requests: Sequence[TraceRequest], block: int, scale: int) -> Report:
        return coarse_trial(
            requests,
            kv_tokens=room.kv_tokens,
            batch=room.batch,
            prefill_tokens=room.prefill_tokens,
            block=block,
            scale=scale,
        )

    return choose_block(sample, trial, batch=room.batch)


def _tokens(stages: Sequence[Stage], entries: Sequence[Entry]) -> int:
    """Tokens that the requests of the batch leave in the cache at most, all of them together."""
    fixed = sum(stage.output for stage in stages)
    counts: dict[int, int] = {}
    for piece in (piece for stage in stages for piece in stage.pieces):
        if isinstance(piece, str):
            fixed += len(piece) // CHARACTERS
        elif isinstance(piece, Known):
            counts[piece.number] = counts.get(piece.number, 0) + 1
        elif isinstance(piece, Unknown):
            fixed += piece.tokens
        else:
            fixed += stages[piece.stage].output
    values = sum(
        counts.get(number, 0) * (length - shared)
        for entry in entries
        for number, (length, shared) in enumerate(entry.values)
    )
    return len(entries) * fixed + values // CHARACTERS

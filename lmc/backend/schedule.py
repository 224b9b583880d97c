"""The order in which the instances of a batch run: depth-first over the tree of their prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.backend.known_text import KnownText
from lmc.backend.plan import Plan, PlanError
from lmc.backend.untrusted_json import fields_of, parse_json, shorten

FORMAT = "lmc.schedule"
VERSION = 1
MAX_INSTANCES = 10_000_000
_MAX_LINE = 4096


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the order. ``shared_characters`` leading characters of prompt text are those of the entry before."""

    instance: int
    shared_characters: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of a batch; every instance stands in it once."""

    plan: str
    entries: tuple[Entry, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The instances in the order in which they start."""
        return tuple(entry.instance for entry in self.entries)


def schedule_batch(plan: Plan, inputs: Sequence[Mapping[str, Any]]) -> Schedule:
    """Put instances that share long prefixes side by side. ``inputs`` holds each instance's values by parameter name.

    The text known before the run (literals, inputs, and what is computed from those alone) is compared exactly, in the
    order in which the plan appends it to contexts; what comes after a model's answer plays no part. Of loops it is the
    first round, of maps the first element, of conditions both arms. Time is that of sorting the texts. An instance
    whose inputs don't fit comes first and fails when it runs.
    """
    reader = KnownText.of(plan)
    texts = [reader.read(values) for values in inputs]
    order = sorted(range(len(inputs)), key=lambda index: (texts[index], index))
    entries: list[Entry] = []
    for position, index in enumerate(order):
        shared = reader.shared(texts[order[position - 1]], texts[index]) if position else 0
        entries.append(Entry(index, shared))
    return Schedule(plan.name, tuple(entries))


def dump_schedule(schedule: Schedule) -> str:
    """JSON Lines: a header, then one entry to a line."""
    head = {"format": FORMAT, "version": VERSION, "plan": schedule.plan, "instances": len(schedule.entries)}
    rows = ([entry.instance, entry.shared_characters] for entry in schedule.entries)
    return "".join(json.dumps(line) + "\n" for line in (head, *rows))


def load_schedule(text: str) -> Schedule:
    """Read what ``dump_schedule`` wrote. Raises ``PlanError`` for anything else."""
    try:
        return _load(text)
    except PlanError as error:
        raise PlanError(error.cause, remedy="schedule the batch again") from error


def _load(text: str) -> Schedule:
    lines = text.splitlines()
    if not lines or max(map(len, lines)) > _MAX_LINE or len(lines) > MAX_INSTANCES + 1:
        raise PlanError("not a schedule")
    head = fields_of(parse_json(lines[0], "schedule"), ("format", "version", "plan", "instances"), "a schedule")
    name, version, plan, count = head
    if name != FORMAT or not isinstance(plan, str):
        raise PlanError("not a schedule")
    if version != VERSION:
        raise PlanError(f"schedule version {shorten(version)}, this lmc reads {VERSION}")
    entries = tuple(_load_entry(parse_json(line, "schedule")) for line in lines[1:])
    if type(count) is not int or sorted(entry.instance for entry in entries) != list(range(len(entries))):
        raise PlanError("a schedule names every instance once")
    if count != len(entries):
        raise PlanError(f"the schedule is cut off: {len(entries)} of {count} instances")
    return Schedule(plan, entries)


def _load_entry(data: Any) -> Entry:
    match data:
        case [int(instance), int(shared)] if type(instance) is type(shared) is int and shared >= 0:
            return Entry(instance, shared)
        case _:
            raise PlanError(f"not an entry of a schedule: {shorten(data)}")

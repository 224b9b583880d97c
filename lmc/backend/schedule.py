"""The order in which the instances of a batch run: depth-first over the tree of their prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.backend.plan import Plan, PlanError
from lmc.backend.untrusted_json import fields_of, parse_json, shorten
from lmc.ir import builtins, semantics
from lmc.ir.core import Op, Value
from lmc.ir.ops import BeginOp, ConcatOp, ContextOp, EndOp, ExtendOp, PrefillOp, PyCallOp

FORMAT = "lmc.schedule"
VERSION = 1
MAX_INSTANCES = 10_000_000
_MAX_LINE = 4096
_ONLY_CONTEXT = (ContextOp, BeginOp, EndOp, PrefillOp)


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
    order in which the plan appends it to contexts; what comes after a model's answer plays no part. Time is that of
    sorting the texts. An instance whose inputs don't fit comes first and fails when it runs.
    """
    reader = _KnownText.of(plan)
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


@dataclass(frozen=True, slots=True)
class _KnownText:
    """What a plan appends to contexts before any model answers: literals, and values with the ops that compute them."""

    parameters: tuple[tuple[str, Value], ...]
    pieces: tuple[str | Value, ...]
    computes: tuple[Op, ...]

    @classmethod
    def of(cls, plan: Plan) -> _KnownText:
        known = {parameter.value for parameter in plan.parameters}
        producers: dict[Value, Op] = {}
        pieces: list[str | Value] = []
        for op in (instruction.op for instruction in plan.instructions):
            if not all(value in known for value in op.operands):
                continue
            if isinstance(op, ExtendOp):
                pieces.extend(op.text)
            elif isinstance(op, PyCallOp | ConcatOp):
                producers.update((value, op) for value in op.results)
            elif not isinstance(op, _ONLY_CONTEXT):
                continue
            known.update(op.results)
        needed = _needed({piece for piece in pieces if isinstance(piece, Value)}, producers)
        computes = tuple(entry.op for entry in plan.instructions if entry.op in needed)
        return cls(tuple((entry.name, entry.value) for entry in plan.parameters), tuple(pieces), computes)

    def read(self, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """One instance's values among the pieces, in order; up to the first that is no text or can't be computed."""
        environment: dict[Value, Any] = {value: inputs[name] for name, value in self.parameters if name in inputs}
        for op in self.computes:
            try:
                environment[op.results[0]] = _compute(op, environment)
            except Exception:  # what the user's expression raises, the instance's run reports
                break
        texts: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, str):
                continue
            text = environment.get(piece)
            if not isinstance(text, str):
                break
            texts.append(text)
        return tuple(texts)

    def shared(self, left: Sequence[str], right: Sequence[str]) -> int:
        """Leading characters that two instances have in common."""
        values = iter(zip(left, right, strict=False))
        length = 0
        for piece in self.pieces:
            if isinstance(piece, str):
                length += len(piece)
                continue
            a, b = next(values, (None, None))
            if a is None or b is None:
                return length
            if a != b:
                return length + common_length(a, b)
            length += len(a)
        return length


def _needed(values: set[Value], producers: Mapping[Value, Op]) -> set[Op]:
    """The ops that ``values`` are computed from."""
    needed: set[Op] = set()
    waiting = list(values)
    while waiting:
        op = producers.get(waiting.pop())
        if op is not None and op not in needed:
            needed.add(op)
            waiting.extend(op.operands)
    return needed


def _compute(op: Op, environment: Mapping[Value, Any]) -> Any:
    if isinstance(op, ConcatOp):
        return semantics.join_text(op.text, environment)
    assert isinstance(op, PyCallOp)
    builtin = builtins.lookup(op.function)
    assert builtin is not None
    positional, keyword = semantics.call_arguments(op.arguments, op.keywords, environment)
    return builtin.run(*positional, **keyword)


def common_length(left: Sequence[Any], right: Sequence[Any]) -> int:
    """Length of the common prefix of two texts or tuples, by bisection over slices: linear, without a Python loop."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

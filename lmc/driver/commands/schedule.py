"""The schedule of a file's rows: made without a model by ``lmc schedule``, followed by a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lmc.backend.plan import Plan, PlanError
from lmc.backend.schedule.fingerprints import Origin, inputs_digest, plan_digest
from lmc.backend.schedule.schedule import Room, Schedule, schedule_batch
from lmc.backend.schedule.schedule_json import load_schedule_lines, schedule_lines
from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.driver.batch.chunks import entry_of
from lmc.driver.batch.lines import MAX_ROW_BYTES, Line, read_lines, shown_path
from lmc.driver.batch.rows import ArgumentReader, Row, Signature
from lmc.driver.batch.windows import Entry, Part
from lmc.driver.commands.cli_options import GivenOptions, options_for_saved, runner_for
from lmc.driver.programs import load_program
from lmc.driver.run.start import Arguments
from lmc.driver.saved.saved import is_saved, load_saved_plan
from lmc.driver.saved.saved_arguments import signature_of
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.service import service
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError, Location
from lmc.ir.wording import with_count

__all__ = ["HOLDS_ALL", "Room", "Schedule", "in_order", "read_schedule", "run", "schedule_lines"]

HOLDS_ALL = 2**62
"""Tokens of a KV pool that holds any batch."""


class PlanLookup(Protocol):
    """The plan that runs arguments, and its inputs."""

    def __call__(self, arguments: Arguments, /) -> tuple[Plan, Mapping[str, Any]]: ...


def run(name: str, data: str, given: GivenOptions, room: Room, fixed: list[str]) -> Schedule:
    """Schedule the rows of a file (``-``: standard input) of a program or a saved plan; ``fixed`` are KEY=VALUE.

    The tokens of a pool are those of the model that would run it. Raises ``UsageError`` where a file can't be read, and
    ``InputError`` for a row that can't be used, or that needs another plan than those before it.
    """
    signature, place, target = _saved(name, given) if is_saved(name) else _program(name, given)
    if not is_saved(name) or room.kv_tokens != HOLDS_ALL:  # else no model has to be there
        room = room.counted_by(service().engines.tokenizer(target))
    return schedule_rows(signature, place, data, room, fixed)


def schedule_rows(signature: Signature, place: PlanLookup, data: str, room: Room, fixed: list[str]) -> Schedule:
    """Schedule the rows of a file, which ``place`` finds the plan of; as ``run`` does."""
    reader = ArgumentReader(signature)
    rows = reader.rows(data, reader.assignments(fixed))
    placed = [(plan, values) for _, plan, values in _placed(rows, place, data)]
    plan, inputs = placed[0][0], [values for _, values in placed]
    return replace(schedule_batch(plan, inputs, room), origin=Origin(plan_digest(plan), inputs_digest(inputs)))


@dataclass(frozen=True, slots=True)
class PlanRows:
    """The rows of a file that one plan runs, by their numbers, with the inputs of the plan; how it is compiled."""

    plan: Plan
    arguments: Arguments
    inputs: dict[int, Mapping[str, Any]]

    def schedule(self, room: Room) -> Schedule:
        """Schedule these rows, as a run does beside those of other plans; entries have the numbers of the file."""
        numbers = list(self.inputs)
        found = schedule_batch(self.plan, list(self.inputs.values()), room)
        return replace(
            found, entries=tuple(replace(entry, instance=numbers[entry.instance]) for entry in found.entries)
        )


def rows_by_plan(signature: Signature, place: PlanLookup, data: str, fixed: list[str]) -> list[PlanRows]:
    """Return the rows of a file for each plan, in the order of the first ones. Raises the error of a row."""
    reader = ArgumentReader(signature)
    found: dict[Plan, PlanRows] = {}
    for number, row in enumerate(reader.rows(data, reader.assignments(fixed))):
        if row.error is not None:
            raise row.error
        arguments: Arguments = (), row.arguments
        plan, values = place(arguments)
        found.setdefault(plan, PlanRows(plan, arguments, {})).inputs[number] = values
    return list(found.values())


def read_schedule(path: str, lines: Iterable[Line] | None = None) -> Schedule:
    """The schedule in a file (``-``: standard input), or in the ``lines`` read from it.

    Raises ``UsageError``, and ``InputError`` with the line where it is none.
    """
    found = read_lines(path) if lines is None else lines
    try:
        return load_schedule_lines((line.location, _text(line)) for line in found)
    except PlanError as error:
        error.location = error.location or Location(shown_path(path), 1)
        raise


def in_order(path: str, file: Iterable[Row], place: PlanLookup, data: str) -> tuple[Part, Layout]:
    """The rows of the ``file`` ``data`` in the order of the schedule in the file ``path``, and its layout.

    All rows are read now, as the last may be the first to start. Raises as ``read_schedule`` does, and ``InputError``
    for a schedule of another plan or of other rows, and for a row that can't be used.
    """
    schedule = read_schedule(path)
    shown, count = shown_path(path), len(schedule.entries)
    rows: list[Entry] = []
    inputs: list[Mapping[str, Any]] = []
    for entry, plan, values in _placed(file, place, data):
        if not rows:
            _check_plan(schedule, plan, shown)
        if len(rows) == count:
            raise _other_rows(f"{shown} is a schedule of {with_count(count, 'row')}, and {shown_path(data)} has more")
        rows.append(entry)
        inputs.append(values)
    if len(rows) < count:
        raise _other_rows(
            f"{shown} is a schedule of {with_count(count, 'row')}, and {shown_path(data)} has {len(rows):,}"
        )
    if schedule.origin is None or schedule.origin.inputs != inputs_digest(inputs):
        raise _other_rows(f"{shown} was made for other rows than those of {shown_path(data)}")
    return [rows[index] for index in schedule.order], replace(schedule.layout, order=InstanceOrder.GIVEN)


def _check_plan(schedule: Schedule, plan: Plan, shown: str) -> None:
    """Raise ``InputError`` where a schedule is not for ``plan``."""
    if schedule.origin is None:
        remedy = "make a schedule with lmc schedule PROGRAM.py --input DATA.jsonl -o FILE"
        raise InputError(f"{shown} does not say which plan and which rows it is for", remedy=remedy)
    if schedule.plan != plan.name:
        raise InputError(
            f"{shown} is a schedule of the program {schedule.plan!r}, not of {plan.name!r}",
            remedy="name the program that was scheduled, or schedule the rows again",
        )
    if schedule.origin.plan != plan_digest(plan):
        remedy = "give --model, --profile-use and --order-sections as for lmc schedule, or schedule the rows again"
        raise InputError(f"{shown} was made for another plan of {plan.name!r}", remedy=remedy)


def _placed(rows: Iterable[Row], place: PlanLookup, data: str) -> Iterator[tuple[Entry, Plan, Mapping[str, Any]]]:
    """Each row with its plan, which is the same for all of them, and its inputs."""
    plan: Plan | None = None
    for number, row in enumerate(rows):
        if row.error is not None:
            raise row.error
        its_plan, values = place(((), row.arguments))
        if plan is not None and its_plan is not plan:
            raise InputError(
                f"row {number} of {shown_path(data)} needs another plan than those before it: "
                "its arguments are of another form",
                remedy="schedule rows of one form, each form in a file of its own",
            )
        plan = its_plan
        yield entry_of(number, row), plan, values


def _saved(name: str, given: GivenOptions) -> tuple[Signature, PlanLookup, Target]:
    options = options_for_saved(name, given)
    plan = load_saved_plan(name, options)
    return signature_of(plan), lambda arguments: (plan, arguments[1]), resolve_target(options)


def _program(name: str, given: GivenOptions) -> tuple[Signature, PlanLookup, Target]:
    function = load_program(name)
    runner = runner_for(function, given)
    return Signature.of(function), runner.place, runner.target()


def _other_rows(cause: str) -> InputError:
    return InputError(cause, remedy="name the rows that were scheduled, as they were, or schedule these")


def _text(line: Line) -> str:
    if line.size > MAX_ROW_BYTES:
        raise PlanError(f"a line of {line.size} bytes is too large", location=line.location)
    return line.data.decode("utf-8", "replace").rstrip("\r\n")

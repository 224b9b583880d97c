"""The order in which the rows of a file would run, without a model: what ``lmc schedule`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lmc.backend.plan import Plan
from lmc.backend.schedule import Room, Schedule, schedule_batch
from lmc.backend.schedule_json import schedule_lines
from lmc.driver.given import Given
from lmc.driver.programs import UsageError, load_program
from lmc.driver.rows import ArgumentReader, Signature
from lmc.driver.saved import is_saved, load_saved_plan
from lmc.driver.saved_arguments import signature_of
from lmc.ir.errors import InputError

__all__ = ["Room", "Schedule", "run", "schedule_lines"]

_Place = Callable[[Mapping[str, Any]], tuple[Plan, Mapping[str, Any]]]


def run(name: str, data: str, given: Given, room: Room | None, fixed: list[str]) -> Schedule:
    """Schedule the rows of a file (``-``: standard input) of a program or a saved plan; ``fixed`` are KEY=VALUE.

    Raises ``UsageError`` where a file can't be read, and ``InputError`` for a row that can't be used, or that needs
    another plan than those before it.
    """
    signature, place = _saved(name, given) if is_saved(name) else _program(name, given)
    reader = ArgumentReader(signature)
    plan: Plan | None = None
    inputs: list[Mapping[str, Any]] = []
    for number, row in enumerate(reader.rows(data, reader.assignments(fixed))):
        if row.error is not None:
            raise row.error
        its_plan, values = place(row.arguments)
        if plan is not None and its_plan is not plan:
            raise InputError(
                f"row {number} of {data} needs another plan than those before it: its arguments are of another form",
                remedy="schedule rows of one form, each form in a file of its own",
            )
        plan = its_plan
        inputs.append(values)
    if plan is None:
        raise UsageError(f"{data} holds no rows", remedy="write one object of arguments to a line")
    return schedule_batch(plan, inputs, room)


def _saved(name: str, given: Given) -> tuple[Signature, _Place]:
    plan = load_saved_plan(name, given.for_saved(name))

    def place(arguments: Mapping[str, Any]) -> tuple[Plan, Mapping[str, Any]]:
        return plan, arguments

    return signature_of(plan), place


def _program(name: str, given: Given) -> tuple[Signature, _Place]:
    function = load_program(name)
    runner = given.runner(function)

    def place(arguments: Mapping[str, Any]) -> tuple[Plan, Mapping[str, Any]]:
        compiled, inputs = runner.place(((), arguments))
        return compiled.plan, inputs

    return Signature.of(function), place

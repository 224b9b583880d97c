"""Simulation of the requests of a file without a model: the implementation of ``lmc simulate``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lmc.backend.schedule.schedule_json import is_schedule
from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.cache.simulation.report import Report
from lmc.cache.simulation.simulator import POLICIES, simulate
from lmc.cache.trace import TraceRequest, read_trace
from lmc.driver.batch.lines import Line, read_lines, shown_path
from lmc.driver.batch.rows import parse_row
from lmc.driver.commands.cli_options import GivenOptions
from lmc.driver.commands.schedule import read_schedule
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.targets.calibrations import cost_model_of
from lmc.driver.targets.defaults import resolve_target
from lmc.ir.errors import InputError, Location

__all__ = ["POLICIES", "Report", "read_requests", "report_data", "run"]


def run(
    path: str, *, policy: str, kv_tokens: int, batch: int, prefill_tokens: int, given: GivenOptions | None = None
) -> tuple[Report, str | None]:
    """Serve the requests of a file (``-``: standard input) from a pool of ``kv_tokens``, at most ``batch`` at once.

    Seconds are those of the target ``given``, where it is calibrated here; else the second result is a note that says
    so. Raises ``UsageError`` where there is no such policy or file, and ``InputError`` where the file holds no requests
    that can be served.
    """
    if policy not in POLICIES:
        raise UsageError(f"there is no policy {policy!r}", remedy=f"choose one of {', '.join(POLICIES)}")
    named = {name: value for name, value in (given or {}).items() if value is not None}
    cost, note = cost_model_of(resolve_target(Options(**named)) if named else None)
    requests, layout = read_requests(path)
    report = simulate(
        requests,
        policy=policy,
        kv_tokens=kv_tokens,
        batch=batch,
        prefill_tokens=prefill_tokens,
        layout=layout,
        cost=cost,
    )
    return report, note


def read_requests(path: str) -> tuple[list[TraceRequest], Layout | None]:
    """Read requests of a file, a schedule or a trace as its first line says; and its layout, if it has one."""
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise UsageError(f"{shown_path(path)} holds no requests", remedy="write one request as JSON to a line")
    lines = itertools.chain([first], lines)
    if is_schedule(first.data.decode("utf-8", "replace")):
        return _of_schedule(path, lines)
    return read_trace(_values(lines)), None


def report_data(report: Report, *, calibrated: bool) -> dict[str, Any]:
    """A report as JSON data; its seconds are ``calibrated`` or those of the reference."""
    return {
        "policy": report.policy,
        "kv_tokens": report.kv_tokens,
        "batch": report.batch,
        "requests": report.requests,
        "prompt_tokens": report.prompt_tokens,
        "hit_tokens": report.hit_tokens,
        "hit_rate": report.hit_rate,
        "evicted_tokens": report.evicted_tokens,
        "preemptions": report.preemptions,
        "steps": report.steps,
        "depth": report.depth,
        "predicted_seconds": report.predicted_seconds,
        "calibrated": calibrated,
        "generated_tokens": report.generated_tokens,
    }


def _of_schedule(path: str, lines: Iterable[Line]) -> tuple[list[TraceRequest], Layout]:
    """The requests of a schedule, each with the line of its instance."""
    places: list[Location] = []

    def noted() -> Iterator[Line]:
        for line in lines:
            places.append(line.location)
            yield line

    schedule = read_schedule(path, noted())
    try:
        requests = schedule.requests()
    except InputError as error:
        error.location = places[0]
        raise
    stands = dict(zip(schedule.order, places[1:], strict=True))
    located = [replace(request, location=stands[request.instance]) for request in requests]
    return located, replace(schedule.layout, order=InstanceOrder.GIVEN)


def _values(lines: Iterator[Line]) -> Iterator[tuple[Location, Any]]:
    for line in lines:
        try:
            value = parse_row(line)
        except InputError as error:
            error.location = line.location
            raise
        yield line.location, value

"""Schedules as JSON Lines: a header, then one entry to a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from lmc.backend.json.untrusted_json import fields_of, list_of_width, parse_json, shorten, text_of, truth_of
from lmc.backend.plan import PlanError
from lmc.backend.schedule.fingerprints import Origin
from lmc.backend.schedule.request_model import Answer, Known, Piece, RequestModel, Unknown
from lmc.backend.schedule.schedule import Entry, Schedule
from lmc.backend.schedule.trace_requests import Length
from lmc.cache.batch_order.ranks import InstanceOrder, Layout
from lmc.ir.errors import Location

FORMAT = "lmc.schedule"
VERSION = 5
MAX_INSTANCES = 10_000_000
MAX_LENGTH = 2**31
_MAX_LINE = 2**24
_MAX_HEAD = 2**26
_DIGEST = re.compile("[0-9a-f]{64}")
_FIELDS = ("format", "version", "plan", "instances", "origin", "order", "block", "characters", "stages")
_STAGE = ("id", "base", "answered", "pieces", "after", "output")


def dump_schedule(schedule: Schedule) -> str:
    """The lines of a schedule, each with its end."""
    return "".join(schedule_lines(schedule))


def schedule_lines(schedule: Schedule) -> Iterator[str]:
    """The lines of a schedule one by one."""
    yield _line(
        {
            "format": FORMAT,
            "version": VERSION,
            "plan": schedule.plan,
            "instances": len(schedule.entries),
            "origin": None if schedule.origin is None else asdict(schedule.origin),
            "order": schedule.layout.order,
            "block": schedule.layout.block,
            "characters": schedule.characters,
            "stages": [_dump_stage(stage) for stage in schedule.stages],
        }
    )
    for entry in schedule.entries:
        yield _line([entry.instance, entry.shared_characters, [list(length) for length in entry.values]])


def load_schedule(text: str) -> Schedule:
    """Read what ``dump_schedule`` wrote. Raises ``PlanError`` for anything else."""
    return load_schedule_lines((None, line) for line in text.removesuffix("\n").split("\n"))


def load_schedule_lines(lines: Iterable[tuple[Location | None, str]]) -> Schedule:
    """``load_schedule`` from lines with their places; an error has that of the first line that is wrong."""
    place: Location | None = None

    def texts() -> Iterator[str]:
        nonlocal place
        for location, text in lines:
            place = location
            yield text

    try:
        return _load(texts())
    except PlanError as error:
        location = error.location or place
        raise PlanError(error.cause, remedy="schedule the batch again", location=location) from error


def is_schedule(first_line: str) -> bool:
    """Return True if the first line of a file is the head of a schedule."""
    if f'"{FORMAT}"' not in first_line or len(first_line) > _MAX_HEAD:
        return False
    try:
        head = parse_json(first_line, "schedule")
    except PlanError:
        return first_line.startswith('{"format"')  # and cut off
    return isinstance(head, dict) and head.get("format") == FORMAT


def _line(data: Any) -> str:
    return json.dumps(data) + "\n"


def _dump_stage(stage: RequestModel) -> dict[str, Any]:
    pieces = [_dump_piece(piece) for piece in stage.pieces]
    values = (stage.id, stage.base, stage.answered, pieces, list(stage.after), stage.output)
    return dict(zip(_STAGE, values, strict=True))


def _dump_piece(piece: Piece) -> Any:
    match piece:
        case Known(number):
            return {"value": number}
        case Answer(stage):
            return {"answer": stage}
        case Unknown(tokens):
            return {"unknown": tokens}
        case str():
            return piece


def _load(lines: Iterator[str]) -> Schedule:
    first = next(lines, "")
    if not first or len(first) > _MAX_HEAD:
        raise PlanError("not a schedule")
    head = parse_json(first, "schedule")
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise PlanError("not a schedule")
    if head.get("version") != VERSION:
        raise PlanError(f"schedule version {shorten(head.get('version'))}, this lmc reads {VERSION}")
    _, _, plan, count, origin, order, block, characters, stages = fields_of(head, _FIELDS, "a schedule")
    if not isinstance(plan, str) or type(count) is not int or type(block) is not int or block < 1:
        raise PlanError("not a schedule")
    if type(characters) not in (int, float) or not 0.01 <= characters <= 10_000:
        raise PlanError(f"a token does not have {shorten(characters)} characters")
    if order not in tuple(InstanceOrder):
        raise PlanError(f"there is no order {shorten(order)}")
    loaded: list[RequestModel] = []
    for data in list_of_width(stages, "stages"):
        loaded.append(_load_stage(data, len(loaded)))
    entries: dict[int, Entry] = {}
    for line in lines:
        if len(line) > _MAX_LINE or len(entries) == MAX_INSTANCES:
            raise PlanError("not a schedule")
        entry = _load_entry(parse_json(line, "schedule"))
        if not 0 <= entry.instance < count:
            raise PlanError(f"there is no instance {shorten(entry.instance)} of {shorten(count)}")
        if entry.instance in entries:
            raise PlanError(f"a schedule names every instance once, and {entry.instance} twice")
        entries[entry.instance] = entry
    if count != len(entries):
        raise PlanError(f"the schedule is cut off: {len(entries)} of {shorten(count)} instances")
    layout = Layout(InstanceOrder(order), block)
    return Schedule(plan, tuple(entries.values()), tuple(loaded), layout, _load_origin(origin), characters)


def _load_origin(data: Any) -> Origin | None:
    if data is None:
        return None
    digests = [text_of(digest) for digest in fields_of(data, ("plan", "inputs"), "an origin")]
    if not all(map(_DIGEST.fullmatch, digests)):
        raise PlanError(f"not the digests of a plan and of inputs: {shorten(digests)}")
    return Origin(*digests)


def _load_stage(data: Any, number: int) -> RequestModel:
    """Stages refer to those before them, so no loop is possible."""
    name, base, answered, pieces, after, output = fields_of(data, _STAGE, "a stage")
    return RequestModel(
        text_of(name),
        None if base is None else _whole(base, number),
        truth_of(answered),
        tuple(_load_piece(piece, number) for piece in list_of_width(pieces, "pieces")),
        tuple(_whole(each, number) for each in list_of_width(after, "after")),
        _whole(output, MAX_LENGTH),
    )


def _load_piece(data: Any, number: int) -> Piece:
    match data:
        case str():
            return data
        case {"value": value, **rest} if not rest:
            return Known(_whole(value, MAX_LENGTH))
        case {"answer": stage, **rest} if not rest:
            return Answer(_whole(stage, number))
        case {"unknown": tokens, **rest} if not rest:
            return Unknown(_whole(tokens, MAX_LENGTH))
        case _:
            raise PlanError(f"not a piece of a prompt: {shorten(data)}")


def _load_entry(data: Any) -> Entry:
    match data:
        case [int(instance), int(shared), list(values)] if type(instance) is type(shared) is int and shared >= 0:
            return Entry(instance, shared, tuple(map(_load_length, values)))
        case _:
            raise PlanError(f"not an entry of a schedule: {shorten(data)}")


def _load_length(data: Any) -> Length:
    length, shared = list_of_width(data, "a value", 2)
    return _whole(length, MAX_LENGTH), _whole(shared, length + 1)


def _whole(data: Any, limit: int) -> int:
    """``data`` if it is a whole number from 0 to just below ``limit``."""
    if type(data) is not int or not 0 <= data < limit:
        raise PlanError(f"a number from 0 to {limit - 1} is needed, not {shorten(data)}")
    return data

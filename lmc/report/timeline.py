"""The format ``lmc-timeline``: what a run did and when, as Chrome trace events. ``lmc run --timeline`` writes it.

A file is a JSON array with one event a line; Chrome and Perfetto open it unchanged. A line ends with a comma, and the
array is closed when the run ends, so a file that is cut anywhere holds all events before the cut. Times are in
microseconds since the start of the recording. There are no texts of the run in it.

| event | ``ph``, ``name`` | ``args`` |
|---|---|---|
| the header, first | ``M``, ``lmc-timeline`` | the fields of ``Header``, ``format`` and ``version`` |
| a plan, before its requests | ``M``, ``plan`` | ``TimelinePlan`` |
| a request to the engine | ``X``, its op id; ``cat`` is its kind | ``MeasuredRequest`` |
| its phases, inside of it | ``X``, ``queue``, ``prefill``, ``decode``; ``cat`` is ``phase`` | |
| a call of a function of the program | ``X``, its name; ``cat`` is ``tool`` | ``ToolCall`` |
| a step of the local engine | ``X``, ``step`` | ``EngineStep``; beside it the counter ``sequences`` |
| the end of the run, last | ``M``, ``end`` | how many of each there are; ``interrupted`` |

Requests that overlap are on different lanes (``tid``), so events on one lane nest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmc.ir.errors import InputError
from lmc.ir.usage import Obstacle

FORMAT = "lmc-timeline"
VERSION = 1
REQUESTS, TOOLS, ENGINE = 1, 2, 3
"""Processes (``pid``) of the events."""
MAX_LINE = 2**20
MAX_EVENTS = 2**22

Natural = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Name = Annotated[str, Field(max_length=10_000)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Header(_Model):
    """The run: lmc's version, the program, the SHA-256 of its sources by module, its target and its file of rows.

    ``input`` is that file as the command line names it, without an absolute folder, and ``rows`` its SHA-256; None:
    there is none, or it was a pipe.
    """

    lmc: Name
    program: Name
    sources: dict[Name, Name]
    target: Name
    input: Name | None = None
    rows: Name | None = None


class TimelinePlan(_Model):
    """A plan that instances ran: its number in the file, its name, and the digest that schedules name it by."""

    plan: Natural
    name: Name
    digest: Name


class _PlanPlace(_Model):
    """A place in a plan: the op numbered ``at``, outer before inner, and its ``wave``; all None after a graph break."""

    plan: Natural | None = None
    at: Natural | None = None
    wave: Natural | None = None


class MeasuredRequest(_PlanPlace):
    """A request. ``row`` is its instance; None: all rows share it. ``sample`` tells the requests of one op apart.

    It could run at ``ready``, was ``submitted`` to the engine, ``admitted`` there, had its ``first`` token, and
    ``ended``; the two in the middle are None where they did not happen or the engine does not measure. Of the
    ``prompt`` tokens ``cached`` were found; ``computed`` counts those that were computed, also again after a
    preemption. ``finish`` is the reason of a generation, ``error`` the class of a failure. ``wait`` is the reason for
    which it waited longest: ``limit`` is the bound of requests in flight. ``unfinished``: the run ended before it.
    """

    op: Name
    kind: Literal["generate", "score", "prefill"]
    lane: Natural
    row: Natural | None
    sample: Natural
    ready: Natural
    submitted: Natural
    admitted: Natural | None = None
    first: Natural | None = None
    ended: Natural
    prompt: Natural | None = None
    cached: Natural | None = None
    computed: Natural | None = None
    generated: Natural = 0
    finish: Literal["stop", "length", "eos"] | None = None
    error: Name | None = None
    wait: Obstacle | Literal["limit"] | None = None
    unfinished: bool = False


class ToolCall(_PlanPlace):
    """A call of a function. ``op`` is its id, ``line`` its line in the program; ``early``: it was speculative."""

    name: Name
    lane: Natural
    row: Natural | None
    started: Natural
    ended: Natural
    op: Name | None = None
    line: Natural | None = None
    early: bool = False
    error: Name | None = None
    unfinished: bool = False


class EngineStep(_Model):
    """A step: ``rows`` computed, ``prefill`` of them for prompts; the sequences that run and wait after it.

    Since the step before, requests that were admitted ``found`` tokens of their prompts in the cache, tokens were
    ``evicted`` and sequences ``preempted``.
    """

    started: Natural
    ended: Natural
    rows: Natural
    prefill: Natural
    running: Natural
    waiting: Natural
    found: Natural
    evicted: Natural
    preempted: Natural


class RunTimeline(_Model):
    """A timeline. ``is_complete``: it has its last event, and the run was not interrupted."""

    header: Header
    plans: tuple[TimelinePlan, ...] = ()
    requests: tuple[MeasuredRequest, ...] = ()
    tools: tuple[ToolCall, ...] = ()
    steps: tuple[EngineStep, ...] = ()
    is_complete: bool = False


class NoHeaderError(InputError):
    """A timeline that ends before its header: a run is about to write it, or it is none."""


class _Event(_Model):
    ph: Name
    pid: Natural = 0
    tid: Natural = 0
    ts: Natural = 0
    dur: Natural = 0
    name: Name
    cat: Name = ""
    args: dict[str, Any] = {}


def read_timeline(lines: Iterable[bytes], shown: str) -> RunTimeline:
    """Read the lines of a file, which may be cut anywhere after its header; ``shown`` is its name in messages.

    Events that this version does not know are left out. Raises ``InputError`` where the file is no timeline, or one of
    another version, ``NoHeaderError`` where it ends before its header.
    """
    header: Header | None = None
    found: dict[type[BaseModel], list[Any]] = {TimelinePlan: [], MeasuredRequest: [], ToolCall: [], EngineStep: []}
    is_complete = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if number == 1 and text == b"[":
            continue
        if text == b"]" or not text:
            continue
        if number == 1 or number > MAX_EVENTS or len(line) > MAX_LINE:
            raise _invalid(shown, number)
        try:
            event = _Event.model_validate(json.loads(text.removesuffix(b",")))
            if header is None:
                header = _header(event, shown, number)
            elif event.ph == "M" and event.name == "end":
                is_complete = event.args.get("interrupted") is not True
            elif (entry := _entry(event)) is not None:
                found[type(entry)].append(entry)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n") and not isinstance(error, ValidationError):
                break  # it is cut here
            raise _invalid(shown, number) from None
    if header is None:
        raise NoHeaderError(f"{shown} has no header of a timeline", remedy=_REMEDY)
    return RunTimeline(
        header=header,
        plans=tuple(found[TimelinePlan]),
        requests=tuple(found[MeasuredRequest]),
        tools=tuple(found[ToolCall]),
        steps=tuple(found[EngineStep]),
        is_complete=is_complete,
    )


_REMEDY = "name a file that a run has written: lmc run PROGRAM.py --input DATA.jsonl --timeline FILE"


def _invalid(shown: str, number: int) -> InputError:
    return InputError(f"{shown} is no timeline: line {number} is no event of one", remedy=_REMEDY)


def _header(event: _Event, shown: str, number: int) -> Header:
    if event.name != FORMAT or event.args.get("format") != FORMAT:
        raise _invalid(shown, number)
    version = event.args.get("version")
    if version != VERSION:
        raise InputError(
            f"{shown} is a timeline of version {version!r:.40}, and this lmc reads version {VERSION}",
            remedy="use the lmc that wrote it, or record the run again",
        )
    return Header.model_validate(event.args)


def _entry(event: _Event) -> TimelinePlan | MeasuredRequest | ToolCall | EngineStep | None:
    """Return the contents of an event; None where it has none of its own."""
    args: Mapping[str, Any] = event.args
    if event.ph == "M":
        return TimelinePlan.model_validate(args) if event.name == "plan" else None
    if event.ph != "X":
        return None
    end = event.ts + event.dur
    if event.pid == REQUESTS and event.cat != "phase":
        own = {"op": event.name, "kind": event.cat, "lane": event.tid, "submitted": event.ts, "ended": end}
        return MeasuredRequest.model_validate({**args, **own})
    if event.pid == TOOLS:
        own = {"name": event.name, "lane": event.tid, "started": event.ts, "ended": end}
        return ToolCall.model_validate({**args, **own})
    if event.pid == ENGINE:
        return EngineStep.model_validate({**args, "started": event.ts, "ended": end})
    return None

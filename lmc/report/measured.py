"""A measured run beside the program: the requests, tools and steps of a timeline, by the keys of ops."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.core import Op
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.profile import OpProfile, length_bins
from lmc.ir.usage import Usage
from lmc.ir.wording import with_count
from lmc.report.model import MeasuredRun, RunRequest, RunSteps, RunTool
from lmc.report.text import one_line
from lmc.report.timeline import MeasuredRequest, RunTimeline, ToolCall

MAX_NAME = 200


def op_profiles(timeline: RunTimeline, digest: str, ops: Sequence[Op]) -> dict[str, OpProfile]:
    """Return the cost of each call of the plan with a ``digest`` by its id; ``ops`` are those of the plan.

    The figures are those of the profiles of the rows, but for the seconds: each request counts with its own.
    """
    found: dict[str, OpProfile] = {}
    plan = _plan_number(timeline, digest)
    for request in timeline.requests:
        place = _place(request, plan, len(ops))
        op = None if place is None else ops[place]
        if not isinstance(op, SamplingOp | SelectOp) or request.prompt is None:
            continue
        entry = _profile(request)
        found[op.id] = found[op.id] + entry if op.id in found else entry
    return found


def measured_run(timeline: RunTimeline, digest: str, keys: Sequence[str], most: int, notices: list[str]) -> MeasuredRun:
    """Return the run as data; ``keys`` are those of the ops of the plan with a ``digest``. At most ``most`` are listed.

    Times are seconds since the first request was ready or the first tool began.
    """
    plan = _plan_number(timeline, digest)
    begin = min([*(each.ready for each in timeline.requests), *(each.started for each in timeline.tools)], default=0)

    def key_of(entry: MeasuredRequest | ToolCall) -> str | None:
        place = _place(entry, plan, len(keys))
        return None if place is None else keys[place]

    requests = sorted(timeline.requests, key=lambda each: (each.submitted, each.lane))
    tools = sorted(timeline.tools, key=lambda each: (each.started, each.lane))
    if not timeline.is_complete:
        notices.append("the timeline was cut, or its run has not ended")
    others = sum(each.plan not in (None, plan) for each in requests)
    if others:
        notices.append(f"{with_count(others, 'request')} of the run had other plans than the one that is shown")
    for entries, what in ((requests, "measured request"), (tools, "call of a tool")):
        if len(entries) > most:
            notices.append(f"the first {most:,} of {len(entries):,} entries ({what}) are listed; sums are of all")
    steps = timeline.steps
    return MeasuredRun(
        request_count=len(requests),
        prompt=sum(each.prompt or 0 for each in requests if each.kind != "prefill"),
        cached=sum(each.cached or 0 for each in requests if each.kind != "prefill"),
        output=sum(each.generated for each in requests),
        computed=None if not steps else sum(each.computed or 0 for each in requests),
        seconds=_seconds(max([each.ended for each in [*requests, *tools]], default=begin), begin),
        complete=timeline.is_complete,
        requests=tuple(_request(each, key_of(each), begin) for each in requests[:most]),
        tool_count=len(tools),
        tools=tuple(_tool(each, key_of(each), begin) for each in tools[:most]),
        steps=None
        if not steps
        else RunSteps(
            steps=len(steps),
            rows=sum(each.rows for each in steps),
            prefill=sum(each.prefill for each in steps),
            found=sum(each.found for each in steps),
            evicted=sum(each.evicted for each in steps),
            preempted=sum(each.preempted for each in steps),
            most_running=max(each.running for each in steps),
            most_waiting=max(each.waiting for each in steps),
            seconds=round(sum(each.ended - each.started for each in steps) / 1e6, 6),
        ),
    )


def _plan_number(timeline: RunTimeline, digest: str) -> int | None:
    return next((each.plan for each in timeline.plans if each.digest == digest), None)


def _place(entry: MeasuredRequest | ToolCall, plan: int | None, count: int) -> int | None:
    """Return the number of the op of an entry in a plan of ``count`` ops; None where it is of no such op."""
    if plan is None or entry.plan != plan or entry.at is None or entry.at >= count:
        return None
    return entry.at


def _profile(request: MeasuredRequest) -> OpProfile:
    usage = Usage(request.prompt or 0, request.cached or 0, request.generated, 1)
    seconds = _seconds(request.ended, request.ready)
    reason = request.finish or ("failed" if request.generated else None)
    if reason is None or request.kind == "score":
        return OpProfile(usage, seconds)
    length = request.generated
    return OpProfile(usage, seconds, length, ((reason, 1),), length_bins([length]))


def _seconds(moment: int, begin: int) -> float:
    return round((moment - begin) / 1e6, 6)


def _request(request: MeasuredRequest, key: str | None, begin: int) -> RunRequest:
    return RunRequest(
        key=key,
        id=one_line(request.op, MAX_NAME),
        kind=request.kind,
        row=request.row,
        sample=request.sample,
        wave=request.wave if key is not None else None,
        ready=_seconds(request.ready, begin),
        submitted=_seconds(request.submitted, begin),
        admitted=None if request.admitted is None else _seconds(request.admitted, begin),
        first_token=None if request.first is None else _seconds(request.first, begin),
        ended=_seconds(request.ended, begin),
        prompt=request.prompt or 0,
        cached=request.cached or 0,
        computed=request.computed,
        output=request.generated,
        wait=request.wait,
        finish=request.finish,
        error=None if request.error is None else one_line(request.error, MAX_NAME),
        unfinished=request.unfinished,
    )


def _tool(call: ToolCall, key: str | None, begin: int) -> RunTool:
    return RunTool(
        key=key,
        name=one_line(call.name, MAX_NAME),
        row=call.row,
        started=_seconds(call.started, begin),
        ended=_seconds(call.ended, begin),
        early=call.early,
        error=None if call.error is None else one_line(call.error, MAX_NAME),
        unfinished=call.unfinished,
    )

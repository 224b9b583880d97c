"""A measured run beside the program: the requests, tools and steps of a timeline, by the keys of ops."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low

from lmc.ir.core import Op
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.profile import OpProfile, length_bins
from lmc.ir.usage import Usage
from lmc.ir.wording import with_count
from lmc.report.analysis.costs import Call, number_of
from lmc.report.analysis.prompts import PromptUse
from lmc.report.given import Batch
from lmc.report.model import Divergence, MeasuredRun, Prefix, RunRequest, RunSteps, RunTool
from lmc.report.text import one_line
from lmc.report.timeline import EngineStep, MeasuredRequest, RunTimeline, ToolCall

MAX_NAME = 200
_SLACK = 16
"""Tokens by which lengths of prompts may differ from those of a plan, which estimates texts."""


def op_profiles(timeline: RunTimeline, digest: str, ops: Sequence[Op]) -> tuple[dict[Op, OpProfile], dict[Op, float]]:
    """Return the cost of each call of the plan with a ``digest``, and the median of the seconds of its requests.

    ``ops`` are those of the plan. The figures are those of the profiles of the rows, but for the seconds: each request
    counts with its own.
    """
    plan = _plan_number(timeline, digest)
    places = ((request, _place(request, plan, len(ops))) for request in timeline.requests)
    placed = ((ops[place], request) for request, place in places if place is not None)
    return profiles_of((op, request) for op, request in placed if isinstance(op, SamplingOp | SelectOp))


def profiles_of(entries: Iterable[tuple[Call, MeasuredRequest]]) -> tuple[dict[Call, OpProfile], dict[Call, float]]:
    """Return the cost of each call, and the median of the seconds of its requests; ``entries`` has the call of each."""
    found: dict[Call, OpProfile] = {}
    seconds: dict[Call, list[float]] = {}
    for call, request in entries:
        if request.prompt is None:
            continue
        entry = _profile(request)
        found[call] = found[call] + entry if call in found else entry
        seconds.setdefault(call, []).append(entry.seconds)
    return found, {call: median_low(each) for call, each in seconds.items()}


def measured_run(
    timeline: RunTimeline,
    digest: str,
    own: Sequence[str],
    *,
    batch: Batch | None,
    keys: Mapping[Op, str],
    prefixes: Sequence[Prefix],
    notices: list[str],
    most: int,
) -> tuple[MeasuredRun, dict[int, list[PromptUse]]]:
    """Return the run as data, and the prompts of its requests by the places of the requests in ``batch``.

    ``own`` are the keys of the ops of the plan with a ``digest``, ``keys`` those of ops. At most ``most`` requests and
    tools are listed. Times are seconds since the first request was ready or the first tool began.
    """
    plan = _plan_number(timeline, digest)
    begin = min([*(each.ready for each in timeline.requests), *(each.started for each in timeline.tools)], default=0)

    def key_of(entry: MeasuredRequest | ToolCall) -> str | None:
        place = _place(entry, plan, len(own))
        return None if place is None else own[place]

    requests = sorted(timeline.requests, key=lambda each: (each.submitted, each.lane))
    tools = sorted(timeline.tools, key=lambda each: (each.started, each.lane))
    if not timeline.is_complete:
        notices.append("the run was interrupted or has not ended, or its timeline was cut")
    others = sum(each.plan not in (None, plan) for each in requests)
    if others:
        had = with_count(others, "request of the run had another plan", "requests of the run had other plans")
        notices.append(f"{had} than the one that is shown")
    for entries, what in ((requests, "measured request"), (tools, "call of a tool")):
        if len(entries) > most:
            notices.append(f"the first {most:,} of {len(entries):,} entries ({what}) are listed; sums are of all")
    steps = timeline.steps
    computed, divergence = sum(each.computed or 0 for each in requests), None
    elsewhere = elsewhere_cached = 0
    uses: dict[int, list[PromptUse]] = {}
    if batch is not None:
        loss = min((each.started for each in steps if each.evicted or each.preempted), default=None)
        places = _planned_places(batch, keys, [(each, key_of(each)) for each in requests], prefixes)
        for request, (place, is_later) in zip(requests, places, strict=True):
            if request.computed is None:
                continue  # its engine does not measure
            if place is None:
                elsewhere += request.computed
                elsewhere_cached += request.cached or 0
            else:
                uses.setdefault(place, []).append(_use(request, loss, is_later=is_later))
        planned = [None if is_later else place for place, is_later in places]
        divergence = _divergence(batch, requests, planned, begin)
    prefills = [each for each in requests if each.kind == "prefill"]
    ahead = _prompt(prefills)
    asked = _prompt([each for each in requests if each.kind != "prefill"])
    measured = _prompt([each for each in requests if each.computed is not None])
    run = MeasuredRun(
        request_count=len(requests) - len(prefills),
        prompt=asked.prompt_tokens,
        cached=asked.cached_tokens,
        output=sum(each.generated for each in requests),
        prefill_count=len(prefills),
        prefill_prompt=ahead.prompt_tokens,
        prefill_cached=ahead.cached_tokens,
        computed=None if not steps else computed,
        beyond=0 if not steps else computed - measured.prompt_tokens + measured.cached_tokens,
        elsewhere=elsewhere,
        elsewhere_cached=elsewhere_cached,
        divergence=divergence,
        seconds=_seconds(max([each.ended for each in [*requests, *tools]], default=begin), begin),
        complete=timeline.is_complete,
        requests=tuple(_request(each, key_of(each), begin) for each in requests[:most]),
        tool_count=len(tools),
        tools=tuple(_tool(each, key_of(each), begin) for each in tools[:most]),
        steps=_steps(steps) if steps else None,
    )
    return run, uses


def _steps(steps: Sequence[EngineStep]) -> RunSteps:
    return RunSteps(
        steps=len(steps),
        rows=sum(each.rows for each in steps),
        prefill=sum(each.prefill for each in steps),
        found=sum(each.found for each in steps),
        evicted=sum(each.evicted for each in steps),
        preempted=sum(each.preempted for each in steps),
        most_running=max(each.running for each in steps),
        most_waiting=max(each.waiting for each in steps),
        seconds=round(sum(each.ended - each.started for each in steps) / 1e6, 6),
    )


def _prompt(requests: Sequence[MeasuredRequest]) -> Usage:
    """Return the tokens of prompts and those found of them, as profiles count: without cancelled requests."""
    own = [each for each in requests if each.prompt is not None]
    return Usage(sum(each.prompt or 0 for each in own), sum(each.cached or 0 for each in own))


def _use(request: MeasuredRequest, loss: int | None, *, is_later: bool) -> PromptUse:
    """Return the prompt of a measured request. ``loss``: the engine evicted or preempted at that time first.

    One that failed has computed a part of its prompt.
    """
    cached, computed = request.cached or 0, request.computed or 0
    new = computed if request.prompt is None else max(request.prompt - cached, 0)
    return PromptUse(
        cached + new,
        cached,
        computed,
        admitted=_start(request),
        first=request.ended if request.first is None else request.first,
        ended=request.ended,
        differs=is_later or request.error is not None or request.unfinished,
        is_prefix=request.kind == "prefill",
        is_lossy=loss is not None and loss <= request.ended,
        again=max(computed - new, 0) if request.kind == "generate" else 0,
    )


def _planned_places(
    batch: Batch,
    keys: Mapping[Op, str],
    requests: Sequence[tuple[MeasuredRequest, str | None]],
    prefixes: Sequence[Prefix],
) -> list[tuple[int | None, bool]]:
    """Return for requests of a run, each with the key of its op, their places in the batch; None: it has none.

    The requests of one op and row have the planned ones in order. The plan of a loop has one round: those of later ones
    have the same places again, and True. A prefix has the place of the first prompt that begins with it.
    """
    places: dict[tuple[str, int | None], list[int]] = {}
    for place, request in enumerate(batch.requests):
        key = keys[batch.ops[number_of(request.id)]]
        places.setdefault((key, request.instance), []).append(place)
        places.setdefault((key, None), []).append(place)
    users = {each.key: [*each.calls] for each in prefixes}
    for each in reversed(prefixes):  # an outer one stands before those that go on from it
        if each.outer in users:
            users[each.outer] += users[each.key]
    found: list[tuple[int | None, bool]] = []
    counts: Counter[tuple[str, int | None]] = Counter()
    for request, key in requests:
        if key is None:
            found.append((None, False))
        elif request.kind == "prefill":
            firsts = (places.get((user, request.row)) for user in users.get(key, ()))
            found.append((min((each[0] for each in firsts if each), default=None), False))
        else:
            planned = places.get((key, request.row), ())
            count = counts[key, request.row]
            found.append((planned[count % len(planned)] if planned else None, count >= len(planned)))
            counts[key, request.row] += 1
    return found


def _divergence(
    batch: Batch, requests: Sequence[MeasuredRequest], places: Sequence[int | None], begin: int
) -> Divergence | None:
    """Return the first request that the plan does not have, or serves later, or computes much less of.

    Those of rows that other plans run are not compared.
    """
    rows = {None, *(row for row, _ in batch.rows)}
    served = batch.report.served
    waiting = [(each.ended, place) for place, each in enumerate(served)]
    heapq.heapify(waiting)
    begun: set[int] = set()
    is_measured = any(each.computed is not None for each in requests)
    pairs = zip(requests, places, strict=True)
    entries = [pair for pair in pairs if pair[0].kind != "prefill" and pair[0].row in rows]
    for request, place in sorted(entries, key=lambda pair: _start(pair[0])):
        reason = None
        while waiting and waiting[0][1] in begun:
            heapq.heappop(waiting)
        if place is None:
            reason = "the plan has no such request"
        elif waiting and place not in begun and waiting[0][0] <= served[place].started:
            reason = "the plan serves others before it that have not begun"
        elif is_measured and request.prompt is not None:
            new = batch.requests[place].tokens.size - served[place].cached
            more = request.prompt - (request.cached or 0) - new
            if more > max(_SLACK, new // 4):
                reason = f"it computes {more:,} tokens of its prompt more than planned"
        if reason is not None:
            name = one_line(request.op, MAX_NAME)
            return Divergence(seconds=_seconds(_start(request), begin), id=name, row=request.row, reason=reason)
        if place is not None:
            begun.add(place)
    return None


def _start(request: MeasuredRequest) -> int:
    return request.submitted if request.admitted is None else request.admitted


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

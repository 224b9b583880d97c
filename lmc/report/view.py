"""A compiled program as a view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lmc.ir.analysis.dependences import called_hosts
from lmc.ir.core import Op, walk
from lmc.ir.dialects.core_ops import PrefillOp
from lmc.ir.ids import base_of
from lmc.ir.module import Module
from lmc.ir.wording import with_count
from lmc.report.analysis.costs import (
    Costs,
    costs_of,
    is_call,
    measured_cost,
    number_of,
    planned_of,
    prefixes_of,
    tokens,
    total_measured,
    total_planned,
    total_tokens,
)
from lmc.report.analysis.measured import measured_run, op_profiles, profiles_of
from lmc.report.analysis.nodes import MAX_LABEL, Placed, SourceFiles
from lmc.report.analysis.prompts import PromptTree, prompt_tree
from lmc.report.analysis.runs import MAX_NODES, Runs, runs_of
from lmc.report.analysis.stages import Stages, stages_of
from lmc.report.given import Batch, Given, ScheduledCall, Span
from lmc.report.model import (
    FORMAT,
    VERSION,
    BatchPlan,
    BreakView,
    CallCost,
    CompiledView,
    ConstraintInfo,
    Hint,
    Input,
    MeasuredRun,
    OldModule,
    OpNode,
    PlannedCost,
    PlannedRequest,
    PlannedRow,
    Prefix,
    ProgramView,
    RemarkView,
    SourceFile,
    StageView,
    TokenCount,
)
from lmc.report.redact import Redaction, redacted_source
from lmc.report.text import KEPT, one_line, shortened, visible
from lmc.report.timeline import MeasuredRequest, RunTimeline, TimelinePlan, ToolCall

MAX_LINES = 20_000
MAX_LINE = 2_000
MAX_DEFINITION = 20_000
MAX_REQUESTS = 5_000
Message = Callable[[str], str]
Entry = TypeVar("Entry", MeasuredRequest, ToolCall)


def view_of(given: Given) -> CompiledView:
    """Return what the driver gives as data. Equal inputs give equal views."""
    notices: list[str] = []
    redaction = _redaction(given)
    sources = SourceFiles()
    largest = max(_op_count(step.module) for step in given.steps)
    steps = given.steps if largest <= MAX_NODES else given.steps[-1:]
    stages = stages_of(steps, sources, given.files, redaction)
    if given.timeline is not None:
        measured, medians = op_profiles(*given.timeline, [each.op for each in stages.ops])
        given = replace(given, measured=measured, medians=medians)
    costs = costs_of(given, stages.ops, sources)
    if redaction is not None:
        costs = replace(costs, calls=[_without_names(call, redaction) for call in costs.calls])
    calls, prefixes = costs.calls, prefixes_of(stages.ops, given.lengths)
    path, shown = costs.path, stages.stages
    keys = {each.op: each.key for each in stages.ops}
    if largest > MAX_NODES:
        runs = runs_of(stages.nodes, MAX_NODES)
        notices.append(
            f"a module of {with_count(largest, 'op')} is folded: a node stands for up to "
            f"{with_count(runs.longest, 'op')} in a row; the text of modules and the modules before the last pass "
            "are left out"
        )
        shown, calls, prefixes = [runs.stage(shown[-1])], _in_runs(calls, runs), _prefixes_in_runs(prefixes, runs)
        path = tuple(dict.fromkeys(runs.key_of[key] for key in path))
        keys = {op: runs.key_of[key] for op, key in keys.items()}
    old = None
    if given.old is not None and len(shown) > 1:
        of_old = costs_of(given.old, stages.first, sources)
        old_calls = of_old.calls if redaction is None else [_without_names(call, redaction) for call in of_old.calls]
        old = OldModule(program=_program(given.old, of_old, stages.first, redaction), calls=tuple(old_calls))
    batch, plan, run, uses = given.batch, None, None, {}
    if given.timeline is not None:
        own = [keys[each.op] for each in stages.ops]
        run, uses = measured_run(
            *given.timeline, own, batch=batch, keys=keys, prefixes=prefixes, notices=notices, most=MAX_REQUESTS
        )
        run = run if redaction is None else _run_without_names(run, redaction)
    if batch is not None:
        batch = batch if redaction is None else _batch_without_names(batch, redaction)
        ops = [keys[op] for op in batch.ops]
        prompts = prompt_tree(batch, ops, uses, redact=given.redact)
        plan = _plan(batch, ops, prompts, notices)
        if run is not None:
            run = run.model_copy(update={"elsewhere_cached": run.elsewhere_cached + prompts.unplaced})
    said = visible if redaction is None else partial(_said, redaction)
    remarks = _remarks(given, len(shown), sources, said, visible if redaction is None else redaction.id)
    breaks = _breaks(given, stages, keys, sources, said)
    hints = [Hint(message=said(text), place=sources.place(place)) for text, place in given.hints]
    return CompiledView(
        format=FORMAT,
        version=VERSION,
        program=_program(given, costs, stages.ops, redaction),
        sources=tuple(_sources(given, sources, _places(stages.nodes), notices)),
        stages=tuple(shown),
        remarks=tuple(remarks),
        breaks=tuple(breaks),
        hints=tuple(hints),
        calls=tuple(calls),
        lines=tuple(costs.lines),
        critical_path=path,
        prefixes=tuple(prefixes),
        constraints=tuple(_constraints(given, redaction)),
        plan=plan,
        timeline=run,
        comparison=given.old is not None and len(shown) > 1,
        old=old,
        redacted=given.redact,
        notices=tuple(notices),
    )


def view_of_schedule(name: str, calls: Sequence[ScheduledCall], batch: Batch, *, redact: bool) -> CompiledView:
    """Return the view of a schedule alone: the requests of a row are the ops of its only stage."""
    notices = ["a schedule holds the requests of its rows alone; the program has the ops, lines and costs"]
    if redact:
        redaction = Redaction(name, ())
        calls = [replace(call, id=redaction.id(call.id), text="") for call in calls]
        batch = _batch_without_names(batch, redaction)
    waves: list[int] = []
    for call in calls:
        waves.append(max((waves[number] + 1 for number, _ in call.inputs), default=0))
    nodes = [
        OpNode(
            key=f"n{number}",
            op="request",
            kind="call",
            label=one_line(call.id, MAX_LABEL),
            text=shortened(call.text, MAX_LINE),
            id=visible(call.id),
            inputs=tuple(Input(key=f"n{before}", kind=kind) for before, kind in call.inputs),
        )
        for number, call in enumerate(calls)
    ]
    keys = [node.key for node in nodes]
    path = [waves.index(max(waves))] if waves else []
    while path and waves[path[-1]]:
        path.append(next(number for number, _ in calls[path[-1]].inputs if waves[number] == waves[path[-1]] - 1))
    critical = tuple(keys[number] for number in reversed(path))
    planned = planned_of(batch, keys)
    costs = [
        CallCost(
            key=key,
            id=visible(call.id),
            wave=wave,
            prompt=tokens(call.prompt),
            critical=key in critical,
            planned=planned.get(key, PlannedCost()),
        )
        for key, call, wave in zip(keys, calls, waves, strict=True)
    ]
    stage = StageView(name="schedule", ops=len(nodes), calls=len(nodes), added=tuple(nodes))
    if len(nodes) > MAX_NODES:
        runs = runs_of(nodes, MAX_NODES)
        notices.append(
            f"{with_count(len(nodes), 'request')} are folded: a node stands for up to {runs.longest:,} of them"
        )
        stage, costs, keys = runs.stage(stage), _in_runs(costs, runs), [runs.key_of[key] for key in keys]
        critical = tuple(dict.fromkeys(runs.key_of[key] for key in critical))
    return CompiledView(
        format=FORMAT,
        version=VERSION,
        program=ProgramView(
            name=visible(name),
            parameters={},
            ops=len(nodes),
            model_calls=len(nodes),
            waves=max(waves, default=-1) + 1,
            critical_calls=len(path),
        ),
        sources=(),
        stages=(stage,),
        calls=tuple(costs),
        critical_path=critical,
        plan=_plan(batch, keys, prompt_tree(batch, keys, redact=redact), notices),
        redacted=redact,
        notices=tuple(notices),
    )


def view_of_timeline(timeline: RunTimeline, notices: Iterable[str] = (), *, redact: bool = False) -> CompiledView:
    """Return the view of a run alone: the ops of its requests and its functions are those of its only stage.

    Rounds of a loop are one op, and so are the elements of a map: where their ids differ, the op has ``*``.
    """
    said = list(notices)
    if redact:
        redaction = Redaction(timeline.header.program, ())
        requests = tuple(each.model_copy(update={"op": redaction.id(each.op)}) for each in timeline.requests)
        timeline = timeline.model_copy(update={"requests": requests})
    entries = sorted([*timeline.requests, *timeline.tools], key=_begin)
    firsts: dict[tuple[str, int | None, int | None], str] = {}
    for each in entries:
        if each.at is not None:
            firsts.setdefault((_kind(each), each.plan, each.at), _name(each))

    def op_of(entry: MeasuredRequest | ToolCall) -> tuple[str, str]:
        kind, name = _kind(entry), _name(entry)
        return kind, firsts.get((kind, entry.plan, entry.at), name)

    places = {op: number for number, op in enumerate(dict.fromkeys(map(op_of, entries)))}
    waves = {op_of(each): each.wave for each in entries if each.wave is not None}
    ids: dict[tuple[str, str], dict[str, None]] = {}
    for each in entries:
        ids.setdefault(op_of(each), {})[_name(each)] = None
    shown = {op: _common_id(list(each)) for op, each in ids.items()}
    nodes = [
        OpNode(
            key=f"n{number}",
            op=kind,
            kind="tool" if kind == "tool" else "prefix" if kind == "prefill" else "call",
            label=one_line(shown[op], MAX_LABEL),
            id=visible(shown[op]),
            wave=waves.get(op),
        )
        for op, number in places.items()
        for kind in op[:1]
    ]
    keys = [node.key for node in nodes]
    calls = ((places[op_of(each)], each) for each in timeline.requests)
    profiles, medians = profiles_of((number, each) for number, each in calls if each.kind != "prefill")
    costs = [
        CallCost(
            key=node.key,
            id=node.id or node.label,
            wave=node.wave or 0,
            prompt=TokenCount(texts=1),
            measured=measured_cost(profiles[number], medians[number]) if number in profiles else None,
        )
        for number, node in enumerate(nodes)
        if node.kind == "call"
    ]
    # The run as one of a single plan whose ops are the nodes.
    digest = "run"
    run, _ = measured_run(
        timeline.model_copy(
            update={
                "plans": (TimelinePlan(plan=0, name=timeline.header.program, digest=digest),),
                "requests": tuple(_placed(each, places[op_of(each)]) for each in timeline.requests),
                "tools": tuple(_placed(each, places[op_of(each)]) for each in timeline.tools),
            }
        ),
        digest,
        keys,
        batch=None,
        keys={},
        prefixes=(),
        notices=said,
        most=MAX_REQUESTS,
    )
    stage = StageView(name="run", ops=len(nodes), calls=len(costs), added=tuple(nodes))
    model_calls = len(costs)
    if len(nodes) > MAX_NODES:
        runs = runs_of(nodes, MAX_NODES)
        said.append(f"{with_count(len(nodes), 'op')} are folded: a node stands for up to {runs.longest:,} of them")
        stage, costs = runs.stage(stage), _in_runs(costs, runs)
        run = run.model_copy(
            update={
                name: tuple(
                    each.model_copy(update={"key": runs.key_of[each.key]}) if each.key is not None else each
                    for each in getattr(run, name)
                )
                for name in ("requests", "tools")
            }
        )
    return CompiledView(
        format=FORMAT,
        version=VERSION,
        program=ProgramView(
            name=visible(timeline.header.program),
            parameters={},
            ops=len(nodes),
            model_calls=model_calls,
            waves=max(waves.values(), default=-1) + 1,
            target=visible(timeline.header.target) or None,
        ),
        sources=(),
        stages=(stage,),
        calls=tuple(costs),
        timeline=run,
        redacted=redact,
        notices=tuple(said),
    )


def _begin(entry: MeasuredRequest | ToolCall) -> tuple[int, int]:
    return entry.submitted if isinstance(entry, MeasuredRequest) else entry.started, entry.lane


def _kind(entry: MeasuredRequest | ToolCall) -> str:
    return entry.kind if isinstance(entry, MeasuredRequest) else "tool"


def _name(entry: MeasuredRequest | ToolCall) -> str:
    return entry.op if isinstance(entry, MeasuredRequest) else entry.name


def _common_id(ids: Sequence[str]) -> str:
    """Return the id of an op that ran under several: ``*`` stands for a part in which they differ."""
    if len(ids) == 1:
        return ids[0]
    parts = [base_of(each).split("/") for each in ids]
    if len({len(each) for each in parts}) > 1:
        return ids[0]
    return "/".join(each[0] if len(set(each)) == 1 else "*" for each in zip(*parts, strict=True))


def _placed(entry: Entry, number: int) -> Entry:
    return entry.model_copy(update={"plan": 0, "at": number})


def _redaction(given: Given) -> Redaction | None:
    if not given.redact:
        return None
    return Redaction(given.plan.name, [step.module for step in given.steps], given.texts.values())


def _said(redaction: Redaction, text: str) -> str:
    """Return a message without the texts that it quotes."""
    return visible(redaction.message(text), KEPT)


def _without_names(call: CallCost, redaction: Redaction) -> CallCost:
    return call.model_copy(update={"id": redaction.id(call.id)})


def _run_without_names(run: MeasuredRun, redaction: Redaction) -> MeasuredRun:
    changed: dict[str, object] = {
        "requests": tuple(each.model_copy(update={"id": redaction.id(each.id)}) for each in run.requests)
    }
    if run.divergence is not None:
        changed["divergence"] = run.divergence.model_copy(update={"id": redaction.id(run.divergence.id)})
    return run.model_copy(update=changed)


def _batch_without_names(batch: Batch, redaction: Redaction) -> Batch:
    """Return a batch whose prompts name the calls of answers without their names."""

    def spans(position: int) -> list[Span]:
        return [
            span
            if span.is_literal or span.text in ("{input}", "{text}")
            else replace(span, text=f"{{{redaction.id(span.text[1:-1])}}}")
            for span in batch.spans(position)
        ]

    return replace(batch, spans=spans)


def _op_count(module: Module) -> int:
    return sum(1 for _ in walk([module.main.body]))


def _program(given: Given, costs: Costs, ops: Sequence[Placed], redaction: Redaction | None) -> ProgramView:
    shown = visible if redaction is None else redaction.parameter
    module = given.steps[-1].module
    prefills = Counter(each.op.scope for each in ops if isinstance(each.op, PrefillOp))
    remarks = [remark for step in given.steps for remark in step.remarks if remark.kind == "applied"]
    called = called_hosts(module.main.body)
    return ProgramView(
        name=visible(module.name),
        parameters={visible(shown(value.name)): visible(str(value.type)) for value in module.main.parameters},
        ops=len(ops),
        model_calls=sum(is_call(each.op) for each in ops),
        waves=given.plan.wave_count,
        critical_calls=costs.critical_calls,
        batch_prefixes=prefills["batch"],
        instance_prefixes=prefills["instance"],
        saved_tokens=sum(remark.saved_tokens for remark in remarks),
        saved_calls=sum(remark.saved_calls for remark in remarks),
        saved_steps=sum(remark.saved_steps for remark in remarks),
        captured_ops=None if given.old is not None else _op_count(given.steps[0].module),
        target=None if given.target is None else visible(given.target),
        level=given.level,
        host_functions={visible(host.name): host.effect.value for host in module.hosts if host.name in called},
    )


def _remarks(given: Given, stages: int, sources: SourceFiles, said: Message, shown_id: Message) -> list[RemarkView]:
    """Return the remarks of all passes; where stages are left out, as those of the last one."""
    left_out = len(given.steps) - stages
    return [
        RemarkView(
            stage=max(number - left_out, 0),
            kind=remark.kind,
            message=said(remark.message),
            text=said(_shown_at(str(remark), given.files)),
            op=None if remark.op is None else visible(shown_id(remark.op)),
            place=sources.column(remark.location),
            saved_tokens=remark.saved_tokens,
            saved_calls=remark.saved_calls,
            saved_steps=remark.saved_steps,
        )
        for number, step in enumerate(given.steps)
        for remark in step.remarks
    ]


def _shown_at(text: str, files: Mapping[str, str]) -> str:
    """Return a message with the name to show of the file that it begins with."""
    file = next((file for file, name in files.items() if file != name and text.startswith(f"{file}:")), None)
    return text if file is None else files[file] + text.removeprefix(file)


def _breaks(
    given: Given, stages: Stages, keys: Mapping[Op, str], sources: SourceFiles, said: Message
) -> list[BreakView]:
    """Return the graph breaks; one whose op is at its line has the key of that op."""
    ends = [each.op for each, node in zip(stages.ops, stages.nodes, strict=True) if node.kind == "break"]
    found: list[BreakView] = []
    for entry in given.breaks:
        op = next((op for op in ends if op.location == entry.location), ends[0] if len(ends) == 1 else None)
        found.append(
            BreakView(
                cause=said(entry.cause),
                remedy=said(entry.remedy),
                place=sources.column(entry.location),
                key=None if op is None else keys[op],
            )
        )
    return found


def _constraints(given: Given, redaction: Redaction | None) -> list[ConstraintInfo]:
    found: list[ConstraintInfo] = []
    for each in given.steps[-1].module.constraints:
        examples = () if redaction is not None else given.examples.get(each.name, ())
        shown = each if redaction is None else redaction.constraint(each)
        found.append(
            ConstraintInfo(
                name=visible(each.name),
                kind=each.kind,
                text=shortened(shown.text, MAX_DEFINITION),
                examples=tuple(shortened(text, MAX_LINE) for text in examples),
            )
        )
    return found


def _in_runs(calls: Sequence[CallCost], runs: Runs) -> list[CallCost]:
    """Return the calls of each run as one."""
    members: dict[str, list[CallCost]] = {}
    for call in calls:
        members.setdefault(runs.key_of[call.key], []).append(call)
    return [_together(key, each) for key, each in members.items()]


def _together(key: str, calls: Sequence[CallCost]) -> CallCost:
    first = calls[0]
    if len(calls) == 1:
        return first.model_copy(update={"key": key})
    planned = [call.planned for call in calls if call.planned is not None]
    measured = [call.measured for call in calls if call.measured is not None]
    return CallCost(
        key=key,
        id=first.id,
        wave=first.wave,
        prompt=total_tokens(call.prompt for call in calls),
        prefilled=total_tokens(call.prefilled for call in calls),
        output=sum(call.output for call in calls),
        choices=sum(call.choices for call in calls),
        critical=any(call.critical for call in calls),
        ops=len(calls),
        planned=total_planned(planned) if planned else None,
        measured=total_measured(measured) if measured else None,
    )


def _prefixes_in_runs(prefixes: Sequence[Prefix], runs: Runs) -> list[Prefix]:
    return [
        prefix.model_copy(
            update={
                "key": runs.key_of[prefix.key],
                "outer": None if prefix.outer is None else runs.key_of[prefix.outer],
                "calls": tuple(dict.fromkeys(runs.key_of[key] for key in prefix.calls)),
            }
        )
        for prefix in prefixes
    ]


def _plan(batch: Batch, keys: Sequence[str], tree: PromptTree, notices: list[str]) -> BatchPlan:
    """``keys`` are those of the calls that make the requests of a row."""
    report = batch.report
    depths: dict[str | int, int] = {}
    for request in batch.requests:
        depths[request.id] = max((depths[each] + 1 for each in request.after), default=0)
    order = sorted(range(len(batch.requests)), key=lambda position: (report.served[position].started, position))
    if len(order) > MAX_REQUESTS:
        notices.append(
            f"the first {MAX_REQUESTS:,} of {with_count(len(order), 'request')} are listed one by one; all figures "
            "are of all requests"
        )
    if len(batch.rows) > MAX_REQUESTS:
        notices.append(f"the first {MAX_REQUESTS:,} of {with_count(len(batch.rows), 'row')} are listed")
    if len(tree.nodes) < tree.part_count:
        notices.append(
            f"the tree of prompts has {with_count(tree.part_count, 'part')}; the heaviest are shown, the others in sum"
        )
    requests: list[PlannedRequest] = []
    for position in order[:MAX_REQUESTS]:
        request, served = batch.requests[position], report.served[position]
        requests.append(
            PlannedRequest(
                key=keys[number_of(request.id)],
                row=request.instance,
                depth=depths[request.id],
                ready=round(served.ready, 6),
                started=round(served.started, 6),
                first_token=round(served.first_token, 6),
                ended=round(served.ended, 6),
                prompt=request.tokens.size,
                cached=served.cached,
                output=request.generated.size,
                prefix=tree.node_of[position],
            )
        )
    return BatchPlan(
        rows=tuple(PlannedRow(row=row, shared=shared) for row, shared in batch.rows[:MAX_REQUESTS]),
        row_count=len(batch.rows),
        order=batch.order,
        block=batch.block,
        characters=batch.characters,
        kv_tokens=batch.kv_tokens,
        batch=report.batch,
        prefill_tokens=batch.prefill_tokens,
        total=total_planned(planned_of(batch, keys).values()),
        hit_rate=report.hit_rate,
        evicted_tokens=report.evicted_tokens,
        preemptions=report.preemptions,
        steps=report.steps,
        depth=report.depth,
        predicted_seconds=report.predicted_seconds,
        requests=tuple(requests),
        prompts=tuple(tree.nodes),
    )


def _places(nodes: Sequence[OpNode]) -> dict[int, list[int]]:
    """Return the lines of each source that nodes are at."""
    found: dict[int, list[int]] = {}
    for node in nodes:
        if node.place is not None:
            found.setdefault(node.place.source, []).append(node.place.line)
    return found


def _sources(
    given: Given, sources: SourceFiles, places: Mapping[int, Sequence[int]], notices: list[str]
) -> list[SourceFile]:
    """Return the files of all places. Of a very long one, the part that begins with the first op."""
    found: list[SourceFile] = []
    for file, number in sources.files.items():
        lines = given.texts.get(file, "").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        name = visible(given.files.get(file, file))
        if given.redact:
            lines = redacted_source(lines)
        first = 0
        if len(lines) > MAX_LINES:
            first = max(min(places.get(number, [1])) - 1, 0)
            notices.append(f"{name} has {with_count(len(lines), 'line')}; {MAX_LINES:,} of them are shown")
        shown = tuple(shortened(line.rstrip("\r"), MAX_LINE) for line in lines[first : first + MAX_LINES])
        found.append(SourceFile(file=name, lines=shown, first=first + 1))
    return found

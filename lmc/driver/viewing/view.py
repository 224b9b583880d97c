"""Compiled programs as data, graphs and text: the work of ``lmc viz``, ``lmc view`` and ``lmc compile --emit tree``."""

from __future__ import annotations

import os
import tokenize
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from lmc.backend.lower import lower
from lmc.backend.plan import Plan
from lmc.backend.schedule.fingerprints import plan_digest
from lmc.backend.schedule.request_model import Answer, Known, Piece, ops_of_stages
from lmc.backend.schedule.schedule import Room, Schedule
from lmc.backend.schedule.trace_requests import pieces_of
from lmc.cache.batch_order.ranks import InstanceOrder
from lmc.cache.simulation.simulator import simulate
from lmc.driver.batch.lines import is_plain_file
from lmc.driver.batch.rows import ArgumentReader, Signature
from lmc.driver.commands.cli_options import GivenOptions, options_for_saved, runner_for
from lmc.driver.commands.opt import context_for
from lmc.driver.commands.schedule import HOLDS_ALL, read_schedule, rows_by_plan, schedule_rows
from lmc.driver.compile.compiled import Compiled
from lmc.driver.compile.view_data import measured_ops, prompt_lengths, shown_file, shown_files
from lmc.driver.errors import TimelineMismatchError, UsageError
from lmc.driver.programs import load_program, program_file
from lmc.driver.run.start import Arguments
from lmc.driver.saved.artifacts import read_module
from lmc.driver.saved.saved import is_saved, load_saved_plan
from lmc.driver.saved.saved_arguments import signature_of
from lmc.driver.targets.calibrations import cost_model_of
from lmc.driver.targets.constraints import constrained
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.service import service
from lmc.driver.version import __version__
from lmc.driver.viewing import timelines
from lmc.grammar.sharing import source_of
from lmc.ir.core import Op, walk
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError, LmcWarning, Location
from lmc.ir.module import Module
from lmc.ir.wording import with_article, with_count
from lmc.passes.base import Pass
from lmc.report.forms.dot import dot
from lmc.report.forms.mermaid import mermaid
from lmc.report.forms.tree import tree
from lmc.report.given import Batch, Given, ScheduledCall, Span, Step
from lmc.report.model import CompiledView, to_json
from lmc.report.page import page
from lmc.report.redact import length_of
from lmc.report.text import visible
from lmc.report.timeline import Header, RunTimeline
from lmc.report.view import view_of, view_of_schedule, view_of_timeline

__all__ = ["FORMATS", "CompiledView", "Room", "compare", "kind_of", "of_compiled", "run", "tree_text"]

FORMATS: Mapping[str, Callable[[CompiledView], str]] = {"html": page, "json": to_json, "mermaid": mermaid, "dot": dot}
"""The forms of a view."""
Kind = Literal["program", "module", "plan", "schedule", "timeline"]
_NOT_PROGRAMS: Mapping[Kind, str] = {"schedule": "schedule of rows", "timeline": "timeline of a run"}
_BEGINNING = 1_000
"""Bytes of a file by which its kind is recognized."""
_MAX_NAMED = 20
"""Rows that a notice names."""
PREFILL_TOKENS = 512
"""Prompt tokens that a simulation computes in a step: the default of ``lmc simulate``."""


def run(
    name: str,
    given: GivenOptions,
    fixed: list[str],
    *,
    data: str | None = None,
    timeline: str | None = None,
    programs: Sequence[str] = (),
    room: Room,
    redact: bool = False,
) -> CompiledView:
    """Return the view of a program, or of a saved plan, module, schedule or timeline; with ``data``, also of its batch.

    Nothing is run. ``fixed`` are KEY=VALUE. A ``timeline`` is the file of a run, whose rows are shown where ``data`` is
    not given. If ``name`` is a timeline, it is shown beside the one of ``programs`` that it is of. Raises as
    ``lmc compile`` and ``lmc schedule`` do, and ``InputError`` for a timeline of something else.
    """
    kind = kind_of(name)
    if kind in ("timeline", "schedule"):
        for option, value in (("--input", data), ("KEY=VALUE", fixed or None), ("--timeline", timeline)):
            if value is not None:
                raise UsageError(
                    f"{option} is for a program, and {name} is {with_article(_NOT_PROGRAMS[kind])}",
                    remedy="leave it out",
                )
    if kind == "timeline":
        return _of_timeline(name, given, programs, room, redact=redact)
    if kind == "schedule":
        return _of_schedule(name, given, room, redact=redact)
    own_rows = data
    notices: list[str] = []
    recorded = None if timeline is None else timelines.read(timeline)
    if recorded is not None and timeline is not None:
        if not is_saved(name):
            timelines.check_sources(recorded, timeline, name)
        data = timelines.rows_of(recorded, timeline, data, notices)
    with _recorded_warnings() as hints:
        if is_saved(name):
            found = _of_saved(name, given, fixed, data, room)
        else:
            found = _of_program(name, given, fixed, data, room, notices=notices, is_run=data != own_rows, redact=redact)
    if recorded is not None and timeline is not None:
        timelines.check_plan(recorded, timeline, found.plan)
        if not recorded.plans:
            notices.append("the run has not begun: its timeline names no plan")
        found = replace(found, timeline=(recorded, plan_digest(found.plan)))
    if found.batch is not None and found.batch.note is not None:
        notices.append(found.batch.note)
    own = [
        (length_of(text) if redact and not issubclass(each.category, LmcWarning) else text, place)
        for each in hints
        for text, place in [(str(each.message), Location(each.filename, each.lineno))]
        if place.file in found.files
    ]
    view = view_of(replace(found, hints=own, redact=redact))
    return view.model_copy(update={"notices": (*view.notices, *notices)}) if notices else view


def kind_of(name: str) -> Kind:
    """Return the kind of what a command line names: by its beginning, else by the end of its name.

    A ``.json`` that is empty or not there is a timeline that a run has yet to write. A pipe is not read.
    """
    beginning, path = b"", program_file(name)
    if is_plain_file(path):
        with suppress(OSError), Path(path).open("rb") as file:  # whoever reads it says so
            beginning = file.read(_BEGINNING).lstrip()
    if beginning.startswith(b"{") and b'"lmc.schedule"' in beginning:
        return "schedule"
    if name.endswith(".json") and (beginning[:1] in (b"", b"[") or b'"traceEvents"' in beginning):
        return "timeline"
    return "module" if name.endswith(".lmir") else "plan" if is_saved(name) else "program"


def of_compiled(compiled: Compiled) -> CompiledView:
    """Return the view of a compiled program, without a batch."""
    return view_of(_given(compiled))


def of_awaited(timeline: str, beside: CompiledView | None) -> CompiledView:
    """Return the view of a timeline that a run has yet to write, beside that of its program, or alone."""
    waiting = f"waiting for {timeline}: lmc run --timeline {timeline} writes it"
    if beside is not None:
        return beside.model_copy(update={"notices": (*beside.notices, waiting)})
    header = Header(lmc=__version__, program=timeline, sources={}, target="")
    return view_of_timeline(RunTimeline(header=header)).model_copy(update={"timeline": None, "notices": (waiting,)})


def tree_text(compiled: Compiled) -> str:
    """Return a compiled program as a tree for terminals."""
    return tree(of_compiled(compiled))


def compare(old: str, new: str, *, redact: bool = False) -> CompiledView:
    """Return the view of two modules in ``.lmir`` files. Raises as ``lmc opt`` does for a file that holds none."""
    steps = [Step(shown_file(path), read_module(path)) for path in (old, new)]
    files = shown_files(steps)

    def given(steps: list[Step]) -> Given:
        last = steps[-1].module
        return Given(steps, lower(last, Target("builtin")), prompt_lengths(last, context_for("builtin")), files=files)

    view = view_of(replace(given(steps), old=given(steps[:1]), redact=redact))
    names = [step.module.name for step in steps]
    if names[0] == names[1]:
        return view
    notice = f"two programs are compared: {names[0]!r} of {steps[0].name} and {names[1]!r} of {steps[1].name}"
    return view.model_copy(update={"notices": (*view.notices, visible(notice))})


def _of_program(
    name: str,
    given: GivenOptions,
    fixed: list[str],
    data: str | None,
    room: Room,
    *,
    notices: list[str],
    is_run: bool,
    redact: bool,
) -> Given:
    """Compile a program. Of rows that several plans run, those of one are shown, and ``notices`` names the others.

    ``is_run``: the rows are those of a run, so a row that can't be used is no error: it is one of a failed instance.
    """
    function = load_program(name)
    runner = runner_for(function, given)
    signature = Signature.of(function)
    if data is None:
        return _given(runner.compile(_arguments(signature, fixed)))
    first: list[Arguments] = []

    def place(arguments: Arguments, /) -> tuple[Plan, Mapping[str, Any]]:
        first.extend(() if first else (arguments,))
        return runner.place(arguments)

    room = room.counted_by(service().engines.tokenizer(runner.target()))
    try:
        groups = rows_by_plan(signature, place, data, fixed)
    except InputError as error:
        if not is_run or not first:
            raise
        notices.append("there is no plan of the rows of the run" + (f": {error.cause}" if not redact else ""))
        return _given(runner.compile(first[0]))
    shown = max(groups, key=lambda group: len(group.inputs))
    others = sorted(number for group in groups if group is not shown for number in group.inputs)
    if others:
        named = ", ".join(map(str, others[:_MAX_NAMED])) + (" …" if len(others) > _MAX_NAMED else "")
        plans = with_count(len(groups) - 1, "other plan")
        left_out = with_count(len(others), f"row of {plans} is left out", f"rows of {plans} are left out")
        notices.append(f"the batch has the {with_count(len(shown.inputs), 'row')} of one plan; {left_out}: {named}")
    found = _given(runner.compile(shown.arguments))
    return replace(
        found, batch=_batch(shown.schedule(room), _calls(found.plan, found.steps[-1].module), room, runner.target())
    )


def _of_saved(name: str, given: GivenOptions, fixed: list[str], data: str | None, room: Room) -> Given:
    """Read a saved plan. The source files that it names are not read: it may name any file."""
    options = options_for_saved(name, given)
    if name.endswith(".lmir"):
        module = read_module(name)
        plan = lower(module, resolve_target(options))
    else:
        plan = load_saved_plan(name, options)
        module = plan.module
    steps = [Step(shown_file(name), module)]
    found = Given(
        steps, plan, prompt_lengths(module, context_for(resolve_target(options).spec)), files=shown_files(steps)
    )
    if data is None:
        return found
    if room.kv_tokens != HOLDS_ALL:  # as lmc schedule counts
        room = room.counted_by(service().engines.tokenizer(resolve_target(options)))
    schedule = schedule_rows(signature_of(plan), lambda arguments: (plan, arguments[1]), data, room, fixed)
    return replace(found, batch=_batch(schedule, _calls(plan, module), room, resolve_target(options)))


def _of_timeline(name: str, given: GivenOptions, programs: Sequence[str], room: Room, *, redact: bool) -> CompiledView:
    """Return the view of the one of ``programs`` that a timeline is of, with the run beside it; else of the run."""
    recorded = timelines.read(name)
    if not programs:
        options_for_saved(name, given)
    notices = ["a timeline holds the requests, tools and steps of a run alone; the program has the ops, lines and plan"]
    for program in programs:
        try:
            return run(program, given, [], timeline=name, room=room, redact=redact)
        except InputError as error:
            if not (isinstance(error, TimelineMismatchError) or is_saved(program)):
                raise
            notices.append(f"it is not shown beside {program}: {error.cause}")
    return view_of_timeline(recorded, notices, redact=redact)


def _of_schedule(name: str, given: GivenOptions, room: Room, *, redact: bool) -> CompiledView:
    target = resolve_target(options_for_saved(name, given))
    schedule = read_schedule(name)
    batch = _batch(schedule, (), room, target)
    view = view_of_schedule(schedule.plan, _scheduled_calls(schedule), batch, redact=redact)
    return view if batch.note is None else view.model_copy(update={"notices": (*view.notices, batch.note)})


def _scheduled_calls(schedule: Schedule) -> list[ScheduledCall]:
    found: list[ScheduledCall] = []
    for number, stage in enumerate(schedule.stages):
        inputs: dict[int, Literal["context", "value", "order"]] = dict.fromkeys(stage.after, "order")
        inputs.update((piece.stage, "value") for piece in stage.pieces if isinstance(piece, Answer))
        if stage.base is not None:
            inputs[stage.base] = "context"
        pieces = pieces_of(schedule.stages, number, (), schedule.characters)
        sizes = [size for piece, size in pieces if isinstance(piece, str)]
        text = "".join(_piece_text(piece, schedule) for piece in stage.pieces)
        found.append(ScheduledCall(stage.id, sorted(inputs.items()), text, (sum(sizes), len(pieces) - len(sizes))))
    return found


def _calls(plan: Plan, module: Module) -> list[Op]:
    """Return the ops of a module that make the requests of a row of its plan."""
    own = dict(zip(walk([plan.module.main.body]), walk([module.main.body]), strict=True))
    return [own[op] for op in ops_of_stages(plan)]


def _arguments(signature: Signature, fixed: list[str]) -> Arguments | None:
    if not fixed:
        return None
    reader = ArgumentReader(signature)
    values = reader.assignments(fixed)
    reader.check_complete(values)
    return (), values


def _given(compiled: Compiled) -> Given:
    """Run the passes again, and keep the module after each of them."""
    options, captured = compiled.options, compiled.captured
    context = compiled.pass_context
    steps = [Step("capture", captured.module)]

    def after(each: Pass, module: Module) -> None:
        steps.append(Step(each.NAME, module, tuple(context.remarks[sum(len(step.remarks) for step in steps) :])))

    result = options.passes.run(captured.module, context, valid=True, after=after)
    files = shown_files(steps, [entry.location for entry in compiled.breaks])
    return Given(
        steps,
        lower(result.module, compiled.target),
        prompt_lengths(result.module, context),
        files=files,
        texts=dict(_texts(files)),
        breaks=compiled.breaks,
        examples=dict(_examples(compiled)),
        measured=measured_ops(result.module, options.profile),
        target=compiled.target.spec,
        level=compiled.level,
    )


def _examples(compiled: Compiled) -> Iterator[tuple[str, list[str]]]:
    used = {op.constraint for op in constrained(compiled.module)}
    for symbol in compiled.module.constraints:
        if symbol.name in used:
            source = source_of(symbol.kind, symbol.text, symbol.whitespace)
            example = compiled.cache.built(source, compiled.tokenizer).facts.example
            yield symbol.name, [] if example is None else [example]


def _batch(schedule: Schedule, ops: Sequence[Op], room: Room, target: Target) -> Batch:
    """Simulate a schedule as ``lmc simulate`` does."""
    cost, note = cost_model_of(target)
    requests = schedule.requests()
    report = simulate(
        requests,
        policy="lmc",
        kv_tokens=room.kv_tokens,
        batch=room.batch,
        prefill_tokens=PREFILL_TOKENS,
        layout=replace(schedule.layout, order=InstanceOrder.GIVEN),
        cost=cost,
    )
    values = [entry.values for entry in schedule.entries]
    stages = len(schedule.stages)

    def spans(position: int) -> list[Span]:
        row, number = divmod(position, stages)
        pieces = pieces_of(schedule.stages, number, values[row], schedule.characters)
        return [
            Span(_piece_text(piece, schedule), size, isinstance(piece, str), not isinstance(piece, str | Known))
            for piece, size in pieces
        ]

    return Batch(
        requests=requests,
        ops=ops,
        report=report,
        rows=[(entry.instance, entry.shared_characters) for entry in schedule.entries],
        order=schedule.layout.order,
        block=schedule.layout.block,
        characters=schedule.characters,
        kv_tokens=None if room.kv_tokens == HOLDS_ALL else room.kv_tokens,
        prefill_tokens=PREFILL_TOKENS,
        spans=spans,
        note=note,
    )


def _piece_text(piece: Piece, schedule: Schedule) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Answer):
        return f"{{{schedule.stages[piece.stage].id}}}"
    return "{input}" if isinstance(piece, Known) else "{text}"


def _texts(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The text of the source files of a program that the user named, and that runs here anyway."""
    for file in files:
        try:
            with tokenize.open(os.fspath(file)) as opened:
                yield file, opened.read()
        except (OSError, SyntaxError, ValueError):  # it is gone since, or no text
            continue


@contextmanager
def _recorded_warnings() -> Generator[list[warnings.WarningMessage]]:
    """Collect the warnings given in the block, and give them again behind it."""
    with warnings.catch_warnings(record=True) as given:
        yield given
    for each in given:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

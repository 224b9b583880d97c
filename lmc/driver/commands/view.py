"""Compiled programs as data, graphs and text: the implementation of ``lmc viz`` and of ``lmc compile --emit tree``."""

from __future__ import annotations

import os
import tokenize
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmc.backend.lower import lower
from lmc.backend.plan import Plan
from lmc.backend.schedule.request_model import Answer, Known, Piece, ops_of_stages
from lmc.backend.schedule.schedule import Room, Schedule
from lmc.backend.schedule.trace_requests import pieces_of
from lmc.cache.batch_order.ranks import InstanceOrder
from lmc.cache.simulation.simulator import simulate
from lmc.driver.batch.rows import ArgumentReader, Signature
from lmc.driver.commands.cli_options import GivenOptions, options_for_saved, runner_for
from lmc.driver.commands.opt import context_for
from lmc.driver.commands.schedule import HOLDS_ALL, schedule_rows
from lmc.driver.compile.compiled import Compiled
from lmc.driver.programs import load_program
from lmc.driver.run.start import Arguments
from lmc.driver.saved.artifacts import read_module
from lmc.driver.saved.saved import is_saved, load_saved_plan
from lmc.driver.saved.saved_arguments import signature_of
from lmc.driver.targets.constraints import constrained
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.service import service
from lmc.grammar.sharing import source_of
from lmc.ir.core import Block, Op, walk
from lmc.ir.dialects.core_ops import PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.engine.target import Target
from lmc.ir.errors import Location
from lmc.ir.module import Module
from lmc.ir.profile import OpProfile
from lmc.ir.types import CTX
from lmc.passes.analysis.context_lengths import ContextLengths
from lmc.passes.apply_profile import measured
from lmc.passes.base import Pass, PassContext
from lmc.passes.pipelines import pipeline
from lmc.report.dot import dot
from lmc.report.given import Batch, Given, Length, Span, Step
from lmc.report.mermaid import mermaid
from lmc.report.model import CompiledView, to_json
from lmc.report.page import page
from lmc.report.tree import tree
from lmc.report.view import view_of

__all__ = ["FORMATS", "CompiledView", "Room", "compare", "of_compiled", "run", "tree_text"]

FORMATS: Mapping[str, Callable[[CompiledView], str]] = {"html": page, "json": to_json, "mermaid": mermaid, "dot": dot}
"""The forms of a view."""
PREFILL_TOKENS = 512
"""Prompt tokens that a simulation computes in a step: the default of ``lmc simulate``."""


def run(
    name: str, given: GivenOptions, fixed: list[str], *, data: str | None = None, room: Room, redact: bool = False
) -> CompiledView:
    """Return the view of a program or of a saved plan or module; with ``data``, also that of the batch of its rows.

    Nothing is run. ``fixed`` are KEY=VALUE. Raises as ``lmc compile`` and ``lmc schedule`` do.
    """
    with _recorded_warnings() as hints:
        if is_saved(name):
            found = _of_saved(name, given, fixed, data, room)
        else:
            found = _of_program(name, given, fixed, data, room)
    own = [(text, place) for text, place in hints if place is not None and place.file in found.files]
    return view_of(replace(found, hints=own, redact=redact))


def of_compiled(compiled: Compiled) -> CompiledView:
    """Return the view of a compiled program, without a batch."""
    return view_of(_given(compiled))


def tree_text(compiled: Compiled) -> str:
    """Return a compiled program as a tree for terminals."""
    return tree(of_compiled(compiled))


def compare(old: str, new: str, *, redact: bool = False) -> CompiledView:
    """Return the view of two modules in ``.lmir`` files. Raises as ``lmc opt`` does for a file that holds none."""
    modules = [read_module(old), read_module(new)]
    steps = [Step(_shown_file(path), module) for path, module in zip((old, new), modules, strict=True)]
    last = modules[-1]
    return view_of(
        Given(
            steps,
            lower(last, Target("builtin")),
            _lengths(last, PassContext()),
            files=_shown_files(steps),
            comparison=True,
            redact=redact,
        )
    )


def _of_program(name: str, given: GivenOptions, fixed: list[str], data: str | None, room: Room) -> Given:
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
    schedule = schedule_rows(signature, place, data, room, fixed)
    compiled = runner.compile(first[0])
    found = _given(compiled)
    return replace(found, batch=_batch(schedule, found.plan, found.steps[-1].module, room))


def _of_saved(name: str, given: GivenOptions, fixed: list[str], data: str | None, room: Room) -> Given:
    """Read a saved plan. The source files that it names are not read: it may name any file."""
    options = options_for_saved(name, given)
    if name.endswith(".lmir"):
        module = read_module(name)
        plan = lower(module, resolve_target(options))
    else:
        plan = load_saved_plan(name, options)
        module = plan.module
    steps = [Step(_shown_file(name), module)]
    found = Given(steps, plan, _lengths(module, context_for(options.target)), files=_shown_files(steps))
    if data is None:
        return found
    if room.kv_tokens != HOLDS_ALL:  # as lmc schedule counts
        room = room.counted_by(service().engines.tokenizer(resolve_target(options)))
    schedule = schedule_rows(signature_of(plan), lambda arguments: (plan, arguments[1]), data, room, fixed)
    return replace(found, batch=_batch(schedule, plan, module, room))


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
    context = PassContext(compiled.tokenizer, compiled.cache, options.profile)
    steps = [Step("capture", captured.module)]

    def after(each: Pass, module: Module) -> None:
        steps.append(Step(each.NAME, module, tuple(context.remarks[sum(len(step.remarks) for step in steps) :])))

    result = pipeline(options.level, order_sections=options.order_sections).run(
        captured.module, context, valid=True, after=after
    )
    files = _shown_files(steps, [entry.location for entry in compiled.breaks])
    ids = [op.id for op in walk([result.module.main.body]) if isinstance(op, SamplingOp | SelectOp)]
    found: dict[str, OpProfile] = {} if options.profile is None else measured(ids, options.profile.ops)[0]
    return Given(
        steps,
        lower(result.module, compiled.target),
        _lengths(result.module, context),
        files=files,
        texts=dict(_texts(files)),
        breaks=compiled.breaks,
        examples=dict(_examples(compiled)),
        measured=found,
        target=compiled.target.spec,
        level=compiled.level,
    )


def _is_call(op: Op) -> bool:
    return op.billable and not isinstance(op, RegionOp)


def _lengths(module: Module, context: PassContext) -> dict[Op, tuple[Length, Length]]:
    """The lengths of the prompts of calls and prefills, and of the parts of them that are computed ahead."""
    lengths = ContextLengths(context)
    users: list[Op] = []

    def visit(block: Block) -> None:
        """Recursion is as deep as regions are nested."""
        for value in block.parameters:
            if value.type == CTX:
                lengths.start(value)
        for op in block.ops:
            for value in op.results:
                if value.type == CTX:
                    lengths.add(op, value)
            for region in op.regions:
                visit(region)
            if _is_call(op) or isinstance(op, PrefillOp):
                users.append(op)

    visit(module.main.body)
    found: dict[Op, tuple[Length, Length]] = {}
    for op in users:
        value = next(value for value in op.operands if value.type == CTX)
        whole, covered = lengths.whole(value), lengths.covered(value)
        found[op] = (whole.tokens, whole.unknown), (covered.tokens, covered.unknown)
    return found


def _examples(compiled: Compiled) -> Iterator[tuple[str, list[str]]]:
    used = {op.constraint for op in constrained(compiled.module)}
    for symbol in compiled.module.constraints:
        if symbol.name in used:
            source = source_of(symbol.kind, symbol.text, symbol.whitespace)
            example = compiled.cache.built(source, compiled.tokenizer).facts.example
            yield symbol.name, [] if example is None else [example]


def _batch(schedule: Schedule, plan: Plan, module: Module, room: Room) -> Batch:
    """Simulate a schedule as ``lmc simulate`` does."""
    requests = schedule.requests()
    report = simulate(
        requests,
        policy="lmc",
        kv_tokens=room.kv_tokens,
        batch=room.batch,
        prefill_tokens=PREFILL_TOKENS,
        layout=replace(schedule.layout, order=InstanceOrder.GIVEN),
    )
    own = dict(zip(walk([plan.module.main.body]), walk([module.main.body]), strict=True))
    values = [entry.values for entry in schedule.entries]
    stages = len(schedule.stages)

    def spans(position: int) -> list[Span]:
        row, number = divmod(position, stages)
        pieces = pieces_of(schedule.stages, number, values[row], schedule.characters)
        return [Span(_piece_text(piece, schedule), size, isinstance(piece, str)) for piece, size in pieces]

    return Batch(
        requests=requests,
        ops=[own[op] for op in ops_of_stages(plan)],
        report=report,
        rows=[(entry.instance, entry.shared_characters) for entry in schedule.entries],
        order=schedule.layout.order,
        block=schedule.layout.block,
        characters=schedule.characters,
        kv_tokens=None if room.kv_tokens == HOLDS_ALL else room.kv_tokens,
        prefill_tokens=PREFILL_TOKENS,
        spans=spans,
    )


def _piece_text(piece: Piece, schedule: Schedule) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Answer):
        return f"{{{schedule.stages[piece.stage].id}}}"
    return "{input}" if isinstance(piece, Known) else "{text}"


def _shown_files(steps: Sequence[Step], more: Sequence[Location | None] = ()) -> dict[str, str]:
    """The names to show of the files of locations."""
    ops = (op for step in steps for op in walk([step.module.main.body]))
    remarks = (remark for step in steps for remark in step.remarks)
    places = [*(op.location for op in ops), *(remark.location for remark in remarks), *more]
    return {place.file: _shown_file(place.file) for place in dict.fromkeys(places) if place is not None}


def _shown_file(file: str) -> str:
    """A file below the current folder by its path from there, else by its name: no absolute path is shown."""
    path = Path(file)
    if not path.is_absolute():
        return file
    folder = Path.cwd()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _texts(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The text of the source files of a program that the user named, and that runs here anyway."""
    for file in files:
        try:
            with tokenize.open(os.fspath(file)) as opened:
                yield file, opened.read()
        except (OSError, SyntaxError, ValueError):  # it is gone since, or no text
            continue


@contextmanager
def _recorded_warnings() -> Generator[list[tuple[str, Location | None]]]:
    """Collect the warnings given in the block at lines of a file, and give them again behind it."""
    found: list[tuple[str, Location | None]] = []
    with warnings.catch_warnings(record=True) as given:
        yield found
    for each in given:
        found.append((str(each.message), Location(each.filename, each.lineno)))
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

"""The format ``lmc-cost`` as a table for terminals: the same text for the same report, whatever the width is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from lmc.report.cost.amounts import (
    ESTIMATED,
    UNPRICED,
    bases,
    calls,
    count,
    critical_path,
    dollars,
    mark,
    number,
    outputs,
    prompts,
    run_of,
    total_usd,
    usd,
)
from lmc.report.cost.changes import causes, earlier, total_change, versus
from lmc.report.cost.comparison import ComparedCall, ComparedProgram, ComparedReport
from lmc.report.cost.model import (
    CostReport,
    CountRange,
    PassSaving,
    ProgramCost,
)

_LEFT = 2
"""Columns that begin with text and are aligned to the left."""
_GAP = "  "


def table(report: CostReport, compared: ComparedReport | None = None) -> str:
    """Return the report: a table for each program and model, and the models of a program side by side.

    With a baseline, calls and totals are beside it, and programs that the report lacks are listed.
    """
    parts = [
        "\n".join(_program(program, None if compared is None else compared.find(program)))
        for program in report.programs
    ]
    if compared is not None and compared.removed:
        parts.append("\n".join(f"{name} on {model}: removed" for name, model in compared.removed))
    by_program: dict[str, list[ProgramCost]] = {}
    for program in report.programs:
        by_program.setdefault(program.program, []).append(program)
    parts += ["\n".join(_side_by_side(models)) for models in by_program.values() if len(models) > 1]
    if not report.programs:
        return ""
    return "\n\n".join(parts) + "\n"


def _program(program: ProgramCost, compared: ComparedProgram | None) -> Iterator[str]:
    rows = f"{program.rows.count:,} row{'' if program.rows.count == 1 else 's'}"
    of = f" of {program.rows.file}" if program.rows.file else ""
    passes = "".join(f", without {name}" for name in program.disabled_passes)
    yield f"{program.program} on {program.model}, -{program.level}{passes}, {rows}{of}"
    yield from _aligned(list(_lines(program, compared)))
    yield _total(program) + ("" if compared is None else f"   {total_change(compared)}")
    if compared is not None:
        yield f"vs base: {earlier(compared)}{causes(compared)}"
    for each in program.breaks:
        place = f"{each.place}" if each.place else "a graph break"
        yield f"unknown after {place}: {each.cause} (runs {count(each.runs)})"
    for row in program.failed:
        yield f"row {row.row} fails: {row.error}"
    if program.failed_rows > len(program.failed):
        yield f"{program.failed_rows:,} of {rows} fail"
    if program.unpriced is not None:
        yield f"{UNPRICED}: {program.unpriced}"
    if program.price is not None:
        version = "".join(f" {each}" for each in (program.price.version, program.price.date) if each)
        yield f"prices: {program.price.entry}, {program.price.source}{version}"
    if program.tokens == "estimated":
        yield ESTIMATED
    guessed = bases(program.calls)
    if guessed:
        yield f"expected outputs: {guessed}"
    if program.savings:
        yield f"saved: {', '.join(map(_saving, program.savings))}"
    for hint in program.hints:
        place = f" {hint.place}" if hint.place else ""
        yield f"{hint.code}{place}  {hint.message}"


def _lines(program: ProgramCost, compared: ComparedProgram | None) -> Iterator[Sequence[str]]:
    is_cached = program.total.cached.most != 0
    is_written = program.total.cache_written.most != 0
    reasons = program.total.reasoning.most != 0
    is_timed = any(call.seconds is not None for call in program.calls)
    yield (
        "call",
        "line",
        "count",
        "in / cached" if is_cached else "in",
        *(["written"] if is_written else []),
        "out expected–max",
        *(["reasoning"] if reasons else []),
        *(["$ expected (max)"] if program.price is not None else []),
        *(["seconds"] if is_timed else []),
        *(["vs base"] if compared is not None else []),
    )
    beside: dict[str, ComparedCall] = {} if compared is None else {each.op: each for each in compared.calls}
    for call in program.calls:
        yield (
            call.op,
            str(call.place) if call.place else "",
            count(call.calls),
            prompts(program, call, is_cached=is_cached),
            *([f"{mark(program)}{number(call.cache_written.expected)}"] if is_written else []),
            outputs(program, call),
            *([f"{mark(program)}{count(call.reasoning)}"] if reasons else []),
            *([usd(call.usd)] if program.price is not None else []),
            *([_seconds(call.seconds)] if is_timed else []),
            *([versus(beside[call.op])] if compared is not None else []),
        )
    width = sum((is_written, reasons, program.price is not None, is_timed)) + 3
    for each in beside.values():
        if each.now is None:
            yield each.op, "", *[""] * width, versus(each)


def _total(program: ProgramCost) -> str:
    parts = [f"TOTAL  {total_usd(program)}", f"calls {calls(program)}", f"critical path {critical_path(program)}"]
    return "   ".join([*parts, *run_of(program)])


def _side_by_side(models: Sequence[ProgramCost]) -> Iterator[str]:
    yield f"{models[0].program}, {len(models)} models"
    rows: list[Sequence[str]] = [("model", "prices", "calls", "in", "cached", "out", "$ expected (max)")]
    for each in sorted(models, key=_dollar_order):
        total = each.total
        rows.append(
            (
                each.model,
                each.price.entry if each.price else UNPRICED,
                count(total.calls),
                prompts(each, total, is_cached=False),
                f"{mark(each)}{number(total.cached.expected)}",
                outputs(each, total),
                total_usd(each),
            )
        )
    yield from _aligned(rows)


def _dollar_order(program: ProgramCost) -> tuple[bool, Decimal, str]:
    """Return the place of a model: the cheapest first, those without a price last."""
    found = program.total.usd
    return found is None, Decimal(0) if found is None else found.expected, program.model


def _saving(saving: PassSaving) -> str:
    if saving.usd is not None:
        return f"{saving.name} {dollars(saving.usd)}"
    tokens = saving.prompt - saving.cached
    figures = [(saving.calls, "calls"), (tokens, "computed tokens"), (saving.output, "output tokens")]
    shown = [f"{'−' if value < 0 else ''}{number(abs(value))} {unit}" for value, unit in figures if value]
    return f"{saving.name} {' and '.join(shown) or 'nothing'}"


def _seconds(found: CountRange | None) -> str:
    return "" if found is None else f"{count(found)} s"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < _LEFT else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield _GAP.join(cells).rstrip()

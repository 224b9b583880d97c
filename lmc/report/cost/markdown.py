"""A report as Markdown: the comment of a pull request, always under the limit of GitHub, all foreign text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from lmc.report.cost.amounts import (
    ESTIMATED,
    UNBOUNDED,
    bases,
    calls,
    count,
    critical_path,
    dollars,
    outputs,
    prompts,
    run_of,
    total_usd,
    usd,
)
from lmc.report.cost.changes import arrow, causes, earlier, versus
from lmc.report.cost.comparison import ComparedCall, ComparedProgram, ComparedReport
from lmc.report.cost.limits import CheckedLimit
from lmc.report.cost.model import CallFigures, CostReport, MoneyRange, ProgramCost
from lmc.report.forms.mermaid import escaped as label
from lmc.report.text import one_line

MARKER = "<!-- lmc cost -->"
"""The first line: by it CI finds the comment again, and updates it."""
MOST_CHARACTERS = 65_000
"""GitHub takes 65,536."""
_ROWS = 20
_REST = 200
_HINTS = 20
_NODES = 12
_TEXT = 160
_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation. CommonMark lets each be written as an entity, which has no meaning of its own."""


def markdown(report: CostReport, compared: ComparedReport | None, limits: Sequence[CheckedLimit]) -> str:
    """Return a comment: total, limits, the calls that changed most, hints, a graph, and the rest folded."""
    rows = sorted(_rows(report, compared), key=_order)
    shown, rest = rows[:_ROWS], rows[_ROWS : _ROWS + _REST]
    parts = [
        MARKER,
        _headline(report, compared),
        *_programs(report, compared),
        *_limits(limits),
        "\n".join(_table(shown, programs=len(report.programs) > 1, is_compared=compared is not None)),
        *_unknown(report),
        *_hints(report),
        *_graph(shown),
    ]
    text = _joined(parts)
    lines = list(_table(rest, programs=len(report.programs) > 1, is_compared=compared is not None))
    return text + _folded(lines, len(rows) - len(shown), MOST_CHARACTERS - len(text))


@dataclass(frozen=True, slots=True)
class _Row:
    """A call of a program, beside the baseline where there is one. ``now`` None: it was removed."""

    program: ProgramCost
    op: str
    call: ComparedCall | None
    now: CallFigures | None

    @property
    def money(self) -> MoneyRange | None:
        """Its dollars; None: it was removed, or it has no price."""
        return None if self.now is None else self.now.usd

    @property
    def change(self) -> Decimal | None:
        """The dollars that it costs more; None: not known."""
        found = None if self.call is None or self.call.change is None else self.call.change
        return None if found is None else found.own + found.prices


def _rows(report: CostReport, compared: ComparedReport | None) -> Iterator[_Row]:
    for program in report.programs:
        if compared is None:
            yield from (_Row(program, call.op, None, call) for call in program.calls)
        else:
            yield from (_Row(program, call.op, call, call.now) for call in compared.find(program).calls)


def _order(row: _Row) -> tuple[Decimal, Decimal, str, str, str]:
    """Return the place of a row: the biggest change first, then the dearest; unknown changes before all others."""
    unknown = row.call is not None and row.call.change is None and row.call.kind != "same"
    change = Decimal("Infinity") if unknown else abs(row.change or Decimal(0))
    money = row.money.expected if row.money is not None else Decimal(0)
    return -change, -money, *row.program.key, row.op


def _headline(report: CostReport, compared: ComparedReport | None) -> str:
    ranges = [each.total.usd for each in report.programs]
    known = [each for each in ranges if each is not None]
    expected = sum((each.expected for each in known), Decimal(0))
    is_bounded = len(known) == len(ranges) and all(each.most is not None for each in known)
    at_least = "" if is_bounded and all(each.is_whole for each in report.programs) else "at least "
    most = UNBOUNDED
    if is_bounded:
        most = dollars(sum((each.most or Decimal(0) for each in known), Decimal(0)), ROUND_CEILING)
    shown = f"{at_least}{dollars(expected)} (max {most})" if known else "unpriced"
    return f"### lmc cost: {shown}{_total_change(compared)}"


def _total_change(compared: ComparedReport | None) -> str:
    if compared is None:
        return ""
    change = compared.change
    if change is None:
        return ", change of dollars not known"
    return f" {arrow(change.own + change.prices, compared.before or Decimal(0))}"


def _programs(report: CostReport, compared: ComparedReport | None) -> Iterator[str]:
    lines: list[str] = []
    for program in report.programs:
        line = (
            f"- {_text(program.program)} on {_text(program.model)}, {program.rows.count:,} rows: "
            f"{total_usd(program)}, {calls(program)} calls, critical path {critical_path(program)}"
        )
        guessed = bases(program.calls)
        more = [*run_of(program), *([f"expected outputs: {guessed}"] if guessed else [])]
        line += "".join(f", {_text(each)}" for each in more)
        lines.append(line + ("" if compared is None else f"; {_changed(compared.find(program))}"))
    removed = () if compared is None else compared.removed
    lines += [f"- {_text(name)} on {_text(model)}: removed" for name, model in removed]
    yield "\n".join(lines[:_ROWS])
    if len(lines) > _ROWS:
        yield f"… and {len(lines) - _ROWS:,} other programs"
    if any(program.tokens == "estimated" for program in report.programs):
        yield ESTIMATED
    versions = sorted(
        {f"{each.price.source} {each.price.version or ''}".strip() for each in report.programs if each.price}
    )
    if versions:
        yield f"Prices: {', '.join(map(_text, versions[:3]))}"


def _changed(program: ComparedProgram) -> str:
    before = _text(earlier(program))
    return f"{before.rstrip()} {causes(program)}" if before else causes(program)


def _limits(limits: Sequence[CheckedLimit]) -> Iterator[str]:
    failed = [each for each in limits if each.fails or each.verdict == "new"]
    if failed:
        lines = [
            f"- **{each.verdict}**: {_text(each.name)} ({_text(each.scope)}): {_text(each.message)}" for each in failed
        ]
        yield "\n".join(["**Limits**", "", *lines[:_ROWS]])
        if len(lines) > _ROWS:
            yield f"… and {len(lines) - _ROWS:,} other limits"
    elif limits:
        yield f"All {len(limits)} limits are kept." if len(limits) > 1 else "The limit is kept."


def _table(rows: Sequence[_Row], *, programs: bool, is_compared: bool) -> Iterator[str]:
    if not rows:
        return
    heads = [*(["program"] if programs else []), "call", "line", "count", "in / cached", "out", "$ expected (max)"]
    if is_compared:
        heads.append("vs base")
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * 2}{' ---: |' * (len(heads) - 2)}"
    for row in rows:
        cells = [*([_text(f"{row.program.program} on {row.program.model}")] if programs else [])]
        cells += [_text(row.op), _text(str(row.now.place or "")) if row.now is not None else ""]
        if row.now is None:
            cells += ["0", "", "", ""]
        else:
            cells += [count(row.now.calls), prompts(row.program, row.now, is_cached=True)]
            cells += [outputs(row.program, row.now), usd(row.now.usd)]
        if is_compared:
            cells.append("" if row.call is None else _text(versus(row.call)))
        yield f"| {' | '.join(cells)} |"


def _unknown(report: CostReport) -> Iterator[str]:
    lines = [
        f"- unknown after {_text(str(each.place or 'a graph break'))}: {_text(each.cause)}"
        for program in report.programs
        for each in program.breaks
    ]
    lines += [
        f"- row {each.row} of {_text(program.program)} fails: {_text(each.error)}"
        for program in report.programs
        for each in program.failed
    ]
    lines += [
        f"- {program.failed_rows:,} rows of {_text(program.program)} fail in all"
        for program in report.programs
        if program.failed_rows > len(program.failed)
    ]
    if lines:
        more = [f"- and {len(lines) - _HINTS:,} more"] if len(lines) > _HINTS else []
        yield "\n".join(["**Not in the figures**", "", *lines[:_HINTS], *more])


def _hints(report: CostReport) -> Iterator[str]:
    lines = list(
        dict.fromkeys(
            f"- **{_text(hint.code)}** {_text(str(hint.place or ''))}: {_text(hint.message)}"
            for program in report.programs
            for hint in program.hints
        )
    )
    if lines:
        yield "\n".join(["**Hints**", "", *lines[:_HINTS]])
        if len(lines) > _HINTS:
            yield f"… and {len(lines) - _HINTS:,} other hints"


def _graph(rows: Sequence[_Row]) -> Iterator[str]:
    """Yield the calls that cost most as a chart: from each program to its calls."""
    paid = [row for row in rows if row.money is not None and row.money.expected][:_NODES]
    if not paid:
        return
    lines = ["flowchart LR"]
    programs: dict[tuple[str, str], str] = {}
    for place, row in enumerate(paid):
        key = row.program.key
        if key not in programs:
            programs[key] = f"p{len(programs)}"
            lines.append(f'  {programs[key]}["{_label(f"{key[0]} on {key[1]}")}"]')
        assert row.money is not None
        lines.append(f'  {programs[key]} --> c{place}["{_label(f"{row.op}  {dollars(row.money.expected)}")}"]')
    yield "\n".join(["```mermaid", *lines, "```"])


def _folded(lines: Sequence[str], count_of_all: int, room: int) -> str:
    """Return a collapsed table of as many of its lines as there is room for."""
    if not lines:
        return ""
    head = f"\n<details><summary>{count_of_all:,} other calls</summary>\n\n"
    end = "\n\n</details>\n"
    left = f"\n\n… and {count_of_all:,} more"
    kept, size = 2, len(head) + len(end) + len(left) + sum(len(line) + 1 for line in lines[:2])
    while kept < len(lines) and size + len(lines[kept]) + 1 <= room:
        size += len(lines[kept]) + 1
        kept += 1
    if kept == 2:
        return f"\n{count_of_all:,} other calls are not shown.\n" if room > 60 else ""
    missing = count_of_all - (kept - 2)
    return head + "\n".join(lines[:kept]) + (f"\n\n… and {missing:,} more" if missing else "") + end


def _joined(parts: Sequence[str]) -> str:
    """Return parts as paragraphs, without those for which there is no room."""
    text = ""
    for part in parts:
        if part and len(text) + len(part) + 2 <= MOST_CHARACTERS:
            text += part + "\n\n"
    return text.rstrip("\n") + "\n"


def _text(text: str) -> str:
    """Return a text in one line that has no Markdown and no HTML: neither emphasis nor links, mentions or tables."""
    return _SPECIAL.sub(_entity, one_line(text, _TEXT))


def _entity(found: re.Match[str]) -> str:
    """Return the entity of a character; a joiner of no width keeps @ and # from the name or number after it."""
    character = found.group()
    return f"&#{ord(character)};{'&#8204;' if character in '@#' else ''}"


def _label(text: str) -> str:
    return label(one_line(text, _TEXT // 2))

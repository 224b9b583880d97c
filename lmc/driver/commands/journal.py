"""``lmc journal``: the contents of a journal."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lmc.driver.batch.run_record import RunRecord
from lmc.driver.errors import UsageError
from lmc.ir.errors import InputError
from lmc.ir.wording import with_count
from lmc.runtime.journal import summary as summaries
from lmc.runtime.journal.summary import EndCounts, JournalSummary, Open

FORMAT = "lmc-journal"
VERSION = 1
_SHOWN = 10
"""Entries that are listed for people; JSON has all."""


def summary(path: str) -> JournalSummary:
    """Read a journal, which a run may be using. Raises ``UsageError``."""
    with _usage_errors():
        return summaries.summarize(path)


def forget_texts(path: str) -> None:
    """Remove the texts of a journal. Raises ``UsageError`` where its run is not over."""
    with _usage_errors():
        summaries.forget_texts(path)


def summary_data(found: JournalSummary, path: str) -> dict[str, Any]:
    """JSON data of a summary."""
    record = _record(found, path)
    run = None if record is None else {"program": record.program, "model": record.model_name}
    return {"format": FORMAT, "version": VERSION, **asdict(found), "record": run}


def summary_lines(found: JournalSummary, path: str) -> list[str]:
    """A summary for people."""
    record = _record(found, path)
    lines = [] if record is None else [f"program    {record.program} on {record.model_name}"]
    lines += [
        f"run        {found.state}",
        f"rows       {found.rows:,} finished, {found.failed_rows:,} of them failed",
        f"requests   {_counts(found.requests)}",
        f"tools      {_counts(found.calls)}",
        f"tokens     prompt {found.usage.prompt_tokens:,} ({found.usage.cached_tokens:,} cached, "
        f"{found.usage.cache_written_tokens:,} written to a cache), generated {found.usage.generated_tokens:,} "
        f"({found.usage.reasoning_tokens:,} reasoning)",
    ]
    if found.in_flight:
        prompt, most = sum(each.prompt_tokens for each in found.in_flight), sum(each.most for each in found.in_flight)
        lines.append(f"in flight  at most {prompt:,} prompt and {most:,} generated tokens may have been billed:")
        lines += _listed(found.in_flight)
    if found.blockers:
        lines.append("blockers   tools that write, whose calls began and have no result:")
        lines += _listed(found.blockers)
        names = sorted({each.tool for each in found.blockers if each.tool is not None})
        options = " ".join(f"--retry-writes {name}" for name in names)
        lines.append(f"           check what they wrote, then resume with {options}")
    if found.notes and found.state == "running":
        lines.append("again      on --resume, in rows that are not finished:")
        lines += [f"           {note}" for note in found.notes]
    return lines


def _listed(entries: Sequence[Open]) -> list[str]:
    lines = [
        f"           row {each.row}  {each.op if each.tool is None else f'{each.tool}()'}"
        + (f"  sample {each.sample}" if each.sample and each.tool is None else "")
        for each in entries[:_SHOWN]
    ]
    more = len(entries) - len(lines)
    return lines + ([f"           and {with_count(more, 'other')} (--json lists all)"] if more else [])


def _counts(ends: EndCounts) -> str:
    ended = f"{ends.finished:,} finished, {ends.failed:,} failed"
    return f"{ended}, {ends.in_flight:,} in flight, {ends.repeated:,} sent again"


def _record(found: JournalSummary, path: str) -> RunRecord | None:
    return RunRecord.from_json(found.record.encode(), path) if found.record else None


@contextmanager
def _usage_errors() -> Generator[None]:
    try:
        yield
    except InputError as error:
        raise UsageError(error.cause, remedy=error.remedy) from error

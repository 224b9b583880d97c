"""The contents of a journal in counts: rows, requests and calls by their ends, tokens, obstacles to a resumption."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from lmc.ir.errors import InputError
from lmc.ir.usage import Usage
from lmc.runtime.journal.file import BEGUN, DONE, FAILED, LOST, JournalFile, Listed, reading

MAX_LISTED = 100_000
"""Requests in flight that are listed at most."""


@dataclass(frozen=True)
class EndCounts:
    """Counts of requests, or of calls of tools, by their last ends. ``repeated`` counts how often one left again."""

    finished: int = 0
    failed: int = 0
    in_flight: int = 0
    repeated: int = 0


@dataclass(frozen=True)
class Open:
    """A request, or a call of a tool, that has begun and has no result.

    One attempt has ``prompt_tokens`` and ``most`` output tokens at most.
    """

    kind: str
    row: int
    op: str
    sample: int
    prompt_tokens: int
    most: int
    tool: str | None = None


@dataclass(frozen=True)
class JournalSummary:
    """The contents of a journal. ``blockers``, open calls of tools that write without a key, stop their rows."""

    state: str
    record: str
    rows: int
    failed_rows: int
    requests: EndCounts
    calls: EndCounts
    usage: Usage
    in_flight: list[Open] = field(default_factory=list[Open])
    blockers: list[Open] = field(default_factory=list[Open])
    notes: list[str] = field(default_factory=list[str])


def summarize(path: str) -> JournalSummary:
    """Read a journal, which a run may be using. Raises ``InputError``."""
    with closing(JournalFile(path, writable=False)) as file, reading(path):
        head = file.head()
        if not head:
            raise _nothing(path)
        rows, failed = file.count_rows()
        totals, again = file.totals(), file.again()
        entries = [] if head.get("state") == "finished" else file.open_entries()[:MAX_LISTED]
        listed = [_open(entry) for entry in entries]
        ended = [total for (kind, state), total in totals.items() if kind != "call" and state not in (BEGUN, LOST)]
        answered = Usage(calls=sum(count for count, _ in ended))
        return JournalSummary(
            state="texts removed" if "forgotten" in head else head.get("state", "unknown"),
            record=head.get("record", ""),
            rows=rows,
            failed_rows=failed,
            requests=_ends(totals, again, ("generate", "score"), sum(entry.kind != "call" for entry in entries)),
            calls=_ends(totals, again, ("call",), sum(entry.kind == "call" for entry in entries)),
            usage=sum((usage for _, usage in ended), answered),
            in_flight=[entry for entry in listed if entry.kind != "call"],
            blockers=[entry for entry, found in zip(listed, entries, strict=True) if _writes(found)],
            notes=[str(note) for note in json.loads(head.get("notes", "[]"))],
        )


def forget_texts(path: str) -> None:
    """Remove the texts of a journal whose run is over. Raises ``InputError`` where it is not, or is in use."""
    JournalFile(path, writable=False).close()  # it is there, and is one
    with closing(JournalFile(path, writable=True)) as file, reading(path):
        head = file.head()
        if not head:
            raise _nothing(path)
        if head.get("state") != "finished":
            raise InputError(
                f"the run of the journal {path} is not finished, and needs its texts to go on",
                remedy="resume it first, or delete the journal",
            )
        file.forget_texts()


def _nothing(path: str) -> InputError:
    return InputError(f"no run has begun in the journal {path}", remedy="name the journal of a run")


def _ends(
    totals: Mapping[tuple[str, int], tuple[int, Usage]], again: Mapping[str, int], kinds: tuple[str, ...], begun: int
) -> EndCounts:
    def count(state: int) -> int:
        return sum(totals[kind, state][0] for kind in kinds if (kind, state) in totals)

    return EndCounts(count(DONE), count(FAILED), begun, sum(again.get(kind, 0) for kind in kinds))


def _open(entry: Listed) -> Open:
    name = _parts(entry).get("name") if entry.kind == "call" else None
    tool = None if name is None else str(name)
    return Open(entry.kind, entry.row, entry.op, entry.number, entry.bound, entry.most, tool)


def _writes(entry: Listed) -> bool:
    parts = _parts(entry)
    return entry.kind == "call" and parts.get("effect") == "writes" and not parts.get("key")


def _parts(entry: Listed) -> Mapping[str, object]:
    try:
        parts = json.loads(entry.request)
    except (ValueError, RecursionError):
        return {}
    return parts if isinstance(parts, dict) else {}

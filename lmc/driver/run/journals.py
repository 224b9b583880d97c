"""Journals of runs: opened, compared with the run that goes on in them, and reported."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lmc.driver.run.result import Result
from lmc.driver.targets.service import Service
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.errors import BudgetError, LmcError, UnknownOutcomeError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.wording import with_count
from lmc.runtime.journal.engine import ReplayedEngine
from lmc.runtime.journal.journal import RunJournal

OpenJournal = Callable[[], RunJournal]
"""Opens the journal of a call, for its run."""
_LOGGER = logging.getLogger("lmc.journal")


def acquire_engine(home: Service, target: Target, journal: RunJournal | None, tokenizer: Tokenizer) -> Engine:
    """The engine of a run, in use until ``release_engine``. A replay has none: nothing is loaded or connected to."""
    if journal is not None and journal.is_replay:
        return ReplayedEngine(tokenizer, journal, target)
    return home.engines.acquire(target)


def release_engine(home: Service, engine: Engine) -> None:
    """End the use of an engine."""
    if not isinstance(engine, ReplayedEngine):
        home.engines.release(engine)


def is_blocked(result: Result) -> bool:
    """Return True if a row was stopped, and may go on in a later run: it is not finished."""
    error = result.error
    return isinstance(error, BudgetError | UnknownOutcomeError) or (isinstance(error, LmcError) and error.ends_batch)


def resumed_lines(journal: RunJournal) -> list[str]:
    """Lines for the user before a run goes on: what may have been billed, and what runs again."""
    requests = [entry for entry in journal.in_flight if entry.kind != "call"]
    lines: list[str] = []
    if requests:
        prompt, most = sum(entry.bound for entry in requests), sum(entry.most for entry in requests)
        were = with_count(len(requests), "request was", "requests were")
        lines.append(
            f"{were} in flight when the run ended, and may have been billed: at most {prompt:,} prompt and {most:,} "
            f"generated tokens (lmc journal {journal.shown} lists them)"
        )
    return [*lines, *journal.notes]


def log_resumed(journal: RunJournal) -> None:
    """Warn of what ``resumed_lines`` tells."""
    for line in resumed_lines(journal):
        _LOGGER.warning("%s", line)


def mark_row(journal: RunJournal, number: int, result: Result) -> None:
    """Write that a row is finished, unless it is blocked."""
    if not is_blocked(result):
        journal.row(number, None, failed=result.error is not None)

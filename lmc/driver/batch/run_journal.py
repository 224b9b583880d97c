"""The journal of a run: which program, inputs, model and settings it is of."""

from __future__ import annotations

import hashlib
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pydantic
from pydantic_core import to_json

from lmc.driver.batch.reached_source import reached_digest
from lmc.driver.batch.run_record import MAX_RECORD_BYTES, RunRecord, model_digest, source_digests, target_settings
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.run.start import Arguments
from lmc.driver.version import __version__
from lmc.frontend.program.function import JittedFunction
from lmc.ir.engine.target import HOSTED, Target
from lmc.ir.errors import InputError
from lmc.runtime.journal.journal import Resumption, RunJournal

JOURNAL_SUFFIX = ".lmcj"


def journals_by_default(target: Target) -> bool:
    """Return True for targets whose runs keep a journal beside the output: requests leave the machine."""
    return target.is_hosted


def open_journal(path: str) -> RunJournal:
    """Open the journal of a run that starts or goes on. Raises ``UsageError``."""
    try:
        return RunJournal.open(path)
    except InputError as error:
        raise UsageError(error.cause, remedy=error.remedy) from error


def replay_journal(path: str) -> RunJournal:
    """Open a journal that answers all requests. Raises ``UsageError``."""
    try:
        return RunJournal.replay(path)
    except InputError as error:
        raise UsageError(error.cause, remedy=error.remedy) from error


@lru_cache(maxsize=1)
def _as_json() -> pydantic.TypeAdapter[Target]:
    return pydantic.TypeAdapter(Target)


def replayed_target(journal: RunJournal) -> str | Target:
    """The target of the run that wrote a journal; a hosted one with all its settings. Raises ``UsageError``."""
    kept = journal.head.get("target")
    if kept is None:
        return RunRecord.from_json(journal.head.get("record", "").encode(), journal.shown).model_name
    try:
        target = _as_json().validate_json(kept) if len(kept) <= MAX_RECORD_BYTES else None
    except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
        target = None
    if target is None or not all(each.kind in HOSTED and each.path and each.remote for each in target.chain):
        raise UsageError(f"{journal.shown} names no target that can be replayed", remedy="restore the file")
    return target


def continues(journal: RunJournal, record: RunRecord, options: Options) -> bool:
    """Return True if the journal is of a run of ``record`` that is not finished."""
    if journal.is_fresh or journal.is_finished:
        return False
    before = RunRecord.from_json(journal.head.get("record", "").encode(), journal.shown)
    return _with_settings(record, options).difference(before) is None


def begin_journal(
    journal: RunJournal,
    record: RunRecord,
    options: Options,
    target: Target,
    *,
    resumption: Resumption | None,
    take: Callable[[Iterable[tuple[int, bool, str | None]]], Collection[int] | None] = lambda _: None,
) -> None:
    """Start the run of ``record``; with a ``resumption``, resume it.

    ``take`` gets the finished rows (number, failure, line), and returns those that need not run (None: those that did
    not fail).

    Raises ``UsageError`` for the journal of an unfinished run that is not resumed, and for one of another run.
    """
    record = _with_settings(record, options)
    try:
        if journal.is_fresh or resumption is None:
            kept = {"target": _as_json().dump_json(target).decode()} if target.is_hosted else {}
            journal.start({"record": record.to_json(), **kept})
            return
        before = RunRecord.from_json(journal.head.get("record", "").encode(), journal.shown)
        difference = record.difference(before)
        if difference is not None:
            raise UsageError(
                f"{journal.shown} can't be resumed: {difference}",
                remedy="run what the journal is of, or name another file for --journal",
            )
        journal.resume(resumption, done=take(journal.rows()))
    except UsageError:
        raise
    except InputError as error:
        raise UsageError(error.cause, remedy=error.remedy) from error


def _with_settings(record: RunRecord, options: Options) -> RunRecord:
    """Return a record with the options that requests depend on, but no row of output."""
    passes = {"disabled_passes": [*options.disabled_passes]} if options.disabled_passes else {}
    settings = {"level": options.level, **passes, "lmc": __version__}
    return replace(record, options={**record.options, **settings})


def record_call(
    function: JittedFunction, target: Target, options: Options, rows: Sequence[Arguments] | None
) -> RunRecord:
    """The record of a run that a program starts by itself, over ``rows`` (None: they are not known yet)."""
    settings: dict[str, Any] = {
        **target_settings(target),
        "seed": options.seed,
        "order_sections": options.order_sections,
    }
    digest = None if rows is None else _digest_of(rows)
    sources, model = _sources(function), model_digest(target)
    return RunRecord(function.name, sources, target.spec, model, settings, {}, "the batch", digest)


def _sources(function: JittedFunction) -> dict[str, str]:
    """Digests of what a program reaches in its file, and of the user's modules that this imports.

    In a notebook, of its source. The rest of a script may change: it is where ``resume=True`` is written.
    """
    file = None if function.location is None else function.location.file
    name = str(getattr(function.definition, "__qualname__", function.name)).partition(".")[0]
    if file is not None and file.endswith(".py") and (path := Path(file)).is_file():
        found = source_digests([file])
        reached = reached_digest(path.read_text("utf-8", "surrogateescape"), name)
        return found if reached is None else {**found, path.stem: reached}
    try:
        source = textwrap.dedent(inspect.getsource(function.definition))
    except (OSError, TypeError):
        source = function.name
    reached = reached_digest(source, name)
    return {function.name: reached or hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()}


def _digest_of(rows: Sequence[Arguments]) -> str | None:
    """A digest of arguments; None for those that JSON can't hold, which are compared by their requests alone."""
    try:
        data = to_json([[list(positional), dict(named)] for positional, named in rows])
    except Exception:  # objects of the user's, whose serializers raise what they like
        return None
    return hashlib.sha256(data).hexdigest()

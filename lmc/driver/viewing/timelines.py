"""Timelines of runs (``lmc run --timeline``) that are shown beside a program: read, and matched against it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from lmc.backend.plan import Plan
from lmc.backend.schedule.fingerprints import plan_digest
from lmc.driver.batch.lines import shown_path
from lmc.driver.batch.run_record import rows_digest, source_digests
from lmc.driver.errors import TimelineMismatchError, UsageError
from lmc.ir.errors import InputError
from lmc.report.text import one_line
from lmc.report.timeline import NoHeaderError, RunTimeline, read_timeline

_HEADER_LINES = 2
"""The header ends with this line of a file."""
_MAX_FILE = 200
_REMEDY = "name a timeline of this program, or record the run again: lmc run PROGRAM --timeline FILE"


def read(path: str) -> RunTimeline:
    """Read a timeline. Raises ``UsageError`` for a file that can't be read, ``InputError`` for one that holds none."""
    try:
        with Path(path).open("rb") as lines:
            return read_timeline(lines, path)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", remedy=_REMEDY) from error


def is_begun(path: str) -> bool:
    """Return False for a timeline that a run has yet to write: there is no file, or no header in it."""
    try:
        with Path(path).open("rb") as lines:
            read_timeline(islice(lines, _HEADER_LINES), path)
    except (FileNotFoundError, NoHeaderError):
        return False
    except (OSError, InputError):  # whoever reads it says so
        return True
    return True


def check_sources(found: RunTimeline, path: str, spec: str) -> None:
    """Raise ``TimelineMismatchError`` where a timeline is not of the program ``spec``, or of other sources of it."""
    sources, own = found.header.sources, source_digests([spec])
    for name in own:
        if name not in sources:
            raise TimelineMismatchError(
                f"{path} is a timeline of the program {found.header.program!r:.80}", remedy=_REMEDY
            )
        if sources[name] != own[name]:
            raise TimelineMismatchError(
                f"the source of {name} has changed since {path} was recorded", remedy="record the run again"
            )


def rows_of(found: RunTimeline, path: str, data: str | None, notices: list[str]) -> str | None:
    """Return the file of rows to show: ``data``, or where it is not given the file of the run, if that is still there.

    If the run had rows that can't be shown, ``notices`` tells why. Raises ``TimelineMismatchError`` where ``data``
    holds other rows than the run had.
    """
    rows, file = found.header.rows, found.header.input
    if data is not None:
        own = rows_digest(data)
        if rows is not None and own is not None and own != rows:
            raise TimelineMismatchError(
                f"{path} was recorded with other rows than those of {shown_path(data)}",
                remedy="name the rows of the run, or leave out --input",
            )
        return data
    if file is None:
        return None
    if rows is None:
        cause = "came from a pipe"
    elif Path(file).is_absolute() or not Path(file).is_file():
        cause = "are not here"
    elif rows_digest(file) != rows:
        cause = f"have changed since {path} was recorded"
    else:
        return file
    notices.append(
        f"there is no plan of the run: its rows, {one_line(file, _MAX_FILE)}, {cause}; name them with --input"
    )
    return None


def check_plan(found: RunTimeline, path: str, plan: Plan) -> None:
    """Raise ``TimelineMismatchError`` where no instance of the run had ``plan``, but another one."""
    if plan.name != found.header.program:
        raise TimelineMismatchError(
            f"{path} is a timeline of the program {found.header.program!r:.80}, not of {plan.name!r}", remedy=_REMEDY
        )
    if found.plans and plan_digest(plan) not in {each.digest for each in found.plans}:
        raise TimelineMismatchError(
            f"{path} was recorded with another plan of {plan.name!r}",
            remedy=f"give the options and arguments of the run, for one --model {found.header.target!r:.80}",
        )

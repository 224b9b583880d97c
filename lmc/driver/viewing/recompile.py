"""Compilation in a process of its own: no module of the user's, and no state of an import, lives on to the next one.

The process is forked from one that has imported lmc and nothing of the user's, so it starts at once.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lmc.driver.errors import ProgramImportError, TimelineMismatchError, UsageError
from lmc.driver.programs import is_library, program_file
from lmc.driver.run.result import describe_error
from lmc.driver.targets.defaults import GRAMMAR_CACHE_MB
from lmc.driver.viewing import timelines, view
from lmc.ir.errors import LmcError

MAX_FILES = 1_000
"""Files read by a compilation that are watched."""
_CONTEXT = multiprocessing.get_context("forkserver")
_PRELOADED = [__name__, "lmc.frontend.capture", "lmc.program"]
"""The last two are imported by compilations only, and take half their time."""


@dataclass(frozen=True, slots=True)
class ViewJob:
    """A view to make: the arguments of ``view.run``. Of a timeline without a program, it is name and timeline."""

    name: str
    given: dict[str, Any]
    fixed: list[str]
    data: str | None
    timeline: str | None
    kv_tokens: int
    batch: int
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as ``lmc compile`` prints it: its place, its message, and the frames of the user's files.

    ``is_mismatch``: the program is good, but its timeline is that of another one, for example before an edit.
    """

    place: str
    message: str
    trace: str = ""
    is_mismatch: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Problem:
        """Return the words for an error."""
        place = f"{error.location}" if isinstance(error, LmcError) and error.location is not None else ""
        if isinstance(error, LmcError):
            trace = error.traceback if isinstance(error, ProgramImportError) else ""
        else:
            trace = "".join(traceback.format_exception(error))
        message = describe_error(error).removeprefix(f"{place}: ")
        return cls(place, message, trace, isinstance(error, TimelineMismatchError))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The JSON of a view, or the reason why there is none; and the files that the compilation read."""

    view: str | None
    problem: Problem | None
    files: tuple[str, ...] = ()


class Compilation:
    """A running compilation."""

    def __init__(self, job: ViewJob) -> None:
        self._results, results = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_work, args=(results, job), daemon=True)
        self._process.start()
        results.close()

    def outcome(self, seconds: float) -> Outcome | None:
        """Return its outcome, or None if it still runs after so many seconds."""
        if not self._results.poll(seconds):
            return None
        try:
            found = json.loads(self._results.recv_bytes())
        except EOFError:
            self._process.join()
            return Outcome(None, Problem("", f"the compilation ended with exit code {self._process.exitcode}"))
        problem = None if found["problem"] is None else Problem(**found["problem"])
        return Outcome(found["view"], problem, tuple(found["files"]))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._results.close()


def start_server() -> None:
    """Start the process from which compilations are forked. Ctrl-C ends neither it nor them: they end with this one."""
    _CONTEXT.set_forkserver_preload(_PRELOADED)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        from multiprocessing import forkserver

        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


def _work(results: Connection, job: ViewJob) -> None:
    """Compile in the new process, and send the outcome."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.dont_write_bytecode = True  # a view writes nothing
    os.environ[GRAMMAR_CACHE_MB] = "0"
    os.dup2(2, 1)  # as for lmc compile: a program's prints are no output
    read = _files_read()
    found: dict[str, Any] = {"view": None, "problem": None}
    try:
        found["view"] = view.FORMATS["json"](_view(job, job.timeline)).rstrip()
    except BaseException as error:
        found["problem"] = asdict(Problem.of(error))
        missing = [each.name for each in _causes(error) if isinstance(each, ModuleNotFoundError) and each.name]
        read.extend(f"{Path(folder, *name.split('.'))}.py" for name in missing for folder in sys.path[:1])
    folder = str(Path(program_file(job.name)).resolve().parent) + os.sep
    found["files"] = [file for file in dict.fromkeys(read) if _is_own(file, folder)][:MAX_FILES]
    results.send_bytes(json.dumps(found).encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the user's do not keep it


def _view(job: ViewJob, timeline: str | None) -> view.CompiledView:
    room = view.Room(job.kv_tokens, job.batch)
    is_alone = timeline == job.name
    for file in (program_file(job.name), job.data, timeline):
        if file is not None and Path(file).is_fifo():
            raise UsageError(f"{file} is a pipe, which can't be read again on a change", remedy="name a file")
    if timeline is not None and not timelines.is_begun(timeline):
        return view.of_awaited(timeline, None if is_alone else _view(job, None))
    if is_alone:
        return view.run(job.name, job.given, job.fixed, data=job.data, programs=job.programs, room=room)
    try:
        return view.run(job.name, job.given, job.fixed, data=job.data, timeline=timeline, room=room)
    except TimelineMismatchError:
        _view(job, None)  # an error of the program comes first; and all that it reads is watched
        raise


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _files_read() -> list[str]:
    """Return a list to which all files that are opened from now on are added, but for those that are written."""
    read: list[str] = []
    written: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or len(arguments) < 3 or not isinstance(arguments[0], str | os.PathLike):
            return
        file = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100 - the file as it is named, through links
        if isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            written.add(file)
        elif file not in written:
            read.append(_source_of(file))

    sys.addaudithook(note)
    return read


def _source_of(file: str) -> str:
    """Return the source of a file of byte code; another file as it is."""
    if not file.endswith(".pyc"):
        return file
    try:
        return importlib.util.source_from_cache(file)
    except ValueError:
        return file


def _is_own(file: str, folder: str) -> bool:
    """Return True for a file that a change of the user's may change: a module, or a file below the program's folder."""
    return not is_library(file) and (file.endswith(".py") or file.startswith(folder))

"""The timeline of a run (``--timeline``): Chrome trace events, written while the run goes on.

The file is a JSON array with one event a line, so that a file that is cut anywhere still holds all events before the
cut. The observer only keeps what it is given and the time. A thread makes text of that, many events at a time: that
takes half the time of making it in between the steps of the run. ``lmc.report.timeline`` documents the events.
"""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from lmc.backend.plan import Plan
from lmc.backend.schedule.fingerprints import plan_digest
from lmc.driver.batch.run_record import rows_digest, source_digests
from lmc.driver.errors import UsageError
from lmc.driver.version import __version__
from lmc.ir.core import Op
from lmc.ir.engine.observing import AskedRequest, BegunCall, CallEnded, ObservedStep, OnStep, RequestEnded
from lmc.ir.engine.protocol import Generation, Pin, Score
from lmc.ir.engine.target import Target
from lmc.ir.errors import LmcError, RequestCancelledError
from lmc.ir.usage import Timing
from lmc.report.timeline import ENGINE, FORMAT, REQUESTS, TOOLS, VERSION

FLUSH_SECONDS = 0.5
_PATIENCE = 1.0
"""Seconds that the end of a run waits for cancelled requests to end in the engine."""

_UNFINISHED = object()
"""The outcome of a request or a call that did not end."""
_PROCESSES = {REQUESTS: "requests", TOOLS: "tools", ENGINE: "engine"}
_PHASES = tuple(f'"name":"{name}","cat":"phase"}},\n' for name in ("queue", "prefill", "decode"))


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    """A name as JSON text; no reader takes lone surrogates."""
    return json.dumps(_sound(name))


def _sound(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def timeline_header(program: str, specs: Iterable[str], target: Target, rows: str | None) -> dict[str, Any]:
    """Return the data of the first event: the program, its sources, target and rows, by names and digests.

    ``specs`` are the program and the saved plan, and ``rows`` the input file, as the command line names them. Raises
    ``UsageError`` where the input can't be read.
    """
    kind, colon, path = target.spec.partition(":")
    return {
        "format": FORMAT,
        "version": VERSION,
        "lmc": __version__,
        "program": _sound(program),
        "sources": {_sound(name): digest for name, digest in source_digests(specs).items()},
        "target": kind + colon + _shown(path) if path else kind,
        "input": None if rows is None else _shown(rows),
        "rows": None if rows is None else rows_digest(rows),
    }


class TimelineFile:
    """An ``Observer`` that writes what it sees to a file. A context manager: its end completes the file.

    Raises ``UsageError`` where the file can't be opened. If it can't be written later, the run goes on, and ``note``
    tells it.
    """

    def __init__(self, path: str, header: Mapping[str, Any]) -> None:
        self.note: str | None = None
        self._path = path
        self._taken: deque[Plan | ObservedStep | _Record] = deque()
        self._open: list[_Record] = []
        """Records that had not ended at the last writing."""
        self._closing = threading.Event()
        self._closed = False
        try:
            self._file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - closed at the end
        except OSError as error:
            remedy = "name a file in a folder you may write to"
            raise UsageError(f"{path} can't be written: {error.strerror}", remedy=remedy) from error
        self._text = _Text(header, time.perf_counter())
        self._write()
        self._thread = threading.Thread(target=self._run, name="lmc-timeline", daemon=True)
        self._thread.start()

    def __enter__(self) -> TimelineFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(interrupted=kind is not None)

    def begin_plan(self, plan: Plan) -> None:
        """Instances of ``plan`` are about to run."""
        self._taken.append(plan)

    def begin_request(self, asked: AskedRequest) -> RequestEnded:
        """Take a request that is submitted now."""
        return self._begin(asked)

    def begin_call(self, begun: BegunCall) -> CallEnded:
        """Take a call that starts now."""
        return self._begin(begun)

    def begin_steps(self) -> OnStep:
        """Return the callback for the steps of the engine."""
        steps = self._begin(None)
        return lambda step: steps(None) if step is None else self._taken.append(step)

    def _begin(self, begun: AskedRequest | BegunCall | None) -> _Record:
        record = _Record()
        record.begun = begun
        record.start = time.perf_counter()
        self._taken.append(record)
        return record

    def close(self, *, interrupted: bool = False) -> None:
        """Complete the file: nothing is taken from here on. Requests and calls that do not end are written as such."""
        if self._closed:
            return
        self._closed = True
        self._closing.set()
        self._thread.join()
        until = time.monotonic() + _PATIENCE
        while self._open and time.monotonic() < until:
            time.sleep(0.002)
            self._write_taken()
        for record in self._open:
            record(_UNFINISHED)
            self._text.take(record)
        self._text.end(time.perf_counter(), interrupted=interrupted)
        self._write()
        self._file.close()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closing.wait(FLUSH_SECONDS)
            self._write_taken()

    def _write_taken(self) -> None:
        records = self._open
        while self._taken:
            taken = self._taken.popleft()
            if isinstance(taken, _Record):
                records.append(taken)
            elif isinstance(taken, ObservedStep):
                self._text.step(taken)
            else:
                self._text.plan(taken)
        self._open = []
        ended: list[_Record] = []
        for record in records:
            (ended if record.end else self._open).append(record)
        ended.sort(key=attrgetter("end"))
        for record in ended:
            self._text.take(record)
        self._write()

    def _write(self) -> None:
        data = self._text.taken()
        if self.note is not None:
            return
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.note = f"{self._path} can't be written any further: {error.strerror}; the timeline ends there"


class _Record:
    """A request, a call or the steps of an engine (``begun`` is None), which ends with a call. Made at least cost."""

    begun: AskedRequest | BegunCall | None
    start: float
    end = 0.0
    outcome: Any = None
    """An answer, an error, or ``_UNFINISHED``; of a call that returned, None."""

    def __call__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.end = time.perf_counter()  # now it has ended


class _Lanes:
    """Numbers from 1 on for intervals: no two that overlap have the same. Takes them about in the order of their ends.

    An interval goes where the last one ended most recently before it starts: that needs the fewest lanes. A new one
    gets a name among the ``lines``.
    """

    def __init__(self, process: int, lines: list[str]) -> None:
        self._process = process
        self._lines = lines
        self._ends: list[tuple[int, int]] = []

    def take(self, start: int, end: int) -> int:
        """Return the lane of an interval."""
        ends = self._ends
        if ends and ends[-1][0] <= start:
            lane = ends[-1][1]
            ends[-1] = end, lane
            return lane
        place = bisect_right(ends, start, key=itemgetter(0))
        if place:
            lane = ends.pop(place - 1)[1]
        else:
            lane = len(ends) + 1
            name = "request" if self._process == REQUESTS else "tool"
            self._lines.append(_name(self._process, lane, "thread_name", f"{name} {lane}"))
        insort(ends, (end, lane))
        return lane


class _Text:
    """Makes text: each event is a line that ends with a comma. Times count from ``origin``, in microseconds."""

    def __init__(self, header: Mapping[str, Any], origin: float) -> None:
        self._origin = origin
        self._lines = [
            "[\n",
            f'{{"ph":"M","pid":0,"tid":0,"ts":0,"name":"{FORMAT}","args":{json.dumps(header)}}},\n',
            *(_name(process, 0, "process_name", name) for process, name in _PROCESSES.items()),
            _name(ENGINE, 1, "thread_name", "steps"),
        ]
        self._requests = _Lanes(REQUESTS, self._lines)
        self._tools = _Lanes(TOOLS, self._lines)
        self._plans: set[Plan] = set()
        self._places: dict[Op | None, str] = {None: ""}
        """The fields that name an op of the plans: plan, number of the op in it, wave."""
        self._counts = dict.fromkeys(_PROCESSES, 0)

    def taken(self) -> bytes:
        """Return the text since the last time."""
        data = "".join(self._lines).encode("ascii")
        self._lines.clear()
        return data

    def end(self, now: float, *, interrupted: bool) -> None:
        """Take the end: the last event, and the end of the file."""
        args = json.dumps(
            {
                "requests": self._counts[REQUESTS],
                "tools": self._counts[TOOLS],
                "steps": self._counts[ENGINE],
                "ended": self._micros(now),
                "interrupted": interrupted,
            }
        )
        self._lines.append(f'{{"ph":"M","pid":0,"tid":0,"ts":0,"name":"end","args":{args}}}\n]\n')

    def plan(self, plan: Plan) -> None:
        """Take a plan; only its first time counts."""
        if plan in self._plans:
            return
        number = len(self._plans)
        self._plans.add(plan)
        for position, (op, wave) in enumerate(plan.op_waves().items()):
            self._places[op] = f',"plan":{number},"at":{position},"wave":{wave}'
        args = f'{{"plan":{number},"name":{_quoted(plan.name)},"digest":"{plan_digest(plan)}"}}'
        self._lines.append(f'{{"ph":"M","pid":0,"tid":0,"ts":0,"name":"plan","args":{args}}},\n')

    def take(self, record: _Record) -> None:
        """Take a request or a call that ended, or steps."""
        begun = record.begun
        if isinstance(begun, AskedRequest):
            self._request(begun, record)
        elif begun is not None:
            self._call(begun, record)

    def _micros(self, seconds: float) -> int:
        return int((seconds - self._origin) * 1e6)

    def _request(self, asked: AskedRequest, record: _Record) -> None:
        """A request, and its phases inside of it. Most of the cost of a recording is here."""
        self._counts[REQUESTS] += 1
        kind, op, op_id, row, number, ready, held = asked
        origin, started = self._origin, record.start
        start, end = int((started - origin) * 1e6), int((record.end - origin) * 1e6)
        lane = self._requests.take(start, end)
        result, timing = _result(record.outcome)
        phases, waited = "", "limit" if held else None
        if timing is not None:
            head = f'{{"ph":"X","pid":{REQUESTS},"tid":{lane},"ts":'
            points = [start]
            result += f',"computed":{timing.computed_tokens}'
            for name, mark in (("admitted", timing.admitted), ("first", timing.first_token)):
                if mark is not None:
                    point = min(max(int((mark - origin) * 1e6), start), end)
                    phases += f'{head}{points[-1]},"dur":{point - points[-1]},{_PHASES[len(points) - 1]}'
                    result += f',"{name}":{point}'
                    points.append(point)
            if phases:
                phases += f'{head}{points[-1]},"dur":{end - points[-1]},{_PHASES[len(points) - 1]}'
            if timing.obstacle is not None:
                longer = timing.admitted is None or timing.admitted - started >= started - ready
                waited = timing.obstacle if longer or not held else waited
        if waited is not None:
            result += f',"wait":"{waited}"'
        self._lines.append(
            f'{{"ph":"X","pid":{REQUESTS},"tid":{lane},"ts":{start},"dur":{end - start},"name":{_quoted(op_id)},'
            f'"cat":"{kind}","args":{{"row":{"null" if row is None else row},"sample":{number}{self._places[op]},'
            f'"ready":{int((ready - origin) * 1e6)}{result}}}}},\n{phases}'
        )

    def _call(self, begun: BegunCall, record: _Record) -> None:
        self._counts[TOOLS] += 1
        name, op, op_id, row, line, early = begun
        start, end = self._micros(record.start), self._micros(record.end)
        lane = self._tools.take(start, end)
        args = f'"row":{"null" if row is None else row}{self._places[op]}'
        args += "" if op_id is None else f',"op":{_quoted(op_id)}'
        args += "" if line is None else f',"line":{line}'
        args += ',"early":true' if early else ""
        if record.outcome is _UNFINISHED:
            args += ',"unfinished":true'
        elif record.outcome is not None:
            args += f',"error":{_quoted(type(record.outcome).__name__)}'
        self._lines.append(
            f'{{"ph":"X","pid":{TOOLS},"tid":{lane},'
            f'"ts":{start},"dur":{end - start},"name":{_quoted(name)},"cat":"tool","args":{{{args}}}}},\n'
        )

    def step(self, step: ObservedStep) -> None:
        """Take a step, and the counter beside it."""
        self._counts[ENGINE] += 1
        start, end = self._micros(step.start), self._micros(step.end)
        self._lines.append(
            f'{{"ph":"X","pid":{ENGINE},"tid":1,"ts":{start},"dur":{end - start},"name":"step","cat":"step","args":'
            f'{{"rows":{step.rows},"prefill":{step.prefilled},"running":{step.running},"waiting":{step.waiting},'
            f'"found":{step.found},"evicted":{step.evicted},"preempted":{step.preempted}}}}},\n'
            f'{{"ph":"C","pid":{ENGINE},"tid":1,"ts":{end},"name":"sequences","args":'
            f'{{"running":{step.running},"waiting":{step.waiting}}}}},\n'
        )


def _result(outcome: Any) -> tuple[str, Timing | None]:
    """The fields of the end of a request, and its times."""
    if isinstance(outcome, Generation):
        return (
            f',"prompt":{outcome.prompt_tokens},"cached":{outcome.cached_tokens}'
            f',"generated":{outcome.generated_tokens},"finish":"{outcome.finish_reason}"',
            outcome.timing,
        )
    if isinstance(outcome, Score | Pin):
        prompt = outcome.prompt_tokens if isinstance(outcome, Score) else outcome.length
        return f',"prompt":{prompt},"cached":{outcome.cached_tokens}', outcome.timing
    return (',"unfinished":true', None) if outcome is _UNFINISHED else _failure(outcome)


def _failure(error: BaseException) -> tuple[str, Timing | None]:
    text = f',"error":{_quoted(type(error).__name__)}'
    if not isinstance(error, LmcError):
        return text, None
    if error.usage is not None and not isinstance(error, RequestCancelledError):
        usage = error.usage
        text += f',"prompt":{usage.prompt_tokens},"cached":{usage.cached_tokens},"generated":{usage.generated_tokens}'
    elif error.timing is not None:
        text += f',"cached":{error.timing.cached_tokens}'
    return text, error.timing


def _name(process: int, thread: int, what: str, name: str) -> str:
    return f'{{"ph":"M","pid":{process},"tid":{thread},"ts":0,"name":"{what}","args":{{"name":"{name}"}}}},\n'


def _shown(path: str) -> str:
    """A path as it is named; of an absolute one, the part below the current folder or the name alone."""
    named, folder = Path(path), Path.cwd()
    if not named.is_absolute():
        return _sound(path)
    return _sound(named.relative_to(folder).as_posix() if named.is_relative_to(folder) else named.name)

"""The timeline of a run (``--timeline``): Chrome trace events, written while the run goes on.

The file is a JSON array with one event a line, so that a file that is cut anywhere still holds all events before the
cut. Each event becomes text at once, as objects that are kept cost the garbage collector more than the text; a thread
writes it. ``lmc.report.timeline`` documents the events.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
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
from lmc.ir.errors import LmcError
from lmc.ir.usage import Timing
from lmc.report.timeline import ENGINE, FORMAT, REQUESTS, TOOLS, VERSION

FLUSH_SECONDS = 0.5
_PATIENCE = 1.0
"""Seconds that the end of a run waits for cancelled requests to end in the engine."""

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
        self._start = time.perf_counter()
        self._texts: deque[str | Callable[[], str]] = deque()
        self._open: set[_Request | _Call | _Steps] = set()
        self._lanes = {REQUESTS: _Lanes(REQUESTS, self._texts), TOOLS: _Lanes(TOOLS, self._texts)}
        self._plans: dict[Plan, int] = {}
        self._closing = threading.Event()
        self._closed = False
        try:
            self._file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - closed at the end
        except OSError as error:
            remedy = "name a file in a folder you may write to"
            raise UsageError(f"{path} can't be written: {error.strerror}", remedy=remedy) from error
        self._text = _Text(self._start)
        self._write(["[\n", *self._text.head(header)])
        self._thread = threading.Thread(target=self._run, name="lmc-timeline", daemon=True)
        self._thread.start()

    def __enter__(self) -> TimelineFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(interrupted=kind is not None)

    def begin_plan(self, plan: Plan) -> None:
        """Instances of ``plan`` are about to run."""
        if plan not in self._plans:
            number = self._plans.setdefault(plan, len(self._plans))
            self._text.enter(plan, number)
            self._texts.append(lambda: _plan_event(plan, number))

    def begin_request(self, asked: AskedRequest) -> RequestEnded:
        """Take a request that is submitted now."""
        lane = self._lanes[REQUESTS].take()
        request = _Request(self, asked, lane, time.perf_counter())
        self._open.add(request)
        return request

    def begin_call(self, begun: BegunCall) -> CallEnded:
        """Take a call that starts now."""
        lane = self._lanes[TOOLS].take()
        call = _Call(self, begun, lane, time.perf_counter())
        self._open.add(call)
        return call

    def begin_steps(self) -> OnStep:
        """Return the callback for the steps of the engine."""
        steps = _Steps(self)
        self._open.add(steps)
        return steps

    def step(self, steps: _Steps, step: ObservedStep | None) -> None:
        """Take a step of the engine; None ends ``steps``."""
        if step is None:
            self._open.discard(steps)
        else:
            self._texts.append(self._text.step(step))

    def ended(self, record: _Request | _Call, process: int) -> None:
        """Take the end of a request or a call."""
        self._lanes[process].give_back(record.lane)
        self._texts.append(self._text.of(record))
        self._open.discard(record)

    def close(self, *, interrupted: bool = False) -> None:
        """Complete the file: nothing is taken from here on. Requests and calls that do not end are written as such."""
        if self._closed:
            return
        self._closed = True
        until = time.monotonic() + _PATIENCE
        while self._open and time.monotonic() < until:
            time.sleep(0.002)
        now = time.perf_counter()
        unfinished = [record for record in self._open.copy() if isinstance(record, _Request | _Call) and not record.end]
        for record in sorted(unfinished, key=lambda record: record.start):
            record.end = now
            self._texts.append(self._text.of(record))
        self._closing.set()
        self._thread.join()
        self._write([self._text.end(now, interrupted=interrupted)])
        self._file.close()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closing.wait(FLUSH_SECONDS)
            self._write(self._taken())

    def _taken(self) -> Iterator[str]:
        while self._texts:
            text = self._texts.popleft()
            yield text if isinstance(text, str) else text()

    def _write(self, texts: Iterable[str]) -> None:
        data = "".join(texts).encode("ascii")
        if self.note is not None:
            return
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.note = f"{self._path} can't be written any further: {error.strerror}; the timeline ends there"


class _Lanes:
    """Numbers from 1 on for what overlaps in time, the lowest that is free. Thread-safe: each call is atomic.

    What takes a lane starts after that, and what gives it back has ended before, so nothing on a lane overlaps. A new
    one gets a name among the ``texts``.
    """

    def __init__(self, process: int, texts: deque[str | Callable[[], str]]) -> None:
        self._process = process
        self._texts = texts
        self._free: list[int] = []
        self._next = count(1)

    def take(self) -> int:
        """Take a free lane."""
        try:
            return heapq.heappop(self._free)
        except IndexError:
            lane = next(self._next)
            name = "request" if self._process == REQUESTS else "tool"
            self._texts.append(_name(self._process, lane, "thread_name", f"{name} {lane}"))
            return lane

    def give_back(self, lane: int) -> None:
        """Release a lane."""
        heapq.heappush(self._free, lane)


@dataclass(eq=False, slots=True)
class _Request:
    """A request, which ends with a call: as the callback of its future."""

    timeline: TimelineFile
    asked: AskedRequest
    lane: int
    start: float
    end: float = 0.0
    future: Future[Any] | None = None

    def __call__(self, future: Future[Any]) -> None:
        self.end = time.perf_counter()
        self.future = future
        self.timeline.ended(self, REQUESTS)


@dataclass(eq=False, slots=True)
class _Call:
    """A call of a function, which ends with a call."""

    timeline: TimelineFile
    begun: BegunCall
    lane: int
    start: float
    end: float = 0.0
    error: BaseException | None = None
    is_over: bool = False

    def __call__(self, error: BaseException | None) -> None:
        self.end = time.perf_counter()
        self.error = error
        self.is_over = True
        self.timeline.ended(self, TOOLS)


@dataclass(eq=False, slots=True)
class _Steps:
    """The steps of an engine until the end of the run."""

    timeline: TimelineFile

    def __call__(self, step: ObservedStep | None) -> None:
        self.timeline.step(self, step)


@dataclass(slots=True)
class _Text:
    """Makes text of records: each event is a line that ends with a comma. Times count from ``origin``, in microseconds.

    ``places`` holds for each op of the plans the fields that name it: plan, number of the op in it, wave. Thread-safe.
    """

    origin: float
    places: dict[Op, str] = field(default_factory=dict[Op, str])
    counts: dict[int, count[int]] = field(default_factory=lambda: {each: count() for each in (REQUESTS, TOOLS, ENGINE)})

    def head(self, header: Mapping[str, Any]) -> Iterator[str]:
        """The first events."""
        yield f'{{"ph":"M","pid":0,"tid":0,"ts":0,"name":"{FORMAT}","args":{json.dumps(header)}}},\n'
        for process, name in ((REQUESTS, "requests"), (TOOLS, "tools"), (ENGINE, "engine")):
            yield _name(process, 0, "process_name", name)
        yield _name(ENGINE, 1, "thread_name", "steps")

    def end(self, now: float, *, interrupted: bool) -> str:
        """The last event, and the end of the file."""
        args = {
            "requests": next(self.counts[REQUESTS]),
            "tools": next(self.counts[TOOLS]),
            "steps": next(self.counts[ENGINE]),
            "ended": self._micros(now),
            "interrupted": interrupted,
        }
        return f'{{"ph":"M","pid":0,"tid":0,"ts":0,"name":"end","args":{json.dumps(args)}}}\n]\n'

    def enter(self, plan: Plan, number: int) -> None:
        """Learn the ops of a plan."""
        for position, (op, wave) in enumerate(plan.op_waves().items()):
            self.places[op] = f',"plan":{number},"at":{position},"wave":{wave}'

    def of(self, record: _Request | _Call) -> str:
        """The events of a request or a call that ended."""
        return self._request(record) if isinstance(record, _Request) else self._call(record)

    def _micros(self, seconds: float) -> int:
        return int((seconds - self.origin) * 1e6)

    def _request(self, record: _Request) -> str:
        """A request, and its phases inside of it. Most of the cost of a recording is here."""
        next(self.counts[REQUESTS])
        kind, op, op_id, row, number, ready, held = record.asked
        lane, origin = record.lane, self.origin
        start, end = int((record.start - origin) * 1e6), int((record.end - origin) * 1e6)
        result, timing = _result(record.future)
        head = f'{{"ph":"X","pid":{REQUESTS},"tid":{lane},"ts":'
        phases, waited = "", "limit" if held else None
        if timing is not None:
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
                longer = timing.admitted is None or timing.admitted - record.start >= record.start - ready
                waited = timing.obstacle if longer or not held else waited
        if waited is not None:
            result += f',"wait":"{waited}"'
        return (
            f'{head}{start},"dur":{end - start},"name":{_quoted(op_id)},"cat":"{kind}",'
            f'"args":{{"row":{"null" if row is None else row},"sample":{number}{"" if op is None else self.places[op]},'
            f'"ready":{int((ready - origin) * 1e6)}{result}}}}},\n{phases}'
        )

    def _call(self, record: _Call) -> str:
        next(self.counts[TOOLS])
        name, op, op_id, row, line, early = record.begun
        start, end = self._micros(record.start), self._micros(record.end)
        args = f'"row":{"null" if row is None else row}{"" if op is None else self.places[op]}'
        args += "" if op_id is None else f',"op":{_quoted(op_id)}'
        args += "" if line is None else f',"line":{line}'
        args += ',"early":true' if early else ""
        if record.error is not None:
            args += f',"error":{_quoted(type(record.error).__name__)}'
        args += "" if record.is_over else ',"unfinished":true'
        return (
            f'{{"ph":"X","pid":{TOOLS},"tid":{record.lane},'
            f'"ts":{start},"dur":{end - start},"name":{_quoted(name)},"cat":"tool","args":{{{args}}}}},\n'
        )

    def step(self, step: ObservedStep) -> str:
        """A step, and the counter beside it."""
        next(self.counts[ENGINE])
        start, end = self._micros(step.start), self._micros(step.end)
        return (
            f'{{"ph":"X","pid":{ENGINE},"tid":1,"ts":{start},"dur":{end - start},"name":"step","cat":"step","args":'
            f'{{"rows":{step.rows},"prefill":{step.prefilled},"running":{step.running},"waiting":{step.waiting},'
            f'"found":{step.found},"evicted":{step.evicted},"preempted":{step.preempted}}}}},\n'
            f'{{"ph":"C","pid":{ENGINE},"tid":1,"ts":{end},"name":"sequences","args":'
            f'{{"running":{step.running},"waiting":{step.waiting}}}}},\n'
        )


def _result(future: Future[Any] | None) -> tuple[str, Timing | None]:
    """The fields of the end of a request, and its times; without a future it did not end."""
    if future is None:
        return ',"unfinished":true', None
    try:
        answer: Generation | Score | Pin = future.result()
    except BaseException as error:  # that of the request; a future that was cancelled raises one too
        return _failure(error)
    if isinstance(answer, Generation):
        return (
            f',"prompt":{answer.prompt_tokens},"cached":{answer.cached_tokens}'
            f',"generated":{answer.generated_tokens},"finish":"{answer.finish_reason}"',
            answer.timing,
        )
    prompt = answer.prompt_tokens if isinstance(answer, Score) else answer.length
    return f',"prompt":{prompt},"cached":{answer.cached_tokens}', answer.timing


def _failure(error: BaseException) -> tuple[str, Timing | None]:
    text = f',"error":{_quoted(type(error).__name__)}'
    if not isinstance(error, LmcError):
        return text, None
    if error.usage is not None:
        usage = error.usage
        text += f',"prompt":{usage.prompt_tokens},"cached":{usage.cached_tokens},"generated":{usage.generated_tokens}'
    return text, error.timing


def _plan_event(plan: Plan, number: int) -> str:
    args = f'{{"plan":{number},"name":{_quoted(plan.name)},"digest":"{plan_digest(plan)}"}}'
    return f'{{"ph":"M","pid":0,"tid":0,"ts":0,"name":"plan","args":{args}}},\n'


def _name(process: int, thread: int, what: str, name: str) -> str:
    return f'{{"ph":"M","pid":{process},"tid":{thread},"ts":0,"name":"{what}","args":{{"name":"{name}"}}}},\n'


def _shown(path: str) -> str:
    """A path as it is named; of an absolute one, the part below the current folder or the name alone."""
    named, folder = Path(path), Path.cwd()
    if not named.is_absolute():
        return _sound(path)
    return _sound(named.relative_to(folder).as_posix() if named.is_relative_to(folder) else named.name)

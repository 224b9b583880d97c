"""Calls of the user's functions, as those see them who run a module: asynchronous ones, and runs that are cancelled.

They live in this leaf package because tools (``lmc.frontend``), the executor and the driver have to agree on them.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeGuard, cast

from lmc.ir.errors import BudgetError, EngineError, JournalError, LmcError, Location

Answer = tuple[Any, BaseException | None]
"""The result of a call, or its exception: not every exception may be set on a future."""


class AsyncHost(Protocol):
    """A host function that takes no thread while it waits. Called, it blocks until its result is there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def submit(self, *args: Any, **kwargs: Any) -> Future[Answer]:
        """Begin a call. Cancelling the future cancels it."""
        ...


def as_async(host: Callable[..., Any]) -> AsyncHost | None:
    """``host`` where it is one; None for a plain function."""
    return cast(AsyncHost, host) if hasattr(type(host), "submit") else None


class ProgramCancelled(BaseException):
    """EndCounts a program that was cancelled where it waits, as ``asyncio.CancelledError`` ends a task.

    No ``Exception``, because ``except Exception`` in a user's retry loop must not take it for a failure and go on.
    """


class ProgramStopped(ProgramCancelled):
    """EndCounts a program with ``error``, which none of its handlers may take for a failure that it can go on from."""

    def __init__(self, error: LmcError) -> None:
        super().__init__(str(error))
        self.error = error


def stops_program(error: BaseException | None) -> TypeGuard[LmcError]:
    """Return True for an error that no handler of a program may catch, plain Python included."""
    return isinstance(error, JournalError | BudgetError) or (isinstance(error, LmcError) and error.ends_batch)


def can_be_resumed(error: BaseException | None) -> bool:
    """Return True for an error that ends a run which can be resumed: of its budget, of a quota."""
    return isinstance(error, EngineError) and stops_program(error)


class Cancellation:
    """The cancellation of a run, or of a call that it waits for. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._calls: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Cancel what is under way."""
        with self._lock:
            self._cancelled = True
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    @property
    def is_cancelled(self) -> bool:
        """True after ``cancel``: code that begins now belongs to a program that ends, and tidies up."""
        return self._cancelled

    def check(self) -> None:
        """Raise ``ProgramCancelled`` where it was cancelled."""
        if self._cancelled:
            raise ProgramCancelled

    @contextmanager
    def calling(self, cancel: Callable[[], object]) -> Generator[None]:
        """Have ``cancel`` called if it is cancelled before the block ends. Raises as ``check`` does."""
        with self._lock:
            self.check()
            self._calls.append(cancel)
        try:
            yield
        finally:
            with self._lock:
                if cancel in self._calls:
                    self._calls.remove(cancel)


CANCELLATION: ContextVar[Cancellation | None] = ContextVar("lmc_cancellation", default=None)
"""The cancellation of the run whose code runs now, or None."""


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Generator[None]:
    """Let ``cancellation`` stop the user's functions that are called in the block."""
    token = CANCELLATION.set(cancellation)
    try:
        yield
    finally:
        CANCELLATION.reset(token)


class CallPlace(NamedTuple):
    """The place of a call of a tool in a run: the same whenever the row is run again."""

    run: str
    row: int
    op: str
    number: int

    @property
    def key(self) -> str:
        """The idempotency key of the call."""
        text = "\0".join(map(str, self)).encode("utf-8", "surrogatepass")
        return f"lmc-{hashlib.blake2b(text, digest_size=16).hexdigest()}"


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A call of a tool that starts now.

    ``effect`` is "pure", "reads" or "writes", ``returns`` the return annotation of its function (None: it has none).
    ``has_key``: the function gets an idempotency key, so that it may be called again. ``line`` is where it is called.
    """

    name: str
    effect: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    returns: Any
    has_key: bool
    line: str | None


class CallJournal(Protocol):
    """Records calls of tools, and answers those that it holds."""

    @property
    def run(self) -> str:
        """The id of the run, which is the same when it is resumed."""
        ...

    def call(self, place: CallPlace, asked: CalledTool, work: Callable[[], Any]) -> Any:
        """Return the result of ``work``, or that of an earlier run.

        Raises what it raised, and ``ProgramStopped`` where the program may not go on.
        """
        ...

    def submit(self, place: CallPlace, asked: CalledTool, begin: Callable[[], Future[Answer]]) -> Future[Answer]:
        """``call`` for an async tool."""
        ...

    def note_plain(self, name: str, line: str | None) -> None:
        """Note a function that writes and is no tool: it is called again where its row is resumed."""
        ...


class CallScope:
    """Numbers the calls of tools that one op makes, or the rest of a program that runs as plain Python.

    Used by one thread at a time. Without a ``journal`` the calls have keys only. ``line`` is that of the op (None: of
    the call). ``plain`` is the name of the function that the op calls, if that writes: it may be no tool.
    """

    __slots__ = ("count", "journal", "line", "op", "plain", "row", "run")

    def __init__(
        self,
        journal: CallJournal | None,
        run: str,
        row: int,
        op: str,
        line: Location | None = None,
        *,
        plain: str | None = None,
    ) -> None:
        self.journal = journal
        self.run = run
        self.row = row
        self.op = op
        self.line = line
        self.plain = plain
        self.count = 0

    def next_place(self) -> CallPlace:
        """The place of the next call."""
        self.count += 1
        return CallPlace(self.run, self.row, self.op, self.count - 1)

    def called(self) -> None:
        """Note a function that was called and is no tool."""
        if self.journal is not None and self.plain is not None and not self.count:
            self.journal.note_plain(self.plain, None if self.line is None else str(self.line))

    def inside(self, place: CallPlace) -> CallScope:
        """The scope of what the tool itself calls, which is a part of its call: it has keys, and no entries."""
        return CallScope(None, self.run, self.row, f"{place.op}#{place.number}", self.line)


SCOPE: ContextVar[CallScope | None] = ContextVar("lmc_calls", default=None)
"""The scope of the calls that are made now; None outside of programs."""

_PROCESS = uuid.uuid4().hex


def run_id(number: int) -> str:
    """The id of a run without a journal: no other run has it, in any process."""
    return f"{_PROCESS}-{number}"


@contextmanager
def calling_in(scope: CallScope | None) -> Generator[None]:
    """Let ``scope`` number the calls of tools in the block."""
    token = SCOPE.set(scope)
    try:
        yield
    finally:
        SCOPE.reset(token)

"""The program or host function that runs now, in context variables."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from lmc.ir.engine.observing import BegunCall, Observer


class RunningProgram(Protocol):
    """A running eager program: it runs the jitted functions that its code calls, under ids that begin with ``path``."""

    session: Any
    path: str

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a jitted function in a fresh context, or on the state among ``args``."""
        ...

    def call_on(self, function: Any, state: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a jitted function on ``state``."""
        ...


ACTIVE: ContextVar[RunningProgram | None] = ContextVar("lmc_active", default=None)

HOST: ContextVar[str | None] = ContextVar("lmc_host", default=None)
"""The user's function that the graph calls now. Set only for that long; see ``JittedFunction.__call__``."""


@contextmanager
def observed_tool(name: str, line: Callable[[], int | None]) -> Generator[None]:
    """Show a call of a tool, by the program that runs eagerly, to the observer of its session, if it has one."""
    frame = ACTIVE.get()
    observer: Observer | None = None if frame is None else frame.session.observer
    if frame is None or observer is None:
        yield
        return
    ended = observer.begin_call(BegunCall(name, None, None, frame.session.instance, line()))
    try:
        yield
    except BaseException as error:
        ended(error)
        raise
    ended(None)


@contextmanager
def activate(frame: RunningProgram) -> Generator[None]:
    """Make ``frame`` the running program until the block ends."""
    token = ACTIVE.set(frame)
    try:
        yield
    finally:
        ACTIVE.reset(token)

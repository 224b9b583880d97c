"""The text of a run while it runs: token events, kept for as many readers as there are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from lmc.driver import InputError, Stream, TokenEvent


class EventLog:
    """The token events of one run, as they come. A thread takes them from the stream: the run goes on unread."""

    def __init__(self, stream: Stream) -> None:
        self._events: list[TokenEvent] = []
        self._over = False
        self._changed = threading.Condition()
        threading.Thread(target=self._collect, args=(stream,), name="lmc-sglang-stream", daemon=True).start()

    def read(self) -> Iterator[TokenEvent]:
        """All events from the first on; waits for those to come. Errors of the run are left to who asks for its end."""
        position = 0
        while events := self._after(position):
            position += len(events)
            yield from events

    def _after(self, position: int) -> list[TokenEvent]:
        """The events from ``position`` on, at least one unless the run is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or len(self._events) > position)
            return self._events[position:]

    def _collect(self, stream: Stream) -> None:
        try:
            for event in stream:
                with self._changed:
                    self._events.append(event)
                    self._changed.notify_all()
        except BaseException:  # noqa: S110 - the result of the stream has it
            pass
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()


def text_of_variable(log: EventLog, program: str, name: str, value: Callable[[str], Any]) -> Iterator[str]:
    """Yield the text generated as ``name`` on the state itself; the value at the end if it was not generated there.

    Of several draws it is the first.
    """
    heard = False
    for event in _of_the_state(log, program):
        if event.name == name:
            heard = True
            yield event.text
    found = value(name)
    if not heard:
        yield found if isinstance(found, str) else str(found)


def whole_text(log: EventLog, program: str, text: Callable[[], str]) -> Iterator[str]:
    """The text of the state: before each generation what was appended since the one before, then its text."""
    said = ""
    op_id = ""
    for event in _of_the_state(log, program):
        if event.op_id != op_id and event.context is not None:
            op_id = event.op_id
            before = event.context.transcript()
            if before.startswith(said) and len(before) > len(said):
                yield before[len(said) :]
                said = before
        said += event.text
        yield event.text
    whole = text()
    if not whole.startswith(said):
        raise InputError(
            "the chat template of this model changes messages that were already there, so their text can't be streamed",
            remedy="read state.text(), or stream one variable: state.text_iter(name)",
        )
    if len(whole) > len(said):
        yield whole[len(said) :]


def _of_the_state(log: EventLog, program: str) -> Iterator[TokenEvent]:
    """Events of generations on the program's own state, and of the first of several draws."""
    return (event for event in log.read() if event.branch == program and event.sample == 0 and event.text)

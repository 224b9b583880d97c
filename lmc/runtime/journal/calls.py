"""Calls of tools through a journal: the intent before, the result after."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any, TypeVar

from lmc.ir.engine.hosts import Answer, CalledTool, CallPlace, ProgramStopped
from lmc.ir.errors import JournalError, LmcError
from lmc.runtime.journal.file import DONE, DROPPED, FAILED
from lmc.runtime.journal.journal import AskedEntry, Begun, Outcome, Recorded, RunJournal
from lmc.runtime.journal.values import NotKeptError, arguments_text, error_in, error_text, value_of, value_text

T = TypeVar("T")
_NOT_CALLED = Outcome(DROPPED, "null")
"""The end of a call that did not begin: a resumed run may begin it."""


class JournaledCalls:
    """The calls of tools of a run with a journal (``lmc.ir.engine.hosts.CallJournal``)."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._journal.run

    def call(self, place: CallPlace, asked: CalledTool, work: Callable[[], Any]) -> Any:
        """Return the result of ``work``, or that of an earlier run."""
        before = arguments_text(asked.arguments, asked.keywords)
        try:
            found = _waited(partial(self._journal.ask, _asked(place, asked, before)))
            if not isinstance(found, Begun):
                result, error = self._answered(found, asked)
            else:
                result, error = self._called(found, asked, before, work)
        except JournalError as stopped:
            raise ProgramStopped(stopped) from None
        if error is not None:
            raise error
        return result

    def submit(self, place: CallPlace, asked: CalledTool, begin: Callable[[], Future[Answer]]) -> Future[Answer]:
        """``call`` for an async tool."""
        before = arguments_text(asked.arguments, asked.keywords)
        outer: Future[Answer] = Future()

        def give(answer: Answer) -> None:
            with contextlib.suppress(InvalidStateError):  # it was cancelled
                outer.set_result(answer)

        def ended(done: Future[Answer], begun: Begun) -> None:
            if done.cancelled():
                self._journal.tell(begun, None)
                outer.cancel()
                return
            error = done.exception()
            answer = (None, error) if error is not None else done.result()
            outcome = _outcome(asked, before, answer)
            self._journal.tell(begun, outcome, lambda error: give(answer if error is None else (None, error)))

        def found(answer: Begun | Recorded | Exception) -> None:
            if isinstance(answer, Exception):
                give((None, answer))
                return
            if not isinstance(answer, Begun):
                try:
                    give(self._answered(answer, asked))
                except JournalError as unreadable:
                    give((None, unreadable))
                return
            if outer.cancelled():
                self._journal.tell(answer, _NOT_CALLED)
                return
            try:
                inner = begin()
            except Exception as failure:  # the loop of tools is closed: the process ends
                self._journal.tell(answer, _NOT_CALLED)
                give((None, failure))
                return
            outer.add_done_callback(lambda end: end.cancelled() and inner.cancel())
            inner.add_done_callback(lambda end: ended(end, answer))

        self._journal.ask(_asked(place, asked, before), found)
        return outer

    def note_plain(self, name: str, line: str | None) -> None:
        """Note a function that writes and is no tool: it is called again where its row is resumed."""
        place = "" if line is None else f"{line}: "
        self._journal.note(f"{place}{name}() is called again: it is no tool (@lmc.tool)")

    def _called(self, begun: Begun, asked: CalledTool, before: str, work: Callable[[], Any]) -> Answer:
        answer: Answer
        try:
            answer = work(), None
        except Exception as error:
            answer = None, error
        except BaseException:  # Ctrl-C, or a program that is cancelled: the end is not known
            self._journal.tell(begun, None)
            raise
        _waited(partial(self._journal.tell, begun, _outcome(asked, before, answer)))
        return answer

    def _answered(self, found: Recorded, asked: CalledTool) -> Answer:
        try:
            if found.state == FAILED:
                return None, error_in(found.text)
            return value_of(found.text, asked.returns), None
        except ValueError as error:
            raise JournalError(
                f"{self._journal.shown} holds a result of the tool {asked.name} that can't be read: {error}",
                remedy="name another file for --journal",
            ) from error


def _waited(begin: Callable[[Callable[[T | Exception], object]], object]) -> T:
    """Wait for the answer of the journal to ``begin``; raise it if it is an error."""
    future: Future[T | Exception] = Future()
    begin(future.set_result)
    answer = future.result()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _asked(place: CallPlace, asked: CalledTool, arguments: str) -> AskedEntry:
    digest = hashlib.blake2b(arguments.encode(), digest_size=16).hexdigest()
    request: dict[str, object] = {"name": asked.name, "arguments": digest, "effect": asked.effect}
    if asked.has_key:
        request["key"] = True
    return AskedEntry(
        "call",
        place.row,
        place.op,
        place.number,
        request,
        name=asked.name,
        line=asked.line,
        writes=asked.effect == "writes",
        has_key=asked.has_key,
    )


def _outcome(asked: CalledTool, before: str, answer: Answer) -> Outcome | None:
    """The end of a call to write. A result that JSON can't hold is noted as such; None for a call without an end."""
    result, error = answer
    try:
        if isinstance(error, LmcError) and error.ends_run:
            return None
        if error is not None and not isinstance(error, Exception):
            return None
        if error is not None:
            return Outcome(FAILED, error_text(error))
        if arguments_text(asked.arguments, asked.keywords) != before:
            raise NotKeptError("it changes its arguments")
        return Outcome(DONE, value_text(result, asked.returns))
    except NotKeptError as unkept:
        return Outcome(DONE if error is None else FAILED, json.dumps({"$": "unkept", "of": str(unkept)}))

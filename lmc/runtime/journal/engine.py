"""An engine whose requests go through a journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from lmc.ir.engine.layer import EngineLayer, LayerHandle
from lmc.ir.engine.protocol import (
    DoneHandle,
    Engine,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    OnDelta,
    Queueing,
    Request,
    Score,
    ScoreRequest,
    StoredAnswer,
    TokenDelta,
)
from lmc.ir.engine.target import Target
from lmc.ir.errors import JournalError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.budget.bounds import TokenBounds, largest
from lmc.runtime.journal.journal import AskedEntry, Begun, Recorded, RunJournal
from lmc.runtime.journal.requests import asked_generation, asked_score, end_of, result_of

T = TypeVar("T")


class JournaledEngine(EngineLayer):
    """``engine``, whose requests are answered by ``journal`` where it holds them, and go through it where it does not.

    Hints need no journal. The text of an answer is one delta.
    """

    def __init__(self, engine: Engine, journal: RunJournal) -> None:
        super().__init__(engine)
        self._queueing = engine if isinstance(engine, Queueing) else None
        self._journal = journal
        self._bounds = [TokenBounds(*each) for each in engine.info.served]
        journal.fact("engine", json.dumps([engine.info.name, engine.info.context_length]))

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        def answered(generation: Generation) -> None:
            if on_delta is not None and (generation.text or generation.token_ids):
                on_delta(_delta(generation))

        def submit(begun: Begun) -> Handle[Generation]:
            if self._queueing is None:  # it is no provider's, so nothing keeps its answers
                return self.below.submit(request, on_delta)
            stored = StoredAnswer(partial(self._journal.keep, begun), begun.stored, begun.may_be_asked)
            asked = replace(request, stored=stored)
            return self._queueing.submit_announced(asked, on_delta, partial(self._journal.begin, begun))

        bound = largest(self._bounds, request)
        asked = asked_generation(request, bound, self.info.attempts)
        return self._through(asked, submit, Generation, answered)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        def submit(begun: Begun) -> Handle[Score]:
            if self._queueing is None:
                return self.below.score(request)
            return self._queueing.score_announced(request, partial(self._journal.begin, begun))

        bound = largest(self._bounds, request)
        return self._through(asked_score(request, bound, self.info.attempts), submit, Score, lambda _: None)

    def _through(
        self, asked: AskedEntry, submit: Callable[[Begun], Handle[T]], kind: type[T], answered: Callable[[T], object]
    ) -> Handle[T]:
        handle = _Journaled[T](journal=self._journal, submit=submit)

        def go_on(answer: Begun | Recorded | Exception) -> None:
            if isinstance(answer, Begun):
                handle.leave(answer)
                return
            if isinstance(answer, Exception):
                handle.end(answer)
                return
            try:
                result = result_of(answer, kind)
            except JournalError as unreadable:
                result = unreadable
            try:
                if isinstance(result, kind):
                    answered(result)
            finally:
                handle.end(result)

        self._journal.ask(asked, go_on, at_sending=self._queueing is not None)
        return handle


class ReplayedEngine:
    """Stands for the engine of a run that is replayed: no request reaches it."""

    def __init__(self, tokenizer: Tokenizer, journal: RunJournal, target: Target) -> None:
        name, context_length = json.loads(journal.head.get("engine", '["replay", 1048576]'))
        self.tokenizer = tokenizer
        self.info = EngineInfo(
            str(name), int(context_length), capabilities=target.capabilities, fallbacks=target.served[1:]
        )
        self.statistics = EngineStatistics()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:  # noqa: ARG002
        return DoneHandle[Generation].failed(_no_engine())

    def score(self, request: ScoreRequest) -> Handle[Score]:  # noqa: ARG002
        return DoneHandle[Score].failed(_no_engine())

    def close(self) -> None:
        """There is nothing to close."""


@dataclass(eq=False, kw_only=True)
class _Journaled(LayerHandle[T]):
    """A request on its way through the journal to the engine, and its result on its way back."""

    journal: RunJournal
    submit: Callable[[Begun], Handle[T]]

    def leave(self, begun: Begun) -> None:
        """Submit it: its intent is on disk, or will be before it leaves the engine."""
        self.pass_on(lambda: self.submit(begun), lambda result: self._told(begun, result))

    def _told(self, begun: Begun, result: Any) -> None:
        """Write the end of it, and hand it on once that is on disk. One that is not known is handed on as it is."""
        try:
            outcome = end_of(result)
        except Exception as error:  # a result that JSON can't hold: an engine's fault
            result, outcome = error, end_of(error)
        self.journal.tell(begun, outcome, lambda error: self.end(result if outcome is None else error or result))


def _delta(generation: Generation) -> TokenDelta:
    """The whole of a generation as one delta of its stream."""
    return TokenDelta(
        generation.text,
        token_ids=generation.token_ids,
        logprobs=generation.logprobs or (),
        cached_tokens=generation.cached_tokens,
    )


def _no_engine() -> JournalError:
    return JournalError("a replay has no engine", remedy="run without --replay")

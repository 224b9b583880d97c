"""Random programs in sessions that are cut anywhere, each with a budget of its own, or with none."""

import asyncio
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.backend.lower import lower
from lmc.cost.budget import Amount, Budget
from lmc.driver.run.budgets import budgeted, run_budget
from lmc.ir.engine.layer import EngineLayer
from lmc.ir.engine.protocol import (
    DoneHandle,
    Engine,
    Generation,
    Handle,
    OnDelta,
    Request,
    SamplingParams,
    Score,
    ScoreRequest,
)
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, JournalError
from lmc.ir.usage import Usage
from lmc.runtime.budget.account import RunBudget
from lmc.runtime.executor import Executor, Instance, Resources
from lmc.runtime.journal.calls import JournaledCalls
from lmc.runtime.journal.engine import JournaledEngine
from lmc.runtime.journal.file import BEGUN, LOST
from lmc.runtime.journal.journal import Resumption, RunJournal
from tests.program_strategies import Author, Program
from tests.runtime.engines import LateEngine
from tests.runtime.journal.journals import CutJournal, Sent, entries
from tests.runtime.region_texts import TOY

FULL = os.environ.get("LMC_TEST_FULL") == "1"
HEAD = {"record": "{}"}
budgets = st.one_of(
    st.none(),
    st.builds(Budget, calls=st.integers(1, 12)),
    st.builds(Budget, tokens=st.integers(1, 2500)),
    st.builds(Budget, calls=st.integers(1, 12), tokens=st.integers(1, 2500)),
)


class Asker(Author):
    """Writes programs most of whose ops are generations."""

    @property
    def steps(self) -> list[Callable[[], None]]:
        return [*super().steps, *[self.generate] * 12]


@st.composite
def asking(draw: st.DrawFn) -> Program:
    author = Asker(draw)
    for _ in range(draw(st.integers(3, 14))):
        draw(st.sampled_from(author.steps))()
    return author.program()


class BillingEngine(LateEngine):
    """Bills all that is submitted: ``billed`` is the sum, ``sent`` how often each request was.

    With an odd ``seed`` it is a provider that keeps its answers, and loses some of them.
    """

    def __init__(self, *, seed: int) -> None:
        super().__init__(seed=seed, most_seconds=0.0)
        self.billed = Amount()
        self.sent: Counter[Sent] = Counter()
        self.fetched: set[Sent] = set()
        self._keeps = seed % 2 == 1
        self._kept: dict[str, Generation] = {}

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Any:
        key, stored = (request.instance, request.op_id, request.number), request.stored
        if stored is not None and stored.id is not None:
            answer = self._kept.get(stored.id)
            if answer is not None:
                self.fetched.add(key)
                return DoneHandle.of(answer)
            stored.id = None
            if not stored.may_be_asked:
                return DoneHandle[Generation].failed(EngineError("it is lost"))
        whole = ToyEngine.submit(self, request).future
        if whole.exception() is None:  # it is billed even if it is cancelled
            self._bill(whole.result().usage)
        self.sent[key] += 1
        handle = super().submit(request, on_delta)
        if self._keeps and stored is not None and whole.exception() is None:
            name = f"resp_{self.sent.total()}"
            if self.sent.total() % 3:
                self._kept[name] = whole.result()
            stored.keep(name)
        return handle

    def stored_usage(self, stored: str) -> Handle[Usage | None]:
        answer = self._kept.get(stored)
        return DoneHandle[Usage | None].of(None if answer is None else answer.usage)

    def score(self, request: ScoreRequest) -> Any:
        self.sent[request.instance, request.op_id, request.number] += 1
        handle = super().score(request)
        handle.future.add_done_callback(
            lambda done: done.exception() or self._bill(Usage(done.result().prompt_tokens, 0, 0, 1))
        )
        return handle

    def _bill(self, usage: Usage) -> None:
        self.billed += Amount.of(usage)


class ImpatientEngine(EngineLayer):
    """``journaled``, on top of ``engine``, some of whose requests are cancelled under way and then asked again."""

    def __init__(self, journaled: Engine, engine: BillingEngine, seed: int) -> None:
        super().__init__(journaled)
        self._engine = engine
        self._seed = seed

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        key = request.instance, request.op_id, request.number
        # Not later samples: the engine holds requests by the ids of their ops.
        if request.number == 0 and random.Random(f"{self._seed}{key}").random() < 0.4:
            before = self._engine.sent[key]
            self._engine.stuck.add(request.op_id)
            first = self.below.submit(request)
            while not first.future.done() and self._engine.sent[key] == before:
                time.sleep(0.0005)
            first.cancel()
            first.future.exception(60.0)
            self._engine.stuck.discard(request.op_id)
        return self.below.submit(request, on_delta)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        return self.below.score(request)


def session(
    program: Program, engine: BillingEngine, path: Path, budget: Budget | None, commits: int, seed: int
) -> RunBudget | None:
    """One session of a run; returns its account. It ends after so many commits as a process that is killed."""
    account = run_budget(budget, TOY)

    async def main(journal: RunJournal) -> None:
        journaled = JournaledEngine(engine if account is None else budgeted(engine, account, journal), journal)
        used = ImpatientEngine(journaled, engine, seed)
        resources = Resources(used, journal=JournaledCalls(journal))
        executor = Executor(used, lower(program.module, TOY), program.hosts, constraints=program.constraints)
        try:
            await executor.run_batch(
                [Instance(0, program.inputs)], [0], lambda *_: None, run_seed=5, resources=resources
            )
        finally:
            resources.close()

    journal = opened(path, commits, Resumption(retry_writes={"tell"}))
    with suppress(JournalError), journal:
        asyncio.run(main(journal))
    return account


@settings(max_examples=500 if FULL else 100)
@given(asking(), st.lists(st.tuples(budgets, st.integers(1, 40)), min_size=2, max_size=4), st.integers(0, 99))
def test_no_session_spends_beyond_its_budget(program: Program, sessions: list[Any], seed: int):
    """The spending of earlier sessions counts at its worst case, whatever budgets these had."""
    engine = BillingEngine(seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "j")
        for budget, commits in sessions:
            before, open_before = engine.billed, in_flight(path)
            sent_before = engine.sent.copy()
            engine.fetched.clear()
            account = session(program, engine, path, budget, commits, seed)
            added = engine.billed - before
            assert budget is None or added == Amount() or engine.billed.fits(budget), (before, engine.billed, budget)
            sent = Counter((row, op, number) for kind, row, op, number, _ in entries(path) if kind != "call")
            assert all(count <= sent[key] for key, count in engine.sent.items()), "each request is on disk"
            again = engine.sent - sent_before
            gone = (open_before - in_flight(path)) - {*again} - engine.fetched
            assert not gone, "what is in flight is lost where it is sent again"
            if account is not None:
                ledger, left = account.ledger, [state for kind, *_, state in entries(path) if kind != "call"]
                assert ledger.promised.at_least(engine.billed) == ledger.promised
                assert ledger.promised.calls <= len(left), "each time that one left counts once"
                assert ledger.unknown <= sum(state in (BEGUN, LOST) for state in left)
                if not ledger.unknown:
                    assert ledger.promised == engine.billed


def in_flight(path: Path) -> set[Sent]:
    """The requests that have left and did not end."""
    return {(row, op, number) for kind, row, op, number, state in entries(path) if kind != "call" and state == BEGUN}


def opened(path: Path, commits: int, resumption: Resumption) -> CutJournal:
    """Open the journal of a session that ends after so many commits."""
    journal = CutJournal.open(str(path))
    assert isinstance(journal, CutJournal)
    journal.without_waiting()
    journal.commits = commits
    if journal.is_fresh:
        journal.start(HEAD)
    else:
        journal.resume(resumption)
    return journal


def requests_in(engine: BillingEngine, path: Path, commits: int) -> RunBudget:
    """A session of five requests, one after the other, that ends after so many commits. Returns its account."""
    account = run_budget(Budget(tokens=10**6), TOY)
    assert account is not None
    journal = opened(path, commits, Resumption())
    with suppress(JournalError), journal:
        used = JournaledEngine(budgeted(engine, account, journal), journal)
        for number in range(5):
            request = Request((1, 2, number), SamplingParams(max_tokens=5), op_id=f"a/{number}")
            used.submit(request).future.result(60.0)
        journal.finish()
    return account


def test_answers_that_are_fetched_count_once(tmp_path: Path):
    """Whatever commit a run ends after: each attempt counts once, at its cost, or at its worst case if it is lost."""
    fetched = lost = 0
    for commits in range(2, 24):
        engine, path = BillingEngine(seed=1), tmp_path / str(commits)
        requests_in(engine, path, commits)
        engine.fetched.clear()
        account = requests_in(engine, path, 1 << 30)
        fetched += len(engine.fetched)
        twice = engine.sent.total() - 5
        lost += twice
        assert account.ledger.unknown == twice
        assert twice or account.ledger.promised == engine.billed
    assert fetched
    assert lost

"""Journals of runs on hosted models: nothing that is finished is paid for twice, and a replay needs no key."""

import contextlib
import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from lmc.cli.app import main
from lmc.cost.budget import Amount, Budget
from lmc.driver.batch.run_journal import replayed_target
from lmc.driver.commands import journal as journals
from lmc.driver.errors import UsageError
from lmc.driver.run.budgets import budgeted, run_budget
from lmc.ir.engine.protocol import Generation, Handle, Request, SamplingParams
from lmc.ir.errors import BudgetError, EngineError, InputError, JournalError
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.usage import Usage
from lmc.runtime.budget.account import PricedTarget
from lmc.runtime.budget.budgeted import BudgetedEngine
from lmc.runtime.journal.engine import JournaledEngine
from lmc.runtime.journal.journal import Resumption, RunJournal
from lmc.runtime.remote.engine import RemoteEngine
from lmc.runtime.remote.protocols import openai_responses
from tests.runtime.journal.journals import begun, break_off, resumed
from tests.runtime.remote.faults import Fault, FaultProxy, listed
from tests.runtime.remote.hosted_runs import (
    KEY_NAME,
    PROGRAM,
    REQUESTS,
    answer,
    broken_off,
    discussion,
    hosted,
    kept_ids,
    target,
)
from tests.runtime.remote.providers.replies import Reply, drawn
from tests.runtime.remote.simulator import Simulator
from tests.runtime.remote.wire import Exchange

ROWS = [{"question": f"What is {number}?"} for number in range(6)]


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_run_that_breaks_off_is_resumed_and_pays_for_nothing_twice(
    api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = str(tmp_path / "j")
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, api))
        expected = [(each.value, each.usage) for each in program.batch(ROWS)]
        simulator.arrivals.clear()
        with monkeypatch.context() as patch:
            break_off(patch, after=25)
            with pytest.raises(JournalError):
                program.on(journal=path).batch(ROWS)
        before = journals.summary(path)
        assert 0 < before.requests.finished < len(ROWS) * REQUESTS
        found = program.on(journal=path, resume=True).batch(ROWS)
        assert [(each.value, each.usage) for each in found] == expected
        sent = Counter(each.digest for each in simulator.arrivals)
        assert len(sent) == len(ROWS) * REQUESTS
        assert sum(count > 1 for count in sent.values()) <= len(before.in_flight), "others left once"
        assert max(sent.values()) <= 2
        after = journals.summary(path)
        assert (after.state, after.requests.finished) == ("finished", len(ROWS) * REQUESTS)
        assert after.requests.repeated == len(before.in_flight)


@pytest.mark.parametrize("change", ["", "gone", "running", "failed", "damaged"])
def test_an_answer_that_the_provider_has_stored_is_fetched(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = str(tmp_path / "j")
    plan = listed([Fault.IDLE])
    with hosted(), Simulator(drawn) as simulator, FaultProxy(simulator.url, plan, idle=60.0) as proxy:
        program = answer.on(target(proxy.url, "responses", store=True))
        broken_off(program, path)
        [name] = kept_ids(path)
        whole = simulator.stored[name]
        monkeypatch.setattr(openai_responses, "_LOOK_SECONDS", 0.01)
        if change == "gone":
            simulator.stored.clear()
        elif change == "damaged":
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("UPDATE entries SET result = '../files/x'")
                database.commit()
        elif change:
            state = {"running": "in_progress", "failed": "failed"}[change]
            simulator.stored[name] = {**whole, "status": state}
            if change == "running":
                Timer(0.3, simulator.stored.__setitem__, (name, whole)).start()
        found = program.on(journal=path, resume=True).run("What?")
        is_kept = change in ("", "running")
        assert len(simulator.arrivals) == (1 if is_kept else 2), "it is asked again only where it is lost"
        assert bool(simulator.fetched) == (change not in ("gone", "damaged"))
        first = "".join(part["text"] for item in whole["output"] for part in item.get("content", ()))
        assert (found.value == first) == is_kept
        assert found.usage.calls == 1
        assert kept_ids(path) == []
        assert journals.summary(path).state == "finished"


class FlakyProvider(Simulator):
    """Fails to give the first stored answer that it is asked for."""

    failures = 1

    async def _handle(self, exchange: Exchange) -> None:
        if exchange.request.method == "GET" and "/responses/" in exchange.request.path and self.failures:
            self.failures -= 1
            await exchange.respond_json(502, {}, {"error": {"message": "bad gateway", "type": "server_error"}})
            return
        await super()._handle(exchange)


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_failure_to_fetch_a_stored_answer_is_no_attempt_that_costs(attempts: int, tmp_path: Path):
    path = str(tmp_path / "j")
    with (
        hosted(),
        FlakyProvider(drawn) as simulator,
        FaultProxy(simulator.url, listed([Fault.IDLE]), idle=60.0) as proxy,
    ):
        program = answer.on(target(proxy.url, "responses", store=True, attempts=attempts))
        broken_off(program, path)
        again = program.on(journal=path, resume=True, budget=Budget(calls=attempts))
        if attempts == 1:
            with pytest.raises(EngineError, match="502"):
                again.run("What?")
        found = again.run("What?")
        assert (found.usage.calls, found.unknown_calls, len(simulator.arrivals)) == (1, 0, 1)


@pytest.mark.parametrize("end", ["running", "unreadable", "budget"])
def test_a_stored_answer_is_fetched_later_where_a_session_could_not(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Neither a fetch that fails nor a budget that has no room for it makes the request one that is asked again."""
    path = str(tmp_path / "j")
    monkeypatch.setattr(openai_responses, "_LOOK_SECONDS", 0.001)
    plan = listed([Fault.SERVER_ERROR, Fault.IDLE])  # the first attempt counts at its worst case
    with hosted(), Simulator(drawn) as simulator, FaultProxy(simulator.url, plan, idle=60.0) as proxy:
        program = answer.on(target(proxy.url, "responses", store=True, attempts=2))
        broken_off(program, path)
        [name] = kept_ids(path)
        whole = simulator.stored[name]
        again = program.on(journal=path, resume=True)
        if end != "budget":
            simulator.stored[name] = {"x": 1} if end == "unreadable" else {**whole, "status": "in_progress"}
        with pytest.raises(EngineError):
            (again.on(budget=Budget(calls=1)) if end == "budget" else again).run("What?")
        assert kept_ids(path) == [name]
        simulator.stored[name] = whole
        found = again.on(budget=Budget(calls=4)).run("What?")
        assert found.value == "".join(part["text"] for item in whole["output"] for part in item.get("content", ()))
        assert (len(simulator.arrivals), kept_ids(path)) == (1, [])
        summary = journals.summary(path)
        assert (summary.state, summary.requests.finished, summary.requests.repeated) == ("finished", 1, 0)


@pytest.mark.parametrize("change", ["", "gone"])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_stored_answer_counts_once_in_a_budget(change: str, calls: int, tmp_path: Path):
    """Its attempt costs what the provider tells, and is no reason to refuse it. Asked again, it may be billed twice."""
    path = str(tmp_path / "j")
    with hosted(), Simulator(drawn) as simulator, FaultProxy(simulator.url, listed([Fault.IDLE]), idle=60.0) as proxy:
        program = answer.on(target(proxy.url, "responses", store=True, attempts=1))
        broken_off(program, path)
        [name] = kept_ids(path)
        if change == "gone":
            simulator.stored.clear()
        again = program.on(journal=path, resume=True, budget=Budget(calls=calls))
        if change == "gone" and calls == 1:
            with pytest.raises(BudgetError):
                again.run("What?")
            assert kept_ids(path) == [name]
        else:
            assert again.run("What?").usage.calls == 1
        assert len(simulator.arrivals) == (2 if change == "gone" and calls == 2 else 1)


EMPTY = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
FAILED = {"status": "failed", "error": {"code": "server_error", "message": "broken"}, "output": []}


@pytest.mark.parametrize("change", ["", "empty", "failed", "gone", "failing"])
def test_a_request_waits_for_the_costs_of_answers_that_are_stored(change: str, tmp_path: Path):
    """Before it is refused, they are found out. The rows of these answers need not ask for them."""
    path = tmp_path / "j"
    first, second = (
        Request((256, *f"user\n{text}".encode(), 257, 256, *b"assistant\n"), SamplingParams(max_tokens=60), op_id=text)
        for text in ("a", "b")
    )
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, listed([Fault.IDLE]), idle=60.0) as proxy:
        place = answer.on(target(proxy.url, "responses", store=True, attempts=1)).compile().target
        broken = RemoteEngine(place, message_tokenizer())
        with begun(path) as journal:
            JournaledEngine(broken, journal).submit(first)
            limit = time.monotonic() + 20.0
            while not kept_ids(str(path)) and time.monotonic() < limit:
                time.sleep(0.02)
        broken.close()
        [name] = kept_ids(str(path))
        worst = PricedTarget(place, None).most(first).tokens
        account = run_budget(Budget(tokens=2 * worst - 1), place)
        assert account is not None
        if change == "gone":
            simulator.stored.clear()
        elif change == "failing":
            simulator.stored[name] = {"x": 1}
        elif change:
            simulator.stored[name] = {**simulator.stored[name], **(EMPTY if change == "empty" else FAILED)}
        is_known = change not in ("gone", "failing")
        engine = RemoteEngine(place, message_tokenizer())
        try:
            with resumed(path) as journal:
                layers = JournaledEngine(budgeted(engine, account, journal), journal)
                error = layers.submit(second).future.exception(20.0)
                if not is_known:
                    assert isinstance(error, BudgetError)
                    assert account.ledger.unknown == 1
                else:
                    assert error is None
                    if change:
                        assert account.ledger.unknown == 0
                        return
                    assert layers.submit(first).future.exception(20.0) is None
                    told = [each.answer for each in simulator.arrivals if each.answer is not None]
                    paid = sum(each.prompt_tokens + each.reply.output_tokens for each in told)
                    assert account.ledger.promised == Amount(tokens=paid, calls=2)
                    assert account.ledger.unknown == 0
        finally:
            engine.close()
        assert len(simulator.arrivals) == 1 + is_known


@pytest.mark.parametrize("budget", [None, Budget(calls=4)])
def test_a_stored_answer_without_text_ends_its_request(budget: Budget | None, tmp_path: Path):
    """It is fetched once, and counts once, at its cost; its row fails, and asks anew where it runs again."""
    path = str(tmp_path / "j")
    with hosted(), Simulator(drawn) as simulator, FaultProxy(simulator.url, listed([Fault.IDLE]), idle=60.0) as proxy:
        program = answer.on(target(proxy.url, "responses", store=True, attempts=3))
        broken_off(program, path)
        [name] = kept_ids(path)
        simulator.stored[name] = {**simulator.stored[name], **EMPTY}
        again = program.on(journal=path, resume=True, budget=budget)
        with pytest.raises(EngineError, match="no visible text") as raised:
            again.run("What?")
        assert (raised.value.unknown_calls, len(raised.value.attempts)) == (0, 1)
        assert (len(simulator.fetched), len(simulator.arrivals), kept_ids(path)) == (1, 1, [])
        assert journals.summary(path).requests.failed == 1
        assert again.run("What?").value
        assert (len(simulator.fetched), len(simulator.arrivals)) == (1, 2)


QUESTION = Request((256, *b"user\nWhat?", 257, 256, *b"assistant\n"), SamplingParams(max_tokens=60), op_id="a")


@contextmanager
def storing_engine() -> Generator[tuple[Simulator, RemoteEngine]]:
    """A provider that stores its answers, and an engine that asks it over a connection that idles at first."""
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, listed([Fault.IDLE]), idle=60.0) as proxy:
        place = answer.on(target(proxy.url, "responses", store=True)).compile().target
        engine = RemoteEngine(place, message_tokenizer())
        try:
            yield simulator, engine
        finally:
            engine.close()


def cancel_once_stored(handle: Handle[Generation], path: str) -> None:
    """Cancel a request once the journal has the id of its answer."""
    limit = time.monotonic() + 20.0
    while not kept_ids(path) and time.monotonic() < limit:
        time.sleep(0.02)
    handle.cancel()
    assert handle.future.exception(20.0) is not None


def test_an_equal_request_fetches_the_answer_of_one_that_is_cancelled(tmp_path: Path):
    path = str(tmp_path / "j")
    with storing_engine() as (simulator, engine):
        with begun(tmp_path / "j") as journal:
            journaled = JournaledEngine(engine, journal)
            first, second = journaled.submit(QUESTION), journaled.submit(QUESTION)
            cancel_once_stored(first, path)
            assert second.future.result(20.0).text
        assert (len(simulator.arrivals), len(simulator.fetched)) == (1, 1)
        found = journals.summary(path)
        assert (found.requests.finished, found.requests.repeated) == (1, 0)


FAILURES: dict[str, dict[str, Any]] = {
    "quota": {"quota": 0},
    "key": {"keys": ["sk-another"]},
    "refusal": {"reply": lambda _: Reply(end="refusal")},
    "budget": {},
}


@pytest.mark.parametrize("failure", FAILURES)
def test_equal_requests_at_the_same_time_have_the_same_end(failure: str, tmp_path: Path):
    with hosted(), Simulator(latency=0.1, **FAILURES[failure]) as simulator:
        place = answer.on(target(simulator.url, "chat", attempts=1)).compile().target
        account = run_budget(Budget(tokens=1 if failure == "budget" else 10**6), place)
        engine = RemoteEngine(place, message_tokenizer())
        try:
            assert account is not None
            with begun(tmp_path / "j") as journal:
                layers = JournaledEngine(BudgetedEngine(engine, account), journal)
                found = [layers.submit(QUESTION).future for _ in range(3)]
                errors = [each.exception(20.0) for each in found]
        finally:
            engine.close()
        assert len({id(each) for each in errors}) == len(errors), "each row locates its own"
        first = errors[0]
        assert isinstance(first, EngineError)
        assert first.ends_run == (failure != "refusal")
        for each in errors:
            assert isinstance(each, EngineError)
            assert (type(each), each.cause, each.remedy) == (type(first), first.cause, first.remedy)
        assert len(simulator.arrivals) == (0 if failure == "budget" else 1)


def test_an_answer_is_stored_only_where_the_target_says_so(tmp_path: Path):
    path = str(tmp_path / "j")
    plan = listed([Fault.IDLE])
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, plan, idle=60.0) as proxy:
        program = answer.on(target(proxy.url, "responses"))
        with program.on(journal=path).stream("What?") as stream:
            next(stream)
        assert kept_ids(path) == []
        assert program.on(journal=path, resume=True).run("What?").value
        assert [each.body["store"] for each in simulator.arrivals if each.body] == [False, False]
    with pytest.raises(InputError, match="store is for the api responses"):
        target("http://127.0.0.1:1", "chat", store=True)


@pytest.mark.parametrize("is_stored", [True, False])
def test_what_is_to_fail_is_fetched_where_it_is_stored(is_stored: bool, tmp_path: Path):
    """``--in-flight fail``: what the provider has no more is not asked for again."""
    path = str(tmp_path / "j")
    with storing_engine() as (simulator, engine):
        with begun(tmp_path / "j") as journal:
            cancel_once_stored(JournaledEngine(engine, journal).submit(QUESTION), path)
        if not is_stored:
            simulator.stored.clear()
        with RunJournal.open(path) as journal:
            journal.resume(Resumption(in_flight="fail"))
            handle = JournaledEngine(engine, journal).submit(QUESTION)
            error = handle.future.exception(20.0)
            assert (error is None) == is_stored
            assert is_stored or "was in flight when the run ended" in str(error)
        assert len(simulator.arrivals) == 1


@pytest.mark.parametrize("limits", [{"concurrency": 2}, {"requests_per_minute": 9}])
@pytest.mark.parametrize("after", [6, 19, 33])
@pytest.mark.parametrize("budget", [None, Budget(calls=10_000)])
def test_requests_that_wait_for_a_limit_are_not_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], after: int, budget: Budget | None
):
    """They were not sent, and so they are neither listed nor counted as sent again."""
    path = str(tmp_path / "j")
    with hosted(minute=0.5), Simulator(latency=0.02) as simulator:
        program = discussion.on(target(simulator.url, "chat", **limits), budget=budget)
        with monkeypatch.context() as patch:
            break_off(patch, after=after)
            with pytest.raises(JournalError):
                program.on(journal=path).batch(ROWS)
        before = journals.summary(path)
        assert len(before.in_flight) <= min(limits.values())
        simulated = len(simulator.arrivals)
        assert before.requests.finished <= simulated <= before.requests.finished + len(before.in_flight)
        found = program.on(journal=path, resume=True).batch(ROWS)
        assert not any(each.error for each in found)
        sent = Counter(each.digest for each in simulator.arrivals)
        assert len(sent) == len(ROWS) * REQUESTS
        assert sum(count > 1 for count in sent.values()) <= len(before.in_flight)
        assert journals.summary(path).requests.repeated == len(before.in_flight)


def test_tokens_of_caches_and_reasoning_are_counted(tmp_path: Path):
    path = str(tmp_path / "j")
    reply = Reply("one two three", reasoning_tokens=7)
    with hosted(), Simulator(lambda _: reply) as simulator:
        text = "word " * 3000
        program = discussion.on(target(simulator.url, "chat-reasoning"), journal=path)
        found = program.batch([{"question": text}, {"question": text}])
        total = sum((each.usage for each in found), Usage())
        assert total.reasoning_tokens == 7 * 2 * REQUESTS
        assert total.cache_written_tokens > 0
        summary = journals.summary(path)
        assert summary.usage == total
        assert journals.summary_data(summary, path)["usage"] == asdict(total)
        [line] = [line for line in journals.summary_lines(summary, path) if line.startswith("tokens")]
        assert f"{total.cache_written_tokens:,} written to a cache" in line
        assert f"({total.reasoning_tokens} reasoning)" in line


def test_rows_that_the_account_could_not_pay_for_are_not_finished(tmp_path: Path):
    path = str(tmp_path / "j")
    with Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat"), journal=path)
        with hosted(key="wrong"):
            assert all("refuses the key" in str(result.error) for result in program.batch(ROWS))
            time.sleep(1.1)  # a second of silence, and the key is tried again
        found = journals.summary(path)
        assert (found.state, found.rows, found.requests.finished) == ("running", 0, 0)
        with hosted():
            assert not any(result.error for result in program.on(resume=True).batch(ROWS))
    assert journals.summary(path).state == "finished"


@pytest.mark.parametrize("form", ["list", "generator", "command"])
def test_requests_under_way_are_kept_where_the_quota_ends(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """They are paid for: those of other rows, and those of other branches."""
    path = str(tmp_path / "j")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("quota_program.py").write_text("from tests.runtime.remote.hosted_runs import discussion\n")
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    command = ["run", "quota_program.py:discussion", "--input", "rows.jsonl", "-o", "out.jsonl", "--journal", path]
    with hosted(), Simulator(quota=11, latency=0.05) as simulator:
        where = target(simulator.url, "chat", concurrency=5, attempts=1)
        program = discussion.on(where, journal=path)
        settings = "".join(f"{name} = {_toml(value)}\n" for name, value in where.settings.items())
        Path("pyproject.toml").write_text(f'[tool.lmc.targets.fast]\nkind = "openai"\nmodel = "gpt-4.1"\n{settings}')
        command += ["--model", "fast"]
        if form == "command":
            assert _run(monkeypatch, *command) == 1
            assert "quota" in capsys.readouterr().err
        else:
            found = program.batch(ROWS if form == "list" else iter(ROWS))
            assert all(each.error is None or "quota" in str(each.error) for each in found)
        summary = journals.summary(path)
        assert (summary.requests.finished, summary.in_flight) == (11, [])
        time.sleep(1.1)
        simulator.quota = None
        if form == "command":
            assert _run(monkeypatch, *command, "--resume") == 0
            assert len(Path("out.jsonl").read_text().splitlines()) == len(ROWS)
        else:
            again = program.on(resume=True).batch(ROWS if form == "list" else iter(ROWS))
            assert not any(each.error for each in again)
        assert simulator.finished_twice() == []
        assert sum(each.answer is not None for each in simulator.arrivals) == len(ROWS) * REQUESTS


CONTINUED = PROGRAM.replace("return s.gen", 's += "Well,"\n        return s.gen')
REPLAYED = [
    (PROGRAM, {"kind": "openai", "model": "gpt-4.1"}),
    (PROGRAM, {"kind": "openai", "model": "gpt-5.6", "api": "responses"}),
    (CONTINUED, {"kind": "openai", "model": "gpt-4.1", "continuation": "turns"}),
    (PROGRAM.replace("=60", "=60, seed=3"), {"kind": "openai", "model": "gpt-5.6", "capabilities": {"seed": True}}),
    (CONTINUED, {"kind": "anthropic", "model": "claude-haiku-4-5", "fallback": "second"}),
]


@pytest.mark.parametrize(("program", "table"), REPLAYED)
def test_a_journal_is_kept_by_itself_and_replayed_without_a_key(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    table: dict[str, Any],
):
    """The target of a replay has the settings of the run, whose table may be gone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    Path("hosted_program.py").write_text(program)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with hosted(), Simulator() as simulator:
        path = "" if table["kind"] == "anthropic" else "/v1"
        settings = {**table, "base_url": f"{simulator.url}{path}", "api_key_env": KEY_NAME}
        lines = (f"{name} = {_toml(value)}\n" for name, value in settings.items())
        second = '[tool.lmc.targets.second]\nkind = "anthropic"\nmodel = "claude-opus-4-5"\n'
        Path("pyproject.toml").write_text(f"[tool.lmc.targets.fast]\n{''.join(lines)}{second}")
        command = ["run", "hosted_program.py", "--input", "rows.jsonl", "-o", "out.jsonl", "--model", "fast"]
        assert _run(monkeypatch, *command) == 0
        assert len(simulator.arrivals) == len(ROWS)
        assert _run(monkeypatch, *command, "--resume") == 0
        assert len(simulator.arrivals) == len(ROWS)
    monkeypatch.delenv(KEY_NAME, raising=False)
    Path("pyproject.toml").unlink()
    replay = ["run", "hosted_program.py", "--input", "rows.jsonl", "-o", "again.jsonl", "--replay", "out.jsonl.lmcj"]
    assert _run(monkeypatch, *replay) == 0, capsys.readouterr().err
    assert sorted(Path("again.jsonl").read_text().splitlines()) == sorted(Path("out.jsonl").read_text().splitlines())


def _toml(value: Any) -> str:
    return json.dumps(value).replace(":", " =") if isinstance(value, dict) else json.dumps(value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"kind": "toy"}', '{"kind": "openai", "path": "m"}', "[" * 99999]
)
def test_a_journal_with_a_wrong_target_is_one_error(tmp_path: Path, text: str):
    path = tmp_path / "j"
    with hosted(), Simulator() as simulator:
        discussion.on(target(simulator.url, "chat"), journal=path).run("What?")
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE head SET value = ? WHERE name = 'target'", (text,))
    database.close()
    with RunJournal.replay(str(path)) as journal, pytest.raises(UsageError, match="names no target") as raised:
        replayed_target(journal)
    assert raised.value.remedy


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["lmc", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0

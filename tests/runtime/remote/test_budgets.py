"""Budgets of runs on simulated providers: what they bill never exceeds one, whatever happens on the way."""

import asyncio
import contextlib
import itertools
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc.cost.budget import Amount, Budget
from lmc.cost.prices import Price, PriceBook
from lmc.driver.commands import journal as journals
from lmc.driver.errors import UsageError
from lmc.driver.targets.hosted import hosted_target
from lmc.ir.errors import BudgetError, InputError, JournalError
from lmc.ir.usage import Usage
from lmc.runtime.executor import Limits
from tests.runtime.journal.journals import break_off
from tests.runtime.remote.faults import Fault, FaultProxy, seeded
from tests.runtime.remote.hosted_runs import PROGRAM, REQUESTS, SPECS, answer, discussion, hosted, target
from tests.runtime.remote.simulator import Simulator

ROWS = [{"question": f"What is {number}?"} for number in range(12)]
FALLBACK = "anthropic:claude-haiku-4-5"
FULL = os.environ.get("LMC_TEST_FULL") == "1"
BOUNDS = list(itertools.product(SPECS, ("calls", "tokens", "usd")))
FAULTY = list(itertools.product(("chat", "messages"), range(3), (False, True)))


def billed(simulator: Simulator) -> Amount:
    """Return what the providers charge: for each answer, whether it arrived or not."""
    found = Amount()
    for arrival in simulator.arrivals:
        if arrival.answer is None:
            found += Amount(calls=1)
            continue
        kind = "anthropic" if arrival.path == "/v1/messages" else "openai"
        told = arrival.answer
        price = PriceBook().find(hosted_target(f"{kind}:{told.asked.model.name}", {}))
        assert isinstance(price, Price)
        usage = Usage(told.prompt_tokens, told.cached, told.reply.output_tokens, 1, told.written)
        cost = price.cost(usage)
        assert cost is not None
        found += Amount.of(usage, cost)
    return found


def check(simulator: Simulator, budget: Budget, results: list[Any]) -> list[Any]:
    """Check that nothing is billed beyond the budget; return the results that are there."""
    assert billed(simulator).fits(budget), (billed(simulator), budget)
    errors = [each.error for each in results if each.error is not None]
    refused = [each for each in errors if isinstance(each, BudgetError)]
    assert all(each.location is not None for each in refused)
    assert len({id(each) for each in refused}) == len(refused), "each row has an error of its own"
    return [each for each in results if each.error is None]


@pytest.mark.parametrize(("api", "limit"), BOUNDS if FULL else BOUNDS[::2])
def test_a_budget_bounds_what_is_billed(api: str, limit: str):
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, api, attempts=1))
        whole = program.batch(ROWS)
        paid = billed(simulator)
        for share in (0.3, 0.7):
            simulator.arrivals.clear()
            value = getattr(paid, limit) * (Decimal(str(share)) if limit == "usd" else share)
            if limit == "usd":
                value = max(value, Decimal("0.002"))
            budget = Budget(
                **{limit: value if limit == "usd" else max(1500, int(value)) if limit == "tokens" else int(value)}
            )
            found = program.on(budget=budget).batch(ROWS)
            kept = check(simulator, budget, found)
            expected = {each.value[0]: each.value for each in whole}
            assert all(expected[each.value[0]] == each.value for each in kept)
            if limit == "calls":
                assert billed(simulator).calls == budget.calls, "all of it is used"
                assert len(kept) < len(ROWS)


@pytest.mark.parametrize(("api", "seed", "streams"), FAULTY if FULL else FAULTY[::3])
def test_faults_do_not_exceed_a_budget(api: str, seed: int, streams: bool):
    settings = {"attempts": 3, "timeout": 1.0, "idle_timeout": 0.3, "first_token_timeout": 0.5} if streams else {}
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, seeded(seed, rate=0.4)) as proxy:
        for budget in (Budget(calls=25), Budget(tokens=30_000), Budget(usd="0.05")):
            simulator.arrivals.clear()
            found = discussion.on(
                target(proxy.url, api, **{"attempts": 3, "timeout": 1.0, **settings}), budget=budget
            ).batch(ROWS)
            check(simulator, budget, found)


def test_a_fallback_is_in_the_budget():
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, seeded(5, rate=0.8)) as proxy:
        first = target(proxy.url, "chat", attempts=2, timeout=1.0)
        second = target(simulator.url, "messages")
        settings = {**first.settings, "fallback": "second"}
        path = Path("pyproject.toml")
        kind, model = second.spec.split(":")
        path.write_text(
            f'[tool.lmc.targets.second]\nkind = "{kind}"\nmodel = "{model}"\n'
            f'base_url = "{second.settings["base_url"]}"\napi_key_env = "{second.settings["api_key_env"]}"\n'
        )
        for budget in (Budget(calls=30), Budget(usd="0.08")):
            simulator.arrivals.clear()
            program = answer.on(lmc.remote(first.spec, **settings), budget=budget)
            check(simulator, budget, program.batch(ROWS))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_cancelled_streams_count_at_their_worst_case():
    with hosted(), Simulator(lambda _: "one two three four five. " * 10, event_seconds=0.005) as simulator:
        program = answer.on(target(simulator.url, "chat", attempts=1), budget=Budget(tokens=4000))
        with program.stream("Why?") as stream:
            next(iter(stream))
        assert billed(simulator).tokens <= 4000


def test_a_resumed_run_continues_its_budget(tmp_path: Path):
    path = str(tmp_path / "j")
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat", attempts=1), journal=path)
        first = program.on(budget=Budget(calls=20)).batch(ROWS)
        assert len(simulator.arrivals) == 20
        assert any(isinstance(each.error, BudgetError) for each in first)
        again = program.on(budget=Budget(calls=21), resume=True).batch(ROWS)
        assert len(simulator.arrivals) == 21, "the budget is that of the whole run"
        assert any(isinstance(each.error, BudgetError) for each in again)
        last = program.on(budget=Budget(calls=48), resume=True).batch(ROWS)
        assert not any(each.error for each in last)
        assert len(simulator.arrivals) == 48
        assert simulator.finished_twice() == []


def broken_off(program: Any, path: str, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """End a run as a crash does, after so many commits of its journal."""
    with monkeypatch.context() as patch:
        break_off(patch, after=after)
        with pytest.raises(JournalError):
            program.on(journal=path).batch(ROWS)


@pytest.mark.parametrize("before", [None, Budget(calls=100), Budget(tokens=10**6), Budget(usd=1)])
@pytest.mark.parametrize("limit", ["calls", "tokens", "usd"])
def test_all_that_earlier_sessions_spent_counts(
    before: Budget | None, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Calls, tokens and dollars are sums over the requests that were sent, for any kinds of limits."""
    path = str(tmp_path / "j")
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat", attempts=1), journal=path)
        broken_off(program.on(budget=before), path, monkeypatch, 40)
        summary = journals.summary(path)
        budget = Budget(**{limit: getattr(billed(simulator), limit)})
        found = program.on(budget=budget, resume=True).batch(ROWS)
        assert not simulator.repeated(), "nothing is sent again"
        assert len(simulator.arrivals) <= summary.requests.finished + len(summary.in_flight), "nor anything else"
        assert sum(isinstance(each.error, BudgetError) for each in found) > 0


def cancelled(program: Any, path: str, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Cancel a run in the middle, as Ctrl-C does, after so many requests have left."""
    del monkeypatch

    def left() -> int:
        with contextlib.suppress(UsageError):  # nothing has begun
            found = journals.summary(path)
            return found.requests.finished + len(found.in_flight)
        return 0

    async def main() -> None:
        work = asyncio.ensure_future(program.on(journal=path).abatch(ROWS))
        while left() < after:
            await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()

    asyncio.run(main())


@pytest.mark.parametrize("ended", [broken_off, cancelled])
@pytest.mark.parametrize("fallback", [None, FALLBACK])
def test_requests_in_flight_count_with_the_attempts_that_left(
    ended: Callable[[Any, str, pytest.MonkeyPatch, int], None],
    fallback: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Not with all that they might have had: a budget would be used up by what was never sent."""
    path = str(tmp_path / "j")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    with hosted(), Simulator(latency=0.1) as simulator:
        more = {} if fallback is None else {"fallback": fallback}
        program = discussion.on(target(simulator.url, "chat", attempts=3, **more), journal=path)
        ended(program, path, monkeypatch, 30)
        before = journals.summary(path)
        assert before.in_flight
        worst = before.requests.finished + len(before.in_flight)
        for attempts in (1, 7):
            again = program.on(target(simulator.url, "chat", attempts=attempts, **more), resume=True)
            [*found] = again.on(budget=Budget(calls=worst)).batch(ROWS)
            assert f"{worst} calls are spent" in str(next(each.error for each in found if each.error))
        assert len(simulator.arrivals) <= worst


@pytest.mark.parametrize("after", [10, 45, 80])
def test_attempts_of_a_session_that_broke_off_are_in_the_budget(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Answers that broke off are billed, and asked for again: all of these attempts count in a run that is resumed."""
    path = str(tmp_path / "j")
    plan = seeded(7, rate=0.7, faults=[Fault.CUT, Fault.RESET_WITHIN_ANSWER, Fault.SERVER_ERROR], most=2)
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, plan) as proxy:
        program = discussion.on(target(proxy.url, "chat", attempts=3), journal=path)
        broken_off(program, path, monkeypatch, after)
        budget = Budget(calls=billed(simulator).calls + 20)
        program.on(resume=True, budget=budget).batch(ROWS)
        assert billed(simulator).fits(budget)
        assert not any(each.error for each in program.on(resume=True).batch(ROWS))


def test_a_refusal_leaves_what_is_in_flight_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = str(tmp_path / "j")
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat", attempts=1), journal=path)
        broken_off(program, path, monkeypatch, 30)
        before = journals.summary(path)
        assert before.in_flight
        for _ in range(2):
            program.on(budget=Budget(calls=1), resume=True).batch(ROWS)
            after = journals.summary(path)
            assert (after.in_flight, after.requests) == (before.in_flight, before.requests)
        # Those of the first session may arrive late; all that arrive are in its journal, and each of them left once.
        assert len(simulator.arrivals) <= before.requests.finished + len(before.in_flight)
        assert not simulator.repeated()
        found = program.on(budget=Budget(calls=1000), resume=True).batch(ROWS)
        assert not any(each.error for each in found)
        assert journals.summary(path).requests.repeated == len(before.in_flight)


def test_a_budget_is_spent_on_rows_that_finish():
    """Rows that have begun go first: others would cost and end without a result."""
    rows = [{"question": f"What is {number}?"} for number in range(40)]
    with hosted(), Simulator(latency=0.01) as simulator:
        program = discussion.on(target(simulator.url, "chat", attempts=6), budget=Budget(calls=90))
        done = sum(each.error is None for each in program.batch(rows))
        at_once = 90 // 6
        assert done * REQUESTS >= len(simulator.arrivals) - at_once > 60


def test_requests_that_a_budget_refused_are_not_in_the_journal(tmp_path: Path):
    for spec in ("toy", "chat"):
        path = str(tmp_path / spec)
        with hosted(), Simulator() as simulator:
            place = spec if spec == "toy" else target(simulator.url, "chat", attempts=1)
            program = discussion.on(place, journal=path)
            program.on(budget=Budget(calls=9)).batch(ROWS)
            found = journals.summary(path).requests
            assert (found.finished, found.failed, found.in_flight, found.repeated) == (9, 0, 0, 0)
            program.on(budget=Budget(calls=48), resume=True).batch(ROWS)
            found = journals.summary(path).requests
            assert (found.finished, found.failed, found.in_flight, found.repeated) == (48, 0, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        "bound = -1",
        "most = -5",
        "bound = 9007199254740993",
        "attempts = '[-1]'",
        "attempts = '[1, 1]'",
        "attempts = '[1.5]'",
        "attempts = '{'",
        "result = '{'",
        "result = NULL",
        "result = '[]'",
        "result = replace(result, '\"prompt_tokens\":', '\"prompt_tokens\":-')",
        'result = replace(result, \'"prompt_tokens":\', \'"prompt_tokens":NaN,"x":\')',
        'result = replace(result, \'"prompt_tokens":\', \'"prompt_tokens":9e99,"x":\')',
        "state = 77",
    ],
)
def test_figures_that_no_journal_of_lmc_holds_are_one_error(tmp_path: Path, change: str):
    path = tmp_path / "j"
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat", attempts=1), journal=path)
        program.on(budget=Budget(calls=9)).batch(ROWS)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute(f"UPDATE entries SET {change} WHERE id = 3")
            database.commit()
        with pytest.raises(JournalError, match="can't be read"):
            program.on(budget=Budget(calls=48), resume=True).batch(ROWS)
        assert len(simulator.arrivals) == 9


def test_errors_come_before_anything_is_sent(tmp_path: Path):
    with hosted(), Simulator() as simulator:
        for spec, message in (("openai:gpt-0", "no price"), ("anthropic:claude-2", "no bound")):
            program = answer.on(lmc.remote(spec, base_url=simulator.url, api_key_env="LMC_TEST_KEY"))
            with pytest.raises(InputError, match=message):
                program.on(budget=Budget(usd=1)).batch(ROWS)
        assert simulator.arrivals == []
    with pytest.raises(InputError, match="dollars can't bound toy"):
        answer.on("toy", budget=Budget(usd=1)).run("a")


@pytest.mark.parametrize("budget", [Budget(calls=5), Budget(tokens=300)])
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_local_targets_have_budgets(budget: Budget, level: Any):
    found = discussion.on("toy", budget=budget, level=level).batch(ROWS)
    used = sum((each.usage for each in found), Usage())
    assert Amount.of(used).fits(budget)
    assert any(isinstance(each.error, BudgetError) for each in found)
    free = discussion.on("toy").batch(ROWS)
    enough = discussion.on("toy", budget=Budget(calls=48)).batch(ROWS)
    assert [(each.value, each.usage) for each in enough] == [(each.value, each.usage) for each in free]


@pytest.mark.parametrize("form", ["list", "generator"])
def test_no_row_starts_after_the_end_of_a_budget(form: str, tmp_path: Path):
    """Nor does one of its tools run; also where the budget was used up before."""
    saved: list[str] = []

    @lmc.tool(effect="writes")
    def save(text: str) -> str:
        saved.append(text)
        return text

    @lmc.jit(target="toy", budget=Budget(calls=5), journal=tmp_path / "j")
    def writer(s: Any, question: str):
        s += save(question)
        return s.gen("a", max_tokens=4)

    rows = [{"question": str(number)} for number in range(400)]
    begun = 0
    for program in (writer, writer.on(resume=True)):
        found = program.batch(rows if form == "list" else iter(rows))
        assert len(found) == len(rows)
        refused = [each.error for each in found if isinstance(each.error, BudgetError)]
        assert len(refused) >= len(rows) - 5
        assert all("test_budgets.py" in str(each) for each in refused)
        assert 5 <= len(saved) <= Limits().requests, "those that are under way together have started"
        begun = begun or len(saved)
        assert len(saved) == begun, "none starts where the budget is used up before"


@pytest.mark.parametrize("spec", ["toy", "simulated"])
def test_the_end_of_a_budget_ends_an_eager_run_with_a_journal(tmp_path: Path, spec: str):
    with hosted(), Simulator() as simulator:
        place = "toy" if spec == "toy" else target(simulator.url, "chat", attempts=1)
        program = discussion.on(place, budget=Budget(calls=1), journal=str(tmp_path / "j"))
        with pytest.raises(BudgetError):
            program.eager("What?")


def test_plain_python_does_not_catch_the_end_of_a_budget():
    tries: list[int] = []

    @lmc.jit(target="toy", budget=Budget(calls=1))
    def stubborn(s: Any):
        print(s.gen("first", max_tokens=2))
        for number in range(3):
            try:
                s.gen("more", max_tokens=2)
            except Exception:
                tries.append(number)

    with pytest.raises(BudgetError):
        stubborn.run()
    with pytest.raises(BudgetError):
        driver_eager(stubborn)
    assert tries == []


def driver_eager(program: Any) -> Any:
    return program._runner.eager(((), {}))


def test_the_command_keeps_what_is_finished_and_resumes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    Path("budget_program.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with hosted(), Simulator() as simulator:
        Path("pyproject.toml").write_text(
            f'[tool.lmc.targets.fast]\nkind = "openai"\nmodel = "gpt-4.1"\nbase_url = "{simulator.url}/v1"\n'
            'api_key_env = "LMC_TEST_KEY"\nattempts = 1\n'
        )
        command = ["run", "budget_program.py", "--input", "rows.jsonl", "-o", "out.jsonl", "--model", "fast"]
        assert run_command(monkeypatch, *command, "--budget-calls", "6", "--budget-usd", "5") == 1
        assert "budget" in capsys.readouterr().err
        assert len(Path("out.jsonl").read_text().splitlines()) == len(simulator.arrivals) == 6
        assert run_command(monkeypatch, *command, "--resume", "--budget-calls", "100") == 0
        rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
        assert sorted(row["index"] for row in rows) == list(range(len(ROWS)))
        assert len(simulator.arrivals) == len(ROWS)


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    from lmc.cli.app import main

    monkeypatch.setattr(sys, "argv", ["lmc", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0

"""Dollars of runs on simulated providers: those of what the providers bill, each attempt priced by itself."""

import dataclasses
import json
import re
import subprocess
import sys
import time
from decimal import Decimal
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc.cost.budget import Budget
from lmc.cost.prices import Price, PriceBook, Rate
from lmc.driver.commands.cost import estimate_rows_of
from lmc.driver.options import Options
from lmc.driver.run import money
from lmc.driver.run.money import CostTotal, RunPrices, Spending, dollars_text
from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.remote.engine import RemoteEngine
from tests.runtime.journal.journals import begun, break_off
from tests.runtime.remote.faults import Fault, FaultProxy, listed, seeded
from tests.runtime.remote.hosted_runs import KEY_NAME, PROGRAM, SPECS, answer, discussion, hosted, target
from tests.runtime.remote.simulator import Simulator
from tests.runtime.remote.test_budgets import billed, run_command

ROWS = [{"question": f"What is {number}?"} for number in range(5)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command imports is forgotten."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def total(results: list[lmc.Result[Any]]) -> Decimal:
    costs = [each.cost for each in results]
    assert None not in costs
    return sum((each for each in costs if each is not None), Decimal(0))


@pytest.mark.parametrize("api", SPECS)
@pytest.mark.parametrize("form", ["list", "generator", "eager"])
def test_a_result_costs_what_the_provider_bills(api: str, form: str):
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, api))
        if form == "eager":
            found = [program.eager(**row) for row in ROWS]
        else:
            found = program.batch(ROWS if form == "list" else iter(ROWS))
        assert total(found) == billed(simulator).usd > 0
        assert not any(each.unknown_calls for each in found)


@pytest.mark.parametrize("journaled", [False, True])
def test_the_rest_of_a_run_has_the_attempts_of_what_was_cancelled(journaled: bool, tmp_path: Path):
    """They end a moment after the run, which is interrupted: each of them may have been billed."""
    prompt = (256, *b"user\nWhat?", 257, 256, *b"assistant\n")
    with hosted(), Simulator(latency=5.0) as simulator:
        place = answer.on(target(simulator.url, "chat")).compile().target
        engine = RemoteEngine(place, message_tokenizer())
        try:
            spent = money.RunMoney.of(None, place)
            journal = begun(tmp_path / "j") if journaled else None
            metered = spent.layered(engine, journal)
            asked = [metered.submit(Request(prompt, SamplingParams(max_tokens=9), op_id=f"{n}")) for n in range(20)]
            while len(simulator.arrivals) < len(asked):
                time.sleep(0.01)
            for each in asked:
                each.cancel()
            if journal is not None:
                journal.close()  # as the run does, which does not wait for them
            rest = spent.rest()
            assert rest is not None
            assert rest.unknown_calls == len(asked)
        finally:
            engine.close()


@pytest.mark.parametrize("api", SPECS)
def test_a_result_has_the_estimate_of_its_row(api: str):
    with hosted(), Simulator() as simulator:
        place = target(simulator.url, api)
        program = discussion.on(place)
        for row, result in zip(ROWS[:2], program.batch(ROWS[:2]), strict=True):
            found, cost = result.estimated_cost, result.cost
            assert found == estimate_rows_of(discussion._runner.function, Options(place), [row]).total.dollars
            assert found is not None
            assert cost is not None
            assert cost in found
            sent = ForkingPickler.loads(ForkingPickler.dumps(result))  # pyright: ignore[reportAttributeAccessIssue]
            assert (sent, sent.cost, sent.estimated_cost) == (result, cost, None)
            assert dataclasses.asdict(result)["value"] == result.value
        assert program.eager(**ROWS[0]).estimated_cost is None
    assert discussion.on("toy").run("What?").estimated_cost is None


def test_the_cost_of_answers_from_a_journal_is_theirs(monkeypatch: pytest.MonkeyPatch):
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat"), journal="j")
        with monkeypatch.context() as patch:
            break_off(patch, after=30)
            with pytest.raises(lmc.LmcError):
                program.batch(ROWS)
        found = program.on(resume=True).batch(ROWS)
        plain = program.on(journal="k").batch(ROWS)
        assert [each.cost for each in found] == [each.cost for each in plain]


@pytest.mark.parametrize("seed", range(3))
def test_failed_attempts_count_and_unknown_ones_are_counted(seed: int):
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, seeded(seed, rate=0.4)) as proxy:
        found = discussion.on(target(proxy.url, "chat", attempts=3, timeout=1.0)).batch(ROWS)
        paid, unknown = billed(simulator), sum(each.unknown_calls for each in found)
        costs = [each.cost for each in found if each.cost is not None]
        assert len(costs) == len(ROWS)
        assert sum(costs) <= paid.usd
        assert unknown or sum(costs) == paid.usd
        assert unknown >= paid.calls - sum(each.usage.calls - each.unknown_calls for each in found)


def test_a_fallback_is_paid_at_its_own_price():
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, listed([Fault.SERVER_ERROR] * 60)) as proxy:
        first, second = target(proxy.url, "chat", attempts=1), target(simulator.url, "messages")
        kind, model = second.spec.split(":")
        Path("pyproject.toml").write_text(
            f'[tool.lmc.targets.second]\nkind = "{kind}"\nmodel = "{model}"\n'
            f'base_url = "{second.settings["base_url"]}"\napi_key_env = "{second.settings["api_key_env"]}"\n'
        )
        found = answer.on(lmc.remote(first.spec, **{**first.settings, "fallback": "second"})).batch(ROWS)
        assert total(found) == billed(simulator).usd > 0
        assert all(each.fallbacks for each in found)


def test_results_without_a_price_have_no_cost():
    assert discussion.on("toy").run("What?").cost is None
    with hosted(), Simulator() as simulator:
        place = lmc.remote("openai:gpt-0", base_url=f"{simulator.url}/v1", api_key_env=KEY_NAME, api="chat")
        with pytest.raises(lmc.LmcError):
            answer.on(place).run("What?")
        server = lmc.remote(f"server:{simulator.url}/v1#gpt-4.1", api_key_env=KEY_NAME, api="chat")
        found = answer.on(server).run("What?")
        assert (found.cost, found.usage.calls) == (None, 1)
        Path("pyproject.toml").write_text('[tool.lmc.prices."gpt-4.1"]\ninput = 1000000\noutput = 0\n')
        found = answer.on(server).run("What?")
        assert found.cost == found.usage.prompt_tokens


def command_with(url: str) -> list[str]:
    Path("cost_program.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("pyproject.toml").write_text(
        f'[tool.lmc.targets.fast]\nkind = "openai"\nmodel = "gpt-5.6"\nbase_url = "{url}/v1"\napi = "chat"\n'
        'api_key_env = "LMC_TEST_KEY"\nattempts = 2\n'
    )
    return ["run", "cost_program.py", "--input", "rows.jsonl", "-o", "out.jsonl", "--model", "fast"]


@pytest.mark.usefixtures("_modules")
def test_the_summary_names_dollars_and_the_entry_of_the_price(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with hosted(), Simulator() as simulator:
        assert run_command(monkeypatch, *command_with(simulator.url), "--budget-usd", "3") == 0
        said = capsys.readouterr().err
        dollars = dollars_text(billed(simulator).usd)
        assert f"; {dollars} (prices genai-prices {PriceBook().bundled_version}, entry openai/gpt-5.6-sol)" in said
        assert "of the budget of 3 dollars, 0.0" in said
        assert re.search(rf"; estimated \$0\.\d+ \(max \$0\.\d+\), {len(ROWS)} calls", said), said
        assert "at least" not in said


@pytest.mark.usefixtures("_modules")
def test_a_run_that_has_nothing_left_to_do_tells_nothing_of_its_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It reads no journal, so it does not know what earlier sessions have spent."""
    with hosted(), Simulator() as simulator:
        command = [*command_with(simulator.url), "--journal", "run.lmcj", "--budget-usd", "3"]
        assert run_command(monkeypatch, *command) == 0
        assert "of the budget of 3 dollars, 0.0" in capsys.readouterr().err
        assert run_command(monkeypatch, *command, "--resume") == 0
        said = capsys.readouterr().err
    assert f"0 rows, 0 failed ({len(ROWS)} more were there already" in said
    assert "budget" not in said


@pytest.mark.usefixtures("_modules")
def test_an_estimate_without_a_bound_is_at_least_so_much(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with hosted(), Simulator() as simulator:
        command = command_with(simulator.url)
        Path("cost_program.py").write_text(
            "import lmc\n\n\n@lmc.jit\ndef looping(s, question: str):\n    s += lmc.user(question)\n"
            "    while s.gen('a', max_tokens=4) == 'END':\n        s += lmc.user('Again.')\n    return s['a']\n"
        )
        assert run_command(monkeypatch, *command) == 0
    said = capsys.readouterr().err
    assert re.search(r"; estimated at least \$0\.\d+ \(unbounded\), at least [\d.]+–unbounded calls", said), said


@pytest.mark.usefixtures("_modules")
def test_the_summary_lists_attempts_that_may_have_cost_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    faults = listed([Fault.RESET_WITHIN_ANSWER] * 3)
    with hosted(), Simulator() as simulator, FaultProxy(simulator.url, faults) as proxy:
        assert run_command(monkeypatch, *command_with(proxy.url), "--budget-usd", "3") in (0, 1)
        said = capsys.readouterr().err
        assert "at least $" in said
        assert "3 attempts may have cost more, without a whole answer" in said
        assert "3 attempts without a whole answer at the worst case" in said


def test_local_models_need_no_prices():
    code = (
        "import sys; sys.argv = ['lmc', 'run', 'p.py', '--model', 'toy', 'question=a']; from lmc.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "assert 'genai_prices' not in sys.modules"
    )
    Path("p.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "$" not in done.stderr


def test_sums_of_tokens_are_never_priced(monkeypatch: pytest.MonkeyPatch):
    """A tier applies to the single request: two prompts of 150 tokens are not one of 300."""
    price = Price("own/model", "pyproject.toml", Rate(Decimal(10**6), ((200, Decimal(2 * 10**6)),)), Rate(Decimal(0)))
    monkeypatch.setattr(money.PriceBook, "find", lambda *_: price)
    prices = RunPrices(hosted_target("openai:gpt-5.6", {}), money.PriceBook())
    spending = Spending(prices, [Attempt(Usage(150, 0, 0, 1))] * 2)
    assert spending.usd == 300
    assert Spending(prices, [Attempt(Usage(300, 0, 0, 1))]).usd == 600
    both = CostTotal()
    both.add(spending)
    both.add(Spending(prices, [Attempt(Usage(cache_written_tokens=5, prompt_tokens=5), is_whole=False)]))
    assert both.lines() == [
        "at least $300.0000 (prices pyproject.toml, entry own/model)",
        "own/model is unpriced (1 request)",
        "1 attempt may have cost more, without a whole answer",
    ]
    assert [dollars_text(Decimal(text)) for text in ("0", "0.00000123", "0.03610001", "12")] == [
        "$0.0000",
        "$0.0000013",
        "$0.0362",
        "$12.0000",
    ]


def test_a_budget_does_not_change_a_cost():
    with hosted(), Simulator() as simulator:
        program = answer.on(target(simulator.url, "chat"), budget=Budget(usd=9))
        assert total(program.batch(ROWS)) == billed(simulator).usd

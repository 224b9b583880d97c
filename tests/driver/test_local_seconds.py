"""Seconds of local models in cost reports: simulated before a run, with constants that were measured."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc import driver
from lmc.cache.simulation.report import CostModel
from lmc.driver.commands import cost
from lmc.driver.targets.calibrations import Calibration, keep_calibration
from lmc.ir.engine.target import Target

PROGRAM = """
import lmc


@lmc.jit
def views(s, text: str):
    s += "A long beginning that all rows share, so that it is computed once. " + text
    branches = s.fork(3)
    for number, branch in enumerate(branches):
        branch += f" View {number}:"
        branch.gen("view", max_tokens=6, min_tokens=6)
    s += " All: " + " ".join(branch["view"] for branch in branches)
    return s.gen("last", max_tokens=5, min_tokens=5)


@lmc.jit
def sides(s, text: str):
    first, other = s.fork(2)
    first += lmc.user(text)
    if first.select("ok", ["yes", "no"]) == "no":
        return None
    other += lmc.system("These are the rules that all rows share: be short, be kind, and never guess. " * 2)
    other += lmc.user(text)
    return other.gen("last", max_tokens=5, min_tokens=5)


@lmc.jit
def unclear(s, text: str):
    s += text
    if s.select("kind", ["a", "b"]) == "a":
        s += " So:"
        s.gen("more", max_tokens=40)
    return s.gen("last", max_tokens=100, stop="\\n")
"""
STEPS = CostModel(step=1.0, row=0.0, attended=0.0)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMC_CALIBRATIONS", str(tmp_path / "calibrations.json"))
    (tmp_path / "p.py").write_text(PROGRAM)
    found = [{"text": f"{number} of some rows."} for number in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    return found


def calibrate(costs: CostModel) -> None:
    keep_calibration(Target("builtin"), Calibration(datetime.date(2026, 1, 2), "a machine", costs, 0.125))


def cost_of(name: str, rate: Decimal | None = None) -> Any:
    entry = cost.CostEntry(f"p.py:{name}", data="rows.jsonl", models=("builtin",))
    return cost.run([entry], {}, rate).report.programs[0]


def test_the_run_is_that_of_the_engine(rows: list[dict[str, str]]):
    calibrate(STEPS)
    found = cost_of("views")
    runner = driver.runner_for(driver.load_program("p.py:views"), {"target": "builtin"})
    driver.flush_cache(runner.options)
    usages = [result.usage for result in runner.batch([((), row) for row in rows])]
    prompt, cached = sum(usage.prompt_tokens for usage in usages), sum(usage.cached_tokens for usage in usages)
    assert found.local.hit_rate == pytest.approx(cached / prompt, abs=0.01)
    assert found.total.cached.expected == pytest.approx(found.local.hit_rate * found.total.prompt.expected, abs=1)
    # The prefixes of the batch and of the row, then two requests: the first step of each computes its prompt.
    assert found.critical_path.seconds.expected == 1 + 1 + 6 + 5
    assert 13 <= found.total.seconds.expected <= 16
    assert found.total.seconds.is_exact or found.total.seconds.most >= found.total.seconds.expected
    assert 0 < found.local.kv_peak <= prompt + 23 * len(rows)


def test_prefixes_of_a_batch_are_computed_wherever_their_calls_are(rows: list[dict[str, str]]):
    """The first row may come to the call or not: the rows after it find the prefix all the same."""
    calibrate(STEPS)
    found = cost_of("sides")
    of_calls = sum(call.cached.expected for call in found.calls)
    assert found.total.cached.expected == pytest.approx(of_calls, rel=0.02)
    runner = driver.runner_for(driver.load_program("p.py:sides"), {"target": "builtin"})
    driver.flush_cache(runner.options)
    results = runner.batch([((), row) for row in rows])
    assert all(result.value for result in results)
    Path("p.json").write_text(lmc.Profile.merge("sides", [result.profile for result in results]).to_json())
    entry = cost.CostEntry("p.py:sides", data="rows.jsonl", models=("builtin",), profile="p.json")
    with_profile: Any = cost.run([entry], {}).report.programs[0]
    assert with_profile.total.cached.expected == sum(result.usage.cached_tokens for result in results)


@pytest.mark.parametrize("name", ["views", "sides", "unclear"])
def test_ranges_are_ordered_and_the_same_each_time(rows: list[dict[str, str]], name: str):
    calibrate(CostModel(step=1e-3, row=1e-4, attended=1e-7, drawn=1e-5, held=1e-6, least_rows=8))
    found = cost_of(name)
    for seconds in (found.total.seconds, found.critical_path.seconds):
        assert 0 < seconds.least <= seconds.expected <= seconds.most
    assert found.critical_path.seconds.expected <= found.total.seconds.expected
    assert found == cost_of(name)
    assert found.local.machine == "a machine"
    assert found.local.error == 0.125


def test_an_hour_has_a_price(rows: list[dict[str, str]]):
    calibrate(STEPS)
    found = cost_of("views", Decimal(36))
    seconds = found.total.seconds
    assert found.total.usd.expected == Decimal(seconds.expected) / 100
    assert found.unpriced is None
    assert cost_of("views").total.usd is None


def test_without_a_calibration_there_are_no_seconds(rows: list[dict[str, str]]):
    found = cost_of("views")
    assert (found.total.seconds, found.critical_path.seconds, found.local, found.total.usd) == (None,) * 4
    assert found.unpriced
    with pytest.raises(driver.UsageError, match="calibration") as raised:
        cost_of("views", Decimal(36))
    assert "lmc calibrate" in (raised.value.remedy or "")


@pytest.mark.parametrize("text", ["much", "-1", "NaN", "1e9"])
def test_a_rate_is_a_number_of_dollars(text: str):
    with pytest.raises(driver.UsageError, match="--rate-usd-per-hour is"):
        cost.rate_of(text)
    assert cost.rate_of("2.5") == Decimal("2.5")
    assert cost.rate_of(None) is None

"""Baselines, the causes of a change, and limits."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.errors import InputError
from lmc.report.cost.baseline import baseline_of, baseline_schema_text, baseline_text, read_baseline
from lmc.report.cost.changes import causes, earlier, total_change, versus
from lmc.report.cost.comparison import ComparedReport, DollarChange, compare
from lmc.report.cost.limits import CheckedLimit, CostLimits, check_limits
from lmc.report.cost.model import CountRange, MoneyRange, PriceRate, ProgramCost
from tests.project.layers import REPOSITORY
from tests.report.cost.reports import PRICE, program, report

_BEFORE: dict[str, dict[str, float]] = {
    "judge/topic": {"calls": 10, "prompt": 1000, "cached": 400, "output": 10},
    "judge/why": {"calls": 10, "prompt": 2000, "cached": 0, "output": 300},
}


def _compared(now: ProgramCost, was: ProgramCost, *, is_complete: bool = True) -> ComparedReport:
    stored = read_baseline(baseline_text(baseline_of(report(was))), "lmc-cost.json")
    return compare(report(now), stored, is_complete=is_complete)


def _with(op: str, **values: float) -> dict[str, dict[str, float]]:
    return {**_BEFORE, op: {**_BEFORE.get(op, {}), **values}}


def _verdicts(limits: CostLimits, now: ProgramCost, was: ProgramCost | None) -> list[CheckedLimit]:
    found = None if was is None else _compared(now, was)
    return list(check_limits(report(now), found, limits, {}))


def test_a_baseline_is_read_as_it_was_written_and_has_no_lines() -> None:
    found = baseline_of(report(program(_BEFORE)))
    text = baseline_text(found)
    assert read_baseline(text, "x") == found
    assert text == baseline_text(baseline_of(report(program(_BEFORE, line=99)))), "an edit elsewhere moves the lines"
    assert list(json.loads(text)["programs"]["judge.py:judge"]["openai:m"]["calls"]) == sorted(_BEFORE)
    jsonschema.Draft202012Validator(json.loads(baseline_schema_text())).validate(json.loads(text))


def test_the_schema_is_published() -> None:
    published = REPOSITORY / "docs" / "lmc-cost-baseline.schema.json"
    assert published.read_text(encoding="utf-8") == baseline_schema_text(), "python -m tests.report.golden writes it"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(schema_version=2), "schema_version 2, and this lmc knows 1"),
        (lambda data: data.update(format="other"), "no baseline"),
        (lambda data: data.pop("programs"), "programs: Field required"),
        (lambda data: data.update(more=1), "Extra inputs"),
        (lambda data: _total(data).update(usd=0.1), "decimal number in a string"),
        (lambda data: _total(data).update(calls=-1), "greater than or equal to 0"),
        (lambda data: _total(data).update(calls="10"), None),
        (lambda data: _total(data).update(usd="-0.1"), "greater than or equal to 0"),
        (lambda data: _total(data).update(usd="0.1"), "are not the sum of its calls"),
        (lambda data: _calls(data).pop("judge/why"), "are not the sum of its calls"),
        (lambda data: _calls(data)["judge/why"].update(usd=None), "are not the sum of its calls"),
        (lambda data: _total(data).update(usd=None), None),
    ],
)
def test_invalid_baselines_are_errors(change: Any, message: str | None) -> None:
    data = json.loads(baseline_text(baseline_of(report(program(_BEFORE)))))
    change(data)
    text = json.dumps(data)
    if message is None:
        read_baseline(text, "lmc-cost.json")
        return
    with pytest.raises(InputError) as raised:
        read_baseline(text, "lmc-cost.json")
    assert message in str(raised.value)


def _total(data: Any) -> Any:
    return data["programs"]["judge.py:judge"]["openai:m"]["total"]


def _calls(data: Any) -> Any:
    return data["programs"]["judge.py:judge"]["openai:m"]["calls"]


def test_keys_that_a_merge_has_left_twice_are_an_error() -> None:
    text = baseline_text(baseline_of(report(program(_BEFORE))))
    assert text.count('"judge/why"') == 1
    with pytest.raises(InputError, match="is there twice"):
        read_baseline(text.replace('"judge/topic"', '"judge/why"'), "lmc-cost.json")


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "null", '{"format": "lmc-cost"}'])
def test_other_files_are_no_baselines(text: str) -> None:
    with pytest.raises(InputError):
        read_baseline(text, "lmc-cost.json")


def test_a_baseline_of_other_rows_is_an_error() -> None:
    with pytest.raises(InputError, match="is for other rows"):
        _compared(program(_BEFORE), program(_BEFORE, digest="cd" * 32))


def test_each_cause_has_its_share() -> None:
    was = program(_BEFORE)
    (same,) = _compared(program(_BEFORE), was).programs
    assert same.change is not None
    assert same.change.own == same.change.prices == 0
    assert [call.kind for call in same.calls] == ["same", "same"]
    cases = {
        "calls": {"calls": 20, "prompt": 4000, "output": 600},
        "prompt": {"prompt": 3000},
        "hits": {"cached": 1000},
        "output": {"output": 500},
    }
    for cause, values in cases.items():
        now = program(_with("judge/why", **values))
        change = _compared(now, was).change
        assert change is not None
        for name in cases:
            assert (getattr(change, name) != 0) == (name == cause), (cause, name)
        assert change.other == 0
        assert now.total.usd is not None
        assert was.total.usd is not None
        assert change.own == now.total.usd.expected - was.total.usd.expected


def test_other_prices_are_no_change_of_the_program() -> None:
    dearer = PRICE.model_copy(update={"input": PriceRate(base=Decimal(4)), "version": "0.2.4"})
    now, was = program(_with("judge/why", output=600), price=dearer), program(_BEFORE)
    change = _compared(now, was).change
    same_prices = _compared(program(_with("judge/why", output=600)), was).change
    assert change is not None
    assert same_prices is not None
    assert change.own == same_prices.own == change.output
    assert change.prices == Decimal("0.0052"), "600 + 2,000 tokens that are not cached, 2 dollars more per million"
    limits = CostLimits(max_increase_percent=Decimal(0))
    (unchanged,) = _verdicts(limits, program(_BEFORE, price=dearer), was)
    assert unchanged.verdict == "kept"
    assert "apart" in unchanged.message
    (counted,) = _verdicts(CostLimits(max_increase_percent=Decimal(0), count_price_changes=True), now, was)
    assert counted.verdict == "exceeded"


@given(
    st.integers(1, 50), st.integers(0, 9999), st.integers(0, 9999), st.integers(0, 999), st.decimals(0, 99, places=2)
)
def test_the_causes_add_up(calls: int, prompt: int, cached: int, output: int, rate: Decimal) -> None:
    price = PRICE.model_copy(update={"input": PriceRate(base=rate), "output": PriceRate(base=rate)})
    values = {"calls": calls, "prompt": prompt, "cached": min(prompt, cached), "output": output}
    now, was = program(_with("judge/why", **values), price=price), program(_BEFORE)
    change = _compared(now, was).change
    assert change is not None
    assert now.total.usd is not None
    assert was.total.usd is not None
    assert abs(change.own + change.prices - (now.total.usd.expected - was.total.usd.expected)) < Decimal("1e-10")


def test_added_removed_and_renamed_calls() -> None:
    was = program(_BEFORE)
    renamed = {"judge/topic": _BEFORE["judge/topic"], "judge/reason": _BEFORE["judge/why"]}
    (found,) = _compared(program(renamed), was).programs
    assert [(call.op, call.kind, call.before) for call in found.calls] == [
        ("judge/topic", "same", None),
        ("judge/reason", "renamed", "judge/why"),
    ]
    assert found.change is not None
    assert found.change.own == 0
    (found,) = _compared(program({"judge/topic": _BEFORE["judge/topic"]}), was).programs
    assert [(call.op, call.kind) for call in found.calls] == [("judge/topic", "same"), ("judge/why", "removed")]
    assert found.change is not None
    assert found.change.own == found.change.calls < 0
    (found,) = _compared(program(_with("judge/more", calls=1, prompt=5, output=5)), was).programs
    assert [call.kind for call in found.calls] == ["same", "same", "added"]


def test_programs_that_are_gone_or_new() -> None:
    limits = CostLimits(max_increase_percent=Decimal(5))
    was = program(_BEFORE)
    other = program(_with("judge/why", output=900), name="other.py:other")
    found = _compared(other, was)
    assert tuple(found.removed) == (was.key,)
    assert found.programs[0].was is None
    assert found.change is not None
    assert was.total.usd is not None
    assert other.total.usd is not None
    assert found.before == was.total.usd.expected
    assert found.change.own == other.total.usd.expected - was.total.usd.expected
    (limit,) = _verdicts(limits, other, was)
    assert limit.verdict == "exceeded", "what is removed counts as what was there before"
    assert not _compared(other, was, is_complete=False).removed
    empty = compare(report(other), baseline_of(report()), is_complete=True)
    (limit,) = check_limits(report(other), empty, limits, {})
    assert limit.verdict == "new"
    assert not limit.fails


def test_a_renamed_program_has_not_changed() -> None:
    renamed = program(_BEFORE, name="other.py:judge")
    found = _compared(renamed, program(_BEFORE))
    assert not found.removed
    assert found.programs[0].before == ("judge.py:judge", "openai:m")
    assert found.change == DollarChange()
    (limit,) = _verdicts(CostLimits(max_increase_percent=Decimal(0)), renamed, program(_BEFORE))
    assert limit.verdict == "kept"
    assert earlier(found.programs[0]) == "renamed from judge.py:judge, "


def test_another_model_is_a_change_of_the_program() -> None:
    dearer = PRICE.model_copy(update={"input": PriceRate(base=Decimal(4)), "cached": PriceRate(base=Decimal(1))})
    now = program(_BEFORE, model="openai:large", price=dearer)
    found = _compared(now, program(_BEFORE))
    assert not found.removed
    assert found.change is not None
    assert found.change.prices == 0
    assert found.change.own == found.change.model > 0
    for own in ({}, {now.key: CostLimits(max_increase_percent=Decimal(10))}):
        limits = check_limits(report(now), found, CostLimits(max_increase_percent=Decimal(10)), own)
        assert {each.verdict for each in limits} == {"exceeded"}
    assert earlier(found.programs[0]) == "model changed from openai:m, "


def test_limits_are_kept_exceeded_or_unknown() -> None:
    now, was = program(_with("judge/why", output=600)), program(_BEFORE)
    assert now.total.usd is not None
    dollars = now.total.usd.expected
    cases = [
        (CostLimits(max_usd=dollars), now, "kept"),
        (CostLimits(max_usd=dollars - Decimal("0.000001")), now, "exceeded"),
        (CostLimits(max_usd=Decimal(99)), program(_BEFORE, price=None), "unknown"),
        (CostLimits(max_usd=Decimal(99)), program(_BEFORE, is_whole=False), "unknown"),
        (CostLimits(max_usd=Decimal(0)), program(_BEFORE, is_whole=False), "exceeded"),
        (CostLimits(max_calls=Decimal(20)), now, "kept"),
        (CostLimits(max_calls=Decimal(19)), now, "exceeded"),
        (CostLimits(max_seconds=Decimal(19)), now, "unknown"),
        (CostLimits(min_cached_fraction=Decimal("0.1")), now, "kept"),
        (CostLimits(min_cached_fraction=Decimal("0.2")), now, "exceeded"),
        (CostLimits(max_increase_percent=Decimal(50)), now, "kept"),
        (CostLimits(max_increase_percent=Decimal(5)), now, "exceeded"),
        (CostLimits(max_increase_percent=Decimal(5)), program(_BEFORE, price=None), "unknown"),
    ]
    for limits, found, verdict in cases:
        (checked,) = _verdicts(limits, found, was)
        assert checked.verdict == verdict, (limits, checked)
        assert checked.fails == (verdict in {"exceeded", "unknown"})
    (without,) = _verdicts(CostLimits(max_increase_percent=Decimal(5)), now, None)
    assert without.verdict == "unknown"
    assert "--baseline" in without.message


def test_unbounded_figures_keep_no_limit() -> None:
    def unbounded(value: CountRange | MoneyRange | None) -> Any:
        return None if value is None else value.model_copy(update={"most": None})

    plain = program(_BEFORE)
    total = plain.total.model_copy(
        update={
            "calls": unbounded(plain.total.calls),
            "usd": unbounded(plain.total.usd),
            "seconds": CountRange(least=0, expected=1, most=None),
        }
    )
    now = plain.model_copy(update={"total": total})
    for limits in (
        CostLimits(max_usd=Decimal(9)),
        CostLimits(max_calls=Decimal(20)),
        CostLimits(max_seconds=Decimal(9)),
    ):
        (checked,) = _verdicts(limits, now, None)
        assert checked.verdict == "unknown", checked
        assert "judge.py:judge on openai:m is unbounded" in checked.message
    (exceeded,) = _verdicts(CostLimits(max_calls=Decimal(19)), now, None)
    assert exceeded.message == "20 > 19"


def test_limits_of_single_programs() -> None:
    one, two = program(_BEFORE), program(_BEFORE, name="other.py:other")
    found = check_limits(report(one, two), None, CostLimits(), {two.key: CostLimits(max_calls=Decimal(1))})
    assert [(each.scope, each.verdict) for each in found] == [("other.py:other on openai:m", "exceeded")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"max_dollars": 1}, "no key 'max_dollars'"),
        ({"max_usd": "5"}, "max_usd is '5'"),
        ({"max_usd": -1}, "max_usd is -1"),
        ({"max_usd": float("nan")}, "max_usd is nan"),
        ({"max_calls": True}, "max_calls is True"),
        ({"min_cached_fraction": 1.5}, "min_cached_fraction is 1.5"),
        ({"count_price_changes": 1}, "count_price_changes is 1"),
    ],
)
def test_tables_of_limits_that_are_wrong(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        CostLimits.of(table, f"{Path('pyproject.toml')}: [tool.lmc.budget]")
    assert message in str(raised.value)


def test_calls_and_tokens_are_compared_where_dollars_are_not_known() -> None:
    more = {"calls": 20, "prompt": 1500, "cached": 0, "output": 10.004}
    now, was = _with("judge/topic", **more), _with("judge/old", calls=1, prompt=7)
    found = _compared(program(now, price=None), program(was, price=None)).programs[0]
    assert [(each.op, versus(each)) for each in found.calls] == [
        ("judge/topic", "calls ▲100 %, in ▲50 %, cached ▼100 %, out ▲0.04 %"),
        ("judge/why", "±0 tokens"),
        ("judge/old", "removed"),
    ]
    assert total_change(found) == "calls ▲43 %, in ▲16 %, cached ▼100 %, out ▲0.001 %"
    assert causes(found) == (
        f"your change {total_change(found)}; dollars not known: a price is missing now or in the baseline"
    )
    same = _compared(program(_BEFORE, price=None), program(_BEFORE, price=None)).programs[0]
    assert causes(same).startswith("your change ±0 tokens; dollars not known")
    (added, *_) = _compared(
        program(_with("a/new", calls=1, prompt=7), price=None), program(_BEFORE, price=None)
    ).programs
    assert [versus(each) for each in added.calls] == ["±0 tokens", "±0 tokens", "added"]

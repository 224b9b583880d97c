"""Markdown, JUnit and SARIF: valid, bounded, and without anything that texts of programs could add."""

from __future__ import annotations

import html
import json
import re
from decimal import Decimal
from functools import cache
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings

from lmc.report.cost.baseline import baseline_of
from lmc.report.cost.comparison import compare
from lmc.report.cost.junit import junit
from lmc.report.cost.limits import CheckedLimit, CostLimits, check_limits
from lmc.report.cost.markdown import MARKER, MOST_CHARACTERS, markdown
from lmc.report.cost.model import CostHint, CostPlace, CostReport, CountRange, LocalRun
from lmc.report.cost.sarif import sarif
from lmc.report.cost.table import table
from tests.report.browser.bundle import TOOLS
from tests.report.cost.reports import program, report, reports

_SARIF = TOOLS / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"
"""The schema of OASIS."""
_LIMITS = CostLimits(Decimal(1), Decimal(5), Decimal(3), Decimal(1), Decimal("0.5"))
_TAGS = re.compile(r"<[^>]*>")
_OWN_TAGS = {MARKER, "<details>", "</details>", "<summary>", "</summary>"}


def _limits(found: CostReport) -> tuple[CheckedLimit, ...]:
    own = {each.key: _LIMITS for each in found.programs}
    return check_limits(found, compare(found, baseline_of(found), is_complete=True), _LIMITS, own)


@settings(max_examples=60, deadline=None)
@given(reports(), reports())
def test_texts_of_programs_are_escaped(now: CostReport, before: CostReport) -> None:
    compared = compare(now, baseline_of(before), is_complete=True)
    for text in (markdown(now, None, ()), markdown(now, compared, _limits(now))):
        assert len(text) < MOST_CHARACTERS + 1
        assert text.startswith(f"{MARKER}\n")
        assert set(_TAGS.findall(text)) <= _OWN_TAGS
        assert "@" not in text
        assert "](" not in text
        assert text.count("```") in {0, 2}
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert all(line.endswith("|") for line in rows)
        widths = {line.count("|") for line in rows}
        assert len(widths) <= 1
    _check_junit(junit(_limits(now)), _limits(now))


@pytest.mark.skipif(not _SARIF.exists(), reason="the schema of SARIF is not here; run make browser")
@settings(max_examples=60, deadline=None)
@given(reports())
def test_sarif_is_valid(now: CostReport) -> None:
    validator = _sarif_validator()
    validator.validate(json.loads(sarif(now)))
    assert not validator.is_valid({"version": "2.1.0", "runs": [{"tool": {}}]})


def test_a_comment_is_never_too_long() -> None:
    calls = {f"judge/{'*' * 150}{number}": {"calls": number + 1, "prompt": 10, "output": 1} for number in range(300)}
    hints = tuple(CostHint(code="LMC101", message="[" * 900) for _ in range(900))
    many = report(*(program(calls, name="_" * 150 + str(number), hints=hints) for number in range(12)))
    text = markdown(many, compare(many, baseline_of(report()), is_complete=True), _limits(many))
    assert 20_000 < len(text) <= MOST_CHARACTERS
    assert text.count("<details>") == text.count("</details>")


def test_the_biggest_change_comes_first() -> None:
    before = {f"judge/{name}": {"calls": 10, "prompt": 1000, "output": 100} for name in "abcdefghijklmnopqrstuvwxyz"}
    now = {**before, "judge/q": {"calls": 10, "prompt": 1000, "output": 900}}
    found = report(program(now))
    text = markdown(found, compare(found, baseline_of(report(program(before))), is_complete=True), ())
    rows = [line for line in text.partition("<details>")[0].splitlines() if line.startswith("| judge")]
    assert len(rows) == 20
    assert rows[0].startswith("| judge&#47;q |")
    assert "▲" in rows[0]
    assert "6 other calls" in text
    assert "your change ▲" in text
    assert "outputs +" in text


def test_unknown_figures_are_no_zeros() -> None:
    found = report(program({"judge/a": {"calls": 1, "prompt": 5, "output": 5}}, price=None, is_whole=False))
    text = markdown(found, None, ())
    assert "unpriced" in text
    assert "$0" not in text
    assert "at least" in text


def test_a_comment_marks_figures_as_the_table_does() -> None:
    found = program({"judge/a": {"calls": 2, "prompt": 840, "cached": 9, "output": 5}}, is_whole=False)
    ranges = {
        "prompt": CountRange(least=840, expected=840, most=3800),
        "output": CountRange(least=1, expected=5, most=None),
    }
    (call,) = found.calls
    estimated = found.model_copy(update={"tokens": "estimated", "calls": (call.model_copy(update=ranges),)})
    text, shown = markdown(report(estimated), None, ()), table(report(estimated))
    for figure in ("~840–3.8k / ~9", "~5–unbounded", "at least 2"):
        assert figure in text
        assert figure in shown
    assert "~ tokens are estimated" in text
    assert "~" not in markdown(report(found), None, ())


@pytest.mark.parametrize("most", [3.5, None])
def test_a_comment_has_the_run_of_a_local_model_and_the_basis_of_its_outputs(most: float | None) -> None:
    found = program({"judge/a": {"calls": 2, "prompt": 840, "cached": 9, "output": 5}}, price=None)
    seconds = CountRange(least=1, expected=2, most=most)
    local = LocalRun(machine="one CPU", constants={}, error=0.1, kv_peak=1200, hit_rate=0.25)
    timed = found.model_copy(
        update={
            "local": local,
            "calls": tuple(call.model_copy(update={"bases": ("guess",)}) for call in found.calls),
            "total": found.total.model_copy(update={"seconds": seconds}),
            "critical_path": found.critical_path.model_copy(update={"seconds": seconds}),
        }
    )
    time = "2–3.5 s" if most else "at least 2–unbounded s"
    for text in (html.unescape(markdown(report(timed), None, ())), table(report(timed))):
        for figure in (f"2 calls, {time}", "machine one CPU", "hits 25%", "KV pool peak 1.2k tokens"):
            assert figure in text
        assert text.count(time) == 2
        assert "expected outputs: 1 guessed from max_tokens" in text
    assert "expected outputs" not in markdown(report(found), None, ())


@pytest.mark.parametrize("unknown", ["usd", "calls", "break", "price"])
def test_totals_that_are_not_all_print_at_least(unknown: str) -> None:
    known = program({"judge/a": {"calls": 2, "prompt": 840, "output": 5}})
    assert known.total.usd is not None
    assert "at least" not in markdown(report(known), None, ()) + table(report(known))
    changed: dict[str, Any] = {
        "usd": known.total.usd.model_copy(update={"most": None}),
        "calls": CountRange(least=1, expected=2, most=None),
    }
    partly = known.model_copy(update={"program": "b.py:b", "is_whole": unknown != "break"})
    if unknown in changed:
        total = known.total.model_copy(update={unknown: changed[unknown]})
        partly = partly.model_copy(update={"total": total})
    if unknown == "price":
        partly = program({"judge/a": {"calls": 2, "prompt": 840, "output": 5}}, price=None)
    headline = next(line for line in markdown(report(known, partly), None, ()).splitlines() if "lmc cost:" in line)
    assert ("at least" in headline) == (unknown != "calls")
    total = next(line for line in table(report(partly)).splitlines() if line.startswith("TOTAL"))
    assert ("at least" in total) == (unknown != "price")
    assert ("calls at least" in total) == (unknown in {"calls", "break"})


@cache
def _sarif_validator() -> jsonschema.Draft4Validator:
    schema = json.loads(_SARIF.read_text(encoding="utf-8"))
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


def _check_junit(text: str, limits: tuple[CheckedLimit, ...]) -> None:
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    (suite,) = root
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases)) == str(len(limits))
    for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert suite.get(count) == str(sum(case.find(tag) is not None for case in cases))
    for case, limit in zip(cases, limits, strict=True):
        assert case.get("name") == limit.name
        assert case.get("classname")
        assert (case.find("failure") is not None or case.find("error") is not None) == limit.fails


def test_each_limit_is_a_case() -> None:
    now = program({"judge/a": {"calls": 10, "prompt": 1000, "cached": 900, "output": 5}})
    limits = _limits(report(now))
    text = junit(limits)
    _check_junit(text, limits)
    assert [each.verdict for each in limits] == ["kept", "exceeded", "unknown", "kept", "kept"] * 2
    assert "10 &gt; 3" in text


def test_an_increase_of_unbounded_dollars_is_not_known() -> None:
    found = program({"judge/a": {"calls": 10, "prompt": 1000, "output": 5}})
    assert found.total.usd is not None
    unbounded = found.total.usd.model_copy(update={"most": None})
    now = report(found.model_copy(update={"total": found.total.model_copy(update={"usd": unbounded})}))
    limits = CostLimits(max_increase_percent=Decimal(5))
    (limit,) = check_limits(now, compare(now, baseline_of(now), is_complete=True), limits, {})
    assert limit.verdict == "unknown"
    assert "unbounded" in limit.message


def test_each_hint_is_a_result_on_its_line() -> None:
    hint = CostHint(code="LMC104", message="a [link](x) {0}", place=CostPlace(file="a b/judge.py", line=19), op="j/a")
    found = json.loads(sarif(report(program({}, hints=(hint,)))))
    (result,) = found["runs"][0]["results"]
    assert result["ruleId"] == "LMC104"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/judge.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 19}
    assert "\\[link\\](x) {{0}}" in result["message"]["text"]
    assert found["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "LMC104"

"""Progress where there is no terminal, and failed rows in a few lines."""

import pytest

from lmc.cli import progress
from lmc.cli.failures import Failures
from lmc.cli.progress import Lines
from lmc.driver import InputError


def test_a_line_after_every_thirty_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path
):
    (tmp_path / "rows.jsonl").write_text("{}\n" * 10)
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = Lines(str(tmp_path / "rows.jsonl"), 2)
    for seconds, failed in ((10, False), (21, True), (10, False), (30, False)):
        now[0] += seconds
        lines(failed=failed)
    assert capsys.readouterr().err.splitlines() == [
        "running: 2 of 8 rows, 1 failed, 0:31, about 1:33 left",
        "running: 4 of 8 rows, 1 failed, 1:11, about 1:11 left",
    ]


def test_rows_of_a_pipe_have_no_total(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = Lines("-", 0)
    now[0] = 4000.0
    lines(failed=False)
    assert capsys.readouterr().err == "running: 1 row, 0 failed, 1:06:40\n"


def test_errors_that_differ_in_values_have_one_cause():
    failures = Failures()
    assert failures.lines() == []
    failures.add(3, ValueError("no value 12"))
    assert failures.lines() == ["the error:", "  row 3: ValueError: no value 12"]
    for number in range(50):
        failures.add(number, InputError(f"'x{number}' is {number}.5, a number", remedy="give more"))
    failures.add(60, KeyError("k"))
    assert failures.lines() == [
        "the first 3 of 52 errors:",
        "  row 3: ValueError: no value 12",
        "  row 0: 'x0' is 0.5, a number",
        "    remedy: give more",
        "  row 1: 'x1' is 1.5, a number",
        "    remedy: give more",
        "by cause:",
        "  50 × … is …, a number",
        "  1 × ValueError: no value 12",
        "  1 × KeyError: 'k'",
    ]


def test_an_error_of_many_lines_keeps_its_first_ones_and_its_remedy():
    failures = Failures()
    failures.add(3, InputError("\n".join(f"cause {number}" for number in range(50)), remedy="give more"))
    shown = ["  row 3: cause 0", *(f"  cause {number}" for number in (1, 2, 3)), "    …", "    remedy: give more"]
    assert failures.lines() == ["the error:", *shown]


def test_many_causes_take_a_few_short_lines():
    failures = Failures()
    for number in range(2000):
        word = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        failures.add(number, RuntimeError(f"{word} {'y' * 1000}"))
    lines = failures.lines()
    assert len(lines) == 11
    assert max(map(len, lines)) < 400
    assert lines[-1] == "  1,995 × other causes"

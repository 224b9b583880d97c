"""Progress where there is no terminal, and failed rows in a few lines."""

import io
import re
import time

import pytest
from rich.console import Console

from lmc.cli.results import progress
from lmc.cli.results.failures import Failures
from lmc.cli.results.progress import Lines
from lmc.driver import InputError, Usage

USAGE = Usage(prompt_tokens=3_000, cached_tokens=2_250, generated_tokens=40, calls=2)


def test_a_line_after_every_thirty_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path
):
    (tmp_path / "rows.jsonl").write_text("{}\n" * 10)
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = Lines(str(tmp_path / "rows.jsonl"), 2)
    for seconds, failed in ((10, False), (21, True), (10, False), (30, False)):
        now[0] += seconds
        lines(USAGE, failed=failed)
    assert capsys.readouterr().err.splitlines() == [
        "running: 2 of 8 rows, 1 failed, 0:31, about 1:33 left; 194 in, 3 out tok/s, 75% cached",
        "running: 4 of 8 rows, 1 failed, 1:11, about 1:11 left; 169 in, 2 out tok/s, 75% cached",
    ]


def test_rows_of_a_pipe_have_no_total(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = Lines("-", 0)
    now[0] = 4000.0
    lines(Usage(), failed=False)
    now[0] = 8000.0
    lines(USAGE, failed=False)
    assert capsys.readouterr().err.splitlines() == [
        "running: 1 row, 0 failed, 1:06:40",
        "running: 2 rows, 0 failed, 2:13:20; 0 in, 0 out tok/s, 75% cached",
    ]


def shown(width: int, total: int | None, rows: int) -> str:
    """The last state of a bar on a terminal of ``width`` columns."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    with progress.shown_bar(console, total) as step:
        for number in range(rows):
            step(USAGE, failed=number % 10 == 0)
    *_, last = (part for part in re.split(r"\x1b\[[?\d]*[a-zA-Z]", out.getvalue()) if part.strip(" ") not in ("", "\r"))
    return last


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize(("total", "of"), [(40, "20/40"), (None, "20/?")])
def test_a_terminal_shows_rows_failures_rates_and_time_left(
    width: int, total: int | None, of: str, monkeypatch: pytest.MonkeyPatch
):
    now = iter([0.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now, 10.0))
    text = shown(width, total, 20)
    lines = [line.rstrip() for line in text.splitlines()]
    assert all(len(line) <= width for line in lines)
    words = " ".join(text.split())
    for part in (of, "2 failed", "left", "6.0k", "80 out", "75%", "cached"):
        assert part in words
    assert len(lines) == 1 or width < 80


def test_a_bar_is_drawn_ten_times_a_second():
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    start = time.perf_counter()
    with progress.shown_bar(console, 20_000) as step:
        for _ in range(20_000):
            step(USAGE, failed=False)
    assert out.getvalue().count(" failed") <= 3 + 10 * (time.perf_counter() - start)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.4, "0"), (999.4, "999"), (999.6, "1.0k"), (9_949, "9.9k"), (46_000, "46k"), (1.2e6, "1.2M"), (3e12, "3000G")],
)
def test_rates_are_short(number: float, text: str):
    assert progress.short(number) == text


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

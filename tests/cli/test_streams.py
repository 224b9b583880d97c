"""Standard streams that are closed, or that are files."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmc.cli.output import check_output

CODE = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
TOY = ("--model", "toy")
UNCALIBRATED = "seconds are not calibrated: they are those of an 8B model on one A100"
ROWS = '{"topic": "a"}\n{"topic": "b"}\n'


def run(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command line with a redirection of the shell's."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-c", CODE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("redirection", "arguments", "note"),
    [
        (">&-", ("--help",), ""),
        (">&- <&-", ("--version",), ""),
        (">&- 2>&-", ("simulate", "s.jsonl", "--kv-tokens", "5000"), ""),
        (">&-", ("simulate", "s.jsonl", "--kv-tokens", "5000"), f"{UNCALIBRATED}\n"),
    ],
)
@pytest.mark.usefixtures("program")
def test_what_nobody_hears_is_not_said(tmp_path: Path, redirection: str, arguments: tuple[str, ...], note: str):
    (tmp_path / "s.jsonl").write_text('{"id": 1, "tokens": [1, 2, 3], "output": 2}\n')
    done = run(redirection, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", note)


@pytest.mark.parametrize("output", [(), ("-o", "-"), ("-o", "out.jsonl")])
def test_rows_that_nobody_hears_do_not_become_notes(program: str, tmp_path: Path, output: tuple[str, ...]):
    (tmp_path / "rows.jsonl").write_text(ROWS)
    done = run(">&-", "run", f"{program}:quiet", "--input", "rows.jsonl", "--json", *output, *TOY)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("2 rows, 0 failed; ")
    assert len(done.stderr.splitlines()) == 1
    if "out.jsonl" in output:
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("command", "option"),
    [("run", "-o"), ("run", "--profile-generate"), ("schedule", "-o"), ("compile", "-o")],
)
def test_a_file_on_standard_input_is_not_written_over(program: str, tmp_path: Path, command: str, option: str):
    (tmp_path / "rows.jsonl").write_text(ROWS)
    done = run("< rows.jsonl", command, f"{program}:quiet", "--input", "-", option, "./rows.jsonl", *TOY)
    assert (done.returncode, done.stdout, (tmp_path / "rows.jsonl").read_text()) == (2, "", ROWS)
    assert "error: ./rows.jsonl is the input, which would be gone" in done.stderr
    assert f"name another file for {option}" in done.stderr


def test_the_output_may_be_another_file_than_standard_input(program: str, tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "out.jsonl").write_text("before\n")
    done = run("< rows.jsonl", "run", f"{program}:quiet", "--input", "-", "-o", "out.jsonl", *TOY)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(row["index"] for row in found) == [0, 1]


def test_standard_input_that_is_closed_is_empty(program: str, tmp_path: Path):
    (tmp_path / "none.jsonl").write_text("")
    closed, empty = (
        run(redirection, "run", f"{program}:quiet", "--input", "-", *TOY)
        for redirection in ("<&-", f"< {tmp_path / 'none.jsonl'}")
    )
    assert "Traceback" not in closed.stderr
    assert (closed.returncode, closed.stdout, closed.stderr) == (empty.returncode, empty.stdout, empty.stderr)


def test_standard_input_that_is_closed_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def closed(_: int) -> os.stat_result:
        raise OSError(errno.EBADF, "Bad file descriptor")

    (tmp_path / "out.jsonl").write_text("before\n")
    with monkeypatch.context() as patched:  # no longer than that: pytest asks too
        patched.setattr(os, "fstat", closed)
        check_output(str(tmp_path / "out.jsonl"), input="-")

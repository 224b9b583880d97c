"""Each ``// RUN:`` line of a ``.lmir`` file, as ``lit`` runs it, without a process for each command."""

import io
import os
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from lmc.cli.app import main

FOLDER = Path(__file__).parent
RUN = "// RUN: "
LINES = [
    (path, line.removeprefix(RUN))
    for path in sorted(FOLDER.glob("*/*.lmir"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith(RUN)
]


@pytest.mark.parametrize(("path", "line"), LINES, ids=lambda part: getattr(part, "stem", None))
def test_the_command_prints_what_the_file_says(
    path: Path, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _, check = line.replace("%S", str(path.parent)).replace("%s", str(path)).partition(" | ")
    words = shlex.split(command)
    fails, merged, stdin = "not" in words, "2>&1" in words, os.devnull
    if "<" in words:
        stdin = words[words.index("<") + 1]
        del words[words.index("<") :]
    is_silent = ">/dev/null" in words
    monkeypatch.setattr(sys, "argv", [word for word in words if word not in ("not", "2>&1", ">/dev/null")])
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    out, err = io.StringIO(), io.StringIO()
    with Path(stdin).open(encoding="utf-8") as given:
        monkeypatch.setattr(sys, "stdin", given)
        with (
            redirect_stdout(out),
            redirect_stderr(out if merged and not is_silent else err),
            pytest.raises(SystemExit) as end,
        ):
            main()
    assert bool(end.value.code) == fails, err.getvalue()
    options = parse_argv_options(shlex.split(check))
    printed = FInput("standard input", (err if is_silent else out).getvalue())
    code = Matcher(options, printed, Parser.from_opts(options)).run()
    assert code == 0, "standard error says why"


@pytest.mark.skipif(os.environ.get("LMC_TEST_FULL") != "1", reason="the other test runs the same lines")
def test_lit_runs_them_all() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lit", "-v", FOLDER], capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout
    assert f"Passed: {len({path for path, _ in LINES})}" in done.stdout

"""Each ``// RUN:`` line of a ``.lmir`` file, as ``lit`` runs it, without a new interpreter for each command."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from tests import processes

FOLDER = Path(__file__).parent
RUN = "// RUN: "
LINES = [
    (path, line.removeprefix(RUN))
    for path in sorted(FOLDER.glob("*/*.lmir"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith(RUN)
]


@pytest.mark.parametrize(("path", "line"), LINES, ids=lambda part: getattr(part, "stem", None))
def test_the_command_prints_what_the_file_says(path: Path, line: str, tmp_path: Path) -> None:
    command, _, check = line.replace("%S", str(path.parent)).replace("%s", str(path)).partition(" | ")
    words = shlex.split(command)
    fails, merged, stdin = "not" in words, "2>&1" in words, os.devnull
    if "<" in words:
        stdin = words[words.index("<") + 1]
        del words[words.index("<") :]
    is_silent = ">/dev/null" in words
    words = [word for word in words if word not in ("not", "2>&1", ">/dev/null")]
    done = processes.run(words, tmp_path, stdin=stdin, merged=merged and not is_silent, COLUMNS="200", NO_COLOR="1")
    assert (done.code != 0) == fails, done.err
    options = parse_argv_options(shlex.split(check))
    printed = FInput("standard input", done.err if is_silent else done.out)
    code = Matcher(options, printed, Parser.from_opts(options)).run()
    assert code == 0, "standard error says why"


@pytest.mark.skipif(os.environ.get("LMC_TEST_FULL") != "1", reason="the other test runs the same lines")
def test_lit_runs_them_all() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lit", "-v", FOLDER], capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout
    assert f"Passed: {len({path for path, _ in LINES})}" in done.stdout

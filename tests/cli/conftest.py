import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmc import driver
from lmc.cli.app import main
from lmc.driver import Options, Runner
from tests.processes import Running

PROGRAM = """
import pathlib
import time

import lmc
import pydantic


@lmc.jit
def judge(s, essay: str, strict: bool = False, dims: list[str] = ["tone"]):
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay: {essay}")
    for dim in dims:
        s += lmc.user(f"Judge its {dim}.")
        s.gen("view", max_tokens=4, temperature=1.0)
    if essay == "bad":
        raise ValueError("a bad essay")
    return {"essay": essay, "verdict": s.select("verdict", ["yes", "no"]), "strict": strict}


@lmc.tool
def wait(seconds: float) -> float:
    pathlib.Path(f"waits-{seconds}").touch()
    time.sleep(seconds)
    return seconds


@lmc.jit
def slow(s, seconds: float):
    wait(seconds)
    s += f"{seconds}"
    return s.gen("a", max_tokens=2)


@lmc.jit
def quiet(s, topic: str):
    s += topic
    s.gen("a", max_tokens=3)


@lmc.jit
def breaks(s, topic: str):
    s += topic
    s.gen("a", max_tokens=3)
    eval("0")
    return 2


@lmc.jit
def word(s, topic: str):
    s += topic
    return s.gen("a", regex="([a-z]+")


class Verdict(pydantic.BaseModel):
    score: int = pydantic.Field(ge=0, le=9)
    sure: bool


@lmc.jit
def typed(s, topic: str):
    s += topic
    verdict = s.gen("verdict", schema=Verdict)
    s += f" {verdict.score} "
    s.gen("number", dtype=int, max_tokens=300)
    s.gen("word", choices=["p"])
    return verdict


@lmc.jit
def costs(s, seconds: float):
    s += "words"
    first = s.gen("a", max_tokens=3)
    wait(seconds)
    return first
"""


@dataclass
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with programs, in the current folder."""
    for name in dir(driver):  # what is imported on first use would be forgotten with the copy of sys.modules
        getattr(driver, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "cli_program.py").write_text(PROGRAM)
    return "cli_program.py"


@pytest.fixture
def lmc(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Runs a command line in this process."""

    def run(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["lmc", *arguments])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options of every program that `lmc run` runs."""
    asked: list[Options] = []
    run_rows = Runner.run_rows

    def run(runner: Runner, *given: Any) -> Any:
        asked.append(runner.options)
        return run_rows(runner, *given)

    monkeypatch.setattr(Runner, "run_rows", run)
    return asked


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Running]:
    """Starts a command line in a process of its own."""

    def start(*arguments: str) -> Running:
        return Running(["lmc", *arguments], tmp_path, stdout=True)

    return start

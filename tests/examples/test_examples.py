"""Every example gives the same as plain Python, at -O0 and at -O2: on the toy engine and on the built-in model."""

import os
import shlex
import sys
from dataclasses import replace
from typing import Any

import pytest

from lmc.cli.app import main
from lmc.driver import Options, Result, Runner
from lmc.frontend.language.core import META
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY

FULL = os.environ.get("LMC_TEST_FULL") == "1"
TARGETS = {
    "toy": Options("toy"),
    # Deterministic: what else runs at the same time does not move a logit.
    "builtin": Options("builtin", kv_tokens=8_000, deterministic=True),
}
COMMANDS = [
    line
    for path in sorted((REPOSITORY / "examples").glob("*.py"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith("lmc ")
]


def facts(result: Result) -> dict[str, Any]:
    """What a run shows, but for how much of a prompt was computed before."""
    variables = {name: value for name, value in result.variables.items() if not name.startswith(META)}
    return {"value": result.value, "text": result.text, "messages": result.messages, "variables": variables}


def test_every_file_is_a_case():
    assert set(EXAMPLES) == {path.stem for path in (REPOSITORY / "examples").glob("*.py")}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_way_of_running_agrees(name: str, target: str):
    example = EXAMPLES[name]
    options = TARGETS[target]
    rows = example.rows if FULL or target == "toy" else example.rows[:1]
    runners = {level: Runner(example.program, replace(options, level=level)) for level in ("O0", "O2")}
    for row in rows:
        oracle = facts(runners["O2"].eager(((), row)))
        for level, runner in runners.items():
            assert facts(runner.run(((), row))) == oracle, level


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_docstrings_work(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "argv", [*shlex.split(command), "--model", "toy"])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code in (None, 0), said.err
    assert said.out.strip()


def test_every_example_says_how_to_run_it():
    for name in EXAMPLES:
        text = (REPOSITORY / "examples" / f"{name}.py").read_text(encoding="utf-8")
        assert f"python examples/{name}.py" in text or f"lmc run examples/{name}.py" in text, name

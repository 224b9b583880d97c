"""Baselines and formats of `lmc cost` in a project that is a folder of a git repository."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmc.cache.simulation.report import REFERENCE
from lmc.driver.targets.calibrations import Calibration, keep_calibration
from lmc.ir.engine.target import Target

Lmc = Callable[..., Any]
_PROGRAM = """import lmc

RULES = "The rules of good essays. " * 300


@lmc.jit
def judge(s, essay: str):
    s += lmc.user(f"Essay: {essay}\\n{RULES}")
    return s.gen("verdict", max_tokens=100)
"""
_SETTINGS = """[tool.lmc.budget]
max_increase_percent = 10
LIMIT

[[tool.lmc.cost]]
program = "src/judge.py:judge"
input = "essays.jsonl"
model = "MODEL"

[tool.lmc.prices."openai:gpt-4.1"]
input = 2
output = 8
"""


def _project(folder: Path, model: str = "openai:gpt-4.1", limit: str = "") -> Path:
    """A project in the folder ``service`` of a repository."""
    project = folder / "service"
    (project / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (project / "src" / "judge.py").write_text(_PROGRAM)
    rows = ({"essay": f"Essay {number}"} for number in range(4))
    (project / "essays.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (project / "pyproject.toml").write_text(_SETTINGS.replace("MODEL", model).replace("LIMIT", limit))
    return project


def _calibrate(seconds: float) -> None:
    """Keep a calibration of the built-in model on a machine whose steps take so long."""
    found = Calibration(datetime.date(2026, 1, 1), f"{seconds}", replace(REFERENCE, step=seconds), 0.1)
    keep_calibration(Target.parse("builtin"), found)


@pytest.fixture(autouse=True)
def _calibrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMC_CALIBRATIONS", str(tmp_path / "calibrations.json"))


def test_a_baseline_is_the_same_on_machines_of_other_speed(
    tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _project(tmp_path, model="builtin")
    monkeypatch.chdir(project)
    written: set[bytes] = set()
    for seconds in (None, 0.001, 0.2):
        if seconds is not None:
            _calibrate(seconds)
        assert lmc("cost", "--update-baseline").code == 0
        written.add((project / "lmc-cost.json").read_bytes())
    assert len(written) == 1


@pytest.mark.parametrize("more", [("--update-baseline",), ("--baseline", "lmc-cost.json")])
def test_the_price_of_a_machine_and_a_baseline_exclude_each_other(
    tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(_project(tmp_path, model="builtin"))
    _calibrate(0.1)
    assert lmc("cost", "--update-baseline").code == 0
    said = lmc("cost", "--rate-usd-per-hour", "3", *more)
    assert said.code == 2
    assert "a baseline holds for all machines" in said.err


@pytest.mark.parametrize("model", ["openai:gpt-4.1", "toy", "builtin"])
def test_the_price_of_a_machine_needs_a_calibrated_model(
    tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.chdir(_project(tmp_path, model=model))
    said = lmc("cost", "--rate-usd-per-hour", "3")
    assert said.code == 2
    assert "lmc calibrate" in said.err


def test_an_updated_baseline_is_checked(tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path, limit="max_calls = 3")
    monkeypatch.chdir(project)
    said = lmc("cost", "--update-baseline")
    assert said.code == 3
    assert "limit: max_calls (total): 4 > 3" in said.err
    assert "max_increase_percent" not in said.err
    assert (project / "lmc-cost.json").exists(), "the figures are there to be looked at"


def test_formats_are_the_same_in_every_folder(tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path)
    monkeypatch.chdir(project)
    assert lmc("cost", "--update-baseline").code == 0
    forms = ("table", "json", "markdown", "junit", "sarif")
    found: list[list[bytes]] = []
    for folder in (project, project / "src"):
        monkeypatch.chdir(folder)
        outputs = [word for form in forms for word in ("--format", form, "-o", str(tmp_path / form))]
        said = lmc("cost", "--baseline", str(project / "lmc-cost.json"), *outputs)
        assert said.code == 0, said.err
        found.append([(tmp_path / form).read_bytes() for form in forms])
    assert found[0] == found[1]


@pytest.mark.parametrize("is_repository", [True, False])
def test_files_of_hints_are_named_from_the_root_of_the_repository(
    tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch, is_repository: bool
) -> None:
    project = _project(tmp_path)
    if not is_repository:
        (tmp_path / ".git").rmdir()
    monkeypatch.chdir(project)
    said = lmc("cost", "--format", "sarif", "-o", "hints.sarif")
    (run,) = json.loads((project / "hints.sarif").read_text())["runs"]
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"] for each in run["results"]]
    assert places, said.err
    path = "service/src/judge.py" if is_repository else "src/judge.py"
    assert {each["uri"] for each in places} == {path}
    assert {each["uriBaseId"] for each in places} <= run["originalUriBaseIds"].keys()


@pytest.mark.parametrize(
    ("number", "folder", "shown", "uri"),
    [
        (1, "service/helpers", "helpers/helping1.py", "service/helpers/helping1.py"),
        (2, "common", "../common/helping2.py", "common/helping2.py"),
        (3, "service/.venv/lib/python3/site-packages/kit", "kit/helping3.py", "service/src/judge.py"),
        (4, "../elsewhere", "helping4.py", "service/src/judge.py"),
    ],
)
def test_files_of_helpers_are_named_where_they_are(
    tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch, number: int, folder: str, shown: str, uri: str
) -> None:
    project = _project(tmp_path / "repository")
    helpers = tmp_path / "repository" / folder
    helpers.mkdir(parents=True)
    body = _PROGRAM.replace("def judge", f"def grade{number}")
    (helpers / f"helping{number}.py").write_text(body)
    (project / "src" / "judge.py").write_text(
        f"import sys\n\nsys.path.insert(0, {str(helpers)!r})\n\nimport lmc\nfrom helping{number} import grade{number}\n"
        f"\n\n@lmc.jit\ndef judge(s, essay: str):\n    return grade{number}(s, essay)\n"
    )
    monkeypatch.chdir(project)
    said = lmc("cost", "--format", "sarif", "-o", "hints.sarif", "--format", "json", "-o", "cost.json")
    (program,) = json.loads((project / "cost.json").read_text())["programs"]
    assert {each["place"]["file"] for each in program["calls"]} == {shown}, said.err
    (run,) = json.loads((project / "hints.sarif").read_text())["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri
    assert (place["region"]["startLine"] > 1) == uri.endswith(Path(shown).name)
    assert (f"at {shown}:" in result["message"]["text"]) != uri.endswith(Path(shown).name)


def test_a_program_elsewhere_in_the_repository_has_its_own_name(
    tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _project(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "judge.py").write_text(_PROGRAM)
    monkeypatch.chdir(project)
    said = lmc("cost", "../a/judge.py", "../b/judge.py", "essay=x", "--model", "openai:gpt-4.1", "--format", "json")
    programs = [each["program"] for each in json.loads(said.out)["programs"]]
    assert programs == ["../a/judge.py:judge", "../b/judge.py:judge"]


def test_names_of_programs_are_printable(tmp_path: Path, lmc: Lmc, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path)
    monkeypatch.chdir(project)
    name = os.fsdecode(b"a\x1b[31m\xff\n.py")
    Path(name).write_text(_PROGRAM)
    given = ("cost", f"./{name}", "essay=x", "--model", "openai:gpt-4.1")
    said = lmc(*given, "--update-baseline", "-o", "cost.txt")
    assert Path("cost.txt").read_text(encoding="utf-8").startswith("a\\u{1b}[31m\\u{dcff}\\u{a}.py:judge on"), said.err
    assert "vs base: your change ±0 %" in lmc(*given, "--baseline", "lmc-cost.json").out

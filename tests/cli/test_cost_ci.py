"""Costs in CI: the recipes of docs/cost-ci.md on a git repository, commit by commit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.project.layers import REPOSITORY

_PAGE = (REPOSITORY / "docs" / "cost-ci.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
_PROGRAM = """import lmc


@lmc.jit
def judge(s, essay: str):
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay: {essay}")
    return s.gen("verdict", max_tokens=LIMIT)
"""
_PRICES = '\n[tool.lmc.prices."openai:gpt-4.1"]\ninput = 2\noutput = 8\n'
_GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$GH_LOG"
case "$*" in *--jq*) printf '%s' "$GH_ID";; esac
"""


def _block(language: str, number: int = 0) -> str:
    return [text for each, text in _BLOCKS if each == language][number]


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def _sh(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    folder = Path.cwd()
    path = f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY), "PYTHONHASHSEED": "7", **more}
    return subprocess.run(["bash", "-e", "-c", script], check=False, capture_output=True, text=True, env=environment)


def _write(limit: int, prices: str = _PRICES, program: str = _PROGRAM) -> None:
    Path("judge.py").write_text(program.replace("LIMIT", str(limit)))
    Path("pyproject.toml").write_text(_block("toml") + prices)


def _commit(message: str) -> None:
    _git("add", "-A")
    _git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", message)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a baseline on the branch main, and the branch of a change."""
    folder = tmp_path_factory.mktemp("repository")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("essays.jsonl").write_text("".join(json.dumps({"essay": f"Essay {n}"}) + "\n" for n in range(4)))
        Path(".gitignore").write_text("base.json\ncomment.md\nlimits.xml\nhints.sarif\nbin/\n__pycache__/\n*.log\n")
        Path("bin").mkdir()
        lmc = f'#!/bin/sh\nexec {sys.executable} -c "from lmc.cli.start import main; main()" "$@"\n'
        for name, text in (("gh", _GH), ("lmc", lmc)):
            Path("bin", name).write_text(text)
            Path("bin", name).chmod(0o755)
        _git("init", "-q", "-b", "main")
        _write(100)
        said = _sh("lmc cost --update-baseline")
        assert said.returncode == 0, said.stderr
        _commit("programs and their baseline")
        _git("checkout", "-qb", "change")
    return folder


@pytest.fixture
def repository(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the template for one test, the current folder."""
    folder = tmp_path / "repository"
    shutil.copytree(template, folder)
    monkeypatch.chdir(folder)
    return folder


def _recipe(**more: str) -> subprocess.CompletedProcess[str]:
    for name in ("comment.md", "limits.xml", "hints.sarif"):
        Path(name).unlink(missing_ok=True)
    return _sh(_block("sh"), BASE="main", **more)


def _comment() -> str:
    return Path("comment.md").read_text(encoding="utf-8")


def test_the_recipe_reports_each_commit(repository: Path) -> None:
    _write(20)
    _commit("cheaper")
    said = _recipe()
    assert said.returncode == 0, said.stderr
    assert _comment().startswith("<!-- lmc cost -->\n")
    assert "▼" in _comment().splitlines()[2]
    first = [Path(name).read_bytes() for name in ("comment.md", "limits.xml", "hints.sarif")]
    Path("elsewhere").mkdir()
    assert _recipe(TZ="Asia/Tokyo", PYTHONHASHSEED="99").returncode == 0
    assert [Path(name).read_bytes() for name in ("comment.md", "limits.xml", "hints.sarif")] == first

    _write(400)
    _commit("more expensive")
    said = _recipe()
    assert said.returncode == 3, said.stderr
    assert "▲" in _comment().splitlines()[2]
    assert "outputs +$" in _comment()
    assert "exceeded" in _comment()
    assert "limit: max_increase_percent (total)" in said.stderr
    suite = ElementTree.fromstring(Path("limits.xml").read_text(encoding="utf-8"))[0]
    assert suite.get("failures") == "1"
    assert suite.get("tests") == "3"

    _write(100, program=_PROGRAM.replace('f"Essay', 'g"Essay'))
    _commit("broken")
    said = _recipe()
    assert said.returncode == 1
    assert not Path("comment.md").exists()
    assert not Path("hints.sarif").exists()

    _write(100, prices=_PRICES.replace("input = 2", "input = 40"))
    _commit("unchanged, but dearer prices")
    said = _recipe()
    assert said.returncode == 0, said.stderr
    assert "your change ±0 %; prices ▲" in _comment()
    log = json.loads(Path("hints.sarif").read_text(encoding="utf-8"))
    assert log["version"] == "2.1.0"
    places = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]
    assert {each["artifactLocation"]["uri"] for each in places} <= {"judge.py"}


def test_the_first_change_has_no_baseline_to_compare_with(repository: Path) -> None:
    _git("checkout", "-q", "main")
    _git("rm", "-q", "lmc-cost.json")
    _commit("no baseline yet")
    _git("checkout", "-qb", "first")
    said = _recipe()
    assert said.returncode == 0, said.stderr
    assert "not in the baseline" in _comment()
    suite = ElementTree.fromstring(Path("limits.xml").read_text(encoding="utf-8"))[0]
    assert (suite.get("skipped"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    job = yaml.safe_load(_block("yaml", 1))["jobs"]["cost"]
    estimate = next(each["run"] for each in job["steps"] if each.get("name") == "Estimate")
    assert _sh(estimate, BASE="main").returncode == 0


def test_an_unbounded_loop_keeps_no_limit(repository: Path) -> None:
    head, _, call = _PROGRAM.partition("    return ")
    loop = f"""    verdict = ""
    while verdict != "END":
        s += lmc.user("Again.")
        verdict = {call.strip()}
    return verdict
"""
    _write(100, program=head + loop)
    said = _sh("lmc cost --format markdown -o comment.md --format junit -o limits.xml")
    assert said.returncode == 3, said.stderr
    assert "All 3 limits" not in _comment()
    assert "is unbounded" in said.stderr
    suite = ElementTree.fromstring(Path("limits.xml").read_text(encoding="utf-8"))[0]
    assert suite.get("errors") == "3"


def test_the_hook_renews_the_baseline(repository: Path) -> None:
    hook = yaml.safe_load(_block("yaml", 0))["repos"][0]["hooks"][0]
    assert _sh(hook["entry"]).returncode == 0
    assert _git("status", "--porcelain") == "", "nothing has changed"
    _write(400, program="# A comment moves all lines.\n" + _PROGRAM)
    assert _sh(hook["entry"]).returncode == 0
    changed = _git("diff", "--stat", "lmc-cost.json")
    assert "lmc-cost.json" in changed
    assert all(re.search(hook["files"], name) for name in ("judge.py", "rows.jsonl", "judge.profile.json"))
    _write(100, program="# A comment moves all lines.\n" + _PROGRAM)
    assert _sh(hook["entry"]).returncode == 0
    assert _git("diff", "--stat", "lmc-cost.json") == ""


@pytest.mark.parametrize("known", ["", "12"])
def test_the_workflow_runs(repository: Path, known: str) -> None:
    job = yaml.safe_load(_block("yaml", 1))["jobs"]["cost"]
    commands = [each["run"] for each in job["steps"] if "run" in each and not each["run"].startswith("pip install")]
    assert len(commands) == 2
    more = {"BASE": "main", "PR": "3", "GITHUB_REPOSITORY": "o/r", "GH_LOG": "gh.log", "GH_ID": known}
    for command in commands:
        said = _sh(command, **more)
        assert said.returncode == 0, said.stderr
    last = Path("gh.log").read_text().splitlines()[-1]
    assert last.startswith("api --method PATCH repos/o/r/issues/comments/12" if known else "api --method POST")
    assert last.endswith("body=@comment.md")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("{}", 1, "no baseline"),
        ('{"format": "lmc-cost-baseline", "schema_version": 2, "programs": {}}', 1, "upgrade lmc"),
        (None, 2, "can't be read"),
    ],
)
def test_baselines_that_are_wrong(repository: Path, text: str | None, code: int, message: str) -> None:
    if text is not None:
        Path("base.json").write_text(text)
    said = _sh("lmc cost --baseline base.json --format markdown -o comment.md")
    assert said.returncode == code
    assert message in said.stderr
    assert not Path("comment.md").exists()


def test_a_baseline_of_other_rows(repository: Path) -> None:
    Path("essays.jsonl").write_text('{"essay": "another"}\n')
    said = _sh("lmc cost --baseline lmc-cost.json")
    assert said.returncode == 1
    assert "is for other rows" in said.stderr
    assert said.stdout == ""

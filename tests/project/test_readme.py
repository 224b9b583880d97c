"""What README.md prints is what happens: its commands run, its sample outputs and numbers are the real ones."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lmc.runtime.local.architectures import SUPPORTED

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.strip() for line in README.splitlines() if line.startswith("    lmc ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like the repository and takes what commands write."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def run(command: str, folder: Path) -> str:
    name, *words = shlex.split(command)
    words = [str(Path(sys.executable).parent / name), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "400"}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, folder: Path) -> None:
    run(command, folder)


def test_the_schedule_that_is_written_can_be_simulated_and_run(folder: Path) -> None:
    run(next(command for command in COMMANDS if command.startswith("lmc schedule")), folder)
    simulate = re.search(r"`(lmc simulate [^`]*)`", README)
    assert simulate is not None
    assert "hit rate" in run(simulate[1], folder)
    kept = re.search(r"`(lmc run [^`]*--schedule [^`]*)`", README)
    assert kept is not None
    run(kept[1], folder)
    assert len((folder / "judged.jsonl").read_text(encoding="utf-8").splitlines()) == 20


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 6


def test_the_remarks_shown_are_those_printed(folder: Path) -> None:
    shown = README.partition("```text\nprogram:")[2].partition("```")[0]
    printed = run("lmc compile examples/judge.py --remarks", folder)
    assert [line.rstrip() for line in f"program:{shown}".splitlines()] == [
        line.rstrip() for line in printed.splitlines() if line.strip()
    ]


def test_the_graph_shown_is_part_of_that_printed(folder: Path) -> None:
    shown = README.partition("```text\nmodule")[2].partition("```")[0]
    printed = run("lmc compile examples/judge.py --emit ir", folder)
    without_locations = [re.sub(r"\s+loc\(.*\)$", "", line).strip() for line in printed.splitlines()]
    lines = [line.strip() for line in f"module{shown}".splitlines() if line.strip() and line.strip() != "..."]
    assert [line for line in lines if line not in without_locations] == []


def test_the_program_shown_is_the_example() -> None:
    example = (ROOT / "examples" / "judge.py").read_text(encoding="utf-8")
    shown = README.partition("```python\n")[2].partition("```")[0]
    code = [re.sub(r"\s+#.*$", "", line) for line in shown.splitlines()]
    body = [line for line in code if line.strip() and not line.startswith("judge(")]
    assert [line for line in body if line not in example.splitlines()] == []


def test_the_token_table_is_that_of_the_results() -> None:
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = [line for line in README.splitlines() if re.match(r"\| (essay judge|-O)", line)]
    assert len(rows) >= 4
    assert [row for row in rows if row not in results.splitlines()] == []


def test_the_sections_shown_change_places(folder: Path) -> None:
    shown = next(block for block in README.split("```python\n")[1:] if "lmc.section(" in block).partition("```")[0]
    (folder / "tone.py").write_text(f"import lmc\n\n\n{shown}", encoding="utf-8")
    written, ordered = (run(f"lmc compile tone.py --emit ir {option}", folder) for option in ("", "--order-sections"))
    assert 'user ["Essay: ", %essay, "\\nJudge its tone in a word.\\n"]' in written
    assert 'lm.extend %0.open ["Judge its tone in a word.\\nEssay: "]' in ordered


def test_every_architecture_is_named() -> None:
    named = re.search(r"to a folder with a\s+(.*?) model;", README, re.DOTALL)
    assert named is not None
    words = re.split(r", | or ", " ".join(named[1].split()))
    spelled = [re.sub(r"[ -]", "", word).lower() + "forcausallm" for word in words]
    assert sorted(spelled) == sorted(name.lower() for name in SUPPORTED)


def test_the_table_of_whole_programs_is_that_of_the_results() -> None:
    results = [line.strip("| ").split(" | ") for line in (ROOT / "benchmarks" / "RESULTS.md").read_text().splitlines()]
    # dtype, workload, instances, calls, tokens in prompts, generated, lmc, vLLM, roofline, vLLM / lmc
    measured = {row[1]: [row[6], row[7], row[9]] for row in results if row[0] == "bfloat16" and len(row) == 10}
    shown = [line.strip("| ").split(" | ") for line in README.splitlines() if line.startswith("| ")]
    rows = {row[0]: row[1:] for row in shown if row[0] in measured}
    assert rows == measured
    assert len(rows) == 6


def test_the_remarks_on_a_profile_are_those_printed(folder: Path) -> None:
    shown = README.partition("```text\nexamples/react.py")[2].partition("```")[0]
    run(next(command for command in COMMANDS if "--profile-generate react.profile.json" in command), folder)
    printed = run("lmc compile examples/react.py --profile-use react.profile.json --remarks", folder).splitlines()
    lines = f"examples/react.py{shown}".splitlines()
    assert len(lines) >= 2
    assert [line for line in lines if line not in printed] == []

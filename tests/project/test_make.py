"""The Makefile and the CI script say what they will do without doing it."""

import re
import subprocess

import pytest

from tests.project.layers import REPOSITORY


def planned(target: str) -> str:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_demo_compiles_runs_and_counts():
    commands = planned("demo")
    assert "lmc compile examples/judge.py --remarks" in commands
    assert "lmc run examples/judge.py --input examples/data/essays.jsonl" in commands
    assert "benchmarks/judge_tokens.py" in commands


def test_demo_says_what_it_downloads_before_it_installs():
    commands = planned("demo")
    assert commands.index("To be downloaded") < commands.index("pip install")
    assert "--constraint constraints.txt" in commands


@pytest.mark.parametrize("target", ["test", "test-full"])
def test_every_check_is_part_of_the_tests_and_pytest_is_last(target: str):
    commands = planned(target)
    order = [commands.index(f"/{tool}") for tool in ("ruff check", "ruff format --check", "pyright", "pytest")]
    assert order == sorted(order)


@pytest.mark.parametrize(
    "name", ["Makefile", ".ci/run", "constraints.txt", "pyproject.toml", ".pre-commit-config.yaml"]
)
def test_no_registry_is_named(name: str):
    text = (REPOSITORY / name).read_text("utf-8")
    assert re.findall(r"index-url|find-links|trusted-host|pypi\.org|pythonhosted|download\.pytorch", text) == []

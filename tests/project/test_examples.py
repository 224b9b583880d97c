"""Every file in examples/ runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.project.layers import REPOSITORY

pytestmark = pytest.mark.slow("every example runs on the built-in model")

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def test_the_promised_examples_are_there():
    promised = {
        *("judge.py", "multiple_choice.py", "extract.py", "character.py", "labels.py", "chat.py", "sglang_tips.py"),
        *("react.py", "tree_of_thought.py", "skeleton_of_thought.py", "multi_chain.py", "generative_agents.py"),
        *("self_refine.py", "map_reduce.py", "debate.py"),
    }
    assert promised <= {path.name for path in EXAMPLES}
    readme = (REPOSITORY / "examples" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f"| `{path.name}` |" not in readme] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path):
    done = processes.run([str(path)], REPOSITORY)
    assert done.code == 0, done.err
    assert done.out.strip(), "an example shows what it did"


def test_a_new_interpreter_runs_one_as_well():
    command = [sys.executable, "examples/judge.py"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == processes.run(command[1:], REPOSITORY).out

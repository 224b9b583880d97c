"""Sums over grades, and the commands that print."""

import json
import subprocess
import sys

from training.evaluate import summary
from training.grading import Grade


def test_selected_counts_where_there_are_choices():
    grades = [
        Grade(written=False, selected=True),
        Grade(written=True, selected=None),
        Grade(written=False, selected=None),
        Grade(written=True, selected=False),
    ]
    assert summary(grades) == {"accuracy": 0.5, "written": 0.5, "selected": 0.5, "answers": 4}


def test_without_choices_nothing_is_selected():
    assert summary([Grade(written=True, selected=None)]) == {"accuracy": 1.0, "written": 1.0, "answers": 1}


def test_samples_prints_json_lines():
    command = [sys.executable, "-m", "training.samples", "--family", "judgement", "--count", "2"]
    first = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    second = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in first.splitlines()]
    assert first == second
    assert len(rows) == 2
    assert set(rows[0]) == {"family", "prompt", "answer", "choices"}


def test_unknown_family_is_refused():
    done = subprocess.run(
        [sys.executable, "-m", "training.samples", "--family", "poetry"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "poetry" in done.stderr

"""The numbers and programs in README.md and docs/ are those of the results and the code.

``test_documents.py`` runs their commands and their code.
"""

import re

from lmc.runtime.local.architectures import SUPPORTED
from tests.project.documents import README, Page
from tests.project.layers import REPOSITORY

RESULTS = (REPOSITORY / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
SCHEDULING, MODELS = (Page(REPOSITORY / "docs" / f"{name}.md") for name in ("scheduling", "models"))


def test_the_readme_is_short() -> None:
    assert len(README.text.splitlines()) <= 150
    # Above them is only the one whose output is shown.
    assert len(README.commands) == 1 + 8
    set_up = README.text.partition("## Set up")[2].partition("## ")[0]
    assert [line.split()[:2] for line in set_up.splitlines() if line.startswith("    ")] == [
        ["make", "demo"],
        ["make", "test"],
    ]


def test_the_program_shown_is_the_example() -> None:
    example = (REPOSITORY / "examples" / "judge.py").read_text(encoding="utf-8")
    code = [re.sub(r"\s+#.*$", "", line) for line in README.script.splitlines()]
    body = [line for line in code if line.strip() and not line.startswith("judge(")]
    assert [line for line in body if line not in example.splitlines()] == []


def test_the_token_table_is_that_of_the_results() -> None:
    rows = [line for line in SCHEDULING.text.splitlines() if re.match(r"\| (essay judge|-O)", line)]
    assert len(rows) >= 4
    assert [row for row in rows if row not in RESULTS.splitlines()] == []


def test_every_architecture_is_named() -> None:
    named = re.search(r"The local engine runs\s+(.*?) models\.", MODELS.text, re.DOTALL)
    assert named is not None
    words = re.split(r", | and ", " ".join(named[1].split()))
    spelled = [re.sub(r"[ -]", "", word).lower() + "forcausallm" for word in words]
    assert sorted(spelled) == sorted(name.lower() for name in SUPPORTED)


def test_the_table_of_whole_programs_is_that_of_the_results() -> None:
    results = [line.strip("| ").split(" | ") for line in RESULTS.splitlines()]
    # dtype, workload, instances, calls, tokens in prompts, generated, lmc, vLLM, roofline, vLLM / lmc
    measured = {row[1]: [row[6], row[7], row[9]] for row in results if row[0] == "bfloat16" and len(row) == 10}
    shown = [line.strip("| ").split(" | ") for line in README.text.splitlines() if line.startswith("| ")]
    rows = {row[0]: row[1:] for row in shown if row[0] in measured}
    assert rows == measured
    assert len(rows) == 6

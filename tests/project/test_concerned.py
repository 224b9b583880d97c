"""Which tests ``make check`` runs."""

from tests.project.concerned import ALWAYS, MOST, concerned
from tests.project.layers import REPOSITORY


def test_the_tests_of_a_module_come_first():
    found = concerned(["lmc/passes/cse.py"])
    assert found[: len(ALWAYS)] == list(ALWAYS)
    assert found[len(ALWAYS)] == "tests/passes/test_cse.py"
    assert "--slow-in=tests/passes/test_cse.py" in found
    assert all((REPOSITORY / name.removeprefix("--slow-in=")).is_file() for name in found)


def test_a_changed_test_is_run():
    assert "tests/cache/test_pool.py" in concerned(["tests/cache/test_pool.py"])


def test_a_change_to_what_all_use_selects_few():
    found = concerned(["lmc/ir/core.py"])
    assert len([name for name in found if not name.startswith("--")]) <= len(ALWAYS) + MOST


def test_other_files_concern_no_test():
    assert concerned(["README.md", "examples/judge.py"]) == [*ALWAYS, *(f"--slow-in={name}" for name in ALWAYS)]

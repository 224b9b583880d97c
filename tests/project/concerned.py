"""Print the test files that a change concerns, for ``make check``: those of the last commit and of the working tree.

A changed test file is one; of a changed module of lmc those that have its name or import it, most specific first: a
file that imports few modules of lmc says more about each. For a module that every test uses they are only a sample;
``make test`` runs all. Slow tests run in changed files and in those with the name of a changed module: ``--slow-in``.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.project.layers import REPOSITORY, imports, module_name, sources, within

MOST = 25
"""Test files that are selected for their imports."""
CORPORA = {"lmc.passes": "tests/filecheck/test_filecheck.py", "lmc.frontend": "tests/frontend/test_programs.py"}
"""Test files that any change in a package concerns."""
ALWAYS = ("tests/project/test_layers.py", "tests/examples/test_examples.py", "tests/ir/test_interpreter.py")


def changed_files() -> list[str]:
    """Return the files that the last commit or the working tree changes."""
    commands = (["diff", "--name-only", "HEAD~1"], ["ls-files", "--others", "--exclude-standard"])
    found = [
        subprocess.run(["git", *command], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    return sorted({line for text in found for line in text.splitlines()})


def concerned(changed: Iterable[str]) -> list[str]:
    """Return the arguments for pytest that run the tests for changed files."""
    tests = {path: path.read_text("utf-8") for path in sorted((REPOSITORY / "tests").rglob("test_*.py"))}
    changed = set(changed)
    modules = {module_name(REPOSITORY / name) for name in changed if name.startswith("lmc/") and name.endswith(".py")}
    names = frozenset(sources())
    own = [name for name in map(_relative, tests) if name in changed or any(_mirrors(name, each) for each in modules)]
    importing: list[tuple[int, str]] = []
    for path, source in tests.items():
        used = {item.target for item in imports("test", source, names) if within(item.target, "lmc")}
        if not modules.isdisjoint(used):
            importing.append((len(used), _relative(path)))
    corpora = [file for package, file in CORPORA.items() if any(within(module, package) for module in modules)]
    found = dict.fromkeys([*ALWAYS, *own, *corpora, *(name for _, name in sorted(importing)[:MOST])])
    return [*found, *(f"--slow-in={name}" for name in (*ALWAYS, *own))]


def _mirrors(test: str, module: str) -> bool:
    """Return whether a test file has the name of a module: ``tests/passes/test_cse.py``, ``lmc.passes.cse``."""
    package, name = module.split(".")[1], module.rpartition(".")[2]
    return test.startswith(f"tests/{package}/") and test.endswith(f"/test_{name}.py")


def _relative(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


if __name__ == "__main__":
    print(" ".join(concerned(changed_files())))

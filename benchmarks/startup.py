"""Seconds to start: ``import lmc``, a file of programs, the command's help; beside an earlier revision in one run.

python benchmarks/startup.py [--write] [--baseline bad66e5] [--runs 15]

Each case is a fresh process. Revisions take turns, so what else the machine does hits both; the ratio is that of the
medians. Compiled files of both are there before the first measured run. The baseline is read from this repository's
history.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

from benchmarks.results import machine, processor, table, write_section
from tests.project.layers import REPOSITORY

PROGRAM = (
    "import lmc\n@lmc.jit\ndef answer(s, question: str):\n    s += lmc.user(question)\n    return s.gen('answer')\n"
)
MAIN = "import sys; from lmc.cli import main; sys.argv = {arguments!r}; main()"
CASES = {
    "import lmc": "import lmc",
    "a file with one program": PROGRAM,
    "lmc --help": MAIN.format(arguments=["lmc", "--help"]),
    "lmc compile examples/judge.py": MAIN.format(arguments=["lmc", "compile", "examples/judge.py"]),
    "python (nothing)": "",
}
COUNT = "import sys; before = len(sys.modules); exec({code!r}); print(len(sys.modules) - before)"


def seconds(code: str, tree: Path) -> float:
    """Seconds that a fresh process takes to run ``code`` with the lmc of ``tree``."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=tree, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


def modules(tree: Path) -> int:
    """How many modules ``import lmc`` loads."""
    command = [sys.executable, "-c", COUNT.format(code="import lmc")]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return int(subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True).stdout)


def extract(revision: str, folder: Path) -> None:
    """Write the files of a revision into ``folder``. Raises ``CalledProcessError`` where there is no such revision."""
    archive = subprocess.run(["git", "archive", revision], cwd=REPOSITORY, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def measured(trees: dict[str, Path], runs: int) -> list[list[str]]:
    """A row per case: median seconds by tree, and the ratio of the last to the first."""
    rows: list[list[str]] = []
    for name, code in CASES.items():
        for tree in trees.values():
            seconds(code, tree)  # which compiles what is imported
        times: dict[str, list[float]] = {label: [] for label in trees}
        for _ in range(runs):
            for label, tree in trees.items():
                times[label].append(seconds(code, tree))
        medians = [statistics.median(each) for each in times.values()]
        rows.append([name, *(f"{median:.3f}" for median in medians), f"{medians[-1] / medians[0]:.2f}"])
    return rows


def main() -> None:
    """Measure, print, and with ``--write`` keep the section of RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--baseline", default="bad66e5")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        extract(options.baseline, Path(folder))
        trees = {options.baseline: Path(folder), "this state": REPOSITORY}
        text = table(["seconds (median)", *trees, "ratio"], measured(trees, options.runs))
        before, now = modules(Path(folder)), modules(REPOSITORY)
        text += f"\nModules that `import lmc` loads: {before} at {options.baseline}, now {now}.\n"
    text += f"\n{options.runs} processes each, taking turns. {machine()}, {processor()}.\n"
    print(text)
    if options.write:
        write_section("startup", "python benchmarks/startup.py --write", text)


if __name__ == "__main__":
    main()

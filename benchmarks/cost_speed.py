"""The speed of `lmc cost`: a program of 1,000 calls beside `lmc compile`, and the rows of `examples/judge.py`.

python benchmarks/cost_speed.py [--write] [--rows 10000]

Processor seconds of whole commands, the median of several runs that alternate. The local model has a calibration with
the reference constants, so that its seconds are simulated.
"""

import argparse
import datetime
import json
import os
import random
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.engine import FOLDER
from benchmarks.results import machine, processor, table, write_section
from lmc.cache.simulation.report import REFERENCE
from lmc.driver.targets.calibrations import PLACE, Calibration, keep_calibration
from lmc.ir.engine.target import Target

CALLS = 1_000
RUNS = 3
MODELS = ("openai:gpt-4.1", "builtin")
MOST_RATIO = 3.0
MOST_SECONDS = 60.0  # for 10,000 rows
PROGRAM = f"""import lmc


@lmc.jit
def chain(s, topic: str):
    s += lmc.user(f"Think about {{topic}}.")
    for step in range({CALLS}):
        s += lmc.user(f"Step {{step}}: ")
        s.gen("step", max_tokens=8, stop="\\n")
    return s["step"]
"""
COMMAND = (sys.executable, "-c", "from lmc.cli.start import main; main()")


def seconds(*words: str) -> float:
    """Return the processor seconds of a command of lmc."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMMAND, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def ratio(program: Path, model: str) -> list[str]:
    """Return a row: the seconds of both commands, and their ratio."""
    compiled: list[float] = []
    estimated: list[float] = []
    for _ in range(RUNS):
        compiled.append(seconds("compile", str(program), "--model", model, "-o", str(program.with_suffix(".lmir"))))
        estimated.append(seconds("cost", str(program), "topic=cats", "--model", model))
    one, other = statistics.median(compiled), statistics.median(estimated)
    return [f"chain of {CALLS:,} calls", model, f"{one:.1f}", f"{other:.1f}", f"{other / one:.1f}"]


def of_rows(folder: Path, model: str, count: int) -> list[str]:
    """Return a row: the seconds of essays that differ."""
    rng = random.Random(count)
    file = folder / "essays.jsonl"
    essays = (json.dumps({"essay": "".join(rng.choices("abcdefgh ", k=400))}) for _ in range(count))
    file.write_text("\n".join(essays) + "\n")
    spent = seconds("cost", "examples/judge.py", "--input", str(file), "--model", model)
    return [f"judge, {count:,} rows", model, "", f"{spent:.1f}", ""]


def main() -> None:
    """Print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    folder = FOLDER / "cost_speed"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[PLACE] = str((folder / "calibrations.json").resolve())
    day = datetime.date(2026, 1, 1)
    keep_calibration(Target.parse("builtin"), Calibration(day, "reference", REFERENCE, 0.0))
    program = folder / "chain.py"
    program.write_text(PROGRAM)
    rows = [ratio(program, model) for model in MODELS]
    rows += [of_rows(folder, model, options.rows) for model in MODELS]
    text = f"{machine()}, {processor()}; processor seconds of whole commands, median of {RUNS} for the chain.\n"
    text += f"Limits: a ratio of {MOST_RATIO:g}, and {MOST_SECONDS:g} s for 10,000 rows.\n\n"
    text += table(["program", "model", "lmc compile s", "lmc cost s", "ratio"], rows)
    print(text)
    if options.write:
        write_section("cost_speed", shlex.join(["python", *sys.argv]), text)


if __name__ == "__main__":
    main()

"""Seconds that `lmc cost` predicts for local models, beside those that a run takes.

python benchmarks/cost_accuracy.py [--write] [--instances 4] [--calibrate 30]

The programs of `programs.py` on the built-in model (float32) and on the random model of `workloads.py` (124.6M
parameters, bfloat16). Each model is calibrated first, then each batch is predicted and run once, on an empty cache and
after one row that is not counted. Outputs have fixed lengths, so errors are those of the steps and of the order.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.engine import FOLDER
from benchmarks.peers.shapes import SHAPES
from benchmarks.programs import PROGRAMS
from benchmarks.results import machine, processor, table, write_section
from benchmarks.workloads import batches_of, make_words_model
from lmc import driver
from lmc.driver.commands import calibrate, cost
from lmc.driver.errors import LmcError

Dtype = Literal["float32", "bfloat16"]
MODELS: tuple[tuple[str, Dtype], ...] = (("builtin", "float32"), ("words", "bfloat16"))
HEAD = ["model", "workload", "rows", "predicted s", "measured s", "error", "hits predicted", "measured"]


def measure(model: str, dtype: Dtype, workload: str, instances: int) -> list[str] | None:
    """Predict and run a batch; None where a prompt does not fit the model's context."""
    warm, rows = batches_of(workload, instances, 1)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
        file.flush()
        entry = cost.CostEntry(f"benchmarks/programs.py:{workload}", data=file.name, models=(model,))
        found: Any = cost.run([entry], {"dtype": dtype}).report.programs[0]
    program = PROGRAMS[workload].on(model, dtype=dtype)
    try:
        list(program.batch(warm))
        driver.flush_cache(driver.Options(target=model, dtype=dtype))
        start = time.perf_counter()
        results = list(program.batch(rows))
        seconds = time.perf_counter() - start
    except LmcError:
        return None
    if any(result.error for result in results):
        return None
    prompt, cached = (sum(getattr(each.usage, name) for each in results) for name in ("prompt_tokens", "cached_tokens"))
    predicted = found.total.seconds.expected
    cells = [f"{predicted:.2f}", f"{seconds:.2f}", f"{predicted / seconds - 1:+.0%}"]
    return [model, workload, str(len(rows)), *cells, f"{found.local.hit_rate:.0%}", f"{cached / prompt:.0%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--instances", type=int, default=4)
    parser.add_argument("--calibrate", type=float, default=30, metavar="SECONDS")
    options = parser.parse_args()
    os.environ["LMC_CALIBRATIONS"] = str((FOLDER / "calibrations.json").resolve())
    words = os.path.relpath(make_words_model(FOLDER / "words"))
    lines: list[list[str]] = []
    text = ""
    for name, dtype in MODELS:
        model = f"local:{words}" if name == "words" else name
        fit = calibrate.run({"target": model, "dtype": dtype}, seconds=options.calibrate).fit
        for workload in SHAPES:
            row = measure(model, dtype, workload, options.instances)
            if row is not None:
                lines.append(row)
                print(" | ".join(row), flush=True)
        errors = [abs(float(row[5].rstrip("%"))) for row in lines if row[0] == model]
        text += f"{model}, {dtype}: calibrated steps have a mean error of {fit.mean_error:.0%}; batches of "
        text += f"{statistics.median(errors):.0f} % (median) and {max(errors):.0f} % (largest).\n\n"
    text = f"{machine()}, {processor()}; one run each.\n\n{table(HEAD, lines)}\n{text}"
    print(text)
    if options.write:
        write_section("cost_accuracy", shlex.join(["python", *sys.argv]), text)


if __name__ == "__main__":
    main()

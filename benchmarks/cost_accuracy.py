"""Figures that `lmc cost` predicts, beside those that a run measures.

python benchmarks/cost_accuracy.py [--write] [--kind tokens] [--kind seconds] [--instances 4] [--calibrate 30]

- tokens: calls, tokens and dollars of the examples, on random rows with the sentences of their data, and of the
  programs of `programs.py`. The examples run on the built-in model and on simulated providers that take them (OpenAI's
  chat API, Anthropic's), the programs on the small random model of `workloads.py`. Each is estimated without a profile
  and with one of other rows. The error is that of the expected figure, as a share of what was measured. After it is
  the standard error of the difference of both means, from how much the rows differ from each other: a profile of other
  rows has such errors even where the estimate has none. "outside" counts figures that are not in their range.
- seconds: batches of the programs on the built-in model (float32) and on the random model of `workloads.py` (124.6M
  parameters, bfloat16). Each model is calibrated first, then each batch is predicted and run once, on an empty cache
  and after one row that is not counted. Outputs have fixed lengths, so errors are those of the steps and of the order.
"""

import argparse
import json
import os
import random
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.engine import FOLDER
from benchmarks.peers.shapes import ALL_SHAPES, SHAPES
from benchmarks.programs import PROGRAMS
from benchmarks.results import machine, processor, table, write_section
from benchmarks.workloads import batches_of, make_small_model, make_words_model
from lmc import driver
from lmc.driver.commands import calibrate, cost
from lmc.driver.errors import LmcError
from tests.examples.cases import EXAMPLES, MANY_ROWS, Example, similar_rows
from tests.examples.measured import Measured, errors, estimated, outside, run_rows, sampling_error
from tests.runtime.remote.hosted_runs import hosted, target
from tests.runtime.remote.providers.replies import obedient
from tests.runtime.remote.simulator import Simulator

Dtype = Literal["float32", "bfloat16"]
MODELS: tuple[tuple[str, Dtype], ...] = (("builtin", "float32"), ("words", "bfloat16"))
KINDS = ("tokens", "seconds")
SECONDS_HEAD = ["model", "workload", "rows", "predicted s", "measured s", "error", "hits predicted", "measured"]
FIGURES = ("calls", "prompt", "cached", "output", "dollars")
TOKENS_HEAD = ["target", "workload", "rows", *FIGURES, "outside"]
AT_PROVIDERS = tuple(name for name in MANY_ROWS if name != "tree_of_thought")
"""The examples at providers: an answer of the other one is cut, since as JSON it is longer than its ``max_tokens``."""
FITTING = tuple(name for name in SHAPES if name != "multi_turn_chat_short")
"""The programs with prompts that fit the built-in model, whose context has 4,096 tokens."""
ROWS = 40
MORE_ROWS = {"debate": 100, "react": 400, "self_refine": 160}
"""Answers decide how many calls these make, so means of few rows differ much."""
POOL = 100_000
"""Tokens for all rows: what a smaller pool evicts is not estimated."""
Errors = dict[str, float]


@dataclass(frozen=True)
class ErrorsOfExample:
    """Errors of the expected figures without and with a profile, those of its sampling, and the figures outside."""

    without: Errors
    profiled: Errors
    sampling: Errors
    outside: list[str]

    def cell(self, figure: str) -> str:
        """Return the errors of a figure; nothing where it was 0."""
        if figure not in self.without:
            return ""
        sampling = f" ± {self.sampling[figure]:.0%}" if figure in self.sampling else ""
        return f"{self.without[figure]:+.0%}, {self.profiled[figure]:+.0%}{sampling}"


class FailedBatchError(SystemExit):
    """A batch that was to be measured failed: its row would be missing without a word."""

    def __init__(self, model: str, workload: str, error: object) -> None:
        super().__init__(f"{workload} on {model} failed, so nothing is written: {error}")


@contextmanager
def places(api: str) -> Generator[driver.Options]:
    """Give the options of a target: the built-in model, or a provider that is simulated while the block runs."""
    if api == "builtin":
        yield driver.Options("builtin", kv_tokens=POOL, deterministic=True)
        return
    with hosted(), Simulator(reply=obedient) as simulator:
        yield driver.Options(target(simulator.url, api, continuation="turns"))


def example_rows(name: str, options: driver.Options) -> tuple[list[Any], list[Any]]:
    """Return rows for a profile, and others, which come to their ends: estimates are those of such rows."""
    rows = _that_end(name, options, similar_rows(MANY_ROWS[name], 2 * MORE_ROWS.get(name, ROWS)))
    return rows[1::2], rows[::2]


def _that_end(name: str, options: driver.Options, rows: list[Any]) -> list[Any]:
    results = driver.Runner(EXAMPLES[name].program, options).batch([((), row) for row in rows])
    return [row for row, result in zip(rows, results, strict=True) if result.error is None]


def program_rows(name: str, instances: int) -> tuple[list[Any], list[Any]]:
    """Return rows of a program of ``programs.py`` for a profile, and others."""
    make = ALL_SHAPES[name].rows
    first, second = (make(random.Random(f"{name}/{number}"), instances) for number in range(2))
    return first, second


def measure_tokens(
    model: str, name: str, workload: Example, options: driver.Options, other: list[Any]
) -> ErrorsOfExample | None:
    """Return the errors of a workload; None: the target does not take it.

    Raises ``FailedBatchError`` where a row fails.
    """
    try:
        without = estimated(workload.program, options, workload.rows)
    except LmcError as error:
        print(f"{model} does not take {name}: {error.cause}", flush=True)
        return None
    if not workload.rows:
        print(f"{model} fails every row of {name}", flush=True)
        return None
    runs: list[Measured] = []
    for rows in (other, workload.rows):
        if model in ("builtin", "words"):
            driver.flush_cache(options)
        runs.append(run_rows(workload.program, options, rows))
    profiled, measured = runs
    for run in (profiled, measured):
        if run.error is not None:
            raise FailedBatchError(model, name, run.error)
    found = estimated(workload.program, options, workload.rows, profiled.profile)
    has_samples = min(len(run.rows) for run in runs) > 1
    return ErrorsOfExample(
        errors(without, measured),
        errors(found, measured),
        {name: sampling_error(name, profiled, measured) for name in measured.figures if has_samples},
        [*outside(without, measured), *outside(found, measured)],
    )


def measure_seconds(model: str, dtype: Dtype, workload: str, instances: int) -> list[str]:
    """Predict and run a batch. Raises ``FailedBatchError`` where a row fails."""
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
    except LmcError as error:
        raise FailedBatchError(model, workload, error) from error
    for result in results:
        if result.error is not None:
            raise FailedBatchError(model, workload, result.error)
    prompt, cached = (sum(getattr(each.usage, name) for each in results) for name in ("prompt_tokens", "cached_tokens"))
    predicted = found.total.seconds.expected
    cells = [f"{predicted:.2f}", f"{seconds:.2f}", f"{predicted / seconds - 1:+.0%}"]
    return [model, workload, str(len(rows)), *cells, f"{found.local.hit_rate:.0%}", f"{cached / prompt:.0%}"]


def tokens(instances: int) -> str:
    """Return the section of calls, tokens and dollars."""
    lines: list[list[str]] = []
    every: dict[str, list[ErrorsOfExample]] = {}
    strange: list[str] = []

    def add(model: str, name: str, rows: int, found: ErrorsOfExample | None) -> None:
        if found is None:
            return
        every.setdefault(model, []).append(found)
        strange.extend(f"{model} {name}: {each}" for each in found.outside)
        lines.append([model, name, str(rows), *map(found.cell, FIGURES), str(len(found.outside))])
        print(" | ".join(lines[-1]), flush=True)

    for api in ("builtin", "chat", "messages"):
        with places(api) as options:
            for name in MANY_ROWS if api == "builtin" else AT_PROVIDERS:
                other, rows = example_rows(name, options)
                workload = Example(EXAMPLES[name].program, rows)
                add(api, name, len(rows), measure_tokens(api, name, workload, options, other))
    options = driver.Options(f"local:{os.path.relpath(make_small_model(FOLDER / 'small'))}", dtype="float32")
    for name, program in PROGRAMS.items():
        other, rows = program_rows(name, instances)
        add("words", name, len(rows), measure_tokens("words", name, Example(program, rows), options, other))
    for line in strange:
        print("outside its range:", line)
    text = "Errors of the expected figures without a profile, and with one of other rows ± the error of sampling.\n\n"
    return text + table(TOKENS_HEAD, lines) + "\n" + distribution(every)


def distribution(every: dict[str, list[ErrorsOfExample]]) -> str:
    """Return the median and the worst error of each figure on each target."""
    lines: list[list[str]] = []
    for model, workloads in every.items():
        kinds = {
            "without": [each.without for each in workloads],
            "with a profile": [each.profiled for each in workloads],
        }
        for name, errors_of in kinds.items():
            cells: list[str] = []
            for figure in FIGURES:
                found = [abs(each[figure]) for each in errors_of if figure in each]
                cells.append(f"{statistics.median(found):.0%}, {max(found):.0%}" if found else "")
            lines.append([model, name, *cells])
    return "Median and worst error:\n\n" + table(["target", "", *FIGURES], lines)


def seconds(instances: int, calibration: float) -> str:
    """Return the section of seconds."""
    os.environ["LMC_CALIBRATIONS"] = str((FOLDER / "calibrations.json").resolve())
    words = os.path.relpath(make_words_model(FOLDER / "words"))
    lines: list[list[str]] = []
    text = ""
    for name, dtype in MODELS:
        model = f"local:{words}" if name == "words" else name
        fit = calibrate.run({"target": model, "dtype": dtype}, seconds=calibration).fit
        for workload in SHAPES if name == "words" else FITTING:
            lines.append(measure_seconds(model, dtype, workload, instances))
            print(" | ".join(lines[-1]), flush=True)
        errors_of = [abs(float(row[5].rstrip("%"))) for row in lines if row[0] == model]
        text += f"{model}, {dtype}: calibrated steps have a mean error of {fit.mean_error:.0%}; batches of "
        text += f"{statistics.median(errors_of):.0f} % (median) and {max(errors_of):.0f} % (largest).\n\n"
    return f"{machine()}, {processor()}; one run each.\n\n{table(SECONDS_HEAD, lines)}\n{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--kind", action="append", choices=KINDS, help="default: both")
    parser.add_argument("--instances", type=int, default=4)
    parser.add_argument("--calibrate", type=float, default=30, metavar="SECONDS")
    options = parser.parse_args()
    command = shlex.join(["python", *sys.argv])
    for kind in options.kind or KINDS:
        text = tokens(options.instances) if kind == "tokens" else seconds(options.instances, options.calibrate)
        print(text)
        if options.write:
            write_section("cost_accuracy" if kind == "tokens" else "cost_seconds", command, text)


if __name__ == "__main__":
    main()

"""Wall clock of whole batches beside vLLM, where the prefixes of a batch do not all fit into the KV pool.

python benchmarks/memory_pressure.py [--write] [--dtype float32] [--workload agents] [--repeats 3] [--threads 1]

The same rows of a workload (`peers/shapes.py`) on both engines: on lmc as one `Program.batch` at -O2, on vLLM with
prefix caching, where every call is asked for as soon as those that it needs are done. Both get all rows at once, and
have the same weights, threads, bound on running requests and size of the KV pool. vLLM's is rounded up: to whole
blocks, one more for each running request, and the one it keeps to itself. All else is as it comes, chunked prefill too.
The pool is the same for all workloads; how many instances there are decides what share of their tokens it holds.

- float32: the small model of `agents.py`, of which a step takes milliseconds, so that what surrounds the model counts
  for much. In every run both must give the same tokens, or the script fails.
- bfloat16: the 124.6M random model of `workloads.py`, whose texts differ from engine to engine.

The engines take turns, each from an empty cache after some rows that warm up.

Runs are kept in `build/benchmark/memory_pressure.json` as they come; `--fresh` starts anew. `LMC_BENCH_VLLM`: see
`README.md`.
"""

import argparse
import json
import os
import random
import shlex
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.engine import FOLDER, rows_kept
from benchmarks.peers.prefixes import Prefixes
from benchmarks.peers.shapes import ALL_SHAPES, Call, Row
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import Runners, peers, row_key, versions
from benchmarks.workloads import calls_of, make_small_model, make_words_model, tokenizer

ENGINES = ("lmc", "vllm")
STORE = FOLDER / "memory_pressure.json"
KV_TOKENS = 3_456
RUNNING = 4
LONGEST = KV_TOKENS // RUNNING
MODELS = {"float32": ("agents", make_small_model), "bfloat16": ("words", make_words_model)}
WARM_UP = 3  # rows: programs of react are of three lengths


@dataclass(frozen=True)
class Workload:
    """So many instances of a shape. Those of `mmlu` come subject by subject; `mixed` ones, each of another subject."""

    shape: str
    instances: int
    mixed: bool = False

    def rows(self) -> list[Row]:
        """The rows of its batch."""
        rows = ALL_SHAPES[self.shape].rows(random.Random(f"{self.shape}/1"), self.instances)
        if not self.mixed:
            return rows
        by_subject: dict[str, list[Row]] = {}
        for row in rows:
            by_subject.setdefault(row["shots"], []).append(row)
        return [*chain(*zip(*by_subject.values(), strict=True))]


WORKLOADS = {
    "mmlu, subjects in turn": Workload("mmlu", 60, mixed=True),
    "mmlu, subject by subject": Workload("mmlu", 60),
    "agents": Workload("agents", 16),
    "llm_judge": Workload("llm_judge", 6),
    "multi_turn_chat_long": Workload("multi_turn_chat_long", 8),
    "react": Workload("react", 16),
}


@dataclass(frozen=True)
class Size:
    """What a batch asks for, in tokens but for `calls`.

    With an endless cache that has served the rows which warm up, ``needed`` tokens of prompts are computed, and
    ``distinct`` ones are held more in the end.
    """

    calls: int
    prompt_tokens: int
    new_tokens: int
    needed: int
    distinct: int


def job_of(workload: Workload, dtype: str, model: Path, threads: int) -> tuple[dict[str, Any], Size]:
    """What the runners are told, and what it amounts to.

    Raises:
        ValueError: a request is longer than what the pool holds of each running one.
    """
    texts: dict[str, list[int]] = {}
    warm_up = ALL_SHAPES[workload.shape].rows(random.Random(f"{workload.shape}/0"), WARM_UP)
    batches = [warm_up, workload.rows()]
    before, calls = [calls_of(workload.shape, rows, texts) for rows in batches]
    prefixes = Prefixes()
    for call in before:
        _add(prefixes, call)
    new = [_add(prefixes, call) for call in calls]
    needed, distinct = (sum(column) for column in zip(*new, strict=True))
    longest = max(len(call.prompt) + call.new_tokens for call in calls)
    if longest > LONGEST:
        raise ValueError(f"{workload.shape} has a request of {longest} tokens; {LONGEST} fit {RUNNING} times")
    job = {
        "model": str(model.resolve()),
        "dtype": dtype,
        "device": "cpu",
        "threads": threads,
        "workload": workload.shape,
        "texts": texts,
        "batches": batches,
        "kv_tokens": KV_TOKENS,
        "max_running": RUNNING,
        "longest": LONGEST,
    }
    asked = (sum(len(call.prompt) for call in calls), sum(call.new_tokens for call in calls))
    return job, Size(len(calls), *asked, needed, distinct)


def _add(prefixes: Prefixes, call: Call) -> tuple[int, int]:
    """How many tokens of its prompt are new, and with those of its answer, of which the last is not computed."""
    prompt = prefixes.add(call.prompt)[0]
    return prompt, prompt + prefixes.add(call.prompt + [0] * (call.new_tokens - 1))[0]


@dataclass(frozen=True)
class Run:
    """One batch on one engine: `answers` are texts, by row and call."""

    seconds: float
    cpu_seconds: float
    prompt_tokens: int
    cached_tokens: int
    answers: list[list[str]]


def run(engine: str, runners: Runners, job: dict[str, Any], size: Size) -> Run:
    """Run a batch once. Ends the script where the engine did other work."""
    answer = runners.run(engine, job)
    (done,) = (dict(zip(answer, values, strict=True)) for values in zip(*answer.values(), strict=True))
    if (done["prompt_tokens"], done["new_tokens"]) != (size.prompt_tokens, size.new_tokens):
        raise SystemExit(f"{engine} did other work in {job['workload']}: {done['prompt_tokens']} tokens in prompts")
    answers = done["answers"]
    if engine != "lmc":
        answers = [[tokenizer().decode(said) for said in row] for row in answers]
    return Run(done["seconds"], done["cpu_seconds"], done["prompt_tokens"], done["cached_tokens"], answers)


def same_texts(name: str, found: dict[str, list[Run]]) -> None:
    """End the script where runs gave different texts."""
    first, *others = ([said for row in each.answers for said in row] for runs in found.values() for each in runs)
    differ = sum(a != b for other in others for a, b in zip(first, other, strict=True))
    if differ:
        raise SystemExit(f"{name}: {differ} of {len(first) * len(others)} generations differ from the first run's")


class Measurements:
    """Runs both engines in turn, each in a process that stays, and keeps what they did."""

    def __init__(self, threads: int, fresh: bool) -> None:
        self._threads = threads
        self._kept = rows_kept(STORE, fresh)

    def measure(self, names: Sequence[str], dtype: str, model: Path, repeats: int) -> dict[str, dict[str, list[Run]]]:
        """The runs of each engine on each workload."""
        found: dict[str, dict[str, list[Run]]] = {name: {engine: [] for engine in ENGINES} for name in names}
        with Runners(all_stay=True) as ours, Runners() as theirs:
            for name in names:
                job, size = job_of(WORKLOADS[name], dtype, model, self._threads)
                for repeat in range(repeats):
                    for engine, runners in zip(ENGINES, (ours, theirs), strict=True):
                        each = self._run(engine, runners, job, size, f"{name}/{WORKLOADS[name]}/{repeat}")
                        found[name][engine].append(each)
                        print(f"{dtype}, {name}, {engine}: {each.seconds:.2f} s", file=sys.stderr, flush=True)
        return found

    def _run(self, engine: str, runners: Runners, job: dict[str, Any], size: Size, about: str) -> Run:
        sizes = (job["dtype"], self._threads, KV_TOKENS, RUNNING)
        key = row_key(engine, *sizes, about)
        if key not in self._kept:
            self._kept[key] = vars(run(engine, runners, job, size))
            STORE.write_text(json.dumps(self._kept), encoding="utf-8")
        return Run(**self._kept[key])


HEAD = (
    *("dtype", "workload", "instances", "calls", "tokens in prompts", "generated", "pool / distinct tokens"),
    *("lmc s", "vLLM s", "vLLM / lmc", "lmc CPU s", "vLLM CPU s", "lmc hits", "vLLM hits", "most hits"),
)


def line(dtype: str, name: str, size: Size, found: dict[str, list[Run]]) -> list[str]:
    """A row of the table: medians of seconds and of hits, and the hits of an endless cache."""
    ours, theirs = (statistics.median(each.seconds for each in found[engine]) for engine in ENGINES)
    cpu = [statistics.median(each.cpu_seconds for each in found[engine]) for engine in ENGINES]
    hits = [statistics.median(each.cached_tokens / each.prompt_tokens for each in found[engine]) for engine in ENGINES]
    return [
        dtype,
        name,
        str(WORKLOADS[name].instances),
        *(f"{count:,}" for count in (size.calls, size.prompt_tokens, size.new_tokens)),
        f"{KV_TOKENS / size.distinct:.0%}",
        f"{ours:.2f}",
        f"{theirs:.2f}",
        f"{theirs / ours:.2f}",
        *(f"{seconds:.2f}" for seconds in cpu),
        *(f"{rate:.1%}" for rate in (*hits, 1 - size.needed / size.prompt_tokens)),
    ]


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--fresh", action="store_true", help="forget runs measured before")
    parser.add_argument("--dtype", choices=MODELS, action="append", help="default: both")
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="default: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of each engine")
    options = parser.parse_args()
    if options.write and options.workload:
        parser.error("--write keeps all of the table: leave --workload out")
    if "vllm" not in peers():
        parser.error("there is no vLLM: README.md says how to install it, and LMC_BENCH_VLLM where its Python is")
    return options


def main() -> None:
    options = command_line()
    names = options.workload or [*WORKLOADS]
    measurements = Measurements(options.threads, options.fresh)
    lines: list[list[str]] = []
    for dtype in options.dtype or MODELS:
        folder, make = MODELS[dtype]
        model = make(FOLDER / folder)
        for name, found in measurements.measure(names, dtype, model, options.repeats).items():
            if dtype == "float32":
                same_texts(name, found)
            lines.append(line(dtype, name, job_of(WORKLOADS[name], dtype, model, options.threads)[1], found))
    about = (
        f"{machine()}, {processor()}, {options.threads} threads each; {versions(ENGINES)}; medians of "
        f"{options.repeats}, load average {os.getloadavg()[1]:.1f}. Pool of {KV_TOKENS:,} tokens, at most "
        f"{RUNNING} requests at once, all instances there "
        "from the start. CPU seconds are those of all processes of an engine; hits, the share of tokens in prompts "
        "that were not computed; most hits, those of an endless cache. In float32 both gave the same tokens in every "
        "run; in bfloat16 texts differ.\n\n"
    )
    text = about + table(HEAD, lines)
    print(text, end="")
    if options.write:
        write_section("memory_pressure", shlex.join(["python", *sys.argv]), text)


if __name__ == "__main__":
    main()

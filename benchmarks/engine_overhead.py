"""Where the local engine's time goes, and whether it keeps its speed with many branches.

python benchmarks/engine_overhead.py [--write] [--branches 64] [--repeats 3]

The model of `engine.py` in bf16. Branches share 512 tokens, each has 16 of its own and gets 64 new ones, all at once.
First greedy with more and more branches, then one count with every kind of sampling, at last what it costs to get the
same text whatever else runs (`deterministic=True`). The parts are the engine's own statistics: scheduling is admission,
pages and radix tree; delivery is detokenizing, stops and results. Temperature 0.8 over the whole vocabulary of 32,000
draws from nearly flat distributions, which is the slow case for truncation.
"""

import argparse
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.engine import FOLDER, Case, make_model
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import versions
from lmc.ir.engine.protocol import EngineStatistics, Request, SamplingParams
from lmc.runtime.local import LocalEngine, load_local_engine

COUNTS = (1, 8, 64, 512)
EXACT_COUNTS = (1, 8)
SHARED, OWN, NEW = 512, 16, 64
SAMPLING = {
    "greedy": SamplingParams(temperature=0.0),
    "temperature": SamplingParams(temperature=0.8),
    "top-p 0.9": SamplingParams(temperature=0.8, top_p=0.9),
    "top-k 50": SamplingParams(temperature=0.8, top_k=50),
    "min-p 0.05": SamplingParams(temperature=0.8, min_p=0.05),
    "penalties": SamplingParams(temperature=0.8, repetition_penalty=1.1, frequency_penalty=0.2),
    "5 top logprobs": SamplingParams(temperature=0.8, logprobs=5),
}
PARTS = ("scheduling_seconds", "sampling_seconds", "delivery_seconds")


@dataclass(frozen=True)
class Measured:
    """Tokens per second, and the share of each part of the engine's time."""

    rate: float
    parts: tuple[float, ...]

    @property
    def overhead(self) -> float:
        """What is not the model."""
        return sum(self.parts)


def measure(engine: LocalEngine, branches: int, sampling: SamplingParams, repeats: int) -> Measured:
    """The median of some batches, each with prompts of its own."""
    found = [_one(engine, branches, sampling, f"{branches}/{number}") for number in range(repeats)]
    return sorted(found, key=lambda each: each.rate)[len(found) // 2]


@contextmanager
def opened(folder: Path, *, deterministic: bool) -> Generator[LocalEngine]:
    """An engine that takes all branches at once, warmed up."""
    engine = load_local_engine(
        str(folder),
        dtype="bfloat16",
        kv_tokens=60_000,
        max_running=COUNTS[-1],
        deterministic=deterministic,
    )
    try:
        measure(engine, 2, SAMPLING["greedy"], 1)
        yield engine
    finally:
        engine.close()


def _one(engine: LocalEngine, branches: int, sampling: SamplingParams, seed: str) -> Measured:
    asked = replace(sampling, max_tokens=NEW, min_tokens=NEW)
    prompts = Case(branches, SHARED, OWN).batch(f"{time.monotonic_ns()}/{seed}")
    before, start = engine.statistics, time.perf_counter()
    handles = [
        engine.submit(Request(tuple(prompt), asked, seed=number, instance=number))
        for number, prompt in enumerate(prompts)
    ]
    for handle in handles:
        handle.future.result()
    seconds = time.perf_counter() - start
    after = engine.statistics
    whole = _spent(before, after, "model_seconds") + sum(_spent(before, after, part) for part in PARTS)
    return Measured(branches * NEW / seconds, tuple(_spent(before, after, part) / whole for part in PARTS))


def _spent(before: EngineStatistics, after: EngineStatistics, part: str) -> float:
    return getattr(after, part) - getattr(before, part)


def shown(name: str, found: Measured) -> list[str]:
    return [name, f"{found.rate:.0f}", *(f"{part:.1%}" for part in found.parts), f"{found.overhead:.1%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--branches", type=int, default=64, help="with every kind of sampling")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    folder = make_model(FOLDER / "model")
    with opened(folder, deterministic=False) as engine:
        many = {count: measure(engine, count, SAMPLING["greedy"], options.repeats) for count in COUNTS}
        kinds = {name: measure(engine, options.branches, kind, options.repeats) for name, kind in SAMPLING.items()}
    with opened(folder, deterministic=True) as engine:
        exact = {count: measure(engine, count, SAMPLING["greedy"], options.repeats) for count in EXACT_COUNTS}
    parts = ["scheduling", "sampling", "delivery", "all three"]
    first = table(["branches, greedy", "tokens/s", *parts], [shown(str(count), found) for count, found in many.items()])
    second = table(
        [f"{options.branches} branches", "tokens/s", *parts], [shown(name, found) for name, found in kinds.items()]
    )
    about = f"{machine()}, {processor()}; {versions(())}; median of {options.repeats}. "
    about += "Shares of the engine's time; the rest is the model.\n\n"
    ratio = f"\n512 branches / 64: {many[512].rate / many[64].rate:.2f}.\n\n"
    third = "\n" + table(
        ["branches, deterministic", "tokens/s", *parts, "times slower"],
        [[*shown(str(count), found), f"{many[count].rate / found.rate:.2f}"] for count, found in exact.items()],
    )
    text = first + ratio + second + third
    print(text)
    if options.write:
        write_section("engine_overhead", "python benchmarks/engine_overhead.py --write", about + text)


if __name__ == "__main__":
    main()

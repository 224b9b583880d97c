"""What the executor costs per generation, over an engine that answers at once and does nothing.

python benchmarks/executor_overhead.py [--write]
"""

import argparse
import asyncio
import time
from collections.abc import Callable

from benchmarks.compile_time import chain, fan_out
from benchmarks.results import machine, table, write_section
from lmc.driver.compile.compile import compile_program
from lmc.driver.compile.compiled import Compiled
from lmc.ir.engine.protocol import DoneHandle, Generation, Handle, OnDelta, Request
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.semantics.interpreter import interpret
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.executor import Executor, Finished, Instance

REPEATS = 3


class IdleEngine(ToyEngine):
    """Every generation is one letter."""

    answer = Generation((65,), "e", "length", prompt_tokens=1, generated_tokens=1)

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:  # noqa: ARG002 - protocol
        return DoneHandle[Generation].of(self.answer)


def seconds_of(run: Callable[[], object]) -> float:
    """CPU time, fastest of a few."""
    found: list[float] = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def run_batch(compiled: Compiled, engine: ToyEngine, count: int) -> None:
    """Run ``count`` instances."""
    ends: dict[int, Finished] = {}
    instances = [Instance(number, {"topic": f"topic {number}"}) for number in range(count)]
    executor = Executor(engine, compiled.prepared, compiled.hosts)
    asyncio.run(executor.run_batch(instances, range(count), ends.__setitem__))
    assert all(end.error is None for end in ends.values())


def measure() -> list[tuple[str, int, float, float]]:
    """Shape, generations, and microseconds per generation of interpreter and executor."""
    engine = IdleEngine()
    found: list[tuple[str, int, float, float]] = []
    cases = (
        ("fan-out", fan_out(1_000), 1_000, 1),
        ("fan-out", fan_out(10_000), 10_000, 1),
        ("chain", chain(100), 100, 1),
        ("1,000 instances of a chain", chain(10), 10, 1_000),
    )
    for name, program, generations, instances in cases:
        compiled = compile_program(program, None, Target("toy"), PipelineOptions("O2"), toy_tokenizer())
        total = generations * instances

        def reference(compiled: Compiled = compiled, instances: int = instances) -> None:
            for number in range(instances):
                interpret(compiled.module, {"topic": f"topic {number}"}, engine, instance=number)

        def execute(compiled: Compiled = compiled, instances: int = instances) -> None:
            run_batch(compiled, engine, instances)

        found.append((name, total, seconds_of(reference) / total * 1e6, seconds_of(execute) / total * 1e6))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    options = parser.parse_args()
    lines = [[name, f"{total:,}", f"{slow:.0f}", f"{fast:.0f}"] for name, total, slow, fast in measure()]
    text = table(["shape", "generations", "interpreter µs each", "executor µs each"], lines)
    print(text, end="")
    if options.write:
        about = f"CPU time per generation with its prompt, tokens and ops; fastest of {REPEATS}. {machine()}.\n\n"
        write_section("executor_overhead", "python benchmarks/executor_overhead.py --write", about + text)


if __name__ == "__main__":
    main()

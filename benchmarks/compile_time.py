"""How long capture, passes and lowering take for large programs, and how that grows.

python benchmarks/compile_time.py [--write] [--model MODEL]
"""

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import lmc
from benchmarks.results import machine, table, write_section
from lmc.backend.lower import lower
from lmc.driver.compile.compile import collection_paused
from lmc.driver.targets.service import service
from lmc.frontend.capture import capture
from lmc.ir.engine.target import Target
from lmc.passes.base import PassContext
from lmc.passes.pipelines import pipeline

SIZES = (1_000, 10_000)
REPEATS = 3
LIMIT_SECONDS = 0.5  # for 1,000 generations
LIMIT_RATIO = 12.0  # for ten times as many


def chain(count: int) -> lmc.Program:
    """Each generation goes on from the one before."""

    @lmc.jit
    def program(s: lmc.State, topic: str) -> str:
        s += lmc.user(f"Think about {topic}.")
        for step in range(count):
            s += f"\nStep {step}: "
            s.gen("step", max_tokens=8, stop="\n")
        return s["step"]

    return program


def fan_out(count: int) -> lmc.Program:
    """All generations start from one prefix, and are joined."""

    @lmc.jit
    def program(s: lmc.State, topic: str) -> str:
        s += lmc.user(f"Think about {topic}.")
        branches = s.fork(count)
        for number in range(count):
            branches[number] += lmc.user(f"View {number}?")
            branches[number].gen("view", max_tokens=8)
        return "\n".join(branch["view"] for branch in branches)

    return program


def nested(count: int) -> lmc.Program:
    """Each generation is a call of another program."""

    @lmc.jit
    def ask(s: lmc.State, question: str) -> str:
        s += lmc.user(question)
        return s.gen("answer", max_tokens=8)

    @lmc.jit
    def program(s: lmc.State, topic: str) -> str:
        answers = [ask(f"What is number {number} of {topic}?") for number in range(count)]
        s += lmc.user("\n".join(answers))
        return s.gen("verdict", max_tokens=8)

    return program


def conditions(count: int) -> lmc.Program:
    """What each tenth generation says decides whether one more is made: 100 conditions for 1,000 generations."""

    @lmc.jit
    def program(s: lmc.State, topic: str) -> str:
        s += lmc.user(f"Think about {topic}.")
        last = ""
        for step in range(count):
            last = s.gen("step", max_tokens=8, stop="\n")
            if step % 10 == 0:
                if "no" in last:
                    s += "Why not?"
                    last = s.gen("reason", max_tokens=8)
                else:
                    s += "Go on."
        return last

    return program


SHAPES: dict[str, Callable[[int], lmc.Program]] = {
    "chain": chain,
    "fan-out": fan_out,
    "nested calls": nested,
    "conditions": conditions,
}


@dataclass(frozen=True)
class Times:
    """Seconds of each stage."""

    capture: float
    passes: float
    lower: float

    @property
    def total(self) -> float:
        return self.capture + self.passes + self.lower


def measure(make: Callable[[int], lmc.Program], count: int, target: Target, repeats: int = REPEATS) -> Times:
    """The fastest of ``repeats`` compilations at -O2, each of a program made anew, as the driver does it; CPU time."""
    tokenizer = service().engines.tokenizer(target)
    found: list[Times] = []
    for _ in range(repeats):
        program = make(count)
        gc.collect()
        with collection_paused():
            start = time.process_time()
            captured = capture(program, None)
            after_capture = time.process_time()
            optimized = pipeline("O2").run(captured.module, PassContext(tokenizer), valid=True)
            after_passes = time.process_time()
            plan = lower(optimized.module, target)
            end = time.process_time()
        assert not captured.breaks, captured.breaks
        assert sum(instruction.op.billable for instruction in plan.instructions) >= count
        found.append(Times(after_capture - start, after_passes - after_capture, end - after_passes))
    return min(found, key=lambda times: times.total)


def measure_all(target: Target, sizes: Sequence[int] = SIZES, repeats: int = REPEATS) -> dict[str, list[Times]]:
    """Times by shape, one for each size."""
    return {name: [measure(make, size, target, repeats) for size in sizes] for name, make in SHAPES.items()}


def rows(found: dict[str, list[Times]], sizes: Sequence[int] = SIZES) -> list[list[str]]:
    """Lines of the table."""
    lines: list[list[str]] = []
    for name, times in found.items():
        ratio = times[-1].total / times[0].total
        for size, entry in zip(sizes, times, strict=True):
            stages = [f"{seconds:.3f}" for seconds in (entry.capture, entry.passes, entry.lower, entry.total)]
            lines.append([name, f"{size:,}", *stages, f"{ratio:.1f}" if size == sizes[-1] else ""])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--model", default="builtin", help="target whose tokenizer the passes count with")
    options = parser.parse_args()
    found = measure_all(Target.parse(options.model))
    head = ["shape", "generations", "capture s", "passes s", "lower s", "total s", "t(10,000)/t(1,000)"]
    text = table(head, rows(found))
    print(text, end="")
    limits = f"Limits: {LIMIT_SECONDS} s for 1,000 generations, a ratio of {LIMIT_RATIO:g}."
    print(limits)
    if options.write:
        about = f"CPU time of one thread at -O2, fastest of {REPEATS}. {limits} {machine()}.\n\n"
        write_section("compile_time", "python benchmarks/compile_time.py --write", about + text)


if __name__ == "__main__":
    main()

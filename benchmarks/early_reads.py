"""Time of a program with a tool along a branch, started early beside the generation that decides, and not.

python benchmarks/early_reads.py [--write] [--runs 9]

The same program on the built-in model, with one tool that takes a given time and only reads: declared ``early``, and
not. Runs of both take turns in one process, each with a text of its own, so that nothing of a prompt is cached.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import lmc
from benchmarks.results import machine, table, write_section

SECONDS = (0.05, 0.2, 0.8)
TOKENS = 96
"""Of the generation that decides."""


@dataclass
class Library:
    """Where the tools look: ``seconds`` that a call takes, and the number of ``calls``."""

    seconds: float = 0.0
    calls: int = 0

    def find(self, question: str) -> str:
        self.calls += 1
        time.sleep(self.seconds)
        return f"{question} The ferry leaves at nine."


LIBRARY = Library()


@lmc.tool(effect="reads")
def search(question: str) -> str:
    return LIBRARY.find(question)


@lmc.tool(effect="reads", early=True)
def search_early(question: str) -> str:
    return LIBRARY.find(question)


@lmc.jit
def waiting(s: lmc.State, question: str, least: int) -> str:
    s += lmc.user(question)
    thought = s.gen("thought", min_tokens=TOKENS, max_tokens=TOKENS)
    if len(thought) > least:
        s += lmc.user(search(f"about {question}"))
    return s.gen("answer", max_tokens=8)


@lmc.jit
def early(s: lmc.State, question: str, least: int) -> str:
    s += lmc.user(question)
    thought = s.gen("thought", min_tokens=TOKENS, max_tokens=TOKENS)
    if len(thought) > least:
        s += lmc.user(search_early(f"about {question}"))
    return s.gen("answer", max_tokens=8)


PROGRAMS = {"waiting": waiting, "early": early}


@dataclass(frozen=True)
class Case:
    """What one program took: the median of its runs in seconds, and calls of the tool for each."""

    seconds: float
    calls: float


def measure(seconds: float, *, taken: bool, runs: int, target: str = "builtin") -> dict[str, Case]:
    """Both programs with a tool of ``seconds``, for a way that is ``taken`` or not, by name."""
    LIBRARY.seconds = seconds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    calls = dict.fromkeys(PROGRAMS, 0)
    for number in range(runs + 1):
        for name, program in PROGRAMS.items():
            before = LIBRARY.calls
            start = time.perf_counter()
            program.on(target)(f"{name} {number} {seconds} {taken}: when does it leave?", 0 if taken else 10**6)
            if number:  # the first one compiles
                times[name].append(time.perf_counter() - start)
                calls[name] += LIBRARY.calls - before
    return {name: Case(statistics.median(times[name]), calls[name] / runs) for name in PROGRAMS}


def row(seconds: float, taken: bool, found: dict[str, Case]) -> Sequence[str]:
    """A line of the table."""
    plain, ahead = found["waiting"], found["early"]
    times = (f"{1e3 * plain.seconds:.0f}", f"{1e3 * ahead.seconds:.0f}", f"{plain.seconds / ahead.seconds:.2f}")
    return [f"{1e3 * seconds:.0f}", "yes" if taken else "no", *times, f"{plain.calls:g}", f"{ahead.calls:g}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    lines = [
        row(seconds, taken, measure(seconds, taken=taken, runs=options.runs))
        for taken in (True, False)
        for seconds in SECONDS
    ]
    head = ["tool ms", "way taken", "waiting ms", "early ms", "ratio", "calls waiting", "calls early"]
    text = table(head, lines)
    print(text, end="")
    if options.write:
        about = f"Medians of {options.runs} runs of each program, built-in model. {machine()}.\n\n"
        write_section("early_reads", "python benchmarks/early_reads.py --write", about + text)


if __name__ == "__main__":
    main()

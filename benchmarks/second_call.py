"""What a compiled program adds to the time of its first token, from its second call on, on the built-in model.

python benchmarks/second_call.py [--write] [--calls 30]

Each call gets a text of its own, so nothing of its prompt is cached. What lmc adds is the time from the call to the
first request that the engine gets, and from the engine's first token to the first event of the stream.
"""

import argparse
import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import lmc
from benchmarks.results import machine, table, write_section
from lmc.driver.service import service
from lmc.ir.engine import Engine, TokenDelta
from lmc.ir.target import Target

LIMIT = 0.02
WORDS = "The harbour wall was rebuilt in spring, and the ferry to the island now leaves from the northern quay at nine."


@lmc.jit
def plain(s: lmc.State, text: str) -> str:
    s += lmc.user(f"{text}\nWhat is said of the ferry?")
    return s.gen("answer", max_tokens=8)


@lmc.jit
def branching(s: lmc.State, text: str) -> str:
    s += lmc.user(f"{text}\nWhat is said of the ferry?")
    answer = s.gen("answer", max_tokens=8)
    if "nine" in answer:
        return answer
    for _ in range(2):
        s += lmc.user("Say it again.")
        answer = s.gen("answer", max_tokens=8)
        if "nine" in answer:
            break
    return answer


@lmc.jit
def forking(s: lmc.State, text: str) -> list[str]:
    s += lmc.user(text)
    branches = s.fork(3)
    for number, what in enumerate(("ferry", "wall", "quay")):
        branches[number] += lmc.user(f"What is said of the {what}?")
        branches[number].gen("answer", max_tokens=8)
    return branches["answer"]


@dataclass
class Moments:
    """When the engine was first asked, and when it first had a token."""

    asked: float = 0.0
    token: float = 0.0


@contextmanager
def watched(engine: Engine) -> Generator[Moments]:
    """Note the moments of the engine, which is otherwise left as it is."""
    moments = Moments()
    names = [name for name in ("submit", "score", "prefill") if hasattr(engine, name)]
    held = {name: getattr(engine, name) for name in names}

    def noted(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            moments.asked = moments.asked or time.perf_counter()
            if name == "submit":
                args = (args[0], first(args[1] if len(args) > 1 else kwargs.pop("on_delta", None)), *args[2:])
            return held[name](*args, **kwargs)

        return call

    def first(on_delta: Any) -> Any:
        def take(delta: TokenDelta) -> None:
            moments.token = moments.token or time.perf_counter()
            if on_delta is not None:
                on_delta(delta)

        return take

    for name in names:
        setattr(engine, name, noted(name))
    try:
        yield moments
    finally:
        for name in names:
            delattr(engine, name)


def measure(program: lmc.Program, engine: Engine, calls: int) -> list[tuple[float, float]]:
    """For each call after the first: seconds to the first event, and those of them that lmc added."""
    found: list[tuple[float, float]] = []
    for number in range(calls + 1):
        text = f"{program.name} {number}: " + " ".join(f"({line}) {WORDS}" for line in range(12))
        with watched(engine) as moments:
            start = time.perf_counter()
            with program.stream(text) as stream:
                next(iter(stream))
                event = time.perf_counter()
                for _ in stream:
                    pass
        found.append((event - start, (moments.asked - start) + (event - moments.token)))
    return found[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    parser.add_argument("--calls", type=int, default=30)
    options = parser.parse_args()
    engine = service().engines.engine(Target.parse("builtin"))
    lines: list[list[str]] = []
    for program in (plain, branching, forking):
        found = measure(program.on("builtin"), engine, options.calls)
        firsts = statistics.median(first for first, _ in found)
        added = statistics.median(more for _, more in found)
        share = statistics.median(more / first for first, more in found)
        lines.append([program.name, f"{firsts * 1e3:.1f}", f"{added * 1e3:.2f}", f"{share:.2%}"])
    text = table(["program", "first token ms", "added by lmc ms", "share"], lines)
    print(text, end="")
    print(f"Limit: {LIMIT:.0%}.")
    if options.write:
        about = f"Medians of {options.calls} calls after the first. Limit: {LIMIT:.0%}. {machine()}.\n\n"
        write_section("second_call", "python benchmarks/second_call.py --write", about + text)


if __name__ == "__main__":
    main()

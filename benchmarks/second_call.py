"""What a compiled program adds to the time of its first token, from its second call on, on the built-in model.

python benchmarks/second_call.py [--write] [--calls 30]

Each call gets a text of its own, so nothing of its prompt is cached. What lmc adds is the time from the call to the
first request that the engine gets, and from the engine's first token to the first event of the stream. Cutting the
prompt into tokens is in between, and is what whoever asks the engine by hand does as well: it has a column of its own.
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
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import Engine, TokenDelta
from lmc.ir.engine.target import Target
from lmc.ir.tokens.tokenizer import Tokenizer

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
    """When the engine was first asked, when it first had a token, and what tokenizing took before."""

    asked: float = 0.0
    token: float = 0.0
    tokenizing: float = 0.0  # seconds, before the engine was asked


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

    encode = Tokenizer.encode

    def encode_timed(self: Tokenizer, text: str) -> tuple[int, ...]:
        start = time.perf_counter()
        ids = encode(self, text)
        if not moments.asked:
            moments.tokenizing += time.perf_counter() - start
        return ids

    for name in names:
        setattr(engine, name, noted(name))
    Tokenizer.encode = encode_timed
    try:
        yield moments
    finally:
        Tokenizer.encode = encode
        for name in names:
            delattr(engine, name)


@dataclass(frozen=True)
class Call:
    """Seconds of one call: to its first event, for the tokens of its first request, and what lmc added to them."""

    first: float
    tokenizing: float
    added: float


def measure(program: lmc.Program, engine: Engine, calls: int) -> list[Call]:
    """The calls after the first."""
    found: list[Call] = []
    for number in range(calls + 1):
        text = f"{program.name} {number}: " + " ".join(f"({line}) {WORDS}" for line in range(12))
        with watched(engine) as moments:
            start = time.perf_counter()
            with program.stream(text) as stream:
                next(iter(stream))
                event = time.perf_counter()
                for _ in stream:
                    pass
        added = (moments.asked - start) + (event - moments.token) - moments.tokenizing
        found.append(Call(event - start, moments.tokenizing, added))
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
        first, tokenizing, added = (
            1e3 * statistics.median(getattr(call, name) for call in found) for name in ("first", "tokenizing", "added")
        )
        share = statistics.median(call.added / call.first for call in found)
        lines.append([program.name, f"{first:.1f}", f"{tokenizing:.2f}", f"{added:.2f}", f"{share:.2%}"])
    text = table(["program", "first token ms", "tokenizing ms", "added by lmc ms", "share added"], lines)
    print(text, end="")
    print(f"Limit: {LIMIT:.0%}.")
    if options.write:
        about = f"Medians of {options.calls} calls after the first. Limit: {LIMIT:.0%}. {machine()}.\n\n"
        write_section("second_call", "python benchmarks/second_call.py --write", about + text)


if __name__ == "__main__":
    main()

"""Hosted models through lmc, compared with hand-written calls of the SDK; a provider on loopback with fixed latencies.

python benchmarks/api.py [--write] [--case branches] [--repeats 5]

The provider is the simulator of the tests, in a process of its own. All sides send the same requests, and their
answers are compared. Sides take turns.

- branches: a prompt with eight branches, each with one call of a second: one call after the other, with asyncio, as
  a program of lmc. Seconds of the clock, the middle of the repeats.
- order: 24 calls and, written last, a chain of four, where four requests may be in flight: with asyncio, as a program
  of lmc, and as one without plan-fork-join. Seconds of the clock, the middle of the repeats.
- CPU: calls of which 1,000 are in flight: CPU time of the client's process for each call, the least of the repeats.
- limit: 500 requests a minute, where a minute has 30 seconds: the seconds from a request to the 1,000th behind it, two
  minutes at best, as a share of the limit that is used, the middle of all; and the most that arrived within any minute.
"""

import argparse
import asyncio
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import openai

import lmc
from benchmarks.results import machine, processor, table, write_section
from lmc.runtime.remote import engine
from lmc.runtime.remote.limits import WINDOW, RateLimits
from tests.runtime.remote.providers.limits import most_in_any
from tests.runtime.remote.simulator import KEY

KEY_NAME = "LMC_BENCH_KEY"
MODEL = "gpt-4.1"
BRANCHES, SECONDS = 8, 1.0
NOTES, CHAIN, PLACES, SHORT = 24, 4, 4, 0.2
IN_FLIGHT, CALLS, LONG = 1000, 1500, 3.0
"""Requests at once, of how many, and the seconds of each: long enough that all of the first are in flight."""
LIMIT, MINUTE, LIMITED = 500, 30.0, 1500
MOST_TIMES, MOST_CPU, LEAST_USED = 1.05, 1.0, 0.95
TOKENS = 40


@lmc.jit
def branches(s: Any, question: str) -> list[str]:
    s.user(question)
    forks = s.fork(BRANCHES)
    for number, fork in enumerate(forks):
        with fork.assistant():
            fork.gen("answer", max_tokens=TOKENS, stop=f"stop {number}")
    return [fork["answer"] for fork in forks]


@lmc.jit
def one_call(s: Any, question: str) -> str:
    s.user(question)
    with s.assistant():
        return s.gen("answer", max_tokens=TOKENS)


@lmc.jit
def notes_and_chain(s: Any, question: str) -> list[str]:
    answers: list[str] = []
    for number in range(NOTES):
        note = s.fork(1)[0]
        note.user(f"{question}, note {number}")
        with note.assistant():
            answers.append(note.gen("note", max_tokens=TOKENS))
    answer = question
    for step in range(CHAIN):
        thought = s.fork(1)[0]
        thought.user(f"Step {step}: {answer}")
        with thought.assistant():
            answer = thought.gen("thought", max_tokens=TOKENS)
        answers.append(answer)
    return answers


@dataclass(frozen=True)
class Provider:
    """The simulator in its process."""

    process: subprocess.Popen[str]
    url: str

    def target(self, **settings: Any) -> Any:
        """Return it as a target of lmc."""
        return lmc.remote(f"openai:{MODEL}", base_url=self.url, api_key_env=KEY_NAME, **settings)

    def client(self) -> openai.AsyncOpenAI:
        """Return the bare SDK, with as many connections as lmc has."""
        limits = openai.DefaultAsyncHttpxClient(timeout=600.0, limits=_limits())
        return openai.AsyncOpenAI(base_url=self.url, api_key=KEY, max_retries=0, timeout=600.0, http_client=limits)

    def arrived(self) -> list[float]:
        """Return when requests have arrived so far, in its seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("arrivals\n")
        self.process.stdin.flush()
        return [at for at, *_ in json.loads(self.process.stdout.readline())["arrivals"]]


def _limits() -> Any:
    import httpx2

    return httpx2.Limits(max_connections=None, max_keepalive_connections=IN_FLIGHT)


@contextmanager
def provider(**options: float) -> Generator[Provider]:
    """Run the simulator."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", f"{value:g}")]
    command = [sys.executable, "-m", "tests.runtime.remote.simulator", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise SystemExit("the simulator has not started")
        try:
            yield Provider(process, f"{url}/v1")
        finally:
            lmc.close()
            process.terminate()


def body_of(question: str, stop: str | None = None) -> dict[str, Any]:
    """Return the request that lmc sends."""
    more = {} if stop is None else {"stop": [stop]}
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": question}],
        "max_completion_tokens": TOKENS,
        **more,
    }


async def called(client: openai.AsyncOpenAI, body: dict[str, Any]) -> str:
    """Make one call."""
    found = await client.chat.completions.create(**body)
    return found.choices[0].message.content or ""


def in_turns(
    sides: dict[str, Callable[[int], list[str]]], repeats: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Measure sides in turns, each repeat with its own prompts. Ends the program where their answers differ."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(-1, repeats):  # the first one warms up
        answers: list[list[str]] = []
        for name, side in sides.items():
            started = clock()
            answers.append(side(repeat))
            if repeat >= 0:
                found[name].append(clock() - started)
        if any(each != answers[0] for each in answers):
            raise SystemExit("answers differ between the sides")
    return found


class Bare:
    """Calls of the bare SDK by hand, on a loop that stays: connections are kept, as those of lmc are."""

    def __init__(self, provider: Provider) -> None:
        self._runner = asyncio.Runner()
        self._client = provider.client()

    def run(self, work: Callable[[openai.AsyncOpenAI], Awaitable[list[str]]]) -> list[str]:
        async def with_client() -> list[str]:
            return await work(self._client)

        return self._runner.run(with_client())

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


def branches_case(repeats: int) -> tuple[str, list[str]]:
    """Compare eight branches with the same calls in sequence, and by hand."""
    with provider(latency=SECONDS) as served:
        program, bare = branches.on(served.target()), Bare(served)

        def bodies(repeat: int) -> list[dict[str, Any]]:
            return [body_of(f"Question {repeat}", f"stop {number}") for number in range(BRANCHES)]

        async def one_by_one(client: openai.AsyncOpenAI, repeat: int) -> list[str]:
            return [await called(client, body) for body in bodies(repeat)]

        async def together(client: openai.AsyncOpenAI, repeat: int) -> list[str]:
            return await asyncio.gather(*(called(client, body) for body in bodies(repeat)))

        sides: dict[str, Callable[[int], list[str]]] = {
            "SDK, in sequence": lambda repeat: bare.run(lambda client: one_by_one(client, repeat)),
            "SDK, asyncio": lambda repeat: bare.run(lambda client: together(client, repeat)),
            "lmc": lambda repeat: program(f"Question {repeat}"),
        }
        found = {name: statistics.median(each) for name, each in in_turns(sides, repeats, time.perf_counter).items()}
        bare.close()
    by_hand = found["SDK, asyncio"]
    lines = [[name, f"{seconds:.3f}", f"{seconds / by_hand:.3f}"] for name, seconds in found.items()]
    missed = [f"branches: {found['lmc'] / by_hand:.3f} times as long"] if found["lmc"] > MOST_TIMES * by_hand else []
    head = (f"{BRANCHES} branches, {SECONDS:g} s each", "seconds", "compared with asyncio")
    return table(head, lines), missed


def order_case(repeats: int) -> tuple[str, list[str]]:
    """Compare orders of requests where few may be in flight."""
    with provider(latency=SHORT) as served:
        target, bare = served.target(concurrency=PLACES), Bare(served)

        async def by_hand(client: openai.AsyncOpenAI, repeat: int) -> list[str]:
            places = asyncio.Semaphore(PLACES)

            async def one(question: str) -> str:
                async with places:
                    return await called(client, body_of(question))

            async def chain() -> list[str]:
                answers = [f"Question {repeat}"]
                for step in range(CHAIN):
                    answers.append(await one(f"Step {step}: {answers[-1]}"))
                return answers[1:]

            notes = (one(f"Question {repeat}, note {number}") for number in range(NOTES))
            answers, thoughts = await asyncio.gather(asyncio.gather(*notes), chain())
            return [*answers, *thoughts]

        whole, without = (notes_and_chain.on(target, disabled_passes=passes) for passes in ((), ("plan-fork-join",)))
        sides: dict[str, Callable[[int], list[str]]] = {
            "SDK, asyncio": lambda repeat: bare.run(lambda client: by_hand(client, repeat)),
            "lmc": lambda repeat: whole(f"Question {repeat}"),
            "lmc without plan-fork-join": lambda repeat: without(f"Question {repeat}"),
        }
        found = {name: statistics.median(each) for name, each in in_turns(sides, repeats, time.perf_counter).items()}
        bare.close()
    lines = [[name, f"{seconds:.3f}", f"{seconds / found['SDK, asyncio']:.3f}"] for name, seconds in found.items()]
    head = (f"{NOTES} calls and a chain of {CHAIN}, {PLACES} in flight, {SHORT:g} s each", "seconds", "beside asyncio")
    return table(head, lines), []


def cpu_case(repeats: int) -> tuple[str, list[str]]:
    """Compare the CPU time of a call with 1,000 in flight."""
    with provider(latency=LONG) as served:
        program, bare = one_call.on(served.target(concurrency=IN_FLIGHT)), Bare(served)

        def questions(repeat: int) -> list[str]:
            return [f"Question {repeat}/{number}" for number in range(CALLS)]

        async def by_hand(client: openai.AsyncOpenAI, repeat: int) -> list[str]:
            places = asyncio.Semaphore(IN_FLIGHT)

            async def one(question: str) -> str:
                async with places:
                    return await called(client, body_of(question))

            return await asyncio.gather(*map(one, questions(repeat)))

        def by_lmc(repeat: int) -> list[str]:
            return [each.value for each in program.batch([{"question": each} for each in questions(repeat)])]

        sides: dict[str, Callable[[int], list[str]]] = {
            "SDK, asyncio": lambda repeat: bare.run(lambda client: by_hand(client, repeat)),
            "lmc": by_lmc,
        }
        found = {name: 1000 * min(each) / CALLS for name, each in in_turns(sides, repeats, time.process_time).items()}
        bare.close()
    above = found["lmc"] - found["SDK, asyncio"]
    lines = [[name, f"{milliseconds:.2f}"] for name, milliseconds in found.items()]
    missed = [f"CPU: {above:.2f} ms above the SDK"] if above > MOST_CPU else []
    head = (f"{CALLS:,} calls, {IN_FLIGHT:,} in flight", "CPU ms per call")
    return table(head, [*lines, ["lmc above the SDK", f"{above:.2f}"]]), missed


@contextmanager
def short_minute() -> Generator[None]:
    """Let engines that are made in the block have minutes of the simulator."""
    own, scaled = engine.RateLimits, functools.partial(RateLimits, window=WINDOW * MINUTE / 60.0)
    engine.RateLimits = scaled
    try:
        yield
    finally:
        engine.RateLimits = own


def limit_case(_: int) -> tuple[str, list[str]]:
    """Measure what is used of a limit of requests."""
    with provider(latency=0.05, requests_per_minute=LIMIT, minute=MINUTE) as served, short_minute():
        program = one_call.on(served.target(requests_per_minute=LIMIT, concurrency=100))
        found = program.batch([{"question": f"Question {number}"} for number in range(LIMITED)])
        if any(each.error is not None for each in found):
            raise SystemExit(f"a row has failed: {next(each.error for each in found if each.error is not None)}")
        arrived = sorted(served.arrived())
    taken = [last - first for first, last in zip(arrived, arrived[2 * LIMIT :], strict=False)]
    used = 2 * MINUTE / statistics.median(taken)
    most = most_in_any(MINUTE, ((at, 1) for at in arrived))
    missed = [f"limit: {used:.1%} of it is used"] if used < LEAST_USED else []
    missed += [f"limit: {most} requests in a minute of {LIMIT}"] if most > LIMIT else []
    head = (f"{LIMITED:,} requests under a limit of {LIMIT} a minute", "used", "most in any minute")
    return table(head, [["lmc", f"{used:.1%}", str(most)]]), missed


CASES: dict[str, Callable[[int], tuple[str, list[str]]]] = {
    "branches": branches_case,
    "order": order_case,
    "CPU": cpu_case,
    "limit": limit_case,
}


def measured(cases: Sequence[str], repeats: int) -> tuple[str, list[str]]:
    """Return the tables, and the bounds that are missed."""
    os.environ[KEY_NAME] = KEY
    found = [CASES[case](repeats) for case in cases]
    text = "\n".join(tables for tables, _ in found)
    return f"{processor()}; {machine()}.\n\n{text}", [each for _, missed in found for each in missed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--case", action="append", choices=CASES, help="default: all of them")
    parser.add_argument("--repeats", type=int, default=5, help="default: 5")
    options = parser.parse_args()
    text, missed = measured(options.case or tuple(CASES), options.repeats)
    print(text, end="")
    if options.write:
        write_section("api", "python benchmarks/api.py --write", text)
    if missed:
        raise SystemExit("\n".join(missed))


if __name__ == "__main__":
    main()

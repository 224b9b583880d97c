"""Programs of lmc on servers that people run, beside the same calls by hand-written asyncio on the same server.

python benchmarks/servers.py [--write] [--server vllm] [--workload react] [--tight] [--repeats 4]

The programs of `programs.py` on the 124.6M random model of `workloads.py`, in float32 so that answers can be compared,
greedy. Both sides ask for equally many tokens, with the same prompts: token ids, but for llama.cpp, which takes texts.
By hand, each row is a coroutine that awaits the calls of each step together, and all rows run at once, under a bound of
64 requests: as many as lmc has. Sides take turns, each from an empty cache. Answers must be equal. Servers: lmc's own,
vLLM's with prefix caching where `LMC_BENCH_VLLM` names its interpreter, and that of llama-cpp-python where
`LMC_BENCH_LLAMA_CPP` does (README.md). `--tight` gives the server a KV pool for a quarter of the distinct tokens of a
batch: four times this pool is the least that any order of requests computes. `computed` are the tokens that the server
computed, by its own count. Each server has a section of its own.
"""

import argparse
import asyncio
import os
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

import httpx2
import openai

import lmc
from benchmarks.engine import FOLDER
from benchmarks.peer_servers import (
    BLOCK,
    RunningServer,
    llama_cpp_server,
    metrics_tokens,
    vllm_server,
)
from benchmarks.peers.shapes import SHAPES, Call, Row
from benchmarks.programs import PROGRAMS
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import versions
from benchmarks.serving import serving
from benchmarks.workloads import calls_of, make_words_model, tokenizer

CONCURRENCY = 64
SECONDS = 3600.0
DTYPE = "float32"
POOL = 40_000
OURS, VLLM, LLAMA = "lmc serve", "vllm", "llama.cpp"
_NEEDS = {VLLM: "LMC_BENCH_VLLM", LLAMA: "LMC_BENCH_LLAMA_CPP"}
CAPABILITIES = {"parameters": ["temperature", "min_tokens"]}


@contextmanager
def started(server: str, tokens: int) -> Generator[RunningServer]:
    """Start a server with a KV pool of so many tokens; that of llama.cpp has the last request's."""
    folder = make_words_model(FOLDER / "words")
    if server == OURS:
        with serving("--model", f"local:{folder}", "--dtype", DTYPE, "--kv-tokens", str(tokens)) as found:
            url = found.url

            def forget() -> None:
                httpx2.post(f"{url}/flush_cache", timeout=60).raise_for_status()

            yield RunningServer(url, found.model, found.process, lambda: metrics_tokens(url), forget)
    elif server == LLAMA:
        with llama_cpp_server(os.environ[_NEEDS[LLAMA]], folder, DTYPE) as running:
            yield running
    else:
        pages = max(-(-tokens // BLOCK), 1)
        # One page more: vLLM keeps one empty.
        sizes = ("--num-gpu-blocks-override", str(pages + 1), "--max-model-len", str(min(pages * BLOCK, 4096)))
        with vllm_server(os.environ[_NEEDS[VLLM]], folder, DTYPE, *sizes) as running:
            yield running


def text_target(url: str) -> Any:
    """Return the target for a server that takes texts only."""
    capabilities = {**CAPABILITIES, "contexts": "text"}  # it ignores min_tokens; the model never says the end mark
    return lmc.remote(f"server:{url}", api="completions", concurrency=CONCURRENCY, capabilities=capabilities)


def by_lmc(server: RunningServer, workload: str, *, texts: bool) -> Callable[[Sequence[Row]], list[list[str]]]:
    """Return what runs rows through lmc: their answers in the order of their calls."""
    tokens = lmc.remote(
        f"server:{server.url}#{server.model}",
        tokenizer=str(FOLDER / "words"),
        concurrency=CONCURRENCY,
        capabilities=CAPABILITIES,
    )
    program = PROGRAMS[workload].on(text_target(server.url) if texts else tokens)

    def run(rows: Sequence[Row]) -> list[list[str]]:
        return [[*result.value] for result in program.batch(rows) if not _raise(result.error)]

    return run


def by_hand(server: RunningServer, workload: str, *, texts: bool) -> Callable[[Sequence[Row]], list[list[str]]]:
    """Return what runs rows as coroutines: their answers in the order of their calls."""
    known: dict[str, Any] = {}

    def encode(text: str) -> Any:
        if text not in known:
            known[text] = [text] if texts else tokenizer().encode(text, add_special_tokens=False).ids
        return known[text]

    async def run(rows: Sequence[Row]) -> list[list[str]]:
        bound = asyncio.Semaphore(CONCURRENCY)
        options: dict[str, Any] = {"base_url": f"{server.url}/v1", "api_key": "none", "timeout": SECONDS}
        async with openai.AsyncOpenAI(**options, max_retries=0) as client:

            async def send(call: Call) -> tuple[str, list[Any]]:
                more = {} if texts else {"min_tokens": call.new_tokens, "return_token_ids": True}
                async with bound:
                    answer: Any = await client.completions.create(
                        model=server.model,
                        prompt="".join(map(str, call.prompt)) if texts else call.prompt,
                        max_tokens=call.new_tokens,
                        temperature=0.0,
                        extra_body=more,
                    )
                said = answer.choices[0]
                return said.text, [said.text] if texts else said.token_ids

            async def one(row: Row) -> list[str]:
                said: list[str] = []
                calls = SHAPES[workload].calls(row, encode)
                step = next(calls, None)
                while step is not None:
                    answers = await asyncio.gather(*map(send, step))
                    said += [text for text, _ in answers]
                    try:
                        step = calls.send([ids for _, ids in answers])
                    except StopIteration:
                        step = None
                return said

            return list(await asyncio.gather(*map(one, rows)))

    return lambda rows: asyncio.run(run(rows))


def distinct_tokens(workload: str, rows: list[Row]) -> int:
    """Return the number of different prefixes of all prompts: what a pool would hold of them."""
    seen: set[int] = set()
    for call in calls_of(workload, rows, {}):
        state = 0
        for token in (*call.prompt, *[0] * call.new_tokens):
            state = hash((state, token))
            seen.add(state)
    return len(seen)


def rows_of(workload: str, seed: str, count: int) -> list[Row]:
    """Return rows in random order, as data come."""
    rng = random.Random(f"servers/{workload}/{seed}")
    rows = SHAPES[workload].rows(rng, count)
    rng.shuffle(rows)
    return rows


def measure(server: str, workload: str, repeats: int, *, tight: bool) -> list[str]:
    """Return a row of the table: seconds of both sides, and how much faster lmc is."""
    shape = SHAPES[workload]
    batches = [rows_of(workload, str(repeat), shape.instances) for repeat in range(repeats)]
    tokens = distinct_tokens(workload, batches[0]) // 4 if tight else POOL
    with started(server, tokens) as running:
        texts = server == LLAMA
        sides = {"lmc": by_lmc(running, workload, texts=texts), "by hand": by_hand(running, workload, texts=texts)}
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        computed: dict[str, list[float]] = {side: [] for side in sides}
        warm = rows_of(workload, "warm", 1)
        for run in sides.values():
            run(warm)
        equal = calls = 0
        for number, rows in enumerate(batches):
            answers: dict[str, list[list[str]]] = {}
            for side in sorted(sides, reverse=bool(number % 2)):
                running.forget()
                before, begun = running.computed(), time.perf_counter()
                answers[side] = sides[side](rows)
                seconds[side].append(time.perf_counter() - begun)
                computed[side].append(running.computed() - before)
                took = f"{seconds[side][-1]:.1f} s, {computed[side][-1]:,.0f} tokens"
                print(f"{server}, {workload}: {took} {side}", file=sys.stderr)
            pairs = [*zip(*(chain(*found) for found in answers.values()), strict=True)]
            equal += sum(one == other for one, other in pairs)
            calls += len(pairs)
    ratio = statistics.median(hand / own for own, hand in zip(seconds["lmc"], seconds["by hand"], strict=True))
    cells = [f"{statistics.median(seconds[side]):.2f}" for side in ("lmc", "by hand")]
    cells += [f"{statistics.median(computed[side]):,.0f}" for side in ("lmc", "by hand")]
    return [
        workload,
        "-" if server == LLAMA else f"{tokens:,}",
        str(calls),
        *cells,
        f"{ratio:.2f}",
        f"{equal} of {calls}",
    ]


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    parser.add_argument("--server", action="append", choices=(OURS, VLLM, LLAMA), help="all without")
    parser.add_argument("--workload", action="append", choices=SHAPES, help="all without")
    parser.add_argument("--tight", action="store_true", help="a pool for a quarter of the distinct tokens")
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    known = [OURS, *(server for server, variable in _NEEDS.items() if os.environ.get(variable))]
    head = ["workload", "pool", "calls", "lmc s", "by hand s", "lmc computed", "by hand computed"]
    head += ["by hand / lmc", "equal answers"]
    for server in options.server or [each for each in known if not (options.tight and each == LLAMA)]:
        if server not in known:
            parser.error(f"{_NEEDS[server]} names no interpreter; see benchmarks/README.md")
        if options.tight and server == LLAMA:
            parser.error("llama.cpp's server has no pool: it keeps the tokens of one request")
        rows = [
            measure(server, workload, options.repeats, tight=options.tight) for workload in options.workload or SHAPES
        ]
        text = f"{machine()}, {processor()}; {versions(['lmc'])}. Medians of {options.repeats}, ratios in a repeat.\n\n"
        text += table(head, rows) + "\n"
        print(text)
        if options.write:
            words = ["benchmarks/servers.py", "--server", server, *(["--tight"] if options.tight else [])]
            words += ["--repeats", str(options.repeats), *(f"--workload={each}" for each in options.workload or ())]
            write_section(f"servers: {server}{', tight pool' * options.tight}", shlex.join(["python", *words]), text)


if __name__ == "__main__":
    main()

"""Programs of lmc on servers that people run, beside the same calls by hand-written asyncio on the same server.

python benchmarks/servers.py [--write] [--server vllm] [--workload react] [--tight] [--repeats 3]

The programs of `programs.py` on the 124.6M random model of `workloads.py`, greedy. Both sides send token ids and ask
for equally many tokens. By hand, each row is a coroutine that awaits the calls of each step together, and all rows run
at once, under a bound of 64 requests: as many as lmc has. Sides take turns, each from an empty cache. Answers must be
equal. Servers: `lmc serve`, and vLLM's where `LMC_BENCH_VLLM` names its interpreter (README.md), with prefix caching.
`--tight` gives the server a KV pool for a quarter of the distinct tokens of a batch. `computed` are the tokens that the
server computed, by its own count.
"""

import argparse
import asyncio
import os
import random
import re
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
os.environ["VLLM_SERVER_DEV_MODE"] = "1"  # it can empty its cache then

import httpx2
import openai

import lmc
from benchmarks.engine import FOLDER
from benchmarks.peers.shapes import SHAPES, Call, Row
from benchmarks.programs import PROGRAMS
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import versions
from benchmarks.serving import serving, vllm_serving
from benchmarks.workloads import calls_of, make_words_model, tokenizer

CONCURRENCY = 64
SECONDS = 3600.0
DTYPE = "bfloat16"
POOL = 40_000
BLOCK = 128
"""Tokens of a page of vLLM on a CPU."""


@contextmanager
def started(server: str, tokens: int) -> Generator[tuple[str, str]]:
    """Start a server with a KV pool of so many tokens; gives its address and the name of its model."""
    folder = make_words_model(FOLDER / "words")
    if server == "lmc serve":
        with serving("--model", f"local:{folder}", "--dtype", DTYPE, "--kv-tokens", str(tokens)) as found:
            yield found.url, found.model
        return
    interpreter = os.environ["LMC_BENCH_VLLM"]
    pages = max(-(-tokens // BLOCK), 1)
    # One page more: vLLM keeps one empty.
    sizes = ("--num-gpu-blocks-override", str(pages + 1), "--max-model-len", str(min(pages * BLOCK, 4096)))
    with vllm_serving(interpreter, folder, DTYPE, *sizes) as (endpoint, _):
        yield endpoint.url, endpoint.model


def computed_tokens(url: str) -> float:
    """Return the tokens that a server has computed so far, by its own count: lmc's or vLLM's."""
    text = httpx2.get(f"{url}/metrics").raise_for_status().text

    def total(name: str) -> float:
        return sum(map(float, re.findall(rf"^(?:lmc|vllm):{name}_total(?:\{{[^}}]*\}})? (\S+)$", text, re.M)))

    return total("prompt_tokens") + total("generation_tokens") - total("prefix_cache_hits")


def empty_cache(server: str, url: str) -> None:
    """Have a server forget all prompts."""
    path = "flush_cache" if server == "lmc serve" else "reset_prefix_cache"
    httpx2.post(f"{url}/{path}", timeout=60).raise_for_status()


def by_lmc(url: str, model: str, workload: str) -> Callable[[Sequence[Row]], list[list[str]]]:
    """Return what runs rows through lmc: their answers in the order of their calls."""
    target = lmc.remote(
        f"server:{url}#{model}", tokenizer=str(FOLDER / "words"), concurrency=CONCURRENCY, capabilities=CAPABILITIES
    )
    program = PROGRAMS[workload].on(target)

    def run(rows: Sequence[Row]) -> list[list[str]]:
        return [[*result.value] for result in program.batch(rows) if not _raise(result.error)]

    return run


CAPABILITIES = {"parameters": ["temperature", "min_tokens"]}


def by_hand(url: str, model: str, workload: str) -> Callable[[Sequence[Row]], list[list[str]]]:
    """Return what runs rows as coroutines: their answers in the order of their calls."""
    texts: dict[str, list[int]] = {}

    def encode(text: str) -> list[int]:
        if text not in texts:
            texts[text] = tokenizer().encode(text, add_special_tokens=False).ids
        return texts[text]

    async def run(rows: Sequence[Row]) -> list[list[str]]:
        bound = asyncio.Semaphore(CONCURRENCY)
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", timeout=SECONDS, max_retries=0) as client:

            async def send(call: Call) -> tuple[str, list[int]]:
                async with bound:
                    answer: Any = await client.completions.create(
                        model=model,
                        prompt=call.prompt,
                        max_tokens=call.new_tokens,
                        temperature=0.0,
                        extra_body={"min_tokens": call.new_tokens, "return_token_ids": True},
                    )
                return answer.choices[0].text, answer.choices[0].token_ids

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
    with started(server, tokens) as (url, model):
        sides = {"lmc": by_lmc(url, model, workload), "by hand": by_hand(url, model, workload)}
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        computed: dict[str, list[float]] = {side: [] for side in sides}
        warm = rows_of(workload, "warm", 1)
        for run in sides.values():
            run(warm)
        equal = calls = 0
        for number, rows in enumerate(batches):
            answers: dict[str, list[list[str]]] = {}
            for side in sorted(sides, reverse=bool(number % 2)):
                empty_cache(server, url)
                before, begun = computed_tokens(url), time.perf_counter()
                answers[side] = sides[side](rows)
                seconds[side].append(time.perf_counter() - begun)
                computed[side].append(computed_tokens(url) - before)
                took = f"{seconds[side][-1]:.1f} s, {computed[side][-1]:,.0f} tokens"
                print(f"{server}, {workload}: {took} {side}", file=sys.stderr)
            pairs = [*zip(*(chain(*found) for found in answers.values()), strict=True)]
            equal += sum(one == other for one, other in pairs)
            calls += len(pairs)
    ratio = statistics.median(hand / own for own, hand in zip(seconds["lmc"], seconds["by hand"], strict=True))
    cells = [f"{statistics.median(seconds[side]):.2f}" for side in ("lmc", "by hand")]
    cells += [f"{statistics.median(computed[side]):,.0f}" for side in ("lmc", "by hand")]
    return [server, workload, f"{tokens:,}", str(calls), *cells, f"{ratio:.2f}", f"{equal} of {calls}"]


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


def main() -> None:
    """Measure, and write the section."""
    servers = ["lmc serve", *(["vllm"] if os.environ.get("LMC_BENCH_VLLM") else [])]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    parser.add_argument("--server", action="append", choices=("lmc serve", "vllm"), help="all without")
    parser.add_argument("--workload", action="append", choices=SHAPES, help="all without")
    parser.add_argument("--tight", action="store_true", help="a pool for a quarter of the distinct tokens")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows = [
        measure(server, workload, options.repeats, tight=options.tight)
        for server in options.server or servers
        for workload in options.workload or SHAPES
    ]
    text = f"{machine()}, {processor()}; {versions(['lmc'])}. Medians of {options.repeats}, ratios within a repeat.\n\n"
    head = ["server", "workload", "pool", "calls", "lmc s", "by hand s", "lmc computed", "by hand computed"]
    head += ["by hand / lmc", "equal answers"]
    text += table(head, rows) + "\n"
    print(text)
    if options.write:
        name = "servers, tight pool" if options.tight else "servers"
        write_section(name, shlex.join(["python", "benchmarks/servers.py", *sys.argv[1:]]), text)


if __name__ == "__main__":
    main()

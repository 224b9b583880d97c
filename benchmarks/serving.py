"""`lmc serve` on loopback, driven by the clients of the protocols.

python benchmarks/serving.py [--write] [--case batch] [--model words] [--repeats 3] [--rows 500]

- requests: CPU time of the server for each of 1,000 requests on the toy engine, by 32 clients, whole and as streams.
- throughput: 32 clients, of which each sends its next request when the last is answered; the same from the same prompts
  with the engine in the process of the clients, on `lmc serve`, and on vLLM's server where `LMC_BENCH_VLLM` names its
  interpreter (README.md). Sides take turns; each repeat has new prompts. Latencies are those of a second pass in
  streams: the time to the first token, and the gaps between events with text.

- batch: requests in groups that share a prefix, in random order, on a KV pool that holds few of the prefixes. The same
  requests as one batch file (upload and download included), and singly, by 32 clients of which each sends its next one
  when the last is answered. Both are on one server, in turns, each from an empty cache. `cached` are prompt tokens that
  the cache had, `seconds` those of the clock, `CPU` those of the server's process. Texts are equal in float32; in
  bfloat16 what runs together rounds differently (`lmc serve --deterministic` would not).

`--model`: `words` is the 124.6M random model of `workloads.py` in bfloat16, `small` that of `agents.py` in float32.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

import httpx2
import openai

from benchmarks.engine import CASES as SHAPES
from benchmarks.engine import FOLDER, Case
from benchmarks.peer_servers import vllm_server
from benchmarks.peers.shapes import words
from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import versions
from benchmarks.workloads import make_small_model, make_words_model

CLIENTS = 32
SECONDS = 3600.0
MODELS = {"words": (make_words_model, "bfloat16"), "small": (make_small_model, "float32")}
PREFIX, QUESTION, ANSWER = 256, 16, 16
GROUP = 20
KV_TOKENS = 3_456
"""13 of the prefixes, without anything behind them."""


@dataclass(frozen=True)
class Serving:
    """A server that runs: the process, where it is, and the name of its model."""

    process: int
    url: str
    model: str

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the process so far; 0 where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def client(self) -> openai.AsyncOpenAI:
        """Return a client, which tries nothing twice."""
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=SECONDS)


_TICKS = 100  # of /proc, a second


@contextmanager
def serving(*options: str) -> Generator[Serving]:
    """Run `lmc serve` on a free port."""
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *options]
    log = FOLDER / "serving.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        try:
            while (found := re.search(r"^(\S+) is served at (\S+)", log.read_text(encoding="utf-8"), re.M)) is None:
                if process.poll() is not None:
                    raise SystemExit(log.read_text(encoding="utf-8"))
                time.sleep(0.05)
            yield Serving(process.pid, found[2], found[1])
        finally:
            process.terminate()


@dataclass(frozen=True)
class Measured:
    """The time and tokens of one side of a case, and the texts of its answers."""

    prompt_tokens: int
    cached_tokens: int
    seconds: float
    cpu_seconds: float
    texts: tuple[str, ...]


def prompts_of(rows: int) -> list[str]:
    """Prompts in groups that share a prefix, in random order."""
    rng = random.Random("serving")
    prefixes = [words(rng, PREFIX) for _ in range(-(-rows // GROUP))]
    prompts = [prefixes[row // GROUP] + words(rng, QUESTION) for row in range(rows)]
    rng.shuffle(prompts)
    return prompts


async def as_a_batch(server: Serving, bodies: Sequence[dict[str, Any]]) -> tuple[int, int, tuple[str, ...]]:
    """Send requests as one file; gives prompt tokens, cached ones, and texts."""
    lines = [
        json.dumps({"custom_id": str(row), "method": "POST", "url": "/v1/completions", "body": body})
        for row, body in enumerate(bodies)
    ]
    async with server.client() as client:
        file = await client.files.create(file=("rows.jsonl", "\n".join(lines).encode()), purpose="batch")
        batch = await client.batches.create(completion_window="24h", endpoint="/v1/completions", input_file_id=file.id)
        while batch.status not in ("completed", "expired", "cancelled"):
            await asyncio.sleep(0.05)
            batch = await client.batches.retrieve(batch.id)
        if batch.error_file_id is not None or batch.output_file_id is None or batch.usage is None:
            raise SystemExit(f"the batch has failed: {batch}")
        rows = [json.loads(line) for line in (await client.files.content(batch.output_file_id)).text.splitlines()]
    texts = tuple(row["response"]["body"]["choices"][0]["text"] for row in rows)
    return batch.usage.input_tokens, batch.usage.input_tokens_details.cached_tokens, texts


async def singly(server: Serving, bodies: Sequence[dict[str, Any]]) -> tuple[int, int, tuple[str, ...]]:
    """Send each request by itself; gives prompt tokens, cached ones, and texts."""
    waiting = iter(range(len(bodies)))
    texts = [""] * len(bodies)
    asked = cached = 0

    async def send() -> None:
        nonlocal asked, cached
        async with server.client() as client:
            for row in waiting:
                found = await client.completions.create(**bodies[row])
                texts[row] = found.choices[0].text
                assert found.usage is not None
                assert found.usage.prompt_tokens_details is not None
                asked += found.usage.prompt_tokens
                cached += found.usage.prompt_tokens_details.cached_tokens or 0

    await asyncio.gather(*(send() for _ in range(CLIENTS)))
    return asked, cached, tuple(texts)


SIDES = {"as one batch": as_a_batch, f"singly, {CLIENTS} clients": singly}


def measure(server: Serving, side: str, bodies: Sequence[dict[str, Any]]) -> Measured:
    """Measure one side, from an empty cache."""
    httpx2.post(f"{server.url}/flush_cache").raise_for_status()
    started, before = time.perf_counter(), server.cpu_seconds
    asked, cached, texts = asyncio.run(SIDES[side](server, bodies))
    return Measured(asked, cached, time.perf_counter() - started, server.cpu_seconds - before, texts)


def batch_case(model: str, rows: int, repeats: int) -> str:
    """Compare a batch file with the same requests sent singly."""
    make, dtype = MODELS[model]
    folder = make(FOLDER / {"words": "words", "small": "agents"}[model])
    with serving("--model", f"local:{folder}", "--dtype", dtype, "--kv-tokens", str(KV_TOKENS)) as server:
        bodies = [
            {"model": server.model, "prompt": prompt, "max_tokens": ANSWER, "temperature": 0}
            for prompt in prompts_of(rows)
        ]
        for side in SIDES:
            measure(server, side, bodies[: 2 * CLIENTS])  # warm up
        runs: dict[str, list[Measured]] = {side: [] for side in SIDES}
        for _ in range(repeats):
            for side, found in runs.items():
                found.append(measure(server, side, bodies))
    return batch_table(model, rows, runs)


def batch_table(model: str, rows: int, runs: dict[str, list[Measured]]) -> str:
    """Return medians of the runs of both sides as a table."""
    cells: list[list[str]] = []
    for side, found in runs.items():
        tokens, cached = found[0].prompt_tokens, statistics.median(each.cached_tokens for each in found)
        seconds = statistics.median(each.seconds for each in found)
        cpu = statistics.median(each.cpu_seconds for each in found)
        cells.append([side, f"{tokens:,}", f"{cached:,.0f} ({cached / tokens:.0%})", f"{seconds:.1f}", f"{cpu:.1f}"])
    said = [each.texts for found in runs.values() for each in found]
    same = min(sum(map(str.__eq__, texts, said[0])) for texts in said)
    head = (
        f"batch: {rows} requests in groups of {GROUP}, which share {PREFIX} tokens, random order; {QUESTION} more"
        f" tokens and {ANSWER} generated each; a pool of {KV_TOKENS:,} tokens; model `{model}`. Medians of"
        f" {len(next(iter(runs.values())))}. Equal texts in all runs: {same} of {rows}.\n\n"
    )
    return head + table(["requests", "prompt tokens", "cached", "seconds", "CPU"], cells)


Send = Callable[[Sequence[int], int], Awaitable[str]]
"""Asks for so many tokens after a prompt; gives their text."""


@dataclass
class Latencies:
    """Seconds to the first token of each request, and between events with text."""

    first: list[float] = field(default_factory=list[float])
    gaps: list[float] = field(default_factory=list[float])


@dataclass
class Endpoint:
    """A completions endpoint of OpenAI's protocol. `extra` are parameters beyond that protocol."""

    url: str
    model: str
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def body(self, prompt: Sequence[int], tokens: int, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request for exactly so many tokens."""
        body = {"model": self.model, "prompt": list(prompt), "max_tokens": tokens, "min_tokens": tokens}
        return {**body, "temperature": 0, "stream": stream, **self.extra}

    async def whole(self, client: httpx2.AsyncClient, prompt: Sequence[int], tokens: int) -> str:
        """Return the text of a whole answer."""
        answer = await client.post(f"{self.url}/v1/completions", json=self.body(prompt, tokens, stream=False))
        found = answer.raise_for_status().json()
        assert found["usage"]["completion_tokens"] == tokens
        return found["choices"][0]["text"]

    async def streamed(
        self, client: httpx2.AsyncClient, prompt: Sequence[int], tokens: int, latencies: Latencies
    ) -> str:
        """Return the text of a stream, and note its latencies."""
        text, last, is_first = "", time.perf_counter(), True
        body = self.body(prompt, tokens, stream=True)
        async with client.stream("POST", f"{self.url}/v1/completions", json=body) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                choices = json.loads(line[6:])["choices"]
                if choices and choices[0]["text"]:
                    now = time.perf_counter()
                    (latencies.first if is_first else latencies.gaps).append(now - last)
                    last, is_first = now, False
                    text += choices[0]["text"]
        return text


async def closed_loop(prompts: Sequence[Sequence[int]], tokens: int, send: Send) -> tuple[float, list[str]]:
    """Send requests by clients that wait for their answers; gives the seconds and the texts."""
    waiting, texts = iter(range(len(prompts))), [""] * len(prompts)

    async def client() -> None:
        for row in waiting:
            texts[row] = await send(prompts[row], tokens)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return time.perf_counter() - started, texts


def served(
    endpoint: Endpoint, prompts: Sequence[Sequence[int]], tokens: int, latencies: Latencies | None = None
) -> Any:
    """Run the clients against a server: whole answers, or streams where latencies are wanted."""

    async def run() -> tuple[float, list[str]]:
        limits = httpx2.Limits(max_connections=CLIENTS)
        async with httpx2.AsyncClient(timeout=SECONDS, limits=limits) as client:

            def send(prompt: Sequence[int], tokens: int) -> Awaitable[str]:
                if latencies is None:
                    return endpoint.whole(client, prompt, tokens)
                return endpoint.streamed(client, prompt, tokens, latencies)

            return await closed_loop(prompts, tokens, send)

    return asyncio.run(run())


def directly(engine: Any, prompts: Sequence[Sequence[int]], tokens: int) -> tuple[float, list[str]]:
    """Run the clients against the engine in this process."""
    from lmc.ir.engine.protocol import Request, SamplingParams

    sampling = SamplingParams(max_tokens=tokens, min_tokens=tokens)

    async def send(prompt: Sequence[int], tokens: int) -> str:
        del tokens
        return (await asyncio.wrap_future(engine.submit(Request(tuple(prompt), sampling)).future)).text

    return asyncio.run(closed_loop(prompts, tokens, send))


POOL = 40_000
"""Tokens, as many as vLLM's 2 GiB hold in float32."""
ENGINE, OURS, THEIRS = "engine, in process", "lmc serve", "vLLM's server"
REQUESTS = 2 * CLIENTS


@dataclass
class Side:
    """Measurements of one side of the throughput case."""

    seconds: list[float] = field(default_factory=list[float])
    latencies: Latencies = field(default_factory=Latencies)
    texts: list[list[str]] = field(default_factory=list[list[str]])


def throughput_case(model: str, rows: int, repeats: int) -> str:
    """Compare the server with its engine, and with vLLM's."""
    del rows
    from lmc.runtime.local import load_local_engine

    make, dtype = MODELS[model]
    folder = make(FOLDER / {"words": "words", "small": "agents"}[model])
    interpreter = os.environ.get("LMC_BENCH_VLLM")
    text = ""
    with ExitStack() as stack:
        engine: Any = load_local_engine(folder, dtype=dtype, kv_tokens=POOL)  # pyright: ignore[reportArgumentType]
        stack.callback(engine.close)
        server = stack.enter_context(serving("--model", f"local:{folder}", "--dtype", dtype, "--kv-tokens", str(POOL)))
        endpoints = {OURS: Endpoint(server.url, server.model)}
        groups: dict[str, int] = {}
        if interpreter is not None:
            theirs = stack.enter_context(vllm_server(interpreter, folder, dtype))
            endpoints[THEIRS] = Endpoint(theirs.url, theirs.model, {"ignore_eos": True})
            groups[THEIRS] = theirs.group
        for name in ("shared", "private"):
            shape = SHAPES[name]
            sides = {side: Side() for side in (ENGINE, *endpoints)}
            for repeat in range(-1, repeats):  # the first one warms up
                for side, found in sides.items():
                    for other, group in groups.items():
                        os.killpg(group, signal.SIGCONT if other == side else signal.SIGSTOP)
                    prompts = Case(REQUESTS, shape.shared, shape.own).batch(f"serving {name} {repeat}")
                    latencies = Latencies()
                    if side == ENGINE:
                        seconds, texts = directly(engine, prompts, shape.new)
                    else:
                        seconds, texts = served(endpoints[side], prompts, shape.new)
                        more = Case(REQUESTS, shape.shared, shape.own).batch(f"serving streams {name} {repeat}")
                        served(endpoints[side], more, shape.new, latencies)
                    if repeat < 0:
                        continue
                    print(f"{name}, repeat {repeat + 1}: {seconds:.1f} s {side}", file=sys.stderr)
                    found.seconds.append(seconds)
                    found.texts.append(texts)
                    found.latencies.first += latencies.first
                    found.latencies.gaps += latencies.gaps
            text += throughput_table(name, shape, model, sides) + "\n"
    return text


def throughput_table(name: str, shape: Case, model: str, sides: dict[str, Side]) -> str:
    """Return tokens per second and latencies of all sides as a table."""
    cells: list[list[str]] = []
    ours = sides[OURS]
    for side, found in sides.items():
        ratio = statistics.median(other / own for own, other in zip(ours.seconds, found.seconds, strict=True))
        rate = statistics.median(REQUESTS * shape.new / each for each in found.seconds)
        first, gaps = found.latencies.first, found.latencies.gaps
        shown = [
            f"{1000 * each:,.0f}" for each in ((*_percentiles(first), _percentiles(gaps)[1]) if first and gaps else ())
        ]
        same = sum(map(str.__eq__, chain(*ours.texts), chain(*found.texts)))
        cells.append([side, f"{rate:,.0f}", f"{ratio:.2f}", *(shown or ["", "", ""]), str(same)])
    head = (
        f"throughput, {name}: {REQUESTS} requests by {CLIENTS} clients, {shape.shared} shared and {shape.own} own"
        f" tokens, {shape.new} generated; model `{model}`. Medians of {len(ours.seconds)}; the ratio is that of lmc"
        " serve to the side of the row, in the same repeat. Latencies in ms, of streams.\n\n"
    )
    columns = ["side", "tokens/s", "ratio", "first token p50", "p99", "gap p99", "equal texts"]
    return head + table(columns, cells)


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


def requests_case(model: str, rows: int, repeats: int) -> str:
    """Measure the CPU time of the server for a request; the toy engine takes about 0.1 ms of it."""
    del model, rows
    count = 1000

    async def run(url: str, *, stream: bool) -> None:
        waiting = iter(range(count))
        async with httpx2.AsyncClient(timeout=SECONDS, limits=httpx2.Limits(max_connections=CLIENTS)) as client:

            async def send() -> None:
                for row in waiting:
                    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Question {row}?"}]
                    body = {"model": "toy", "messages": talk, "max_tokens": 16, "temperature": 0, "stream": stream}
                    (await client.post(f"{url}/v1/chat/completions", json=body)).raise_for_status()

            await asyncio.gather(*(send() for _ in range(CLIENTS)))

    found: dict[bool, list[float]] = {False: [], True: []}
    with serving("--model", "toy") as server:
        for repeat in range(-1, repeats):
            for stream, seconds in found.items():
                before = server.cpu_seconds
                asyncio.run(run(server.url, stream=stream))
                if repeat >= 0:
                    seconds.append(server.cpu_seconds - before)
    cells = [
        ["streams" if stream else "whole answers", f"{1000 * statistics.median(seconds) / count:.2f}"]
        for stream, seconds in found.items()
    ]
    head = (
        f"requests: {count:,} chat completions of 16 tokens on the toy engine, {CLIENTS} clients; the limit is 1.5 ms"
    )
    return f"{head}. Medians of {repeats}.\n\n" + table(["answers", "CPU ms per request"], cells)


CASES: dict[str, Callable[[str, int, int], str]] = {
    "requests": requests_case,
    "throughput": throughput_case,
    "batch": batch_case,
}


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    parser.add_argument("--case", action="append", choices=CASES, help="all without")
    parser.add_argument("--model", choices=MODELS, default="words")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for case in options.case or CASES:
        text = f"{machine()}, {processor()}; {versions(['lmc'])}.\n\n"
        text += CASES[case](options.model, options.rows, options.repeats)
        print(text)
        if options.write:
            rest = [word for word in sys.argv[1:] if word not in ("--case", *CASES)]
            write_section(
                f"serving: {case}", shlex.join(["python", "benchmarks/serving.py", "--case", case, *rest]), text
            )


if __name__ == "__main__":
    main()

"""`lmc serve` on loopback, driven by the clients of the protocols.

python benchmarks/serving.py [--write] [--case batch] [--model words] [--repeats 3] [--rows 500]

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
import random
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai

from benchmarks.engine import FOLDER
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
    openai.OpenAI(base_url=server.url, api_key="none").post("/flush_cache", cast_to=object)
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


CASES: dict[str, Callable[[str, int, int], str]] = {"batch": batch_case}


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    parser.add_argument("--case", action="append", choices=CASES, help="all without")
    parser.add_argument("--model", choices=MODELS, default="words")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    text = f"{machine()}, {processor()}; {versions(['lmc'])}.\n\n"
    text += "\n".join(CASES[case](options.model, options.rows, options.repeats) for case in options.case or CASES)
    print(text)
    if options.write:
        write_section("serving", shlex.join(["python", "benchmarks/serving.py", *sys.argv[1:]]), text)


if __name__ == "__main__":
    main()

"""No engine: the time below which no engine gets on this machine, from its two ceilings (Williams et al. 2009).

The ceilings are measured first: arithmetic by matrix products of the model's shapes (torch's and lmc's own kernels,
the faster ones), memory by reading. Every distinct prefix goes once through the model's matrix products, in chunks of
`CHUNK` rows; then every step multiplies one row per running prompt and reads the weights, and the keys and values that
these prompts hold, shared ones once. A chunk or step takes as long as its arithmetic or its reading, whichever is
longer. No attention arithmetic, norms, sampling or text. Of a program, the calls of one step of all instances run
together. Answers are random tokens, and come after that time.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.peers.prefixes import Prefixes
from benchmarks.peers.protocol import Generate, Job, RunRows, call_by_call, in_step, serve

CHUNK = 512
AT_ONCE = 512  # prompts of one program step
RUNS = 15  # of what is measured; the fastest counts


class Ceilings:
    """How fast this machine multiplies and reads, and what a model asks of it."""

    def __init__(self, job: Job) -> None:
        import torch
        from transformers import AutoConfig

        torch.set_num_threads(job["threads"])
        self._torch = torch
        self._dtype = getattr(torch, job["dtype"])
        config: Any = AutoConfig.from_pretrained(job["model"])
        head = config.hidden_size // config.num_attention_heads
        heads = config.num_attention_heads + 2 * config.num_key_value_heads
        hidden, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
        self.vocabulary_size: int = config.vocab_size
        self._weights = layers * hidden * (heads * head + config.num_attention_heads * head + 3 * inner)
        self._vocabulary = self.vocabulary_size * hidden
        self._bytes_per_position = 2 * layers * config.num_key_value_heads * head * self._dtype.itemsize
        self._multiplications = max(self._rate(rows, hidden, 2 * inner) for rows in (CHUNK, 4 * CHUNK))
        self._bytes = self._bandwidth()

    def seconds(self, rows: int, wanted: int, positions: int = 0) -> float:
        """The least time for all products of `rows` tokens, the logits of `wanted` of them and keys and values read."""
        used = (self._weights if rows else 0) + (self._vocabulary if wanted else 0)
        arithmetic = (rows * self._weights + wanted * self._vocabulary) / self._multiplications
        return max(arithmetic, (used * self._dtype.itemsize + positions * self._bytes_per_position) / self._bytes)

    def _rate(self, rows: int, inputs: int, outputs: int) -> float:
        """Multiplications a second, each with its addition."""
        from lmc.runtime.kernels import products

        torch = self._torch
        states, weight = torch.ones(rows, inputs, dtype=self._dtype), torch.ones(outputs, inputs, dtype=self._dtype)
        kernels: list[Callable[[], Any]] = [lambda: torch.nn.functional.linear(states, weight)]
        if self._dtype == torch.bfloat16:
            reordered = torch.ops.mkldnn._reorder_linear_weight(weight)
            kernels.append(lambda: torch.ops.mkldnn._linear_pointwise(states, reordered, None, "none", [], ""))
        if products.pays(weight):
            packed = products.pack(weight)
            kernels.append(lambda: products.product(states, packed))
        return rows * inputs * outputs / min(map(_least_seconds, kernels))

    def _bandwidth(self) -> float:
        """Bytes read a second, from memory too large for a cache."""
        memory = self._torch.ones(64 << 20, dtype=self._torch.int64)
        return memory.nbytes / _least_seconds(memory.max)


def _least_seconds(run: Callable[[], Any]) -> float:
    """Of several runs."""
    found: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def load(job: Job) -> Generate:
    """Measure; what was computed in one batch is known in the next, as in an engine that forgets nothing."""
    ceilings, prefixes, rng = Ceilings(job), Prefixes(), random.Random(0)

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        answers = [[rng.randrange(ceilings.vocabulary_size) for _ in range(new_tokens)] for _ in prompts]
        held: set[int] = set()
        new = 0
        for prompt in prompts:
            own, places = prefixes.add(prompt)
            new += own
            held.update(places)
        until = time.perf_counter()
        until += sum(ceilings.seconds(min(CHUNK, new - done), 0) for done in range(0, new, CHUNK))
        until += ceilings.seconds(0, len(prompts))
        for step in range(new_tokens - 1):
            until += ceilings.seconds(len(prompts), len(prompts), len(held) + step * len(prompts))
        for prompt, answer in zip(prompts, answers, strict=True):
            prefixes.add([*prompt, *answer[:-1]])  # the last one was never put in
        time.sleep(max(0.0, until - time.perf_counter()))
        return answers

    return generate


def load_rows(job: Job) -> RunRows:
    """All calls of a step at once."""
    return call_by_call(job, in_step(load(job), AT_ONCE))


if __name__ == "__main__":
    serve(load, load_rows)

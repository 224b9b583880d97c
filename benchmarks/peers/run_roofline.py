"""No engine: the least work that any engine does on this machine, and how long that alone takes.

Every distinct prefix goes once through the model's matrix products (bf16 weights packed for the processor, as fast as
torch has them), in chunks of `CHUNK` rows; then every step multiplies one row per running prompt and reads the keys
and values that these prompts hold, shared ones once, as bytes. No attention arithmetic, norms, sampling or text. Of a
program, the calls of one step of all instances run together. Answers are random tokens.
"""

import os
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lmc.driver.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.peers.protocol import Generate, Job, RunRows, call_by_call, in_step, serve

CHUNK = 512
AT_ONCE = 512  # prompts of one program step


class Prefixes:
    """Which prefixes were there before: each is one number."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}

    def add(self, tokens: list[int]) -> tuple[int, list[int]]:
        """Count the positions whose prefix is new; and the numbers of all of them."""
        before, place, places = len(self._known), 0, list[int]()
        for token in tokens:
            place = self._known.setdefault((place, token), len(self._known) + 1)
            places.append(place)
        return len(self._known) - before, places


class Products:
    """The matrices of a Llama, and memory of the size of its keys and values."""

    def __init__(self, job: Job) -> None:
        import torch
        from transformers import AutoConfig

        torch.set_num_threads(job["threads"])
        self._torch = torch
        self._dtype = getattr(torch, job["dtype"])
        config: Any = AutoConfig.from_pretrained(job["model"])
        head = config.hidden_size // config.num_attention_heads
        heads = config.num_attention_heads + 2 * config.num_key_value_heads
        shapes = (
            (heads * head, config.hidden_size),
            (config.hidden_size, config.num_attention_heads * head),
            (2 * config.intermediate_size, config.hidden_size),
            (config.hidden_size, config.intermediate_size),
        )
        self._layers = [self._matrix(shape) for _ in range(config.num_hidden_layers) for shape in shapes]
        self.vocabulary_size: int = config.vocab_size
        self._vocabulary = self._matrix((config.vocab_size, config.hidden_size))
        width = 2 * config.num_hidden_layers * config.num_key_value_heads * head
        self._bytes_per_position = width * self._dtype.itemsize
        self._memory = torch.zeros(64 << 20, dtype=torch.int64)

    def _matrix(self, shape: tuple[int, int]) -> tuple[Any, int]:
        weight = self._torch.randn(shape).to(self._dtype)
        if self._dtype == self._torch.bfloat16:
            weight = self._torch.ops.mkldnn._reorder_linear_weight(weight)
        return weight, shape[1]

    def multiply(self, rows: int, wanted: int) -> None:
        """All products of `rows` tokens, the logits of `wanted` of them."""
        for matrix in self._layers if rows else ():
            self._product(matrix, rows)
        if wanted:
            self._product(self._vocabulary, wanted)

    def read(self, positions: int) -> None:
        """Read as many bytes as the keys and values of these positions take, from memory too large for a cache."""
        left = positions * self._bytes_per_position // self._memory.itemsize
        while left > 0:
            self._memory[: min(left, self._memory.numel())].sum()
            left -= self._memory.numel()

    def _product(self, matrix: tuple[Any, int], rows: int) -> None:
        weight, width = matrix
        states = self._torch.ones(rows, width, dtype=self._dtype)
        if self._dtype == self._torch.bfloat16:
            self._torch.ops.mkldnn._linear_pointwise(states, weight, None, "none", [], "")
        else:
            self._torch.nn.functional.linear(states, weight)


def load(job: Job) -> Generate:
    """Make the matrices; what was computed in one batch is known in the next, as in an engine that forgets nothing."""
    import torch

    products, prefixes, rng = Products(job), Prefixes(), random.Random(0)

    @torch.inference_mode()
    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        answers = [[rng.randrange(products.vocabulary_size) for _ in range(new_tokens)] for _ in prompts]
        held: set[int] = set()
        new = 0
        for prompt in prompts:
            own, places = prefixes.add(prompt)
            new += own
            held.update(places)
        for start in range(0, new, CHUNK):
            products.multiply(min(CHUNK, new - start), 0)
        products.multiply(0, len(prompts))
        for step in range(new_tokens - 1):
            products.multiply(len(prompts), len(prompts))
            products.read(len(held) + step * len(prompts))
        for prompt, answer in zip(prompts, answers, strict=True):
            prefixes.add([*prompt, *answer[:-1]])  # the last one was never put in
        return answers

    return generate


def load_rows(job: Job) -> RunRows:
    """All calls of a step at once."""
    return call_by_call(job, in_step(load(job), AT_ONCE))


if __name__ == "__main__":
    serve(load, load_rows)

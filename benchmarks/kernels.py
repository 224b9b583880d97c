"""The CPU kernels beside what torch has: products of packed weights, and attention over pages.

python benchmarks/kernels.py [--write]

Products are those of all layers of the 124.6M-parameter Llama of `engine.py`, one after the other, so that weights come
from memory as they do in a step. Attention is that of one of its layers (9 heads, 3 key heads, of 64): prompts over a
cached prefix, and a decode step of 32 sequences. Both are checked against the plain form before they are timed;
the fastest of several runs counts.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

import numpy as np
import torch

from benchmarks.results import machine, processor, table, write_section
from benchmarks.runners import versions
from lmc.runtime.kernels import products
from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.native.library import why_not
from lmc.runtime.kernels.paged_attention import AttentionBatch, paged_attention

LAYERS = 30
SHAPES = ((960, 576), (576, 576), (3072, 576), (576, 1536))  # outputs, inputs
ROWS = (1, 8, 32, 512)
HEADS, KEY_HEADS, SIZE, PAGES = 9, 3, 64, 24_000
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
RUNS = 7
Lists = Sequence[tuple[int, Sequence[int]]]  # of each sequence: query rows, and the pages of all its keys

PROMPTS: dict[str, Lists] = {
    "512 rows": [(512, range(512))],
    "512 rows after 2,048": [(512, range(2560))],
    "64 rows after 1,000": [(64, range(1064))],
    "decode, 32 x 500 keys": [(1, range(500 * at, 500 * at + 500)) for at in range(32)],
    "decode, 32 x (512 shared + 30)": [(1, [*range(512), *range(512 + 30 * at, 542 + 30 * at)]) for at in range(32)],
}


def least(run: Callable[[], Any]) -> float:
    """Seconds of the fastest run, after one that is not counted."""
    run()
    found: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def product_rows(name: str, dtype: torch.dtype) -> list[list[str]]:
    """Milliseconds of all products of a step, by number of rows: ours, torch's, how often faster; what ours come to."""
    weights = [(torch.randn(shape) / shape[1] ** 0.5).to(dtype) for _ in range(LAYERS) for shape in SHAPES]
    packed = [products.pack(weight) for weight in weights]
    kept = weights if name == "float32" else [torch.ops.mkldnn._reorder_linear_weight(weight) for weight in weights]
    multiplied = sum(weight.numel() for weight in weights)

    def by_torch(states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if name == "float32":
            return torch.nn.functional.linear(states, weight)
        return torch.ops.mkldnn._linear_pointwise(states, weight, None, "none", [], "")

    lines: list[list[str]] = []
    for rows in ROWS:
        states = {inputs: torch.randn(rows, inputs).to(dtype) for _, inputs in SHAPES}
        inputs = [states[weight.shape[1]] for weight in weights]
        for own, theirs, given in zip(packed[:4], kept[:4], inputs[:4], strict=True):
            torch.testing.assert_close(products.product(given, own), by_torch(given, theirs), atol=0.03, rtol=0.03)
        ours = least(lambda inputs=inputs: [*map(products.product, inputs, packed)])
        torchs = least(lambda inputs=inputs: [*map(by_torch, inputs, kept)])
        reached = [f"{2e-9 * rows * multiplied / ours:,.0f}", f"{1e-9 * multiplied * dtype.itemsize / ours:.0f}"]
        lines.append([name, str(rows), f"{ours * 1e3:.1f}", f"{torchs * 1e3:.1f}", f"{torchs / ours:.2f}", *reached])
    return lines


def attention_rows(name: str, dtype: torch.dtype) -> list[list[str]]:
    """Milliseconds of a layer's attention: native, and gathered for torch's fused attention; how often faster."""
    keys, values = (torch.randn(PAGES, KEY_HEADS, SIZE).to(dtype) for _ in range(2))
    form = AttentionForm(scaling=SIZE**-0.5)
    lines: list[list[str]] = []
    for label, lists in PROMPTS.items():
        firsts = np.cumsum([0, *(rows for rows, _ in lists)])
        sequences = [
            SequenceRows(int(first), rows, np.array(pages))
            for first, (rows, pages) in zip(firsts[:-1], lists, strict=True)
        ]
        query = torch.randn(int(firsts[-1]), HEADS, SIZE).to(dtype)
        batch = AttentionBatch(
            sequences, np.arange(len(query)), null_page=PAGES - 1, device=torch.device("cpu"), dtype=dtype
        )

        def attend(kind: Any, query: torch.Tensor = query, batch: AttentionBatch = batch) -> torch.Tensor:
            return paged_attention(query, keys, values, batch, form, implementation=kind)

        torch.testing.assert_close(attend("native"), attend("grouped"), atol=0.02, rtol=0.02)
        ours, torchs = least(lambda attend=attend: attend("native")), least(lambda attend=attend: attend("grouped"))
        lines.append([name, label, f"{ours * 1e3:.2f}", f"{torchs * 1e3:.2f}", f"{torchs / ours:.1f}"])
    return lines


def main() -> None:
    """Measure, print, and keep the table where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    options = parser.parse_args()
    missing = why_not()
    if missing is not None:
        raise SystemExit(f"there are no kernels to measure: {missing}")
    torch.manual_seed(0)
    with torch.inference_mode():
        multiplied = [line for name, dtype in DTYPES.items() for line in product_rows(name, dtype)]
        attended = [line for name, dtype in DTYPES.items() for line in attention_rows(name, dtype)]
    text = table(["dtype", "rows", "lmc ms", "torch ms", "torch / lmc", "GFLOP/s", "GB/s of weights"], multiplied)
    text += "\n" + table(["dtype", "attention", "lmc ms", "torch ms", "torch / lmc"], attended)
    print(text, end="")
    if options.write:
        about = f"{machine()}, {processor()}; {versions(['lmc'])}; fastest of {RUNS}."
        write_section("kernels", "python benchmarks/kernels.py --write", f"{about}\n\n{text}")


if __name__ == "__main__":
    main()

"""Draws under constraints on a CUDA device: what the kernel draws, and how long it takes beside torch and xgrammar.

python benchmarks/gpu_constraints.py [--write] [--seconds 240] [--device cpu --quick]

First tokens, largest logits and next states of `masked_draw` against its reference on the same device: vocabularies,
types of logits and kinds of sampling, and once within a CUDA graph. A token that the reference gives for a number or
share 2e-6 away counts as equal (counted and printed). Then microseconds of a step of so many rows, medians by the
device's own clock, logits in bf16: lmc's kernel (mask, draw, next state) and the same in torch in one batch, each
called from Python and as a CUDA graph; and torch's draw with the mask laid on by xgrammar where that is installed,
which is handed its masks as they are, without making or copying them. Rows that would begin after `--seconds` are left
out, which is said.

Runs from a checkout, lmc need not be installed. Exit code 0: everything was equal; 1: something was not; 2: there is no
such device, nothing was checked. `--device cpu --quick` asks whether this script works at all: small, interpreted.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.constraining.torch_draws import KINDS, Step, bitmask, masks, torch_draw, torch_step
from benchmarks.results import machine, table, write_section
from lmc.runtime.kernels.masked_draw import Drawn, draw_masked
from tests.runtime.kernels.drawing import differences

NAME = "gpu_constraints"


@dataclass(frozen=True)
class Sizes:
    """What is gone through."""

    vocabularies: tuple[int, ...]
    batches: tuple[int, ...]
    rows: int  # compared of each
    repeats: int


WHOLE = Sizes((32_000, 128_256), (1, 8, 64, 256), 48, 30)
QUICK = Sizes((300,), (2,), 6, 1)


def compared(sizes: Sizes, device: str) -> tuple[list[list[str]], bool]:
    """Lines of the table of what was equal, and whether all was."""
    lines: list[list[str]] = []
    all_equal = True
    for size in sizes.vocabularies:
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            step = Step.of(size, sizes.rows, dtype, device)
            drawn = draw_masked(step.logits, step.draws, step.tables, implementation="triton")
            close, wrong = differences(step.logits, step.draws, step.tables, drawn)
            all_equal &= not wrong
            equal = f"{sizes.rows - len(wrong)}/{sizes.rows}"
            lines.append([f"{size:,}", str(dtype).removeprefix("torch."), equal, str(close), in_graph(step)])
            all_equal &= lines[-1][-1] != "differs"
            print(" | ".join(lines[-1]), flush=True)
    return lines, all_equal


def in_graph(step: Step) -> str:
    """Whether a captured step gives what it gives outside."""
    if not step.logits.is_cuda:
        return "no CUDA"
    expected = draw_masked(step.logits, step.draws, step.tables)
    found: list[Drawn] = []
    graph = captured(lambda: found.append(draw_masked(step.logits, step.draws, step.tables)))
    graph.replay()
    torch.cuda.synchronize()
    return "equal" if all(map(torch.equal, found[0], expected)) else "differs"


def timed(sizes: Sizes, device: str, deadline: float) -> list[list[str]]:
    """Lines of the table of microseconds."""
    lines: list[list[str]] = []
    for size in sizes.vocabularies:
        whole = Step.of(size, max(sizes.batches), torch.bfloat16, device)
        allowed = masks(whole)
        for rows in sizes.batches:
            for kind in KINDS:
                label = [f"{size:,}", str(rows), kind]
                if time.monotonic() > deadline:
                    lines.append([*label, "left out: no time", *[""] * 6])
                    continue
                lines.append([*label, *times(whole.sampled(kind, rows), allowed, kind, sizes.repeats)])
                print(" | ".join(lines[-1]), flush=True)
    return lines


def times(step: Step, allowed: torch.Tensor, kind: str, repeats: int) -> list[str]:
    """Microseconds of lmc and torch, their ratio; both as graphs; xgrammar's mask alone, and with torch's draw."""

    def by_lmc() -> Drawn:
        return draw_masked(step.logits, step.draws, step.tables, implementation="triton")

    def by_torch() -> Drawn:
        return torch_step(step, allowed, kind)

    is_cuda = step.logits.is_cuda
    ours, theirs = (median(run, repeats, is_cuda=is_cuda) for run in (by_lmc, by_torch))
    found = [f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.2f}"]
    if not is_cuda:
        return [*found, *[""] * 4]
    found += [graph_time(run, repeats) for run in (by_lmc, by_torch)]
    apply = xgrammar_mask()
    if apply is None:
        return [*found, "", ""]
    packed, logits = bitmask(step, allowed), step.logits.clone()  # what is masked stays so, and costs the same again

    def with_xgrammar() -> torch.Tensor:
        apply(logits, packed)
        return torch_draw(logits.float(), step.draws, kind)

    runs = (lambda: apply(logits, packed)), with_xgrammar
    return [*found, *(f"{median(run, repeats, is_cuda=True):.0f}" for run in runs)]


def graph_time(run: Callable[[], Any], repeats: int) -> str:
    """Microseconds of what was run before, as a graph, if it can be one."""
    try:
        return f"{median(captured(run).replay, repeats, is_cuda=True):.0f}"
    except RuntimeError as error:
        return f"none: {error}".splitlines()[0]


def captured(run: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """What was run before as a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def xgrammar_mask() -> Callable[[torch.Tensor, torch.Tensor], Any] | None:
    """What lays a packed mask on logits; None where xgrammar is not installed."""
    try:
        import xgrammar
    except ImportError:
        return None
    library: Any = xgrammar
    return library.apply_token_bitmask_inplace


def median(run: Callable[[], Any], repeats: int, *, is_cuda: bool) -> float:
    """Microseconds, after some runs that are not counted."""
    for _ in range(3 if repeats > 1 else 1):
        run()
    found: list[float] = []
    for _ in range(repeats):
        if is_cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            run()
            end.record()
            torch.cuda.synchronize()
            found.append(start.elapsed_time(end) * 1e3)
        else:
            begin = time.perf_counter()
            run()
            found.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(found)


def described(device: str) -> str:
    """The device and the versions that the numbers hang on."""
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    versions = [f"torch {torch.__version__}"]
    for package in ("triton", "xgrammar"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    return f"{name}; {', '.join(versions)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--seconds", type=float, default=240, help="no row begins later than this")
    parser.add_argument("--device", default="cuda", help="cpu shows that the script works where there is no GPU")
    parser.add_argument("--quick", action="store_true", help="small")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.seconds
    is_cuda = options.device.startswith("cuda")
    if options.write and (options.quick or not is_cuda):
        parser.error("only the whole table of a CUDA device is kept")
    if is_cuda and not torch.cuda.is_available():
        print("There is no CUDA device here: nothing was checked, nothing measured.")
        return 2
    if not is_cuda:
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton loads
    print(described(options.device), flush=True)
    sizes = QUICK if options.quick else WHOLE
    equal, all_equal = compared(sizes, options.device)
    fast = timed(sizes, options.device, deadline)
    text = table(["vocabulary", "logits", "rows as the reference", "of them close calls", "in a graph"], equal)
    head = ["vocabulary", "rows", "sampling", "lmc µs", "torch µs", "torch / lmc", "lmc's graph µs", "torch's graph µs"]
    text += "\n" + table([*head, "xgrammar's mask µs", "with torch's draw µs"], fast)
    print(f"\n{text}")
    if options.write:
        about = f"{machine()}, {described(options.device)}; median of {sizes.repeats}."
        write_section(NAME, f"python benchmarks/{NAME}.py --write", f"{about}\n\n{text}")
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())

"""The local engine on a CUDA device: equal to transformers token for token, and its speed beside it.

python benchmarks/engine_cuda.py [--device cpu] [--seconds 270] [--quick]

First every architecture of the tests as a tiny checkpoint in fp32: greedy tokens of prompts that share prefixes, with
room and with a pool so small that sequences are evicted and preempted, against transformers on the same device. A
divergence counts as equal where the two best logits differ by less than 1e-4 (counted and printed). Then the cases of
`engine.py` with its model and its code. Rows that would begin after `--seconds` are left out, which is said.

Runs from a checkout, lmc need not be installed. Exit code 0: everything was equal; 1: something was not; 2: there is no
such device, nothing was checked. `--quick` takes two architectures and small cases: does this script work at all?
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

import torch
import transformers

from benchmarks.engine import CASES, Case, agreement, measure
from benchmarks.results import table
from benchmarks.runners import Runners
from lmc.ir.engine.protocol import Request, SamplingParams
from lmc.runtime.local import LocalEngine, load_local_engine
from tests.runtime.local.checkpoints import ARCHITECTURES, SENTENCES, make_model, save_checkpoint
from tests.runtime.local.oracle import Agreement

POOLS = {"with room": 4000, "small pool": 220}
QUICK_CASES = {"shared": Case(2, 32, 8, 4), "batch 1": Case(1, 0, 16, 4)}
QUICK_ARCHITECTURES = ("llama", "gemma2")
MAX_TOKENS = 40


@dataclass
class Clock:
    """How much of the time that this script may take is left."""

    seconds: float
    start: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether nothing new should begin."""
        return time.monotonic() - self.start > self.seconds


def prompts_of(engine: LocalEngine) -> list[tuple[int, ...]]:
    """Prompts of several lengths that share beginnings, in mixed order."""
    stems = [engine.tokenizer.encode(" ".join(SENTENCES[:length])) for length in (1, 2, 3)]
    endings = [engine.tokenizer.encode(text) for text in (" And", "\n", " 7 ships")]
    whole = [stem + ending for ending in endings for stem in stems]
    return [*whole, *(stem[:-5] + endings[0] for stem in stems)]


def compare(architecture: str, device: str, folder: Path) -> list[str]:
    """One line of the table; raises ``AssertionError`` where tokens differ that fp32 can tell apart."""
    model = make_model(architecture)
    save_checkpoint(folder, model)
    model = model.to(device)
    found = Agreement()
    preemptions = 0
    for kv_tokens in POOLS.values():
        with load_local_engine(folder, device=device, kv_tokens=kv_tokens, prefill_tokens=32) as engine:
            prompts = prompts_of(engine)
            handles = [engine.submit(Request(prompt, SamplingParams(max_tokens=MAX_TOKENS))) for prompt in prompts]
            answers = [handle.future.result(timeout=120).token_ids for handle in handles]
            preemptions += engine.statistics.preemptions
        with torch.device(device):
            for prompt, answer in zip(prompts, answers, strict=True):
                found.check(model, prompt, answer, MAX_TOKENS)
    return [architecture, f"{found.compared}", f"{found.close_calls}", f"{preemptions}"]


def equality(architectures: Sequence[str], device: str, clock: Clock) -> tuple[list[list[str]], list[str]]:
    """Lines of the table, and what was wrong."""
    lines: list[list[str]] = []
    wrong: list[str] = []
    for architecture in architectures:
        if clock.is_over:
            lines.append([architecture, "left out: no time", "", ""])
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                lines.append(compare(architecture, device, Path(folder)))
            except Exception as error:  # the other architectures are still worth knowing
                wrong.append(f"{architecture}: {type(error).__name__}: {error}")
                lines.append([architecture, "FAILED", "", ""])
        print(" | ".join(lines[-1]), flush=True)
    return lines, wrong


def speeds(cases: dict[str, Case], device: str, repeats: int, clock: Clock) -> list[list[str]]:
    """lmc beside transformers; bf16 first, because it is what a GPU is used for."""
    lines: list[list[str]] = []
    for dtype in ("bfloat16", "float32"):
        for name, case in cases.items():
            if clock.is_over:
                lines.append([dtype, name, "left out: no time", "", "", ""])
                continue
            with Runners() as runners:
                found = {peer: measure(runners, peer, dtype, case, repeats, device) for peer in ("lmc", "transformers")}
            lines.append([dtype, name, *rates(case, found)])
            print(" | ".join(lines[-1]), flush=True)
    return lines


def rates(case: Case, found: dict[str, dict[str, Any]]) -> list[str]:
    """Tokens per second of both, their ratio, and the share of equal generations."""
    ours, theirs = (case.requests * case.new / statistics.median(found[peer]["seconds"]) for peer in found)
    same = agreement(found["lmc"]["tokens"], found["transformers"]["tokens"])
    return [f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}", f"{same:.0%}"]


def described(device: str) -> str:
    """The device and the versions that the numbers hang on."""
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return f"{name}, torch {torch.__version__}, transformers {transformers.__version__}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cpu shows that the script works where there is no GPU")
    parser.add_argument("--seconds", type=float, default=270, help="no row begins later than this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two architectures and small cases")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("There is no CUDA device here: nothing was checked, nothing measured.")
        return 2
    transformers.utils.logging.disable_progress_bar()
    clock = Clock(options.seconds)
    print(described(options.device))
    architectures = QUICK_ARCHITECTURES if options.quick else tuple(ARCHITECTURES)
    equal, wrong = equality(architectures, options.device, clock)
    fast = speeds(QUICK_CASES if options.quick else CASES, options.device, options.repeats, clock)
    print()
    print(table(["fp32, greedy", "generations equal", "of them close calls", "preemptions"], equal))
    print(table(["dtype", "case", "lmc tokens/s", "transformers tokens/s", "ratio", "equal generations"], fast))
    for problem in wrong:
        print(problem)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

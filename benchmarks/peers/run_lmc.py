"""lmc's local engine; whole programs through their own batch."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lmc.driver.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.peers.protocol import Generate, Job, RunRows, serve

POOL = 40_000  # tokens; llama.cpp has as many cells, vLLM's 2 GiB hold 46,000 tokens in fp32 and twice that in bf16


def load(job: Job) -> Generate:
    """Open an engine with an empty cache."""
    import torch

    from lmc.ir.engine import Request, SamplingParams
    from lmc.runtime.local import load_local_engine

    torch.set_num_threads(job["threads"])
    engine = load_local_engine(job["model"], dtype=job["dtype"], device=job.get("device", "cpu"), kv_tokens=POOL)

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        sampling = SamplingParams(max_tokens=new_tokens, min_tokens=new_tokens)
        handles = [engine.submit(Request(tuple(prompt), sampling)) for prompt in prompts]
        return [list(handle.future.result().token_ids) for handle in handles]

    return generate


def load_rows(job: Job) -> RunRows:
    """Bind the program to the model, at the level that a user gets who asks for nothing."""
    import torch

    from benchmarks.programs import PROGRAMS

    torch.set_num_threads(job["threads"])
    program = PROGRAMS[job["workload"]].on(f"local:{job['model']}", dtype=job["dtype"], kv_tokens=POOL, level="O2")

    def run(rows: list[dict[str, Any]]) -> tuple[int, int]:
        usages = [result.usage for result in program.batch(rows) if not _raise(result.error)]
        return sum(usage.prompt_tokens for usage in usages), sum(usage.generated_tokens for usage in usages)

    return run


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


if __name__ == "__main__":
    serve(load, load_rows)

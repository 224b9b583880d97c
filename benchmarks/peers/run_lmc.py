"""lmc's local engine."""

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the driver does before it loads torch
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.peers.protocol import Generate, serve


def load(job: dict[str, Any]) -> Generate:
    """Open an engine with an empty cache."""
    import torch

    from lmc.ir.engine import Request, SamplingParams
    from lmc.runtime.local import load_local_engine

    torch.set_num_threads(job["threads"])
    engine = load_local_engine(job["model"], dtype=job["dtype"], device=job.get("device", "cpu"), kv_tokens=40_000)

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        sampling = SamplingParams(max_tokens=new_tokens, min_tokens=new_tokens)
        handles = [engine.submit(Request(tuple(prompt), sampling)) for prompt in prompts]
        return [list(handle.future.result().token_ids) for handle in handles]

    return generate


if __name__ == "__main__":
    serve(load)

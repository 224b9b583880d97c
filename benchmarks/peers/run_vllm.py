"""vLLM on the CPU with prefix caching, in an environment of its own."""

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.peers.protocol import Generate, serve


def load(job: dict[str, Any]) -> Generate:
    """Start the engine on all threads of the job; by default it takes one only."""
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{job['threads'] - 1}"
    from vllm import LLM, SamplingParams  # pyright: ignore[reportMissingImports]

    engine = LLM(
        model=job["model"],
        dtype=job["dtype"],
        enable_prefix_caching=True,
        max_model_len=2048,
        max_num_seqs=512,
        seed=0,
    )

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        sampling = SamplingParams(temperature=0, max_tokens=new_tokens, min_tokens=new_tokens, ignore_eos=True)
        answers = engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling, use_tqdm=False)
        return [list(answer.outputs[0].token_ids) for answer in answers]

    return generate


if __name__ == "__main__":
    serve(load)

"""vLLM on the CPU with prefix caching, in an environment of its own; whole programs without a barrier between steps."""

import math
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.peers.protocol import Generate, Job, RunPrograms, RunRows, call_by_call, serve
from benchmarks.peers.shapes import Call, Program

BLOCK = 32  # tokens; the smallest one whose attention may use AMX


def load(job: Job) -> Generate:
    """Generation over a list of prompts."""
    engine = _open(job)

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        answers = engine.generate(
            [{"prompt_token_ids": prompt} for prompt in prompts], _sampling(new_tokens), use_tqdm=False
        )
        return [list(answer.outputs[0].token_ids) for answer in answers]

    return generate


def load_rows(job: Job) -> RunRows:
    """Every program goes on as soon as its own calls are answered, as with the asynchronous engine."""
    opened = _open(job)
    if "kv_tokens" in job and not opened.reset_prefix_cache():
        raise RuntimeError("vLLM did not empty its prefix cache")
    return call_by_call(job, _continuously(opened.llm_engine))


def _open(job: Job) -> Any:
    pool = (job["kv_tokens"], job["max_running"], job["longest"]) if "kv_tokens" in job else None
    return _engine(job["model"], job["dtype"], job["threads"], pool)


@lru_cache(maxsize=1)
def _engine(model: str, dtype: str, threads: int, pool: tuple[int, int, int] | None) -> Any:
    """Start the engine, once for all jobs, on all threads; by default it takes one only.

    Of a pool are said its tokens, how many requests run at once, and the tokens of the longest.
    """
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{threads - 1}"
    from vllm import LLM  # pyright: ignore[reportMissingImports]

    options: dict[str, Any] = {"max_model_len": 4096, "max_num_seqs": 512}
    if pool is not None:
        kv_tokens, running, longest = pool
        options = {
            "max_model_len": longest,
            "max_num_seqs": running,
            "block_size": BLOCK,
            "num_gpu_blocks_override": blocks(kv_tokens, running),
        }
    return LLM(model=model, dtype=dtype, enable_prefix_caching=True, seed=0, **options)


def blocks(kv_tokens: int, running: int) -> int:
    """Blocks that hold `kv_tokens`: the last one of each running request may be all but empty, and one is vLLM's."""
    return math.ceil(kv_tokens / BLOCK) + running + 1


def _sampling(new_tokens: int) -> Any:
    from vllm import SamplingParams  # pyright: ignore[reportMissingImports]

    return SamplingParams(temperature=0, max_tokens=new_tokens, min_tokens=new_tokens, ignore_eos=True)


def _continuously(engine: Any) -> RunPrograms:
    numbers = count()

    def run(programs: Sequence[Program]) -> int | None:
        cached = 0
        places: dict[str, tuple[Program, dict[str, list[int]]]] = {}

        def submit(program: Program, calls: list[Call]) -> None:
            answers: dict[str, list[int]] = {}
            for call in calls:
                name = str(next(numbers))
                answers[name] = []
                places[name] = (program, answers)
                engine.add_request(name, {"prompt_token_ids": call.prompt}, _sampling(call.new_tokens))

        for program in programs:
            submit(program, next(program))
        while places:
            for output in engine.step():
                if not output.finished:
                    continue
                cached += output.num_cached_tokens or 0
                program, answers = places.pop(output.request_id)
                answers[output.request_id] = list(output.outputs[0].token_ids)
                if not all(answers.values()):
                    continue
                try:
                    submit(program, program.send(list(answers.values())))
                except StopIteration:
                    continue
        return cached

    return run


if __name__ == "__main__":
    serve(load, load_rows)

"""lmc's local engine; whole programs through their own batch."""

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.peers.protocol import Done, Generate, Job, RunRows, serve

POOL = 40_000  # tokens; llama.cpp has as many cells, vLLM's 2 GiB hold 46,000 tokens in fp32 and twice that in bf16


def load(job: Job) -> Generate:
    """Open an engine with an empty cache."""
    from lmc.ir.engine.protocol import Request, SamplingParams

    engine, _ = _open(job)

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        sampling = SamplingParams(max_tokens=new_tokens, min_tokens=new_tokens)
        handles = [engine.submit(Request(tuple(prompt), sampling)) for prompt in prompts]
        return [list(handle.future.result().token_ids) for handle in handles]

    return generate


def load_rows(job: Job) -> RunRows:
    """Bind the program to an engine with an empty cache, at the level that a user gets who asks for nothing."""
    from benchmarks.programs import PROGRAMS
    from lmc.ir.usage import Usage

    engine, target = _open(job)
    program = PROGRAMS[job["workload"]].on(target, level="O2")

    def run(rows: list[dict[str, Any]]) -> Done:
        before = engine.statistics.prefilled_tokens
        results = [result for result in program.batch(rows) if not _raise(result.error)]
        used = sum((result.usage for result in results), Usage())
        computed = engine.statistics.prefilled_tokens - before  # of prefixes that the program asked for too
        answers = [result.value for result in results]
        return Done(used.prompt_tokens, used.generated_tokens, used.prompt_tokens - computed, answers)

    return run


def _open(job: Job) -> tuple[Any, str]:
    """The engine, with an empty cache, and the name of a target that stands for it."""
    sizes = {"kv_tokens": job.get("kv_tokens", POOL)}
    if "max_running" in job:
        sizes["max_running"] = job["max_running"]
    engine, target = _engine(job["model"], job["dtype"], job.get("device", "cpu"), job["threads"], *sizes.items())
    engine.flush_cache()
    return engine, target


@lru_cache(maxsize=1)
def _engine(model: str, dtype: str, device: str, threads: int, *sizes: tuple[str, int]) -> tuple[Any, str]:
    """Start an engine, once for all jobs that want the same."""
    import torch

    from lmc.driver.targets.engines import adopt_engine
    from lmc.runtime.local import load_local_engine

    torch.set_num_threads(threads)
    engine: Any = load_local_engine(model, dtype=dtype, device=device, **dict(sizes))  # pyright: ignore[reportArgumentType]
    return engine, adopt_engine(engine)


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


if __name__ == "__main__":
    serve(load, load_rows)

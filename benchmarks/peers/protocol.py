"""What a runner is told and what it answers; standard library only, since peers run in environments of their own."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Generate = Callable[[list[list[int]], int], list[list[int]]]


def serve(load: Callable[[dict[str, Any]], Generate]) -> None:
    """Load the engine, warm it up, run every batch of the job once, answer seconds and tokens of each.

    A job holds `model` (folder), `dtype`, `threads`, `new_tokens` and `batches`, each a list of prompts (token ids).
    The first batch warms up and is not counted.
    """
    job = json.load(sys.stdin)
    generate = load(job)
    seconds: list[float] = []
    tokens: list[list[list[int]]] = []
    for number, prompts in enumerate(job["batches"]):
        start = time.perf_counter()
        answer = generate(prompts, job["new_tokens"])
        if number:
            seconds.append(time.perf_counter() - start)
            tokens.append(answer)
    print("\n" + json.dumps({"seconds": seconds, "tokens": tokens}), flush=True)

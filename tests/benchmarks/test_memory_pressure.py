"""Batches under memory pressure: what is asked for, what is compared, and what the table says, without engines."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import memory_pressure
from benchmarks.memory_pressure import HEAD, KV_TOKENS, RUNNING, WORKLOADS, Run, Size, Workload, job_of, line, run
from benchmarks.peers.run_vllm import BLOCK, blocks


def test_subjects_come_in_turn_or_one_after_the_other():
    in_turn, grouped = (Workload("mmlu", 20, mixed).rows() for mixed in (True, False))
    assert sorted(map(str, in_turn)) == sorted(map(str, grouped))
    assert len({row["shots"] for row in in_turn[:10]}) == 10
    assert len({row["shots"] for row in grouped[:2]}) == 1


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_workload_fits_into_the_pool_and_every_request_does(name: str):
    job, size = job_of(WORKLOADS[name], "float32", Path("model"), 1)
    assert size.distinct > KV_TOKENS
    assert size.needed < size.prompt_tokens
    assert job["longest"] * job["max_running"] <= job["kv_tokens"]


def test_a_request_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="multi_turn_chat_short has a request of"):
        job_of(Workload("multi_turn_chat_short", 2), "float32", Path("model"), 1)


def test_tokens_are_needed_once():
    """Two instances of a workflow have its four fixed prompts of 512 tokens in common."""
    _, size = job_of(Workload("agents", 16), "float32", Path("model"), 1)
    own = 16 * (4 * 24 + 3 * 16)
    assert size.prompt_tokens == 16 * 4 * 512 + own
    assert size.needed == 8 * 4 * 512 + own
    assert size.distinct == size.needed + size.new_tokens - size.calls


def test_the_pool_of_vllm_is_rounded_up():
    usable = blocks(KV_TOKENS, RUNNING) - 1
    assert usable * BLOCK >= KV_TOKENS + RUNNING * BLOCK
    assert blocks(BLOCK + 1, 1) == 4


SIZE = Size(calls=2, prompt_tokens=100, new_tokens=4, needed=60, distinct=KV_TOKENS * 2)


class Answers:
    """Stands for runners: answers what it was given."""

    def __init__(self, **answer: Any) -> None:
        self._answer = answer

    def run(self, engine: str, job: dict[str, Any]) -> dict[str, Any]:
        return self._answer


def test_an_engine_that_did_other_work_is_refused():
    done: dict[str, Any] = {"seconds": [2.0], "cpu_seconds": [1.5]}
    done |= {"prompt_tokens": [100], "new_tokens": [4], "cached_tokens": [30], "answers": [[["a"]]]}
    runners: Any = Answers(**done)
    assert run("lmc", runners, {"workload": "mmlu"}, SIZE) == Run(2.0, 1.5, 100, 30, [["a"]])
    runners = Answers(**done | {"prompt_tokens": [99]})
    with pytest.raises(SystemExit, match="lmc did other work in mmlu: 99 tokens in prompts"):
        run("lmc", runners, {"workload": "mmlu"}, SIZE)


def test_texts_are_compared():
    ours = Run(1.0, 0.5, 100, 30, [[" a", " b"], [" c"]])
    memory_pressure.same_texts("mmlu", {"lmc": [ours, ours], "vllm": [ours]})
    theirs = Run(1.0, 0.5, 100, 30, [[" a", " d"], [" c"]])
    with pytest.raises(SystemExit, match="mmlu: 1 of 6 generations differ from the first run's"):
        memory_pressure.same_texts("mmlu", {"lmc": [ours], "vllm": [ours, theirs]})


def test_a_line_has_medians_and_what_is_possible():
    found = {
        "lmc": [Run(seconds, seconds / 2, 100, 40, []) for seconds in (2.0, 1.0, 9.0)],
        "vllm": [Run(seconds, seconds / 2, 100, 10, []) for seconds in (5.0, 3.0, 4.0)],
    }
    made = line("float32", "react", SIZE, found)
    assert len(made) == len(HEAD)
    assert made[:2] == ["float32", "react"]
    assert made[-9:] == ["50%", "2.00", "4.00", "2.00", "1.00", "2.00", "40.0%", "10.0%", "40.0%"]

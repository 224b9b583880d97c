import itertools
import os
import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from lmc.ir.engine.protocol import Generation, Request, SamplingParams, Score, ScoreRequest
from lmc.ir.errors import EngineError
from lmc.runtime.local.modules import deterministic
from lmc.runtime.local.modules.deterministic import BLOCK_ROWS, FixedRows
from tests.runtime.local.checkpoints import ARCHITECTURES
from tests.runtime.local.conftest import OpenEngine

SAMPLINGS = [
    SamplingParams(max_tokens=12, logprobs=3),
    SamplingParams(max_tokens=9, temperature=1.0, top_p=0.9, logprobs=2),
    SamplingParams(max_tokens=7, temperature=0.7, repetition_penalty=1.2, logprobs=0),
]


def make_requests() -> list[Request]:
    """Prompts that share prefixes of several lengths, one inside another, one alone."""
    numbers = random.Random(5)
    stem = tuple(numbers.randrange(3, 300) for _ in range(70))
    prompts = [stem[:cut] + tuple(numbers.randrange(3, 300) for _ in range(own)) for cut, own in CUTS]
    return [Request(prompt, SAMPLINGS[at % 3], seed=at) for at, prompt in enumerate(prompts)]


CUTS = [(70, 0), (70, 5), (70, 33), (31, 9), (0, 1), (64, 1), (50, 0)]
REQUESTS = make_requests()
SCORES = ScoreRequest(REQUESTS[0].prompt, ((5, 6, 7), (5,), (8, 9)))


def comparable(generation: Generation) -> tuple[Any, ...]:
    return generation.token_ids, generation.text, generation.logprobs


def run(engine: Any, requests: list[Request]) -> list[tuple[Any, ...]]:
    handles = [engine.submit(request) for request in requests]
    return [comparable(handle.future.result(60)) for handle in handles]


DTYPES = ("float32", "bfloat16")
CASES = (
    list(itertools.product(ARCHITECTURES, DTYPES))
    if os.environ.get("LMC_TEST_FULL") == "1"
    else list(zip(ARCHITECTURES, itertools.cycle(DTYPES), strict=False))
)
"""Without full counts, every architecture with one of the types."""


def score(engine: Any) -> Score:
    return engine.score(SCORES).future.result(60)


@pytest.mark.parametrize(("architecture", "dtype"), CASES)
def test_results_are_the_same_to_the_last_bit(open_engine: OpenEngine, architecture: str, dtype: str) -> None:
    """Alone without a cache, together, in another order, under other cuts of the prompts, in a pool that preempts."""
    settings: dict[str, Any] = {"dtype": dtype, "deterministic": True}
    alone = open_engine(architecture, prefix_cache=False, **settings)
    expected = [run(alone, [request])[0] for request in REQUESTS]
    scores = score(alone).logprobs
    together = open_engine(architecture, **settings)
    assert run(together, REQUESTS) == expected
    assert run(together, REQUESTS[::-1]) == expected[::-1]
    assert score(together).logprobs == scores
    cut = open_engine(architecture, prefill_tokens=5, max_running=4, **settings)
    order = [3, 6, 1, 0, 2, 5, 4, 1]
    assert run(cut, [REQUESTS[at] for at in order]) == [expected[at] for at in order]
    assert score(cut).logprobs == scores
    assert together.statistics.cached_tokens > 0


def test_preemption_changes_nothing(open_engine: OpenEngine) -> None:
    expected = [run(open_engine(deterministic=True), [request])[0] for request in REQUESTS]
    tiny = open_engine(kv_tokens=125, prefill_tokens=40, deterministic=True)
    assert run(tiny, REQUESTS * 2) == expected * 2
    assert tiny.statistics.preemptions + tiny.statistics.evicted_tokens > 0


def test_giving_up_a_place_changes_nothing(open_engine: OpenEngine) -> None:
    """A client fills all places with long generations; another's come while they run, and end first."""
    others = [replace(each, instance=2) for each in REQUESTS[:3]]
    long = [
        replace(each, sampling=replace(each.sampling, max_tokens=60, min_tokens=60), instance=1) for each in REQUESTS
    ]
    alone = open_engine(deterministic=True)
    expected = [run(alone, [each])[0] for each in (*long, *others)]
    engine = open_engine(max_running=4, deterministic=True)
    ended: list[int] = []
    handles: list[Any] = []

    def submit(number: int, request: Request, on_delta: Any = None) -> None:
        handle = engine.submit(request, on_delta)
        handle.future.add_done_callback(lambda _: ended.append(number))
        handles.append(handle)

    def come(_: Any) -> None:
        if len(handles) == len(long):
            for number, request in enumerate(others, len(long)):
                submit(number, request)

    for number, request in enumerate(long):
        submit(number, request, come if number == 3 else None)
    handles[3].future.result(60)  # by then the others have been submitted
    assert [comparable(handle.future.result(60)) for handle in handles] == expected
    assert sorted(ended[: len(others)]) == [*range(len(long), len(expected))]
    assert engine.statistics.preemptions == 3


def test_it_says_what_the_plain_engine_says(open_engine: OpenEngine) -> None:
    greedy = [Request(request.prompt, SAMPLINGS[0]) for request in REQUESTS]
    ours, plain = (run(open_engine(deterministic=flag), greedy) for flag in (True, False))
    assert [(ids, text) for ids, text, _ in ours] == [(ids, text) for ids, text, _ in plain]
    for (_, _, one), (_, _, other) in zip(ours, plain, strict=True):
        assert [each.logprob for each in one] == pytest.approx([each.logprob for each in other], abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fixed_rows_are_the_same_in_any_company(dtype: torch.dtype) -> None:
    product = FixedRows(nn.Linear(200, 77).to(dtype))
    rows = torch.randn(BLOCK_ROWS, 200).to(dtype)
    whole = product(rows)
    for first, last in ((0, 1), (3, 8), (31, 32), (10, 32)):
        assert torch.equal(product(rows[first:last]), whole[first:last])
    assert product(rows[:0]).shape == (0, 77)


def test_what_cant_be_kept_is_refused(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deterministic, "why_not", lambda: "there is no C compiler")
    with pytest.raises(
        EngineError, match=r"deterministic=True can't be kept here: .* there is no C compiler"
    ) as failure:
        open_engine(deterministic=True)
    assert "leave deterministic=True out" in str(failure.value.remedy)


def test_experts_of_another_form_are_refused(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deterministic, "FusedExperts", FixedRows)
    with pytest.raises(EngineError, match="FusedExperts runs as transformers made it"):
        open_engine("mixtral", deterministic=True)


def test_other_devices_are_refused() -> None:
    with pytest.raises(EngineError, match="not those for meta"):
        deterministic.prepare(_MetaModel())


class _MetaModel(nn.Module):
    device = torch.device("meta")
    dtype = torch.float32

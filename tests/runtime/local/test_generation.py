"""What a generation's parameters do in the engine."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from lmc.ir.engine.protocol import Generation, Request, SamplingParams, derive_seed
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.oracle import CLOSE_CALL

PROMPT = tuple(range(10, 90))


def run(engine: Any, sampling: SamplingParams, seed: int = 0, prompt: tuple[int, ...] = PROMPT) -> Generation:
    return engine.submit(Request(prompt, sampling, seed=seed)).future.result(60)


def penalized(model: Any, prompt: tuple[int, ...], penalty: float) -> tuple[list[int], list[float]]:
    """transformers' greedy tokens under a repetition penalty, and the margin between the best two scores at each."""
    ids = torch.tensor([prompt])
    output = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=24,
        do_sample=False,
        repetition_penalty=penalty,
        pad_token_id=0,
        output_scores=True,
        return_dict_in_generate=True,
    )
    best = torch.stack([scores[0].topk(2).values for scores in output.scores])
    return output.sequences[0, len(prompt) :].tolist(), (best[:, 0] - best[:, 1]).tolist()


@pytest.mark.parametrize("penalty", [0.7, 1.05, 1.3, 2.5])
@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma2"])
def test_repetition_penalty_is_that_of_transformers(
    open_engine: OpenEngine, models: dict[str, Any], architecture: str, penalty: float
) -> None:
    engine, compared = open_engine(architecture), 0
    for start in range(0, 60, 12):
        prompt = tuple(range(start + 3, start + 15))
        ours = run(engine, SamplingParams(max_tokens=24, repetition_penalty=penalty), prompt=prompt).token_ids
        expected, margins = penalized(models[architecture], prompt, penalty)
        for position, (token, margin) in enumerate(zip(expected, margins, strict=True)):
            if token == models[architecture].config.eos_token_id:
                assert position == len(ours)
                break
            if ours[position] != token:
                assert margin < CLOSE_CALL
                break
            compared += 1
    assert compared > 20


def test_samples_of_one_prompt_compute_it_once(open_engine: OpenEngine) -> None:
    engine = open_engine()
    sampling = SamplingParams(max_tokens=5, min_tokens=5, temperature=1.5)
    seeds = [derive_seed(0, 0, "op", 0, sample) for sample in range(6)]
    handles = [engine.submit(Request(PROMPT, sampling, seed=seed)) for seed in seeds]
    drawn = {handle.future.result(60).token_ids for handle in handles}
    assert len(drawn) == 6
    assert engine.statistics.prefilled_tokens == len(PROMPT) + 5  # each other sample: the row before its first token


def test_bias_forces_and_bans(open_engine: OpenEngine) -> None:
    engine = open_engine()
    forced = SamplingParams(max_tokens=4, logit_bias=((77, 100.0),))
    assert run(engine, forced).token_ids == (77,) * 4
    free = run(engine, SamplingParams(max_tokens=20, min_tokens=20)).token_ids
    banned = SamplingParams(max_tokens=20, min_tokens=20, logit_bias=tuple((each, -100.0) for each in sorted({*free})))
    assert not {*run(engine, banned).token_ids} & {*free}


def test_penalties_count_what_was_generated_only(open_engine: OpenEngine) -> None:
    engine = open_engine()
    bias = tuple((token, 90.0) for token in (20, 21, 22))  # all three are in the prompt
    base = SamplingParams(max_tokens=9, min_tokens=9, logit_bias=bias)
    assert len({*run(engine, base).token_ids}) <= 3
    present = run(engine, replace(base, presence_penalty=2.0, temperature=0.01), seed=1).token_ids
    frequent = run(engine, replace(base, frequency_penalty=2.0)).token_ids
    assert {*present} | {*frequent} <= {20, 21, 22}
    first = run(engine, replace(base, max_tokens=1, min_tokens=1)).token_ids
    assert frequent[:1] == first  # nothing was generated before it


def test_logprobs_are_those_before_penalties(open_engine: OpenEngine) -> None:
    engine = open_engine(deterministic=True)
    plain = run(engine, SamplingParams(max_tokens=1, min_tokens=1, logprobs=400)).logprobs
    biased = run(engine, SamplingParams(max_tokens=1, min_tokens=1, logprobs=2, logit_bias=((77, 100.0),))).logprobs
    assert plain is not None
    assert biased is not None
    assert biased[0].logprob == dict(plain[0].top)[77]
    assert biased[0].top == plain[0].top[:2]

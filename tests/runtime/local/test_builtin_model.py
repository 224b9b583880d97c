"""The model that ships with the package, on the local engine: tokens as transformers gives them, a cache that pays."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lmc import builtin_model
from lmc.ir.engine.protocol import Request, SamplingParams, ScoreRequest
from lmc.ir.semantics.context import Context
from lmc.runtime.local import load_local_engine
from tests.runtime.local.oracle import Agreement, sequence_logprobs

DOCUMENT = "Name: Ada Brook. City: Oslo. Age: 41. Ada moved to Oslo in spring and works as a baker. " * 6
QUESTIONS = ("What is the name?", "What is the city?", "What is the age?", "Where does Ada work?", "Say hello.", "2+3=")
MAX_TOKENS = 32


@pytest.fixture(scope="module")
def model() -> Any:
    return transformers.LlamaForCausalLM.from_pretrained(builtin_model.path(), dtype=torch.float32).eval()


def chat_prompts(folder: Path) -> list[tuple[int, ...]]:
    with load_local_engine(folder, device="cpu", kv_tokens=1) as engine:
        document = Context.empty(engine.tokenizer).message("system", "You read documents.")
        return [document.message("user", f"{DOCUMENT}\n{question}").prompt for question in QUESTIONS]


@pytest.mark.parametrize("settings", [{}, {"prefill_tokens": 33}, {"kv_tokens": 420}, {"max_running": 2}])
def test_greedy_tokens_equal_transformers(settings: dict[str, Any], model: Any) -> None:
    prompts = chat_prompts(builtin_model.path())
    agreement = Agreement()
    options: dict[str, Any] = {"device": "cpu", "kv_tokens": 4000, **settings}
    with load_local_engine(builtin_model.path(), **options) as engine:
        # Twice: the second time from the cache, with two contexts that go on from results of the first.
        for _ in range(2):
            sampling = SamplingParams(max_tokens=MAX_TOKENS)
            handles = [engine.submit(Request(prompt, sampling)) for prompt in reversed(prompts)]
            results = [handle.future.result(60) for handle in reversed(handles)]
            for prompt, result in zip(prompts, results, strict=True):
                agreement.check(model, prompt, result.token_ids, MAX_TOKENS)
            prompts = [*prompts, prompts[0] + results[0].token_ids, prompts[1] + results[1].token_ids]
        assert engine.statistics.cached_tokens > engine.statistics.prefilled_tokens
    print(f"{agreement.compared} generations equal, {agreement.close_calls} of them up to a close call")


def test_scores_equal_transformers(model: Any) -> None:
    with load_local_engine(builtin_model.path(), device="cpu", kv_tokens=4000) as engine:
        prompt = engine.tokenizer.encode(DOCUMENT)
        choices = tuple(engine.tokenizer.encode(text) for text in (" Oslo", " Paris and Rome", " yes", " no"))
        score = engine.score(ScoreRequest(prompt, choices)).future.result(60)
    for choice, logprobs in zip(choices, score.logprobs, strict=True):
        assert logprobs == pytest.approx(sequence_logprobs(model, prompt, choice), abs=1e-3)

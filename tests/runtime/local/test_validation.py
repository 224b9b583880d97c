from typing import Any

import pytest

from lmc.ir.engine import Request, SamplingParams, ScoreRequest
from lmc.ir.errors import ContextLengthError, EngineError
from lmc.runtime.local.validation import RequestChecker, check_sampling
from tests.runtime.local.conftest import OpenEngine

CHECKER = RequestChecker(vocabulary_size=100, context_length=50, kv_tokens=40)


def request(length: int, **sampling: Any) -> Request:
    return Request((1,) * length, SamplingParams(**sampling))


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"min_tokens": -1}, "min_tokens is -1"),
        ({"min_tokens": 9, "max_tokens": 8}, r"min_tokens is 9\n.*between 0 and max_tokens \(8\)"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_k": -1}, "top_k is -1"),
        ({"min_p": 1.1}, "min_p is 1.1"),
        ({"frequency_penalty": -2.1}, "frequency_penalty is -2.1"),
        ({"presence_penalty": float("nan")}, "presence_penalty is nan"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty is inf"),
        ({"logit_bias": ((3, 200.0),)}, "logit_bias is .*200"),
        ({"stop": ("a", "")}, "a stop string is empty"),
        ({"logprobs": -1}, "logprobs is -1"),
    ],
)
def test_bad_sampling_parameters(sampling: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message) as failure:
        check_sampling(SamplingParams(**sampling))
    assert failure.value.remedy


def test_bad_token_ids() -> None:
    with pytest.raises(EngineError, match="the prompt is empty"):
        CHECKER.check_generation(request(0))
    with pytest.raises(EngineError, match="the prompt holds token id 100, outside the model's vocabulary of 100"):
        CHECKER.check_prefill((1, 100))
    with pytest.raises(EngineError, match="stop_token_ids holds token id -1"):
        CHECKER.check_generation(request(1, stop_token_ids=(-1,)))
    with pytest.raises(EngineError, match="logit_bias holds token id 100"):
        CHECKER.check_generation(request(1, logit_bias=((5, 1.0), (100, 1.0))))
    with pytest.raises(EngineError, match="continuation 1 holds token id 200"):
        CHECKER.check_score(ScoreRequest((1,), ((2,), (200,))))


def test_lengths() -> None:
    assert CHECKER.check_generation(request(40, max_tokens=500)) == 1
    with pytest.raises(ContextLengthError, match=r"50 prompt tokens and 1 .* exceed the model's context of 50"):
        CHECKER.check_generation(request(50))
    with pytest.raises(ContextLengthError, match=r"38 prompt tokens and 4 .* exceed the KV pool of 40"):
        CHECKER.check_generation(request(38, min_tokens=4))
    with pytest.raises(ContextLengthError, match="exceed the KV pool of 40"):
        CHECKER.check_prefill((1,) * 41)
    CHECKER.check_score(ScoreRequest((1,) * 38, ((1,) * 3, (1,))))
    with pytest.raises(ContextLengthError, match="the longest continuation"):
        CHECKER.check_score(ScoreRequest((1,) * 38, ((1,) * 4, (1,))))


def test_the_engine_answers_bad_requests_through_the_handle(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=100)
    handles = [
        engine.submit(request(5, top_p=2.0)),
        engine.score(ScoreRequest((), ((1,),))),
        engine.prefill((1,) * 600),
    ]
    for handle, message in zip(handles, ("top_p is 2.0", "prompt is empty", "context of 512"), strict=True):
        with pytest.raises(EngineError, match=message):
            handle.future.result(0)
        handle.cancel()
    assert engine.statistics.requests == 0

from typing import Any

import numpy as np
import pytest

from lmc.ir.engine.protocol import Request, SamplingParams, ScoreRequest
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
        ({"repetition_penalty": 1e-300}, "repetition_penalty is 1e-300\n.*between 0.01 and 100"),
        ({"repetition_penalty": 1e300}, r"repetition_penalty is 1e\+300"),
        ({"max_tokens": 2.5}, "max_tokens is 2.5, of type float\n.*give an integer"),
        ({"max_tokens": True}, "max_tokens is True, of type bool"),
        ({"min_tokens": "1"}, "min_tokens is '1', of type str"),
        ({"top_k": None}, "top_k is None"),
        ({"logprobs": 1.0}, "logprobs is 1.0, .*\n.*an integer, or None"),
        ({"temperature": "hot"}, "temperature is 'hot', of type str\n.*give a number"),
        ({"stop": "ab"}, r"stop is 'ab', of type str\n.*a tuple of strings; for a single one write \('text',\)"),
        ({"stop": (b"a",)}, r"stop is \(b'a',\)"),
        ({"logit_bias": {5: 1.0}}, "logit_bias is .*of type dict\n.*pairs of token id and number"),
        ({"logit_bias": ((5,),)}, "logit_bias is .*of type tuple"),
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


def test_values_of_other_types() -> None:
    generation: Any = Request
    score: Any = ScoreRequest
    check_prefill: Any = CHECKER.check_prefill
    with pytest.raises(EngineError, match=r"the prompt holds float beside token ids\n.*give integers only"):
        CHECKER.check_generation(generation((5.5, 6), SamplingParams()))
    with pytest.raises(EngineError, match="the prompt holds bool, str beside token ids"):
        check_prefill((True, "a", 6))
    with pytest.raises(EngineError, match="the prompt is None, of type NoneType"):
        CHECKER.check_generation(generation(None, SamplingParams()))
    with pytest.raises(EngineError, match="stop_token_ids is 5, of type int"):
        CHECKER.check_generation(request(1, stop_token_ids=5))
    with pytest.raises(EngineError, match="logit_bias holds float"):
        CHECKER.check_generation(request(1, logit_bias=((5.0, 1.0),)))
    with pytest.raises(EngineError, match="seed is 'x'"):
        CHECKER.check_generation(generation((1,), SamplingParams(), seed="x"))
    for terms, message in (
        ({"timeout": "3"}, "timeout is '3', of type str\n.*give seconds, or None"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"instance": "x"}, "instance is 'x'"),
        ({"instance": None}, "instance is None"),
    ):
        with pytest.raises(EngineError, match=message):
            CHECKER.check_generation(generation((1,), SamplingParams(), **terms))
        with pytest.raises(EngineError, match=message):
            CHECKER.check_score(score((1,), ((2,),), **terms))
    with pytest.raises(EngineError, match="continuations is 5, of type int"):
        CHECKER.check_score(score((1,), 5))
    with pytest.raises(EngineError, match="continuation 1 is 'no', of type str"):
        CHECKER.check_score(score((1,), ((2,), "no")))
    CHECKER.check_generation(generation([np.int64(5), 6], SamplingParams(), seed=2**70))


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
        engine.submit(request(5, max_tokens=2.5)),
        engine.score(ScoreRequest((), ((1,),))),
        engine.prefill((1,) * 600),
    ]
    for handle, message in zip(
        handles, ("top_p is 2.0", "max_tokens is 2.5", "prompt is empty", "context of 512"), strict=True
    ):
        with pytest.raises(EngineError, match=message):
            handle.future.result(0)
        handle.cancel()
    assert engine.statistics.requests == 0

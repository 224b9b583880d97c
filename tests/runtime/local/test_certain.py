"""Tokens that are all that may be drawn: their logits are not computed, and the output is that of masked decoding."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from lmc.cache.sequence import Sequence
from lmc.ir.engine.protocol import EngineInfo, Request, SamplingParams
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import EngineError
from lmc.runtime.local.engine import LocalEngine
from tests.ir.constraints_for_tests import TemplateConstraint
from tests.runtime.local.outcomes import run
from tests.runtime.local.prefix_model import PrefixModel

BYTES = toy_tokenizer()  # each byte is a token, so text that has to follow is certain token by token
PROMPT = (3, 4, 5)


def logits_after(prefix: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(BYTES.vocabulary_size, generator=torch.Generator().manual_seed(hash(prefix) % 2**31))


class Counting(PrefixModel):
    """Counts the rows of logits that it is asked for, and the steps that compute any."""

    def __init__(self, poison: int = -1) -> None:
        super().__init__(logits_after, kv_tokens=200, vocabulary_size=BYTES.vocabulary_size, poison=poison)
        self.steps = self.read = 0

    def forward(self, slices: Any) -> Any:
        logits, owners = super().forward(slices)
        self.steps += bool(owners)
        self.read += len(logits)
        return logits, owners


def request_of(*pieces: Any, **sampling: Any) -> Request:
    settings: dict[str, Any] = {"max_tokens": 60, "temperature": 1.5, **sampling}
    return Request(PROMPT, SamplingParams(**settings), seed=3, constraint=TemplateConstraint(BYTES, *pieces))


def asked(request: Request, poison: int = -1, **settings: Any) -> tuple[Any, Counting, Any]:
    """The outcome, the model and the engine's statistics."""
    model: Any = Counting(poison)
    with LocalEngine(model, BYTES, EngineInfo("counting", 200, 200), **settings) as engine:
        (found,) = run(engine, [request])
        return found, model, engine.statistics


OBJECT = ('{"name": "', (b"ab", b"ba", b"cc"), '", "is": ', (b"true", b"false"), ", 7}")


@pytest.mark.parametrize("settings", [{}, {"prefill_tokens": 4}])
@pytest.mark.parametrize(
    "sampling", [{}, {"min_tokens": 9}, {"frequency_penalty": 1.0, "top_p": 0.9}, {"stop": ("is",)}]
)
def test_only_what_is_open_is_read(sampling: dict[str, Any], settings: dict[str, Any]) -> None:
    request = request_of(*OBJECT, **sampling)
    expected, plain, _ = asked(replace(request, jump_forward="off"))
    found, model, statistics = asked(request, **settings)
    assert found == expected
    assert plain.read == plain.steps
    assert model.read == model.steps < plain.steps
    assert statistics.accepted_tokens > 10
    assert statistics.accepted_tokens == statistics.drafted_tokens or "stop" in sampling


@pytest.mark.parametrize("sampling", [{"logprobs": 1}, {"logit_bias": ((97, 1.0),)}])
def test_all_is_read_where_logits_are_asked_for(sampling: dict[str, Any]) -> None:
    request = request_of(*OBJECT, **sampling)
    expected, plain, _ = asked(replace(request, jump_forward="off"))
    found, model, _ = asked(request)
    assert found == expected
    assert model.steps < plain.steps == plain.read <= model.read


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"max_tokens": 3},
        {"min_tokens": 50},
        {"stop": ("e",)},
        {"stop": ("es", "o")},
        {"stop_token_ids": tuple(BYTES.encode("eo"))},
        {"max_tokens": 2},
        {"logprobs": 0},
    ],
)
def test_an_output_whose_rest_is_certain_ends(sampling: dict[str, Any]) -> None:
    """It is that of masked decoding however it ends, without a step for the rest."""
    request = request_of((b"yes", b"nay"), **sampling)
    expected, _, _ = asked(replace(request, jump_forward="off"))
    found, model, statistics = asked(request)
    assert found == expected
    if not sampling:
        assert (model.steps, model.read, statistics.rows) == (1, 1, len(PROMPT))
        assert statistics.generated_tokens == 3


def test_an_output_that_is_certain_from_the_start_needs_no_model() -> None:
    for sampling in ({}, {"stop": ("b",)}, {"max_tokens": 3}):
        request = request_of("abc", **sampling)
        expected, _, _ = asked(replace(request, jump_forward="off"))
        found, model, _ = asked(request)
        assert found == expected
        assert model.steps == 0


def test_what_is_not_read_is_looked_at_by_what_comes_after_it() -> None:
    """Logits that are no numbers fail the request, and nothing of it is served to others."""
    model: Any = Counting(poison=BYTES.encode("7")[0])
    with LocalEngine(model, BYTES, EngineInfo("counting", 200, 200)) as engine:
        request = request_of("a7bcdefgh", (b"x", b"y"), "z")
        with pytest.raises(EngineError, match="NaN logits"):
            engine.submit(request).future.result(30)
        assert engine._worker._scheduler.memory.pool.used_count <= len(PROMPT)
        again = engine.submit(replace(request, constraint=TemplateConstraint(BYTES, "a", (b"x", b"y"))))
        assert again.future.result(30).text[:1] == "a"


def test_a_step_reads_its_last_row_always() -> None:
    sequence = Sequence((1, 2, 3), capacity=20, first_wanted_row=2)
    sequence.propose((4, 5, 6, 7), frozenset((2, 4, 5)))
    sequence.planned = 7
    assert [*sequence.rows_to_read(0, 7)] == [3, 6]
    sequence.planned = 5
    assert [*sequence.rows_to_read(0, 5)] == [3, 4]
    sequence.planned = 2
    assert [*sequence.rows_to_read(0, 2)] == [1]
    sequence.drop_draft()
    sequence.planned = 3
    assert [*sequence.rows_to_read(0, 3)] == [2]

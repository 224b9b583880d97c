"""Programs on vLLM's server, which takes and gives token ids, and the same on lmc's engine."""

import os
from collections.abc import Generator

import pytest

import lmc
from benchmarks.peer_servers import vllm_server
from lmc import builtin_model
from lmc.driver import Options, Runner
from tests.examples.cases import EXAMPLES
from tests.examples.test_examples import facts

INTERPRETER = os.environ.get("LMC_BENCH_VLLM")
pytestmark = pytest.mark.skipif(INTERPRETER is None, reason="LMC_BENCH_VLLM names no interpreter that has vLLM")


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    assert INTERPRETER is not None
    with vllm_server(INTERPRETER, builtin_model.path(), "float32") as endpoint:
        yield endpoint.url


@pytest.mark.parametrize("name", ["judge", "chat", "labels", "extract", "multiple_choice"])
def test_examples_give_the_same(name: str, address: str):
    target = lmc.remote(f"server:{address}", tokenizer=str(builtin_model.path()), capabilities={"structured": "exact"})
    example = EXAMPLES[name]
    expected = Runner(example.program, Options("builtin", kv_tokens=8_000)).run(((), example.rows[0]))
    assert facts(Runner(example.program, Options(target)).run(((), example.rows[0]))) == facts(expected)

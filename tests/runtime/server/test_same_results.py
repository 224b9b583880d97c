"""Calls of programs give the same over HTTP as in process: tokens, and log-probabilities bit for bit."""

from collections.abc import Generator

import pytest

from lmc.driver import Options, Runner, adopt_engine, close_engine
from lmc.driver.targets.registry import make_engine
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from tests.examples.cases import EXAMPLES
from tests.examples.test_examples import facts
from tests.runtime.server.http_engines import HttpEngine, recorded_sources
from tests.runtime.server.servers import FULL, Served

QUICK = ("extract",)
"""Examples that run on the built-in model in make test; make test-full runs all."""
TARGETS = {"toy": Target("toy"), "builtin": Target("builtin", kv_tokens=8_000, deterministic=True)}
CASES = [(name, target) for name in EXAMPLES for target in TARGETS if target == "toy" or FULL or name in QUICK]


@pytest.fixture(scope="module")
def engines() -> Generator[dict[str, Engine]]:
    made: dict[str, Engine] = {}
    yield made
    for engine in made.values():
        engine.close()


@pytest.mark.parametrize(("name", "target"), CASES)
def test_calls_of_examples_give_the_same(
    name: str, target: str, engines: dict[str, Engine], request: pytest.FixtureRequest
):
    server: Served = request.getfixturevalue(target)
    local = engines.get(target) or engines.setdefault(target, make_engine(TARGETS[target]))
    example = EXAMPLES[name]
    row = example.rows[0]
    over_http = HttpEngine(server, local)
    target_of_http = adopt_engine(over_http)
    with recorded_sources():
        for seed in (0, 3):
            expected = Runner(example.program, Options(adopt_engine(local), seed=seed)).run(((), row))
            found = Runner(example.program, Options(target_of_http, seed=seed)).run(((), row))
            assert facts(found) == facts(expected)
    assert over_http.counts["/generate"]
    close_engine(Options(target_of_http))

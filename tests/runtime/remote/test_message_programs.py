"""Generated programs on a simulated provider: no request costs more than was foreseen."""

from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given

from lmc.cost.texts import counting
from lmc.cost.walk import WalkFacts, walk_row
from lmc.driver.targets.constraints import compiler
from lmc.driver.targets.hosted import hosted_target
from lmc.grammar.provider_schema import form_bytes
from lmc.grammar.sharing import ConstraintCache, source_of
from lmc.ir.core import Constraint
from lmc.ir.engine.protocol import Generation, Handle, OnDelta, Request
from lmc.ir.engine.target import Target
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Constraints, constraints_of
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.usage import Usage
from lmc.runtime.budget.bounds import TokenBounds
from lmc.runtime.remote.engine import RemoteEngine
from tests.message_strategies import message_programs
from tests.program_strategies import Program
from tests.runtime.remote.hosted_runs import KEY_NAME, hosted
from tests.runtime.remote.simulator import Simulator

End = tuple[Any, ...]
TOKENIZER = message_tokenizer()
_CONSTRAINTS = ConstraintCache()
SETTINGS = {
    "chat": ("openai:gpt-4.1", {}),
    "responses": ("openai:gpt-5.6", {"api": "responses", "reasoning_tokens": 3}),
}


class Hosted:
    """A simulated provider, its target, and an engine that notes the bound and the cost of each request."""

    def __init__(self, simulator: Simulator, api: str) -> None:
        spec, more = SETTINGS[api]
        settings = {"base_url": f"{simulator.url}/v1", "api_key_env": KEY_NAME, "continuation": "turns", **more}
        self.simulator = simulator
        self.target = hosted_target(spec, settings)
        self.engine = RemoteEngine(self.target, TOKENIZER)
        self.bounds = TokenBounds(self.target.spec, self.target.capabilities)


class BoundedEngine:
    """Checks that no request costs more than is reserved for it."""

    def __init__(self, hosted: Hosted) -> None:
        self.engine, self.bounds = hosted.engine, hosted.bounds
        self.tokenizer, self.info, self.statistics = TOKENIZER, hosted.engine.info, hosted.engine.statistics
        self.exceeded: list[tuple[Any, Usage]] = []
        self.score = hosted.engine.score

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        handle = self.engine.submit(request, on_delta)
        handle.future.add_done_callback(lambda done: self.check(request, done))
        return handle

    def check(self, request: Request, done: Any) -> None:
        cost, bound = done.result().usage, self.bounds.most(request)
        if cost.prompt_tokens > bound.prompt or cost.generated_tokens > bound.output:
            self.exceeded.append((bound, cost))

    def close(self) -> None:
        """The engine is another's."""


@pytest.fixture(scope="module", params=SETTINGS)
def provider(request: pytest.FixtureRequest) -> Generator[Hosted]:
    with hosted(), Simulator() as simulator:
        made = Hosted(simulator, request.param)
        yield made
        made.engine.close()


def constraints_in(module: Module) -> Constraints:
    return constraints_of(module, compiler(_CONSTRAINTS, TOKENIZER), None)


def schema_bytes(place: Target) -> Callable[[Constraint], int]:
    def found(symbol: Constraint) -> int:
        source = source_of(symbol.kind, symbol.text, symbol.whitespace)
        return form_bytes(source, place.capabilities.schema_keywords, place.spec)

    return found


@given(message_programs())
def test_no_request_costs_more_than_was_reserved_and_estimated(provider: Hosted, program: Program):
    place, engine, module = provider.target, BoundedEngine(provider), program.module
    constraints = constraints_in(module)
    facts = WalkFacts(counting(TOKENIZER), engine.info, constraints, schema_bytes=schema_bytes(place))
    estimated = walk_row(module, program.inputs, facts)
    try:
        found = interpret(module, program.inputs, engine, hosts=program.hosts, run_seed=5, constraints=constraints)
    except Exception:
        found = None
    assert not engine.exceeded
    if found is None or estimated.error is not None or estimated.breaks:
        return
    for part, counted in (("tokens", "prompt_tokens"), ("output", "generated_tokens")):
        bounds = [(each.runs.most, getattr(each, part).most) for each in estimated.requests]
        if all(runs is not None and most is not None for runs, most in bounds):
            most = sum((runs or 0) * (most or 0) for runs, most in bounds)
            assert getattr(found.profile.usage, counted) <= most, part

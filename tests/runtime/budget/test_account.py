"""The costs of requests: each attempt at the price of the target that it was sent to."""

from decimal import Decimal

import pytest

from lmc.cost.budget import Amount, Budget
from lmc.cost.prices import Price, PriceBook
from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import Generation, Request, SamplingParams, Score
from lmc.ir.errors import EngineError
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.budget.account import PricedTarget, RunBudget

NAME = "anthropic:claude-haiku-4-5"
FIRST = hosted_target("openai:gpt-4.1", {"attempts": 3, "fallback": NAME})
REQUEST = Request((1, 2, 3), SamplingParams(max_tokens=40))


def price(spec: str) -> Price:
    found = PriceBook().find(hosted_target(spec, {}))
    assert isinstance(found, Price)
    return found


def dollars(spec: str, usage: Usage) -> Decimal:
    found = price(spec).cost(usage)
    assert found is not None
    return found


@pytest.fixture
def budget() -> RunBudget:
    targets = [PricedTarget(each, price(each.spec)) for each in FIRST.chain]
    return RunBudget(Budget(usd=1), targets)


def test_each_attempt_has_the_price_of_its_target(budget: RunBudget):
    worst, each = budget.most(REQUEST)
    failed = Attempt(Usage(100, calls=1)), Attempt(Usage(200, 0, 10, 1), fallback=NAME)
    told = Generation((), "", "eos", prompt_tokens=300, generated_tokens=20, fallback=NAME, failed=failed)
    by_hand = sum(
        (dollars(FIRST.spec, failed[0].usage), dollars(NAME, failed[1].usage), dollars(NAME, Usage(300, 0, 20, 1))),
        Decimal(0),
    )
    assert budget.cost(told, worst, each) == (Amount(by_hand, 630, 3), 0)
    score = Score(((0.0,),), prompt_tokens=7, failed=failed[:1])
    spent = dollars(FIRST.spec, Usage(7, calls=1)) + dollars(FIRST.spec, failed[0].usage)
    assert budget.cost(score, worst, each) == (Amount(spent, 107, 2), 0)


def test_an_attempt_that_is_not_known_costs_the_most_of_its_target(budget: RunBudget):
    worst, each = budget.most(REQUEST)
    error = EngineError("no")
    error.attempts = (Attempt(Usage(calls=1), is_whole=False), Attempt(Usage(5, calls=1), fallback=NAME))
    error.usage = Usage(5, calls=2)
    found, unknown = budget.cost(error, worst, each)
    assert unknown == 1
    assert found == each[0] + Amount.of(Usage(5, calls=1), dollars(NAME, Usage(5, calls=1)))
    error.attempts = (Attempt(Usage(5, calls=1), fallback="another"),)  # a journal may hold anything
    assert budget.cost(error, worst, each) == (worst, 1)


def test_nothing_is_spent_on_a_target_that_can_not_be_reached(budget: RunBudget):
    worst, each = budget.most(REQUEST)
    error = EngineError("no")
    error.usage = Usage()
    assert budget.cost(error, worst, each) == (Amount(), 0)

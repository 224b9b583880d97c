"""The costs of requests: each attempt at the price of the target that it was sent to."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cost.budget import Amount, Budget
from lmc.cost.prices import Price, PriceBook
from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import DoneHandle, Generation, Handle, Request, SamplingParams, Score
from lmc.ir.engine.toy import ToyEngine
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


class Keeper(ToyEngine):
    """Tells the costs of the answers that it keeps."""

    def __init__(self, kept: Mapping[str, Usage]) -> None:
        super().__init__()
        self._kept = kept

    def stored_usage(self, stored: str) -> Handle[Usage | None]:
        return DoneHandle[Usage | None].of(self._kept.get(stored))


BILLED = st.tuples(st.integers(0, 100), st.integers(0, 40), st.booleans(), st.booleans())
"""Tokens of an attempt; whether its answer is whole; whether the provider has given it an id."""


@given(st.lists(st.tuples(st.lists(BILLED, min_size=1, max_size=3), st.booleans()), max_size=6), st.booleans())
def test_what_is_billed_is_never_more_than_what_counts(requests: Any, looks: bool):
    """Requests with several attempts, of which the provider keeps some answers: ids come before answers are whole."""
    target = hosted_target("openai:gpt-4.1", {"attempts": 3})
    account, kept, billed = RunBudget(Budget(tokens=10**9), [PricedTarget(target, None)]), dict[str, Usage](), 0
    account.opened(Keeper(kept))
    request = Request((1,) * 100, SamplingParams(max_tokens=40))
    worst, each = account.most(request)
    for number, (tried, is_answered) in enumerate(requests):
        last_id: str | None = None
        told: list[Attempt] = []
        for count, (prompt, output, is_whole, has_id) in enumerate(tried):
            usage = Usage(prompt, 0, output, 1)
            billed += prompt + output
            last_id = f"resp_{number}_{count}" if has_id else None
            if last_id is not None:
                kept[last_id] = usage
            whole = is_whole or (is_answered and count == len(tried) - 1)
            told.append(Attempt(usage if whole else Usage(calls=1), is_whole=whole))
        end: Any = EngineError("no")
        if is_answered:
            own, *failed = reversed([each.usage for each in told])
            end = Generation(
                (),
                "",
                "eos",
                prompt_tokens=own.prompt_tokens,
                generated_tokens=own.generated_tokens,
                failed=tuple(told[: len(failed)]),
            )
        else:
            end.attempts = tuple(told)
            end.usage = sum((attempt.usage for attempt in told), Usage())
        reservation = account.ledger.reserve(worst, lambda *_: None)
        account.settle(reservation, end, each, last_id)
    if looks:
        account.ledger.reserve(Amount(tokens=10**10), lambda *_: None)
    assert account.ledger.promised.tokens >= billed

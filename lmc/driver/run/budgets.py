"""Budgets of runs: the prices of a run's targets, and its engine under a budget."""

from __future__ import annotations

from lmc.cost.budget import Budget
from lmc.cost.prices import Price, Unpriced
from lmc.driver.targets.defaults import price_book
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError
from lmc.runtime.budget.account import PricedTarget, RunBudget
from lmc.runtime.budget.budgeted import BudgetedEngine
from lmc.runtime.journal.journal import RunJournal
from lmc.runtime.journal.requests import sent_requests


def run_budget(budget: Budget | None, target: Target) -> RunBudget | None:
    """Return the account of a run that starts now.

    Raises ``InputError`` for a limit of dollars where a target has no price, or its requests have no bound.
    """
    if budget is None:
        return None
    if budget.usd is None:
        return RunBudget(budget, [PricedTarget(each, None) for each in target.chain])
    book = price_book()
    return RunBudget(budget, [PricedTarget(each, _price(each, book.find(each))) for each in target.chain])


def budgeted(engine: Engine, budget: RunBudget, journal: RunJournal | None) -> Engine:
    """Return ``engine`` under a budget. With a journal, what earlier sessions of the run have spent counts.

    That is the sum over their requests, whatever budgets they had, at the prices of now. Raises ``JournalError``.
    """
    if journal is not None and journal.is_replay:
        return engine
    layer = BudgetedEngine(engine, budget)
    if journal is not None:
        for sent in sent_requests(journal, budget.targets):
            budget.add_sent(sent.bound, sent.attempts, sent.result, sent.stored)
    return layer


def _price(target: Target, found: Price | Unpriced) -> Price:
    if isinstance(found, Unpriced):
        if target.remote is None:
            raise InputError(
                f"a budget of dollars can't bound {target.spec}: {found.reason}", remedy="give tokens or calls"
            )
        raise found.error()
    if found.most(0, 0) is None:
        raise InputError(
            f"requests to {target.spec} have no bound in dollars: {found.entry} has no price of cache writes",
            remedy=f'write [tool.lmc.prices."{target.spec}"] with input, output and cache_write into pyproject.toml',
        )
    return found

"""The money of runs: their budgets, and the dollars that their requests cost, each attempt priced by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from lmc.cost.budget import Budget, BudgetLedger
from lmc.cost.prices import MONEY, Price, PriceBook, Unpriced
from lmc.driver.run.budgets import budgeted, run_budget
from lmc.driver.targets.defaults import price_book
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.usage import Attempt
from lmc.ir.wording import with_count
from lmc.runtime.budget.account import RunBudget
from lmc.runtime.budget.metered import AttemptMeter, MeteredEngine
from lmc.runtime.journal.engine import JournaledEngine
from lmc.runtime.journal.journal import RunJournal

_DIGITS = 4
"""Digits behind the point of dollars for people, at least."""


class RunPrices:
    """The prices of a hosted target and its fallbacks, each looked up when it is needed."""

    def __init__(self, target: Target, book: PriceBook) -> None:
        self._targets = dict(zip((None, *target.fallback_names), target.chain, strict=True))
        self._book = book
        self._found: dict[str | None, Price | Unpriced] = {}

    def chain(self) -> list[Price | Unpriced]:
        """Return the prices of the target and its fallbacks."""
        return [self.find(name) for name in self._targets]

    def find(self, fallback: str | None) -> Price | Unpriced:
        """Return the price of the target (None) or of a fallback, by its name."""
        found = self._found.get(fallback)
        if found is None:
            target = self._targets.get(fallback)
            named = Unpriced(str(fallback), "the target has no such fallback")
            found = self._found[fallback] = named if target is None else self._book.find(target)
        return found


@dataclass(frozen=True)
class Spending:
    """Attempts of requests at their prices."""

    prices: RunPrices
    attempts: Sequence[Attempt]

    @property
    def usd(self) -> Decimal | None:
        """Dollars of all attempts; None where a price is unknown."""
        total = CostTotal()
        total.add(self)
        return None if total.unpriced else total.usd

    @property
    def unknown_calls(self) -> int:
        """The number of attempts that may have cost more: their answers did not come, or not whole."""
        return sum(not attempt.is_whole for attempt in self.attempts)


class CostTotal:
    """A sum of spendings. ``unpriced`` counts attempts without a price, by their models."""

    def __init__(self) -> None:
        self.usd = Decimal(0)
        self.unknown_calls = 0
        self.unpriced: Counter[str] = Counter()
        self._entries: set[tuple[str, str]] = set()
        self._is_empty = True

    def add(self, spending: Spending) -> None:
        """Add attempts, each at the price of its own target."""
        self._is_empty = False
        self.unknown_calls += spending.unknown_calls
        for attempt in spending.attempts:
            price = spending.prices.find(attempt.fallback)
            if isinstance(price, Unpriced):
                self.unpriced[price.model] += 1
                continue
            dollars = price.cost(attempt.usage)
            if dollars is None:
                self.unpriced[price.entry] += 1
                continue
            self._entries.add((price.source, price.entry))
            self.usd = MONEY.add(self.usd, dollars)

    def lines(self) -> list[str]:
        """Return the sum for people; none for a run without hosted models."""
        if self._is_empty:
            return []
        found: list[str] = []
        if self._entries or not self.unpriced:
            least = "at least " if self.unknown_calls or self.unpriced else ""
            found.append(f"{least}{dollars_text(self.usd)}{self._sources()}")
        for model, count in sorted(self.unpriced.items()):
            found.append(f"{model} is unpriced ({with_count(count, 'request')})")
        if self.unknown_calls:
            found.append(f"{with_count(self.unknown_calls, 'attempt')} may have cost more, without a whole answer")
        return found

    def _sources(self) -> str:
        entries = [f"{source}, entry {entry}" for source, entry in sorted(self._entries)]
        return f" (prices {'; '.join(entries)})" if entries else ""


class RunMoney:
    """The money of one run: its ``budget`` (None: it has none), its ``prices`` (None: the model is no hosted one)."""

    def __init__(self, budget: RunBudget | None = None, prices: RunPrices | None = None) -> None:
        self.budget = budget
        self.prices = prices
        self._meter = AttemptMeter()

    @classmethod
    def of(cls, budget: Budget | None, target: Target) -> RunMoney:
        """Return that of a run that starts now. Raises ``InputError`` as ``run_budget`` and ``price_book`` do."""
        prices = None if target.remote is None else RunPrices(target, price_book())
        return cls(run_budget(budget, target), prices)

    @property
    def ledger(self) -> BudgetLedger | None:
        """The account of the budget."""
        return None if self.budget is None else self.budget.ledger

    def layered(self, engine: Engine, journal: RunJournal | None) -> Engine:
        """Return ``engine`` under the budget and the journal, with its requests noted. Raises ``JournalError``."""
        if self.budget is not None:
            engine = budgeted(engine, self.budget, journal)
        if journal is not None:
            engine = JournaledEngine(engine, journal)
        return engine if self.prices is None else MeteredEngine(engine, self._meter)

    def spent_by(self, row: int) -> Spending | None:
        """Return the cost of a row that has ended; None: the model is no hosted one."""
        return None if self.prices is None else Spending(self.prices, tuple(self._meter.take(row)))

    def rest(self) -> Spending | None:
        """Return the cost of requests that ended after their rows."""
        return None if self.prices is None else Spending(self.prices, self._meter.take_all())


def budget_line(ledger: BudgetLedger) -> str:
    """Return the state of a budget for people, with the attempts that count at their worst case."""
    unknown = ledger.unknown + ledger.held  # a run that is broken off leaves costs that are being looked up
    worst = f", {with_count(unknown, 'attempt')} without a whole answer at the worst case" if unknown else ""
    return f"of the budget of {ledger.budget}, {ledger.promised.counted_by(ledger.budget)} are spent{worst}"


def dollars_text(usd: Decimal) -> str:
    """Return dollars for people, rounded up to two digits that count, and to four behind the point at least."""
    digits = max(_DIGITS, 1 - usd.adjusted()) if usd else _DIGITS
    return f"${usd.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_UP, context=MONEY):f}"

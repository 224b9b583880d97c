"""The cost of a budget: milliseconds that it adds to a request, by requests in flight and kind of limit (limit 0.1).

python benchmarks/budget.py [--write]
"""

import argparse
import statistics
import time
from typing import Any

from benchmarks.journal import PROMPT, TimedEngine, calls
from benchmarks.results import machine, processor, table, write_section
from lmc.cost.budget import Budget
from lmc.cost.prices import Price, PriceBook
from lmc.driver.targets.hosted import hosted_target
from lmc.runtime.budget.account import PricedTarget, RunBudget
from lmc.runtime.budget.budgeted import BudgetedEngine

CALLS = 10_000
REPEATS = 5
IN_FLIGHT = (1, 64)
LIMIT = 0.1
"""Milliseconds per request."""
BUDGETS = {"calls": Budget(calls=10**9), "tokens": Budget(tokens=10**12), "dollars": Budget(usd=10**9)}


def engine(plain: TimedEngine, budget: Budget) -> Any:
    """Return the engine under a budget of a hosted model."""
    target = hosted_target("openai:gpt-5.6", {})
    price = PriceBook().find(target)
    assert isinstance(price, Price)
    return BudgetedEngine(plain, RunBudget(budget, [PricedTarget(target, price if budget.usd else None)]))


def seconds(asked: Any, in_flight: int) -> float:
    """CPU seconds of all requests."""
    start = time.process_time()
    calls(asked, CALLS, in_flight)
    return time.process_time() - start


def main() -> None:
    """Print the rows, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    arguments = parser.parse_args()
    plain = TimedEngine(0.0)
    rows: list[list[str]] = []
    for in_flight in IN_FLIGHT:
        for name, budget in BUDGETS.items():
            added = [
                (seconds(engine(plain, budget), in_flight) - seconds(plain, in_flight)) / CALLS * 1000
                for _ in range(REPEATS)
            ]
            rows.append([str(in_flight), name, f"{statistics.median(added):.3f}", f"{max(added):.3f}"])
    columns = ["in flight", "limit of", "ms per request, CPU", "worst of 5"]
    text = f"{machine()}, {processor()}. Prompts of {len(PROMPT):,} tokens, answers at once. At most {LIMIT} ms.\n\n"
    text += table(columns, rows)
    print(text)
    if arguments.write:
        write_section("budget", "python benchmarks/budget.py --write", text)


if __name__ == "__main__":
    main()

"""Numbers and amounts of money as short texts, the same in all presentations."""

from __future__ import annotations

from decimal import Decimal

from lmc.report.cost.model import CostFigures, CountRange, MoneyRange, ProgramCost, money_text

UNPRICED = "unpriced"
UNBOUNDED = "unbounded"
ESTIMATED = "~ tokens are estimated from the texts: the tokenizer of the model is not known here"
_UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def number(value: float) -> str:
    """Return a number in at most about five characters: ``812``, ``9.1k``, ``41k``; never as 0 where it is not."""
    for size, unit in _UNITS:
        if value >= 0.9995 * size:
            return f"{_short(value / size)}{unit}"
    if 0 < value < 0.05:
        return f"{value:.1g}"
    return f"{value:.1f}" if value != int(value) else f"{int(value)}"


def _short(value: float) -> str:
    """Return a number from 1 to 1,000 with one digit behind the point where it has two digits in all."""
    tenths = round(value, 1)
    return f"{tenths:.1f}" if tenths < 10 and tenths != int(tenths) else f"{value:.0f}"


def dollars(value: Decimal) -> str:
    """Return an amount with at least two significant digits, and never as 0 where it is not."""
    sign, size = ("−", -value) if value < 0 else ("", value)
    if size >= 1 or not size:
        return f"{sign}${size:,.2f}"
    for digits in range(2, 5):
        if size >= Decimal(10) ** (1 - digits):
            return f"{sign}${size:.{digits}f}"
    if size >= Decimal("0.0001"):
        return f"{sign}${size:.4f}"
    return f"{sign}${money_text(Decimal(f'{size:.1e}'))}"


def usd(money: MoneyRange | None) -> str:
    """Return the expected dollars with their bound: ``$0.021 (max $0.024)``."""
    if money is None:
        return UNPRICED
    expected = dollars(money.expected)
    if money.most is None:
        return f"{expected} ({UNBOUNDED})"
    return expected if money.most == money.expected else f"{expected} (max {dollars(money.most)})"


def count(found: CountRange) -> str:
    """Return an expected number with its bound: ``19–32``."""
    expected = number(found.expected)
    if found.most is None:
        return f"{expected}–{UNBOUNDED}"
    most = number(found.most)
    return expected if expected == most else f"{expected}–{most}"


def mark(program: ProgramCost) -> str:
    """Return ``~`` if the tokens of a program are estimated."""
    return "~" if program.tokens == "estimated" else ""


def prompts(program: ProgramCost, found: CostFigures, *, is_cached: bool) -> str:
    """Return the prompt tokens of requests, and if ``is_cached`` those that caches have: ``~840–3.8k / ~210``."""
    shown = f"{mark(program)}{count(found.prompt)}"
    return f"{shown} / {mark(program)}{number(found.cached.expected)}" if is_cached else shown


def outputs(program: ProgramCost, found: CostFigures) -> str:
    """Return the output tokens of requests; those that can only be 0 are not estimated."""
    return f"{mark(program)}{count(found.output)}" if found.output.most != 0 else count(found.output)


def calls(program: ProgramCost) -> str:
    """Return the number of requests of a program: ``at least 4–8`` if something is in no figure."""
    return f"{'' if program.is_whole else 'at least '}{count(program.total.calls)}"

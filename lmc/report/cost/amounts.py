"""Numbers and amounts of money as short texts, the same in all presentations."""

from __future__ import annotations

from decimal import Decimal

from lmc.report.cost.model import CountRange, MoneyRange, money_text

UNPRICED = "unpriced"
UNBOUNDED = "unbounded"
_UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def number(value: float) -> str:
    """Return a number in at most about five characters: ``812``, ``9.1k``, ``41k``."""
    for size, unit in _UNITS:
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{unit}" if scaled < 10 and round(scaled, 1) != int(scaled) else f"{scaled:.0f}{unit}"
    return f"{value:.1f}" if value != int(value) else f"{int(value)}"


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

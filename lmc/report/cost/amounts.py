"""Numbers and amounts of money as short texts, the same in all presentations."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from lmc.cost.prices import MONEY
from lmc.report.cost.model import CallFigures, CostFigures, CountRange, MoneyRange, ProgramCost, money_text

UNPRICED = "unpriced"
UNBOUNDED = "unbounded"
ESTIMATED = "~ tokens are estimated from the texts: the tokenizer of the model is not known here"
_UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number in at most about five characters: ``812``, ``9.1k``, ``41k``; never as 0 where it is not.

    Bounds are rounded up (``ROUND_CEILING``).
    """
    exact = Decimal(str(value))
    for size, unit in _UNITS:
        if exact >= Decimal("0.9995") * size:
            return f"{_short(exact / size, rounding)}{unit}"
    if 0 < exact < Decimal("0.05"):
        return f"{float(_to_digits(exact, -exact.adjusted(), rounding)):.1g}"
    return f"{_to_digits(exact, 1, rounding)}" if value != int(value) else f"{int(value)}"


def _short(value: Decimal, rounding: str) -> str:
    """Return a number from 1 to 1,000 with one digit behind the point where it has two digits in all."""
    tenths = _to_digits(value, 1, rounding)
    return f"{tenths}" if tenths < 10 and tenths != int(tenths) else f"{_to_digits(value, 0, rounding)}"


def _to_digits(value: Decimal, digits: int, rounding: str) -> Decimal:
    """Return a number with so many digits behind the point."""
    return value.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=MONEY)


def dollars(value: Decimal, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return an amount with at least two significant digits, and never as 0 where it is not.

    Bounds are rounded up (``ROUND_CEILING``).
    """
    sign, size = ("−", -value) if value < 0 else ("", value)
    if size >= 1 or not size:
        return f"{sign}${_to_digits(size, 2, rounding):,}"
    digits = max(2, 1 - size.adjusted())
    if digits == 5:  # a smaller amount has as many digits as it needs
        digits = 4
    shown = _to_digits(size, digits, rounding)
    return f"{sign}${shown if digits <= 4 else money_text(shown)}"


def usd(money: MoneyRange | None) -> str:
    """Return the expected dollars with their bound: ``$0.021 (max $0.024)``."""
    if money is None:
        return UNPRICED
    expected = dollars(money.expected)
    if money.most is None:
        return f"{expected} ({UNBOUNDED})"
    return expected if money.most == money.expected else f"{expected} (max {dollars(money.most, ROUND_CEILING)})"


def count(found: CountRange) -> str:
    """Return an expected number with its bound: ``19–32``."""
    expected = number(found.expected)
    if found.most is None:
        return f"{expected}–{UNBOUNDED}"
    if found.most == found.expected:
        return expected
    most = number(found.most, ROUND_CEILING)
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
    """Return the number of requests of a program: ``at least 4–unbounded`` if more are possible."""
    return _total(program, program.total.calls)


def critical_path(program: ProgramCost) -> str:
    """Return the calls that wait for each other, and their seconds where they are known: ``2 calls, 0.3 s``."""
    path = program.critical_path
    shown = f"{_total(program, path.calls)} call{'' if path.calls.most == 1 else 's'}"
    return shown if path.seconds is None else f"{shown}, {_total(program, path.seconds)} s"


def run_of(program: ProgramCost) -> list[str]:
    """Return what is known of the run of the rows: its seconds, and cached tokens, on a local model those of its pool.

    Empty: nothing is cached.
    """
    total, local = program.total, program.local
    found = [] if total.seconds is None else [f"{_total(program, total.seconds)} s"]
    if local is not None:
        found.append(f"machine {local.machine}, error of steps {local.error:.0%}")
        found.append(f"hits {local.hit_rate:.0%}")
        found.append(f"KV pool peak {number(local.kv_peak)} tokens")
    elif total.cached.most != 0 and total.prompt.expected:
        found.append(f"hits {total.cached.expected / total.prompt.expected:.0%} expected")
    return found


def bases(calls: Sequence[CallFigures]) -> str:
    """Return where the expected outputs of so many calls come from; empty: all of them were measured."""
    names = {
        "recorded": "recorded",
        "profile": "of the profile",
        "plan": "of the program",
        "guess": "guessed from max_tokens",
    }
    found: dict[str, int] = {}
    for call in calls:
        if call.output.most != 0:
            for basis in call.bases:
                found[basis] = found.get(basis, 0) + 1
    if set(found) <= {"recorded", "profile"}:
        return ""
    return ", ".join(f"{found[basis]} {name}" for basis, name in names.items() if basis in found)


def total_usd(program: ProgramCost) -> str:
    """Return the dollars of a program: ``at least $0.12 (unbounded)`` if more are possible."""
    return sum_of_usd(program.total.usd, is_whole=program.is_whole)


def sum_of_usd(money: MoneyRange | None, *, is_whole: bool) -> str:
    """Return a sum of dollars: ``at least`` so much if it leaves something out, or nothing bounds it."""
    return UNPRICED if money is None else f"{_at_least(money.most, is_whole=is_whole)}{usd(money)}"


def sum_of(found: CountRange, *, is_whole: bool) -> str:
    """Return a sum as ``sum_of_usd`` does."""
    return f"{_at_least(found.most, is_whole=is_whole)}{count(found)}"


def _total(program: ProgramCost, found: CountRange) -> str:
    return sum_of(found, is_whole=program.is_whole)


def _at_least(most: float | Decimal | None, *, is_whole: bool) -> str:
    return "at least " if most is None or not is_whole else ""

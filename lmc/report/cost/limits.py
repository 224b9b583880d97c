"""Limits on what programs may cost (``[tool.lmc.budget]``), and whether a report keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from lmc.ir.errors import InputError
from lmc.report.cost.comparison import ComparedReport, percent
from lmc.report.cost.model import CostReport, CountRange, MoneyRange, ProgramCost, money_text

LIMIT_KEYS = ("max_usd", "max_increase_percent", "max_calls", "max_seconds", "min_cached_fraction")
"""The limits of ``[tool.lmc.budget]`` and of an entry of ``[[tool.lmc.cost]]``."""
COUNT_PRICES = "count_price_changes"
Verdict = Literal["kept", "exceeded", "unknown", "new"]


@dataclass(frozen=True, slots=True)
class CostLimits:
    """Limits on expected figures; None: no such limit.

    Attributes:
        max_usd: dollars.
        max_increase_percent: of dollars against the baseline; what other prices cost does not count, but with
            ``count_price_changes``.
        max_calls: requests.
        max_seconds: seconds.
        min_cached_fraction: of the prompt tokens, those that caches have.
    """

    max_usd: Decimal | None = None
    max_increase_percent: Decimal | None = None
    max_calls: Decimal | None = None
    max_seconds: Decimal | None = None
    min_cached_fraction: Decimal | None = None
    count_price_changes: bool = False

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str) -> CostLimits:
        """Return the limits of a table of ``pyproject.toml``. Raises ``InputError``, which begins with ``where``."""
        for key in table:
            if key not in (*LIMIT_KEYS, COUNT_PRICES):
                raise InputError(f"{where} has no key {key!r}", remedy=f"use {', '.join((*LIMIT_KEYS, COUNT_PRICES))}")
        counts = table.get(COUNT_PRICES, False)
        if not isinstance(counts, bool):
            raise InputError(f"{where}: {COUNT_PRICES} is {counts!r}", remedy="write true or false")
        values = {key: _number(f"{where}: {key}", table[key]) for key in LIMIT_KEYS if key in table}
        fraction = values.get("min_cached_fraction")
        if fraction is not None and fraction > 1:
            raise InputError(f"{where}: min_cached_fraction is {fraction}", remedy="give a fraction from 0 to 1")
        return cls(**values, count_price_changes=counts)

    @property
    def needs_baseline(self) -> bool:
        """True if a limit compares with a baseline."""
        return self.max_increase_percent is not None


@dataclass(frozen=True, slots=True)
class CheckedLimit:
    """A limit and the figure that is held against it. ``scope`` is ``total``, or a program and its model.

    ``verdict``: ``unknown`` figures do not keep a limit; ``new`` ones have no baseline, so no increase is measured.
    """

    scope: str
    name: str
    limit: Decimal
    verdict: Verdict
    message: str

    @property
    def fails(self) -> bool:
        """True if the limit is not kept."""
        return self.verdict in {"exceeded", "unknown"}


def check_limits(
    report: CostReport,
    compared: ComparedReport | None,
    total: CostLimits,
    own: Mapping[tuple[str, str], CostLimits],
) -> tuple[CheckedLimit, ...]:
    """Return all limits: those on the sum of all programs, then those on single ones, by program and model."""
    found = list(_checked("total", report.programs, total, compared))
    for program in report.programs:
        if program.key in own:
            scope = f"{program.program} on {program.model}"
            found += _checked(scope, (program,), own[program.key], None if compared is None else compared.only(program))
    return tuple(found)


def _checked(
    scope: str,
    programs: Sequence[ProgramCost],
    limits: CostLimits,
    compared: ComparedReport | None,
) -> Iterator[CheckedLimit]:
    unknown = _left_out(programs)
    if limits.max_usd is not None:
        ranges = [each.total.usd for each in programs]
        left_out, unbounded = unknown or _unpriced(programs), _unbounded(programs, ranges)
        yield _most(scope, "max_usd", limits.max_usd, _dollars(programs), left_out=left_out, unbounded=unbounded)
    if limits.max_calls is not None:
        ranges = [each.total.calls for each in programs]
        calls = sum((_decimal(each.expected) for each in ranges), Decimal(0))
        yield _most(
            scope, "max_calls", limits.max_calls, calls, left_out=unknown, unbounded=_unbounded(programs, ranges)
        )
    if limits.max_seconds is not None:
        ranges = [each.total.seconds for each in programs]
        seconds = _seconds(programs)
        left_out = unknown or ("nothing measured says how long requests take" if seconds is None else None)
        unbounded = _unbounded(programs, ranges)
        yield _most(
            scope, "max_seconds", limits.max_seconds, seconds or Decimal(0), left_out=left_out, unbounded=unbounded
        )
    if limits.min_cached_fraction is not None:
        unbounded = _unbounded(programs, [each.total.prompt for each in programs])
        yield _cached(scope, programs, limits.min_cached_fraction, unknown or unbounded)
    if limits.max_increase_percent is not None:
        yield _increase(scope, programs, limits, compared)


def _most(
    scope: str, name: str, limit: Decimal, found: Decimal, *, left_out: str | None, unbounded: str | None
) -> CheckedLimit:
    """Return a limit from above. What is left out may only add to it, so a figure that exceeds it is known to.

    The expected figure of an unbounded range is a guess, which does not keep a limit.
    """
    unit = "$" if name == "max_usd" else ""
    unknown = left_out or unbounded
    if found > limit:
        at_least = "at least " if left_out else ""
        return CheckedLimit(scope, name, limit, "exceeded", f"{at_least}{unit}{_text(found)} > {unit}{_text(limit)}")
    if unknown:
        return CheckedLimit(scope, name, limit, "unknown", f"not known: {unknown}; the limit is {unit}{_text(limit)}")
    return CheckedLimit(scope, name, limit, "kept", f"{unit}{_text(found)} ≤ {unit}{_text(limit)}")


def _cached(scope: str, programs: Sequence[ProgramCost], limit: Decimal, unknown: str | None) -> CheckedLimit:
    name = "min_cached_fraction"
    prompt = sum((_decimal(each.total.prompt.expected) for each in programs), Decimal(0))
    cached = sum((_decimal(each.total.cached.expected) for each in programs), Decimal(0))
    if unknown or not prompt:
        return CheckedLimit(scope, name, limit, "unknown", f"not known: {unknown or 'there are no prompts'}")
    fraction = cached / prompt
    kept = fraction >= limit
    shown = f"{fraction:.4f} {'≥' if kept else '<'} {_text(limit)}"
    return CheckedLimit(scope, name, limit, "kept" if kept else "exceeded", shown)


def _increase(
    scope: str,
    programs: Sequence[ProgramCost],
    limits: CostLimits,
    compared: ComparedReport | None,
) -> CheckedLimit:
    name, limit = "max_increase_percent", limits.max_increase_percent
    assert limit is not None
    if compared is None:
        return CheckedLimit(scope, name, limit, "unknown", "not known: there is no baseline; give --baseline FILE")
    if not compared.stored:
        return CheckedLimit(scope, name, limit, "new", "not in the baseline: lmc cost --update-baseline adds it")
    change, before = compared.change, compared.before
    unbounded = _unbounded(programs, [each.total.usd for each in programs])
    unknown = _left_out(programs) or _unpriced(programs) or unbounded
    if change is None or before is None or unknown:
        cause = unknown or "the baseline has no price"
        return CheckedLimit(scope, name, limit, "unknown", f"not known: {cause}")
    more = change.own + (change.prices if limits.count_price_changes else 0)
    found = percent(more, before)
    counted = "" if limits.count_price_changes or not change.prices else f"; prices: {_signed(change.prices)} apart"
    if found is None:
        return CheckedLimit(scope, name, limit, "exceeded", f"{_signed(more)} from $0{counted}")
    verdict: Verdict = "exceeded" if found > limit else "kept"
    sign = ">" if verdict == "exceeded" else "≤"
    return CheckedLimit(scope, name, limit, verdict, f"{found:+.1f} % {sign} {_text(limit)} %{counted}")


def _left_out(programs: Sequence[ProgramCost]) -> str | None:
    """Return why sums are only at least what they say."""
    for each in programs:
        if not each.is_whole:
            return f"figures of {each.program} leave out what is behind a graph break, or rows that fail"
    return None


def _unbounded(programs: Sequence[ProgramCost], ranges: Sequence[CountRange | MoneyRange | None]) -> str | None:
    """Return the first program whose range has no bound."""
    for program, found in zip(programs, ranges, strict=True):
        if found is not None and found.most is None:
            return f"{program.program} on {program.model} is unbounded (LMC103 or LMC107)"
    return None


def _unpriced(programs: Sequence[ProgramCost]) -> str | None:
    for each in programs:
        if each.total.usd is None:
            return f"{each.program} on {each.model} is unpriced"
    return None


def _dollars(programs: Sequence[ProgramCost]) -> Decimal:
    """Return the expected dollars of all programs that have a price: at least what all cost."""
    return sum((each.total.usd.expected for each in programs if each.total.usd is not None), Decimal(0))


def _seconds(programs: Sequence[ProgramCost]) -> Decimal | None:
    seconds = [each.total.seconds for each in programs]
    known = [_decimal(each.expected) for each in seconds if each is not None]
    return sum(known, Decimal(0)) if len(known) == len(seconds) else None


def _number(where: str, value: Any) -> Decimal:
    if type(value) in (int, float) and Decimal(str(value)).is_finite() and value >= 0:
        return Decimal(str(value))
    raise InputError(f"{where} is {value!r}", remedy="give a number from 0 on")


def _decimal(number: float) -> Decimal:
    return Decimal(str(number))


def _text(number: Decimal) -> str:
    return money_text(number)


def _signed(dollars: Decimal) -> str:
    return f"{'−' if dollars < 0 else '+'}${money_text(abs(dollars))}"

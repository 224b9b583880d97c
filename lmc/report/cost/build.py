"""Estimates of ``lmc.cost`` as the format ``lmc-cost``: calls folded by their places, prices, savings of passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

from lmc.cost.estimate import CallEstimate, Estimate, Figures
from lmc.cost.prices import MONEY, Price, Rate
from lmc.cost.ranges import CostRange
from lmc.ir.errors import LmcError, Location
from lmc.report.cost.model import (
    BreakFigures,
    CallFigures,
    CostFigures,
    CostPlace,
    CountRange,
    FailedRow,
    MoneyRange,
    PassSaving,
    PriceRate,
    PriceUsed,
    rounded,
)
from lmc.report.text import one_line, visible

_USES = re.compile(r"#[0-9]+|\*")
_BRANCHES = re.compile(r"/(?:[0-9]+|\$)(?=/|$)")
_ERROR = 300
_SHOWN_FAILURES = 20
"""Rows that are listed: others fail for the same few reasons."""

ShownFile = Callable[[str], str]
"""The name that a report shows of a file."""


def calls_of(estimate: Estimate, shown: ShownFile) -> tuple[CallFigures, ...]:
    """Return the calls of an estimate by place: uses and branches that differ in their number alone are one."""
    found: dict[str, list[CallEstimate]] = {}
    names = _folded(estimate.calls)
    for call in estimate.calls:
        found.setdefault(names[call.op_id], []).append(call)
    return tuple(
        CallFigures(
            op=visible(op),
            place=place_of(calls[0].location, shown),
            bases=tuple(sorted({basis for call in calls for basis in call.bases})),
            **_fields(sum((call.figures for call in calls), Figures())),
        )
        for op, calls in found.items()
    )


def figures_of(figures: Figures) -> CostFigures:
    """Return sums as the format has them."""
    return CostFigures(**_fields(figures))


def place_of(location: Location | None, shown: ShownFile) -> CostPlace | None:
    """Return a line of a program."""
    return None if location is None else CostPlace(file=visible(shown(location.file)), line=location.line)


def breaks_of(estimate: Estimate, shown: ShownFile) -> tuple[BreakFigures, ...]:
    """Return the graph breaks that rows may come to."""
    return tuple(
        BreakFigures(
            place=place_of(each.location, shown), cause=one_line(each.cause, _ERROR), runs=CountRange.of(each.runs)
        )
        for each in estimate.breaks
    )


def failed_of(estimate: Estimate) -> tuple[FailedRow, ...]:
    """Return the first rows that fail."""
    return tuple(
        FailedRow(row=number, error=one_line(_said(error), _ERROR))
        for number, error in estimate.failed[:_SHOWN_FAILURES]
    )


def saving_of(name: str, estimate: Estimate, without: Estimate) -> PassSaving:
    """Return the saving of a pass: expected figures ``without`` it, less those of the estimate."""
    own, other = estimate.total, without.total
    dollars: Decimal | None = None
    if own.dollars is not None and other.dollars is not None:
        dollars = MONEY.subtract(other.dollars.expected, own.dollars.expected)
    return PassSaving(
        name=name,
        calls=rounded(other.calls.expected - own.calls.expected),
        prompt=rounded(other.prompt.expected - own.prompt.expected),
        cached=rounded(other.cached.expected - own.cached.expected),
        output=rounded(other.output.expected - own.output.expected),
        usd=dollars,
        without=figures_of(other),
    )


def price_of(price: Price, date: str | None) -> PriceUsed:
    """Return the price of requests; ``date`` is that of bundled prices."""
    source, _, version = price.source.partition(" ")
    return PriceUsed(
        entry=visible(price.entry),
        source=source,
        version=version or None,
        date=date if version else None,
        input=_rate(price.input),
        output=_rate(price.output),
        cached=None if price.cached is None else _rate(price.cached),
        cache_write=None if price.cache_write is None else _rate(price.cache_write),
        reasoning=None if price.reasoning is None else _rate(price.reasoning),
        request=price.request,
    )


def _folded(calls: Iterable[CallEstimate]) -> Mapping[str, str]:
    """Return the folded id of each id. One that calls of several lines would share keeps the numbers of its uses."""
    found: dict[str, str] = {}
    ids = sorted({call.op_id: str(call.location) for call in calls}.items(), key=lambda each: _fold(each[0]))
    for folded, group in groupby(ids, key=lambda each: _fold(each[0])):
        members = list(group)
        is_one_line = len({line for _, line in members}) == 1
        for op_id, _ in members:
            found[op_id] = folded if is_one_line else _BRANCHES.sub("/*", op_id)
    return found


def _fold(op_id: str) -> str:
    return _BRANCHES.sub("/*", _USES.sub("", op_id))


def _fields(figures: Figures) -> dict[str, Any]:
    """Return the fields of ``CostFigures`` by name."""
    counts: dict[str, CostRange[float]] = {
        "calls": figures.calls,
        "prompt": figures.prompt,
        "cached": figures.cached,
        "cache_written": figures.cache_written,
        "output": figures.output,
        "reasoning": figures.reasoning,
    }
    usd = None if figures.dollars is None else MoneyRange.of(figures.dollars)
    return {**{name: CountRange.of(each) for name, each in counts.items()}, "usd": usd}


def _rate(rate: Rate) -> PriceRate:
    return PriceRate(base=rate.base, tiers=rate.tiers)


def _said(error: Exception) -> str:
    return error.cause if isinstance(error, LmcError) else f"{type(error).__name__}: {error}"

"""Changes against a baseline as short texts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from lmc.report.cost.amounts import dollars, number
from lmc.report.cost.baseline import StoredFigures
from lmc.report.cost.comparison import ComparedCall, ComparedProgram, percent

_SMALLEST = Decimal("1e-10")
"""Dollars: smaller ones come from the digits of other figures."""


def arrow(change: Decimal, before: Decimal) -> str:
    """Return a change as a share of what was there before, and in dollars: ``▼58 % (−$0.049)``."""
    if abs(change) < _SMALLEST:
        return "±0 %"
    share = percent(change, before)
    shown = "" if share is None else _share(share)
    return f"{'▼' if change < 0 else '▲'}{shown} ({_signed(change)})"


def tokens(calls: Sequence[ComparedCall]) -> str:
    """Return the change of requests and tokens, for calls whose dollars are not known: ``in ▲29 %, out ▼10 %``."""
    pairs = [(StoredFigures.of(call.now) if call.now is not None else None, call.was) for call in calls]
    found: list[str] = []
    for name, shown in (("calls", "calls"), ("prompt", "in"), ("cached", "cached"), ("output", "out")):
        now, was = (
            sum((Decimal(str(getattr(each[side], name))) for each in pairs if each[side] is not None), Decimal(0))
            for side in (0, 1)
        )
        if now != was:
            share = percent(now - was, was)
            size = f"{number(float(abs(now - was)))}" if share is None else _share(share)
            found.append(f"{shown} {'▼' if now < was else '▲'}{size}")
    return ", ".join(found) or "±0 tokens"


def versus(call: ComparedCall) -> str:
    """Return the change of a call: of its dollars, or of its tokens where these are not known."""
    name = "" if call.kind in {"same", "changed"} else f"{call.kind} "
    if call.kind == "renamed":
        name = f"renamed from {call.before} "
    if call.change is None:
        return name.rstrip() if call.kind in {"added", "removed"} else name + tokens([call])
    was = (call.was.usd if call.was is not None else None) or Decimal(0)
    return name + arrow(call.change.own + call.change.prices, was)


def total_change(program: ComparedProgram) -> str:
    """Return the change of a program: of its dollars, or of its tokens where these are not known."""
    if program.was is None:
        return "new"
    change = program.change
    return (
        tokens(program.calls)
        if change is None
        else arrow(change.own + change.prices, program.was.total.usd or Decimal(0))
    )


def causes(program: ComparedProgram) -> str:
    """Return the change of a program by its causes: the programs, and apart from them the prices."""
    if program.was is None:
        return "not in the baseline"
    change = program.change
    if change is None:
        return f"your change {tokens(program.calls)}; dollars not known: a price is missing now or in the baseline"
    was = program.was.total.usd or Decimal(0)
    parts = [
        (change.calls, "calls"),
        (change.prompt, "prompts"),
        (change.hits, "cache hits"),
        (change.output, "outputs"),
        (change.other, "other"),
        (change.model, "model"),
    ]
    named = [f"{cause} {_signed(value)}" for value, cause in parts if abs(value) >= _SMALLEST]
    text = f"your change {arrow(change.own, was)}" + (f" ({', '.join(named)})" if named else "")
    return text + (f"; prices {arrow(change.prices, was)}" if abs(change.prices) >= _SMALLEST else "")


def earlier(program: ComparedProgram) -> str:
    """Return the earlier name or model of a program, in front of its change; empty if both are the same."""
    if program.before is None:
        return ""
    name, model = program.before
    return f"model changed from {model}, " if model != program.program.model else f"renamed from {name}, "


def _share(share: Decimal) -> str:
    return f"{abs(share):.0f} %" if abs(share) >= 1 else f"{abs(share):.1g} %"


def _signed(change: Decimal) -> str:
    return f"{'−' if change < 0 else '+'}{dollars(abs(change))}"

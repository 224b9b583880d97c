"""Reports of costs for tests."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from lmc.report.cost.model import (
    CallFigures,
    CostFigures,
    CostHint,
    CostPlace,
    CostReport,
    CountRange,
    LongestChain,
    MoneyRange,
    PriceRate,
    PriceUsed,
    ProgramCost,
    RowsUsed,
)

PRICE = PriceUsed(
    entry="openai/m",
    source="genai-prices",
    version="0.2.3",
    date="2026-10-01",
    input=PriceRate(base=Decimal(2)),
    output=PriceRate(base=Decimal(8)),
    cached=PriceRate(base=Decimal("0.5")),
)


def exactly(number: float) -> CountRange:
    return CountRange(least=number, expected=number, most=number)


def cost(figures: Mapping[str, float], price: PriceUsed) -> Decimal:
    """The dollars of figures at flat prices."""
    prompt, cached, output = (Decimal(str(figures.get(name, 0))) for name in ("prompt", "cached", "output"))
    rate = price.cached or price.input
    return ((prompt - cached) * price.input.base + cached * rate.base + output * price.output.base) / 10**6


def figures(price: PriceUsed | None = PRICE, **values: float) -> dict[str, Any]:
    names = ("calls", "prompt", "cached", "cache_written", "output", "reasoning")
    dollars = None if price is None else cost(values, price)
    usd = None if dollars is None else MoneyRange(least=dollars, expected=dollars, most=dollars)
    return {**{name: exactly(values.get(name, 0)) for name in names}, "usd": usd}


def program(
    calls: Mapping[str, Mapping[str, float]],
    *,
    name: str = "judge.py:judge",
    model: str = "openai:m",
    price: PriceUsed | None = PRICE,
    digest: str = "ab" * 32,
    line: int = 7,
    is_whole: bool = True,
    hints: tuple[CostHint, ...] = (),
) -> ProgramCost:
    """A program whose calls have these figures."""
    keys = ("calls", "prompt", "cached", "output")
    total = {key: sum(each.get(key, 0) for each in calls.values()) for key in keys}
    return ProgramCost(
        program=name,
        model=model,
        rows=RowsUsed(file="rows.jsonl", digest=digest, count=10),
        level="O2",
        price=price,
        unpriced=None if price else "it has none",
        tokens="exact",
        calls=tuple(
            CallFigures(op=op, place=CostPlace(file="judge.py", line=line + at), **figures(price, **values))
            for at, (op, values) in enumerate(calls.items())
        ),
        total=CostFigures(**figures(price, **total)),
        critical_path=LongestChain(calls=exactly(2)),
        hints=hints,
        is_whole=is_whole,
    )


def report(*programs: ProgramCost) -> CostReport:
    return CostReport.of(list(programs), lmc="0.1.0", prices="0.2.3")


_texts = st.text(max_size=200) | st.sampled_from(
    ["|", "`x`", "<script>alert(1)</script>", "@someone #12", "![a](https://x.example)", "-->", "</details>", "a\nb"]
)


@st.composite
def reports(draw: st.DrawFn) -> CostReport:
    """Reports whose texts are any."""
    programs: list[ProgramCost] = []
    for number in range(draw(st.integers(0, 3))):
        names = draw(st.lists(_texts, max_size=30, unique=True))
        calls = {op: {"calls": 1 + at % 3, "prompt": 100 * at, "output": at} for at, op in enumerate(names)}
        hints = tuple(
            CostHint(code="LMC101", message=text, place=CostPlace(file=draw(_texts), line=draw(st.integers(1, 99))))
            for text in draw(st.lists(_texts, max_size=4))
        )
        price = draw(st.sampled_from([PRICE, None]))
        found = program(calls, name=f"{number}{draw(_texts)}", model=draw(_texts), price=price, hints=hints)
        programs.append(found)
    return report(*programs)

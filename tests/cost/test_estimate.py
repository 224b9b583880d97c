"""Estimates of programs: sums of ranges, dollars of single requests, what is unknown."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.cost.caching import CacheRule, SharedPrefixes, Ways, rule_of
from lmc.cost.estimate import Estimate, Estimator, Figures, dollars_of, estimate_rows
from lmc.cost.prices import Price, Rate, Unpriced
from lmc.cost.ranges import CostRange
from lmc.cost.requests import BreakReached, RowRequests
from lmc.cost.texts import counting
from lmc.cost.walk import WalkFacts, walk_row
from lmc.ir.builder import Builder
from lmc.ir.dialects.core_ops import ContextOp, ExtendOp, GenOp, ReturnOp
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.module import Function, Module
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.types import CTX, TEXT
from lmc.ir.usage import Usage
from tests.flow_strategies import flow_programs
from tests.program_strategies import Program

_INFO = EngineInfo("toy", 1 << 20)
_PRICE = Price(
    "m",
    "test",
    Rate(Decimal(3), ((200, Decimal(6)),)),
    Rate(Decimal(15)),
    Rate(Decimal("0.3")),
    Rate(Decimal("3.75"), ((200, Decimal("7.5")),)),
)


def _estimate(program: Program, rows: int, price: Price | Unpriced, rule: CacheRule) -> Estimate:
    facts = WalkFacts(counting(toy_tokenizer()), _INFO, program.constraints)
    walked = [(program.module, walk_row(program.module, program.inputs, facts)) for _ in range(rows)]
    return estimate_rows(walked, price, SharedPrefixes(rule, facts.tokenizer))


def _ranges(figures: Figures) -> list[tuple[Fraction, Fraction, Fraction | None]]:
    assert figures.dollars is not None
    return [
        (Fraction(each.least), Fraction(each.expected), None if each.most is None else Fraction(each.most))
        for each in (figures.calls, figures.prompt, figures.cached, figures.output, figures.dollars)
    ]


@settings(max_examples=40)
@given(flow_programs(), st.sampled_from([CacheRule(0), CacheRule(1), CacheRule(16, 16)]))
def test_measured_tokens_and_dollars_lie_inside(program: Program, rule: CacheRule) -> None:
    outcome = interpret(
        program.module, program.inputs, ToyEngine(), hosts=program.hosts, constraints=program.constraints
    )
    total = _estimate(program, 1, _PRICE, rule).total
    usage = outcome.usage
    assert usage.calls in total.calls
    assert usage.prompt_tokens in total.prompt
    assert usage.cached_tokens in total.cached
    assert usage.generated_tokens in total.output
    assert total.dollars is not None
    # Each request has at least the rate of the lowest tier, and at most that of the highest.
    lowest = Decimal(usage.prompt_tokens * 3 + usage.generated_tokens * 15) / 10**6
    assert total.dollars.most is None or total.dollars.most >= lowest


@settings(max_examples=40)
@given(flow_programs(), st.integers(0, 3))
def test_rows_that_share_nothing_add_up(program: Program, rows: int) -> None:
    once = _estimate(program, 1, _PRICE, CacheRule(0)).total
    several = _estimate(program, rows, _PRICE, CacheRule(0)).total
    for one, of_all in zip(_ranges(once), _ranges(several), strict=True):
        least, expected, most = one
        assert of_all[0] == least * rows
        assert abs(of_all[1] - expected * rows) < Fraction(1, 10**6)
        assert of_all[2] == (None if most is None and rows else (most or 0) * rows)


_tokens = st.integers(0, 500)
_rates = st.decimals(0, 100, places=2)


@st.composite
def _figures(draw: st.DrawFn) -> CostRange[int]:
    least, expected, most = sorted(draw(st.tuples(_tokens, _tokens, _tokens)))
    return CostRange(least, expected, draw(st.sampled_from([most, None])))


def _longer(figure: CostRange[int], more: int) -> CostRange[int]:
    return figure.map(lambda tokens: tokens + more)


def _never_less(one: CostRange[Decimal], other: CostRange[Decimal]) -> bool:
    most = other.most is None or (one.most is not None and one.most <= other.most)
    return one.least <= other.least and one.expected <= other.expected and most


@given(_figures(), _figures(), st.integers(0, 300), st.sampled_from(["prompt", "output"]))
def test_longer_texts_never_cost_less(prompt: CostRange[int], output: CostRange[int], more: int, which: str) -> None:
    nothing = CostRange.exactly(0)
    before = dollars_of(_PRICE, prompt, nothing, output)
    longer = _longer(prompt, more) if which == "prompt" else prompt
    after = dollars_of(_PRICE, longer, nothing, _longer(output, more) if which == "output" else output)
    assert before is not None
    assert after is not None
    assert _never_less(before, after)


@given(_figures(), _figures(), _rates, _rates)
def test_higher_prices_never_cost_less(
    prompt: CostRange[int], output: CostRange[int], rate: Decimal, more: Decimal
) -> None:
    cached = CostRange(0, prompt.expected // 2, prompt.most)
    low = Price("m", "test", Rate(rate), Rate(rate), Rate(rate / 10), Rate(rate))
    high = replace(low, input=Rate(rate + more), output=Rate(rate + more))
    before, after = (dollars_of(price, prompt, cached, output) for price in (low, high))
    assert before is not None
    assert after is not None
    assert _never_less(before, after)


_rate = st.builds(
    lambda base, more, tiers: Rate(base, ((200, base + more),) if tiers else ()), _rates, _rates, st.booleans()
)
_prices = st.builds(
    Price,
    entry=st.just("m"),
    source=st.just("test"),
    input=_rate,
    output=_rate,
    cached=st.none() | _rate,
    cache_write=_rate,
    reasoning=st.none() | _rate,
    request=st.just(Decimal("0.01")),
)


@settings(max_examples=300)
@given(_figures(), _figures(), st.just(_PRICE) | _prices, st.booleans(), st.booleans(), st.data())
def test_the_dollars_of_a_request_lie_in_its_range(
    prompt: CostRange[int], output: CostRange[int], price: Price, keeps: bool, reasons: bool, data: st.DataObject
) -> None:
    """Users may write any prices: hits that cost more than input, and reasoning that costs less than output."""
    tokens = data.draw(st.integers(prompt.least, prompt.most or prompt.expected + 500))
    generated = data.draw(st.integers(output.least, output.most or output.expected + 500))
    cached = data.draw(st.integers(0, tokens)) if keeps else 0
    written = data.draw(st.integers(0, tokens - cached)) if keeps else 0
    hidden = data.draw(st.integers(0, generated)) if reasons else 0
    nothing = CostRange.exactly(0)
    hits = CostRange(0, prompt.expected // 2, prompt.most) if keeps else nothing
    puts = CostRange(0, prompt.expected - hits.expected, prompt.most) if keeps else nothing
    thoughts = CostRange(0, output.expected, output.most) if reasons else nothing
    found = dollars_of(price, prompt, hits, output, written=puts, reasoning=thoughts)
    assert found is not None
    cost = price.cost(Usage(tokens, cached, generated, 1, written, hidden))
    assert cost is not None
    assert cost in found


def test_nothing_bounds_figures_that_leave_something_out() -> None:
    """A break, or a row that fails, may hide any number of calls; without a price they are no dollars at all."""
    prefixes = SharedPrefixes(CacheRule(0), counting(toy_tokenizer()))
    broken = RowRequests((), (BreakReached(None, "eval", CostRange(1.0, 1.0, 1.0)),))
    for row in (broken, RowRequests((), (), ValueError("no"))):
        for price in (_PRICE, Unpriced("m", "why")):
            found = estimate_rows([(_empty_module(), row)], price, prefixes).total
            assert (found.calls.most, found.prompt.most, found.output.most) == (None, None, None)
            assert found.cached == CostRange(0.0, 0.0, 0.0)
            assert (found.dollars is None) == isinstance(price, Unpriced)
            assert found.dollars is None or found.dollars.most is None


def test_a_fallback_without_a_price_has_no_bound() -> None:
    build = Builder(())
    (empty,) = build.emit(ContextOp, [CTX])
    (asked,) = build.emit(ExtendOp, [CTX], context=empty, text=("a b c",))
    last, _ = build.emit(GenOp, [CTX, TEXT], context=asked, id="first", max_tokens=10)
    build.emit(ReturnOp, context=last)
    module = Module("one", (Function("one", build.block()),))
    facts = WalkFacts(counting(toy_tokenizer()), _INFO)
    dear = replace(_PRICE, output=Rate(Decimal(99)))
    found: list[Decimal | None] = []
    for others in ((), (dear,), (dear, Unpriced("m", "why"))):
        prefixes = SharedPrefixes(CacheRule(0), facts.tokenizer, [CacheRule(1, writes=True)])
        estimator = Estimator(_PRICE, prefixes, None, others)
        estimator.add(module, walk_row(module, {}, facts))
        total = estimator.estimate().total
        assert (total.cached.least, total.cached.most) == (0, total.prompt.most)
        assert total.dollars is not None
        found.append(total.dollars.most)
    alone, dearer, unpriced = found
    assert alone is not None
    assert dearer is not None
    assert dearer > Decimal(10 * 99) / 10**6 > alone
    assert unpriced is None


def _empty_module() -> Module:
    build = Builder(())
    (empty,) = build.emit(ContextOp, [CTX])
    build.emit(ReturnOp, context=empty)
    return Module("empty", (Function("empty", build.block()),))


def test_a_model_without_a_price_has_no_dollars() -> None:
    row = RowRequests((), (), ValueError("no"))
    found = estimate_rows([], Unpriced("m", "why"), SharedPrefixes(CacheRule(0), counting(toy_tokenizer())))
    assert found.total.dollars == CostRange.exactly(Decimal(0)), "no request costs nothing"
    assert found.is_whole
    assert row.error is not None


@settings(max_examples=20)
@given(flow_programs())
def test_requests_without_a_price_have_no_dollars(program: Program) -> None:
    found = _estimate(program, 1, Unpriced("m", "why"), CacheRule(0))
    assert all(call.figures.dollars is None for call in found.calls)
    assert (found.total.dollars is None) == (bool(found.calls) or not found.is_whole)
    assert sum((each.calls.expected for each in found.by_line().values()), 0.0) == found.total.calls.expected


def test_prefixes_are_found_by_the_rule_of_the_target() -> None:
    tokenizer = counting(toy_tokenizer())
    prompt, other = tuple(range(1, 2001)), (*range(1, 1501), *[7] * 500)
    length = CostRange.exactly(2000)

    def cached(target: Target) -> list[CostRange[int]]:
        prefixes = SharedPrefixes(rule_of(target), tokenizer)
        return [prefixes.cached(each, length) for each in (prompt, other, prompt)]

    assert cached(Target("openai", "m")) == [
        CostRange(0, 0, 1920),
        CostRange(0, 1408, 1920),
        CostRange(0, 1920, 1920),
    ]
    assert cached(Target("builtin"))[1:] == [CostRange(0, 1500, 2000), CostRange(0, 2000, 2000)]
    assert cached(Target("anthropic", "m")) == [CostRange.exactly(0)] * 3


_prompts = st.lists(st.lists(st.integers(1, 2), max_size=40).map(tuple), max_size=8)


@given(_prompts, st.lists(st.integers(1, 2), max_size=20).map(tuple))
def test_what_prompts_share_is_exact(prompts: list[tuple[int, ...]], answer: tuple[int, ...]) -> None:
    prefixes = SharedPrefixes(CacheRule(1, outputs=True), counting(toy_tokenizer()))
    kept: list[tuple[int, ...]] = []
    for prompt in prompts:
        shared = max((_shared(prompt, other) for other in kept), default=0)
        assert prefixes.cached(prompt, CostRange.exactly(len(prompt))).expected == shared
        prefixes.generated(prompt, answer)
        kept += [prompt, (*prompt, *answer)]


_ways = st.dictionaries(st.integers(1, 3), st.booleans(), max_size=2).map(lambda sides: frozenset(sides.items()))
_sent = st.tuples(
    st.lists(st.integers(1, 3), min_size=1, max_size=4), _ways, st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])
)


def _ways_of(sent: list[tuple[list[int], Ways, float]], begins: list[int]) -> list[tuple[Ways, float]]:
    """The ways on which a beginning was sent first: those that include another one add nothing."""
    found: list[tuple[Ways, float]] = []
    for blocks, ways, runs in sent:
        if blocks[: len(begins)] == begins and (runs == 1.0 or not any(other <= ways for other, _ in found)):
            found.append((ways, runs))
    return found


@given(st.lists(st.lists(_sent, max_size=6), max_size=4))
def test_prompts_that_may_not_be_sent_count_where_that_is_likely(
    rows: list[list[tuple[list[int], Ways, float]]],
) -> None:
    prefixes = SharedPrefixes(CacheRule(1), counting(toy_tokenizer()))
    earlier: list[list[tuple[list[int], Ways, float]]] = []
    for row in rows:
        own: list[tuple[list[int], Ways, float]] = []
        for blocks, ways, runs in row:
            found = 0
            for length in range(1, len(blocks) + 1):
                begins = blocks[:length]
                missed = math.prod(1 - chance for sent in earlier for _, chance in _ways_of(sent, begins))
                for other, chance in _ways_of(own, begins):
                    if other <= ways or chance == 1.0:
                        missed = 0.0
                    elif not any((number, not side) in ways for number, side in other):
                        missed *= 1 - chance
                if missed > 0.5 + 1e-9:
                    break
                found = 16 * length
            prompt = tuple(token for block in blocks for token in [block] * 16)
            share = prefixes.cached(prompt, CostRange.exactly(len(prompt)), ways, runs).expected
            assert share == found
            own.append((blocks, ways, runs))
        prefixes.end_row()
        earlier.append(own)


def _shared(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_providers_keep_no_outputs() -> None:
    tokenizer = counting(toy_tokenizer())
    for rule, found in ((CacheRule(1), 5), (CacheRule(1, outputs=True), 8)):
        prefixes = SharedPrefixes(rule, tokenizer)
        prefixes.cached((1, 2, 3, 4, 5), CostRange.exactly(5))
        prefixes.generated((1, 2, 3, 4, 5), (6, 7, 8))
        assert prefixes.cached(tuple(range(1, 11)), CostRange.exactly(10)).expected == found


def test_dollars_count_parts_of_a_token_of_mean_lengths() -> None:
    prompt, output = CostRange.exactly(100), CostRange(0, 2, 9)
    found = dollars_of(_PRICE, prompt, CostRange.exactly(0), output, mean=2.4)
    assert found is not None
    assert found.expected == Decimal("0.000336")
    assert found.least < found.expected

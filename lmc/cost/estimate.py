"""The cost of a program on rows, before it runs: for each call, each line, and in all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce

from lmc.cost.caching import SharedPrefixes
from lmc.cost.hints import FoundHint, HintFinder
from lmc.cost.prices import MONEY, Price, Unpriced
from lmc.cost.ranges import CostRange
from lmc.cost.requests import Basis, BreakReached, EstimatedRequest, RowRequests
from lmc.ir.errors import Location
from lmc.ir.module import Module
from lmc.ir.usage import Usage

_NONE = CostRange[float].exactly(0.0)
_NO_TOKENS = CostRange[int].exactly(0)
_PART = Decimal("0.001")
"""The part of a token that dollars count, of mean lengths."""
_FREE = CostRange[Decimal].exactly(Decimal(0))
_LIKELY = 0.5
"""The probability from which on a call is expected in a chain of calls."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over requests. ``dollars`` None: a request has no price."""

    calls: CostRange[float] = _NONE
    prompt: CostRange[float] = _NONE
    cached: CostRange[float] = _NONE
    cache_written: CostRange[float] = _NONE
    output: CostRange[float] = _NONE
    reasoning: CostRange[float] = _NONE
    dollars: CostRange[Decimal] | None = _FREE

    def without_bounds(self) -> Figures:
        """Return these figures as the least of others. A target without a cache, or without reasoning, has none."""
        counts = {name: getattr(self, name) for name in ("calls", "prompt", "output")}
        parts = {name: getattr(self, name) for name in ("cached", "cache_written", "reasoning")}
        found = counts | {name: each for name, each in parts.items() if each.most != 0}
        dollars = None if self.dollars is None else replace(self.dollars, most=None)
        return replace(self, **{name: replace(each, most=None) for name, each in found.items()}, dollars=dollars)

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
            self.output + other.output,
            self.reasoning + other.reasoning,
            None if self.dollars is None or other.dollars is None else _sum(self.dollars, other.dollars),
        )


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The figures of the calls at one place of a program. ``bases`` are those of the expected outputs."""

    op_id: str
    location: Location | None
    figures: Figures
    bases: tuple[Basis, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a program on rows.

    Attributes:
        calls: by op id, in the order in which rows come to them.
        breaks: the graph breaks that rows may come to: what is behind them is in no figure.
        failed: rows that fail, whatever the model answers, and the errors.
        critical_path: the calls of the longest chain in a row that wait for each other.
        price: that of each request, or why there is none.
        hints: what costs more than it has to, where it was looked for.
    """

    rows: int
    calls: tuple[CallEstimate, ...]
    breaks: tuple[BreakReached, ...]
    failed: tuple[tuple[int, Exception], ...]
    critical_path: CostRange[float]
    price: Price | Unpriced
    hints: tuple[FoundHint, ...] = ()

    @property
    def total(self) -> Figures:
        """The figures of all calls; nothing bounds them where something is not in them."""
        found = sum((call.figures for call in self.calls), Figures())
        if self.is_whole:
            return found
        found = found.without_bounds()
        return replace(found, dollars=None) if isinstance(self.price, Unpriced) else found

    @property
    def is_whole(self) -> bool:
        """False: something is not in the figures, so that they are the least of what it costs."""
        return not (self.breaks or self.failed)

    def by_line(self) -> dict[str, Figures]:
        """Return the figures of each line that makes calls, as ``FILE:LINE``."""
        found: dict[str, Figures] = {}
        for call in self.calls:
            line = str(call.location)
            found[line] = found.get(line, Figures()) + call.figures
        return found


@dataclass
class Estimator:
    """Adds up rows, which are sent in this order: the prefixes that they share are cached. ``finder`` gives hints.

    ``fallbacks`` are the prices of targets that answer where the one with ``price`` fails: they widen the range.
    """

    price: Price | Unpriced
    prefixes: SharedPrefixes
    finder: HintFinder | None = None
    fallbacks: Sequence[Price | Unpriced] = ()
    _rows: int = 0
    _figures: dict[str, tuple[EstimatedRequest, Figures]] = field(
        default_factory=dict[str, tuple[EstimatedRequest, Figures]]
    )
    _bases: dict[str, set[Basis]] = field(default_factory=dict[str, set[Basis]])
    _breaks: dict[Location | None, BreakReached] = field(default_factory=dict[Location | None, BreakReached])
    _failed: list[tuple[int, Exception]] = field(default_factory=list[tuple[int, Exception]])
    _path: CostRange[float] = _NONE

    def add(self, module: Module, row: RowRequests, number: int | None = None) -> None:
        """Add a row, which ``module`` runs. ``number`` is that of the row in its file; None: it is the next one."""
        if row.error is not None:
            self._failed.append((self._rows if number is None else number, row.error))
        self._rows += 1
        if self.finder is not None:
            self.finder.add_row(module, row)
        for each in row.breaks:
            known = self._breaks.get(each.location)
            runs = each.runs if known is None else each.runs + known.runs
            self._breaks[each.location] = BreakReached(each.location, each.cause, runs)
        prefixes = deque(sorted(row.prefixes, key=lambda each: each.place))
        for place, request in enumerate(row.requests):
            while prefixes and prefixes[0].place <= place:
                prefix = prefixes.popleft()
                self.prefixes.computed(prefix.prompt, prefix.ways, min(prefix.runs.expected, 1.0))
            op_id = request.op.id
            first, figures = self._figures.get(op_id, (request, Figures()))
            self._figures[op_id] = (first, figures + self._of(request))
            self._bases.setdefault(op_id, set()).add(request.basis)
        self.prefixes.end_row()
        self._path = _longer(self._path, longest_chain(row))

    def estimate(self) -> Estimate:
        """Return the sums of all rows."""
        calls = tuple(
            CallEstimate(op_id, first.location, figures, tuple(sorted(self._bases[op_id])))
            for op_id, (first, figures) in self._figures.items()
        )
        breaks = tuple(self._breaks.values())
        hints = () if self.finder is None else self.finder.hints()
        path = replace(self._path, most=None) if breaks or self._failed else self._path
        return Estimate(self._rows, calls, breaks, tuple(self._failed), path, self.price, hints)

    def _of(self, request: EstimatedRequest) -> Figures:
        runs = request.runs
        chance = min(runs.expected, 1.0)
        cached = self.prefixes.cached(request.prompt, request.tokens, request.ways, chance)
        self.prefixes.generated(request.prompt, request.answer, request.ways, chance)
        written = self.prefixes.written(request.tokens, cached)
        output = request.mean_output

        def priced(price: Price | Unpriced) -> CostRange[Decimal] | None:
            if isinstance(price, Unpriced):
                return None
            return dollars_of(
                price,
                request.tokens,
                cached,
                request.output,
                written=written,
                reasoning=request.reasoning,
                mean=output.expected,
            )

        dollars = priced(self.price)
        if dollars is not None and self.fallbacks:
            dollars = _widened(dollars, [priced(each) for each in self.fallbacks])
        if self.finder is not None:
            self.finder.add(request, self.prefixes.shared, cached, dollars)
        return Figures(
            runs,
            runs * request.tokens.map(float),
            runs * cached.map(float),
            runs * written.map(float),
            runs * output,
            runs * request.reasoning.map(float),
            None if dollars is None else _times(runs, dollars),
        )


def estimate_rows(
    rows: Iterable[tuple[Module, RowRequests]],
    price: Price | Unpriced,
    prefixes: SharedPrefixes,
    finder: HintFinder | None = None,
) -> Estimate:
    """Return the estimate of rows, each with the module that runs it, and with ``finder`` its hints."""
    estimator = Estimator(price, prefixes, finder)
    for module, row in rows:
        estimator.add(module, row)
    return estimator.estimate()


def dollars_of(
    price: Price,
    prompt: CostRange[int],
    cached: CostRange[int],
    output: CostRange[int],
    *,
    written: CostRange[int] = _NO_TOKENS,
    reasoning: CostRange[int] = _NO_TOKENS,
    mean: float | None = None,
) -> CostRange[Decimal] | None:
    """Return the dollars of one request; None: it has no price. ``mean`` is the expected output before it is rounded.

    At least, as much as possible is cached, and nothing is written to a cache, unless other parts are cheaper. At most,
    everything is written that a cache takes, at the highest rate: None where the price of that is not known.
    """
    least = _least(price, prompt.least, cached, output.least, written=written, reasoning=reasoning)

    def with_output(tokens: int) -> Decimal | None:
        hidden = min(reasoning.expected, tokens)
        return price.cost(Usage(prompt.expected, cached.expected, tokens, 1, written.expected, hidden))

    expected = with_output(output.expected if mean is None else int(mean))
    longer = None if mean is None or mean == int(mean) else with_output(int(mean) + 1)
    if expected is not None and mean is not None and longer is not None:
        part = Decimal(mean - int(mean)).quantize(_PART)
        expected = MONEY.add(expected, MONEY.multiply(MONEY.subtract(longer, expected), part))
    most: Decimal | None = None
    if prompt.most is not None and output.most is not None:
        most = price.most(prompt.most, output.most, keeps=cached.most != 0)
    if least is None or expected is None:
        return None
    least = min(least, expected)
    return CostRange(least, expected, most if most is None else max(most, expected))


def _widened(dollars: CostRange[Decimal], others: Sequence[CostRange[Decimal] | None]) -> CostRange[Decimal]:
    """Return the dollars of a request that costs one of ``others`` where another target answers; None: unpriced."""
    known = [dollars, *(each for each in others if each is not None)]
    mosts = [each.most for each in known if each.most is not None]
    is_bounded = len(mosts) == len(others) + 1
    return CostRange(min(each.least for each in known), dollars.expected, max(mosts) if is_bounded else None)


def _least(
    price: Price,
    prompt: int,
    cached: CostRange[int],
    output: int,
    *,
    written: CostRange[int],
    reasoning: CostRange[int],
) -> Decimal | None:
    """Return the least dollars of a request with so many tokens."""
    hit = _at_most(prompt, cached.most)
    least = price.cost(Usage(prompt, hit, output, 1))
    rates = [price.cached or price.input, price.input, price.cache_write or price.input]
    is_usual = [each.at(prompt) for each in rates] == sorted(each.at(prompt) for each in rates)
    if least is None or (is_usual and price.reasoning is None):
        return least
    hidden = _at_most(output, reasoning.most)
    usages = [
        Usage(prompt, hits, output, 1, put, thought)
        for hits in {0, hit}
        for put in {0, _at_most(prompt - hits, written.most)}
        for thought in {0, hidden}
    ]
    return min([least, *(cost for usage in usages if (cost := price.cost(usage)) is not None)])


def _at_most(tokens: int, most: int | None) -> int:
    return tokens if most is None else min(tokens, most)


def longest_chain(row: RowRequests) -> CostRange[float]:
    """Return the number of calls in the longest chain of a row whose calls wait for each other."""
    chains: list[CostRange[float]] = []
    for request in row.requests:
        places = [each for place in request.after for each in _waited_for(row, place)]
        before = reduce(_longer, (chains[place] for place in places), _NONE)
        runs = request.runs
        most = None if request.is_endless else float(runs.most != 0)
        chains.append(before + CostRange(float(runs.least >= 1), float(runs.expected >= _LIKELY), most))
    return reduce(_longer, chains, _NONE)


def _waited_for(row: RowRequests, place: int) -> Iterator[int]:
    """Yield the requests at a place: itself, or those that a prefix waits for."""
    if place >= 0:
        yield place
        return
    for each in row.prefixes[-place - 1].after:
        yield from _waited_for(row, each)


def _longer(one: CostRange[float], other: CostRange[float]) -> CostRange[float]:
    most = None if one.most is None or other.most is None else max(one.most, other.most)
    return CostRange(max(one.least, other.least), max(one.expected, other.expected), most)


def _sum(left: CostRange[Decimal], right: CostRange[Decimal]) -> CostRange[Decimal]:
    most = None if left.most is None or right.most is None else MONEY.add(left.most, right.most)
    return CostRange(MONEY.add(left.least, right.least), MONEY.add(left.expected, right.expected), most)


def _times(runs: CostRange[float], dollars: CostRange[Decimal]) -> CostRange[Decimal]:
    """Return the dollars of a request that is made so often."""
    if runs.most == 0 or dollars.most == 0:
        most: Decimal | None = Decimal(0)
    elif runs.most is None or dollars.most is None:
        most = None
    else:
        most = MONEY.multiply(Decimal(runs.most), dollars.most)
    least = MONEY.multiply(Decimal(runs.least), dollars.least)
    return CostRange(least, MONEY.multiply(Decimal(runs.expected), dollars.expected), most)

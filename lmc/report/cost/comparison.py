"""A report beside its baseline: what a change of the programs costs, apart from what a change of prices costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from lmc.cost.prices import MONEY
from lmc.report.cost.baseline import CostBaseline, StoredFigures, StoredProgram
from lmc.report.cost.model import CallFigures, CostReport, PriceRate, PriceUsed, ProgramCost

CallChange = Literal["same", "changed", "added", "removed", "renamed"]
_ZERO = Decimal(0)
_MILLION = Decimal(10**6)
_NOTHING = StoredFigures(calls=0, prompt=0, cached=0, cache_written=0, output=0, reasoning=0, usd=_ZERO)


@dataclass(frozen=True, slots=True)
class DollarChange:
    """Dollars more or less than in the baseline, by cause; all but ``prices`` are ``own``.

    ``model`` comes from the prices of another model, the others are at the prices of the baseline. ``other`` is for
    cache writes, reasoning and tiers of prices. ``prices`` comes from other prices, or other price data, for the same
    requests.
    """

    calls: Decimal = _ZERO
    prompt: Decimal = _ZERO
    hits: Decimal = _ZERO
    output: Decimal = _ZERO
    other: Decimal = _ZERO
    prices: Decimal = _ZERO
    model: Decimal = _ZERO

    @property
    def own(self) -> Decimal:
        """The change that comes from the programs."""
        return _sum((self.calls, self.prompt, self.hits, self.output, self.other, self.model))

    def __add__(self, other: DollarChange) -> DollarChange:
        return DollarChange(
            *(
                MONEY.add(getattr(self, name), getattr(other, name))
                for name in ("calls", "prompt", "hits", "output", "other", "prices", "model")
            )
        )


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """A call beside that of the baseline. ``before`` is its earlier id, if it was renamed.

    ``now`` None: it was removed. ``change`` None: one of both has no price.
    """

    op: str
    kind: CallChange
    before: str | None
    now: CallFigures | None
    was: StoredFigures | None
    change: DollarChange | None


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """A program beside its baseline. ``was`` None: it is new, so all of its calls are added.

    ``before`` is its earlier program and model, if its file was renamed or its model changed.
    """

    program: ProgramCost
    was: StoredProgram | None
    calls: tuple[ComparedCall, ...]
    before: tuple[str, str] | None = None

    @property
    def change(self) -> DollarChange | None:
        """The change of all calls; None where one is not known."""
        return _total(call.change for call in self.calls)


@dataclass(frozen=True, slots=True)
class ComparedReport:
    """A report beside its baseline. ``removed`` are the programs that the report lacks, by name and model."""

    report: CostReport
    programs: tuple[ComparedProgram, ...]
    removed: Mapping[tuple[str, str], StoredProgram] = field(default_factory=dict[tuple[str, str], StoredProgram])

    def find(self, program: ProgramCost) -> ComparedProgram:
        """Return a program of the report beside its baseline."""
        return next(each for each in self.programs if each.program.key == program.key)

    def only(self, program: ProgramCost) -> ComparedReport:
        """Return the comparison of one program."""
        return ComparedReport(self.report, (self.find(program),))

    @property
    def stored(self) -> tuple[StoredProgram, ...]:
        """The programs of the baseline that are compared: those of the report and the removed ones."""
        return *(each.was for each in self.programs if each.was is not None), *self.removed.values()

    @property
    def before(self) -> Decimal | None:
        """The dollars of ``stored``; None where one has no price."""
        found = [each.total.usd for each in self.stored]
        return None if None in found else _sum(each for each in found if each is not None)

    @property
    def change(self) -> DollarChange | None:
        """The change of all programs, with the removed ones; None where one is not known."""
        gone = (
            None if each.total.usd is None else DollarChange(calls=MONEY.minus(each.total.usd))
            for each in self.removed.values()
        )
        return _total((*(each.change for each in self.programs), *gone))


def compare(report: CostReport, baseline: CostBaseline, *, is_complete: bool) -> ComparedReport:
    """Return a report beside its baseline. Raises ``InputError`` for a baseline of other rows.

    ``is_complete``: it has all programs of the project, so others of the baseline were removed, renamed, or have
    another model.
    """
    found = {each.key: baseline.find(each) for each in report.programs}
    stored = {(name, model): each for name, models in baseline.programs.items() for model, each in models.items()}
    left = {key: stored[key] for key in sorted(stored) if is_complete and key not in found}
    programs: list[ComparedProgram] = []
    for each in report.programs:
        before = _earlier(each, left) if found[each.key] is None else None
        was = found[each.key] if before is None else left.pop(before)
        programs.append(_program(each, was, before))
    return ComparedReport(report, tuple(programs), left)


def _earlier(program: ProgramCost, left: Mapping[tuple[str, str], StoredProgram]) -> tuple[str, str] | None:
    """Return the earlier key of a program with the same rows: with another model, or of another file with its calls."""
    calls = {call.op: _tokens(StoredFigures.of(call)) for call in program.calls}
    same_rows = {key: each for key, each in left.items() if each.rows == program.rows.digest}
    models = [key for key in same_rows if key[0] == program.program]
    files = [
        key
        for key, each in same_rows.items()
        if key[1] == program.model and calls and {op: _tokens(call) for op, call in each.calls.items()} == calls
    ]
    return next(iter((*models, *files)), None)


def percent(change: Decimal, before: Decimal) -> Decimal | None:
    """Return a change as a percentage of what was there before; None: nothing was, so it has none."""
    return change * 100 / before if before else (_ZERO if not change else None)


def _program(program: ProgramCost, was: StoredProgram | None, before_key: tuple[str, str] | None) -> ComparedProgram:
    stored = {} if was is None else was.calls
    now = {call.op: call for call in program.calls}
    removed = [op for op in stored if op not in now]
    renamed = _renamed([call for call in program.calls if call.op not in stored], {op: stored[op] for op in removed})
    old_price = program.price if was is None else was.price
    calls: list[ComparedCall] = []
    for call in program.calls:
        before = renamed.get(call.op, call.op)
        earlier = stored.get(before)
        kind: CallChange = "renamed" if before != call.op else "added" if earlier is None else "changed"
        if kind == "changed" and StoredFigures.of(call) == earlier:
            kind = "same"
        change = _change(StoredFigures.of(call), earlier or _NOTHING, program.price, old_price)
        calls.append(ComparedCall(call.op, kind, before if kind == "renamed" else None, call, earlier, change))
    for op in sorted(set(removed) - set(renamed.values())):
        change = _change(_NOTHING, stored[op], program.price, old_price)
        calls.append(ComparedCall(op, "removed", None, None, stored[op], change))
    if before_key is not None and before_key[1] != program.model:
        calls = [replace(call, change=_of_model(call.change)) for call in calls]
    return ComparedProgram(program, was, tuple(calls), before_key)


def _of_model(change: DollarChange | None) -> DollarChange | None:
    """Return a change whose other prices are those of another model."""
    return None if change is None else replace(change, prices=_ZERO, model=change.prices)


def _renamed(added: Iterable[CallFigures], removed: Mapping[str, StoredFigures]) -> Mapping[str, str]:
    """Return the earlier ids of calls that have another one and the same calls and tokens as before."""
    found: dict[str, str] = {}
    left = dict(removed)
    for call in added:
        figures = _tokens(StoredFigures.of(call))
        before = next((op for op, each in left.items() if _tokens(each) == figures), None)
        if before is not None and call.calls.expected:
            found[call.op] = before
            del left[before]
    return found


def _tokens(figures: StoredFigures) -> tuple[float, ...]:
    return figures.calls, figures.prompt, figures.output


def _change(
    now: StoredFigures, was: StoredFigures, price: PriceUsed | None, old_price: PriceUsed | None
) -> DollarChange | None:
    """Return the change of a call by cause; None where dollars of now or then are not known."""
    if now.usd is None or was.usd is None:
        return None
    whole = MONEY.subtract(now.usd, was.usd)
    if price is None or old_price is None:
        return DollarChange() if not whole else None
    at_old_prices = now.usd if _rates(price) == _rates(old_price) else _repriced(now, now.usd, price, old_price)
    prices, own = MONEY.subtract(now.usd, at_old_prices), MONEY.subtract(at_old_prices, was.usd)
    if not was.calls or not now.calls:
        return DollarChange(calls=own, prices=prices)
    count = _decimal(now.calls)
    calls = _rounded((count - _decimal(was.calls)) * was.usd / _decimal(was.calls))

    def grown(name: str) -> Decimal:
        """Tokens that all calls of now have more than as many of then."""
        return _decimal(getattr(now, name)) - _decimal(getattr(was, name)) * count / _decimal(was.calls)

    mean = _decimal(now.prompt) / count
    full, cached = _rate(old_price.input, mean), _rate(old_price.cached or old_price.input, mean)
    prompt = _rounded(grown("prompt") * full / _MILLION)
    hits = _rounded(grown("cached") * (cached - full) / _MILLION)
    output = _rounded(grown("output") * _rate(old_price.output, mean) / _MILLION)
    return DollarChange(calls, prompt, hits, output, own - calls - prompt - hits - output, prices)


def _repriced(figures: StoredFigures, dollars: Decimal, price: PriceUsed, old: PriceUsed) -> Decimal:
    """Return the dollars of requests at other prices: exact where neither has tiers, else by the mean prompt."""
    now, then = _cost(figures, price), _cost(figures, old)
    return _rounded(then if not now or (_is_flat(price) and _is_flat(old)) else dollars * then / now)


def _cost(figures: StoredFigures, price: PriceUsed) -> Decimal:
    """Return the dollars of requests that are all like their mean."""
    mean = _decimal(figures.prompt) / _decimal(figures.calls) if figures.calls else _ZERO
    plain = figures.prompt - figures.cached - figures.cache_written
    parts = (
        (plain, price.input),
        (figures.cached, price.cached or price.input),
        (figures.cache_written, price.cache_write or price.input),
        (figures.output - figures.reasoning, price.output),
        (figures.reasoning, price.reasoning or price.output),
    )
    tokens = sum((_decimal(count) * _rate(rate, mean) for count, rate in parts), _ZERO)
    return tokens / _MILLION + _decimal(figures.calls) * price.request


def _rates(price: PriceUsed) -> tuple[object, ...]:
    return price.input, price.output, price.cached, price.cache_write, price.reasoning, price.request


def _is_flat(price: PriceUsed) -> bool:
    rates = (price.input, price.output, price.cached, price.cache_write, price.reasoning)
    return not any(rate.tiers for rate in rates if rate is not None)


def _rate(rate: PriceRate, prompt: Decimal) -> Decimal:
    return next((each for start, each in reversed(rate.tiers) if prompt > start), rate.base)


def _decimal(number: float) -> Decimal:
    return Decimal(str(number))


def _rounded(dollars: Decimal) -> Decimal:
    """Return an amount with twelve digits behind the point: a quotient has no end."""
    return dollars.quantize(Decimal("1e-12"), context=MONEY)


def _sum(parts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for part in parts:
        total = MONEY.add(total, part)
    return total


def _total(changes: Iterable[DollarChange | None]) -> DollarChange | None:
    total = DollarChange()
    for change in changes:
        if change is None:
            return None
        total += change
    return total

"""``lmc cost``: the tokens, dollars and seconds of programs on rows, before they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

from lmc.backend.schedule.fingerprints import inputs_digest
from lmc.cost.estimate import Estimate
from lmc.cost.hints import HintFinder
from lmc.cost.prices import Price, PriceBook, Unpriced
from lmc.cost.ranges import CostRange
from lmc.cost.requests import RowRequests
from lmc.cost.texts import counting
from lmc.cost.walk import WalkFacts
from lmc.driver.batch.lines import is_plain_file
from lmc.driver.batch.rows import ArgumentReader, Signature
from lmc.driver.batch.windows import Part
from lmc.driver.commands.cli_options import GivenOptions, runner_for
from lmc.driver.commands.cost_checks import (
    FORMATS,
    CheckedReport,
    baseline_path,
    checked,
    load_baseline,
    updated_baseline,
)
from lmc.driver.commands.local_seconds import MOST_ROWS, LocalPrediction, predict_local
from lmc.driver.commands.shown_files import shown_file
from lmc.driver.compile.compile import Variants, collection_paused
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.programs import load_program, program_file
from lmc.driver.run.estimation import EstimatedVariant, Estimation, PlacedRow, engine_info
from lmc.driver.runner import Runner
from lmc.driver.targets.calibrations import Calibration, calibration_of
from lmc.driver.targets.defaults import cost_entries, price_book
from lmc.driver.targets.hosted import is_unprobed, model_file
from lmc.driver.targets.service import service
from lmc.driver.version import __version__
from lmc.frontend.program.function import JittedFunction
from lmc.ir.cached import cached_property
from lmc.ir.engine.target import WITH_WEIGHTS, Target
from lmc.ir.errors import InputError, LmcError
from lmc.ir.profile import Profile
from lmc.report.cost.amounts import sum_of, sum_of_usd
from lmc.report.cost.build import breaks_of, calls_of, failed_of, figures_of, place_of, price_of, saving_of
from lmc.report.cost.limits import COUNT_PRICES, LIMIT_KEYS, CostLimits
from lmc.report.cost.model import (
    CostFigures,
    CostHint,
    CostReport,
    CountRange,
    LocalRun,
    LongestChain,
    MoneyRange,
    PassSaving,
    ProgramCost,
    RowsUsed,
    rounded,
)
from lmc.report.text import one_line, visible

__all__ = [
    "FORMATS",
    "CostEntry",
    "RunEstimate",
    "baseline_path",
    "entries_of_project",
    "estimate_rows_of",
    "named_models",
    "rate_of",
    "run",
    "updated_baseline",
    "weaknesses",
]

_PLANNING = frozenset({"hoist-prefixes", "start-reads-early", "plan-fork-join", "kv-liveness"})
"""Passes that decide when requests are sent and what stays in a cache, and change no request."""
_MESSAGE = 500
_MOST_RUN_ROWS = 1000
"""Rows that are estimated beside a run: that takes seconds."""
_PROGRAM_KEYS = ("program", "input", "model", "profile")
_ENTRY_KEYS = (*_PROGRAM_KEYS, *LIMIT_KEYS, COUNT_PRICES)
"""The keys of ``[[tool.lmc.cost]]``."""


@dataclass(frozen=True, slots=True)
class CostEntry:
    """A program to estimate: on the rows of a file, or on one row of ``words`` (KEY=VALUE); for each of ``models``.

    ``program`` and the files are named as on a command line. A model that is None is that of the program or of the
    ambient settings. ``profile`` is a file. ``limits`` are those of the program, for each model.
    """

    program: str
    words: tuple[str, ...] = ()
    data: str | None = None
    models: tuple[str | None, ...] = (None,)
    profile: str | None = None
    limits: CostLimits = field(default_factory=CostLimits)


def entries_of_project() -> list[CostEntry]:
    """Return the entries of ``[[tool.lmc.cost]]`` in the nearest ``pyproject.toml``. Raises ``UsageError``."""
    file, tables = cost_entries()
    if not tables:
        raise UsageError(
            "there is no program", remedy=f"name one, or write [[tool.lmc.cost]] with program = … into {file.name}"
        )
    return [_entry(file, number, each) for number, each in enumerate(tables, start=1)]


def run(
    entries: Sequence[CostEntry],
    given: GivenOptions,
    usd_per_hour: Decimal | None = None,
    *,
    baseline: str | None = None,
    is_complete: bool = False,
    compares: bool = True,
) -> CheckedReport:
    """Estimate programs; ``given`` are options of the command line. Nothing is sent, and no model is loaded.

    Seconds of local models come from their calibration on this machine; ``usd_per_hour`` converts them to dollars.
    ``baseline`` is a file to compare with. ``is_complete``: the entries are all programs of the project. Not
    ``compares``: the report becomes the baseline, so there are no limits on increases.

    Raises ``UsageError``, and ``InputError`` for a row that does not fit, a model that is not known, a server that
    was not probed, and a baseline that is not valid or of other rows.
    """
    if usd_per_hour is not None and (baseline is not None or not compares):
        raise UsageError(
            "--rate-usd-per-hour is for the seconds of this machine, and a baseline holds for all machines",
            remedy="leave one of them out; max_usd and max_seconds limit a local model without a baseline",
        )
    stored = None if baseline is None else load_baseline(baseline)
    prices = _Prices()
    programs: dict[tuple[str, str], ProgramCost] = {}
    limits: dict[tuple[str, str], CostLimits] = {}
    for entry in entries:
        for program in _ProgramRows.of(entry, given).costs(entry.models, prices, usd_per_hour):
            if program.key in programs:
                raise UsageError(
                    f"{program.program} is there twice for {program.model}", remedy="name it once, or another model"
                )
            programs[program.key] = program
            limits[program.key] = entry.limits
    if usd_per_hour is not None and not any(each.local for each in programs.values()):
        models = ", ".join(sorted({each.model for each in programs.values()}))
        raise UsageError(
            f"--rate-usd-per-hour is for local models with a calibration, and there is none for {models}",
            remedy="leave it out for hosted models; for a local one measure first: lmc calibrate --model MODEL",
        )
    report = CostReport.of(list(programs.values()), lmc=__version__, prices=prices.version)
    return checked(report, stored, limits, is_complete=is_complete, compares=compares)


def estimate_rows_of(function: JittedFunction, options: Options, rows: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the estimate of a program on rows, given by parameter name: that of a report, without its seconds.

    Raises as ``run`` does.
    """
    program = _ProgramRows(CostEntry(function.name), function, {}, rows)
    return _estimation(Runner(function, options), program, _Prices()).estimate()


class RunEstimate:
    """The estimate of the rows of a run, which its summary has beside what was measured."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._rows: list[Mapping[str, Any]] = []
        self._is_whole = True

    def noting(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the rows of a run, and keep them."""
        for part in parts:
            for _, given in part:
                if len(self._rows) == _MOST_RUN_ROWS or isinstance(given, InputError):
                    self._is_whole = False
                else:
                    self._rows.append(given[1])
            yield part

    def line(self) -> str | None:
        """Return dollars and calls for people; None for many rows, and where nothing can be estimated."""
        if not (self._rows and self._is_whole):
            return None
        try:
            found = estimate_rows_of(self._runner.function, self._runner.options, self._rows)
        except LmcError:
            return None
        total, is_whole = figures_of(found.total), found.is_whole
        dollars, calls = sum_of_usd(total.usd, is_whole=is_whole), sum_of(total.calls, is_whole=is_whole)
        return f"estimated {dollars}, {calls} calls"


def rate_of(text: str | None) -> Decimal | None:
    """Return dollars per hour from a command line. Raises ``UsageError``."""
    if text is None:
        return None
    try:
        rate = Decimal(text)
    except InvalidOperation:
        rate = Decimal("nan")
    if not (rate.is_finite() and 0 <= rate <= 10**6):
        raise UsageError(f"--rate-usd-per-hour is {text!r}", remedy="give a number of dollars from 0 on")
    return rate


def named_models(entry: CostEntry, models: tuple[str | None, ...]) -> CostEntry:
    """Return an entry with its models as targets."""
    return replace(entry, models=models)


def weaknesses(report: CostReport) -> list[str]:
    """Return the figures that are unpriced, unbounded or not whole, a line each, and outputs that a profile lacks."""
    found: list[str] = []
    for program in report.programs:
        name, total = f"{program.program} on {program.model}", program.total
        if total.usd is None:
            found.append(f"{name} is unpriced: {program.unpriced or 'a request has no price'}")
        ranges = {"calls": total.calls, "prompt tokens": total.prompt, "output tokens": total.output}
        unbounded = [each for each, figure in ranges.items() if figure.most is None]
        if total.usd is not None and total.usd.most is None:
            unbounded.append("dollars")
        if unbounded:
            found.append(f"{name}: {', '.join(unbounded)} unbounded")
        if not program.is_whole:
            found.append(f"{name}: figures leave out what is behind a graph break, or rows that fail")
        if program.profile is not None:
            calls = [
                call.op
                for call in program.calls
                if call.output.most != 0 and not {*call.bases} <= {"profile", "recorded"}
            ]
            if calls:
                found.append(f"{name}: the profile has no outputs of {', '.join(calls)}")
    return found


class _Prices:
    """The prices of a report: those that are in force today. A report changes where one of them does."""

    def __init__(self) -> None:
        self._own = price_book()
        self._bundled: PriceBook | None = None
        self._used = False

    @cached_property
    def _price_date(self) -> datetime:
        return self._own.price_date(datetime.now(UTC).date())

    @property
    def version(self) -> str | None:
        """The version of the bundled prices; None: none is used."""
        return self._own.bundled_version if self._used else None

    def find(self, target: Target) -> Price | Unpriced:
        """Return the price of a target. Raises ``InputError`` for a model that the provider does not have."""
        if target.remote is None:
            return self._own.find(target)
        if self._bundled is None:
            self._bundled = price_book(self._price_date)
        found = self._bundled.find(target)
        if isinstance(found, Unpriced) and found.is_unknown:
            raise found.error()
        return found

    def other(self, target: Target) -> Price | Unpriced:
        """Return the price of a model for a comparison."""
        return (self._bundled or self._own).find(target)

    def date(self, price: Price) -> str | None:
        """Return when the latest bundled price began, where a price is from there; it notes that they are used."""
        if not price.source.startswith("genai-prices"):
            return None
        self._used = True
        return self._price_date.date().isoformat()


@dataclass(frozen=True)
class _ProgramRows:
    """A program, its rows, and the options to compile it with."""

    entry: CostEntry
    function: JittedFunction
    given: GivenOptions
    rows: Sequence[Mapping[str, Any]]
    variants: Variants = field(default_factory=Variants)

    @classmethod
    def of(cls, entry: CostEntry, given: GivenOptions) -> _ProgramRows:
        """Load a program and read its rows."""
        function = load_program(entry.program)
        reader = ArgumentReader(Signature.of(function))
        fixed = reader.assignments(entry.words)
        rows = [reader.complete(fixed)] if entry.data is None else list(_checked_rows(reader, entry.data, fixed))
        profile = entry.profile if entry.profile is not None else given.get("profile")
        return cls(entry, function, {**given, "profile": profile}, rows)

    def costs(
        self, models: Sequence[str | None], prices: _Prices, usd_per_hour: Decimal | None
    ) -> Iterator[ProgramCost]:
        """Yield the cost for each model."""
        digest = inputs_digest(self.rows)
        file = None if self.entry.data in (None, "-") else shown_file(str(self.entry.data))
        used = RowsUsed(file=file, digest=digest, count=len(self.rows))
        for model in models:
            given = self.given if model is None else {**self.given, "target": model}
            runner = runner_for(self.function, given)
            yield self._cost(Runner(self.function, runner.options, self.variants), used, prices, usd_per_hour)

    def _cost(self, runner: Runner, rows: RowsUsed, prices: _Prices, usd_per_hour: Decimal | None) -> ProgramCost:
        estimation, profile = _estimation(runner, self, prices), runner.options.pipeline.profile
        measured = calibration_of(estimation.target) if estimation.target.kind in WITH_WEIGHTS else None
        first: list[RowRequests] = []
        finder = _finder(estimation, prices, profile)
        found = estimation.estimate(finder, first, keep=0 if measured is None else MOST_ROWS)
        total, chain, local = figures_of(found.total), LongestChain(calls=CountRange.of(found.critical_path)), None
        if measured is not None:
            with collection_paused():
                prediction = predict_local(
                    first, len(self.rows), estimation.tokenizer.texts, estimation.target, measured.cost
                )
            total = _timed(total, prediction, usd_per_hour)
            chain = LongestChain(calls=chain.calls, seconds=CountRange.of(prediction.critical_path))
            local = _local_run(measured, prediction, usd_per_hour)
        is_rated = local is not None and usd_per_hour is not None
        options, price, target = runner.options, estimation.price, estimation.target
        return ProgramCost(
            program=f"{shown_file(program_file(self.entry.program))}:{self.function.name}",
            model=visible(target.spec),
            rows=rows,
            level=options.level,
            disabled_passes=tuple(sorted(set(options.pipeline.disabled_passes))),
            profile=None if profile is None else profile.digest,
            price=price_of(price, prices.date(price)) if isinstance(price, Price) else None,
            unpriced=None if is_rated else estimation.unpriced,
            local=local,
            tokens="exact" if target.capabilities.contexts == "tokens" else "estimated",
            calls=calls_of(found, shown_file),
            total=total,
            critical_path=chain,
            breaks=breaks_of(found, shown_file),
            failed=failed_of(found),
            failed_rows=len(found.failed),
            savings=tuple(_savings(estimation, found, runner, self.rows)),
            hints=tuple(
                CostHint(
                    code=hint.code,
                    message=one_line(hint.message, _MESSAGE),
                    place=place_of(hint.location, shown_file),
                    op=visible(hint.op_id),
                )
                for hint in found.hints
            ),
            is_whole=found.is_whole,
        )


def _estimation(runner: Runner, rows: _ProgramRows, prices: _Prices) -> Estimation:
    """Compile a program for its rows."""
    target = runner.target()
    for each in target.chain:
        if is_unprobed(each):
            raise InputError(
                f"{each.spec} was not probed, so its capabilities are not known",
                remedy=f"ask it once: lmc targets {each.spec}; or set its kind: server = … for the target",
            )
    tokenizer = counting(service().engines.tokenizer(target))
    return Estimation(
        target,
        _placed(runner, rows.rows),
        tokenizer,
        [prices.find(each) for each in target.chain],
        is_scheduled=rows.entry.data is not None and is_plain_file(rows.entry.data),
    )


def _finder(estimation: Estimation, prices: _Prices, profile: Profile | None) -> HintFinder:
    """Return a finder of hints."""
    target = estimation.target
    facts = WalkFacts(estimation.tokenizer, engine_info(target), profile=profile)
    return HintFinder(facts, estimation.rule, target.spec, estimation.price, partial(_priced_models, target, prices))


def _savings(
    estimation: Estimation, found: Estimate, runner: Runner, rows: Sequence[Mapping[str, Any]]
) -> Iterator[PassSaving]:
    """Yield the saving of each pass that changes what is sent."""
    pipeline = runner.options.pipeline
    changing = frozenset[str]().union(*(variant.compiled.changing for variant, _ in estimation.placed))
    for name in dict.fromkeys(each.NAME for each in pipeline.passes.passes):
        if name in _PLANNING or name not in changing:
            continue
        without = runner.with_options(replace(runner.options, disabled_passes=(*pipeline.disabled_passes, name)))
        if _sends_the_same(estimation, without, rows):
            continue
        saving = saving_of(name, found, replace(estimation, placed=_placed(without, rows)).estimate())
        if any((saving.calls, saving.prompt, saving.cached, saving.output, saving.usd)):
            yield saving


def _sends_the_same(estimation: Estimation, runner: Runner, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if all variants make the same requests with the options of ``runner``, or can't be compiled."""
    firsts: dict[int, int] = {}
    for number, (variant, _) in enumerate(estimation.placed):
        firsts.setdefault(id(variant), number)
    try:
        others = _placed(runner, [rows[number] for number in firsts.values()])
    except LmcError:  # the program needs the pass on this target
        return True
    pairs = zip(firsts.values(), others, strict=True)
    return all(estimation.placed[number][0].key == other.key for number, (other, _) in pairs)


def _timed(total: CostFigures, found: LocalPrediction, usd_per_hour: Decimal | None) -> CostFigures:
    """Return figures with the cached tokens and seconds of a simulation, and dollars where an hour has a price.

    It finds the prefixes that answers are a part of, too, which the sum over the calls does not.
    """
    seconds, cached = CountRange.of(found.seconds), total.cached
    hits = max(cached.least, rounded(found.hit_rate * total.prompt.expected))
    hits = hits if cached.most is None else min(hits, cached.most)
    total = total.model_copy(update={"cached": cached.model_copy(update={"expected": hits}), "seconds": seconds})
    if usd_per_hour is None:
        return total
    rate = usd_per_hour / 3600
    usd = CostRange(
        Decimal(str(seconds.least)) * rate,
        Decimal(str(seconds.expected)) * rate,
        None if seconds.most is None else Decimal(str(seconds.most)) * rate,
    )
    return total.model_copy(update={"usd": MoneyRange.of(usd.map(_cents))})


def _cents(usd: Decimal) -> Decimal:
    """Return dollars with ten digits behind the point: a simulation knows no more."""
    return round(usd, 10)


def _local_run(measured: Calibration, found: LocalPrediction, usd_per_hour: Decimal | None) -> LocalRun:
    return LocalRun(
        machine=measured.machine,
        constants=asdict(measured.cost),
        error=rounded(measured.mean_error),
        kv_peak=found.kv_peak,
        hit_rate=rounded(found.hit_rate),
        usd_per_hour=usd_per_hour,
    )


def _placed(runner: Runner, rows: Sequence[Mapping[str, Any]]) -> list[PlacedRow]:
    """Return each row with the variant that runs it."""
    found: list[PlacedRow] = []
    variants: dict[int, EstimatedVariant] = {}
    for compiled, inputs in runner.place_all(((), row) for row in rows):
        variant = variants.get(id(compiled))
        if variant is None:
            variant = variants[id(compiled)] = EstimatedVariant.of(compiled)
        found.append((variant, variant.values_of(inputs)))
    return found


def _checked_rows(reader: ArgumentReader, data: str, fixed: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file. Raises the error of the first that does not fit, with its number."""
    for number, row in enumerate(reader.rows(data, fixed)):
        if row.error is not None:
            error = row.error
            raise InputError(f"row {number}: {error.cause}", remedy=error.remedy, location=error.location)
        yield row.arguments


def _priced_models(target: Target, prices: _Prices) -> Iterator[tuple[str, Price]]:
    """Yield the other models of a hosted target's provider that have a price."""
    if target.remote is None or target.kind == "server":
        return
    for name in model_file(target.kind).names:
        if name != target.path:
            price = prices.other(replace(target, path=name))
            if isinstance(price, Price):
                yield f"{target.kind}:{name}", price


def _entry(file: Path, number: int, table: Mapping[str, Any]) -> CostEntry:
    where = f"{file}: entry {number} of [[tool.lmc.cost]]"
    for key in table:
        if key not in _ENTRY_KEYS:
            raise InputError(f"{where} has no key {key!r}", remedy=f"use {', '.join(_ENTRY_KEYS)}")
    models = table.get("model")
    names: list[Any] = models if isinstance(models, list) else [models]
    texts = {key: table.get(key) for key in ("program", "input", "profile")}
    if not isinstance(texts["program"], str):
        raise InputError(f"{where} has no program", remedy='write program = "FILE.py:NAME"')
    for key, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise InputError(f"{where}: {key} is {value!r}", remedy="name a file")
    if not names or not all(each is None or isinstance(each, str) for each in names):
        raise InputError(f"{where}: model is {models!r}", remedy='write model = "openai:MODEL", or a list of such')
    program, data, profile = (None if each is None else str(file.parent / each) for each in texts.values())
    assert program is not None
    limits = CostLimits.of({key: value for key, value in table.items() if key not in _PROGRAM_KEYS}, where)
    return CostEntry(program, (), data, tuple(names), profile, limits)

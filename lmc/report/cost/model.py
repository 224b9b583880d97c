"""The format ``lmc-cost``: the estimated cost of programs on rows, as JSON data.

Every presentation shows this. Equal inputs give equal bytes: there is no time of day and no absolute path in it. Fields
that have their default are left out of the JSON. All texts are printable (``lmc.report.text``), so a reader only has to
escape what its own syntax reserves. Money is a decimal number in a string, in US dollars.

What is not known is never 0: a range without a bound has ``most`` null, figures without a price have ``usd`` null, and
``is_whole`` is false where figures leave something out, so that totals are ``at least`` what they say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError, WithJsonSchema

from lmc.cost.prices import MONEY
from lmc.cost.ranges import CostRange
from lmc.ir.errors import InputError

FORMAT = "lmc-cost"
VERSION = 2
_DIGITS = 6
"""Digits behind the point of a figure that is expected, such as calls by a probability."""

N = TypeVar("N", int, float)


def _exact(value: Any) -> Any:
    """Raise ``ValueError`` for money that is no decimal number in a string: a float has lost digits."""
    if not isinstance(value, str | Decimal):
        raise ValueError(f"money is a decimal number in a string, not {value!r}")
    if not Decimal(value).is_finite():
        raise ValueError(f"{value} is no amount of money")
    return value


def money_text(value: Decimal) -> str:
    """Return an amount with all its digits and without an exponent: ``0.0000125``."""
    return format(value.normalize(MONEY), "f") if value else "0"


Money = Annotated[
    Decimal,
    BeforeValidator(_exact),
    PlainSerializer(money_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
]
Number = int | float
Basis = Literal["recorded", "profile", "plan", "guess"]
"""The source of the expected length of an output: its record, a profile, the plan's own hint, or its limit alone."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CountRange(_Model):
    """A number that is at least, probably and at most so much. ``most`` None: nothing bounds it."""

    least: Number
    expected: Number
    most: Number | None

    @classmethod
    def of(cls, found: CostRange[N]) -> CountRange:
        """Return a range of ``lmc.cost``, rounded to what a reader needs."""
        return cls(
            least=rounded(found.least),
            expected=rounded(found.expected),
            most=None if found.most is None else rounded(found.most),
        )

    @property
    def is_exact(self) -> bool:
        """True if the number is known."""
        return self.least == self.most


class MoneyRange(_Model):
    """Dollars that are at least, probably and at most so many. ``most`` None: nothing bounds them."""

    least: Money
    expected: Money
    most: Money | None

    @classmethod
    def of(cls, found: CostRange[Decimal]) -> MoneyRange:
        """Return a range of ``lmc.cost``, with all its digits."""
        return cls(least=found.least, expected=found.expected, most=found.most)


class CostFigures(_Model):
    """Sums over requests: ``cached`` and ``cache_written`` are parts of ``prompt``, ``reasoning`` is one of ``output``.

    ``usd`` None: a request has no price. ``seconds`` None: nothing measured says how long requests take.
    """

    calls: CountRange
    prompt: CountRange
    cached: CountRange
    cache_written: CountRange
    output: CountRange
    reasoning: CountRange
    usd: MoneyRange | None
    seconds: CountRange | None = None


class CostPlace(_Model):
    """A line of a program: its file, relative to the folder of the report, with ``/`` between folders."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class CallFigures(CostFigures):
    """The calls of one place of a program over all rows.

    ``op`` is the stable id of the op, with ``*`` for the number of an iteration (``judge/fork/*``): edits elsewhere in
    the source do not change it. ``place`` is its line. ``bases`` are those of the expected lengths of its outputs.
    """

    op: str
    place: CostPlace | None = None
    bases: tuple[Basis, ...] = ()


class PriceRate(_Model):
    """Dollars per million tokens: ``base``, and in ``tiers`` those of prompts with more than so many tokens."""

    base: Money
    tiers: tuple[tuple[int, Money], ...] = ()


class PriceUsed(_Model):
    """The price of each request. ``entry`` and ``source`` name it, because matching accepts other names of models.

    ``version`` and ``date`` are those of the price data, None for prices of the user. ``cached`` None: cached tokens
    cost what input costs; ``cache_write`` None: written tokens are unpriced; ``reasoning`` None: as output. ``request``
    are dollars for each request.
    """

    entry: str
    source: str
    version: str | None = None
    date: str | None = None
    input: PriceRate
    output: PriceRate
    cached: PriceRate | None = None
    cache_write: PriceRate | None = None
    reasoning: PriceRate | None = None
    request: Money = Decimal(0)


class LongestChain(_Model):
    """The calls of the longest chain in a row that wait for each other; ``seconds`` None: not known."""

    calls: CountRange
    seconds: CountRange | None = None


class LocalRun(_Model):
    """The run of the rows on a local model, as it is simulated with constants measured on one machine.

    Attributes:
        machine: its processor and threads, or its GPU.
        constants: seconds for a step, for a row … (``lmc calibrate``).
        error: the mean relative error of single steps.
        kv_peak: tokens of the KV pool that running requests hold at most, as expected.
        hit_rate: the share of prompt tokens that is found in the pool, 0 … 1, as expected.
        usd_per_hour: the price of the machine; None: not given.
    """

    machine: str
    constants: dict[str, float]
    error: Number
    kv_peak: int
    hit_rate: Number
    usd_per_hour: Money | None = None


class BreakFigures(_Model):
    """A graph break that rows come to so often (``runs``): no figure has what is behind it."""

    place: CostPlace | None = None
    cause: str
    runs: CountRange


class FailedRow(_Model):
    """A row, counted from 0, that fails whatever the model answers: later calls of it are in no figure."""

    row: int
    error: str


class PassSaving(_Model):
    """The saving of a pass: the expected figures with this pass alone disabled, less those with it.

    Negative figures: the pass costs so much more, such as prefills or cached tokens. ``without`` are the figures
    without the pass. ``usd`` None: a request has no price.
    """

    name: str
    calls: Number
    prompt: Number
    cached: Number
    output: Number
    usd: Money | None
    without: CostFigures


class CostHint(_Model):
    """A remark about a line: ``code`` is stable (``LMC104``), and a page of the documentation is about it."""

    code: str
    message: str
    place: CostPlace | None = None
    op: str | None = None


class RowsUsed(_Model):
    """The rows: the name of their file, its SHA-256 as the rows were read, and their number.

    ``file`` None: one row of arguments from the command line.
    """

    file: str | None = None
    digest: str
    count: int


class ProgramCost(_Model):
    """A program on rows, for one model.

    Attributes:
        program: ``FILE.py:NAME``; with ``model`` the key of a program in a report.
        model: the target, as ``--model`` names it.
        level: of optimization, as in ``-O``.
        disabled_passes: those that are left out.
        profile: the SHA-256 of the profile that expected figures come from.
        price: of each request; None: ``unpriced`` says why there is none. So it does where a fallback has none.
        local: the simulated run on a calibrated local model, which ``seconds`` are from; None: there is none.
        tokens: ``exact`` with the tokenizer of the model, else ``estimated`` from bytes and characters.
        calls: in the order in which rows come to them.
        total: the sum of the calls.
        failed: the first rows that fail, of ``failed_rows``.
        is_whole: false where something is in no figure, as ``breaks`` and ``failed`` tell.
    """

    program: str
    model: str
    rows: RowsUsed
    level: str
    disabled_passes: tuple[str, ...] = ()
    profile: str | None = None
    price: PriceUsed | None = None
    unpriced: str | None = None
    local: LocalRun | None = None
    tokens: Literal["exact", "estimated"]
    calls: tuple[CallFigures, ...]
    total: CostFigures
    critical_path: LongestChain
    breaks: tuple[BreakFigures, ...] = ()
    failed: tuple[FailedRow, ...] = ()
    failed_rows: int = 0
    savings: tuple[PassSaving, ...] = ()
    hints: tuple[CostHint, ...] = ()
    is_whole: bool

    @property
    def key(self) -> tuple[str, str]:
        """The program and its model."""
        return self.program, self.model


class CostReport(_Model):
    """The cost of programs, sorted by name and model. ``lmc`` and ``prices`` are versions, that of ``genai-prices``.

    ``prices`` None: no program has a price from there.
    """

    format: Literal["lmc-cost"] = FORMAT
    version: Literal[2] = VERSION
    lmc: str
    prices: str | None = None
    programs: tuple[ProgramCost, ...]

    @classmethod
    def of(cls, programs: list[ProgramCost], *, lmc: str, prices: str | None) -> CostReport:
        """Return the report of programs in any order."""
        return cls(lmc=lmc, prices=prices, programs=tuple(sorted(programs, key=lambda each: each.key)))


def rounded(value: float) -> int | float:
    """Return a number as the format has it: whole numbers without a point, others with at most 6 digits behind it."""
    found = round(value, _DIGITS)
    return int(found) if found == int(found) else found


def to_json(report: CostReport) -> str:
    """Return the data as JSON in lines: the same bytes for the same report, ASCII, without ``<``, ``>`` and ``&``."""
    data = report.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({"format": FORMAT, "version": VERSION, **data}, indent=1, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n"


def from_json(text: str, name: str) -> CostReport:
    """Return the report in the text of the file ``name``. Raises ``InputError`` where it is none of this version."""
    return read_format(text, name, FORMAT, VERSION, CostReport.model_validate_json)


R = TypeVar("R")


def read_format(text: str, name: str, format_name: str, version: int, read: Callable[[str], R]) -> R:
    """Return what ``read`` makes of the JSON text of the file ``name``, after a check of its format and version.

    Raises ``InputError``.
    """
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}", remedy=_remedy(format_name)) from error
    found = data.get("format") if isinstance(data, dict) else None
    if found != format_name:
        raise InputError(f"{name} does not have the format {format_name}", remedy=_remedy(format_name))
    its_version: Any = data.get("version")
    if type(its_version) is int and its_version > version:
        raise InputError(
            f"{name} has version {its_version} of {format_name}, and this lmc knows {version}",
            remedy="upgrade lmc, or write the file again with this one",
        )
    try:
        return read(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise InputError(f"{name}: {where}: {first['msg']}", remedy=_remedy(format_name)) from error


def schema_text() -> str:
    """Return the JSON Schema of the format."""
    schema = CostReport.model_json_schema()
    schema["required"] = ["format", "version", *schema["required"]]
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def _remedy(format_name: str) -> str:
    return f"name a file that lmc cost wrote in the format {format_name}"

"""Prices of models, from ``genai-prices`` and from the user's ``[tool.lmc.prices]``.

A price is applied to one attempt of one request: tiers go by the tokens of a single prompt, so sums of tokens are never
priced. ``genai-prices`` is imported by the first look-up of a model that the user has no price for; it opens no socket.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from lmc.ir.cached import cached_property
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError
from lmc.ir.usage import Usage

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

MONEY = Context(prec=60, rounding=ROUND_UP)
"""Sums and products of money are exact in it, whatever the context of the user's thread is."""
PRICES_TABLE = "prices"
OWN_KEYS = ("input", "output", "cached", "cache_write", "cache_write_1h")
"""The keys of ``[tool.lmc.prices.NAME]``, in dollars per million tokens."""
_BATCH = {"processing": "batch"}
_WRITES_AS_INPUT = frozenset({"deepseek", "google", "openai"})
"""Providers that charge for a cache write what they charge for input, where they name no other price."""
_OF_TOKENS = frozenset(
    {"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok", "output_reasoning_mtok"}
)
_OF_OTHERS = re.compile(r"audio|image|video|document|searches|citation")
"""Prices of what lmc never sends or asks for."""
_MOST_DIGITS = 12
_MOST_DOLLARS = 10**9
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Rate:
    """Dollars per million tokens: ``base``, and that of the last tier that the prompt has more tokens than."""

    base: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, prompt_tokens: int) -> Decimal:
        """Return the rate of a request with so many prompt tokens."""
        return next((price for start, price in reversed(self.tiers) if prompt_tokens > start), self.base)

    def most(self, prompt_tokens: int) -> Decimal:
        """Return the highest rate of all requests with at most so many prompt tokens."""
        return max([self.base, *(price for start, price in self.tiers if prompt_tokens > start)])


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model.

    Attributes:
        entry: the entry that was used, such as ``openai/gpt-5.6-sol``: it may have another name than the model.
        source: ``genai-prices 0.2.3`` or ``pyproject.toml``.
        cached: None: the provider gives no discount, so cached tokens cost what input costs.
        cache_write: None: not known. The provider charges for writes, so a request with written tokens is unpriced.
        cache_write_1h: the same for tokens that are kept for an hour.
        reasoning: None: that of output.
        request: dollars of a request, whatever its tokens are.
    """

    entry: str
    source: str
    input: Rate
    output: Rate
    cached: Rate | None = None
    cache_write: Rate | None = None
    cache_write_1h: Rate | None = None
    reasoning: Rate | None = None
    request: Decimal = Decimal(0)

    def cost(self, usage: Usage, *, written_1h: int = 0) -> Decimal | None:
        """Return the dollars of one attempt of one request; None: unpriced, because its cache writes are.

        ``written_1h`` of the written tokens are kept for an hour. An attempt that was refused has no tokens.
        """
        prompt, written = usage.prompt_tokens, usage.cache_written_tokens
        reasoning = min(usage.reasoning_tokens, usage.generated_tokens)
        parts = (
            (max(0, prompt - usage.cached_tokens - written), self.input),
            (usage.cached_tokens, self.cached or self.input),
            (written - written_1h, self.cache_write),
            (written_1h, self.cache_write_1h),
            (usage.generated_tokens - reasoning, self.output),
            (reasoning, self.reasoning or self.output),
        )
        dollars = self.request if prompt or usage.generated_tokens else Decimal(0)
        for tokens, rate in parts:
            if not tokens:
                continue
            if rate is None:
                return None
            dollars = MONEY.add(dollars, _dollars(tokens, rate.at(prompt)))
        return dollars

    def most(self, prompt_tokens: int, generated_tokens: int, *, keeps: bool = True) -> Decimal | None:
        """Return a bound for one attempt with at most so many tokens: all of its prompt may be written to a cache.

        Not ``keeps``: there is no cache. None: the price of cache writes is not known. lmc asks for none that are kept
        for an hour.
        """
        if keeps and self.cache_write is None:
            return None
        cached = (self.cached, self.cache_write) if keeps else ()
        dearest = max(rate.most(prompt_tokens) for rate in (self.input, *cached) if rate)
        output = max(rate.most(prompt_tokens) for rate in (self.output, self.reasoning) if rate)
        tokens = MONEY.add(_dollars(prompt_tokens, dearest), _dollars(generated_tokens, output))
        return MONEY.add(tokens, self.request)


@dataclass(frozen=True, slots=True)
class Unpriced:
    """A model without a price. ``near`` are priced models with a similar name.

    ``is_unknown``: the provider has no model of this name, so it may be a wrong one.
    """

    model: str
    reason: str
    near: tuple[str, ...] = ()
    is_unknown: bool = False

    def error(self) -> InputError:
        """Return the error for a user who needs a price."""
        guess = f"did you mean {' or '.join(map(repr, self.near))}? Or " if self.near else ""
        return InputError(
            f"{self.model!r} has no price: {self.reason}",
            remedy=f'{guess}write [tool.lmc.prices."{self.model}"] with input and output, in dollars per million '
            "tokens, into pyproject.toml",
        )


class PriceBook:
    """The prices of all models: those of the user, then those of ``genai-prices``.

    ``own`` are the tables ``[tool.lmc.prices.NAME]``, of ``file``. ``when`` decides where a price has changed;
    None: the time of the look-up. A report that changes only where a price does passes ``price_date``.
    Raises ``InputError`` for tables that are not right.
    """

    def __init__(
        self,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        file: str = "pyproject.toml",
        when: datetime | None = None,
    ) -> None:
        self._own = {name: _own_price(name, table, file) for name, table in (own or {}).items()}
        self._when = when

    def find(self, target: Target, *, batch: bool = False) -> Price | Unpriced:
        """Return the price of a target's model, or why it has none. ``batch``: through the provider's batch API.

        The keys of the user's prices are targets (``openai:gpt-5.6``) or names of models. The address of a target
        decides only if it is that of another known provider: other ones are taken for proxies of its own provider.
        """
        if target.remote is None or target.path is None:
            why = ", and [tool.lmc.prices] is for hosted models and servers" if target.spec in self._own else ""
            return Unpriced(target.spec, f"it runs on this machine{why}")
        is_server = target.kind == "server"
        model = target.path.partition("#")[2] if is_server else target.path
        for name in (target.spec, model):
            if name in self._own:
                return Unpriced(name, "[tool.lmc.prices] has no prices of batches") if batch else self._own[name]
        if is_server:
            return Unpriced(model or target.spec, "servers have the prices of their owners")
        when = self._when or datetime.now(UTC)
        return _find_bundled(self._data, target, when, batch=batch)

    @property
    def bundled_version(self) -> str:
        """The version of ``genai-prices``."""
        return importlib.metadata.version("genai-prices")

    def price_date(self, today: date) -> datetime:
        """Return when the latest price of ``genai-prices`` that is in force on the day ``today`` began.

        Prices that are announced for later days are in the data, too.
        """
        starts = [
            start
            for provider in self._data.providers
            for info in provider.models
            for each in (info.prices if isinstance(info.prices, list) else ())
            if (start := getattr(each.constraint, "start_date", None)) is not None
        ]
        latest = max(start for start in starts if start <= today)
        return datetime(latest.year, latest.month, latest.day, tzinfo=UTC)

    @cached_property
    def _data(self) -> DataSnapshot:
        from genai_prices.data import providers  # 0.25 s
        from genai_prices.data_snapshot import DataSnapshot

        # Not the snapshot of the process: another library may have replaced it by prices from the network.
        return DataSnapshot(providers=providers, from_auto_update=False)


def _own_price(name: str, table: Any, file: str) -> Price:
    where = f'{file}: [tool.lmc.prices."{name}"]'
    remedy = f"give dollars per million tokens: {', '.join(OWN_KEYS)}"
    if not isinstance(table, Mapping):
        raise InputError(f"{where} is no table", remedy=remedy)
    for key, value in table.items():
        if key not in OWN_KEYS:
            if isinstance(value, Mapping):  # [tool.lmc.prices.gpt-4.1]
                remedy = f'a dot divides names in TOML: write [tool.lmc.prices."{_joined(f"{name}.{key}", value)}"]'
            raise InputError(f"{where} has no key {key!r}", remedy=remedy)
    for key in OWN_KEYS[:2]:
        if key not in table:
            raise InputError(f"{where} has no {key}", remedy=remedy)
    rates = {key: Rate(_own_dollars(f"{where}: {key}", value)) for key, value in table.items()}
    write = rates.get("cache_write", rates["input"])
    return Price(
        name,
        "pyproject.toml",
        rates["input"],
        rates["output"],
        rates.get("cached"),
        write,
        rates.get("cache_write_1h", write),
    )


def _joined(name: str, table: Mapping[str, Any]) -> str:
    """Return the name of a model that TOML has divided at its dots."""
    for key, value in table.items():
        if key not in OWN_KEYS and isinstance(value, Mapping):
            return _joined(f"{name}.{key}", value)
    return name


def _own_dollars(where: str, value: Any) -> Decimal:
    if type(value) in (int, float, Decimal):
        dollars = Decimal(str(value))
        if dollars.is_finite() and 0 <= dollars <= _MOST_DOLLARS and -int(dollars.as_tuple().exponent) <= _MOST_DIGITS:
            return dollars
    raise InputError(
        f"{where} is {value!r}", remedy=f"give a number from 0 on, with at most {_MOST_DIGITS} digits behind the point"
    )


def _find_bundled(data: DataSnapshot, target: Target, when: datetime, *, batch: bool) -> Price | Unpriced:
    assert target.remote is not None
    assert target.path is not None
    model, address = target.path, target.remote.base_url
    own = next(each for each in data.providers if each.id == target.kind)
    provider = next((each for each in data.providers if address and re.match(each.api_pattern, address)), own)
    info = provider.find_model(model, all_providers=data.providers)
    if info is None:
        names = [each.id for each in provider.models]
        near = tuple(difflib.get_close_matches(model, names, n=_NAMES_SHOWN))
        return Unpriced(model, f"genai-prices knows no such model of {provider.id}", near, is_unknown=True)
    version = importlib.metadata.version("genai-prices")
    if batch and not _has_batch_price(info, when):
        return Unpriced(model, f"genai-prices has no price of batches for {provider.id}/{info.id}")
    found = _dearest(info, when, _BATCH if batch else None)
    prices = {key: value for key, value in vars(found).items() if value is not None}
    others = [
        key for key in prices if key not in _OF_TOKENS and not _OF_OTHERS.search(key) and key != "requests_kcount"
    ]
    if others or not {"input_mtok", "output_mtok"} <= prices.keys():
        return Unpriced(model, f"genai-prices has no price of text tokens for {provider.id}/{info.id}")
    rates = {key: _rate(value) for key, value in prices.items() if key in _OF_TOKENS}
    write = rates.get("cache_write_mtok")
    if write is None and provider.id in _WRITES_AS_INPUT:
        write = rates["input_mtok"]
    return Price(
        f"{provider.id}/{info.id}",
        f"genai-prices {version}",
        rates["input_mtok"],
        rates["output_mtok"],
        rates.get("cache_read_mtok"),
        write,
        rates.get("cache_write_1h_mtok", write if provider.id in _WRITES_AS_INPUT else None),
        rates.get("output_reasoning_mtok"),
        _of_request(found),
    )


def _dearest(info: ModelInfo, when: datetime, context: Mapping[str, str] | None) -> ModelPrice:
    """Return the prices of that day: where they depend on the time of day, those of the dearest time."""
    times = [when]
    for each in info.prices if isinstance(info.prices, list) else ():
        start = getattr(each.constraint, "start_time", None)
        if start is not None:
            times.append(datetime.combine(when.date(), start).replace(tzinfo=start.tzinfo or UTC))

    def weight(found: ModelPrice) -> Decimal:
        rates = [_rate(price) for price in (found.input_mtok, found.output_mtok) if price is not None]
        return sum((rate.base for rate in rates), Decimal(0))

    return max((info.get_prices(time, context) for time in times), key=weight)


def _has_batch_price(info: ModelInfo, when: datetime) -> bool:
    """Return True if a model has prices of batches: for one without, ``genai-prices`` returns the normal ones."""
    return any(
        variant.when == _BATCH and (variant.constraint is None or variant.constraint.active(when))
        for variant in info.price_variants or ()
    )


def _of_request(found: ModelPrice) -> Decimal:
    price = found.requests_kcount
    return Decimal(0) if price is None else MONEY.multiply(_rate(price).most(1 << 60), Decimal("0.001"))


def _rate(price: Decimal | TieredPrices) -> Rate:
    if isinstance(price, Decimal):
        return Rate(price)
    return Rate(price.base, tuple((tier.start, tier.price) for tier in price.tiers))


def _dollars(tokens: int, rate: Decimal) -> Decimal:
    return MONEY.multiply(Decimal(tokens), rate).scaleb(-6, MONEY)

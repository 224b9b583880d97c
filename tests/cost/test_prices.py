import decimal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cost.prices import Price, PriceBook, Rate, Unpriced
from lmc.driver.options import Options
from lmc.driver.targets.defaults import price_book, resolve_target
from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError
from lmc.ir.usage import Usage

NOW = datetime(2026, 11, 28, tzinfo=UTC)
BOOK = PriceBook(when=NOW)
MODELS = [
    "openai:gpt-5.6",
    "openai:gpt-4o",
    "openai:gpt-5-pro",
    "anthropic:claude-sonnet-4-5",
    "anthropic:claude-opus-5",
]


def priced(spec: str, book: PriceBook = BOOK, *, batch: bool = False, **settings: Any) -> Price:
    price = book.find(hosted_target(spec, settings), batch=batch)
    assert isinstance(price, Price), price
    return price


def unpriced(spec: str, book: PriceBook = BOOK, *, batch: bool = False, **settings: Any) -> Unpriced:
    price = book.find(hosted_target(spec, settings), batch=batch)
    assert isinstance(price, Unpriced), price
    return price


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    prompt, output = draw(st.integers(0, 10**6)), draw(st.integers(0, 10**5))
    cached = draw(st.integers(0, prompt))
    written = draw(st.integers(0, prompt - cached))
    return Usage(prompt, cached, output, 1, written, draw(st.integers(0, output)))


dollars = st.decimals(0, 1000, places=4)


@st.composite
def rates(draw: st.DrawFn) -> Rate:
    """Rates that larger prompts do not lower."""
    prices = sorted(draw(st.lists(dollars, min_size=1, max_size=3)))
    starts = sorted(draw(st.sets(st.integers(0, 10**6), min_size=len(prices) - 1, max_size=len(prices) - 1)))
    return Rate(prices[0], tuple(zip(starts, prices[1:], strict=True)))


prices = st.builds(Price, st.just("any"), st.just("test"), rates(), rates(), *[st.none() | rates()] * 4, dollars)


@given(st.sampled_from(MODELS), usages(), st.data())
def test_costs_are_those_of_the_price_data(spec: str, usage: Usage, data: st.DataObject):
    import genai_prices

    written_1h = data.draw(st.integers(0, usage.cache_written_tokens))
    is_batch = data.draw(st.booleans())
    provider, _, model = spec.partition(":")
    expected = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.prompt_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_written_tokens,
            cache_write_1h_tokens=written_1h,
            output_tokens=usage.generated_tokens,
        ),
        model,
        provider_id=provider,
        genai_request_timestamp=NOW,
        price_context={"processing": "batch"} if is_batch else None,
    )
    found = priced(spec, batch=is_batch)
    assert found.cost(usage, written_1h=written_1h) == expected.total_price
    assert found.entry == f"{expected.provider.id}/{expected.model.id}"


def test_a_tier_counts_for_a_single_request():
    price = priced("anthropic:claude-sonnet-4-5")
    assert price.cost(Usage(prompt_tokens=1_000_000, calls=1)) == Decimal("6.0")
    ten = [price.cost(Usage(prompt_tokens=100_000, calls=1)) for _ in range(10)]
    assert sum(each for each in ten if each is not None) == Decimal("3.0")


def test_the_entry_that_was_used_is_named():
    price = priced("openai:gpt-5.6")
    assert (price.entry, price.source) == ("openai/gpt-5.6-sol", f"genai-prices {BOOK.bundled_version}")


@given(prices, usages(), usages())
def test_costs_grow_with_tokens_and_stay_below_the_bound(price: Price, small: Usage, more: Usage):
    cost = price.cost(small)
    if cost is None:
        assert price.cache_write is None
        return
    assert type(cost) is Decimal
    assert cost >= 0
    longer = replace(small, prompt_tokens=small.prompt_tokens + more.prompt_tokens)
    grown = price.cost(longer)
    assert grown is not None
    assert cost <= grown
    output = more.generated_tokens
    grown = price.cost(replace(small, generated_tokens=small.generated_tokens + output))
    assert grown is not None
    assert cost <= grown
    bound = price.most(small.prompt_tokens, small.generated_tokens)
    assert (bound is None) == (price.cache_write is None)
    assert bound is None or cost <= bound
    wider = price.most(small.prompt_tokens + more.prompt_tokens, small.generated_tokens + output)
    assert bound is None or (wider is not None and bound <= wider)


@given(prices, usages())
def test_costs_are_exact_whatever_the_context_of_the_thread_is(price: Price, usage: Usage):
    with decimal.localcontext() as context:
        context.prec = 2
        rough = price.cost(usage), price.most(usage.prompt_tokens, usage.generated_tokens)
    assert rough == (price.cost(usage), price.most(usage.prompt_tokens, usage.generated_tokens))


@given(prices, usages())
def test_costs_without_tiers_are_additive(price: Price, usage: Usage):
    flat = replace(
        price,
        **{
            name: rate and Rate(rate.base)
            for name in ("input", "output", "cached", "cache_write", "cache_write_1h", "reasoning")
            for rate in [getattr(price, name)]
        },
        request=Decimal(0),
    )
    once, twice = flat.cost(usage), flat.cost(usage + usage)
    assert twice == (None if once is None else 2 * once)


def test_written_tokens_without_a_price_are_unpriced():
    price = priced("anthropic:claude-2")
    assert price.cache_write is None
    assert price.cost(Usage(100, 0, 10, 1)) is not None
    assert price.cost(Usage(100, 0, 10, 1, cache_written_tokens=1)) is None
    assert price.most(100, 10) is None
    assert priced("openai:gpt-4o").cache_write == Rate(Decimal("2.5"))


def test_no_price_of_batches_is_no_normal_price():
    assert priced("openai:gpt-4o", batch=True).input == Rate(Decimal("1.25"))
    assert "no price of batches" in unpriced("openai:chatgpt-4o-latest", batch=True).reason
    before = PriceBook(when=datetime(2026, 1, 1, tzinfo=UTC))
    assert "no price of batches" in unpriced("openai:gpt-4o", before, batch=True).reason


def test_an_unknown_model_has_near_names_and_a_remedy():
    error = unpriced("openai:gpt-4o-mimi").error()
    assert "'gpt-4o-mini'" in str(error)
    assert '[tool.lmc.prices."gpt-4o-mimi"]' in str(error)


def test_addresses_of_known_providers_have_their_prices():
    assert priced("openai:deepseek-chat", base_url="https://api.deepseek.com").entry == "deepseek/deepseek-chat"
    assert priced("openai:gpt-4o", base_url="http://127.0.0.1:9/v1").entry == "openai/gpt-4o"


def test_prices_by_the_time_of_day_are_those_of_the_dearest():
    address = "https://api.deepseek.com"
    found = {
        priced("openai:deepseek-chat", PriceBook(when=NOW.replace(hour=hour)), base_url=address).output
        for hour in range(0, 24, 3)
    }
    assert found == {Rate(Decimal("1.1"))}


def test_other_targets_are_unpriced():
    assert "this machine" in PriceBook().find(Target("toy")).reason  # type: ignore[union-attr]
    assert "servers" in unpriced("server:http://127.0.0.1:1", server="vllm").reason


def test_own_prices_come_first():
    book = PriceBook({"gpt-5.6": {"input": 1, "output": 0.3}, "server:http://h:1#m": {"input": 2, "output": 0}})
    price = priced("openai:gpt-5.6", book)
    assert price.cost(Usage(1000, 200, 10, 1, 300)) == Decimal("0.001003")
    assert (price.source, price.entry) == ("pyproject.toml", "gpt-5.6")
    assert priced("server:http://h:1#m", book, server="vllm").input == Rate(Decimal(2))
    assert "batches" in unpriced("openai:gpt-5.6", book, batch=True).reason


def test_prices_of_a_local_model_do_not_count_and_the_reason_says_so():
    book = PriceBook({"builtin": {"input": 1, "output": 1}})
    assert "is for hosted models and servers" in book.find(Target("builtin")).reason  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[tool.lmc.prices.gpt-4.1]\ninput = 1\noutput = 2\n", '"gpt-4.1"'),
        ("[tool.lmc.prices.claude-3.5.1-x]\ninput = 1\noutput = 2\n", '"claude-3.5.1-x"'),
        (
            "[tool.lmc.prices.fast]\ninput = 1\noutput = 2\n"
            '[tool.lmc.targets.fast]\nkind = "openai"\nmodel = "gpt-5"\n',
            '"openai:gpt-5"',
        ),
    ],
)
def test_the_remedy_has_the_name_of_the_model_that_is_meant(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        price_book()
    assert str(caught.value.remedy).endswith(f"write [tool.lmc.prices.{name}]")


WRONG = {
    "negative": "input = -1\noutput = 1",
    "text": 'input = "1"\noutput = 1',
    "a flag": "input = true\noutput = 1",
    "nan": "input = nan\noutput = 1",
    "infinite": "input = inf\noutput = 1",
    "too many digits": "input = 1e-13\noutput = 1",
    "incomplete": "input = 1",
    "unknown": "input = 1\noutput = 1\nother = 1",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_wrong_prices_are_errors_with_the_file(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "pyproject.toml"
    file.write_text(f'[tool.lmc.prices."gpt-5.6"]\n{text}\n')
    monkeypatch.chdir(tmp_path)
    for ask in (price_book, lambda: resolve_target(Options(), environment={})):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(file) in str(caught.value)
        assert "gpt-5.6" in str(caught.value)


def test_prices_of_the_project_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pyproject.toml").write_text("[tool.lmc.prices.m]\ninput = 0.1\noutput = 2\n")
    monkeypatch.chdir(tmp_path)
    assert priced("openai:m", price_book()).input == Rate(Decimal("0.1"))
    assert resolve_target(Options(), environment={}) == Target("builtin")


@given(st.dates(date(2026, 1, 1), date(2030, 1, 1)))
def test_prices_of_later_days_are_not_in_force(today: date):
    """The data has prices that were announced for days to come."""
    found = BOOK.price_date(today)
    assert datetime(2025, 1, 1, tzinfo=UTC) < found
    assert found.date() <= today
    assert BOOK.price_date(found.date()) == found


def test_all_models_have_prices_or_a_reason():
    from genai_prices.data import providers

    models = {name: next(each for each in providers if each.id == name).models for name in ("openai", "anthropic")}
    found = [
        BOOK.find(hosted_target(f"{provider}:{info.id}", {}))
        for provider, infos in models.items()
        for info in infos
        if not set(info.id) & set("/?# ")
    ]
    assert sum(isinstance(each, Price) for each in found) > 100
    assert all(each.reason for each in found if isinstance(each, Unpriced))


def test_no_socket_is_opened():
    code = (
        "import socket\n"
        "class Refused(socket.socket):\n"
        "    def __init__(self, *_, **__): raise AssertionError('a socket')\n"
        "socket.socket = Refused\n"
        "from lmc.cost.prices import PriceBook\n"
        "from lmc.driver.targets.hosted import hosted_target\n"
        "print(PriceBook().find(hosted_target('openai:gpt-4o', {})).entry)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "openai/gpt-4o"

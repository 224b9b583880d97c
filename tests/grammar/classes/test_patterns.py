"""Regular expressions for ranges and base64, against what they are about."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.classes import UnsupportedTypeError
from lmc.grammar.classes.scalars import base64 as base64_pattern
from lmc.grammar.classes.scalars import not_above, not_below, of_pydantic, url, whole_numbers, with_patterns


@given(st.integers(0, 3000), st.integers(0, 3000), st.lists(st.integers(0, 4000), min_size=10))
def test_whole_numbers(one: int, other: int, numbers: list[int]):
    low, high = sorted((one, other))
    pattern = re.compile(whole_numbers(low, high))
    for number in [*numbers, low, high, low - 1, high + 1]:
        if number >= 0:
            assert bool(pattern.fullmatch(str(number))) == (low <= number <= high), number
    assert not pattern.fullmatch(f"0{high}")


@given(st.dates(), st.lists(st.dates(), min_size=10))
def test_bounds_on_digits(bound, dates):
    text = bound.isoformat()
    for each in [*(found.isoformat() for found in dates), text]:
        for is_open in (False, True):
            below, above = not_below(text, is_open=is_open), not_above(text, "$", is_open=is_open)
            assert bool(re.match(f"(?:{below})", each)) == (each >= text if not is_open else each > text)
            assert bool(re.match(f"(?:{above})", each)) == (each <= text if not is_open else each < text)


@given(st.binary(max_size=12), st.integers(0, 6), st.none() | st.integers(0, 9), st.booleans(), st.booleans())
def test_base64(data: bytes, low: int, high: int | None, is_url: bool, is_ascii: bool):
    pattern = re.compile(base64_pattern(low, high, is_url=is_url, is_ascii=is_ascii))
    text = (base64.urlsafe_b64encode if is_url else base64.b64encode)(data).decode()
    is_inside = low <= len(data) and (high is None or len(data) <= high) and (not is_ascii or data.isascii())
    assert bool(pattern.match(text)) == is_inside
    if text.endswith("="):
        assert not pattern.match(text.rstrip("="))


def test_flags_stand_at_the_beginning():
    assert of_pydantic(re.compile("a.b", re.IGNORECASE | re.DOTALL)) == ("(?is)a.b", False)
    assert of_pydantic(re.compile("a")) == ("a", False)
    assert of_pydantic(r"^\d+$") == (r"^\d+$", False)
    for rough in (r"^[^\w]$", r"^[^\]\w]$", r"\D", r"\P{L}", "(?i)[^k]", "a(?i:[^k])"):
        assert of_pydantic(rough) == (rough, True)
    assert of_pydantic("(?s)[^k]") == ("(?s)[^k]", False)
    assert of_pydantic(re.compile("[^k]", re.IGNORECASE)) == ("(?i)[^k]", True)
    assert of_pydantic(re.compile(r"\W")) == (r"\W", False)
    for plain in (r"^\[[0-9]+\]$", r"[a\[\-\-b]", r"\[a&&b\]"):
        assert of_pydantic(plain) == (plain, False)


@pytest.mark.parametrize("pattern", ["[a&&b]", "[a-z--b]", r"\\[[a[b]", "[[:alpha:]]", "x[ab~~b]y"])
def test_sets_that_other_dialects_read_differently(pattern: str):
    with pytest.raises(UnsupportedTypeError, match="sets in sets") as caught:
        of_pydantic(pattern)
    assert caught.value.remedy


def test_addresses():
    assert url({}, {}) == {}
    assert url({}, {"allowed_schemes": ["a+b", "c"]})["pattern"] == r"^(?:a\+b|c)://"
    assert re.search(url({}, {"host_required": True})["pattern"], "a://b")
    assert not re.search(url({}, {"host_required": True})["pattern"], "a:///b")


def test_more_patterns():
    assert with_patterns({"pattern": "a"}, []) == {"pattern": "a"}
    assert with_patterns({}, ["a"]) == {"pattern": "a"}
    assert with_patterns({"pattern": "a"}, ["b"]) == {"pattern": "a", "allOf": [{"pattern": "b"}]}

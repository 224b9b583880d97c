from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.errors import InputError
from lmc.ir.profile import OpProfile, Profile, Usage

counts = st.integers(0, 10**6)
usages = st.builds(Usage, counts, counts, counts, counts)
reasons = st.dictionaries(st.sampled_from(["stop", "length", "eos"]), counts).map(
    lambda found: tuple(sorted(found.items()))
)
op_profiles = st.builds(OpProfile, usages, st.floats(0, 1e6), counts, reasons)
profiles = st.builds(Profile, st.text(max_size=4), st.dictionaries(st.text(max_size=4), op_profiles, max_size=3))


@given(profiles)
def test_a_profile_is_read_back_from_its_text(profile: Profile):
    assert Profile.from_json(profile.to_json()) == profile


@given(profiles, profiles)
def test_merging_adds(first: Profile, second: Profile):
    merged = Profile.merge("both", [first, second])
    assert merged.usage == first.usage + second.usage
    assert set(merged.ops) == {*first.ops, *second.ops}


def test_totals_of_an_op():
    first = OpProfile(Usage(1, 2, 3, 4), 0.5, 7, (("eos", 1), ("stop", 1)))
    second = OpProfile(Usage(10, 20, 30, 40), 0.25, 5, (("stop", 2),))
    assert first + second == OpProfile(Usage(11, 22, 33, 44), 0.75, 7, (("eos", 1), ("stop", 3)))


def test_the_text_does_not_depend_on_the_order_of_ops():
    one, other = OpProfile(Usage(1)), OpProfile(Usage(2))
    assert Profile("p", {"a": one, "b": other}).to_json() == Profile("p", {"b": other, "a": one}).to_json()


GOOD: dict[str, Any] = json.loads(Profile("p", {"a": OpProfile(Usage(1, 2, 3, 4), 0.5, 7, (("eos", 1),))}).to_json())


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"version": 2}, "profile version 2, this lmc reads 1"),
        ({"ops": 1}, "not a profile"),
        ({"ops": {"a": 1}}, "not a profile"),
        ({"ops": {"a": {}}}, "not a profile"),
        ({"ops": {"a": {**GOOD["ops"]["a"], "longest": float("inf")}}}, "not a profile"),
        ({"ops": {"a": {**GOOD["ops"]["a"], "finish_reasons": [1]}}}, "not a profile"),
        ({"ops": {"a": {**GOOD["ops"]["a"], "usage": {"calls": "x"}}}}, "not a profile"),
    ],
)
def test_what_is_no_profile_is_refused(change: dict[str, Any], cause: str):
    with pytest.raises(InputError, match=cause):
        Profile.from_json(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("text", ["", "[]", "1", "{}", "[" * 100_000])
def test_texts_that_are_no_profile_are_refused(text: str):
    with pytest.raises(InputError, match="not a profile"):
        Profile.from_json(text)


def test_a_text_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="too large"):
        Profile.from_json(" " * (64 * 2**20 + 1))

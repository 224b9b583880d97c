from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Generation, Request, SamplingParams, Score, ScoreRequest
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import EngineError, InputError
from lmc.ir.profile import (
    BranchProfile,
    FallbackProfile,
    OpProfile,
    Profile,
    Recording,
    RepeatProfile,
    length_bin,
    length_bins,
)
from lmc.ir.semantics.interpreter import failed_profile, generation_profile, score_profile
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.usage import Attempt, Usage

counts = st.integers(0, 10**6)
reasons = st.dictionaries(st.sampled_from(["stop", "length", "eos"]), st.integers(1, 9)).map(
    lambda found: tuple(sorted(found.items()))
)

fallbacks = st.dictionaries(
    st.sampled_from(["openai:a", "openai:b"]),
    st.builds(FallbackProfile, st.builds(Usage, counts, calls=counts), st.integers(0, 9)),
).map(lambda found: tuple(sorted(found.items())))


@st.composite
def op_profiles(draw: st.DrawFn) -> OpProfile:
    lengths = draw(st.lists(st.integers(0, 5000), max_size=5))
    usage = Usage(draw(counts), draw(counts), sum(lengths), draw(counts))
    seconds, longest, bins = draw(st.floats(0, 1e6)), max(lengths, default=0), length_bins(lengths)
    return OpProfile(usage, seconds, longest, draw(reasons), bins, draw(fallbacks), draw(counts), draw(counts))


def repeat_of(rounds: list[int]) -> RepeatProfile:
    by_number = length_bins(number for count in rounds for number in range(1, count + 1))
    return RepeatProfile(len(rounds), sum(rounds), max(rounds, default=0), by_number)


ids = st.text(max_size=4)
profiles = st.builds(
    Profile,
    ids,
    st.dictionaries(ids, op_profiles(), max_size=3),
    st.dictionaries(ids, st.builds(BranchProfile, counts, counts), max_size=3),
    st.dictionaries(ids, st.lists(st.integers(0, 100), max_size=5).map(repeat_of), max_size=3),
)


@given(profiles)
def test_a_profile_is_read_back_from_its_text(profile: Profile):
    assert Profile.from_json(profile.to_json()) == profile


@given(profiles, profiles)
def test_merging_adds(first: Profile, second: Profile):
    merged = Profile.merge("both", [first, second])
    assert merged.usage == first.usage + second.usage
    assert set(merged.ops) == {*first.ops, *second.ops}
    assert set(merged.branches) == {*first.branches, *second.branches}
    assert set(merged.repeats) == {*first.repeats, *second.repeats}
    for op_id in {*first.ops} & {*second.ops}:
        assert merged.ops[op_id] == first.ops[op_id] + second.ops[op_id]
    other = Profile.merge("both", [second, first])
    assert Profile.from_json(merged.to_json()) == other


def test_totals_of_an_op():
    first = OpProfile(Usage(1, 2, 3, 4), 0.5, 7, (("eos", 1), ("stop", 1)), ((3, 1), (7, 1)), (), 6, 3)
    second = OpProfile(Usage(10, 20, 30, 40), 0.25, 5, (("stop", 2),), ((3, 1), (5, 1)), (), 60, 30)
    reasons = (("eos", 1), ("stop", 3))
    lengths = ((3, 2), (5, 1), (7, 1))
    assert first + second == OpProfile(Usage(11, 22, 33, 44), 0.75, 7, reasons, lengths, (), 66, 33)


def test_a_text_with_half_a_character_is_written_and_read():
    profile = Profile("p", {"p/\ud800": OpProfile()})
    assert Profile.from_json(profile.to_json().encode("utf-8").decode("utf-8")) == profile


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_bins_keep_the_order_of_lengths_and_are_an_eighth_wide_at_most(one: int, other: int):
    start = length_bin(one)
    assert start <= one <= start + start // 8
    assert length_bin(start) == start
    if one <= other:
        assert start <= length_bin(other)


def test_what_the_lengths_of_outputs_say():
    lengths = [1, 2, 2, 3, 100]
    entry = OpProfile(Usage(generated_tokens=sum(lengths), calls=5), longest=100, lengths=length_bins(lengths))
    assert (entry.outputs, entry.mean_length) == (5, 21.6)
    assert [entry.length_quantile(share) for share in (0.0, 0.2, 0.5, 0.8, 1.0)] == [1, 1, 2, 3, 96]
    assert (OpProfile().outputs, OpProfile().mean_length, OpProfile().length_quantile(0.5)) == (0, None, None)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30), st.floats(0, 1))
def test_a_quantile_is_the_bin_of_that_length(lengths: list[int], share: float):
    entry = OpProfile(lengths=length_bins(lengths))
    found = entry.length_quantile(share)
    assert found is not None
    assert found in map(length_bin, lengths)
    assert sum(length_bin(length) <= found for length in lengths) >= share * len(lengths) - 1e-9
    assert sum(length_bin(length) < found for length in lengths) <= share * len(lengths) + 1e-9


def test_what_is_known_of_ways_and_rounds():
    recording = Recording()
    for then in (True, True, False, True):
        recording.branch("f/c", then=then)
    recording.repeat("f/l")
    recording.repeat("f/l")
    for number in (1, 2, 1):
        recording.round("f/l", number)
    recording.repeat("f/m", 4)
    recording.repeat(None, 4)
    recording.round(None, 1)
    recording.branch(None, then=True)
    profile = recording.profile("f")
    assert profile.branches == {"f/c": BranchProfile(3, 1)}
    assert profile.branches["f/c"].probability == 0.75
    assert profile.repeats == {"f/l": RepeatProfile(2, 3, 2, ((1, 2), (2, 1))), "f/m": RepeatProfile(1, 4, 4)}
    assert [profile.repeats["f/l"].reached(number) for number in (1, 2, 3)] == [1.0, 0.5, 0.0]
    assert profile.repeats["f/m"].reached(1) is None
    assert profile.repeats["f/l"].mean == 1.5
    assert (BranchProfile().probability, RepeatProfile().mean) == (None, None)


def test_rounds_that_were_not_all_counted_say_nothing_of_numbers():
    known = RepeatProfile(2, 4, 3, ((1, 2), (2, 1), (3, 1)))
    merged = Profile.merge("p", [Profile("p", repeats={"l": each}) for each in (known, RepeatProfile(1, 3, 3))])
    assert Profile.from_json(merged.to_json()) == merged
    assert merged.repeats["l"].reached(1) is None


def test_a_profile_does_not_change_with_what_is_recorded_later():
    recording = Recording()
    before = recording.profile("f")
    recording.op("f/a", OpProfile(Usage(1)))
    recording.branch("f/c", then=True)
    recording.repeat("f/l")
    assert before == Profile("f")


def test_the_text_does_not_depend_on_the_order_of_ops():
    one, other = OpProfile(Usage(1)), OpProfile(Usage(2))
    assert Profile("p", {"a": one, "b": other}).to_json() == Profile("p", {"b": other, "a": one}).to_json()


OP = OpProfile(Usage(1, 2, 36, 4), 0.5, 17, (("eos", 1),), ((3, 1), (16, 2)))
LOOP = RepeatProfile(2, 4, 3, ((1, 2), (2, 1), (3, 1)))
GOOD: dict[str, Any] = json.loads(Profile("p", {"a": OP}, {"c": BranchProfile(1, 2)}, {"l": LOOP}).to_json())


def op_with(**fields: Any) -> dict[str, Any]:
    return {"ops": {"a": {**GOOD["ops"]["a"], **fields}}}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"version": 1}, "profile version 1, this lmc reads 5"),
        ({"version": "x" * 99}, "profile version 'x{39}, this"),
        ({"program": 1}, "not a profile: text is needed"),
        ({"more": 1}, "not a profile: a profile has exactly the fields version, program, ops, branches, repeats"),
        ({"ops": 1}, "not a profile: entries by id is an object"),
        ({"ops": {"a": 1}}, "not a profile: 'a': an op is an object"),
        ({"ops": {"a": {}}}, "not a profile: 'a': an op has exactly the fields usage, seconds"),
        (op_with(longest=float("inf")), "not a profile: 'a': a count is a whole number from 0 on, not inf"),
        (op_with(longest=-1), "not a profile: 'a': a count is a whole number from 0 on, not -1"),
        (op_with(longest=2**63), "not a profile: 'a': a count is a whole number"),
        (op_with(longest=True), "not a profile: 'a': a count is a whole number from 0 on, not True"),
        (op_with(seconds=float("nan")), "not a profile: 'a': seconds are a finite number from 0 on, not nan"),
        (op_with(seconds=float("inf")), "not a profile: 'a': seconds are a finite number"),
        (op_with(seconds=-1), "not a profile: 'a': seconds are a finite number"),
        (op_with(seconds="1"), "not a profile: 'a': seconds are a finite number"),
        (op_with(finish_reasons=[1]), "not a profile: 'a': a list of pairs is needed"),
        (op_with(finish_reasons=[["b", 1], ["a", 1]]), "not a profile: 'a': what was counted is not in order"),
        (op_with(finish_reasons=[["a", 0]]), "not a profile: 'a': what was counted is not in order"),
        (op_with(lengths=[[3, 1], [3, 1]]), "not a profile: 'a': what was counted is not in order"),
        (op_with(lengths=[[17, 1]]), "not a profile: 'a': lengths and numbers are counted by bins"),
        (op_with(lengths=[["3", 1]]), "not a profile: 'a': a count is a whole number"),
        (op_with(usage={"calls": "x"}), "not a profile: 'a': counts has exactly the fields prompt_tokens"),
        ({"branches": {"c": {"then": 1}}}, "not a profile: 'c': counts has exactly the fields then, otherwise"),
        ({"repeats": {"l": []}}, "not a profile: 'l': counts is an object"),
        (
            {"repeats": {"l": {"runs": 2, "rounds": 7, "most": 3, "by_number": []}}},
            "not a profile: 'l': 2 runs of at most 3 .* 7",
        ),
        (
            {"repeats": {"l": {"runs": 2, "rounds": 2, "most": 3, "by_number": []}}},
            "not a profile: 'l': 2 runs of at most 3 .* 2",
        ),
        (
            {"repeats": {"l": {"runs": 2, "rounds": 4, "most": 3, "by_number": [[1, 3]]}}},
            "not a profile: 'l': 2 runs of at most 3 rounds can't have such rounds by number",
        ),
        (
            {"repeats": {"l": {"runs": 2, "rounds": 4, "most": 3, "by_number": [[17, 1]]}}},
            "not a profile: 'l': lengths and numbers are counted by bins",
        ),
        (
            {"repeats": {"l": {"runs": 2, "rounds": 4, "most": 3, "by_number": [[0, 1]]}}},
            "not a profile: 'l': 2 runs of at most 3 rounds can't have such rounds by number",
        ),
        (op_with(longest=18), "not a profile: 'a': no output is counted that is as long as the longest, of 18 tokens"),
        (op_with(longest=15), "not a profile: 'a': no output is counted that is as long as the longest, of 15 tokens"),
        (op_with(lengths=[]), "not a profile: 'a': no output is counted that is as long as the longest, of 17 tokens"),
        (
            op_with(usage={**asdict(OP.usage), "generated_tokens": 52}),
            "not a profile: 'a': 3 outputs of such lengths",
        ),
        (
            op_with(usage={**asdict(OP.usage), "generated_tokens": 34}),
            "not a profile: 'a': 3 outputs of such lengths",
        ),
        (op_with(longest=0, lengths=[]), "not a profile: 'a': 0 outputs of such lengths can't have 36 tokens"),
    ],
)
def test_what_is_no_profile_is_refused(change: dict[str, Any], cause: str):
    with pytest.raises(InputError, match=cause) as caught:
        Profile.from_json(json.dumps({**GOOD, **change}))
    assert caught.value.remedy is not None


@pytest.mark.parametrize("text", ["", "[]", "1", "{}", "[" * 100_000, '{"version": 5}', "1" * 5000])
def test_texts_that_are_no_profile_are_refused(text: str):
    with pytest.raises(InputError, match="not a profile"):
        Profile.from_json(text)


def test_a_text_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="too large"):
        Profile.from_json(" " * (64 * 2**20 + 1))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_a_profile_with_anything_in_any_place_is_read_or_refused(data: st.DataObject):
    """What is read is written as it was."""
    found = json.loads(json.dumps(GOOD))
    place: Any = found
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(json_values)
    try:
        profile = Profile.from_json(json.dumps(found))
    except InputError:
        return
    assert Profile.from_json(profile.to_json()) == profile


@given(st.integers(0, 2000), st.characters())
def test_a_profile_with_another_character_is_read_or_refused(place: int, letter: str):
    text = json.dumps(GOOD)
    place %= len(text)
    try:
        Profile.from_json(text[:place] + letter + text[place + 1 :])
    except InputError:
        return


ASKED = Request((1, 2, 3, 4), SamplingParams())


def test_generations_are_counted_by_length():
    def generation(generated: int, *failed: Attempt) -> Generation:
        return Generation((), "", "stop", prompt_tokens=5, cached_tokens=2, generated_tokens=generated, failed=failed)

    found = generation_profile(message_tokenizer(), [ASKED] * 3, [generation(3), generation(40), generation(3)], 0.5)
    assert found == OpProfile(Usage(15, 6, 46, 3), 0.5, 40, (("stop", 3),), ((3, 2), (40, 1)), (), 12, 15)
    failed = Attempt(Usage(5, 0, 9, 1)), Attempt(Usage(calls=1), is_whole=False)
    found = generation_profile(message_tokenizer(), [ASKED], [generation(3, *failed)], 0.5)
    both = (("failed", 1), ("stop", 1))
    assert found == OpProfile(Usage(10, 2, 12, 3), 0.5, 9, both, ((3, 1), (9, 1)), (), 8, 10)
    found = generation_profile(toy_tokenizer(), [ASKED], [generation(3)], 0.5)
    assert (found.sent_bytes, found.sent_tokens) == (0, 0), "its tokens are known"


def test_the_parts_of_fallbacks_are_told_apart():
    """The second of them answers, the first one and the target have failed."""
    failed = Attempt(Usage(5, calls=1)), Attempt(Usage(7, calls=1), fallback="one")
    generation = Generation((), "", "eos", prompt_tokens=9, generated_tokens=2, fallback="two", failed=failed)
    score = Score(((0.0,),), prompt_tokens=3, fallback="two", failed=(Attempt(Usage(4, calls=1), fallback="two"),))
    one, two = FallbackProfile(Usage(7, calls=1)), FallbackProfile(Usage(9, 0, 2, 1), 1)
    generated = generation_profile(message_tokenizer(), [ASKED], [generation], 0.5)
    scored = score_profile(message_tokenizer(), [ScoreRequest((1, 2, 3, 4), ((5,),))], [score], 0.5)
    assert (generated.fallbacks, generated.usage) == ((("one", one), ("two", two)), Usage(21, 0, 2, 3))
    assert (scored.fallbacks, scored.usage) == ((("two", FallbackProfile(Usage(7, calls=2), 1)),), Usage(7, calls=2))
    error = EngineError("no")
    error.usage, error.attempts = Usage(5, calls=1), failed[1:]
    told = failed_profile(message_tokenizer(), ASKED, error, 0.5)
    assert told is not None
    sent = [(each.sent_bytes, each.sent_tokens) for each in (generated, scored, told)]
    assert sent == [(12, 21), (8, 7), (4, 7)]
    assert told.fallbacks == (("one", one),)
    whole = Profile("p", {"a": generated, "b": scored, "c": told}).fallbacks
    assert whole == {"one": one + one, "two": FallbackProfile(Usage(16, 0, 2, 3), 2)}

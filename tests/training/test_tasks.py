"""Generators: the same seed gives the same text, and the two sides of the split share nothing they should not."""

import json
from random import Random

import pytest

from training import samples, words
from training.attributes import PERSON_ATTRIBUTES
from training.document import SPECIAL_TOKENS, Kind, Split
from training.tasks import FAMILIES, essay, extraction, judgement, lookup


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("split", list(Split))
def test_same_seed_gives_the_same_document(family, split):
    first = FAMILIES[family](Random(f"a/{family}"), split, 800)
    second = FAMILIES[family](Random(f"a/{family}"), split, 800)
    other = FAMILIES[family](Random(f"b/{family}"), split, 800)
    assert first == second
    assert first.full_text() != other.full_text()


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("split", list(Split))
def test_documents_reach_their_length_and_hold_answers(family, split):
    for seed in range(20):
        document = FAMILIES[family](Random(f"{seed}"), split, 700)
        assert 600 < document.length < 4000
        assert any(segment.kind is Kind.ANSWER for segment in document.segments)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_special_tokens_come_as_special_segments_only(family):
    for seed in range(10):
        document = FAMILIES[family](Random(f"{seed}"), Split.TRAIN, 700)
        for segment in document.segments:
            is_special = segment.kind in (Kind.SPECIAL, Kind.ANSWER_END)
            assert is_special == any(token in segment.text for token in SPECIAL_TOKENS)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("split", list(Split))
def test_the_right_answer_is_among_its_choices(family, split):
    for seed in range(20):
        for segment in FAMILIES[family](Random(f"{seed}"), split, 900).segments:
            if segment.choices:
                assert segment.text in segment.choices
                assert len(set(segment.choices)) == len(segment.choices)


def test_no_phrasing_is_on_both_sides():
    for attribute in PERSON_ATTRIBUTES:
        for phrasings in (attribute.clauses, attribute.questions):
            assert not set(phrasings.train) & set(phrasings.held_out)
    for dimension in essay.DIMENSIONS:
        assert not set(dimension.good.train) & set(dimension.good.held_out)
        assert not set(dimension.poor.train) & set(dimension.poor.held_out)


def test_composed_sentences_are_none_of_the_held_out_ones():
    rng = Random(0)
    told = {extraction._composed(rng).lower() for _ in range(20_000)}
    assert len(told) > 15_000
    assert not told & {sentence.lower() for sentence in extraction._SENTENCES.held_out}
    facts = {"{relation}": "{value}", "{other}": "{noise}"}
    noted = {lookup._composed(rng, "{subject}", facts) for _ in range(20_000)}
    assert len(noted) > 1_000
    assert not noted & set(lookup._OBSERVATION.held_out)


def test_made_words_lie_on_the_wanted_side():
    rng = Random(0)
    assert all(words.is_held_out(words.made_word(rng, Split.HELD_OUT)) for _ in range(100))
    assert not any(words.is_held_out(words.made_word(rng, Split.TRAIN)) for _ in range(100))


@pytest.mark.parametrize(
    ("good", "verdict", "score"),
    [
        ([True] * 5, "accept", "5"),
        ([True, False], "revise", "3"),
        ([False] * 3, "reject", "1"),
        ([True, True, False], "accept", "4"),
    ],
)
def test_verdict_and_score_follow_the_share_of_good_views(good, verdict, score):
    assert judgement.verdict(good) == verdict
    assert judgement.score(good) == score


def test_essays_show_their_qualities():
    for seed in range(30):
        work = essay.write(Random(seed), Split.TRAIN)
        for dimension in essay.DIMENSIONS:
            lacking = dimension.poor if work.good[dimension.name] else dimension.good
            assert not any(sentence in work.text for sentence in lacking.train if "{" not in sentence)


def test_extracted_json_is_json_and_compact():
    found = [
        item.answer.strip()
        for seed in range(40)
        for item in samples.items_of(FAMILIES["extraction"](Random(seed), Split.HELD_OUT, 900))
        if item.answer.strip().startswith("{")
    ]
    assert len(found) > 10
    for text in found:
        assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) == text


def test_samples_give_the_text_before_each_answer():
    for family in FAMILIES:
        for item in samples.held_out(family, 2, 600, seed=3):
            assert item.prompt
            assert item.answer
            assert not item.prompt.endswith(item.answer)

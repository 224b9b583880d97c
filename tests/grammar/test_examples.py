import random
import re

import pytest

from lmc.grammar import regex
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.facts import Sampler


def _automaton(pattern: str) -> Automaton:
    arena = Arena()
    return Automaton(regex.to_node(pattern, arena), arena)


@pytest.mark.parametrize(
    "pattern", ["a*", "[^x]+", r"\d{4}-\d\d(T\d\d)?", "(a|bc)*d", ".{0,20000}", "x{300}", "(?u)\\w+", "é|日本"]
)
def test_samples_are_outputs_and_the_same_each_time(pattern):
    for seed in range(10):
        found = Sampler(_automaton(pattern), random.Random(seed)).sample()
        assert found is not None
        assert re.fullmatch(pattern, found.decode())
        assert found == Sampler(_automaton(pattern), random.Random(seed)).sample()


def test_samples_are_readable_where_they_can_be():
    found = [Sampler(_automaton("[^x]{5,10}"), random.Random(seed)).sample() for seed in range(10)]
    assert all(text is not None and text.isascii() and text.decode().isprintable() for text in found)
    assert Sampler(_automaton("[\x00-\x05]"), random.Random(0)).sample() is not None


def test_loops_are_left_and_options_come_up():
    found = {Sampler(_automaton("(ab){1,50}c?"), random.Random(seed)).sample() for seed in range(20)}
    assert len(found) > 3
    assert all(text is not None and len(text) < 100 for text in found)


def test_there_is_no_sample_where_the_end_is_out_of_reach(monkeypatch):
    monkeypatch.setattr("lmc.grammar.facts._MAX_STATES", 10)
    assert Sampler(_automaton("[ab]{5000}"), random.Random(0)).sample() is None

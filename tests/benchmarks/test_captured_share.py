from typing import Any

import pytest

from benchmarks import captured_share
from benchmarks.captured_share import Program, Share, corpus, line_of, measure, report, summary
from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import CONDITIONS
from tests.frontend.ordinary.cases import CASES as ORDINARY

EVALUATE = eval


@JittedFunction
def whole(s: Any, a: str):
    s += a
    return s.gen("x", max_tokens=2) + s.gen("y", max_tokens=2)


@JittedFunction
def in_part(s: Any, a: str):
    s += a
    s.gen("x", max_tokens=2)
    EVALUATE("1")
    s.select("y", ["a", "b"])
    s.gen("z", max_tokens=2)
    return s.gen("w", max_tokens=2)


@JittedFunction
def says_nothing(s: Any, a: str):
    s += a


@JittedFunction
def fails(s: Any, a: str):
    s += a
    s.gen("x", max_tokens=2)
    return int(a)


def measured(function: JittedFunction, *texts: str) -> Share:
    return measure(Program("own", function.name, function, lambda: captured_share._made([(text,) for text in texts])))


def test_what_is_captured_whole_counts_whole():
    assert measured(whole, "q", "r") == Share("own", "whole", 4, 4, ())


def test_what_runs_behind_a_break_is_not_in_the_graph():
    share = measured(in_part, "q")
    assert (share.generations, share.in_graph, share.share) == (4, 1, 0.25)
    [(place, cause)] = share.breaks
    line = in_part.function.__code__.co_firstlineno + 4
    assert place == f"tests/benchmarks/test_captured_share.py:{line}"
    assert "the program runs code that it makes itself" in cause
    assert line_of(share) == ["own/in_part", "4", "1", "25%", place, cause]


def test_an_error_is_an_end_like_any_other():
    assert measured(fails, "q", "7") == Share("own", "fails", 2, 2, ())


def test_programs_that_say_nothing_have_no_share():
    assert measured(says_nothing, "q").generations == 0


def test_runs_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(captured_share, "_run_eagerly", lambda *_: (("'other'", "other"), 2))
    with pytest.raises(SystemExit, match=r"own/whole: compiled it gave .* as plain Python"):
        measured(whole, "q")


def test_groups_and_all_of_them_are_summed_up():
    shares = [Share("a", "p", 4, 4, ()), Share("a", "q", 4, 1, (("f.py:1", "why"),)), Share("b", "r", 2, 2, ())]
    assert summary(shares) == [
        ["a", "2", "1", "50.0%", "8", "5", "62.5%"],
        ["b", "1", "1", "100.0%", "2", "2", "100.0%"],
        ["all", "3", "2", "66.7%", "10", "7", "70.0%"],
    ]


def test_the_headline_leaves_the_adversarial_corpora_out():
    broken = (("f.py:1", "why"),)
    shares = [
        Share("examples", "p", 4, 4, ()),
        Share("ordinary", "q", 4, 2, broken),
        Share("loops", "r", 10, 1, broken),
        Share("corpus", "silent", 0, 0, ()),
    ]
    text = report(shares)
    headline, adversarial = text.split("Corpora of programs that are hard to capture:")
    assert "| all | 2 | 1 | 50.0% | 8 | 6 | 75.0% |" in headline
    assert "| all | 1 | 0 | 0.0% | 10 | 1 | 10.0% |" in adversarial
    assert "| ordinary/q | 4 | 2 | 50% | f.py:1 | why |" in adversarial
    assert "examples/p" not in text
    assert "1 programs generate nothing" in text


def test_the_corpus_has_programs_of_every_group():
    groups: dict[str, int] = {}
    for program in corpus():
        groups[program.group] = groups.get(program.group, 0) + 1
    assert set(groups) >= {"examples", "sglang", "ordinary", "corpus", "conditions"}
    assert groups["ordinary"] == len(ORDINARY)
    assert groups["conditions"] == len(CONDITIONS)

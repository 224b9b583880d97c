"""Repeats within repeats whose counts can't be told apart as the text is read."""

import pytest

from lmc.grammar.automata.building import Arena
from lmc.grammar.regex import search_to_node, to_node
from lmc.grammar.schema.alphabet import JSON
from lmc.ir.errors import ConstraintError
from tests.grammar.regex.pattern_strategies import matches, refused


@pytest.mark.parametrize(
    "pattern",
    [
        r"(([^x]b{5,20}|test){1,64}|(.{5,20}|badword){3}){10,}",
        r"((([^x]b{5,20}|[^a]{0,100}){1,64}|([^x]b{5,20}|test){1,64}){10,}|[^a]{0,100}){5,20}",
        r"(((and|the){3}|moron){10,}|([^x]b{3}|[^a]{5,20}){5,20}){2,5}",
        r"(.{1,20}a|.{3,30}b|.{5,40}c)*",
        r"(.{10,20}a|.{13,30}b|.{25,40}c|.{50,64}d)+",
    ],
)
def test_counts_that_become_many_are_refused(pattern: str) -> None:
    assert "counted in too many ways" in refused(pattern).cause
    with pytest.raises(ConstraintError, match="counted in too many ways"):
        to_node(pattern, Arena(), JSON)
    assert "counted in too many ways" in refused(pattern, search=True).cause


@pytest.mark.parametrize(
    "pattern",
    [
        r"(\d{1,3}\.){3}\d{1,3}",
        r"([a-z]{1,64}\.){1,5}[a-z]{2,20}",
        r"(([a-z0-9]{1,63}-?){1,10}\.){1,4}com",
        r"((\w{1,20} ){3,10}\n){1,5}",
        r"(\w{1,20} ?){1,200}",
        r"(a{1,100}b?){1,100}",
        r"((a{1,100}){1,100}){1,100}",
        r"(.{0,80}\n?)*",
        r"(\w{1,20}[ ,.]?)*",
        r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
    ],
)
def test_patterns_as_people_write_them_are_no_concern(pattern: str) -> None:
    arena = Arena()
    to_node(pattern, arena)
    search_to_node(pattern, arena)
    assert arena.work < 1_000, "rows that were looked at are not charged for"


def test_counts_are_joined_to_ranges() -> None:
    # Without that a state holds each pair of counts: 4,000 of them.
    assert matches("(a{1,100}b?){1,100}", "a" * 5_000)
    assert matches("((ab|[^c]{2,5}){1,64}|d)+", "xyab" * 100)
    assert not matches("(a{2,3}b?){2,3}", "aaa")
    assert not matches("(a{2,3}b?){2,3}", "a" * 10)
    assert matches("(a{2,3}b?){2,3}", "aaabaaa")

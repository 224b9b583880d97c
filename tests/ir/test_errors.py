from __future__ import annotations

from lmc.ir.errors import InputError, LmcError, Location
from lmc.ir.text.diagnostics import SourceText, shown


def test_an_error_says_where_what_and_what_to_do():
    error = InputError("the row is wrong", remedy="mend it", location=Location("judge.py", 3))
    assert str(error) == "judge.py:3: the row is wrong\n  remedy: mend it"
    assert str(InputError("the row is wrong")) == "the row is wrong"
    assert isinstance(error, LmcError)
    assert (error.cause, error.remedy, error.location) == ("the row is wrong", "mend it", Location("judge.py", 3))


def test_places_count_from_one():
    source = SourceText("a.lmir", "one\ntwo three\n")
    error = source.error("wrong", remedy="mend it", start=8, end=13)
    assert (error.location, error.column) == (Location("a.lmir", 2), 5)
    assert error.excerpt == "    two three\n        ^~~~~"


def test_a_place_at_the_end_or_over_lines_stays_on_its_line():
    source = SourceText("a.lmir", "one\ntwo")
    assert source.error("wrong", remedy="mend it", start=99).excerpt == "    two\n       ^"
    assert source.error("wrong", remedy="mend it", start=1, end=6).excerpt == "    one\n     ^~"
    assert SourceText("a.lmir", "").error("wrong", remedy="mend it", start=0).excerpt == "    \n    ^"


def test_tabs_and_what_does_not_print_keep_their_width():
    error = SourceText("a.lmir", "\t\x1b\u202ex y").error("wrong", remedy="mend it", start=3)
    assert error.excerpt == "     \ufffd\ufffdx y\n       ^"


def test_shown_is_short_and_printable():
    assert shown("a\x00b") == "a\ufffdb"
    assert shown("a" * 100, 5) == "aaaaa…"

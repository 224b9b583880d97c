from __future__ import annotations

import pytest

from tests.passes.modules import ops

START = "    %0 = lm.context : !ctx\n"


def _canonical(body: str) -> list[str]:
    return ops("canonicalize", START + body)[1:-1]


def test_a_short_text_with_two_users_goes_into_both():
    body = """
    %a = text.concat ["<", %x, ">"] : !text
    %1 = lm.extend %0 [%a, "!"] : !ctx
    %2 = lm.extend %0 [%a, "?"] : !ctx
    lm.return %1 (%a) {structure = "{\\"leaf\\":0}"}
    """
    assert _canonical(body)[1:] == [
        '%1 = lm.extend %0 ["<", %x, ">!"] : !ctx',
        '%2 = lm.extend %0 ["<", %x, ">?"] : !ctx',
    ]


def test_a_long_text_with_two_users_is_not_copied():
    long = "a" * 2000
    body = f"""
    %a = text.concat ["{long}", %x] : !text
    %1 = lm.extend %0 [%a] : !ctx
    %2 = lm.extend %1, user [%a] : !ctx
    lm.return %2
    """
    assert _canonical(body)[1:] == ["%1 = lm.extend %0 [%a] : !ctx", "%2 = lm.extend %1, user [%a] : !ctx"]


def test_texts_that_double_do_not_blow_up():
    lines = [f"    %a{i + 1} = text.concat [%a{i}, %a{i}] : !text" for i in range(60)]
    body = "    %a0 = text.concat [%x, %x] : !text\n" + "\n".join(lines)
    found = _canonical(f"{body}\n    %1 = lm.extend %0 [%a60] : !ctx\n    lm.return %1")
    assert sum(map(len, found)) < 20_000


def test_a_long_separator_is_not_copied_between_many_texts():
    items = ", ".join(["%x"] * 1000)
    join = f'%j = py.call str.join ("{"-" * 2000}", %i) : !text'
    body = f"%i = py.call list ({items}) : !list<!text>\n {join}\n %1 = lm.extend %0 [%j] : !ctx\n lm.return %1"
    assert _canonical(body)[1] == join
    short = body.replace("-" * 2000, "-" * 64)
    assert [line.split()[2] for line in _canonical(short)] == ["lm.extend"]


@pytest.mark.parametrize("separator", ['"-"', "%a"])
def test_a_text_that_very_many_ops_use_is_not_copied(separator: str):
    """Each copy is short, but all of them would make a module a hundred times as long."""
    items = ", ".join(["%x", "%a"] * 1000)
    body = f"""
    %a = text.concat ["{"b" * 1000}"] : !text
    %i = py.call list ({items}) : !list<!text>
    %j = py.call str.join ({separator}, %i) : !text
    %1 = lm.extend %0 [%j] : !ctx
    lm.return %1
    """
    assert sum(map(len, _canonical(body))) < 30_000


def test_a_use_that_goes_away_further_down_is_seen():
    body = """
    %1 = lm.begin %0, user : !ctx
    %2 = lm.extend %1 ["a"] : !ctx
    %3 = lm.extend %2 ["b"] : !ctx
    %4 = lm.end %3 : !ctx
    %5 = lm.extend %2 [""] : !ctx
    lm.return %4
    """
    assert _canonical(body) == ['%4 = lm.extend %0, user ["ab"] : !ctx']


def test_a_select_whose_scores_turn_out_to_be_unread_makes_no_call():
    body = """
    %1, %c, %s = lm.select %0 ["only"] {id = "f/c"} : !ctx, !text, !any
    %b = py.call eq ("a", "a") : !bool
    %k = py.call choose (%b, %x, %s) : !any
    %t = py.call choose (%b, %x, %x) : !text
    %2 = lm.extend %1 [%t] : !ctx
    %u = py.call choose (true, %x, "other") : !text
    lm.return %2 (%u) {structure = "{\\"leaf\\":0}"}
    """
    found = _canonical(body)
    assert any("lm.select" in line for line in found)  # %k is dead, but of another type than %x: it stays
    without = _canonical(body.replace("%k = py.call choose (%b, %x, %s) : !any", "%k = text.concat [%x] : !text"))
    assert not any("lm.select" in line for line in without)


def test_an_empty_text_appends_nothing_wherever_it_comes_from():
    body = """
    %e = text.concat [""] : !text
    %f = text.concat [%e, %e] : !text
    %1 = lm.extend %0 [%f] : !ctx
    %2 = lm.extend %1 [%e, %f] : !ctx
    %3 = lm.extend %2 ["a"] : !ctx
    lm.return %3
    """
    assert _canonical(body) == ['%3 = lm.extend %0 ["a"] : !ctx']


def test_an_empty_message_stays():
    assert _canonical('%1 = lm.extend %0, user [""] : !ctx\n lm.return %1') == ["%1 = lm.extend %0, user : !ctx"]


def test_a_turn_that_somebody_else_goes_on_from_stays_open():
    body = """
    %1 = lm.begin %0, user : !ctx
    %2 = lm.extend %1 ["a"] : !ctx
    %3 = lm.end %2 : !ctx
    %4, %t = lm.gen %2 {id = "f/t"} : !ctx, !text
    lm.return %3 (%t) {structure = "{\\"leaf\\":0}"}
    """
    assert _canonical(body)[:3] == [
        "%1 = lm.begin %0, user : !ctx",
        '%2 = lm.extend %1 ["a"] : !ctx',
        "%3 = lm.end %2 : !ctx",
    ]


def test_an_empty_turn_is_an_empty_message():
    body = "%1 = lm.begin %0, user : !ctx\n %2 = lm.end %1 : !ctx\n lm.return %2"
    assert _canonical(body) == ["%2 = lm.extend %0, user : !ctx"]


def test_the_end_of_an_implicit_turn_stays():
    body = """
    %1 = lm.extend %0, user ["a"] : !ctx
    %2 = lm.extend %1 ["b"] : !ctx
    %3 = lm.end %2 : !ctx
    lm.return %3
    """
    assert _canonical(body)[-1] == "%3 = lm.end %2 : !ctx"


def test_a_message_closes_the_turn_before_it():
    body = """
    %1 = lm.extend %0, user ["a"] : !ctx
    %2, %t = lm.gen %1 {id = "f/t"} : !ctx, !text
    %3 = lm.end %2 : !ctx
    %4 = lm.extend %3, user ["b"] : !ctx
    lm.return %4 (%t) {structure = "{\\"leaf\\":0}"}
    """
    assert _canonical(body)[-1] == '%4 = lm.extend %2, user ["b"] : !ctx'


@pytest.mark.parametrize(
    ("call", "kept"),
    [
        ("py.call str (%x) : !text", False),
        ("py.call format (%x) : !text", False),
        ('py.call format (%x, "") : !text', False),
        ('py.call format (%x, ">9") : !text', True),
        ("py.call str (%n) : !text", True),
        ('py.call add (%x, "!") : !text', False),
        ("py.call choose (true, %x, %x) : !text", False),
        ("py.call repr (%x) : !text", True),
    ],
)
def test_which_calls_on_text_are_the_text(call: str, kept: bool):
    found = _canonical(f"%a = {call}\n %1 = lm.extend %0 [%a] : !ctx\n lm.return %1")
    assert any("py.call" in line for line in found) is kept


def test_a_join_of_a_list_that_is_used_elsewhere_keeps_the_list():
    body = """
    %i = py.call list (%x, "b") : !list<!text>
    %j = py.call str.join ("-", %i) : !text
    %k = py.call len (%i) : !int
    %1 = lm.extend %0 [%j] : !ctx
    lm.return %1 (%k) {structure = "{\\"leaf\\":0}"}
    """
    assert _canonical(body) == [
        '%i = py.call list (%x, "b") : !list<!text>',
        "%k = py.call len (%i) : !int",
        '%1 = lm.extend %0 [%x, "-b"] : !ctx',
    ]


def test_a_join_of_what_is_no_text_raises_when_it_runs():
    body = """
    %i = py.call list (%x, 1) : !list<!any>
    %j = py.call str.join ("-", %i) : !text
    lm.return %0 (%j) {structure = "{\\"leaf\\":0}"}
    """
    assert _canonical(body)[-1] == '%j = py.call str.join ("-", %i) : !text'


def test_a_choice_that_may_be_empty_stays_a_value():
    body = """
    %e = text.concat [] : !text
    %a = text.concat ["yes"] : !text
    %1, %c, %s = lm.select %0 [%e, %a] {id = "f/c"} : !ctx, !text, !any
    lm.return %1 (%c) {structure = "{\\"leaf\\":0}"}
    """
    assert _canonical(body)[-1].startswith('%1, %c, %s = lm.select %0 [%e, "yes"]')


def test_one_choice_that_is_no_literal_is_still_selected():
    body = '%1, %c, %s = lm.select %0 [%x] {id = "f/c"} : !ctx, !text, !any\n lm.return %1'
    assert "lm.select" in _canonical(body)[0]


def test_a_folded_number_stays_where_it_is_returned():
    body = '%k = py.call len ("abc") : !int\n lm.return %0 (%k) {structure = "{\\"leaf\\":0}"}'
    assert _canonical(body) == ['%k = py.call len ("abc") : !int']


def test_prefills_of_different_scope():
    body = """
    %1 = lm.prefill %0 : !ctx
    %2 = lm.prefill %1 {scope = "batch"} : !ctx
    %3 = lm.prefill %2 {scope = "batch"} : !ctx
    lm.return %3
    """
    assert _canonical(body)[-1] == '%2 = lm.prefill %0 {scope = "batch"} : !ctx'

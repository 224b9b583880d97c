from __future__ import annotations

import pytest

from tests.ir.breaks import live_text
from tests.passes.modules import ops, run

START = "    %0 = lm.context : !ctx\n"


@pytest.mark.parametrize(
    "op",
    [
        "%a = lm.context : !ctx",
        '%a = lm.extend %0, user ["a"] : !ctx',
        "%a = lm.prefill %0 : !ctx",
        "%a = lm.transcript %0 : !text",
        '%a = text.concat [%x, "b"] : !text',
        "%a = py.call str (%x) : !text",
        '%1, %a = lm.gen %0 {id = "f/a", temperature = 1.0} : !ctx, !text',
        '%1, %a, %s = lm.select %0 ["a", "b"] {id = "f/a"} : !ctx, !text, !any',
    ],
)
def test_what_is_dropped(op: str):
    assert ops("dce", f"{START}{op}\n lm.return %0")[1:-1] == []


@pytest.mark.parametrize(
    "op",
    [
        "%a = py.call int (%x) : !int",
        "%a = py.call str (%n) : !text",  # more than 4300 digits can't be printed
        '%a = host.call @pure () {declared = "pure", id = "f/a"} : !text',
        '%a = host.call @read () {declared = "reads", id = "f/a"} : !text',
        '%a = host.call @write () {id = "f/a"} : !text',
        "py.assume %n {expected = 2}",
    ],
)
def test_what_stays(op: str):
    assert len(ops("dce", f"{START}{op}\n lm.return %0")[1:-1]) == 1


def test_of_what_ran_before_a_break_what_is_live_stays():
    body = (
        START
        + """
    %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text
    %2, %b = lm.gen %0 {id = "f/b"} : !ctx, !text
    %c = text.concat [%b, "!"] : !text
    """
        + live_text(["a"])
    )
    (line,) = ops("dce", body)[1:-1]
    assert 'id = "f/a"' in line


def test_remarks_come_in_the_order_of_the_program():
    body = (
        START
        + """
    %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text
    %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text
    lm.return %0
    """
    )
    _, remarks = run("dce", body)
    assert [str(remark) for remark in remarks] == [
        "dce: 'f/a' is dropped: its result is unused (saves 1 call)",
        "dce: 'f/b' is dropped: its result is unused (saves 1 call)",
    ]

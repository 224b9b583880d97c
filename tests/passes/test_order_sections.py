from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.dialects.section_ops import SECTION_KINDS, section_order
from lmc.passes import pipeline
from lmc.passes.pipelines import PIPELINES
from tests.passes.modules import ops, run

KINDS = st.lists(st.sampled_from(SECTION_KINDS), max_size=12)


@given(kinds=KINDS)
def test_every_section_stays_between_the_texts_around_it(kinds: list[str]):
    order = section_order(kinds)
    assert sorted(order) == list(range(len(kinds)))
    for is_text, group in groupby(range(len(kinds)), key=lambda index: kinds[index] == "text"):
        members = list(group)
        placed = order[members[0] : members[-1] + 1]
        assert sorted(placed) == members
        movable = [index for index in members if kinds[index] == "movable"]
        others = [index for index in members if kinds[index] == "section"]
        assert placed == (members if is_text else movable + others)


@given(kinds=KINDS)
def test_what_is_ordered_stays_as_it_is(kinds: list[str]):
    ordered = [kinds[index] for index in section_order(kinds)]
    assert section_order(ordered) == list(range(len(kinds)))


def test_it_is_in_no_level_and_first_where_asked_for():
    assert not any("order-sections" in text for text in PIPELINES.values())
    for level in PIPELINES:
        names = [each.NAME for each in pipeline(level, order_sections=True).passes]
        assert names == ["order-sections", *(each.NAME for each in pipeline(level).passes)]


def test_lengths_say_which_parts_belong_together():
    found = ops(
        "order-sections",
        """
        %0 = lm.context : !ctx
        %1 = lm.sections %0 ["a", %x, "b", "c", %x] {kinds = ["section", "movable"], lengths = [3, 2]} : !ctx
        lm.return %1
        """,
    )
    assert '%1 = lm.extend %0 ["c", %x, "a", %x, "b"] : !ctx' in found


def test_remarks_name_the_line_and_what_is_gained():
    _, remarks = run(
        "order-sections",
        """
        %0 = lm.context : !ctx
        %1 = lm.sections %0, user [%x, "Be brief and kind, and fair."]
          {kinds = ["section", "movable"], lengths = [1, 1]} : !ctx loc("judge.py":7)
        %2 = lm.sections %1, user ["A", "B"] {kinds = ["movable", "section"], lengths = [1, 1]} : !ctx
        lm.return %2
        """,
    )
    assert [str(remark) for remark in remarks] == [
        "judge.py:7: order-sections: movable sections come first: about 7 tokens of text, not 0, are the same for all "
        "instances of a batch"
    ]


def test_a_movable_section_that_costs_more_than_it_gains_is_no_gain():
    _, remarks = run(
        "order-sections",
        """
        %0 = lm.context : !ctx
        %1 = lm.sections %0, user ["Be brief and kind, and fair.", %x, "Go."]
          {kinds = ["section", "movable", "section"], lengths = [1, 1, 1]} : !ctx loc("judge.py":7)
        lm.return %1
        """,
    )
    assert [str(remark) for remark in remarks] == [
        "judge.py:7: order-sections missed: movable sections come first, of which some are known at run time only: "
        "about 0 tokens of text, not 7, are the same for all instances of a batch; mark only what is always the same"
    ]

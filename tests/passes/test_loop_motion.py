from __future__ import annotations

import pytest
from hypothesis import given

from lmc.ir.core import walk
from lmc.ir.dialects.regions import RegionOp
from lmc.passes.hoist_prefixes.loop_motion import move_invariants
from tests.passes.adversary import Case
from tests.passes.flow_adversary import flow_cases
from tests.passes.modules import ops, run

AROUND = """
    %0 = lm.context : !ctx
    %h = host.call @pure () {{declared = "pure", id = "f/h"}} : !list<!text>
    cf.map (%l) ^body(%i: !int, %item: !text) {{
      {}
      %w = host.call @write (%h, %item) {{id = "f/w"}} : !any
      cf.yield {{}}
    }}
    lm.return %0
"""


def _moves(op: str) -> bool:
    lines = ops("hoist-prefixes", AROUND.format(op))
    return len(lines) == 5


@pytest.mark.parametrize(
    "op",
    [
        "%a = lm.context : !ctx",
        '%a = lm.extend %0, user ["a", %x] : !ctx',
        "%a = lm.transcript %0 : !text",
        '%a = text.concat [%x, "!"] : !text',
        "%a = py.call lt (%n, 3) : !bool",
        "%a = py.call list (%x) : !list<!text>",
    ],
)
def test_what_is_the_same_for_every_element_moves(op: str):
    assert _moves(op)


@pytest.mark.parametrize(
    "op",
    [
        "%a = py.call int (%x) : !int",
        "%a = lm.extend %0, user [%item] : !ctx",
        "%a = py.call add (%i, 1) : !int",
        '%c, %a = lm.gen %0 (%n) {id = "f/a*"} : !ctx, !text',
        '%a = host.call @read () {declared = "reads", id = "f/a"} : !text',
        "py.assume %n {expected = 2}",
        "%a = py.call list (%h) : !list<!list<!text>>",
        "%a = py.call is (%h, %l) : !bool",
        "%a = py.call len (%h) : !int",
    ],
)
def test_what_stays(op: str):
    assert not _moves(op)


def test_an_op_moves_out_of_all_loops_at_once_but_not_out_of_an_arm():
    body = """
    %0 = lm.context : !ctx
    cf.map (%l) ^body(%i: !int, %item: !text) {
      cf.loop (0) ^condition(%j: !int) {
        %go = py.call ne (%j, %n) : !bool
        %a = text.concat [%x, "a"] : !text
        cf.condition %go
      } ^body() {
        %b = text.concat [%item, "b"] : !text
        cf.yield (1)
      }
      cf.yield {}
    }
    lm.return %0
    """
    lines, remarks = run("hoist-prefixes", body)
    assert '%a = text.concat [%x, "a"] : !text' in lines
    assert [remark.message for remark in remarks] == [
        "2 ops give the same in every round: computed once before cf.loop",
        "1 op gives the same for every element: computed once before cf.map",
    ]


@given(case=flow_cases(max_ops=12, depth=3))
def test_what_moved_stands_once_and_nothing_is_left_to_move(case: Case):
    body = case.module.main.body
    told: list[RegionOp] = []
    moved = move_invariants(body, lambda op, _: told.append(op))
    before, after = list(walk((body,))), list(walk((moved,)))
    assert sorted(op.NAME for op in before) == sorted(op.NAME for op in after)
    again: list[RegionOp] = []
    assert move_invariants(moved, lambda op, _: again.append(op)) is moved
    assert not again
    assert bool(told) == (moved is not body)

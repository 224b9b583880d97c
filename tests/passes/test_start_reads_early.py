from __future__ import annotations

import pytest
from hypothesis import given

from lmc.ir.analysis.ordering import objects_of
from lmc.ir.core import Block, Op, walk
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.dialects.region_ops import CondOp
from lmc.ir.semantics.speculation import early_starts, is_marked
from lmc.ir.text.parser import parse_verified
from lmc.passes.base import PassContext
from lmc.passes.pipelines import PIPELINES
from lmc.passes.start_reads_early import StartReadsEarly
from tests.flow_strategies import flow_programs
from tests.program_strategies import Program

MODULE = """
module @f {{
  host @look = "p:look" sha256 "0" reads {{early = true}}
  host @plain = "p:plain" sha256 "1" reads
  host @write = "p:write" sha256 "2" writes
  func @f(%q: !text, %n: !int, %l: !list<!text>, %flag: !bool) {{
    %0 = lm.context : !ctx
    {before}
    cf.cond %flag ^then() {{
      {inside}
      cf.yield {{}}
    }} ^otherwise() {{
      cf.yield {{}}
    }}
    lm.return %0
  }}
}}
"""


def marked(inside: str, before: str = "") -> tuple[Block, list[str]]:
    """The body after the pass, and its remarks."""
    context = PassContext()
    module = StartReadsEarly().run(parse_verified(MODULE.format(inside=inside, before=before)), context)
    return module.main.body, [f"{remark.kind}: {remark.message}" for remark in context.remarks]


def look(argument: str, op_id: str = "f/@look") -> str:
    return f'%v = host.call @look ({argument}) {{declared = "reads", id = "{op_id}"}} : !text'


def _cond(body: Block) -> CondOp:
    return next(op for op in body.ops if isinstance(op, CondOp))


@pytest.mark.parametrize(
    "op",
    [
        '%a = text.concat ["about ", %q] : !text',
        "%a = py.call lt (%n, 1) : !bool",
        "%a = py.call add (%n, 1) : !int",
        "%a = py.call list (%q) : !list<!text>",
    ],
)
def test_what_a_call_takes_moves_with_its_beginning(op: str):
    body, remarks = marked(f"{op} {look('%a')}")
    assert [inner.NAME for inner in _cond(body).then.ops] == ["host.call", "cf.yield"]
    assert body.ops.index(_cond(body)) == 2
    assert remarks == ["applied: 'f/@look' may start before it is known whether the program comes to it"]


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        (f"%a = py.call int (%q) : !int {look('%a')}", "it is called with what 'py.call' gives there"),
        (
            f'%a = host.call @plain (%q) {{declared = "reads", id = "f/@plain"}} : !text {look("%a")}',
            "it is called with what 'f/@plain' gives there",
        ),
        (
            f'%c, %t = lm.gen %0 {{id = "f/t"}} : !ctx, !text %a = text.concat [%t, "!"] : !text {look("%a")}',
            "it is called with what 'f/t' gives there",
        ),
        (
            f"%a = py.call list (%q) : !list<!text> {look('%a')} "
            '%w = host.call @write (%a) {id = "f/@write"} : !text',
            "it is called with what 'py.call' gives there",
        ),
        (f'%w = host.call @write (%q) {{id = "f/@write"}} : !text {look("%q")}', "'f/@write' stands before it"),
    ],
)
def test_what_keeps_a_call_where_it_stands_is_said(inside: str, reason: str):
    body, remarks = marked(inside)
    assert not any(isinstance(op, HostCallOp) and op.early for op in walk((body,)))
    (remark,) = remarks
    assert remark.startswith("missed: 'f/@look' starts where the program comes to it: ")
    assert reason in remark


def test_what_many_arguments_are_made_of_moves_once():
    doubled = " ".join(f"%a{number + 1} = text.concat [%a{number}, %a{number}] : !text" for number in range(60))
    body, remarks = marked(f"%a0 = text.concat [%q] : !text {doubled} {look('%a60')}")
    assert [op.NAME for op in body.ops].count("text.concat") == 61
    assert len(remarks) == 1


def test_what_is_not_declared_so_stays_and_nothing_is_said_of_it():
    inside = '%v = host.call @plain (%q) {declared = "reads", id = "f/@plain"} : !text'
    module = parse_verified(MODULE.format(inside=inside, before=""))
    context = PassContext()
    assert not any(
        isinstance(op, HostCallOp) and op.early for op in walk((StartReadsEarly().run(module, context).main.body,))
    )
    assert context.remarks == []


def test_a_call_outside_of_all_regions_needs_no_mark():
    body, remarks = marked("", look("%q"))
    assert not any(isinstance(op, HostCallOp) and op.early for op in body.ops)
    assert remarks == []


def test_arms_of_arms_give_up_what_a_call_in_them_takes():
    inside = f"""
    %a = text.concat ["one ", %q] : !text
    cf.cond %flag ^then() {{
      %b = text.concat [%a, " two"] : !text
      {look("%b")}
      cf.yield {{}}
    }} ^otherwise() {{ cf.yield {{}} }}
    """
    body, _ = marked(inside)
    assert [op.NAME for op in body.ops[1:4]] == ["text.concat", "text.concat", "cf.cond"]


def test_what_waits_for_an_arm_starts_early_in_that():
    inside = f"""
    %c, %t = lm.gen %0 {{id = "f/t"}} : !ctx, !text
    %c2, %u = lm.gen %c {{id = "f/u"}} : !ctx, !text
    %go = py.call eq (%u, "x") : !bool
    cf.cond %go ^then() {{
      %b = text.concat [%t, "?"] : !text
      {look("%b")}
      cf.yield {{}}
    }} ^otherwise() {{ cf.yield {{}} }}
    """
    body, remarks = marked(inside)
    names = [op.NAME for op in _cond(body).then.ops]
    assert names == ["lm.gen", "lm.gen", "py.call", "text.concat", "cf.cond", "cf.yield"]
    assert remarks[0].startswith("applied")


def test_the_pass_runs_at_the_highest_level_alone():
    levels = [level for level, passes in PIPELINES.items() if StartReadsEarly.NAME in passes.split(",")]
    assert levels == ["O2"]


@given(flow_programs())
def test_twice_is_once_and_a_mark_has_a_place_to_begin(program: Program):
    once = StartReadsEarly().run(program.module, PassContext())
    twice = StartReadsEarly().run(once, PassContext())
    assert str(twice) == str(once)
    body = once.main.body
    begun = {start.ahead.call for block in _blocks(body) for start in early_starts(block.ops, objects_of(body.ops))}
    assert {op for op in walk((body,)) if isinstance(op, HostCallOp) and is_marked(op)} == begun


def _blocks(block: Block) -> list[Block]:
    inner: list[Op] = [*walk((block,))]
    return [block, *(region for op in inner for region in op.regions)]

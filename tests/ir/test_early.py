"""Which host calls may start before it is known whether their regions run, after what, and what keeps others."""

import pytest

from lmc.ir.analysis.ordering import Objects, objects_of
from lmc.ir.core import Value, walk
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.semantics.speculation import CallAhead, calls_ahead, early_starts
from lmc.ir.text.parser import parse_verified

MODULE = """
module @f {{
  host @look = "p:look" sha256 "0" reads {{early = true}}
  host @know = "p:know" sha256 "1" pure {{early = true}}
  host @list = "p:list" sha256 "2" reads
  host @save = "p:save" sha256 "3" writes
  func @f(%q: !text, %flag: !bool, %n: !int) {{
    %0 = lm.context : !ctx
    {body}
    lm.return %0
  }}
}}
"""
LOOK = '{declared = "reads", early = true, id = "look"} : !text'
KNOW = '{declared = "pure", early = true, id = "know"} : !text'
EMPTY = "^otherwise() { cf.yield {} }"


def body_of(body: str):
    return parse_verified(MODULE.format(body=body)).main.body


def aheads(body: str) -> list[CallAhead]:
    block = body_of(body)
    objects = objects_of(block.ops)
    found: list[CallAhead] = []
    for op in block.ops:
        if isinstance(op, RegionOp):
            found += calls_ahead(op, lambda call: call.early, objects)
    return found


def the_ahead(body: str) -> CallAhead:
    (found,) = aheads(body)
    return found


def waits(body: str) -> list[tuple[int, tuple[int, ...]]]:
    ops = body_of(body).ops
    return [(start.holder, start.waits) for start in early_starts(ops, objects_of(ops))]


def test_a_call_in_an_arm_waits_for_its_arguments_and_the_last_write():
    body = f"""
    %1, %a = lm.gen %0 {{id = "a"}} : !ctx, !text
    %s = host.call @save (%a) {{id = "save"}} : !text
    %2, %d = lm.gen %0 {{id = "d"}} : !ctx, !text
    %t = text.concat [%q, "?"] : !text
    %go = py.call eq (%d, "x") : !bool
    cf.cond %go ^then() {{ %v = host.call @look (%t) {LOOK} cf.yield {{}} }} {EMPTY}
    """
    assert waits(body) == [(6, (2, 4))]
    assert waits(body.replace("@look", "@know").replace("reads", "pure")) == [(6, (4,))]


def test_a_call_in_a_protected_region_may_start_before_that():
    body = f"""
    %ok, %error, %r = cf.try ("") : !bool, !any, !text ^body() {{
      %i = py.call int (%q) : !int
      %v = host.call @look (%q) {LOOK}
      cf.yield (%v)
    }}
    """
    assert waits(body) == [(1, ())]
    assert the_ahead(body).obstacle is None


def test_a_call_waits_for_what_may_end_the_program_before():
    body = f"""
    cf.cond %flag ^then() {{ lm.return %0 }} {EMPTY}
    cf.cond %flag ^then() {{ %v = host.call @know (%q) {KNOW} cf.yield {{}} }} {EMPTY}
    """
    assert waits(body) == [(2, (1,))]


@pytest.mark.parametrize(
    ("inner", "obstacle"),
    [
        (f'%s = host.call @save (%q) {{id = "save"}} : !text %v = host.call @look (%q) {LOOK}', "'save' stands before"),
        (
            f'cf.cond %flag ^then() {{ %s = host.call @save (%q) {{id = "save"}} : !text cf.yield {{}} }} {EMPTY}'
            f" %v = host.call @look (%q) {LOOK}",
            "'cf.cond' stands before it and writes",
        ),
        (f"cf.cond %flag ^then() {{ lm.return %0 }} {EMPTY} %v = host.call @know (%q) {KNOW}", "the program may end"),
        (
            f"%l = py.call list (%q) : !list<!text> %m = cf.race (%l) : !bool ^body(%i: !int, %e: !text) {{ "
            f"%v = host.call @look (%q) {LOOK} cf.yield (%flag) }}",
            "cf.race gives it its element",
        ),
        (
            f"%l = py.call list (%q) : !list<!text> cf.map (%l) ^body(%i: !int, %e: !text) {{ "
            f"%v = host.call @look (%e) {LOOK} "
            '%s = host.call @save (%v) {id = "save"} : !text cf.yield {} }',
            "'cf.map' stands before it and writes",
        ),
        (
            "%l = py.call list (%q) : !list<!text> cf.map (%l) ^body(%i: !int, %e: !text) { "
            f"cf.map (%l) ^body(%j: !int, %g: !text) {{ %v = host.call @look (%g) {LOOK} cf.yield {{}} }} "
            "cf.yield {} }",
            "cf.map gives it its element",
        ),
    ],
)
def test_what_keeps_a_call_where_it_stands(inner: str, obstacle: str):
    found = the_ahead(f"cf.cond %flag ^then() {{ {inner} cf.yield {{}} }} {EMPTY}")
    assert found.obstacle is not None
    assert obstacle in found.obstacle


def test_a_pure_call_may_overtake_a_write_but_for_what_that_may_change():
    write = '%s = host.call @save (%q) {id = "save"} : !text'
    found = the_ahead(f"cf.cond %flag ^then() {{ {write} %v = host.call @know (%q) {KNOW} cf.yield {{}} }} {EMPTY}")
    assert (found.obstacle, found.unknown) == (None, ())
    listed = '%l = host.call @list (%q) {declared = "reads", id = "list"} : !any'
    found = the_ahead(
        f"{listed} cf.cond %flag ^then() {{ {write} %v = host.call @know (%l) {KNOW} cf.yield {{}} }} {EMPTY}"
    )
    assert found.obstacle == "'save' stands before it and writes"


@pytest.mark.parametrize(
    ("probability", "region", "predicted"),
    [(0.5, "then", True), (0.4, "then", False), (0.4, "otherwise", True), (0.6, "otherwise", False)],
)
def test_arms_that_are_unlikely_are_left_alone(probability: float, region: str, predicted: bool):
    call = f"%v = host.call @look (%q) {LOOK}"
    arms = {"then": "", "otherwise": "", region: call}
    found = the_ahead(
        f"cf.cond %flag {{probability = {probability}}} ^then() {{ {arms['then']} cf.yield {{}} }} "
        f"^otherwise() {{ {arms['otherwise']} cf.yield {{}} }}"
    )
    assert (found.obstacle is None) is predicted
    assert predicted or found.obstacle == "its way is not the likely one"


LOOP = """
    %t = cf.loop (%q, %n, %flag) : !text ^condition(%a: !text, %k: !int, %go: !bool) {{
      {condition}
      cf.condition %go (%a)
    }} ^body(%b: !text) {{
      {body}
      cf.yield (%v, 3, %flag)
    }}
"""


def test_of_a_loop_the_first_round_is_known_by_what_it_begins_with():
    found = the_ahead(LOOP.format(condition="", body=f"%v = host.call @look (%b) {LOOK}"))
    assert found.arguments == (Value("q", found.call.operands[0].type),)
    assert (found.unknown, found.obstacle, found.rounds) == ((), None, (0,))


def test_what_stands_in_the_condition_of_a_loop_stands_before_its_body():
    body = f"%v = host.call @look (%b) {LOOK}"
    found = the_ahead(LOOP.format(condition='%s = host.call @save (%a) {id = "save"} : !text', body=body))
    assert found.obstacle == "'save' stands before it and writes"
    found = the_ahead(LOOP.format(condition=f"cf.cond %go ^then() {{ lm.return %0 }} {EMPTY}", body=body))
    assert found.obstacle == "the program may end before it, in the same region"


def test_a_literal_that_a_loop_begins_with_is_known_too():
    text = LOOP.format(condition="", body=f"%v = host.call @look (%b) {LOOK}").replace("(%q, %n", '("x", %n')
    assert the_ahead(text).arguments == ("x",)


def test_in_a_map_there_is_one_call_for_each_element_once_its_lists_are_known():
    text = f"cf.map (%l) ^body(%i: !int, %e: !text) {{ %v = host.call @look (%e, %i) {LOOK} cf.yield {{}} }}"
    listed = "%l = py.call list (%q) : !list<!text>"
    found = the_ahead(f"{listed} {text}")
    assert (found.unknown, found.obstacle, found.rounds) == ((), None, (None,))
    assert [value.name for value in (*found.each, *found.lists, *found.needed)] == ["i", "e", "l", "l"]
    assert waits(f"{listed} {text}") == [(2, (1,))]
    inner = the_ahead(f"cf.cond %flag ^then() {{ {listed} {text} cf.yield {{}} }} {EMPTY}")
    assert [value.name for value in inner.unknown] == ["l"]


def test_what_a_region_computes_is_unknown():
    inner = f'%1, %a = lm.gen %0 {{id = "a"}} : !ctx, !text %v = host.call @look (%a, %q) {LOOK}'
    found = the_ahead(f"cf.cond %flag ^then() {{ {inner} cf.yield {{}} }} {EMPTY}")
    assert [value.name for value in found.unknown] == ["a"]
    assert not waits(f"cf.cond %flag ^then() {{ {inner} cf.yield {{}} }} {EMPTY}")


def test_arms_and_rounds_on_the_way_are_named():
    inner = (
        f"cf.cond %flag ^then() {{ cf.yield {{}} }} ^otherwise() {{ %w = host.call @know (%q) {KNOW} cf.yield {{}} }}"
    )
    block = body_of(LOOP.format(condition="", body=f'%v = text.concat [%b, "!"] : !text {inner}'))
    loop = next(op for op in block.ops if isinstance(op, RegionOp))
    (found,) = calls_ahead(loop, lambda call: call.early, Objects(frozenset(), frozenset(), frozenset()))
    (arm,) = found.arms
    assert isinstance(found.call, HostCallOp)
    assert found.call in set(walk((arm.region,)))
    assert (arm.rounds, arm.region) == ((0,), arm.cond.otherwise)

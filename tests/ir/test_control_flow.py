from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from lmc.ir.dialects.region_ops import TryOp
from lmc.ir.engine.protocol import DoneHandle
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineClosedError, InputError, Location, LoopLimitError
from lmc.ir.module import print_module
from lmc.ir.profile import BranchProfile
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.text.parser import parse_verified
from lmc.ir.verify.verifier import verify
from tests.flow_strategies import flow_programs
from tests.ir.breaks import BREAK, live_text
from tests.ir.unrolling import unroll
from tests.program_strategies import Program

TEMPLATE = """
module @m {
  host @tell = "m:tell" sha256 "" writes
  func @m(%f: !bool, %n: !int, %xs: !list<!text>, %ys: !list<!text>, %zero: !int) {
    %c = lm.context : !ctx
    %s = lm.extend %c ["Say: "] : !ctx
    BODY
  }
}
"""
INPUTS: dict[str, Any] = {"f": True, "n": 3, "xs": ["a", "b", "c"], "ys": ["d", "e"], "zero": 0}
VALUES = '{structure = "{\\"list\\":[{\\"leaf\\":0},{\\"leaf\\":1}]}"}'


def run(body: str, *, told: list[Any] | None = None, run_seed: int = 0, **inputs: Any) -> Outcome:
    hosts = {"tell": (told if told is not None else []).append}
    module = parse_verified(TEMPLATE.replace("BODY", body))
    return interpret(module, {**INPUTS, **inputs}, ToyEngine(), hosts=hosts, run_seed=run_seed)


def tell(what: str, name: str = "w") -> str:
    return f'%{name} = host.call @tell ({what}) {{id = "m/@{name}"}} : !any '


@given(flow_programs())
def test_random_programs_do_what_they_do_unrolled(program: Program):
    """Whatever regions run: the same values, texts, requests (so the same draws under the same ids) and costs."""
    verify(program.module)
    flat = unroll(program)
    verify(flat)
    assert not any(op.regions and not isinstance(op, TryOp) for op in flat.main.body.ops)
    options: dict[str, Any] = {"hosts": program.hosts, "constraints": program.constraints}
    found = interpret(program.module, program.inputs, ToyEngine(), **options)
    expected = interpret(flat, program.inputs, ToyEngine(), **options)
    assert (found.value, found.variables, found.text) == (expected.value, expected.variables, expected.text)
    assert found.live == expected.live
    assert [(op_id, cost.usage) for op_id, cost in found.profile.ops.items()] == [
        (op_id, cost.usage) for op_id, cost in expected.profile.ops.items()
    ]


@given(flow_programs())
def test_random_programs_do_the_same_when_read_back(program: Program):
    options: dict[str, Any] = {"hosts": program.hosts, "constraints": program.constraints}
    found = interpret(program.module, program.inputs, ToyEngine(), **options)
    again = interpret(parse_verified(print_module(program.module)), program.inputs, ToyEngine(), **options)
    assert (found.value, found.text, found.usage) == (again.value, again.text, again.usage)
    assert found.live == again.live


@pytest.mark.parametrize(("flag", "expected"), [(True, ["a", "then"]), (False, ["b", "otherwise"])])
def test_a_condition_runs_one_of_its_regions(flag: bool, expected: list[str]):
    told: list[Any] = []
    outcome = run(
        f"%r, %u = cf.cond %f : !text, !ctx "
        f'^then() {{ {tell("true", "w")} %t = text.concat ["a"] : !text %d = lm.extend %s ["then"] : !ctx '
        f"cf.yield (%t, %d) }} "
        f'^otherwise() {{ {tell("false", "v")} %q = text.concat ["b"] : !text %e = lm.extend %s ["otherwise"] : !ctx '
        f"cf.yield (%q, %e) }} lm.return %u (%r, %f) {VALUES}",
        told=told,
        f=flag,
    )
    assert outcome.value == [expected[0], flag]
    assert outcome.text == "Say: " + expected[1]
    assert told == [flag]


LOOP = (
    """
%t0 = text.concat : !text
%m, %d, %all = cf.loop (%zero, %s, %t0) LIMIT : !int, !ctx, !text ^condition(%i: !int, %d0: !ctx, %a0: !text) {
  %more = py.call lt (%i, %n) : !bool
  cf.condition %more (%i, %d0, %a0)
} ^body(%j: !int, %d1: !ctx, %a1: !text) {
  %d2, %t = lm.gen %d1 (%j) {id = "m/t*", max_tokens = 4, temperature = 1.0} : !ctx, !text
  %d3 = lm.extend %d2 [" then "] : !ctx
  %a2 = text.concat [%a1, "|", %t] : !text
  %k = py.call add (%j, 1) : !int
  cf.yield (%k, %d3, %a2)
} loc("loop.py":7)
lm.return %d (%m, %all) """
    + VALUES
)


def test_draws_of_a_loop_are_those_of_the_same_program_written_out():
    flat = "%d0 = lm.end %s : !ctx %a0 = text.concat : !text "
    for index in range(3):
        op_id = f"m/t#{index}" if index else "m/t"
        flat += (
            f'%g{index}, %t{index} = lm.gen %d{index} {{id = "{op_id}", max_tokens = 4, temperature = 1.0}} '
            f': !ctx, !text %d{index + 1} = lm.extend %g{index} [" then "] : !ctx '
            f'%a{index + 1} = text.concat [%a{index}, "|", %t{index}] : !text '
        )
    flat += f"lm.return %d3 (%n, %a3) {VALUES}"
    loop = LOOP.replace("LIMIT", "")
    found = run(loop)
    expected = run(flat)
    assert found.value == expected.value
    assert found.text == expected.text
    assert [*found.profile.ops] == ["m/t", "m/t#1", "m/t#2"]
    assert len(set(found.value[1].split("|"))) == 4  # each round draws anew
    assert found.value != run(loop, run_seed=1).value
    assert run(loop, n=0).value == [0, ""]


def test_a_loop_that_goes_on_beyond_its_limit_is_an_error_at_its_line():
    assert run(LOOP.replace("LIMIT", "{limit = 3}")).value[0] == 3
    with pytest.raises(LoopLimitError, match="the loop went on after 2 rounds, which is its limit") as caught:
        run(LOOP.replace("LIMIT", "{limit = 2}"))
    assert caught.value.location == Location("loop.py", 7)
    assert caught.value.remedy == "raise the limit, or see to it that the loop ends earlier"


MAP = (
    """
%rs, %ds = cf.map (%xs, %ys) STRICT : !list<!text>, !list<!ctx> ^body(%i: !int, %x: !text, %y: !text) {
  %d = lm.extend %s [%x, %y] : !ctx
  %d1, %t = lm.gen %d (%i) {id = "m/view$/t", max_tokens = 3} : !ctx, !text
  %r = py.call str.format ("{}{}{}", %i, %x, %y) : !text
  cf.yield (%r, %d1)
}
%ts = cf.map (%ds) : !list<!text> ^body(%j: !int, %e: !ctx) {
  %u = lm.transcript %e : !text
  cf.yield (%u)
}
lm.return %s (%rs, %ts) """
    + VALUES
)


def test_a_map_gives_lists_in_order_as_long_as_the_shortest():
    outcome = run(MAP.replace("STRICT", ""))
    texts, transcripts = outcome.value
    assert texts == ["0ad", "1be"]
    assert [*outcome.profile.ops] == ["m/view0/t", "m/view1/t"]
    assert transcripts[0].startswith("Say: ad")
    assert transcripts[1].startswith("Say: be")
    assert run(MAP.replace("STRICT", ""), xs=[]).value == [[], []]


def test_a_strict_map_raises_what_zip_raises():
    assert run(MAP.replace("STRICT", "{strict = true}"), ys=["d", "e", "f"]).value[0] == ["0ad", "1be", "2cf"]
    with pytest.raises(ValueError, match="argument 2 is shorter than argument 1"):
        run(MAP.replace("STRICT", "{strict = true}"))


def test_what_a_map_writes_comes_in_order():
    told: list[Any] = []
    run(
        f"cf.map (%xs) ^body(%i: !int, %x: !text) {{ {tell('%x')} cf.yield {{}} }} lm.return %s",
        told=told,
    )
    assert told == ["a", "b", "c"]


RACE = (
    """
%found, %best = cf.race (%xs) : !bool, !text ^body(%i: !int, %x: !text) {
  %d, %t = lm.gen %s (%i) {id = "m/t*", max_tokens = 2} : !ctx, !text
  %good = py.call ge (%x, "WANTED") : !bool
  cf.yield (%good, %x)
} loc("race.py":3)
lm.return %s (%found, %best) """
    + VALUES
)


@pytest.mark.parametrize(
    ("wanted", "value", "ran"),
    [("a", [True, "a"], 1), ("b", [True, "b"], 2), ("c", [True, "c"], 3), ("d", [False, "c"], 3)],
)
def test_a_race_is_won_by_the_first_good_element(wanted: str, value: list[Any], ran: int):
    outcome = run(RACE.replace("WANTED", wanted))
    assert outcome.value == value
    assert len(outcome.profile.ops) == ran


def test_a_race_without_elements_is_an_error_at_its_line():
    with pytest.raises(InputError, match="a race has no elements") as caught:
        run(RACE, xs=[])
    assert caught.value.location == Location("race.py", 3)


TRY = """
%ok, %error, %v = cf.try ("none") {id = "m/@cf.try"OPTIONS} : !bool, !any, !text ^body() {
  cf.map (%xs) ^body(%i: !int, %x: !text) { BODY cf.yield {} }
  cf.yield ("all")
} loc("try.py":3)
%r = py.call repr (%error) : !text
lm.return %s (%ok, %r, %v) {structure = "{\\"list\\":[{\\"leaf\\":0},{\\"leaf\\":1},{\\"leaf\\":2}]}"}"""


def test_what_a_body_raises_becomes_values():
    told: list[Any] = []
    raising = TRY.replace("OPTIONS", "").replace("BODY", tell("%x") + "%o = py.call ord (%x) : !int")
    assert run(raising, told=told).value == [True, "None", "all"]
    error = "TypeError('ord() expected a character, but string of length 2 found')"
    found = run(raising, told=told, xs=["a", "bc", "d"])
    assert found.value == [False, error, "none"]
    assert told == ["a", "b", "c", "a", "bc"]
    assert found.profile.branches == {"m/@cf.try": BranchProfile(otherwise=1)}


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_only_with_base_what_is_no_exception_is_caught(kind: type[BaseException]):
    def leave(_: Any) -> None:
        raise kind("now")

    body = TRY.replace("BODY", tell("%x"))
    module = parse_verified(TEMPLATE.replace("BODY", body.replace("OPTIONS", ", base = true")))
    found = interpret(module, INPUTS, ToyEngine(), hosts={"tell": leave})
    assert found.value == [False, f"{kind.__name__}('now')", "none"]
    module = parse_verified(TEMPLATE.replace("BODY", body.replace("OPTIONS", "")))
    with pytest.raises(kind):
        interpret(module, INPUTS, ToyEngine(), hosts={"tell": leave})


@pytest.mark.parametrize("base", ["", ", base = true"])
def test_what_ends_the_run_is_never_caught(base: str):
    body = TRY.replace("OPTIONS", base)
    with pytest.raises(InputError, match="the program was compiled for 'a' here"):
        run(body.replace("BODY", 'py.assume %x {expected = "a"}'))
    with pytest.raises(InputError, match="the host function @tell is not there"):
        interpret(parse_verified(TEMPLATE.replace("BODY", body.replace("BODY", tell("%x")))), INPUTS, ToyEngine())
    unreachable = "cf.cond %f ^then() { cf.unreachable } ^otherwise() { cf.yield {} }"
    with pytest.raises(InputError, match=r"the run came to cf\.unreachable"):
        run(body.replace("BODY", unreachable))

    class Closed(ToyEngine):
        def submit(self, request: Any, on_delta: Any = None) -> Any:
            return DoneHandle[Any].failed(EngineClosedError("closed"))

    module = parse_verified(
        TEMPLATE.replace("BODY", body.replace("BODY", '%g, %t = lm.gen %s {id = "g"} : !ctx, !text'))
    )
    with pytest.raises(EngineClosedError):
        interpret(module, INPUTS, Closed())


def test_an_error_that_is_raised_again_has_the_line_of_that():
    body = """
    %ok, %error = cf.try : !bool, !any ^body() { %o = py.call int ("x") : !int loc("try.py":3) cf.yield {} }
    %never = py.call raise (%error) : !any loc("try.py":9)
    lm.return %s
    """
    with pytest.raises(ValueError, match="invalid literal") as caught:
        run(body)
    assert caught.value.__notes__ == ["in the program at try.py:9"]


BREAKS = f"""
%before = host.call @tell (%n) {{id = "m/@before"}} : !any
%one = py.call add (%n, 1) : !int
%d = cf.cond %f : !ctx ^then() {{
  %d1, %t = lm.gen %s (%zero) {{id = "m/t*", max_tokens = 3}} : !ctx, !text
  %ms, %q, %meta = lm.select %d1 ["yes", "no"] {{id = "m/q"}} : !ctx, !text, !any
  {live_text(["t", "q", "d1", "one"], cause="eval(x)")}
}} ^otherwise() {{
  cf.yield (%s)
}}
%after = host.call @tell ("after") {{id = "m/@after"}} : !any
lm.return %d (%after, %n) {VALUES}
"""


def test_a_break_in_a_region_ends_the_run_with_what_is_live():
    told: list[Any] = []
    outcome = run(BREAKS, told=told)
    assert (outcome.value, outcome.variables, outcome.text) == (None, {}, "")
    assert outcome.broken_at is not None
    assert outcome.broken_at.cause == "eval(x)"
    assert told == [3]
    assert outcome.live is not None
    assert outcome.live.record == outcome.broken_at.record
    text, choice, context, number = outcome.live.values
    assert context.transcript() == "Say: " + text
    assert choice in ("yes", "no")
    assert number == 4


def test_a_run_that_does_not_come_to_a_break_has_nothing_live():
    told: list[Any] = []
    outcome = run(BREAKS, told=told, f=False)
    assert (outcome.live, outcome.broken_at) == (None, None)
    assert outcome.value == [None, 3]
    assert told == [3, "after"]


def test_a_break_ends_the_loops_around_it():
    told: list[Any] = []
    outcome = run(
        f"%m = cf.loop (%zero) : !int ^condition(%i: !int) {{ {tell('%i')} "
        f"%stop = py.call eq (%i, 2) : !bool cf.cond %stop ^then() {{ {BREAK} }} ^otherwise() {{ cf.yield {{}} }} "
        "cf.condition %f (%i) } ^body(%j: !int) { %k = py.call add (%j, 1) : !int cf.yield (%k) } lm.return %s",
        told=told,
    )
    assert told == [0, 1, 2]
    assert outcome.broken_at is not None


def test_host_calls_run_in_the_order_of_rounds_and_elements():
    told: list[Any] = []
    run(
        f"cf.map (%xs) ^body(%i: !int, %x: !text) {{ %m = cf.loop (%i) : !int ^condition(%a: !int) {{ "
        f"%go = py.call lt (%a, 2) : !bool {tell('%a', 'v')} cf.condition %go (%a) }} ^body(%b: !int) {{ "
        f"cf.cond %f ^then() {{ {tell('%x')} cf.yield {{}} }} ^otherwise() {{ cf.yield {{}} }} "
        "%k = py.call add (%b, 1) : !int cf.yield (%k) } cf.yield {} } lm.return %s",
        told=told,
    )
    assert told == [0, "a", 1, "a", 2, 1, "b", 2, 2]


def test_an_error_in_a_region_has_its_own_line():
    with pytest.raises(InputError) as caught:
        run(
            'cf.map (%xs) ^body(%i: !int, %x: !text) { py.assume %x {expected = "a"} loc("m.py":5) cf.yield {} } '
            "lm.return %s"
        )
    assert caught.value.location == Location("m.py", 5)

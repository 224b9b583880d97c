from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from lmc.ir.core import Block
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import InputError, LmcError, Location
from lmc.ir.module import Module, print_module
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.text.parser import parse_verified
from lmc.ir.verify.verifier import verify
from tests.ir.breaks import live_text
from tests.ir.region_ops import MapOp, YieldOp, make
from tests.program_strategies import Program, programs

JUDGE = """
module @judge {
  host @lookup = "judge:lookup" sha256 "" reads
  func @judge(%essay: !text, %dims: !list<!text>) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0, system ["You grade essays."] : !ctx
    %2 = lm.extend %1, user ["Essay:\\n", %essay, "\\nIs it on topic?"] : !ctx
    %3, %t, %m = lm.select %2 ["yes", "no"] {id = "judge/on_topic"} : !ctx, !text, !any
    %w = host.call @lookup (%essay, 2) {declared = "reads", id = "judge/lookup", keywords = ["times"]} : !any
    %j = py.call str.join (", ", %dims) : !text
    %4 = lm.extend %3, user ["Dimensions: ", %j] : !ctx
    %5, %v = lm.gen %4 {id = "judge/v", max_tokens = 8} : !ctx, !text
    %s = lm.sample %5 {id = "judge/s", max_tokens = 4, n = 2, temperature = 1.0} : !list<!text>
    RETURN
  }
}
"""
RETURNS = (
    'lm.return %5 (%v, %w, %s) (%t, %v) {structure = "{\\"dict\\":[[{\\"literal\\":\\"verdict\\"},{\\"leaf\\":0}],'
    '[{\\"literal\\":\\"rest\\"},{\\"tuple\\":[{\\"leaf\\":1},{\\"leaf\\":2}]}]]}", variable_names = ["on_topic", "v"]}'
)
BREAKS = live_text(["5", "v", "t"], cause="eval(x)")
INPUTS = {"essay": "An essay.", "dims": ["style", "facts"]}


def judge(end: str = RETURNS) -> Module:
    return parse_verified(JUDGE.replace("RETURN", end))


def run(module: Module, engine: ToyEngine | None = None, **options: Any) -> Outcome:
    hosts = {"lookup": lambda text, *, times: text * times}
    return interpret(module, INPUTS, engine or ToyEngine(), hosts=hosts, **options)


@given(programs())
def test_random_programs_run_and_their_text_means_the_same(program: Program):
    verify(program.module)
    hosts, constraints = program.hosts, program.constraints
    outcome = interpret(program.module, program.inputs, ToyEngine(), hosts=hosts, constraints=constraints)
    module = parse_verified(print_module(program.module))
    again = interpret(module, program.inputs, ToyEngine(), hosts=hosts, constraints=constraints)
    assert (outcome.value, outcome.variables, outcome.text) == (again.value, again.variables, again.text)
    assert outcome.usage == again.usage


def test_value_variables_and_text():
    outcome = run(judge())
    assert outcome.live is None
    assert list(outcome.value) == ["verdict", "rest"]
    assert outcome.value["verdict"] == outcome.variables["v"]
    looked_up, samples = outcome.value["rest"]
    assert looked_up == "An essay.An essay."
    assert len(samples) == 2
    assert outcome.variables["on_topic"] in ("yes", "no")
    assert outcome.text == (
        "<|im_start|>system\nYou grade essays.<|im_end|>\n"
        "<|im_start|>user\nEssay:\nAn essay.\nIs it on topic?<|im_end|>\n"
        f"<|im_start|>assistant\n{outcome.variables['on_topic']}<|im_end|>\n"
        "<|im_start|>user\nDimensions: style, facts<|im_end|>\n"
        f"<|im_start|>assistant\n{outcome.value['verdict']}"
    )


def test_usage_and_profile_count_what_each_op_cost():
    engine = ToyEngine()
    outcome = run(judge(), engine)
    assert set(outcome.profile.ops) == {"judge/on_topic", "judge/v", "judge/s"}
    assert outcome.usage.calls == 4 == engine.statistics.requests
    assert outcome.usage.prompt_tokens == engine.statistics.prompt_tokens
    assert outcome.usage.generated_tokens == engine.statistics.generated_tokens
    sampled = outcome.profile.ops["judge/s"]
    assert sampled.usage.calls == sum(count for _, count in sampled.finish_reasons) == 2
    assert 0 < sampled.longest <= 4


def test_samples_depend_on_run_seed_and_instance_and_nothing_else():
    def samples(**options: Any) -> list[str]:
        return run(judge(), **options).value["rest"][1]

    assert samples() == samples()
    assert len({tuple(samples(run_seed=seed)) for seed in range(4)}) > 1
    assert len({tuple(samples(instance=index)) for index in range(4)}) > 1


def test_a_break_gives_what_is_live():
    outcome = run(judge(BREAKS))
    assert (outcome.value, outcome.variables, outcome.text) == (None, {}, "")
    assert outcome.live is not None
    context, verdict, choice = outcome.live.values
    assert context.transcript().endswith(verdict)
    assert choice in ("yes", "no")
    assert verdict == run(judge()).value["verdict"]


def test_inputs_must_fit_the_parameters():
    with pytest.raises(InputError, match=r"missing \['dims'\], unknown \['dim'\]") as caught:
        interpret(judge(), {"essay": "a", "dim": []}, ToyEngine())
    assert caught.value.remedy == "give exactly ['essay', 'dims']"


def test_a_missing_host_function_is_an_error():
    text = JUDGE.replace("RETURN", RETURNS).replace(" : !any\n    %j", ' : !any loc("judge.py":9)\n    %j')
    with pytest.raises(InputError, match="the host function @lookup is not there") as caught:
        interpret(parse_verified(text), INPUTS, ToyEngine())
    assert caught.value.location == Location("judge.py", 9)


def test_an_op_without_a_meaning_is_an_error():
    module = judge()
    *ops, end = module.main.body.ops
    parameters = module.main.parameters
    with pytest.raises(TypeError, match=r"test\.map has regions of no known meaning"):
        run(module.with_main(Block(parameters, (*ops, make(MapOp, body=Block((), (make(YieldOp),))), end))))
    with pytest.raises(TypeError, match=r"test\.yield ends no program"):
        run(module.with_main(Block(parameters, (*ops, make(YieldOp)))))


def test_coming_to_where_no_run_should_is_an_error_at_its_line():
    text = """
    module @f {
      func @f(%flag: !bool) {
        cf.cond %flag ^then() { cf.unreachable {} loc("f.py":3) } ^otherwise() { cf.yield {} }
        %c = lm.context : !ctx
        lm.return %c
      }
    }
    """
    assert interpret(parse_verified(text), {"flag": False}, ToyEngine()).text == ""
    with pytest.raises(InputError, match=r"the run came to cf\.unreachable, but no run should") as caught:
        interpret(parse_verified(text), {"flag": True}, ToyEngine())
    assert caught.value.location == Location("f.py", 3)
    assert caught.value.remedy


EARLY = """
module @early {
  func @early(%flag: !bool, %other: !bool) {
    %c = lm.context : !ctx
    %n, %d = cf.cond %flag : !int, !ctx ^then() {
      cf.yield (1, %c)
    } ^otherwise() {
      lm.return %c {structure = "{\\"literal\\":\\"left\\"}"}
    }
    cf.cond %other ^then() {
      lm.return %d () (%n) (%flag) {present_names = ["n"], variable_names = ["n"]}
    } ^otherwise() {
      lm.return %d () (%n) (%other) {present_names = ["n"], variable_names = ["n"]}
    }
    cf.unreachable
  }
}
"""


@pytest.mark.parametrize(
    ("flag", "other", "value", "variables"),
    [(False, True, "left", {}), (True, True, None, {"n": 1}), (True, False, None, {})],
)
def test_a_program_may_return_in_a_region(flag: bool, other: bool, value: object, variables: dict[str, object]):
    module = parse_verified(EARLY)
    ended = interpret(module, {"flag": flag, "other": other}, ToyEngine())
    assert (ended.value, ended.variables, ended.live) == (value, variables, None)


LOCATED = """
module @m {
  host @look = "m:look" sha256 "" reads
  func @m(%f: !bool, %xs: !list<!text>) {
    %c = lm.context : !ctx
    cf.map (%xs) ^body(%i: !int, %x: !text) {
      cf.cond %f ^then() {
        FAILS loc("m.py":7)
        cf.yield {}
      } ^otherwise() { cf.yield {} } loc("m.py":6)
      cf.yield {}
    } loc("m.py":5)
    lm.return %c
  }
}
"""


@pytest.mark.parametrize(
    "fails",
    [
        '%d, %t = lm.gen %c (%i) {id = "m/a*", max_tokens = 2} : !ctx, !text',
        '%d, %t, %s = lm.select %c ["yes"] (%i) {id = "m/a*"} : !ctx, !text, !any',
        '%h = host.call @look (%x) {declared = "reads", id = "m/@look"} : !any',
    ],
    ids=["gen", "select", "host"],
)
def test_what_fails_in_a_region_has_the_line_of_its_op(fails: str):
    def look(_: str) -> str:
        raise InputError("nothing there")

    module = parse_verified(LOCATED.replace("FAILS", fails))
    with pytest.raises(LmcError) as caught:
        interpret(module, {"f": True, "xs": ["a"]}, ToyEngine(context_length=0), hosts={"look": look})
    assert caught.value.location == Location("m.py", 7)


def test_what_is_no_error_of_lmc_tells_the_line_once():
    module = parse_verified(LOCATED.replace("FAILS", "%n = py.call int (%x) : !int"))
    with pytest.raises(ValueError, match="invalid literal") as caught:
        interpret(module, {"f": True, "xs": ["a"]}, ToyEngine())
    assert caught.value.__notes__ == ["in the program at m.py:7"]

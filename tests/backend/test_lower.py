from typing import Any

import pytest
from hypothesis import given

from lmc.backend.lower import lower
from lmc.backend.plan import defined_values
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import GenOp, SelectOp
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import Location, LoweringError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse
from lmc.ir.verify.verifier import verify
from tests.backend.programs import FLOW, JUDGE, TOOLS, plan_of
from tests.flow_strategies import flow_programs
from tests.program_strategies import Program

TOY = Target.parse("toy")


@pytest.mark.parametrize("text", [JUDGE, TOOLS, FLOW], ids=["judge", "tools", "flow"])
def test_a_plan_is_the_module_slot_by_slot(text: str):
    module = parse(text)
    plan = lower(module, TOY)
    before, after = module.main.body, plan.module.main.body
    assert [op.NAME for op in walk([after])] == [op.NAME for op in walk([before])]
    assert [op.location for op in walk([after])] == [op.location for op in walk([before])]
    assert [value.name for value in defined_values(after)] == [str(index) for index in range(len(plan.slots))]
    assert [parameter.name for parameter in plan.parameters] == [value.name for value in before.parameters]
    assert (plan.module.hosts, plan.module.constraints) == (module.hosts, module.constraints)
    verify(plan.module)


def test_a_plan_means_what_its_module_means():
    module = parse(JUDGE)
    expected = interpret(module, {"essay": "Birds fly."}, ToyEngine(), run_seed=3)
    found = interpret(lower(module, TOY).module, {"0": "Birds fly."}, ToyEngine(), run_seed=3)
    assert (found.value, found.text, found.usage) == (expected.value, expected.text, expected.usage)


@given(flow_programs())
def test_a_plan_with_regions_means_what_its_module_means(program: Program):
    plan = lower(program.module, TOY)
    verify(plan.module)
    inputs = {parameter.value.name: program.inputs[parameter.name] for parameter in plan.parameters}
    options: dict[str, Any] = {"hosts": program.hosts, "constraints": program.constraints}
    expected = interpret(program.module, program.inputs, ToyEngine(), **options)
    found = interpret(plan.module, inputs, ToyEngine(), **options)
    assert (found.value, found.text, found.usage) == (expected.value, expected.text, expected.usage)
    assert found.live == expected.live


def test_bodies_hold_the_ops_of_regions_and_what_they_wait_for_there():
    plan = plan_of(FLOW)
    views = next(entry for entry in plan.instructions if entry.op.NAME == "cf.map")
    (body,) = views.bodies
    assert [entry.op for entry in body.instructions] == list(views.op.regions[0].ops)
    assert body.parameters == views.op.regions[0].parameters
    assert [entry.depends for entry in body.instructions] == [(), (0,), (1,), (1,), (2,), (2, 3), (5,)]
    assert [entry.wave for entry in body.instructions] == [0, 0, 0, 0, 1, 1, 1]
    loop = next(entry for entry in plan.instructions if entry.op.NAME == "cf.loop")
    assert [len(entry.bodies) for entry in loop.bodies[1].instructions] == [0, 2, 0, 0]


def test_waves_count_the_calls_on_the_longest_way():
    plan = plan_of(JUDGE)
    waves = {entry.op.id: entry.wave for entry in plan.instructions if isinstance(entry.op, GenOp | SelectOp)}
    assert waves == {"judge/on_topic": 0, "judge/fork/0/j": 0, "judge/fork/1/j": 0, "judge/verdict": 1}
    assert plan.wave_count == 2


def test_a_wave_that_a_pass_has_set_is_kept():
    text = """
    module @f {
      func @f() {
        %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {id = "f/a", wave = 2} : !ctx, !text
        %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text
        lm.return %2 ()
      }
    }
    """
    assert [entry.wave for entry in plan_of(text).instructions] == [0, 2, 3, 4]


def test_each_region_counts_once_among_the_rounds():
    plan = plan_of(FLOW)
    assert {entry.op.NAME: entry.rounds for entry in plan.instructions if entry.bodies} == {
        "cf.map": 1,
        "cf.loop": 1,
        "cf.race": 1,
        "cf.cond": 0,
    }
    by_id = {entry.op.id: entry.wave for entry in plan.instructions if isinstance(entry.op, GenOp | SelectOp)}
    # One after the other: views, the loop (it writes), the race (it looks into what a host gave), the end.
    assert by_id == {"flow/ok": 0, "flow/end": 3}
    assert plan.wave_count == 4


def test_of_two_arms_the_longer_one_counts():
    gen = '%{0}, %t{0} = lm.gen %{1} {{id = "{0}", max_tokens = 1}} : !ctx, !text '
    text = f"""
    module @f {{
      func @f(%x: !bool) {{
        %c = lm.context : !ctx
        %d = cf.cond %x : !ctx ^then() {{ {gen.format("a", "c")} {gen.format("b", "a")} cf.yield (%b) }}
          ^otherwise() {{ {gen.format("e", "c")} cf.yield (%e) }}
        {gen.format("g", "d")}
        lm.return %g
      }}
    }}
    """
    plan = plan_of(text)
    assert [entry.wave for entry in plan.instructions] == [0, 0, 2, 3]
    assert plan.wave_count == 3


CONSTRAINED = """
    module @f {
      constraint @c0 = regex "[a-z]+"
      func @f() {
        %0 = lm.context : !ctx
        %1 = lm.extend %0 ["word: "] : !ctx
        %2, %a = lm.gen %1 {constraint = @c0, id = "f/a"} : !ctx, !text     loc("word.py":4)
        lm.return %2 (%a) {structure = "{\\"leaf\\":0}"}
      }
    }
    """


@pytest.mark.parametrize("target", ["builtin", "toy", "local:folder"])
def test_constraints_go_where_they_are_enforced(target: str):
    module = parse(CONSTRAINED)
    plan = lower(module, Target.parse(target))
    assert plan.module.constraints == module.constraints


def test_a_constraint_is_refused_at_the_users_line_elsewhere():
    with pytest.raises(LoweringError) as caught:
        lower(parse(CONSTRAINED), Target("remote", capabilities=Capabilities(structured="none")))
    assert caught.value.location == Location("word.py", 4)
    assert "'f/a' has a constraint, which remote does not enforce" in caught.value.cause
    assert caught.value.remedy is not None
    assert "use select" in caught.value.remedy


def test_a_constraint_in_a_region_is_refused_elsewhere():
    gen = '%2, %a = lm.gen %1 {constraint = @c0, id = "f/a"} : !ctx, !text     loc("word.py":4)'
    inner = gen.replace("%2", "%3").replace("%a", "%b")
    text = CONSTRAINED.replace(
        gen,
        f"%2, %a = cf.cond %x : !ctx, !text ^then() {{ {inner} cf.yield (%3, %b) }} "
        '^otherwise() { cf.yield (%1, "") }',
    ).replace("@f()", "@f(%x: !bool)")
    assert lower(parse(text), TOY).constraints
    with pytest.raises(LoweringError, match=r"^word\.py:4: generation 'f/a' has a constraint"):
        lower(parse(text), Target("remote", capabilities=Capabilities(structured="none")))

import pytest

from lmc.backend.lower import lower
from lmc.ir.core import Block, Function, Module
from lmc.ir.errors import Location, LoweringError
from lmc.ir.interpreter import interpret
from lmc.ir.parser import parse
from lmc.ir.target import Target
from lmc.ir.toy import ToyEngine
from lmc.ir.verifier import verify
from tests.backend.programs import JUDGE, TOOLS, plan_of
from tests.ir import region_ops

TOY = Target.parse("toy")


@pytest.mark.parametrize("text", [JUDGE, TOOLS], ids=["judge", "tools"])
def test_a_plan_is_the_module_slot_by_slot(text: str):
    module = parse(text)
    plan = lower(module, TOY)
    before, after = module.main.body, plan.module.main.body
    assert [op.NAME for op in after.ops] == [op.NAME for op in before.ops]
    assert [op.location for op in after.ops] == [op.location for op in before.ops]
    names = [value.name for value in (*after.parameters, *(value for op in after.ops for value in op.results))]
    assert names == [str(index) for index in range(len(plan.slots))]
    assert [parameter.name for parameter in plan.parameters] == [value.name for value in before.parameters]
    assert (plan.module.hosts, plan.module.constraints) == (module.hosts, module.constraints)
    verify(plan.module)


def test_a_plan_means_what_its_module_means():
    module = parse(JUDGE)
    expected = interpret(module, {"essay": "Birds fly."}, ToyEngine(), run_seed=3)
    found = interpret(lower(module, TOY).module, {"0": "Birds fly."}, ToyEngine(), run_seed=3)
    assert (found.value, found.text, found.usage) == (expected.value, expected.text, expected.usage)


def test_wave_count_is_the_number_of_rounds():
    assert plan_of(JUDGE).wave_count == 2


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
        lower(parse(CONSTRAINED), Target("remote"))
    assert caught.value.location == Location("word.py", 4)
    assert "'f/a' has a constraint (regex), which target 'remote' does not enforce" in caught.value.cause
    assert caught.value.remedy is not None
    assert "use select" in caught.value.remedy


def test_regions_are_refused():
    op = region_ops.make(region_ops.MapOp, body=Block(), location=Location("loop.py", 2))
    module = Module("f", (Function("f", Block((), (op,))),))
    with pytest.raises(LoweringError, match=r"loop\.py:2: test\.map has regions") as caught:
        lower(module, TOY)
    assert caught.value.remedy

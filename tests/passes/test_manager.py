from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from lmc.ir.core import Block
from lmc.ir.errors import VerifyError
from lmc.ir.module import Module
from lmc.passes import FunctionPass, PassContext, PassManager, parse_pipeline
from tests.passes.modules import module_of

BODY = """
    %0 = lm.context : !ctx
    %1 = lm.context : !ctx
    %2, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
    %3, %b = lm.gen %0 {id = "f/b"} : !ctx, !text
    lm.return %1 (%a)
"""


@dataclass(frozen=True)
class Breaking(FunctionPass):
    """Drops the first op, whatever needs it."""

    NAME = "breaking"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        self.applied(context, None, "the first op is gone")
        return Block(block.parameters, block.ops[1:])


def test_the_module_itself_is_never_changed():
    module = module_of(BODY)
    before = module.main.body.ops
    result = PassManager(parse_pipeline("cse,dce")).run(module)
    assert module.main.body.ops is before
    assert len(result.module.main.body.ops) < len(before)


def test_after_sees_each_pass_with_its_module_and_each_is_timed():
    seen: list[tuple[str, Module]] = []
    passes = PassManager(parse_pipeline("cse,dce,cse"))
    result = passes.run(module_of(BODY), after=lambda each, module: seen.append((each.NAME, module)))
    assert [name for name, _ in seen] == ["cse", "dce", "cse"]
    assert seen[-1][1] is result.module
    assert [timing.name for timing in result.timings] == ["cse", "dce", "cse"]
    assert all(timing.seconds >= 0 and timing.verify_seconds >= 0 for timing in result.timings)


def test_a_pass_that_changes_nothing_gives_the_same_module():
    module = module_of("    %0 = lm.context : !ctx\n    lm.return %0")
    assert PassManager(parse_pipeline("dce,plan-fork-join")).run(module).module is module


def test_remarks_are_those_of_this_run_only():
    context = PassContext()
    manager = PassManager(parse_pipeline("cse,dce"))
    first = manager.run(module_of(BODY), context)
    second = manager.run(first.module, context)
    assert [remark.pass_name for remark in first.remarks] == ["cse"]
    assert second.remarks == ()
    assert len(context.remarks) == 1


def test_a_module_that_is_not_valid_is_refused():
    module = module_of(BODY)
    broken = dataclasses.replace(module, name="other")
    with pytest.raises(VerifyError, match="module @other has no function @other"):
        PassManager(()).run(broken)


@pytest.mark.parametrize("verify_each", [True, False])
def test_a_pass_that_breaks_the_module_is_named(verify_each: bool):
    context = PassContext()
    with pytest.raises(VerifyError) as caught:
        PassManager((Breaking(), *parse_pipeline("plan-fork-join")), verify_each).run(module_of(BODY), context)
    assert [remark.pass_name for remark in context.remarks] == ["breaking"]
    assert caught.value.cause.startswith("pass breaking broke the module: lm.gen: %0 is used before")
    assert "bug of the pass" in str(caught.value.remedy)

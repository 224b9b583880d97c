from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import PrefillOp
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import InputError
from lmc.ir.module import Module, print_module
from lmc.ir.types import CTX
from lmc.ir.verify.cache_hint_rules import uses_cache
from lmc.passes import PassContext, PassManager, parse_pipeline
from lmc.passes.analysis.kv_hints import with_true_hints, without_hints
from lmc.passes.kv_liveness import CallWaves, ContextUses, KvLiveness
from tests.compiled_constraints import CACHE
from tests.passes.adversary import Case, cases, observe
from tests.passes.flow_adversary import flow_cases
from tests.passes.modules import module_of, ops, run

# After it, whatever other passes do to a program that has hints.
AFTER = (
    "dce",
    "canonicalize",
    "cse",
    "compile-constraints",
    "distribute-loops",
    "hoist-prefixes",
    "start-reads-early",
    "plan-fork-join",
)
PLANNED = "hoist-prefixes{minimum_tokens=1},plan-fork-join,kv-liveness"


def _run(spec: str, module: Module) -> Module:
    return PassManager(parse_pipeline(spec)).run(module, PassContext(toy_tokenizer(), CACHE)).module


@given(case=cases() | flow_cases(), spec=st.sampled_from(AFTER))
def test_every_pass_copes_with_hints(case: Case, spec: str):
    """The manager verifies what a pass gives: no hint is left that is not true any more."""
    planned = _run(PLANNED, case.module)
    found = observe(_run(spec, planned), case.inputs, run_seed=0, instance=0)
    assert found == observe(case.module, case.inputs, run_seed=0, instance=0)


@given(case=cases(max_ops=30) | flow_cases(depth=3))
def test_hints_are_true(case: Case):
    """Each names the first wave in which a call goes on from its context, and no true hint is left out again."""
    module = _run(PLANNED, case.module)
    body = module.main.body
    assert with_true_hints(body) is body
    assert not any(isinstance(op, KeepOp | FreeOp) for op in walk((without_hints(body),)))
    waves = CallWaves(body)
    uses = ContextUses(body, waves)
    for block in (body, *(region for op in walk((body,)) for region in op.regions)):
        for op in block.ops:
            if isinstance(op, KeepOp):
                assert op.context in uses.first
                assert op.next_use + waves.start[block] >= uses.first[op.context]
                assert op.after or op.next_use + waves.start[block] == uses.first[op.context]


def test_a_loop_that_uses_a_prefix_in_its_second_round_does_not_use_it_when_it_begins():
    found = ops(
        "kv-liveness",
        """
        %0 = lm.context : !ctx
        %1 = lm.prefill %0 : !ctx
        %2, %i = cf.loop (%0, %n) {id = "f/@region#1"} : !ctx, !int ^condition(%3: !ctx, %j: !int) {
          %4, %a = lm.gen %3 (%j) {id = "f/a*"} : !ctx, !text
          %flag = py.call lt (%j, 9) : !bool
          cf.condition %flag (%4, %j)
        } ^body(%5: !ctx, %k: !int) {
          %m = py.call add (%k, 1) : !int
          cf.yield (%1, %m)
        }
        lm.return %2
        """,
    )
    assert "lm.keep %1 {next_use = 1}" in found


@given(case=cases(max_ops=30))
def test_a_pinned_prefix_is_freed_after_its_last_use_and_not_before(case: Case):
    body = (
        PassManager((*parse_pipeline("hoist-prefixes{minimum_tokens=1},plan-fork-join"), KvLiveness(wave_cost=0.0)))
        .run(case.module)
        .module.main.body
    )
    freed = {op.context: index for index, op in enumerate(body.ops) if isinstance(op, FreeOp)}
    last = _last_uses(body)
    for op in body.ops:
        if isinstance(op, PrefillOp) and op.scope == "instance" and op.results[0] in last:
            assert freed[op.results[0]] >= last[op.results[0]]
            assert all(isinstance(other, FreeOp | KeepOp) for other in _between(body, last, freed, op.results[0]))


def _last_uses(body: Block) -> dict[Value, int]:
    origins: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for index, op in enumerate(body.ops):
        if isinstance(op, KeepOp | FreeOp):
            continue
        for value in [value for value in op.operands if value.type == CTX]:
            origin = origins.get(value, value)
            if uses_cache(op):
                last[origin] = index
            elif op.results:
                origins[op.results[0]] = origin
    return last


def _between(body: Block, last: dict[Value, int], freed: dict[Value, int], value: Value) -> tuple[Op, ...]:
    return body.ops[last[value] + 1 : freed[value]]


def test_a_context_of_a_region_is_kept_where_it_comes_to_it_and_its_first_call_waits_for_a_tool():
    module = module_of(
        """
        %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text
        %r = cf.loop (%1) {limit = 3} : !ctx ^condition(%p: !ctx) {
          %go = py.call eq (%x, "") : !bool
          cf.condition %go (%p)
        } ^body(%q: !ctx) {
          %w = host.call @write (%x) {id = "f/@write"} : !text
          %2 = lm.extend %q [%w] : !ctx
          %3, %b = lm.gen %2 {id = "f/b"} : !ctx, !text
          cf.yield (%3)
        }
        lm.return %r
        """
    )
    text = print_module(_run("kv-liveness", module))
    assert "lm.keep %q {next_use = 0}\n" in text
    assert "lm.free %q (%3)\n" in text
    assert "lm.keep %1 {next_use = 1}\n" in text
    assert "lm.free %1 (%r)\n" in text
    assert "lm.keep %3 {next_use = 1}\n" in text
    assert "lm.free %3" not in text  # it goes to the next round
    assert "lm.keep %p" not in text  # the condition asks nobody


def test_a_use_that_gives_nothing_to_wait_for_leaves_the_end_to_that_of_the_block():
    found = ops(
        "kv-liveness",
        """
        %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text
        %w = host.call @read (%a) {declared = "reads", id = "f/@read"} : !text
        %flag = py.call eq (%w, "") : !bool
        cf.cond %flag ^then() {
          %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text
          %v = host.call @write (%b) {id = "f/@write"} : !text
          cf.yield ()
        } ^otherwise() {
          cf.yield ()
        }
        lm.return %0 (%a)
        """,
    )
    assert "lm.keep %1 {next_use = 1}" in found
    assert not any("lm.free" in line for line in found)


def test_a_prefix_of_the_batch_is_left_alone():
    found = ops(
        "kv-liveness",
        """
        %0 = lm.context : !ctx
        %1 = lm.extend %0 ["Be brief."] : !ctx
        %2 = lm.prefill %1 {scope = "batch"} : !ctx
        %3 = lm.extend %2 [%x] : !ctx
        %4, %a = lm.gen %3 {id = "f/a"} : !ctx, !text
        lm.return %4 (%a)
        """,
    )
    assert not any("lm.keep" in line or "lm.free" in line for line in found)


def test_remarks_name_the_line_and_what_is_held():
    _, remarks = run(
        "kv-liveness",
        """
        %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text loc("judge.py":7)
        %2, %b = lm.gen %0 {id = "f/b"} : !ctx, !text
        %3, %c = lm.gen %2 {id = "f/c"} : !ctx, !text
        %4 = lm.extend %1 [%b, %c] : !ctx
        %5, %d = lm.gen %4 {id = "f/d"} : !ctx, !text
        lm.return %5 (%d)
        """,
    )
    kept = "about 0 tokens and 1 text known at run time are kept from wave 1 to wave"
    assert [str(remark) for remark in remarks] == [
        f"judge.py:7: kv-liveness: {kept} 2, for 1 use",
    ]


@pytest.mark.parametrize(("words", "held"), [(10, False), (3000, True)])
def test_a_long_prefix_is_worth_holding_for_longer(words: int, held: bool):
    """It would be held for three waves, to save computing it once: 1.02 times a token that attends to nothing."""
    module = module_of(
        f"""
        %0 = lm.context : !ctx
        %1 = lm.extend %0 ["{"word " * words}"] : !ctx
        %p = lm.prefill %1 : !ctx
        %2, %a = lm.gen %p {{id = "f/a"}} : !ctx, !text
        %3 = lm.extend %2 [%x] : !ctx
        %4, %b = lm.gen %3 {{id = "f/b"}} : !ctx, !text
        %5 = lm.extend %4 [%x] : !ctx
        %6, %c = lm.gen %5 {{id = "f/c"}} : !ctx, !text
        %7 = lm.extend %p [%c] : !ctx
        %8, %d = lm.gen %7 {{id = "f/d"}} : !ctx, !text
        lm.return %8 (%d)
        """
    )
    body = PassManager((KvLiveness(wave_cost=0.34),)).run(module).module.main.body
    pinned = next(op for op in body.ops if isinstance(op, PrefillOp)).results[0]
    [freed] = [op for op in body.ops if isinstance(op, FreeOp) and op.context == pinned]
    assert (freed.next_use is None) == held


@pytest.mark.parametrize("cost", [-0.1, 1.5, float("nan")])
def test_what_a_wave_costs_is_a_share(cost: float):
    with pytest.raises(InputError, match="wave_cost is"):
        KvLiveness(wave_cost=cost)

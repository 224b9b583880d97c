from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from lmc.ir.core import Op, Value, walk
from lmc.ir.dialects.core_ops import PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import _Machine
from lmc.passes import PassContext, PassManager, parse_pipeline
from lmc.passes.hoist_prefixes import move_invariants
from tests.compiled_constraints import toy_constraints
from tests.passes.adversary import Case, World, cases
from tests.passes.flow_adversary import flow_cases
from tests.passes.modules import ops, run

SPEC = "hoist-prefixes{minimum_tokens=1}"


class _Recording(ToyEngine):
    """Remembers the prompt of each call by op id."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: dict[str, tuple[int, ...]] = {}

    def submit(self, request: Any, on_delta: Any = None) -> Any:
        self.prompts[request.op_id] = request.prompt
        return super().submit(request, on_delta)

    def score(self, request: Any) -> Any:
        self.prompts.setdefault(request.op_id, request.prompt)
        return super().score(request)


def _above(op: Op, definitions: dict[Value, Op]) -> list[PrefillOp]:
    """The prefills that the context of ``op`` builds on."""
    found: list[PrefillOp] = []
    at: Op | None = op
    while at is not None:
        at = next((definitions[value] for value in at.operands if value.type.name == "ctx"), None)
        if isinstance(at, PrefillOp):
            found.append(at)
    return found


@given(case=cases(max_ops=30))
def test_what_is_prefilled_is_the_beginning_of_every_prompt_after_it(case: Case):
    manager = PassManager(parse_pipeline(f"canonicalize,cse,dce,{SPEC}"))
    body = manager.run(case.module).module.main.body
    engine = _Recording()
    environment: dict[Value, Any] = {value: case.inputs[value.name] for value in body.parameters}
    machine = _Machine(engine, environment, World().hosts(), 0, 0, toy_constraints(case.module))
    definitions = {value: op for op in body.ops for value in op.results}
    for op in body.ops[:-1]:
        try:
            machine.run(op)
        except (ValueError, LookupError):
            return
        if not isinstance(op, SamplingOp | SelectOp):
            continue
        for prefill in _above(op, definitions):
            prefix = environment[prefill.results[0]].stable_prefix
            prompt = engine.prompts[op.id]
            # A select scores from the first token that its choices change, which may lie in the pending text.
            assert prompt[: len(prefix)] == prefix[: len(prompt)]


@given(case=cases(max_ops=30))
def test_a_prefix_of_the_batch_depends_on_no_input(case: Case):
    body = PassManager(parse_pipeline(SPEC)).run(case.module).module.main.body
    given_ones = {op.results for op in case.module.main.body.ops if isinstance(op, PrefillOp)}
    free = set(body.parameters)
    for op in body.ops:
        if op.billable or op.effect.value != "pure" or op.may_raise or not free.isdisjoint(op.operands):
            free.update(op.results)
        if isinstance(op, PrefillOp) and op.results not in given_ones and op.context in free:
            assert op.scope == "instance"


def test_tokens_are_the_tokenizers_where_it_is_known():
    body = """
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["The same for all of them."] : !ctx
    %2, %a = lm.gen %1 {id = "f/a", temperature = 1.0} : !ctx, !text
    %3, %b = lm.gen %1 {id = "f/b", temperature = 1.0} : !ctx, !text
    lm.return %1 (%a, %b) {structure = "{\\"leaf\\":0}"}
    """
    _, estimated = run(SPEC, body)
    _, counted = run(SPEC, body, PassContext(toy_tokenizer()))
    assert [remark.saved_tokens for remark in (*estimated, *counted)] == [6, 25]
    assert counted[0].message == (
        "a prefix of about 25 tokens is computed once for 2 branches and for all instances of a batch"
    )


@pytest.mark.parametrize("role", ["assistant"])
def test_text_of_the_assistant_is_not_cut(role: str):
    body = f"""
    %0 = lm.context : !ctx
    %1 = lm.extend %0, {role} ["The same words at the start, then ", %x] : !ctx
    %2, %a = lm.gen %1 {{id = "f/a"}} : !ctx, !text
    lm.return %2 (%a) {{structure = "{{\\"leaf\\":0}}"}}
    """
    assert ops(SPEC, body)[1].startswith("%1 = lm.extend %0, assistant")


def test_branches_that_lead_to_no_call_need_no_prefix():
    body = """
    %0 = lm.context : !ctx
    %1 = lm.extend %0, user [%x] : !ctx
    %2 = lm.extend %1, user ["a"] : !ctx
    %3 = lm.extend %1, user ["b"] : !ctx
    %a = lm.transcript %2 : !text
    lm.return %3 (%a) {structure = "{\\"leaf\\":0}"}
    """
    assert not any("prefill" in line for line in ops(SPEC, body))


def test_a_prefix_of_generated_text_is_of_the_instance():
    body = """
    %0 = lm.context : !ctx
    %1 = lm.extend %0, user ["Write a story."] : !ctx
    %2, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
    %3, %b = lm.gen %2 {id = "f/b", max_tokens = 1} : !ctx, !text
    %4, %c = lm.gen %2 {id = "f/c", max_tokens = 2} : !ctx, !text
    lm.return %2 (%b, %c) {structure = "{\\"leaf\\":0}"}
    """
    lines = ops("hoist-prefixes{minimum_tokens=4}", body)
    assert [line for line in lines if "prefill" in line] == [
        '%1.prefix = lm.prefill %1 {scope = "batch"} : !ctx',
        "%2.prefix = lm.prefill %2 : !ctx",
    ]


def test_names_of_new_values_are_free():
    body = """
    %0 = lm.context : !ctx
    %0.prefix = lm.extend %0, user [%x] : !ctx
    %0.prefix.prefix = lm.extend %0.prefix, user ["a"] : !ctx
    %2, %a = lm.gen %0.prefix {id = "f/a"} : !ctx, !text
    %3, %b = lm.gen %0.prefix.prefix {id = "f/b"} : !ctx, !text
    lm.return %0 (%a, %b) {structure = "{\\"leaf\\":0}"}
    """
    assert "%0.prefix.prefix_1 = lm.prefill %0.prefix : !ctx" in ops(SPEC, body)


def test_what_stopped_it_is_told():
    body = """
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["Hi "] : !ctx
    %2, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
    %3 = lm.extend %1 ["there"] : !ctx
    %4, %b = lm.gen %3 {id = "f/b"} : !ctx, !text
    lm.return %1 (%a, %b) {structure = "{\\"leaf\\":0}"}
    """
    # %1 is where two branches begin, %3 what all instances of a batch begin with.
    lines, remarks = run("hoist-prefixes", body)
    assert not any("prefill" in line for line in lines)
    assert [(remark.kind, remark.message) for remark in remarks] == [
        ("missed", "a prefix of about 1 token is shared, but shorter than minimum_tokens=8"),
        ("missed", "a prefix of about 2 tokens is shared, but shorter than minimum_tokens=8"),
    ]


@pytest.mark.parametrize(
    "turn",
    [
        '%1 = lm.extend %0, user ["The same for all."] : !ctx',
        """
    %a1 = lm.begin %0, user : !ctx
    %a2 = lm.extend %a1 ["The same for all."] : !ctx
    %1 = lm.end %a2 : !ctx""",
    ],
)
def test_a_turn_counts_as_long_as_its_template_writes_it(turn: str):
    body = f"""
    %0 = lm.context : !ctx
    {turn}
    %2, %a = lm.gen %1 {{id = "f/a", temperature = 1.0}} : !ctx, !text
    %3, %b = lm.gen %1 {{id = "f/b", temperature = 1.0}} : !ctx, !text
    lm.return %1 (%a, %b) {{structure = "{{\\"leaf\\":0}}"}}
    """
    tokenizer = toy_tokenizer()
    context = Context.empty(tokenizer).message("user", "The same for all.")
    tokens = context.template.segments(context.template.closed(context.messages))
    length = sum(len(tokenizer.encode(part)) if isinstance(part, str) else 1 for part in tokens)
    _, remarks = run(SPEC, body, PassContext(tokenizer))
    assert [remark.saved_tokens for remark in remarks] == [length]


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

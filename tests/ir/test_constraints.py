"""Constraints of a run: what is asked of an engine, and what becomes of its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmc.ir.core import Constraint, Value
from lmc.ir.dialects.core_ops import GenOp, SampleOp
from lmc.ir.engine.protocol import EngineInfo, Generation
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import ConstraintError, InputError, Location
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import CompiledConstraint, Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse
from lmc.ir.types import BOOL, CTX, FLOAT, INT, TEXT, Type, json_of, list_of
from tests.finite_constraints import FiniteConstraint, compile_choices, finite_constraints
from tests.ir.region_ops import make

TOKENIZER = toy_tokenizer()
C, D = Value("c", CTX), Value("d", CTX)
CONTEXT = Context.empty(TOKENIZER).message("user", "hi")
YES = Constraint("c0", "choices", '["yes","no"]')
LINE = Location("a.py", 3)


def gen(kind: Type = TEXT, **fields: Any) -> Any:
    fields = {"context": C, "id": "main/a", "constraint": "c0", "location": LINE, **fields}
    return make(GenOp, D, Value("v", kind), **fields)


def said(text: str) -> Generation:
    return Generation(TOKENIZER.encode(text), text, "eos")


def test_requests_carry_the_compiled_constraint_and_the_mode():
    compiled: list[CompiledConstraint] = []

    def compile_once(symbol: Constraint) -> CompiledConstraint:
        compiled.append(compile_choices(symbol))
        return compiled[-1]

    op = make(SampleOp, Value("l", list_of(TEXT)), context=C, id="i", n=2, constraint="c0", jump_forward="canonical")
    requests = semantics.generation_requests(
        op,
        CONTEXT,
        op_id=op.id,
        run_seed=0,
        instance=0,
        info=EngineInfo("toy", 4096),
        constraints=Constraints.of([YES], compile_once),
    )
    assert [request.constraint for request in requests] == compiled * 2
    assert {request.jump_forward for request in requests} == {"canonical"}


def test_without_anything_that_compiles_a_constraint_is_an_error_at_its_line():
    with pytest.raises(InputError, match="'main/a' has a constraint, and this run was given nothing") as caught:
        semantics.generation_requests(
            gen(), CONTEXT, op_id=gen().id, run_seed=0, instance=0, info=EngineInfo("toy", 4096)
        )
    assert caught.value.location == LINE


def test_what_is_refused_names_line_keyword_and_character():
    op = gen()
    symbols = [Constraint("c0", "regex", "(")]
    with pytest.raises(ConstraintError) as caught:
        Constraints.of(symbols, compile_choices).find(op)
    assert str(caught.value) == (
        "a.py:3: the constraint of 'main/a' is refused: regex is not listed\n  remedy: list it"
    )
    assert caught.value.pointer == "/a"

    def at_character(_: Constraint) -> CompiledConstraint:
        raise ConstraintError("it is not closed", position=7)

    with pytest.raises(ConstraintError, match="it is not closed") as caught:
        Constraints.of(symbols, at_character).find(op)
    assert caught.value.position == 7


def test_a_generation_needs_room_for_the_shortest_output():
    constraints = Constraints.of([YES], compile_choices)
    with pytest.raises(ConstraintError) as caught:
        constraints.find(gen(max_tokens=1))
    assert str(caught.value) == (
        "a.py:3: generation 'main/a' can't end within max_tokens (1): the shortest output that its constraint allows "
        "has 2 tokens\n  remedy: give it max_tokens=2 or more"
    )
    assert constraints.find(gen(max_tokens=2)) is not None
    assert constraints.find(gen(max_tokens=1, stop=("s",))) is not None  # what the stop leaves may be shorter


def test_every_output_is_checked_again():
    constraints = Constraints.of([YES], compile_choices)
    assert semantics.generation_results(gen(), CONTEXT, [said("yes")], constraints)[1] == "yes"
    with pytest.raises(ConstraintError, match=r"'main/a' gave 'yess', which its constraint forbids") as caught:
        semantics.generation_results(gen(), CONTEXT, [said("yess")], constraints)
    assert caught.value.location == LINE
    kept = Generation(TOKENIZER.encode("ye"), "yet", "stop", remainder="t")
    with pytest.raises(ConstraintError, match="forbids"):
        semantics.generation_results(gen(), CONTEXT, [kept], constraints)


def test_tokens_count_where_their_text_is_not_what_they_say():
    constraints = Constraints.of([YES], compile_choices)
    stripped = Generation(TOKENIZER.encode("yes"), "es", "eos")
    assert semantics.generation_results(gen(), CONTEXT, [stripped], constraints)[1] == "es"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (TEXT, "7", "7"),
        (INT, "-7", -7),
        (FLOAT, "7", 7.0),
        (FLOAT, "2.50", 2.5),
        (BOOL, "True", True),
        (BOOL, "false", False),
        (json_of("x"), '{"a":[1,null]}', {"a": [1, None]}),
    ],
)
def test_the_type_says_what_the_text_becomes(kind: Type, text: str, value: object):
    constraints = Constraints.of([Constraint("c0", "choices", json.dumps([text]))], compile_choices)
    found = semantics.generation_results(gen(kind), CONTEXT, [said(text)], constraints)[1]
    assert (found, type(found)) == (value, type(value))
    op = make(SampleOp, Value("l", list_of(kind)), context=C, id="i", n=2, constraint="c0")
    assert semantics.generation_results(op, CONTEXT, [said(text)] * 2, constraints) == ([value, value],)


def test_a_value_of_the_run_defines_a_constraint():
    text = Value("t", TEXT)
    op = gen(constraint=None, definition=(text,), definition_kind="choices")
    constraints = Constraints.of([YES], compile_choices)
    changed, found = constraints.defined(op, {text: '["maybe"]'})
    assert found.value(changed, said("maybe")) == "maybe"
    with pytest.raises(ConstraintError, match="forbids"):
        found.value(changed, said("yes"))
    assert constraints.defined(gen(), {})[1] is constraints


def test_a_class_makes_the_value_by_the_name_of_its_type():
    constraints = Constraints.of([YES], compile_choices, {"Answer": lambda text: ("made", text)})
    assert constraints.read(gen(json_of("Answer")), "{}") == ("made", "{}")
    assert constraints.read(gen(json_of("Other")), "{}") == {}


@pytest.mark.parametrize(
    ("kind", "text", "cause"),
    [
        (INT, "9" * 5000, "which is no !int: Exceeds the limit"),
        (FLOAT, "9" * 400, "which is no !float: it is too large"),
        (json_of("V"), "{", "which is no !json<V>: Expecting"),
    ],
)
def test_what_a_type_does_not_take_is_an_error(kind: Type, text: str, cause: str):
    with pytest.raises(ConstraintError) as caught:
        Constraints.of([YES], compile_choices).read(gen(kind), text)
    assert cause in caught.value.cause
    assert caught.value.location == LINE
    assert "say in the schema" in (caught.value.remedy or "")


def test_forced_tokens_need_no_engine():
    forced = TOKENIZER.encode("yes")
    op = gen(forced=forced)
    context, text = semantics.evaluate(op, {C: CONTEXT}, TOKENIZER)
    assert text == "yes"
    expected = CONTEXT.generated(Generation(forced, "yes", "eos"))
    assert (context.prompt, context.transcript()) == (expected.prompt, expected.transcript())
    assert semantics.evaluate(gen(forced=()), {C: CONTEXT}, TOKENIZER)[1] == ""
    op = make(SampleOp, Value("l", list_of(INT)), context=C, id="i", n=3, constraint="c0", forced=TOKENIZER.encode("7"))
    assert semantics.evaluate(op, {C: CONTEXT}, TOKENIZER) == ([7, 7, 7],)
    assert semantics.is_local(op)
    assert not semantics.is_local(gen())


def test_the_interpreter_enforces_constraints():
    module = parse("""
    module @main {
      constraint @c0 = choices "[\\"17\\",\\"4\\"]"
      func @main() {
        %0 = lm.context : !ctx
        %1 = lm.extend %0 ["n: "] : !ctx
        %2, %n = lm.gen %1 {constraint = @c0, id = "main/n"} : !ctx, !int
        %l = lm.sample %2 {constraint = @c0, id = "main/l", n = 4, temperature = 1.0} : !list<!int>
        lm.return %2 (%n, %l) {structure = "{\\"list\\":[{\\"leaf\\":0},{\\"leaf\\":1}]}"}
      }
    }
    """)
    outcome = interpret(module, {}, ToyEngine(), constraints=finite_constraints(module))
    number, numbers = outcome.value
    assert outcome.text == f"n: {number}"
    assert {number, *numbers} == {17, 4}
    with pytest.raises(InputError, match="given nothing that compiles it"):
        interpret(module, {}, ToyEngine())


def test_the_finite_constraint_of_these_tests_is_what_it_says():
    found = FiniteConstraint(["a", "ab"])
    state = found.start().advance(TOKENIZER.encode("a")[0])
    assert (state.accepting, state.complete) == (True, False)
    state = state.advance(TOKENIZER.encode("b")[0])
    assert (state.accepting, state.complete) == (True, True)
    assert [found.matches(text) for text in ("a", b"ab", "b")] == [True, True, False]
    with pytest.raises(ConstraintError):
        state.advance(TOKENIZER.encode("a")[0])

from __future__ import annotations

from typing import Any

import pytest

from lmc.driver.targets.registry import load_tokenizer
from lmc.grammar.sharing import Built, ConstraintCache, source_of
from lmc.ir.core import Block, Constraint, Value
from lmc.ir.dialects.core_ops import GenOp
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import ConstraintError, InputError, Location
from lmc.ir.module import Function, Module, print_module
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.text.parser import parse_verified
from lmc.ir.types import CTX, TEXT
from lmc.passes import PassContext, PassManager, Remark, parse_pipeline
from lmc.passes.compile_constraints import Unforced, forced_tokens
from tests.compiled_constraints import CACHE, compile_for_toy
from tests.ir import region_ops
from tests.ir.region_ops import make

HEAD = """module @f {{
  {symbols}
  func @f() {{
    %0 = lm.context : !ctx
{body}
  }}
}}"""


def module_of(symbols: str, *generations: str) -> Module:
    """One ``lm.gen`` for each of ``generations``: its attributes and what its value is."""
    lines: list[str] = []
    for number, text in enumerate(generations):
        attributes, _, kind = text.partition(":")
        fields = f'{{id = "f/{number}", constraint = {attributes}}}'
        lines.append(
            f'    %{number + 1}, %v{number} = lm.gen %{number} {fields} : !ctx, !{kind or "text"} loc("f.py":{number})'
        )
    values = ", ".join(f"%v{number}" for number in range(len(generations)))
    lines.append(f"    lm.return %{len(generations)} ({values})")
    return parse_verified(HEAD.format(symbols=symbols, body="\n".join(lines)))


def compiled(module: Module, context: PassContext | None = None) -> tuple[Module, list[Remark]]:
    context = PassContext(toy_tokenizer(), CACHE) if context is None else context
    result = PassManager(parse_pipeline("compile-constraints")).run(module, context)
    return result.module, list(result.remarks)


def generations(module: Module) -> list[Any]:
    return [op for op in module.main.body.ops if isinstance(op, GenOp)]


def test_modules_without_constraints_stay_as_they_are():
    module = parse_verified(HEAD.format(symbols="", body="    lm.return %0"))
    assert compiled(module) == (module, [])


def test_the_digest_is_that_of_definition_and_tokens():
    module = module_of('constraint @c0 = regex "[a-z]+"', "@c0")
    first = compiled(module)[0].constraints[0].digest
    assert first is not None
    assert compiled(compiled(module)[0])[0].constraints[0].digest == first
    other = PassContext(load_tokenizer(Target("builtin")))
    assert compiled(module, other)[0].constraints[0].digest != first
    with pytest.raises(InputError, match="compiled for the tokens of another model") as caught:
        compiled(compiled(module)[0], other)
    assert "compile the program again" in (caught.value.remedy or "")


def test_without_a_tokenizer_a_digest_stays():
    module = compiled(module_of('constraint @c0 = regex "[a-z]+"', "@c0"))[0]
    again, remarks = compiled(module, PassContext())
    assert print_module(again) == print_module(module)
    assert [remark.kind for remark in remarks] == ["missed"]


@pytest.mark.parametrize(
    ("symbol", "cause", "pointer", "position"),
    [
        ('regex "a(b"', "a group without its closing parenthesis", None, 1),
        ('regex "a[^\\\\s\\\\S]"', "nothing meets the constraint", None, None),
        ('schema "{\\"type\\":\\"text\\"}"', "type has to be one of", "/type", None),
        ('grammar "start: x"', "there is no rule x", None, 7),
    ],
)
def test_what_is_refused_is_refused_at_the_users_line(
    symbol: str, cause: str, pointer: str | None, position: int | None
):
    module = module_of(f'constraint @a = regex "a" constraint @b = {symbol}', "@a", "@b", "@b")
    for context in (PassContext(toy_tokenizer(), ConstraintCache()), PassContext()):
        with pytest.raises(ConstraintError, match=cause) as caught:
            compiled(module, context)
        assert caught.value.cause.startswith("the constraint of 'f/1' is refused: ")
        assert caught.value.location == Location("f.py", 1)
        assert caught.value.remedy
        assert (caught.value.pointer, caught.value.position) == (pointer, position)


def test_the_first_error_of_the_program_is_told_whichever_was_found_first():
    symbols = 'constraint @a = regex "(" constraint @b = regex ")"'
    for order, line in (("@a", "@b"), 0), (("@b", "@a"), 0):
        with pytest.raises(ConstraintError) as caught:
            compiled(module_of(symbols, *order))
        assert caught.value.location == Location("f.py", line)


def test_an_output_that_can_not_end_in_time_is_an_error():
    symbols = 'constraint @a = regex "[ab]{4,9}"'
    with pytest.raises(ConstraintError, match=r"'f/1' can't end within max_tokens \(3\).* has 4 tokens") as caught:
        compiled(module_of(symbols, "@a", "@a, max_tokens = 3"))
    assert caught.value.location == Location("f.py", 1)
    assert caught.value.remedy == "give it max_tokens=4 or more"
    compiled(module_of(symbols, '@a, max_tokens = 3, stop = ["a"]'))  # a stop may end what it cuts


def test_what_has_no_complete_index_is_enforced_all_the_same():
    symbols = 'constraint @a = regex "(a|b)*a(a|b){40}"'
    module, remarks = compiled(module_of(symbols, "@a"))
    assert module.constraints[0].digest
    messages = [remark.message for remark in remarks]
    assert any("(regex) has states that are made as they are reached" in message for message in messages)
    assert any("is made as it is reached, not ahead of time: " in message for message in messages)


def test_one_remark_for_what_restricts_nothing_in_a_schema():
    text = r"{\"type\":\"string\",\"ui\":1,\"maxLenght\":3,\"maxLength\":2}"
    remarks = compiled(module_of(f'constraint @a = schema "{text}"', "@a", "@a"))[1]
    (remark,) = [remark for remark in remarks if "restrict nothing" in remark.message]
    assert (remark.kind, remark.location) == ("missed", Location("f.py", 0))
    assert "likely misspelt: maxLenght at #/maxLenght (did you mean maxLength?)" in remark.message
    assert remark.message.endswith("unknown keywords: ui")


def test_generations_in_regions_are_compiled_too():
    module = module_of('constraint @a = choices "[\\"x\\"]"', "@a")
    context, generation, _ = module.main.body.ops
    inner = region_ops.make(region_ops.YieldOp, values=(generation.results[1],))
    outer = region_ops.make(region_ops.MapOp, body=Block((), (generation, inner)))
    ends = parse_verified(HEAD.format(symbols="", body="    lm.return %0")).main.body.ops[-1]
    block = Block((), (context, outer, ends))
    found = compiled(Module("f", (Function("f", block),), module.constraints))[0]
    assert found.main.body.ops[1].regions[0].ops[0].forced == toy_tokenizer().encode("x")  # type: ignore[attr-defined]


def test_the_same_symbols_of_another_program_are_not_compiled_again():
    cache = ConstraintCache()
    for _ in range(3):
        compiled(module_of('constraint @a = regex "x+"', "@a"), PassContext(toy_tokenizer(), cache))
    assert len(cache) == 1


def test_forced_values_of_every_type():
    symbols = (
        'constraint @a = regex "7" constraint @b = schema "{\\"const\\":{\\"k\\":1}}" constraint @c = regex "true"'
    )
    module, _ = compiled(module_of(symbols, "@a:int", "@b:json<x>", "@c:bool", "@a:float"))
    encode = toy_tokenizer().encode
    assert [op.forced for op in generations(module)] == [encode("7"), encode('{"k":1}'), encode("true"), encode("7")]


def test_meta_data_that_nobody_reads_goes_with_the_model():
    text = """module @f {
      constraint @a = regex "x"
      func @f() {
        %0 = lm.context : !ctx
        %1, %v, %m = lm.gen %0 {constraint = @a, id = "f/0", logprobs = 2, wave = 0, group = "g0"} : !ctx, !text, !any
        lm.return %1 (%v)
      }
    }"""
    (op,) = generations(compiled(parse_verified(text))[0])
    assert (op.forced, op.logprobs, op.wave, op.group) == (toy_tokenizer().encode("x"), None, None, None)
    assert op.results == (Value("1", op.results[0].type), Value("v", op.results[1].type))


TOY = toy_tokenizer()
BUILTIN = load_tokenizer(Target("builtin"))


def built(pattern: str, tokenizer: Any = TOY) -> Built:
    return CACHE.built(source_of("regex", pattern), tokenizer)


def gen(**fields: Any) -> Any:
    return make(GenOp, Value("d", CTX), Value("v", TEXT), context=Value("c", CTX), id="f/a", constraint="c0", **fields)


def test_the_only_sequence_of_tokens():
    assert forced_tokens(gen(), built("yes"), TOY, reads_logprobs=False) == TOY.encode("yes")
    assert forced_tokens(gen(), built("()"), TOY, reads_logprobs=False) == ()
    assert forced_tokens(gen(), built("é"), TOY, reads_logprobs=False) == TOY.encode("é")
    assert forced_tokens(gen(max_tokens=3, min_tokens=3), built("yes"), TOY, reads_logprobs=False) == TOY.encode("yes")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stop": ("x", "es")}, "a stop string is in it"),
        ({"stop_token_ids": (TOY.encode("s")[0],)}, "a stop token is in it"),
        ({"min_tokens": 4}, "min_tokens is 4, more than its 3 tokens"),
        ({"max_tokens": 2}, "it has more tokens than max_tokens (2)"),
    ],
)
def test_what_keeps_the_model_asked(fields: dict[str, Any], reason: str):
    assert forced_tokens(gen(**fields), built("yes"), TOY, reads_logprobs=False) == Unforced(reason)


def test_log_probabilities_are_the_models():
    found = forced_tokens(gen(), built("yes"), TOY, reads_logprobs=True)
    assert found == Unforced("its log-probabilities are read")


def test_several_ways_to_spell_a_text():
    several = Unforced("it can be spelled in several ways with the tokens of this vocabulary")
    assert forced_tokens(gen(), built("name", BUILTIN), BUILTIN, reads_logprobs=False) == several
    assert forced_tokens(gen(), built("~", BUILTIN), BUILTIN, reads_logprobs=False) == BUILTIN.encode("~")


@pytest.mark.parametrize("pattern", ["yes", "()", "é", "日本"])
def test_an_engine_says_the_same(pattern: str):
    op = gen()
    context = Context.empty(TOY).text("Well: ")
    constraints = Constraints.of([Constraint("c0", "regex", pattern)], compile_for_toy())
    (request,) = semantics.generation_requests(
        op, context, op_id=op.id, run_seed=0, instance=0, info=ToyEngine().info, constraints=constraints
    )
    asked = ToyEngine().submit(request).future.result()
    found = forced_tokens(op, built(pattern), TOY, reads_logprobs=False)
    assert not isinstance(found, Unforced)
    forced = semantics.forced_generation(op, found, TOY)
    assert (forced.token_ids, forced.text, forced.finish_reason, forced.remainder) == (
        asked.token_ids,
        asked.text,
        asked.finish_reason,
        asked.remainder,
    )

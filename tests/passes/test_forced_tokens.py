from __future__ import annotations

from typing import Any

import pytest

from lmc.driver.targets.registry import load_tokenizer
from lmc.grammar.sharing import Built, source_of
from lmc.ir.core import Constraint, Value
from lmc.ir.dialects.core_ops import GenOp
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.types import CTX, TEXT
from lmc.passes.compile_constraints.forced_tokens import Unforced, forced_tokens
from tests.compiled_constraints import CACHE, compile_for_toy
from tests.ir.region_ops import make

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
        op, context, op_id=op.id, run_seed=0, instance=0, context_length=4096, constraints=constraints
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

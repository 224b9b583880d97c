"""Passes: interface, context, remarks, manager."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from lmc.ir.core import Block
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import Location, VerifyError
from lmc.ir.module import Module
from lmc.passes import FunctionPass, PassContext, PassManager, Remark, parse_pipeline
from tests.ir.tokenizers_for_tests import trained
from tests.passes.modules import module_of

HERE = Location("f.py", 3)


@pytest.mark.parametrize(
    ("remark", "text"),
    [
        (Remark("cse", "applied", "merged"), "cse: merged"),
        (Remark("cse", "applied", "merged", HERE, saved_calls=1), "f.py:3: cse: merged (saves 1 call)"),
        (
            Remark("p", "applied", "m", HERE, saved_tokens=2, saved_calls=3, saved_steps=1),
            "f.py:3: p: m (saves 2 tokens, 3 calls, 1 step)",
        ),
        (Remark("p", "missed", "m", HERE, saved_tokens=1), "f.py:3: p missed: m (1 token)"),
    ],
)
def test_remarks_as_text(remark: Remark, text: str):
    assert str(remark) == text


def test_tokens_are_estimated_without_a_tokenizer_and_counted_with_one():
    assert [PassContext().tokens(text) for text in ("", "a", "a" * 40)] == [0, 1, 10]
    context = PassContext(toy_tokenizer())
    assert [context.tokens(text) for text in ("", "a", "a" * 40, "a" * 40)] == [0, 1, 40, 40]


def test_text_that_can_not_be_encoded_is_estimated() -> None:
    assert PassContext(toy_tokenizer()).tokens("half a pair \udc00") == 3


def test_a_turn_costs_what_the_template_puts_around_it():
    # <|im_start|> user \n … <|im_end|> \n
    for role in ("system", "user", "assistant", "tool"):
        tokenizer = trained("gpt2")
        header, end = (1 + len(tokenizer.encode(text)) for text in (f"{role}\n", "\n"))
        assert PassContext(tokenizer).turn_tokens(role) == (header, end)


@pytest.mark.parametrize(
    "template",
    [
        None,
        "{{ raise_exception('no turns here') }}",
        "{{ messages | length }}{% for message in messages %}{{ message.content }}{% endfor %}",
        "{% for message in messages %}{{ message.content[1:] }}{% endfor %}",
    ],
)
def test_a_turn_is_estimated_where_no_template_tells(template: str | None):
    assert PassContext(trained("gpt2", template)).turn_tokens("user") == (4, 0)
    assert PassContext().turn_tokens("user") == (4, 0)


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

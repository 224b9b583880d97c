from __future__ import annotations

import pytest

from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import Location
from lmc.passes import PassContext, Remark
from tests.ir.tokenizers_for_tests import trained

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

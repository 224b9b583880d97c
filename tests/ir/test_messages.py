from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Generation
from lmc.ir.errors import InputError
from lmc.ir.semantics.context import Context
from lmc.ir.tokens.messages import MessagePrompt, PromptMessage, conversation_of, message_tokenizer

TOKENIZER = message_tokenizer()
TEXTS = st.one_of(
    st.sampled_from(["<|turn|>", "<|end|>", "a\nb", "\n", " ", "<|turn|>user\n", "é", "\ufdd0", "\ufdd1"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("message"), ROLES, TEXTS),
        st.tuples(st.just("begin"), ROLES),
        st.tuples(st.just("end")),
        st.tuples(st.just("text"), TEXTS),
        st.tuples(st.just("generated"), TEXTS),
    ),
    max_size=12,
)


def applied(context: Context, step: tuple[Any, ...]) -> Context:
    kind, *arguments = step
    if kind == "generated":
        return context.generated(Generation(TOKENIZER.encode(arguments[0]), arguments[0], "eos"))
    return getattr(context, kind)(*arguments)


@given(STEPS)
def test_messages_are_read_back(steps: list[tuple[Any, ...]]):
    context = Context.empty(TOKENIZER).message("user", "first")
    prompts = [context.stable_prefix]
    for step in steps:
        context = applied(context, step)
        prompts.append(context.stable_prefix)
    found = conversation_of(context.prompt)
    said = [(each.role, each.text) for each in (*found.messages, found.open or PromptMessage("none", ""))]
    expected = [(each["role"], each["content"]) for each in context.message_list()]
    assert said == (expected if context.role is not None else [*expected, ("assistant", "")])
    assert found.raw is None
    for prompt in prompts:
        assert context.prompt[: len(prompt)] == prompt


@given(TEXTS)
def test_text_without_roles(text: str):
    assert conversation_of(Context.empty(TOKENIZER).text(text).prompt) == MessagePrompt((), None, text)


@given(TEXTS)
def test_tokens_are_bytes(text: str):
    ids = TOKENIZER.encode(text)
    assert bytes(ids).decode() == TOKENIZER.decode(ids) == text
    assert TOKENIZER._encoding(text).ids == list(ids)  # the definition that constraints are compiled for
    assert TOKENIZER.exceeds(text, len(ids)) is False


def test_half_of_a_surrogate_pair():
    with pytest.raises(InputError, match="half of a surrogate pair"):
        TOKENIZER.encode("\ud800")

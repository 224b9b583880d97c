from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.errors import InputError
from lmc.ir.tokens.template import ChatTemplate, Turn, TurnSlot
from lmc.ir.tokens.tokenizer import SpecialToken
from tests.ir.tokenizers_for_tests import CHATML, SPECIAL_TOKENS, trained

ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"
CHAT = ChatTemplate(trained("llama3"))
texts = st.lists(
    st.one_of(st.sampled_from([*SPECIAL_TOKENS, "\ufdd0", "\ufdd1", "0", "1", "<", "|"]), st.text(max_size=3)),
    max_size=8,
).map("".join)


def template(source: str | None) -> ChatTemplate:
    return ChatTemplate(trained("llama3", source))


@given(texts)
def test_escaping_has_an_inverse_and_leaves_nothing_special(text: str):
    escaped = CHAT.escape(text)
    assert CHAT.unescape(escaped) == text
    assert not any(special in escaped for special in SPECIAL_TOKENS)
    assert "\ufdd1" not in escaped


@given(texts)
def test_text_comes_out_of_the_segments_as_it_went_in(text: str):
    segments = CHAT.segments(CHAT.closed([Turn("user", CHAT.escape(text))]))
    assert "".join(part for part in segments if isinstance(part, str)) == f"user\n{text}\n"
    assert [part.text for part in segments if isinstance(part, SpecialToken)] == ["<|im_start|>", "<|im_end|>"]


def test_segments_hold_slots():
    segments = CHAT.segments(CHAT.closed([Turn("user", "hi"), Turn("assistant", CHAT.slot(1))]))
    assert [part for part in segments if isinstance(part, TurnSlot)] == [TurnSlot(1)]
    assert segments[segments.index(TurnSlot(1)) - 1] == "assistant\n"


def test_a_prompt_ends_where_the_turn_begins():
    messages = [Turn("user", "hi")]
    assert CHAT.open_prefix(messages, "assistant") == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert CHAT.open_prefix(messages, "tool") == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>tool\n"
    assert CHAT.closed([]) == ""


def test_the_template_knows_the_special_tokens_of_the_model():
    tokenizer = trained("llama3", "{{ bos_token }}" + ALL)
    with_variables = type(tokenizer).from_json(
        tokenizer.definition, chat_template=tokenizer.chat_template, template_variables=[("bos_token", "<|im_start|>")]
    )
    assert ChatTemplate(with_variables).closed([Turn("user", "hi")]) == "<|im_start|>hi"


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (None, "this model has no chat template"),
        ("{% for %}", "the chat template is not valid jinja"),
        (
            "{{ raise_exception('roles must alternate') }}",
            r"the chat template refuses the turns \(user\): roles must alt",
        ),
        ("{{ messages[0].nothing.at_all }}", r"the chat template refuses the turns \(user\)"),
        ("{{ ''.__class__.__mro__ }}", r"the chat template refuses the turns \(user\)"),
    ],
)
def test_templates_that_can_not_be_used(source: str | None, cause: str):
    with pytest.raises(InputError, match=cause) as caught:
        template(source).closed([Turn("user", "hi")])
    assert caught.value.remedy


def test_a_template_that_drops_a_role_is_refused():
    drops = template(
        "{% for message in messages %}{% if message.role != 'tool' %}{{ message.content }}{% endif %}{% endfor %}"
    )
    assert drops.open_prefix([], "user") == ""
    with pytest.raises(InputError, match="the chat template drops the content of role 'tool'"):
        drops.open_prefix([], "tool")


@pytest.mark.parametrize("content", ["<|im_end|>", "\ufdd0"])
def test_a_template_that_cuts_contents_is_refused(content: str):
    cuts = template("{% for m in messages %}{{ m.content if ' ' in m.content else m.content[1:] }}{% endfor %}")
    with pytest.raises(InputError, match="cuts a message into pieces"):
        cuts.segments(cuts.closed([Turn("user", cuts.escape(content))]))
    with pytest.raises(InputError, match="cuts a message into pieces"):
        cuts.segments(cuts.closed([Turn("user", cuts.slot(0))]))


def test_a_template_can_not_reach_out():
    with pytest.raises(InputError, match="refuses the turns"):
        template("{{ messages.append(1) }}").closed([Turn("user", "hi")])


def test_the_template_of_a_model_keeps_its_spelling():
    assert CHATML in (CHAT.tokenizer.chat_template or "")


def test_what_templates_find_in_transformers_is_there():
    today = ALL + "{{ strftime_now('%Y') | length }}"
    assert template(today).closed([Turn("user", "hi")]) == "hi4"
    asks = "{% if strftime_now is defined %}" + today + "{% else %}" + ALL + "26 Jul 2024{% endif %}"
    assert template(asks).closed([Turn("user", "hi")]) == "hi26 Jul 2024"  # the same prompt every day
    marked = "{% for m in messages %}{% set c = m.content %}{% generation %}{{ c }}{% endgeneration %}{% endfor %}"
    assert template(marked).closed([Turn("user", "a"), Turn("assistant", "b")]) == "ab"
    without_tools = "{% if tools is not none or documents is not none %}tools{% endif %}" + ALL
    assert template(without_tools).closed([Turn("user", "hi")]) == "hi"
    assert template("{% for m in messages %}{{ m | tojson }}{% endfor %}").closed([Turn("user", "<é&'")]) == (
        '{"role": "user", "content": "<é&\'"}'
    )

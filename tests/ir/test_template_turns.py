"""Chat templates that render each message by itself are found, and their conversations are rendered part by part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Generation
from lmc.ir.semantics.context import Context
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.tokens.template import ChatTemplate, Turn
from tests.ir.tokenizers_for_tests import CHATML, trained

BY_TURN = [
    CHATML,
    message_tokenizer().chat_template or "",
    "<s>{% for m in messages %}{% if m['role'] == 'user' %}U: {{ m['content'] | trim }}"
    "{% else %}A: {{ m.content.strip() }}{% endif %}\n{% endfor %}{% if add_generation_prompt %}A: {% endif %}",
    "{% for message in messages %}{{ '[' ~ message.role ~ ']' + message.content }}{% endfor %}",
]
WHOLE = [
    "{% for m in messages %}{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{{ messages | length }}{% endfor %}",
    "{% for m in messages | list %}{{ m.content }}{% endfor %}",
    "{% set s = namespace(n=0) %}{% for m in messages %}{% set s.n = s.n + 1 %}{{ s.n }}{{ m.content }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{% for m in messages %}{{ c.next() }}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}A{% else %}end{% endif %}",
    "{% for m in messages %}{{ m.content }}{% if add_generation_prompt %}?{% endif %}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[0].content }}",
    "{% for m in messages if m.content %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% else %}none{% endfor %}",
]


def _template(source: str) -> ChatTemplate:
    return ChatTemplate(trained("llama3", source))


@pytest.mark.parametrize("source", BY_TURN)
def test_a_template_that_renders_by_turn_appends(source: str) -> None:
    template = _template(source)
    assert template.renders_by_turn
    turns = [Turn("system", "s"), Turn("user", " a b "), Turn("assistant", template.slot(2)), Turn("user", "")]
    for at in range(len(turns) + 1):
        assert template.closed(turns[:at]) + template.appended(turns[at:]) == template.closed(turns)
        for role in ("user", "assistant"):
            assert template.closed(turns[:at]) + template.opening(role) == template.open_prefix(turns[:at], role)


@pytest.mark.parametrize("source", WHOLE)
def test_other_templates_do_not(source: str) -> None:
    assert not _template(source).renders_by_turn


_steps = st.lists(
    st.tuples(st.sampled_from(["user", "system", "text", "generate"]), st.text("ab <|\n", max_size=4)), max_size=12
)


@given(st.sampled_from(BY_TURN), _steps)
def test_conversations_have_the_prompts_of_their_whole_rendering(source: str, steps: list[tuple[str, str]]) -> None:
    context = Context.empty(trained("llama3", source)).message("user", "Hi")
    for kind, text in steps:
        if kind == "generate":
            context = context.generated(Generation(context.tokenizer.encode(text), text, "eos"))
        elif kind == "text":
            context = context.text(text)
        else:
            context = context.message(kind, text)
        opened = context._opened
        assert opened._rendered == context.template.open_prefix(opened.messages, opened.role or "")


def test_a_chain_renders_each_turn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    whole = ChatTemplate._render

    def counted(self: ChatTemplate, messages: list[Turn], *, add_generation_prompt: bool) -> str:
        rendered.append(len(messages))
        return whole(self, messages, add_generation_prompt=add_generation_prompt)

    monkeypatch.setattr(ChatTemplate, "_render", counted)
    context = Context.empty(message_tokenizer())
    for number in range(200):
        context = context.message("user", f"Step {number}")
        assert context.prompt
        context = context.generated(Generation((65, 66), "AB", "eos"))
    assert sum(rendered) < 3 * 200

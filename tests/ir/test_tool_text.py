from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.semantics.context import Context
from lmc.ir.tokens.template import ChatTemplate
from lmc.ir.tokens.tokenizer import SpecialToken
from lmc.ir.tokens.tool_text import CallSyntax, ChatCall, ToolText
from tests.ir.tokenizers_for_tests import CHATML, SPECIAL_TOKENS, trained
from tests.ir.tool_templates import LLAMA, QWEN

QWEN_CALLS = CallSyntax('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "\n")
LLAMA_CALLS = CallSyntax('{"name": "', '", "parameters": ', "}")
TEXTS = st.lists(
    st.one_of(st.sampled_from([*SPECIAL_TOKENS, "\ufdd0", "\ufdd1", '"', "\\"]), st.text("ab{é", max_size=3)),
    max_size=6,
).map("".join)


@pytest.mark.parametrize(
    ("source", "syntax"),
    [
        (QWEN, QWEN_CALLS),
        (LLAMA, LLAMA_CALLS),
        (CHATML, None),
        # shows calls, but no tools; tools, but no results; the ids of calls; arguments that are no JSON
        (QWEN[QWEN.index("{%- for message") :], None),
        (QWEN.replace("{{- message.content }}", ""), None),
        (QWEN.replace("{{- tool_call.name }}", "{{- tool_call.name + message.tool_calls[0].id }}"), None),
        (QWEN.replace("tool_call.arguments | tojson", "tool_call.arguments.zq_key"), None),
        (None, None),
    ],
)
def test_the_syntax_of_calls_is_read_off_the_template(source: str | None, syntax: CallSyntax | None):
    assert ChatTemplate.of(trained("llama3", source)).call_syntax == syntax


def test_calls_in_marks_may_follow_text():
    assert (QWEN_CALLS.trigger, QWEN_CALLS.is_anywhere) == ("<tool_call>", True)
    assert (LLAMA_CALLS.trigger, LLAMA_CALLS.is_anywhere) == ('{"name": "', False)
    assert CallSyntax('[{"name": "', '", "arguments": ', "}]").trigger == '[{"name": "'
    assert CallSyntax('[TOOLS] [{"name": "', '", "arguments": ', "}]").trigger == "[TOOLS] ["


@pytest.mark.parametrize(("source", "syntax"), [(QWEN, QWEN_CALLS), (LLAMA, LLAMA_CALLS)])
@given(TEXTS)
def test_no_text_of_a_tool_becomes_a_special_token(source: str, syntax: CallSyntax, text: str):
    tokenizer = trained("llama3", source)

    def specials(words: str) -> tuple[str, list[int]]:
        schema = json.dumps({"type": "object", "properties": {words: {"description": words}}}, ensure_ascii=False)
        call = ChatCall("c1", "look", json.dumps({words: [words]}, ensure_ascii=False))
        context = Context.empty(tokenizer, (ToolText("look", words, schema),)).message("user", "x")
        context = context.calls("", (call,)).result(words, call)
        segments = context.template.segments(context.template.open_prefix(context.messages, "assistant"))
        shown = "".join(part for part in segments if isinstance(part, str))
        assert syntax.before + "look" in shown
        return shown, [part.id for part in segments if isinstance(part, SpecialToken)]

    shown, found = specials(text)
    assert found == specials("word")[1]
    if '"' not in text and "\\" not in text and "\ufdd0" not in text and "\ufdd1" not in text:
        assert shown.count(text) >= 5

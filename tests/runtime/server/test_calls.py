"""Calls in outputs, read as they come."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.tokens.tool_text import PLAIN_CALLS, CallSyntax, ChatCall
from lmc.runtime.server.calls import ArgumentsPiece, CallReader, CallStart, OutputFormat, TextPiece, ToolUse
from lmc.runtime.server.errors import ApiError

TAGS = CallSyntax('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "\n")
BARE = CallSyntax('{"name": "', '", "parameters": ', "}")
SHORT = CallSyntax('[{"name": "', '", "arguments": ', "}]")
USE = ToolUse.of([("look", "Look", {"type": "object"}), ("a", None, None)])
ARGUMENTS = st.dictionaries(
    st.text('ab"\\{}é', max_size=4), st.text('x"\\{}]<>\n', max_size=4) | st.integers(), max_size=3
)
CALLS = st.lists(st.tuples(st.sampled_from(["look", "a"]), ARGUMENTS), max_size=3)
FRAGMENTS = ["<tool_call", "<", ">", "Action: ", "Action", ": ", "answer", "\n", " ", '{"name', '{"name": "', '["', "é"]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join)


def pieces(text: str, chance: random.Random) -> list[str]:
    """Cut a text anywhere."""
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(8)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("syntax", [TAGS, BARE, SHORT, PLAIN_CALLS], ids=["tags", "bare", "short", "plain"])
@given(text=TEXTS, calls=CALLS, chance=st.randoms(use_true_random=False))
def test_calls_and_texts_are_found_however_they_are_cut(
    syntax: CallSyntax, text: str, calls: list[tuple[str, Any]], chance: random.Random
):
    if syntax.separator is None:
        calls = calls[:1]
    if syntax.trigger in text:
        return
    if calls and not syntax.is_anywhere:
        text = ""
    made = [ChatCall("", name, json.dumps(arguments)) for name, arguments in calls]
    spaced = [ChatCall("", call.name, f" \n {call.arguments}\n") for call in made]
    said = (syntax.separator or "").join(map(syntax.call, chance.choice([made, spaced])))
    announced = syntax.answer if not calls and chance.random() < 0.5 else ""
    if not announced and any(mark and text.startswith(mark) for mark in (syntax.answer, syntax.before)):
        return
    output = announced + text + said
    reader = CallReader(syntax, USE.outputs(syntax, None))
    found, names, arguments = "", list[str](), list[str]()
    parts = pieces(output, chance)
    for number, part in enumerate(parts):
        for piece in reader.read(part, is_last=number == len(parts) - 1):
            match piece:
                case TextPiece():
                    found += piece.text
                case CallStart():
                    names.append(piece.name)
                    arguments.append("")
                case ArgumentsPiece():
                    arguments[-1] += piece.text
    assert found == (text.rstrip() if calls else text)
    assert names == [call.name for call in made]
    assert arguments == [call.arguments for call in made]
    whole, all_calls = OutputFormat(syntax, USE.outputs(syntax, None)).read(output, "id_")
    assert (whole, [(call.name, call.arguments) for call in all_calls]) == (
        found,
        list(zip(names, arguments, strict=True)),
    )


@pytest.mark.parametrize(
    ("tools", "options", "parameter"),
    [
        ([("no name", None, None)], {}, "tools"),
        ([("x" * 200, None, None)], {}, "tools"),
        ([("a", None, None), ("a", None, None)], {}, "tools"),
        ([(f"t{number}", None, None) for number in range(200)], {}, "tools"),
        ([("a", None, {"title": "x" * 300_000})], {}, "tools"),
        ([], {"choice": "required"}, "tool_choice"),
        ([("a", None, None)], {"choice": "required", "called": ["b"]}, "tool_choice"),
    ],
)
def test_tools_that_can_not_be_used_are_refused(tools: Any, options: Any, parameter: str):
    with pytest.raises(ApiError) as caught:
        ToolUse.of(tools, **options)
    assert caught.value.parameter == parameter


def test_schemas_are_nested_within_limits():
    nested: Any = {}
    for _ in range(5000):
        nested = {"not": nested}
    with pytest.raises(ApiError, match="nested"):
        ToolUse.of([("a", None, nested)])


def test_a_tool_is_not_called_as_an_answer_is_announced():
    use = ToolUse.of([("answer", None, None)])
    assert use.outputs(TAGS, None).calls
    with pytest.raises(ApiError, match="answer"):
        use.outputs(PLAIN_CALLS, None)
    with pytest.raises(ApiError, match="as JSON"):
        use.outputs(BARE, {"type": "object"})

"""Outputs with calls of tools, against what they allow."""

import json
from dataclasses import replace
from typing import Any

import pytest

from lmc.grammar.calls import CallForm, Outputs
from lmc.grammar.compiling import Source, compile_source
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import ConstraintError

CHAIN: dict[str, Any] = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}},
    "required": ["v"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"s": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["s"],
    "additionalProperties": False,
}
ONE, TWO = '{"v": 1, "next": {"v":2}}', '{"s": "x", "kids": [{"s": "y"}]}'


def outputs(begin: str = "<call>", end: str = "</call>", **options: Any) -> Outputs:
    forms = [CallForm(name, f"{begin}{name} ", schema, end) for name, schema in (("chain", CHAIN), ("tree", TREE))]
    return Outputs(forms, begin, **options)


def allowed(made: Outputs, *texts: str) -> list[bool]:
    constraint = compile_source(Source.of_outputs(made), toy_tokenizer())
    return [constraint.matches(text) for text in texts]


def chain(value: str = ONE) -> str:
    return f"<call>chain {value}</call>"


def tree(value: str = TWO) -> str:
    return f"<call>tree {value}</call>"


@pytest.mark.parametrize("is_anywhere", [True, False])
def test_calls_meet_the_schema_of_their_own_tool(is_anywhere: bool):
    good = (chain(), tree())
    bad = (
        chain(TWO),
        tree(ONE),
        tree('{"s": "x", "kids": [{"v": 1}]}'),
        chain()[:-1],
        chain() + "x",
        "<call>",
        "<call>other {}",
    )
    made = outputs(is_anywhere=is_anywhere)
    for each in (made, replace(made, text="none")):
        assert allowed(each, *good, *bad) == [True] * len(good) + [False] * len(bad)


def test_text_is_free_until_a_call_begins():
    anywhere, first = outputs(is_anywhere=True), outputs()
    texts = ("", "hello <call", "<<<call", "é日😀\n")
    for made in (anywhere, first):
        assert allowed(made, *texts) == [True] * len(texts)
        assert allowed(replace(made, text="none"), *texts) == [False] * len(texts)
        assert allowed(replace(made, calls=[]), *texts, chain()) == [True] * len(texts) + [False]
    assert allowed(anywhere, "see " + chain(), "see <call>", "see " + chain() + " there", "<" + chain()) == [
        True,
        False,
        False,
        True,
    ]
    assert allowed(first, "see " + chain(), "see <call>") == [True, True]


def test_several_calls_need_a_separator():
    made = outputs(is_anywhere=True)
    both = (chain() + "\n" + tree() + "\n" + chain(), chain() + tree(), chain() + "\n")
    assert allowed(made, *both) == [False, False, False]
    assert allowed(replace(made, separator="\n"), *both) == [True, False, False]


def test_an_answer_may_be_announced_and_have_a_schema():
    made = outputs("Action: ", "", answer="Action: answer\n")
    texts = ("Action: answer\nAction: x", "Action: tree " + TWO, "Action: other", "Action: answer")
    assert allowed(made, *texts) == [True, True, False, False]
    made = replace(made, text="schema", definition={"type": "integer"})
    assert allowed(made, "12", "Action: answer\n12", "twelve", "Action: answer\nx", "Action: tree " + TWO) == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_an_error_names_the_tool():
    wrong = CallForm("wrong", "<call>wrong ", {"type": "nothing"}, "</call>")
    with pytest.raises(ConstraintError, match="the arguments of the tool 'wrong'"):
        allowed(Outputs([wrong], "<call>"), "")
    nothing = CallForm("nothing", "<call>nothing ", {"not": {}}, "</call>")
    with pytest.raises(ConstraintError, match=r"tool 'nothing'|nothing meets"):
        allowed(Outputs([nothing], "<call>", text="none"), "")


def test_sources_of_equal_outputs_are_one():
    assert Source.of_outputs(outputs()).digest == Source.of_outputs(outputs()).digest
    assert Source.of_outputs(outputs()).digest != Source.of_outputs(outputs(separator="")).digest
    assert json.loads(Source.of_outputs(outputs()).text)["trigger"] == "<call>"

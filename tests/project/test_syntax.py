"""The TextMate grammar of ``.lmir`` gives each token its scope. In an editor's engine: tests/report/browser."""

import json
import re
from pathlib import Path

import lark
import pytest
from hypothesis import given
from pygments.token import Token, string_to_tokentype

from docs.reference import SCOPES, highlight_lmir, lmir_scopes
from lmc.ir.core import op_names
from lmc.ir.module import Module, print_module
from tests.module_strategies import modules
from tests.project.syntax import FILES, GRAMMAR, parts


def scopes_of(text: str) -> list[str]:
    """Return the scope of each character."""
    found: list[str] = []
    for offset, scope, piece in lmir_scopes(text):
        assert offset == len(found)
        found += [scope.removesuffix(".lmir")] * len(piece)
    assert len(found) == len(text)
    return found


def check(text: str) -> int:
    """Compare the scopes with the parts that the parser reads, and return the number of parts."""
    scopes = scopes_of(text)
    found = list(parts(text))
    wrong = [(text[start:end], scope, scopes[start]) for start, end, scope in found if {scope} != {*scopes[start:end]}]
    assert wrong == []
    return len(found)


def test_every_file_has_the_scopes_of_its_parts() -> None:
    total = unread = 0
    for path in FILES:
        try:
            total += check(path.read_text(encoding="utf-8"))
        except lark.UnexpectedInput:  # a test of an error
            unread += 1
    assert total > 10_000
    assert unread <= 3


@given(modules())
def test_every_module_has_the_scopes_of_its_parts(module: Module) -> None:
    check(print_module(module))


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("%a", "variable.other"),
        ('%"a b"', "variable.other"),
        ('"a\\"b // %c"', "string.quoted.double"),
        ("// %a", "comment.line.double-slash"),
        ("-1.5e-05", "constant.numeric"),
        ("-inf", "constant.language"),
        ("lm.gen", "support.function.op"),
        ("lm.genus", "constant.other"),
        ("str.join", "constant.other"),
        ("none_of", "constant.other"),
    ],
)
def test_the_scope_of_a_token(text: str, scope: str) -> None:
    assert set(scopes_of(text)) == {scope}


def test_the_grammar_has_every_op() -> None:
    patterns = json.loads(GRAMMAR.read_text(encoding="utf-8"))["patterns"]
    [ops] = [each["match"] for each in patterns if each.get("name") == "support.function.op.lmir"]
    names = {
        f"{dialect}.{name}"
        for dialect, found in re.findall(r"(\w+)\\\.\(\?:([\w|]+)\)", ops)
        for name in found.split("|")
    }
    assert names == {name for name in op_names() if not name.startswith("test.")}


def test_the_extension_names_its_files() -> None:
    folder = GRAMMAR.parent
    contributes = json.loads((folder / "package.json").read_text(encoding="utf-8"))["contributes"]
    named = [contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]]
    assert {Path(name).name for name in named} | {"package.json"} == {path.name for path in folder.iterdir()}
    assert contributes["grammars"][0]["scopeName"] == json.loads(GRAMMAR.read_text(encoding="utf-8"))["scopeName"]


def test_every_scope_has_a_colour_on_the_site() -> None:
    scopes = {scope.removesuffix(".lmir") for path in FILES for _, scope, _ in lmir_scopes(path.read_text("utf-8"))}
    assert scopes - {""} == set(SCOPES)
    assert all(string_to_tokentype(name) is not Token for name in SCOPES.values())
    html = highlight_lmir("%0 = lm.context : !ctx  // <b>")
    assert '<span class="nb">lm.context</span>' in html
    assert "&lt;b&gt;" in html

"""The parts of ``.lmir`` text as its parser reads them, with the scope that an editor is to give each."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from functools import cache

import lark

from lmc.ir.core import op_class
from tests.project.layers import REPOSITORY

FILES = [*sorted((REPOSITORY / "tests" / "filecheck").rglob("*.lmir")), REPOSITORY / "docs" / "ops.lmir"]
GRAMMAR = REPOSITORY / "docs" / "lmir-syntax" / "lmir.tmLanguage.json"

_SCOPES = {
    **dict.fromkeys(("MODULE", "FUNC", "CONSTRAINT", "HOST", "SHA256", "LOC"), "keyword.other"),
    **dict.fromkeys(("NONE", "TRUE", "FALSE", "INF", "MINUS_INF", "NAN"), "constant.language"),
    **dict.fromkeys(("SIMPLE_TYPE", "_LIST", "_JSON"), "storage.type"),
    "BARE_NAME": "entity.name.type",
    "NUMBER": "constant.numeric",
    "STRING": "string.quoted.double",
    "SYMBOL": "entity.name.function",
    "VALUE": "variable.other",
}
_WORDS = {"attribute": "entity.other.attribute-name", "region": "entity.name.label"}


@cache
def _grammar() -> lark.Lark:
    definition = importlib.resources.files("lmc.ir.text").joinpath("lmir.lark").read_text(encoding="utf-8")
    return lark.Lark(definition, parser="lalr", keep_all_tokens=True, maybe_placeholders=False)


def parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Return beginning, end and scope of each token and comment. Punctuation has the scope "". Raises lark's errors."""
    tokens = sorted(_tokens(_grammar().parse(text)), key=lambda found: found[0].start_pos or 0)
    end = 0
    for token, scope in tokens:
        assert token.start_pos is not None
        assert token.end_pos is not None
        yield from _comments(text, end, token.start_pos)
        end = token.end_pos
        length = len(token.rstrip("<"))  # of "!list<", the name is the type
        yield token.start_pos, token.start_pos + length, scope
    yield from _comments(text, end, len(text))


def _comments(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    for comment in re.finditer("//.*", text[start:end]):
        yield start + comment.start(), start + comment.end(), "comment.line.double-slash"


def _tokens(tree: lark.Tree[lark.Token]) -> Iterator[tuple[lark.Token, str]]:
    for child in tree.children:
        if isinstance(child, lark.Tree):
            yield from _tokens(child)
        elif child.type == "WORD":
            is_op = tree.data == "op" and op_class(child) is not None and not child.startswith("test.")
            yield child, "support.function.op" if is_op else _WORDS.get(tree.data, "constant.other")
        elif child.type == "CIRCUMFLEX":  # belongs to the name of the region
            yield child, "entity.name.label"
        elif child.type == "STRING" and tree.data == "json_type":
            yield child, "entity.name.type"
        else:
            yield child, _SCOPES.get(child.type, "")

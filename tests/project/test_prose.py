"""The style of docstrings and comments of lmc: a docstring begins with a verb or a noun."""

import ast
import io
import re
import tokenize
from collections import Counter

import pytest

from tests.project.layers import REPOSITORY

OPENING = re.compile(r"(What|Whether|Those|How|Where|Which|When|That) ")
PHRASES = re.compile(
    r"\b((is|are|was) told|bec[ao]mes? of|in vain|as far as|(go|goes|gone|going) on with|comes? of it|stands? in"
    r"|nobody|worked out)\b",
    re.IGNORECASE,
)
SHARED = {  # each the term of its package: of grammars, engines, programs or abstract values
    *("Block", "Constraint", "Evaluated", "Function", "Generation", "Handle", "Outcome", "Slice", "State"),
    *("TokenState", "UnknownVariableError"),
}
FILES = sorted((REPOSITORY / "lmc").rglob("*.py"))


def docstrings(tree):
    """Every string that is a statement of its own: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        for entry in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if (
                isinstance(entry, ast.Expr)
                and isinstance(entry.value, ast.Constant)
                and isinstance(entry.value.value, str)
            ):
                yield entry.lineno, entry.value.value


def problems(text):
    found = []
    for line, docstring in docstrings(ast.parse(text)):
        if OPENING.match(docstring):
            found.append(f"{line}: begins with {docstring.split()[0]!r}")
        found += [f"{line}: {match[0]!r}" for match in PHRASES.finditer(" ".join(docstring.split()))]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            found += [f"{token.start[0]}: {match[0]!r}" for match in PHRASES.finditer(token.string)]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPOSITORY / "lmc").as_posix())
def test_docstrings_and_comments_are_plain_english(path):
    assert problems(path.read_text("utf-8")) == []


def test_problems_are_found():
    assert problems('"""What it is."""') == ["1: begins with 'What'"]
    assert problems("x = 1  # tried in vain\n") == ["1: 'in vain'"]
    assert problems('class A:\n    b: int\n    """Known as far as\n    possible."""') == ["3: 'as far as'"]
    assert problems('"""Return what is told apart."""') == ["1: 'is told'"]


def test_a_class_name_means_one_thing():
    trees = [ast.parse(path.read_text("utf-8")) for path in (REPOSITORY / "lmc").rglob("*.py")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1 and name[0] != "_"} <= SHARED

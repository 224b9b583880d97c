import ast
import re
from pathlib import Path

import pytest

import lmc
from lmc.ir.wording import with_article, with_count


@pytest.mark.parametrize(
    "words",
    ["an int", "a str", "an assistant", "an OrderedDict", "a UUID", "a user", "a Union", "an object", "an _Item"],
)
def test_an_article_fits_its_noun(words: str):
    assert with_article(words.split()[1]) == words


def test_a_count_fits_its_noun():
    assert with_count(1, "row") == "1 row"
    assert [with_count(count, "class", "classes") for count in (0, 1, 2000)] == [
        "0 classes",
        "1 class",
        "2,000 classes",
    ]


def test_messages_put_no_fixed_article_before_a_noun_that_varies():
    """``f"a {kind.__name__}"`` says "an int"."""
    found: list[str] = []
    for path in sorted(Path(lmc.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                for text, value in zip(node.values, node.values[1:], strict=False):
                    match text, value:
                        case ast.Constant(value=str(words)), ast.FormattedValue() if re.search(r"\b[Aa]n? $", words):
                            found.append(f"{path}:{node.lineno}")
                        case _:
                            pass
    assert not found

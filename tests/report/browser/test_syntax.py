"""The TextMate grammar of ``.lmir`` in the engine of VS Code."""

import json
import subprocess
from pathlib import Path

import pytest

from docs.reference import lmir_scopes
from tests.project.syntax import FILES, GRAMMAR
from tests.report.browser.bundle import TOOLS


@pytest.mark.skipif(not (TOOLS / "vscode-textmate").is_dir(), reason="make browser installs vscode-textmate")
def test_an_editor_finds_the_same_scopes() -> None:
    """As ``lmir_scopes``, which tests/project/test_syntax.py compares with the parser."""
    texts = [path.read_text(encoding="utf-8") for path in FILES]
    found = subprocess.run(
        ["node", Path(__file__).with_name("tokenize.cjs")],
        input=json.dumps({"grammar": GRAMMAR.read_text(encoding="utf-8"), "texts": texts}),
        cwd=TOOLS.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    for text, tokens in zip(texts, json.loads(found), strict=True):
        assert text.isascii() or max(text) <= "\uffff"  # node counts UTF-16 code units
        assert merged(tokens) == merged((start, start + len(piece), scope) for start, scope, piece in lmir_scopes(text))


def merged(tokens) -> list[tuple[int, int, str]]:
    """Return tokens that have a scope, neighbours of one scope as one: (beginning, end, scope)."""
    found: list[tuple[int, int, str]] = []
    for start, end, scope in tokens:
        if not scope or start == end:
            continue
        if found and found[-1][1:] == (start, scope):
            found[-1] = (found[-1][0], end, scope)
        else:
            found.append((start, end, scope))
    return found

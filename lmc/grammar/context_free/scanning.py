"""The tokens of Lark's grammar notation."""

from __future__ import annotations

import re
from typing import NamedTuple

from lmc.grammar.context_free.syntax import refusal

_TOKENS = re.compile(
    r"""
    (?P<SPACE>[ \t]+ | (?://|\#)[^\n]*)
  | (?P<NEWLINE>\r?\n)
  | (?P<STRING>"(?:[^"\\\n]|\\[^\n])*"i?)
  | (?P<PATTERN>/(?![/*])(?:[^/\\\n]|\\[^\n])+/[imslux]*)
  | (?P<STATEMENT>%[a-z]+)
  | (?P<NAME>[!?]{0,2}(?:_?[a-z][_a-z0-9]*|_?[A-Z][_A-Z0-9]*))
  | (?P<NUMBER>-?[0-9]+)
  | (?P<SIGN>->|\.\.|[:|()\[\]{},.~*+?])
    """,
    re.VERBOSE,
)
_REMEDIES = {
    "{": "repeats are written ~2 or ~2..5",
    "<": "special tokens are never part of an output; leave them out",
    "&": "write the intersection out as one pattern",
    "@": "one grammar has to hold all rules",
    "'": 'write texts in double quotes: "text"',
    "/": "write // as a comment, a pattern as /…/ in one line, and a slash in it as \\/",
    '"': 'close the text with " in the same line',
}


class Token(NamedTuple):
    """A piece of a grammar; signs and brackets are kinds of their own."""

    kind: str
    text: str
    position: int


def scan(text: str) -> list[Token]:
    """The tokens of a grammar, without spaces and comments; the last is of the kind END. Raises ``ConstraintError``."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise refusal(text, at, f"{text[at]!r} is not Lark's syntax", remedy_for(text[at]))
        kind = match.lastgroup or ""
        if kind != "SPACE":
            tokens.append(Token(match[0] if kind == "SIGN" else kind, match[0], at))
        at = match.end()
    tokens.append(Token("END", "", at))
    return tokens


def remedy_for(text: str) -> str:
    """Return the remedy for a misplaced text."""
    return _REMEDIES.get(text[:1], "see Lark's grammar reference")

"""Grammars in GBNF, the notation of llama.cpp, XGrammar and SGLang's ``ebnf``, as the same tree as Lark's.

https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md. As in XGrammar, lines may end anywhere: a rule
ends where the next one begins.
"""

from __future__ import annotations

import re

from lmc.grammar.context_free.reading import (
    MAX_NESTING,
    MAX_REPEATS,
    Expression,
    Grammar,
    Literal,
    Name,
    RuleChoice,
    RuleDefinition,
    RuleRepeat,
    RuleSequence,
    TerminalPattern,
    Token,
    check_text,
    is_terminal,
    refusal,
)
from lmc.ir.errors import ConstraintError

_ROOT = "root"
_NAME = r"[A-Za-z0-9_-]+"
_SPACE = r"(?:\s|\#[^\n]*(?:\n|\Z))*"
_FIRST = re.compile(rf"{_SPACE}{_NAME}{_SPACE}::=")
_TOKENS = re.compile(
    rf"""
    (?P<SPACE>\s+ | \#[^\n]*)
  | (?P<STRING>"(?:[^"\\\n]|\\[^\n])*")
  | (?P<CLASS>\[(?:[^\]\\\n]|\\[^\n])*\])
  | (?P<RULE>{_NAME}(?={_SPACE}::=))
  | (?P<NAME>{_NAME})
  | (?P<COUNTS>\{{\s*[0-9]+\s*(?:,\s*[0-9]*\s*)?\}})
  | (?P<SIGN>::=|[|().*+?])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|([^\\])", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", **{each: each for each in "\"'\\[]-^/"}}
_REMEDIES = {
    "'": 'write texts in double quotes: "text"',
    '"': 'close the text with " in the same line',
    "[": "close the class with ] in the same line",
    "{": "repeats are written {2}, {2,} or {2,5}",
    "<": "special tokens are never part of an output; leave them out",
}


def is_gbnf(text: str) -> bool:
    """Return True if a grammar begins with a rule of GBNF; none of Lark does."""
    return _FIRST.match(text) is not None


def read_gbnf(text: str) -> Grammar:
    """The syntax tree of a grammar, whose rule ``root`` is called ``start`` there. Raises ``ConstraintError``."""
    check_text(text)
    return _GbnfReader(text).read()


class _GbnfReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nesting = 0
        self._used: list[Token] = []
        self._tokens: list[Token] = []
        at = 0
        while at < len(text):
            match = _TOKENS.match(text, at)
            if match is None:
                raise self._refusal(at, f"{text[at]!r} is not GBNF", _REMEDIES.get(text[at]))
            kind = match.lastgroup or ""
            if kind != "SPACE":
                self._tokens.append(Token(match[0] if kind == "SIGN" else kind, match[0], at))
            at = match.end()
        self._tokens.append(Token("END", "", at))

    def read(self) -> Grammar:
        grammar = Grammar(self._text)
        while not self._is("END"):
            rule = self._need("RULE", "a rule")
            self._need("::=", "::=")
            name = _inner_name(rule.text)
            if name in grammar.definitions:
                raise self._refusal(rule.position, f"{rule.text} is defined twice", "write | between its alternatives")
            grammar.definitions[name] = RuleDefinition(name, (), self._choice(), rule.position)
        if _inner_name(_ROOT) not in grammar.definitions:
            raise self._refusal(0, f"there is no rule {_ROOT}", f"call the rule of the whole output {_ROOT}")
        for name in self._used:
            if _inner_name(name.text) not in grammar.definitions:
                raise self._refusal(name.position, f"there is no rule {name.text}", "define it, or correct the name")
        return grammar

    def _choice(self) -> Expression:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            problem = f"parentheses nest more than {MAX_NESTING} deep"
            raise self._refusal(self._tokens[self._at].position, problem, "make inner parts rules of their own")
        alternatives = [self._sequence()]
        while self._take("|"):
            alternatives.append(self._sequence())
        self._nesting -= 1
        return alternatives[0] if len(alternatives) == 1 else RuleChoice(tuple(alternatives))

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while not any(map(self._is, ("RULE", "|", ")", "END"))):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else RuleSequence(tuple(parts))

    def _repeated(self) -> Expression:
        part = self._atom()
        while True:
            token = self._tokens[self._at]
            match token.kind:
                case "*":
                    part = RuleRepeat(part, 0, None)
                case "+":
                    part = RuleRepeat(part, 1, None)
                case "?":
                    part = RuleRepeat(part, 0, 1)
                case "COUNTS":
                    part = RuleRepeat(part, *self._counts(token))
                case _:
                    return part
            self._at += 1

    def _counts(self, token: Token) -> tuple[int, int | None]:
        low, comma, high = (each.strip() for each in token.text[1:-1].partition(","))
        if max(map(len, (low, high))) > len(str(MAX_REPEATS)) or max(int(low), int(high or 0)) > MAX_REPEATS:
            raise self._refusal(token.position, f"{token.text} repeats", f"give numbers up to {MAX_REPEATS}, or use *")
        least, most = int(low), int(high) if high else None if comma else int(low)
        if most is not None and most < least:
            raise self._refusal(token.position, f"repeats from {least} to {most}", "give the smaller number first")
        return least, most

    def _atom(self) -> Expression:
        token = self._tokens[self._at]
        self._at += 1
        match token.kind:
            case "(":
                inside = self._choice()
                self._need(")", ")")
                return inside
            case "STRING":
                return Literal("".join(self._characters(token.text[1:-1], token.position + 1)), "", token.position)
            case "CLASS":
                return self._class(token)
            case ".":
                return TerminalPattern(r"[\s\S]", "", token.position)
            case "NAME":
                self._used.append(token)
                return Name(_inner_name(token.text), (), token.position)
            case _:
                raise self._unexpected(token, "a rule, a text or a class of characters")

    def _class(self, token: Token) -> Expression:
        is_negative = token.text.startswith("[^")
        start = 2 if is_negative else 1
        inner = token.text[start:-1]
        if not inner:
            raise self._refusal(token.position, f"{token.text} has no characters", "give some, or . for any")
        self._characters(inner, token.position + start)
        spelled: list[str] = []
        for match in _ESCAPE.finditer(inner):
            is_dash = match[0] == "-" and match.start() > 0 and match.end() < len(inner)
            spelled.append("-" if is_dash else _in_class(_character(match) or ""))
        text = f"[{'^' if is_negative else ''}{''.join(spelled)}]"
        return TerminalPattern(text, "", token.position)

    def _characters(self, inner: str, position: int) -> list[str]:
        """Return the characters that are written in a text or class."""
        found: list[str] = []
        for match in _ESCAPE.finditer(inner):
            character = _character(match)
            if character is None:
                remedy = "write a backslash as two"
                raise self._refusal(position + match.start(), f"{match[0]} is no character", remedy)
            found.append(character)
        return found

    def _is(self, kind: str) -> bool:
        return self._tokens[self._at].kind == kind

    def _take(self, kind: str) -> bool:
        if not self._is(kind):
            return False
        self._at += 1
        return True

    def _need(self, kind: str, what: str) -> Token:
        token = self._tokens[self._at]
        if token.kind != kind:
            raise self._unexpected(token, what)
        self._at += 1
        return token

    def _unexpected(self, token: Token, what: str) -> ConstraintError:
        found = "the end" if token.kind == "END" else repr(token.text)
        return self._refusal(token.position, f"{found} where {what} should be", _REMEDIES.get(token.text[:1]))

    def _refusal(self, position: int, problem: str, remedy: str | None) -> ConstraintError:
        return refusal(self._text, position, problem, remedy or "see the grammars of llama.cpp")


def _inner_name(name: str) -> str:
    """Return the name of a rule in the tree, where ``start`` is the first one, and capitals are those of terminals."""
    if name == _ROOT:
        return "start"
    return f".{name}" if name == "start" or is_terminal(name) else name


def _character(match: re.Match[str]) -> str | None:
    if match[5] is not None:
        return match[5]
    number = match[1] or match[2] or match[3]
    if number is None:
        return _ESCAPES.get(match[4])
    code = int(number, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def _in_class(character: str) -> str:
    return (
        f"\\{character}" if character.isascii() and not character.isalnum() and character.isprintable() else character
    )

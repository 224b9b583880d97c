"""Grammars in Lark's notation: https://lark-parser.readthedocs.io/en/stable/grammar.html.

Syntax that shapes the parse tree (aliases, ``?``, ``!``, priorities) is read and has no meaning here: only the
texts of a grammar matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from lmc.ir.errors import ConstraintError

_SHOWN = 60  # characters of a line in a message


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in quotes; ``flags`` are letters, "i" or none."""

    text: str
    flags: str
    position: int


@dataclass(frozen=True, slots=True)
class TerminalPattern:
    """A regular expression between slashes; its text begins at ``position`` + 1 of the grammar."""

    text: str
    flags: str
    position: int


@dataclass(frozen=True, slots=True)
class Range:
    """One character from ``first`` to ``last``, both in it."""

    first: str
    last: str
    position: int


@dataclass(frozen=True, slots=True)
class Name:
    """A rule or terminal; ``arguments`` are those of a template."""

    name: str
    arguments: tuple[Expression, ...]
    position: int


@dataclass(frozen=True, slots=True)
class RuleSequence:
    """One part after the other; without parts nothing at all."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """Any of at least two alternatives."""

    alternatives: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RuleRepeat:
    """The part ``low`` to ``high`` times (None: without end)."""

    part: Expression
    low: int
    high: int | None


Expression = Literal | TerminalPattern | Range | Name | RuleSequence | RuleChoice | RuleRepeat


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    """A rule (small letters) or a terminal (capitals); ``parameters`` are those of a template."""

    name: str
    parameters: tuple[str, ...]
    expression: Expression
    position: int


@dataclass(slots=True)
class Grammar:
    """All definitions by name, and what may stand between terminals. ``text`` is where positions count."""

    text: str
    definitions: dict[str, RuleDefinition] = field(default_factory=dict[str, RuleDefinition])
    ignored: list[Expression] = field(default_factory=list[Expression])


def is_terminal(name: str) -> bool:
    """Return True for the name of a terminal: its letters are capitals."""
    return name.lstrip("_")[:1].isupper()


def refusal(text: str, position: int, problem: str, remedy: str) -> ConstraintError:
    """The error for what stands at ``position`` of a grammar (its end, where that is behind it)."""
    start = text.rfind("\n", 0, position) + 1
    line, column = text.count("\n", 0, position) + 1, position - start + 1
    shown = text[start:].split("\n", 1)[0]
    if len(shown) > _SHOWN:
        first = max(0, min(column - 1 - _SHOWN // 2, len(shown) - _SHOWN))
        last = first + _SHOWN
        shown = f"{'…' if first else ''}{shown[first:last]}{'…' if last < len(shown) else ''}"
    where = f"grammar, line {line}, column {column}"
    return ConstraintError(f"{where}: {problem}, in `{shown.strip()}`", remedy=remedy, position=position)


_INT = "[0-9]+"
_DECIMAL = rf"(?:{_INT}\.[0-9]*|\.{_INT})"
_EXPONENT = rf"[eE][+-]?{_INT}"
_FLOAT = rf"(?:{_INT}{_EXPONENT}|{_DECIMAL}(?:{_EXPONENT})?)"
_NUMBER = rf"(?:{_FLOAT}|{_INT})"

# The terminals of Lark's library `common`, as patterns of lmc's dialect. Three of Lark's own (ESCAPED_STRING, C_COMMENT
# and what they are made of) say with look-around and lazy quantifiers where a match ends; here it ends by itself.
COMMON: dict[str, str] = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[a-fA-F0-9]",
    "INT": _INT,
    "SIGNED_INT": rf"[+-]?{_INT}",
    "DECIMAL": _DECIMAL,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": rf"[+-]?{_FLOAT}",
    "NUMBER": _NUMBER,
    "SIGNED_NUMBER": rf"[+-]?{_NUMBER}",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[a-zA-Z]",
    "WORD": "[a-zA-Z]+",
    "CNAME": "[_a-zA-Z][_a-zA-Z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*(?:[^*]|\*+[^*/])*\*+/",
    "SQL_COMMENT": r"--[^\n]*",
}


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


MAX_TEXT = 200_000
MAX_NESTING = 60
MAX_REPEATS = 100_000

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "b": "\b", "\\": "\\", '"': '"', "/": "/"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


def read_grammar(text: str) -> Grammar:
    """The syntax tree of a grammar. Raises ``ConstraintError`` for what is no Lark, or can't be kept."""
    check_text(text)
    return _Reader(text).read()


def check_text(text: str) -> None:
    """Raise ``ConstraintError`` for a text that is too long, or holds what no output can."""
    if len(text) > MAX_TEXT:
        raise refusal(text, MAX_TEXT, f"it has more than {MAX_TEXT} characters", "give a smaller grammar")
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate is not None:
        raise refusal(text, surrogate.start(), "it holds half of a surrogate pair", "write whole characters")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = scan(text)
        self._at = 0
        self._nesting = 0

    def read(self) -> Grammar:
        grammar = Grammar(self._text)
        while not self._is("END"):
            if self._take("NEWLINE"):
                continue
            if self._is("STATEMENT"):
                self._statement(grammar)
            else:
                definition = self._definition()
                self._add(grammar, definition)
            if not self._is("END"):
                self._need("NEWLINE", "the end of the line")
        return grammar

    def _definition(self) -> RuleDefinition:
        token = self._need("NAME", "a rule, a terminal or a statement")
        name = token.text.lstrip("!?")
        parameters: list[str] = []
        if self._take("{"):
            parameters.append(self._need("NAME", "the name of a parameter").text)
            while self._take(","):
                parameters.append(self._need("NAME", "the name of a parameter").text)
            self._need("}", "} after the parameters")
        if self._take("."):
            self._need("NUMBER", "a priority")
        self._need(":", f": after {name}")
        return RuleDefinition(name, tuple(parameters), self._choice(), token.position)

    def _add(self, grammar: Grammar, definition: RuleDefinition) -> None:
        if definition.name in grammar.definitions:
            remedy = "give it one definition, its alternatives separated by |"
            raise refusal(self._text, definition.position, f"{definition.name} is defined twice", remedy)
        grammar.definitions[definition.name] = definition

    def _statement(self, grammar: Grammar) -> None:
        token = self._next()
        if token.text == "%ignore":
            grammar.ignored.append(self._choice())
        elif token.text == "%import":
            self._import(grammar, token)
        else:
            remedy = "write every rule and terminal out; there are %ignore and %import common"
            raise refusal(self._text, token.position, f"{token.text} is not supported", remedy)

    def _import(self, grammar: Grammar, statement: Token) -> None:
        if self._is("."):
            self._refuse_import(statement)
        library = self._need("NAME", "the name of a library")
        if library.text != "common":
            self._refuse_import(statement)
        if self._take("."):
            names = [self._need("NAME", "the name of a terminal")]
            alias = self._need("NAME", "a name") if self._take("->") else names[0]
            self._add_common(grammar, names[0], alias)
            return
        self._need("(", "common.NAME or common (NAME, …)")
        while True:
            name = self._need("NAME", "the name of a terminal")
            self._add_common(grammar, name, name)
            if not self._take(","):
                break
        self._need(")", ") after the names")

    def _refuse_import(self, statement: Token) -> NoReturn:
        remedy = "copy its definitions into the grammar; only %import common is there"
        raise refusal(self._text, statement.position, "other files are not read", remedy)

    def _add_common(self, grammar: Grammar, name: Token, alias: Token) -> None:
        pattern = COMMON.get(name.text)
        if pattern is None:
            problem = f"common has no terminal {name.text}"
            raise refusal(self._text, name.position, problem, f"there are {', '.join(COMMON)}")
        if not is_terminal(alias.text):
            raise refusal(self._text, alias.position, f"{alias.text} names a terminal", "write it in capitals")
        self._add(grammar, RuleDefinition(alias.text, (), TerminalPattern(pattern, "", alias.position), alias.position))

    def _choice(self) -> Expression:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            problem = f"parentheses nest more than {MAX_NESTING} deep"
            raise refusal(self._text, self._tokens[self._at].position, problem, "make inner parts rules of their own")
        alternatives = [self._sequence()]
        while self._take_bar():
            alternatives.append(self._sequence())
        self._nesting -= 1
        return alternatives[0] if len(alternatives) == 1 else RuleChoice(tuple(alternatives))

    def _take_bar(self) -> bool:
        """Take a ``|``; return True if another alternative follows, here or in the next lines."""
        at = self._at
        while self._tokens[at].kind == "NEWLINE":
            at += 1
        if self._tokens[at].kind != "|":
            return False
        self._at = at + 1
        return True

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while not any(map(self._is, ("NEWLINE", "|", ")", "]", "->", "END"))):
            parts.append(self._repeated())
            self._skip_lines_in_group()
        if self._take("->"):
            self._need("NAME", "the name of an alias")
        self._skip_lines_in_group()
        return parts[0] if len(parts) == 1 else RuleSequence(tuple(parts))

    def _skip_lines_in_group(self) -> None:
        """A group may go on in the next line."""
        while self._nesting > 1 and self._take("NEWLINE"):
            pass

    def _repeated(self) -> Expression:
        part = self._atom()
        if self._take("*"):
            return RuleRepeat(part, 0, None)
        if self._take("+"):
            return RuleRepeat(part, 1, None)
        if self._take("?"):
            return RuleRepeat(part, 0, 1)
        if not self._take("~"):
            return part
        low = high = self._number()
        token = self._tokens[self._at]
        if self._take(".."):
            high = self._number()
        if high < low:
            raise refusal(self._text, token.position, f"repeats from {low} to {high}", "give the smaller number first")
        return RuleRepeat(part, low, high)

    def _number(self) -> int:
        token = self._need("NUMBER", "a number of repeats")
        if not 0 <= int(token.text) <= MAX_REPEATS:
            problem = f"{token.text} repeats"
            raise refusal(self._text, token.position, problem, f"give a number from 0 to {MAX_REPEATS}, or use *")
        return int(token.text)

    def _atom(self) -> Expression:
        for opening, closing in (("(", ")"), ("[", "]")):
            if self._take(opening):
                self._skip_lines()
                inside = self._choice()
                self._need(closing, closing)
                return inside if opening == "(" else RuleRepeat(inside, 0, 1)
        token = self._next()
        if token.kind == "STRING":
            literal = self._literal(token)
            return self._range(literal) if self._take("..") else literal
        if token.kind == "PATTERN":
            text, _, flags = token.text[1:].rpartition("/")
            return TerminalPattern(text, flags, token.position)
        if token.kind != "NAME":
            self._at -= 1
            self._need("NAME", "a rule, a terminal, a text or a pattern")
        arguments: list[Expression] = []
        if self._take("{"):
            arguments.append(self._atom())
            while self._take(","):
                arguments.append(self._atom())
            self._need("}", "} after the arguments")
        return Name(token.text.lstrip("!?"), tuple(arguments), token.position)

    def _skip_lines(self) -> None:
        while self._take("NEWLINE"):
            pass

    def _range(self, first: Literal) -> Range:
        last = self._literal(self._need("STRING", "the last character of the range"))
        for end in (first, last):
            if len(end.text) != 1 or end.flags:
                problem = f"{end.text!r} is no end of a range"
                raise refusal(self._text, end.position, problem, 'give single characters: "a".."z"')
        if first.text > last.text:
            problem = f"the range from {first.text!r} to {last.text!r} is empty"
            raise refusal(self._text, first.position, problem, "give the lower character first")
        return Range(first.text, last.text, first.position)

    def _literal(self, token: Token) -> Literal:
        quoted, _, flags = token.text[1:].rpartition('"')

        def unescape(match: re.Match[str]) -> str:
            number = match[1] or match[2] or match[3]
            if number is None and match[4] in _ESCAPES:
                return _ESCAPES[match[4]]
            code = int(number, 16) if number else -1
            if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
                position = token.position + 1 + match.start()
                remedy = "write a backslash as two, or use a pattern: /\\d/"
                raise refusal(self._text, position, f"{match[0]} is no character", remedy)
            return chr(code)

        return Literal(_ESCAPE.sub(unescape, quoted), flags, token.position)

    def _is(self, kind: str) -> bool:
        return self._tokens[self._at].kind == kind

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "END":
            self._at += 1
        return token

    def _take(self, kind: str) -> bool:
        if not self._is(kind):
            return False
        self._at += 1
        return True

    def _need(self, kind: str, what: str) -> Token:
        token = self._tokens[self._at]
        if token.kind != kind:
            found = {"END": "the end", "NEWLINE": "the end of the line"}.get(token.kind, repr(token.text))
            remedy = remedy_for(token.text)
            raise refusal(self._text, token.position, f"{found} where {what} should be", remedy)
        self._at += 1
        return token
